//! Settings for the viewer. Only harmless ones can be changed here.
//!
//! An attacker who controls the browser must not upload memories, read a key, raise a limit or
//! disable a protection. Such settings can only be changed on the command line.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, JsonBody},
    state::AppState,
};
use claude_mem_core::{
    app::App,
    settings::{
        AnySetting, Kind, Source, keep,
        table::{self, ALL, find},
    },
};
use claude_mem_memory::modes::Mode;

/// Settings that can be changed over HTTP. None of these names a destination, a
/// program, a file or a secret, and none weakens privacy, retention or a limit on spending.
static EDITABLE: &[&dyn AnySetting] = &[
    &table::SYNC,
    &table::MODEL,
    &table::VERBOSITY,
    &table::MODE,
    &table::LANGUAGE,
    &table::CONTEXT_OBSERVATIONS,
    &table::CONTEXT_SESSION_COUNT,
    &table::CONTEXT_FULL_COUNT,
    &table::CONTEXT_TOKENS_MAX,
    &table::CONTEXT_OBSERVATION_TYPES,
    &table::CONTEXT_OBSERVATION_CONCEPTS,
    &table::CONTEXT_SHOW_TERMINAL_OUTPUT,
    &table::COMPACT_MB,
    &table::WORKER_IDLE,
];

/// Every setting.
#[derive(Debug, Serialize, ToSchema)]
struct Settings {
    settings: Vec<SettingDetail>,
}

/// One setting.
#[derive(Debug, Serialize, ToSchema)]
struct SettingDetail {
    name: &'static str,
    /// Label.
    label: &'static str,
    /// Section.
    group: &'static str,
    /// Unit, such as `seconds`.
    unit: Option<&'static str>,
    /// Current value; empty if hidden.
    value: String,
    default: String,
    /// `environment`, `file` or `default`.
    source: &'static str,
    /// `text`, `secret`, `flag`, `choice`, `count`, `money` or `list`.
    kind: &'static str,
    /// Whether the value differs from the default, also for hidden values.
    is_set: bool,
    /// Whether the value is hidden: secrets, destinations, paths.
    is_hidden: bool,
    /// Meaning.
    meaning: &'static str,
    /// Accepted values of a choice.
    allowed: Option<Vec<&'static str>>,
    /// Minimum.
    min: Option<u64>,
    /// Maximum.
    max: Option<u64>,
    /// Whether it can only be changed on the command line.
    is_read_only: bool,
    /// The command that changes it.
    command: Option<String>,
}

/// Result of a change.
#[derive(Debug, Serialize, ToSchema)]
struct Changed {
    success: bool,
    message: String,
    settings: Vec<SettingDetail>,
}

/// New values by name; null resets to the default.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[schema(value_type = BTreeMap<String, Option<String>>)]
struct SettingChanges(BTreeMap<String, Value>);

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new().routes(routes!(show, change))
}

/// Lists all settings with their sources.
#[utoipa::path(get, path = "/api/settings", tag = "settings",
    responses((status = 200, body = Settings)))]
async fn show(State(state): State<Arc<AppState>>) -> ApiResult<Settings> {
    let shared = Arc::clone(&state.shared);
    let found = move || Ok(Settings { settings: all(&shared.app()) });
    state.block(found).await.map(Json)
}

/// Changes settings: all of them, or none.
#[utoipa::path(post, path = "/api/settings", tag = "settings",
    request_body(content = BTreeMap<String, Option<String>>),
    responses((status = 200, body = Changed)))]
async fn change(
    State(state): State<Arc<AppState>>,
    JsonBody(SettingChanges(wishes)): JsonBody<SettingChanges>,
) -> ApiResult<Changed> {
    let shared = Arc::clone(&state.shared);
    let done = move || {
        let mut checked = Vec::new();
        for (name, value) in &wishes {
            let (setting, value) = check(name, value)?;
            if let Some(mode) = value.as_deref().filter(|_| setting.name() == table::MODE.name()) {
                Mode::load(&shared.paths.data, mode)
                    .map_err(|error| ApiError::bad(error.to_string()))?;
            }
            checked.push((setting, value));
        }
        for (setting, value) in &checked {
            keep(&shared.paths, *setting, value.as_deref())
                .map_err(|error| ApiError::conflicting(&error.into()))?;
        }
        let app = shared.app();
        let overruled: Vec<&str> = checked
            .iter()
            .map(|(setting, _)| setting.name())
            .filter(|name| app.environment.get(name).is_some())
            .collect();
        let message = match overruled.as_slice() {
            [] => "Settings updated".to_owned(),
            names => format!("Settings updated; the environment overrides {}", names.join(", ")),
        };
        // The next request reads the settings again.
        shared.wake();
        Ok(Changed { success: true, message, settings: all(&app) })
    };
    state.block(done).await.map(Json)
}

fn check(name: &str, value: &Value) -> Result<(&'static dyn AnySetting, Option<String>), ApiError> {
    let setting = find(name)
        .ok_or_else(|| ApiError::bad(format!("there is no setting `{}`", short(name))))?;
    if is_read_only(setting) {
        return Err(ApiError::forbidden(format!("{} cannot be changed over HTTP", setting.name()))
            .remedy(format!("change it in a terminal with `{}`", command(setting))));
    }
    let text = match value {
        Value::Null => return Ok((setting, None)),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        _ => return Err(ApiError::bad(format!("{} must be a string", setting.name()))),
    };
    match setting.check(&text) {
        Ok(value) => Ok((setting, Some(value))),
        Err(accepted) => Err(ApiError::bad(format!(
            "{} has an invalid value: expected {accepted}",
            setting.name()
        ))),
    }
}

fn is_read_only(setting: &dyn AnySetting) -> bool {
    EDITABLE.iter().all(|editable| editable.name() != setting.name())
}

/// Read-only free text is a destination, a path, or a name that leads to one.
fn is_hidden(setting: &dyn AnySetting) -> bool {
    match setting.kind() {
        Kind::Secret(_) => true,
        Kind::Text => is_read_only(setting),
        _ => false,
    }
}

fn command(setting: &dyn AnySetting) -> String {
    format!("claude-mem settings set {} VALUE", setting.name())
}

fn all(app: &App) -> Vec<SettingDetail> {
    ALL.iter().map(|setting| shown(app, *setting)).collect()
}

fn shown(app: &App, setting: &'static dyn AnySetting) -> SettingDetail {
    let (value, source) = app.settings.find(setting);
    let (kind, allowed, range) = match setting.kind() {
        Kind::Text => ("text", None, None),
        Kind::Secret(_) => ("secret", None, None),
        Kind::Flag => ("flag", None, None),
        Kind::Choice(choices) => {
            ("choice", Some(choices.iter().map(|choice| choice.name).collect()), None)
        }
        Kind::Count(min, max) => ("count", None, Some((min, max))),
        Kind::Money => ("money", None, None),
        Kind::List => ("list", None, None),
    };
    SettingDetail {
        name: setting.name(),
        label: setting.label(),
        group: setting.group().name(),
        unit: setting.unit().name(),
        is_set: source != Source::Default,
        is_hidden: is_hidden(setting),
        value: if is_hidden(setting) { String::new() } else { value },
        default: setting.default_text(),
        source: match source {
            Source::Environment => "environment",
            Source::Credentials | Source::File => "file",
            Source::Default => "default",
        },
        kind,
        meaning: setting.description(),
        allowed,
        min: range.map(|(min, _)| min),
        max: range.map(|(_, max)| max).filter(|max| *max < u64::MAX),
        is_read_only: is_read_only(setting),
        command: is_read_only(setting).then(|| command(setting)),
    }
}

fn short(name: &str) -> String {
    name.chars().take(60).collect()
}
