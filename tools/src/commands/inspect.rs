//! `inspect`: prints the contents of a log.

use crate::inspect;
use std::{
    error::Error,
    io::{self, BufWriter, Write as _},
    path::PathBuf,
    process::ExitCode,
};

/// Print the contents of a log
///
/// Reads the files as they are, changes nothing, and continues after damaged places.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Inspect {
    /// List the segments: state, size, number of records, times
    Ls {
        #[command(flatten)]
        log: LogArguments,
    },
    /// List the frames: position, id, kind, schema, size, flags and the start of the payload
    Dump {
        #[command(flatten)]
        log: LogArguments,

        /// Only this segment, by its number
        #[arg(long, value_name = "NUMBER")]
        segment: Option<u64>,
    },
    /// Count records by kind, bytes saved by compression, and damaged places
    ///
    /// Exits with 1 if an acknowledged record may be lost.
    Stat {
        #[command(flatten)]
        log: LogArguments,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogArguments {
    /// The directory of the log
    dir: PathBuf,

    /// Print JSON, one object per line
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
            // The reader closed the pipe, as in `… | head`.
            Err(error) if is_broken_pipe(error.as_ref()) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error),
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
