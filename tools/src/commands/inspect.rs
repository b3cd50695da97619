//! `inspect`: what is in a log.

use crate::inspect;
use std::{
    error::Error,
    io::{self, BufWriter, Write as _},
    path::PathBuf,
    process::ExitCode,
};

/// Look into a log
///
/// Reads files as they lie on the disk, changes nothing, and goes on behind whatever is damaged.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Inspect {
    /// List the segments: state, size, number of records, times
    Ls {
        #[command(flatten)]
        log: Chosen,
    },
    /// Show the frames: place, id, kind, schema, size, flags and how the payload begins
    Dump {
        #[command(flatten)]
        log: Chosen,

        /// Only this segment, by its number
        #[arg(long, value_name = "NUMBER")]
        segment: Option<u64>,
    },
    /// Add up the records of each kind, what compression saves, and what is damaged
    ///
    /// Ends with status 1 if something that was acknowledged may be lost.
    Stat {
        #[command(flatten)]
        log: Chosen,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// The directory of the log
    dir: PathBuf,

    /// Print JSON, one object in a line
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let mut out = BufWriter::new(io::stdout().lock());
        let result = match self {
            Self::Ls { log } => inspect::list(&log.dir, log.json, &mut out).map(|()| true),
            Self::Dump { log, segment } => {
                inspect::dump(&log.dir, segment, log.json, &mut out).map(|()| true)
            }
            Self::Stat { log } => inspect::stat(&log.dir, log.json, &mut out),
        };
        let result = result.and_then(|is_whole| out.flush().map(|()| is_whole).map_err(Into::into));
        match result {
            Ok(true) => Ok(ExitCode::SUCCESS),
            Ok(false) => Ok(ExitCode::FAILURE),
            // Whoever was reading has seen enough, as in `… | head`.
            Err(error) if is_broken_pipe(error.as_ref()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error),
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
