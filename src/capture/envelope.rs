//! The envelope of every event: which host, client, session and project.

use claude_mem_events::{Envelope, Project};

use crate::project::ProjectId;
use claude_mem_core::os;

/// The envelope of an event recorded on this host. Names, ids and paths are limited in length, but
/// not redacted: [`redaction`](crate::redaction) does that. The git state is empty: only some
/// callers know it.
pub fn envelope(client: &str, session: impl Into<String>, project: impl Into<Project>) -> Envelope {
    let Project { key, label, root } = project.into();
    Envelope {
        host: os::host_name(),
        platform: bounded(client.into()),
        session: bounded(session.into()),
        project: Project { key: bounded(key), label: bounded(label), root: bounded(root) },
        branch: String::new(),
        commit: String::new(),
    }
}

impl From<ProjectId> for Project {
    fn from(project: ProjectId) -> Self {
        let ProjectId { key, label, root, .. } = project;
        Self { key, label, root: root.to_string_lossy().into_owned() }
    }
}

/// The maximum length of a name, id or path in an event. Paths are shorter on every system, and the
/// record needs space for its texts.
const NAME_BYTES_MAX: usize = 4096;

/// Cuts a name, id or path at the maximum length.
pub fn bounded(mut text: String) -> String {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
