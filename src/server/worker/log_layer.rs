//! The worker's log: `tracing` events as lines in `logs/worker.log`.

use std::{
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use claude_mem_core::diagnostics::{self, Level};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    layer::{Context, SubscriberExt as _},
};

/// The common beginning of the names of our crates. Libraries only report warnings.
const OWN_CRATES: &str = "claude_mem";

/// Writes the events of this process to the worker's log from now on. `levels` is a level such as
/// `debug`, or a list such as `info,claude_mem_sync=debug`.
pub(super) fn start(data: &Path, levels: &str) {
    let layer = LogLayer { data: data.to_owned() }.with_filter(filter(levels));
    // Only a test in the same process could have set one before.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
}

fn filter(levels: &str) -> Targets {
    let own = |level| Targets::new().with_default(LevelFilter::WARN).with_target(OWN_CRATES, level);
    match levels.parse::<LevelFilter>() {
        Ok(level) => own(level),
        Err(_) => levels.parse().unwrap_or_else(|_| own(LevelFilter::INFO)),
    }
}

struct LogLayer {
    data: PathBuf,
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        diagnostics::record_worker(&self.data, level(event.metadata()), line.text());
    }
}

fn level(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

/// `message name=value name=value`.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn text(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn events_become_lines_and_levels_are_chosen_by_crate() {
        let data = tempfile::tempdir().unwrap();
        let written = |levels: &str| {
            let _ = fs::remove_dir_all(data.path().join("logs"));
            let layer = LogLayer { data: data.path().to_owned() }.with_filter(filter(levels));
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                tracing::info!(target: "claude_mem_sync::ship", bytes = 12, "uploaded");
                tracing::debug!(target: "claude_mem_distill", model = "m\n", "response");
                tracing::info!(target: "hyper::client", "connected");
                tracing::error!(target: "hyper::client", "connection lost");
            });
            let log = fs::read_to_string(diagnostics::worker_log(data.path())).unwrap_or_default();
            let text = |line: &str| line.split_once("] ").unwrap().1.to_owned();
            log.lines().map(text).collect::<Vec<_>>()
        };
        assert_eq!(written("info"), ["uploaded bytes=12", "connection lost"]);
        assert_eq!(
            written("debug"),
            ["uploaded bytes=12", r"response model=m\n", "connection lost"]
        );
        assert_eq!(written("off,claude_mem_distill=debug"), [r"response model=m\n"]);
        assert_eq!(written("nonsense=="), written("info"));
    }
}
