//! The periodic upload: retries with back-off while the remote is unreachable.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::shared::Shared;
use claude_mem_core::{app::App, failure::Failure, settings::table::SHIP_TO};
use claude_mem_sync::ship::{Backoff, Error, Shipped, Shipper};

/// State between runs: the shipper caches the state of the remote, and the runtime its
/// connections.
struct ShipState {
    settings: Vec<String>,
    shipper: Option<Shipper>,
    runtime: tokio::runtime::Runtime,
    backoff: Backoff,
    not_before: Option<Instant>,
}

static GOING: Mutex<Option<ShipState>> = Mutex::new(None);

/// Ships new events, if a place is configured and the back-off has passed.
pub(crate) fn turn(_: &Shared, app: &mut App) -> Result<(), Failure> {
    let place = app.settings.get(&SHIP_TO);
    let mut going = GOING.lock().unwrap_or_else(PoisonError::into_inner);
    if place.is_empty() {
        *going = None;
        return Ok(());
    }
    let settings = current_settings(app);
    if going.as_ref().is_none_or(|going| going.settings != settings) {
        *going = Some(ShipState::new(settings)?);
    }
    if let Some(going) = going.as_mut() {
        going.turn(app, &place);
    }
    Ok(())
}

/// Settings of a shipper. A change needs a new one.
fn current_settings(app: &App) -> Vec<String> {
    use claude_mem_core::settings::{AnySetting, table as t};
    let settings: [&dyn AnySetting; 8] = [
        &t::SHIP_TO,
        &t::SHIP_NAME,
        &t::SHIP_COMPRESS,
        &t::SHIP_ENDPOINT,
        &t::SHIP_REGION,
        &t::SHIP_ACCESS_KEY_ID,
        &t::SHIP_SECRET_ACCESS_KEY,
        &t::SHIP_GOOGLE_CREDENTIALS,
    ];
    let key = std::fs::read_to_string(app.paths.ship_key()).unwrap_or_default();
    settings.into_iter().map(|setting| app.settings.find(setting).0).chain([key]).collect()
}

impl ShipState {
    fn new(settings: Vec<String>) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start the async runtime: {error}")))?;
        Ok(Self { settings, shipper: None, runtime, backoff: Backoff::default(), not_before: None })
    }

    /// Logs a failure once, and its end. `status` shows it all the time.
    fn turn(&mut self, app: &App, place: &str) {
        if self.not_before.is_some_and(|moment| Instant::now() < moment) {
            return;
        }
        match self.ship(app, place) {
            Ok(_) => {
                self.not_before = None;
                if self.backoff.succeeded() {
                    tracing::info!("ship: {place} is up to date again");
                }
            }
            Err(error) => {
                if self.backoff.is_first() {
                    tracing::warn!("ship: {}", Failure::from(error).in_one_line());
                }
                self.not_before = Some(Instant::now() + self.backoff.failed());
            }
        }
    }

    fn ship(&mut self, app: &App, place: &str) -> Result<Shipped, Error> {
        let shipper = match &mut self.shipper {
            Some(shipper) => shipper,
            none => {
                let App { paths, settings, environment, clock, .. } = app;
                none.insert(Shipper::open(place, paths, settings, environment, *clock)?)
            }
        };
        self.runtime.block_on(shipper.once())
    }
}
