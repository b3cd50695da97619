//! Reads the observations that sessions received.

use crate::{Store, error::Result};
use claude_mem_events::ObservationRef;
use rusqlite::OptionalExtension;

impl Store {
    /// References to these observations, in this order. Unknown ids are left out.
    pub fn observation_refs(&self, ids: &[i64]) -> Result<Vec<ObservationRef>> {
        let mut statement = self
            .connection
            .prepare_cached("select event, number from observations where id = ?1")?;
        let mut refs = Vec::with_capacity(ids.len());
        for id in ids {
            let found = statement.query_row([id], |row| {
                Ok(ObservationRef { event: row.get(0)?, number: row.get(1)? })
            });
            refs.extend(found.optional()?);
        }
        Ok(refs)
    }

    /// The observations that a session was given in full, by the client's id of the session.
    pub fn injected_in(&self, session: &str) -> Result<Vec<ObservationRef>> {
        let sql = "select injections.event, injections.number from injections
                       join sessions on sessions.id = injections.session
                   where sessions.session = ?1 and sessions.log = 0";
        let mut statement = self.connection.prepare_cached(sql)?;
        let refs = statement.query_map([session], |row| {
            Ok(ObservationRef { event: row.get(0)?, number: row.get(1)? })
        })?;
        Ok(refs.collect::<rusqlite::Result<_>>()?)
    }
}
