//! Memories and sessions as JSON. Field names follow the TypeScript claude-mem.

use claude_mem_memory::memory_json::MarksJson;
use claude_mem_projections::{
    ListRow, SessionView,
    details::{MemoryBody, ObservationBody, SummaryBody},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::time_params::{epoch, rfc3339};

/// Fields of every memory.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Head {
    /// Number among memories of its kind.
    id: String,
    /// ID among all memories: `12`, `S3`, `P9`.
    name: String,
    /// Project name.
    project: String,
    /// Session ID of the client.
    content_session_id: Option<String>,
    /// The client of the session, such as `codex`.
    client: Option<String>,
    /// Number of the session.
    session_db_id: Option<String>,
    /// Number of its prompt within the session.
    prompt_number: Option<u32>,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
}

/// Origin of an observation or a summary.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Origin {
    /// `agent`, `user` or `import`.
    origin: String,
    /// The model, if `agent`.
    model: Option<String>,
    /// 0 if distilled during the session, else the generation.
    generation: u32,
    /// Its share of the response's tokens.
    discovery_tokens: u64,
    /// Whether a later generation replaced it.
    is_superseded: bool,
}

/// An observation: what was learned or done.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Observation {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    body: ObservationBody,
    /// Type of the subagent that did the work.
    agent_type: Option<String>,
    #[serde(flatten)]
    made: Origin,
    #[serde(flatten)]
    marks: MarksJson,
}

/// Summary of a turn.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Summary {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    body: SummaryBody,
    #[serde(flatten)]
    made: Origin,
}

/// A prompt of the user.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Prompt {
    #[serde(flatten)]
    head: Head,
    prompt_text: String,
}

/// A memory of any kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Item {
    Observation(Observation),
    Summary(Summary),
    Prompt(Prompt),
}

impl From<ListRow> for Item {
    fn from(listed: ListRow) -> Self {
        let ListRow {
            name,
            at_us,
            project,
            session,
            client,
            prompt_number,
            body,
            agent_type,
            marks,
            ..
        } = listed;
        let (session_db_id, content_session_id) = session.unzip();
        let head = Head {
            id: name.id.to_string(),
            name: name.to_string(),
            project,
            content_session_id,
            client,
            session_db_id: session_db_id.map(|id| id.to_string()),
            prompt_number,
            created_at: rfc3339(at_us),
            created_at_epoch: epoch(at_us),
        };
        let made = Origin {
            origin: listed.origin,
            model: listed.model,
            generation: listed.generation,
            discovery_tokens: listed.tokens,
            is_superseded: listed.is_superseded,
        };
        match body {
            MemoryBody::Observation(body) => {
                Self::Observation(Observation { head, body, agent_type, made, marks: marks.into() })
            }
            MemoryBody::Summary(body) => Self::Summary(Summary { head, body, made }),
            MemoryBody::Prompt { text } => {
                Self::Prompt(Prompt { head, prompt_text: text.unwrap_or_default() })
            }
        }
    }
}

impl Item {
    pub(super) fn observation(self) -> Option<Observation> {
        if let Self::Observation(observation) = self { Some(observation) } else { None }
    }

    pub(super) fn summary(self) -> Option<Summary> {
        if let Self::Summary(summary) = self { Some(summary) } else { None }
    }

    pub(super) fn prompt(self) -> Option<Prompt> {
        if let Self::Prompt(prompt) = self { Some(prompt) } else { None }
    }

    /// Number of its prompt.
    pub(super) fn prompt_number(&self) -> Option<u32> {
        let head = match self {
            Self::Observation(observation) => &observation.head,
            Self::Summary(summary) => &summary.head,
            Self::Prompt(prompt) => &prompt.head,
        };
        head.prompt_number
    }
}

/// A session.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Session {
    /// Number of the session.
    pub(super) id: String,
    /// Session ID of the client.
    pub(super) content_session_id: String,
    /// Session ID of the provider's conversation; null until known.
    pub(super) memory_session_id: Option<String>,
    /// The client, such as `claude-code`.
    pub(super) platform_source: String,
    /// Project name.
    pub(super) project: String,
    /// Working directory.
    cwd: Option<String>,
    /// Git branch at the last event; null if unknown.
    branch: Option<String>,
    /// HEAD at the first event.
    first_commit: Option<String>,
    /// HEAD at the last event.
    last_commit: Option<String>,
    /// `initialized`, `active`, `completed`, `failed` or `interrupted`.
    pub(super) status: String,
    /// Title set by the user, else the first line of the first prompt.
    title: Option<String>,
    /// Number of prompts.
    pub(super) prompts: u32,
    /// Number of tool uses.
    tool_uses: u32,
    observations: u32,
    summaries: u32,
    /// Pending tool uses and stops.
    pub(super) queue_depth: u32,
    /// What its last summary says was done.
    outcome: Option<String>,
    /// What its last summary says is left to do.
    next_steps: Option<String>,
    started_at: String,
    /// Milliseconds since 1970.
    started_at_epoch: u64,
    last_at: String,
    /// Milliseconds since 1970.
    last_at_epoch: u64,
    completed_at: Option<String>,
    /// Milliseconds since 1970.
    completed_at_epoch: Option<u64>,
}

impl From<SessionView> for Session {
    fn from(view: SessionView) -> Self {
        Self {
            id: view.id.to_string(),
            content_session_id: view.session,
            memory_session_id: view.memory_session,
            platform_source: view.client,
            project: view.project,
            cwd: view.cwd,
            branch: view.branch,
            first_commit: view.first_commit,
            last_commit: view.last_commit,
            status: view.status,
            title: view.title,
            prompts: view.prompts,
            tool_uses: view.tool_uses,
            observations: view.observations,
            summaries: view.summaries,
            queue_depth: view.outstanding,
            outcome: view.outcome,
            next_steps: view.next_steps,
            started_at: rfc3339(view.started_at_us),
            started_at_epoch: epoch(view.started_at_us),
            last_at: rfc3339(view.at_us),
            last_at_epoch: epoch(view.at_us),
            completed_at: view.ended_at_us.map(rfc3339),
            completed_at_epoch: view.ended_at_us.map(epoch),
        }
    }
}
