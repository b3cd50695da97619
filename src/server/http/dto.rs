//! Memories and sessions as they are sent. Names of fields are those of the TypeScript claude-mem where it has them.

use claude_mem_projections::{ListRow, SessionView, details::MemoryBody};
use serde::Serialize;
use utoipa::ToSchema;

use super::time_params::{epoch, rfc3339};

/// What every memory has.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Head {
    /// Its number among memories of its kind.
    id: String,
    /// How it is called among all memories: `12`, `S3`, `P9`.
    name: String,
    /// The name of its project.
    project: String,
    /// The watched program's id of its session.
    content_session_id: Option<String>,
    /// The number of its session.
    session_db_id: Option<String>,
    /// The prompt that it belongs to, counted within the session.
    prompt_number: Option<u32>,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
}

/// Where an observation or a summary comes from.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Origin {
    /// `agent`, `user` or `import`.
    origin: String,
    /// Who made it, if an agent did.
    model: Option<String>,
    /// 0 as the work went on; above that, which reprocessing made it.
    generation: u32,
    /// Its share of the tokens that were spent on it.
    discovery_tokens: u64,
    /// Whether others have taken its place.
    is_superseded: bool,
}

/// What was learnt or done.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Observation {
    #[serde(flatten)]
    head: Head,
    /// Such as `bugfix`.
    #[serde(rename = "type")]
    type_: Option<String>,
    title: Option<String>,
    subtitle: Option<String>,
    narrative: Option<String>,
    facts: Vec<String>,
    concepts: Vec<String>,
    files_read: Vec<String>,
    files_modified: Vec<String>,
    /// The kind of subagent whose work it is about.
    agent_type: Option<String>,
    #[serde(flatten)]
    made: Origin,
}

/// What a turn came to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Summary {
    #[serde(flatten)]
    head: Head,
    request: Option<String>,
    investigated: Option<String>,
    learned: Option<String>,
    completed: Option<String>,
    next_steps: Option<String>,
    notes: Option<String>,
    files_read: Vec<String>,
    files_edited: Vec<String>,
    #[serde(flatten)]
    made: Origin,
}

/// What the user said.
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
        let ListRow { name, at_us, project, session, prompt_number, body, agent_type, .. } = listed;
        let (session_db_id, content_session_id) = session.unzip();
        let head = Head {
            id: name.id.to_string(),
            name: name.to_string(),
            project,
            content_session_id,
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
            MemoryBody::Observation {
                type_,
                title,
                subtitle,
                narrative,
                facts,
                concepts,
                files_read,
                files_modified,
            } => Self::Observation(Observation {
                head,
                type_,
                title,
                subtitle,
                narrative,
                facts,
                concepts,
                files_read,
                files_modified,
                agent_type,
                made,
            }),
            MemoryBody::Summary {
                request,
                investigated,
                learned,
                completed,
                next_steps,
                notes,
                files_read,
                files_edited,
            } => Self::Summary(Summary {
                head,
                request,
                investigated,
                learned,
                completed,
                next_steps,
                notes,
                files_read,
                files_edited,
                made,
            }),
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

    /// The prompt that it belongs to.
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
    /// Its number.
    pub(super) id: String,
    /// The watched program's own id.
    pub(super) content_session_id: String,
    /// The agent's id of its conversation; null until it is known.
    pub(super) memory_session_id: Option<String>,
    /// Which program is watched.
    pub(super) platform_source: String,
    /// The name of its project.
    pub(super) project: String,
    /// Where it works.
    cwd: Option<String>,
    /// `initialized`, `active`, `completed`, `failed` or `interrupted`.
    pub(super) status: String,
    /// What the user called it, else the first line of the first prompt.
    title: Option<String>,
    /// How many prompts the user submitted.
    pub(super) prompts: u32,
    /// How many tools were used.
    tool_uses: u32,
    observations: u32,
    summaries: u32,
    /// Tool uses and stops that wait for an answer.
    pub(super) queue_depth: u32,
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
    fn from(told: SessionView) -> Self {
        Self {
            id: told.id.to_string(),
            content_session_id: told.session,
            memory_session_id: told.memory_session,
            platform_source: told.platform,
            project: told.project,
            cwd: told.cwd,
            status: told.status,
            title: told.title,
            prompts: told.prompts,
            tool_uses: told.tool_uses,
            observations: told.observations,
            summaries: told.summaries,
            queue_depth: told.outstanding,
            started_at: rfc3339(told.started_at_us),
            started_at_epoch: epoch(told.started_at_us),
            last_at: rfc3339(told.at_us),
            last_at_epoch: epoch(told.at_us),
            completed_at: told.ended_at_us.map(rfc3339),
            completed_at_epoch: told.ended_at_us.map(epoch),
        }
    }
}
