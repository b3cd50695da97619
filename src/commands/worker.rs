//! `claude-mem worker`: the background process.

use clap::{Args, Subcommand};

use crate::{app::App, failure::Failure, worker};

/// Run the background process that distils while you work
#[derive(Debug, Args)]
pub(crate) struct Worker {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Be the worker, in the foreground
    Run,
}

impl Worker {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        match self.action {
            Action::Run => run(app),
        }
    }
}

fn run(app: &mut App) -> Result<(), Failure> {
    if !worker::run(app)? {
        app.output.say("a worker is there already");
    }
    Ok(())
}
