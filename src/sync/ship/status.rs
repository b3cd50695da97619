//! The status of shipping, without contacting the remote.

use serde::Serialize;

use crate::ship::{
    key::{self, Key},
    local_state::State,
};
use claude_mem_core::{app::App, settings::table::SHIP_TO, time_arg::rfc3339};

/// For `status`. Scripts use these names, so they are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShipStatus {
    pub place: String,
    /// Bytes of log that are not shipped yet; `None` if the place is not saved, so that nothing is
    /// expected to go there.
    pub behind_bytes: Option<u64>,
    pub shipped_at: Option<String>,
    pub error: Option<String>,
    pub key: Option<String>,
}

impl ShipStatus {
    /// Reads the status; `None` if shipping is off. `log_bytes` is the size of the local log.
    pub fn look(app: &App, log_bytes: u64) -> Option<Self> {
        let chosen = app.settings.get(&SHIP_TO);
        let is_saved = !chosen.is_empty();
        let state = State::load(&app.paths);
        let place = match &state {
            _ if is_saved => chosen,
            Some(state) => state.place.clone(),
            None => return None,
        };
        let state = state.filter(|state| state.place == place).unwrap_or_default();
        let key = Key::load(&app.paths.ship_key()).ok().flatten();
        Some(Self {
            behind_bytes: is_saved.then(|| log_bytes.saturating_sub(state.log_bytes)),
            shipped_at: Some(state.shipped_us).filter(|time| *time > 0).map(rfc3339),
            error: state.error,
            key: key.map(|key| key::show(key.fingerprint())),
            place,
        })
    }
}
