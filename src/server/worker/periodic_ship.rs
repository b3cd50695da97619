//! Shipping as the worker does it: on and on, and patient with a remote that is away.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::shared::Shared;
use claude_mem_core::{app::App, failure::Failure, settings::table::SHIP_TO};
use claude_mem_sync::ship::{Backoff, Error, Shipped, Shipper};

/// What is kept from one turn to the next: the shipper knows what the remote holds, and the runtime its
/// connections.
struct Going {
    settings: Vec<String>,
    shipper: Option<Shipper>,
    runtime: tokio::runtime::Runtime,
    backoff: Backoff,
    not_before: Option<Instant>,
}

static GOING: Mutex<Option<Going>> = Mutex::new(None);

/// Ships what is new, if there is a place to ship to and it is not being left alone.
pub(crate) fn turn(_: &Shared, app: &mut App) -> Result<(), Failure> {
    let place = app.settings.get(&SHIP_TO);
    let mut going = GOING.lock().unwrap_or_else(PoisonError::into_inner);
    if place.is_empty() {
        *going = None;
        return Ok(());
    }
    let settings = in_force(app);
    if going.as_ref().is_none_or(|going| going.settings != settings) {
        *going = Some(Going::new(settings)?);
    }
    if let Some(going) = going.as_mut() {
        going.turn(app, &place);
    }
    Ok(())
}

/// What a shipper is made of: another key or place needs another shipper.
fn in_force(app: &App) -> Vec<String> {
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

impl Going {
    fn new(settings: Vec<String>) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("no runtime could be started: {error}")))?;
        Ok(Self { settings, shipper: None, runtime, backoff: Backoff::default(), not_before: None })
    }

    /// What goes wrong is told once, and again when it is over; `status` tells it all the time.
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
