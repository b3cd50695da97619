//! The periodic upload, to the remote or, without one, to the local backup. Retries with back-off
//! while the remote is unreachable.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::shared::Shared;
use claude_mem_core::{app::App, failure::Failure, settings::table::SHIP_TO};
use claude_mem_maintenance::repair;
use claude_mem_sync::ship::{self, Backoff, Error, Shipper, backup, backup_runtime, runtime};
use tokio::runtime::Runtime;

/// State between runs: the shipper caches the state of the remote, and the runtime its
/// connections.
struct ShipState {
    settings: Vec<String>,
    is_backup: bool,
    shipper: Option<Shipper>,
    runtime: Runtime,
    backoff: Backoff,
    not_before: Option<Instant>,
}

static GOING: Mutex<Option<ShipState>> = Mutex::new(None);

/// The pause between two runs of the backup. Each costs a sync and a file.
const BACKUP_EVERY: Duration = Duration::from_secs(5);

/// Ships new events to the remote, or without one to the backup, if the back-off has passed.
pub(crate) fn turn(_: &Shared, app: &mut App) -> Result<(), Failure> {
    let place = app.settings.get(&SHIP_TO);
    let mut going = GOING.lock().unwrap_or_else(PoisonError::into_inner);
    if place.is_empty() && !backup::is_on(&app.settings) {
        *going = None;
        return Ok(());
    }
    let settings = current_settings(app);
    if going.as_ref().is_none_or(|going| going.settings != settings) {
        *going = Some(ShipState::new(settings, place.is_empty())?);
    }
    if let Some(going) = going.as_mut() {
        going.turn(app, &place);
    }
    Ok(())
}

/// Settings of a shipper. A change needs a new one.
fn current_settings(app: &App) -> Vec<String> {
    use claude_mem_core::settings::{AnySetting, table as t};
    let settings: [&dyn AnySetting; 9] = [
        &t::SHIP_TO,
        &t::BACKUP_MB,
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
    fn new(settings: Vec<String>, is_backup: bool) -> Result<Self, Failure> {
        let runtime = if is_backup { backup_runtime() } else { runtime() }?;
        let not_before = is_backup.then(|| Instant::now() + BACKUP_EVERY);
        let backoff = Backoff::default();
        Ok(Self { settings, is_backup, shipper: None, runtime, backoff, not_before })
    }

    /// Logs a failure once, and its end. `status` shows it all the time.
    fn turn(&mut self, app: &mut App, place: &str) {
        if self.not_before.is_some_and(|moment| Instant::now() < moment) {
            return;
        }
        let copied = match self.ship(app, place) {
            Err(error) if self.is_backup && error.is_other_history() => {
                repair::backup(app).and(Err(Failure::from(error)))
            }
            copied => copied.map_err(Failure::from),
        };
        match copied {
            Ok(()) => {
                self.not_before = self.is_backup.then(|| Instant::now() + BACKUP_EVERY);
                if self.backoff.succeeded() {
                    let place = if self.is_backup { "the backup" } else { place };
                    tracing::info!("ship: {place} is up to date again");
                }
            }
            Err(failure) => {
                if self.backoff.is_first() {
                    tracing::warn!("ship: {}", failure.in_one_line());
                }
                self.not_before = Some(Instant::now() + self.backoff.failed());
            }
        }
    }

    fn ship(&mut self, app: &App, place: &str) -> Result<(), Error> {
        let shipper = match &mut self.shipper {
            Some(shipper) => shipper,
            none if self.is_backup => none.insert(backup::shipper(app)?),
            none => {
                let App { paths, settings, environment, clock, .. } = app;
                none.insert(Shipper::open(place, paths, settings, environment, *clock)?)
            }
        };
        let done = self.runtime.block_on(shipper.ship())?;
        if done.is_refilled {
            tracing::warn!("ship: {}", ship::REFILLED);
        }
        Ok(())
    }
}
