//! Ranges of row ids: from 1 on for our own rows, and far above for each host.

use super::Kind;
use crate::{error::Result, hosts::ROWS_PER_HOST};
use rusqlite::Connection;

/// First and last row id of each host, in ascending order.
#[derive(Debug)]
pub(crate) struct Spans(Vec<(i64, i64)>);

impl Spans {
    pub(crate) fn of(connection: &Connection, kind: Kind) -> Result<Self> {
        let sql = "select log, last from (
                       select 0 as log, last from counters where name = ?1
                       union all
                       select hosts.log, last from hosts join counters
                       on counters.name = ?1 || '@' || hosts.log)
                   order by 1";
        let mut statement = connection.prepare_cached(sql)?;
        let spans = statement.query_map([kind.table()], |row| {
            let (log, last): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((log * ROWS_PER_HOST + 1, log * ROWS_PER_HOST + last))
        })?;
        Ok(Self(spans.collect::<rusqlite::Result<_>>()?))
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (i64, i64)> {
        self.0.iter().copied()
    }

    /// Number of ids.
    pub(crate) fn len(&self) -> i64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Number of ids up to `id`.
    pub(crate) fn upto(&self, id: i64) -> i64 {
        let within = |(first, last): &(i64, i64)| (id.min(*last) - first + 1).max(0);
        self.0.iter().map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_other_machines_are_far_above_and_counted_without_the_space_between() {
        let spans = Spans(vec![(1, 10), (ROWS_PER_HOST + 1, ROWS_PER_HOST + 5)]);
        assert_eq!((spans.len(), spans.upto(4), spans.upto(500)), (15, 4, 10));
        assert_eq!(spans.upto(ROWS_PER_HOST + 2), 12);
    }
}
