//! Reads rows of the TypeScript claude-mem from its database or an export.

use std::{fs, path::Path};

use claude_mem_projections::{Error, Upstream, UpstreamRow, UpstreamTable as Table};
use serde_json::{Map, Value};

use super::SOURCE;
use crate::{cannot_read, sink::stable_id, upstream_rows::written};
use claude_mem_core::failure::Failure;

/// Maximum size of an export, which is read as a whole. The program cannot create larger ones.
const EXPORT_BYTES_MAX: u64 = 1 << 30;

/// The source of rows.
pub(super) enum Source {
    Database(Upstream),
    Export(Map<String, Value>),
}

/// Why rows are missing.
pub(super) enum Problem {
    Source(Error),
    Ours(Failure),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Source(error)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Ours(failure)
    }
}

impl Source {
    /// Opens a database, or reads an export.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error| cannot_read(path, &error);
        let found = fs::metadata(path).map_err(failed)?;
        let is_json = path.extension().is_some_and(|end| end == "json");
        if found.is_file() && is_json {
            if found.len() > EXPORT_BYTES_MAX {
                return Err(not_taken(path, "it is larger than any export"));
            }
            let bytes = fs::read(path).map_err(failed)?;
            return match serde_json::from_slice(&bytes) {
                Ok(Value::Object(export)) if export.contains_key("observations") => {
                    Ok(Self::Export(export))
                }
                Ok(_) => Err(not_taken(path, "it has no `observations`")),
                Err(error) => Err(not_taken(path, &error.to_string())),
            };
        }
        Upstream::open(path).map(Self::Database).map_err(|error| refused(path, &error))
    }

    /// A fingerprint of the source.
    pub(super) fn origin(&self, path: &Path) -> Result<String, Failure> {
        let made = match self {
            Self::Database(upstream) => upstream.origin().map_err(|error| refused(path, &error))?,
            Self::Export(export) => {
                let columns = ["exportedAtEpoch", "query", "project", "totalObservations"];
                let parts = columns.map(|name| written(export, name));
                format!("export\0{}", parts.join("\0"))
            }
        };
        // Only the hash is kept, formatted like an id.
        Ok(stable_id(0, &[SOURCE, &made]).to_string()[19..].replace('-', ""))
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        match self {
            Self::Database(upstream) => upstream.rows(),
            Self::Export(export) => {
                let rows = |table| export.get(exported_name(table)).and_then(Value::as_array);
                Table::ALL.into_iter().filter_map(rows).map(|rows| rows.len() as u64).sum()
            }
        }
    }

    /// Passes every row of a table to the callback.
    pub(super) fn read(
        &self,
        table: Table,
        mut each: impl FnMut(UpstreamRow) -> Result<(), Failure>,
    ) -> Result<(), Problem> {
        match self {
            Self::Database(upstream) => upstream.read(table, |row| Ok(each(row)?)),
            Self::Export(export) => {
                let rows = export.get(exported_name(table)).and_then(Value::as_array);
                for row in rows.into_iter().flatten().filter_map(Value::as_object) {
                    each(row.clone())?;
                }
                Ok(())
            }
        }
    }
}

fn exported_name(table: Table) -> &'static str {
    match table {
        Table::Sessions => "sessions",
        Table::Prompts => "prompts",
        Table::Observations => "observations",
        Table::Summaries => "summaries",
        Table::Pending => "pending_messages",
    }
}

fn not_taken(path: &Path, why: &str) -> Failure {
    Failure::new(format!(
        "{} is not a database of the TypeScript claude-mem: {why}",
        path.display()
    ))
    .meaning("nothing was imported, and the file is unchanged")
}

fn refused(path: &Path, error: &Error) -> Failure {
    match error {
        Error::Unusable { why, .. } => not_taken(path, why),
        Error::Sqlite(error) if error.to_string().contains("locked") => {
            Failure::new(format!("{} is locked by another program", path.display()))
                .meaning("nothing was imported")
                .remedy("stop the TypeScript claude-mem, then try again")
        }
        Error::Io { source, .. } => cannot_read(path, source),
        error => Failure::new(format!("{} cannot be read: {error}", path.display()))
            .meaning("nothing was imported, and the file is unchanged"),
    }
}
