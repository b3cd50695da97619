//! Injections: the memories that each session was given.

use crate::{
    error::Result,
    fold::{
        projection::{Projection, Rows},
        sessions,
    },
};
use claude_mem_events::{Event, InjectionMoment, Recorded};
use rusqlite::params;

/// Observations that sessions were given in full.
pub(crate) struct Injections;

impl Projection for Injections {
    fn name(&self) -> &'static str {
        "injections"
    }

    fn version(&self) -> u32 {
        2
    }

    fn apply(&self, rows: &Rows<'_>, event: &Recorded) -> Result<()> {
        let Event::MemoryInjected(injected) = &event.event else { return Ok(()) };
        let place = sessions::place(rows, event)?;
        let moment = match injected.moment {
            InjectionMoment::SessionStart => "session start",
            InjectionMoment::Prompt => "prompt",
            InjectionMoment::Fetch => "fetch",
            InjectionMoment::File => "file",
            InjectionMoment::Failure => "failure",
        };
        let sql =
            "insert into injections (seq, position, at_us, session, project, moment, event, number)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        for (at, observation) in injected.observations.iter().enumerate() {
            rows.run(
                sql,
                params![
                    event.seq.raw() as i64,
                    at as i64 + 1,
                    event.at_us() as i64,
                    place.session,
                    place.project,
                    moment,
                    observation.event,
                    observation.number,
                ],
            )?;
        }
        Ok(())
    }
}
