//! One short request that tests a provider before the first turn.

use std::time::Duration;

use crate::{
    providers::{self, Limits, Refusal, Request, auto, auto::RULES},
    setup,
};
use claude_mem_core::{
    app::App,
    settings::{ProviderName, table},
};

/// A client takes seconds to start, a local model up to a minute to load.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Enough for a model that thinks before a one-word answer.
const TOKENS_OUT_MAX: u32 = 1024;

/// The providers that the settings allow, best first. The built-in rules need no request.
pub fn configured_providers(app: &App) -> Vec<&'static str> {
    match app.settings.get(&table::PROVIDER) {
        ProviderName::Auto => auto::candidates(&setup(app)),
        chosen => vec![chosen.name()],
    }
}

/// Sends one request of a few words and returns how long the response took. It is not recorded.
pub fn test_provider(app: &App, provider: &str) -> Result<Duration, Refusal> {
    if provider == RULES {
        return Ok(Duration::ZERO);
    }
    let request = Request {
        content_session: "test".into(),
        system: "You check whether a connection works.".into(),
        closing: "Reply with the word OK and nothing else.".into(),
        text: "This is a test request of claude-mem.".into(),
        model: providers::model(provider, &app.settings),
        limits: Limits { tokens_out_max: TOKENS_OUT_MAX, time_max: TIME_MAX },
        ..Request::default()
    };
    let response = providers::open(provider, &setup(app))?.send(&request)?;
    Ok(response.duration)
}
