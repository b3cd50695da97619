//! `soak`: puts steady load on a worker and watches its resources.

use std::{error::Error, fs, path::PathBuf, process::ExitCode, time::Duration};

use claude_mem_tools::soak;

/// Growth of memory that counts as flat, in megabytes a minute.
const SLOPE_MAX: f64 = 0.1;

/// Allowed fluctuation of descriptors and pool threads.
const SPARE: usize = 4;

/// Put steady load on a worker, and watch its memory, descriptors and threads
///
/// Each second, sends one session over HTTP and one by hooks, and makes some searches, with an
/// event stream open. Fails if memory without mapped files grows after the first minute of steady
/// load, or if descriptors or threads accumulate.
#[derive(Debug, clap::Args)]
pub(crate) struct Soak {
    /// The program to test
    #[arg(long, default_value = "target/release/claude-mem")]
    binary: PathBuf,
    /// Duration in minutes
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Rounds without a pause before that, to fill the caches
    #[arg(long, default_value_t = 2400)]
    warm_up: u32,
    /// Rounds per second: one session over HTTP, one by hooks, and six searches each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// File for the report
    #[arg(long, default_value = "tools/results/soak.md")]
    report: PathBuf,
}

impl Soak {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let home = tempfile::tempdir()?;
        let soak = soak::Soak {
            binary: self.binary.canonicalize()?,
            home: home.path().to_path_buf(),
            warm_up_rounds: self.warm_up,
            rounds: self.minutes * 60 * self.rate,
            time_max: Duration::from_secs(60) * self.minutes,
            pace: Duration::from_secs(1) / self.rate,
            sample_rounds: 10 * self.rate,
        };
        let report = soak::soak(&soak, |sample| {
            let line = format!(
                "{:5.0} s  {:6.1} MB resident  {:6.1} MB anonymous  {:3} descriptors  {:2} threads",
                sample.seconds,
                sample.rss_mb,
                sample.anonymous_mb,
                sample.descriptors,
                sample.threads
            );
            let _ = super::say(&line);
        })?;
        fs::write(&self.report, report.markdown())?;
        let is_constant = |count: fn(&soak::Sample) -> usize| {
            let counts = report.settled().iter().map(count);
            counts.clone().max() <= counts.min().map(|least| least + SPARE)
        };
        // SQLite keeps some descriptors for reuse; their number depends on the order of closing.
        let is_flat = report.slope() <= SLOPE_MAX
            && is_constant(|sample| sample.descriptors)
            && is_constant(|sample| sample.threads);
        super::say(&format!(
            "{:+.3} MB a minute, written to {}",
            report.slope(),
            self.report.display()
        ))?;
        Ok(if is_flat { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
