//! Memories and sessions as they are sent. Names of fields are those of the TypeScript claude-mem where it has them.

use claude_mem_projections::{Listed, Told, details::Body, search::Name};
use serde::Serialize;
use utoipa::ToSchema;

use super::moments::{epoch, text};

/// What was learnt or done.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Observation {
    /// Its number.
    id: i64,
    /// How it is called among all memories: `12`.
    name: String,
    /// The name of its project.
    project: String,
    /// The watched program's id of its session.
    content_session_id: Option<String>,
    /// The number of its session.
    session_db_id: Option<i64>,
    /// The prompt that it belongs to, counted within the session.
    prompt_number: Option<u32>,
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
    /// `agent`, `user` or `import`.
    origin: String,
    /// Who made it, if an agent did.
    model: Option<String>,
    /// 0 as the work went on; above that, which reprocessing made it.
    generation: u32,
    /// The kind of subagent whose work it is about.
    agent_type: Option<String>,
    /// Its share of the tokens that were spent on it.
    discovery_tokens: u64,
    /// Whether others have taken its place.
    is_superseded: bool,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
}

/// What a turn came to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Summary {
    /// Its number.
    id: i64,
    /// How it is called among all memories: `S3`.
    name: String,
    /// The name of its project.
    project: String,
    /// The watched program's id of its session.
    content_session_id: Option<String>,
    /// The number of its session.
    session_db_id: Option<i64>,
    /// The prompt that it belongs to, counted within the session.
    prompt_number: Option<u32>,
    request: Option<String>,
    investigated: Option<String>,
    learned: Option<String>,
    completed: Option<String>,
    next_steps: Option<String>,
    notes: Option<String>,
    files_read: Vec<String>,
    files_edited: Vec<String>,
    /// `agent` or `import`.
    origin: String,
    /// Who made it, if an agent did.
    model: Option<String>,
    /// 0 as the work went on; above that, which reprocessing made it.
    generation: u32,
    /// Its share of the tokens that were spent on it.
    discovery_tokens: u64,
    /// Whether others have taken its place.
    is_superseded: bool,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
}

/// What the user said.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Prompt {
    /// Its number.
    id: i64,
    /// How it is called among all memories: `P9`.
    name: String,
    /// The name of its project.
    project: String,
    /// The watched program's id of its session.
    content_session_id: Option<String>,
    /// The number of its session.
    session_db_id: Option<i64>,
    /// Counts the prompts of its session.
    prompt_number: Option<u32>,
    prompt_text: String,
    created_at: String,
    /// Milliseconds since 1970.
    created_at_epoch: u64,
}

/// A memory of any kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Item {
    Observation(Observation),
    Summary(Summary),
    Prompt(Prompt),
}

impl From<Listed> for Item {
    fn from(listed: Listed) -> Self {
        let Listed { name: Name { id, .. }, at_us, project, session, prompt_number, .. } = listed;
        let Listed { origin, model, generation, agent_type, is_superseded, .. } = listed;
        let (name, discovery_tokens) = (listed.name.to_string(), listed.tokens);
        let (session_db_id, content_session_id) = session.unzip();
        let (created_at, created_at_epoch) = (text(at_us), epoch(at_us));
        match listed.body {
            Body::Observation {
                type_,
                title,
                subtitle,
                narrative,
                facts,
                concepts,
                files_read,
                files_modified,
            } => Self::Observation(Observation {
                id,
                name,
                project,
                content_session_id,
                session_db_id,
                prompt_number,
                type_,
                title,
                subtitle,
                narrative,
                facts,
                concepts,
                files_read,
                files_modified,
                origin,
                model,
                generation,
                agent_type,
                discovery_tokens,
                is_superseded,
                created_at,
                created_at_epoch,
            }),
            Body::Summary {
                request,
                investigated,
                learned,
                completed,
                next_steps,
                notes,
                files_read,
                files_edited,
            } => Self::Summary(Summary {
                id,
                name,
                project,
                content_session_id,
                session_db_id,
                prompt_number,
                request,
                investigated,
                learned,
                completed,
                next_steps,
                notes,
                files_read,
                files_edited,
                origin,
                model,
                generation,
                discovery_tokens,
                is_superseded,
                created_at,
                created_at_epoch,
            }),
            Body::Prompt { text } => Self::Prompt(Prompt {
                id,
                name,
                project,
                content_session_id,
                session_db_id,
                prompt_number,
                prompt_text: text.unwrap_or_default(),
                created_at,
                created_at_epoch,
            }),
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
        match self {
            Self::Observation(observation) => observation.prompt_number,
            Self::Summary(summary) => summary.prompt_number,
            Self::Prompt(prompt) => prompt.prompt_number,
        }
    }
}

/// A session.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Session {
    /// Its number.
    pub(super) id: i64,
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

impl From<Told> for Session {
    fn from(told: Told) -> Self {
        Self {
            id: told.id,
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
            started_at: text(told.started_at_us),
            started_at_epoch: epoch(told.started_at_us),
            last_at: text(told.at_us),
            last_at_epoch: epoch(told.at_us),
            completed_at: told.ended_at_us.map(text),
            completed_at_epoch: told.ended_at_us.map(epoch),
        }
    }
}
