//! `claude-mem settings`: show and change settings.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use claude_mem_capture::excluded_by;
use claude_mem_capture::project::{self, ProjectId};
use claude_mem_core::{
    app::App,
    failure::{Failure, nearest},
    paths::expand_tilde,
    settings::{
        self, AnySetting, Refused, Source, Unit, keep, masked,
        table::{ALL, DISABLED_PROJECTS, EXCLUDED_PROJECTS, MODE, find},
    },
};
use claude_mem_memory::modes::Mode;

/// Show and change settings
///
/// A value comes from the environment variable of the same name, else from settings.json in the
/// data directory, else from the default. API keys are stored in a separate file that only you can
/// read.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Print one JSON object per line
    #[arg(long, global = true)]
    json: bool,
    /// List only settings that differ from their default
    #[arg(long)]
    changed: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all settings with their values and sources
    List,
    /// Print a value
    Get {
        /// Name of the setting; `CLAUDE_MEM_` is optional
        key: String,
    },
    /// Change a value
    Set {
        /// Name of the setting; `CLAUDE_MEM_` is optional
        key: String,
        /// The new value
        value: String,
    },
    /// Reset to the default
    Unset {
        /// Name of the setting; `CLAUDE_MEM_` is optional
        key: String,
    },
    /// Show whether the project of this folder is recorded, or turn that on or off
    Project {
        /// Whether to record its sessions
        #[arg(value_name = "on|off")]
        switch: Option<Switch>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

impl Settings {
    /// Whether it prints the list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.action, None | Some(Action::List))
    }

    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        match self.action.unwrap_or(Action::List) {
            Action::List => list(app, self.json, self.changed),
            Action::Get { key } => get(app, known(&key)?, self.json),
            Action::Set { key, value } => set(app, known(&key)?, &value),
            Action::Unset { key } => {
                let setting = known(&key)?;
                change(app, setting, None)?;
                confirm_change(app, setting);
                Ok(())
            }
            Action::Project { switch: None } => show_project(app, self.json),
            Action::Project { switch: Some(switch) } => switch_project(app, switch),
        }
    }
}

fn known(key: &str) -> Result<&'static dyn AnySetting, Failure> {
    find(key).ok_or_else(|| {
        let failure = Failure::usage(format!("there is no setting `{key}`"));
        // Nearly every name has the prefix, so it is ignored when names are compared.
        let short = |name: &'static str| name.strip_prefix("CLAUDE_MEM_").unwrap_or(name);
        let typed = key.to_ascii_uppercase();
        let typed = typed.strip_prefix("CLAUDE_MEM_").unwrap_or(&typed);
        let near = nearest(typed, ALL.iter().map(|setting| short(setting.name())));
        let mut names = ALL.iter().map(|setting| setting.name());
        match names.find(|name| Some(short(name)) == near) {
            Some(name) => failure.remedy(format!("did you mean `{name}`?")),
            None => failure.remedy("list them with `claude-mem settings list`"),
        }
    })
}

fn list(app: &mut App, is_json: bool, is_changed_only: bool) -> Result<(), Failure> {
    let mut last = None;
    for setting in ALL.iter().copied() {
        let (value, source) = app.settings.find(setting);
        if is_changed_only && source == Source::Default {
            continue;
        }
        let shown = masked(setting, &value);
        if is_json {
            app.output.json(&to_json(setting, &shown, source))?;
        } else {
            let before = last.replace(setting.group());
            if before != last {
                let space = if before.is_none() { "" } else { "\n" };
                app.output.line(format_args!("{space}# {}", setting.group().name()))?;
            }
            let unit = setting.unit().name().map(|unit| format!(" ({unit})")).unwrap_or_default();
            let (label, description) = (setting.label(), setting.description());
            let accepted = setting.kind().accepted().filter(|_| setting.unit() == Unit::None);
            let accepted = accepted.map(|values| format!(" Accepts {values}.")).unwrap_or_default();
            let about = format!("{label}{unit}: {description}{accepted}{}", source_label(source));
            let value = format!("{}={shown}", setting.name());
            if app.output.columns().is_none() {
                app.output.line(format_args!("{value}  # {about}"))?;
            } else {
                // Values stand out from their descriptions, and changed ones from the defaults.
                let style = if source == Source::Default { "1" } else { "1;32" };
                let about = app.output.dim(&format!("    {about}"));
                app.output.line(app.output.paint(style, &value))?;
                app.output.line(app.output.hanging(4, &about))?;
            }
        }
        if let Some(Refused { given: text, accepted }) = app.settings.refused(setting) {
            let text = masked(setting, &text);
            app.output.say(format_args!(
                "warning: {} is `{text}`, which is not {accepted}; {}",
                setting.name(),
                settings::Settings::effect_of_refused(setting)
            ));
        }
    }
    if is_changed_only && !is_json && last.is_none() {
        app.output.say("all settings have their default values");
    }
    Ok(())
}

fn get(app: &mut App, setting: &dyn AnySetting, is_json: bool) -> Result<(), Failure> {
    let (value, source) = app.settings.find(setting);
    let shown = masked(setting, &value);
    if is_json {
        app.output.json(&to_json(setting, &shown, source))
    } else {
        app.output.line(shown)
    }
}

fn set(app: &mut App, setting: &dyn AnySetting, value: &str) -> Result<(), Failure> {
    let checked = setting.check(value).map_err(|accepted| {
        let shown = masked(setting, value);
        Failure::usage(format!("{} cannot be `{shown}`: expected {accepted}", setting.name()))
            .meaning("nothing was changed")
    })?;
    if setting.name() == MODE.name() {
        Mode::load(&app.paths.data, &checked)
            .map_err(|error| Failure::usage(error.to_string()).meaning("nothing was changed"))?;
    }
    change(app, setting, Some(&checked))?;
    confirm_change(app, setting);
    if setting.name() == EXCLUDED_PROJECTS.name {
        report_missing_folders(app);
    }
    if app.environment.get(setting.name()).is_some() {
        app.output.say(format_args!(
            "warning: {} is also set in the environment, which has priority",
            setting.name()
        ));
    }
    Ok(())
}

/// Says which value holds now.
fn confirm_change(app: &mut App, setting: &dyn AnySetting) {
    let settings = settings::Settings::load(&app.paths, &app.environment);
    let (value, source) = settings.find(setting);
    let shown = match masked(setting, &value) {
        empty if empty.is_empty() => "empty".into(),
        shown => format!("`{shown}`"),
    };
    let source = if source == Source::Default { ", the default" } else { source_label(source) };
    app.output.say(format_args!("{} is {shown}{source}", setting.name()));
}

/// A misspelled folder would exclude nothing. It can also be one that does not exist yet.
fn report_missing_folders(app: &mut App) {
    let settings = settings::Settings::load(&app.paths, &app.environment);
    for pattern in settings.get(&EXCLUDED_PROJECTS).iter().filter(|pattern| pattern.is_plain_path())
    {
        let folder = expand_tilde(Path::new(pattern.as_str()), app.paths.home.as_deref());
        if !folder.exists() {
            app.output.say(format_args!("warning: there is no folder `{}` yet", pattern.as_str()));
        }
    }
}

fn change(app: &mut App, setting: &dyn AnySetting, value: Option<&str>) -> Result<(), Failure> {
    keep(&app.paths, setting, value).map_err(|error| {
        Failure::new(format!("{} was not changed: {error}", setting.name()))
            .meaning("the file is unchanged")
            .remedy(format!("check {}", app.paths.settings().display()))
    })
}

fn show_project(app: &mut App, is_json: bool) -> Result<(), Failure> {
    let (project, cwd) = here(app)?;
    let excluded_by = excluded_by(&app.settings, &project, &cwd, app.paths.home.as_deref());
    if is_json {
        return app.output.json(&json!({"key": project.key, "label": project.label,
            "root": project.root, "remote": project.remote, "excluded_by": excluded_by}));
    }
    let state = match excluded_by {
        Some(name) => format!("not recorded, because of {name}"),
        None => "recorded".into(),
    };
    app.output.line(format_args!("{} ({}): {state}", project.label, project.key))
}

fn switch_project(app: &mut App, switch: Switch) -> Result<(), Failure> {
    let (project, _) = here(app)?;
    if project.key.contains(',') {
        return Err(Failure::new(format!("`{}` has a comma in it", project.key))
            .meaning("lists in settings are separated by commas")
            .remedy("use a pattern: `claude-mem settings set CLAUDE_MEM_EXCLUDED_PROJECTS GLOB`"));
    }
    let mut keys = app.settings.get(&DISABLED_PROJECTS);
    keys.retain(|key| *key != project.key);
    if switch == Switch::Off {
        keys.push(project.key);
    }
    let kept = (!keys.is_empty()).then(|| keys.join(","));
    change(app, &DISABLED_PROJECTS, kept.as_deref())?;
    let state = if switch == Switch::Off { "no longer recorded" } else { "recorded" };
    app.output.say(format_args!("sessions in {} are {state} from now on", project.label));
    Ok(())
}

fn here(app: &App) -> Result<(ProjectId, PathBuf), Failure> {
    let cwd = super::install::here()?;
    Ok((project::identify(&cwd.to_string_lossy(), &app.environment), cwd))
}

fn to_json(setting: &dyn AnySetting, shown: &str, source: Source) -> serde_json::Value {
    let source = match source {
        Source::Environment => "environment",
        Source::Credentials | Source::File => "file",
        Source::Default => "default",
    };
    json!({"name": setting.name(), "value": shown, "default": setting.default_text(), "source": source,
        "meaning": setting.description(), "label": setting.label(), "group": setting.group().name(),
        "unit": setting.unit().name()})
}

fn source_label(source: Source) -> &'static str {
    match source {
        Source::Environment => " (from the environment)",
        Source::Credentials => " (from .env)",
        Source::File => " (from settings.json)",
        Source::Default => "",
    }
}
