//! Memories as JSON, the same in every front end.
//!
//! Ids are strings and times are RFC 3339. `at_us` and `created_at_epoch` repeat the time as a
//! number: scripts sort by the one, clients of the TypeScript claude-mem read the other.

use claude_mem_core::time_arg::rfc3339;
use claude_mem_projections::{
    Marks, Retired, Usage,
    details::{MemoryBody, MemoryDetails, Provenance, SourceEvent, SourceReply},
    local_seq,
    search::{Hit, Score},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A memory in a list of hits.
#[derive(Debug, Serialize, ToSchema)]
pub struct HitJson {
    /// `12`, `S3`, `P9`.
    pub id: String,
    /// `observation`, `summary`, `prompt`.
    pub kind: &'static str,
    /// The type of an observation, such as `bugfix`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// When it happened: `2026-03-01T12:00:00Z`.
    pub created_at: String,
    /// The same in milliseconds since 1970.
    pub created_at_epoch: u64,
    /// The same in microseconds since 1970.
    pub at_us: u64,
    /// The label of its project.
    pub project: String,
    /// The client's id of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The client of its session, such as `codex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The host that recorded it, if it is another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The title, the summarized request, or the first line of the prompt.
    pub title: String,
    /// The part of the text with most of the query's words.
    pub snippet: String,
    /// How it is marked.
    #[serde(flatten)]
    pub marks: MarksJson,
    /// The first file that it changed or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// About how many tokens it takes to read it in full.
    pub tokens: usize,
    /// Other matching memories of the same turn: `12`, `S3`, `P9`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The relevance to the query; 0 without a query.
    pub score: f64,
    /// How the score was calculated, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub explanation: Option<Score>,
}

impl From<Hit> for HitJson {
    fn from(hit: Hit) -> Self {
        Self {
            id: hit.name.to_string(),
            kind: hit.kind.name(),
            type_: hit.type_,
            created_at: rfc3339(hit.at_us),
            created_at_epoch: hit.at_us / 1000,
            at_us: hit.at_us,
            project: hit.project,
            session: hit.session,
            client: hit.client,
            host: hit.host,
            title: hit.title,
            snippet: hit.snippet,
            marks: hit.marks.into(),
            file: hit.file,
            tokens: hit.tokens,
            also: hit.also.iter().map(ToString::to_string).collect(),
            score: hit.score,
            explanation: hit.explanation,
        }
    }
}

/// A memory in full, with its provenance.
#[derive(Debug, Serialize)]
pub struct DetailsJson<'a> {
    id: String,
    kind: &'static str,
    created_at: String,
    at_us: u64,
    project: &'a str,
    session: Option<&'a str>,
    client: Option<&'a str>,
    prompt_number: Option<u32>,
    /// For a note that applies beyond its project: `global` or `tree`.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    /// The folder whose projects it applies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<&'a str>,
    #[serde(flatten)]
    body: &'a MemoryBody,
    is_superseded: bool,
    #[serde(flatten)]
    marks: MarksJson,
    provenance: ProvenanceJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

/// How a memory is marked. Missing marks are omitted.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MarksJson {
    /// First in the context of sessions, at any age.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pinned: bool,
    /// Its text was changed by hand.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
    /// Who pinned it, if it was not the user: `claude`, `program`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_by: Option<String>,
    /// Who edited it, if it was not the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_by: Option<String>,
    /// Wrong, and given to no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<WrongJson>,
    /// Replaced or withdrawn, and given to no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<CorrectionJson>,
}

/// The mark of an observation that is wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WrongJson {
    /// When it was marked.
    pub created_at: String,
    /// The reason, if one was given.
    pub because: Option<String>,
}

/// What replaced an observation. Without an id, it was only withdrawn.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CorrectionJson {
    /// When it was replaced.
    pub created_at: String,
    /// The observation that replaces it.
    pub id: Option<String>,
    pub title: Option<String>,
}

/// Where a memory comes from.
#[derive(Debug, Serialize)]
struct ProvenanceJson<'a> {
    origin: &'a str,
    event: &'a str,
    seq: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    reply: Option<&'a SourceReply>,
    sources: Vec<SourceJson<'a>>,
}

/// An event that a memory was distilled from.
#[derive(Debug, Serialize)]
struct SourceJson<'a> {
    seq: String,
    event: &'a str,
    kind: &'static str,
    created_at: String,
    tool: Option<&'a str>,
}

impl<'a> From<&'a MemoryDetails> for DetailsJson<'a> {
    fn from(details: &'a MemoryDetails) -> Self {
        Self {
            id: details.name.to_string(),
            kind: details.kind.name(),
            created_at: rfc3339(details.at_us),
            at_us: details.at_us,
            project: &details.project,
            session: details.session.as_deref(),
            client: details.client.as_deref(),
            prompt_number: details.prompt_number,
            scope: details
                .tree
                .as_deref()
                .map(|tree| if tree.is_empty() { "global" } else { "tree" }),
            tree: details.tree.as_deref().filter(|tree| !tree.is_empty()),
            body: &details.body,
            is_superseded: details.is_superseded,
            marks: details.marks.clone().into(),
            provenance: (&details.provenance).into(),
            usage: details.usage,
        }
    }
}

impl From<Marks> for MarksJson {
    fn from(marks: Marks) -> Self {
        let (mut wrong, mut correction) = (None, None);
        match marks.retired {
            Some(Retired::Wrong { at_us, because }) => {
                wrong = Some(WrongJson { created_at: rfc3339(at_us), because });
            }
            Some(Retired::Superseded(by)) => {
                let created_at = rfc3339(by.at_us);
                let (id, title) = by.by.unzip();
                let (id, title) = (id.map(|id| id.to_string()), title.flatten());
                correction = Some(CorrectionJson { created_at, id, title });
            }
            None => {}
        }
        let Marks { is_pinned, is_edited, pinned_by, edited_by, .. } = marks;
        Self { is_pinned, is_edited, pinned_by, edited_by, wrong, correction }
    }
}

impl<'a> From<&'a Provenance> for ProvenanceJson<'a> {
    fn from(provenance: &'a Provenance) -> Self {
        let source = |source: &'a SourceEvent| SourceJson {
            seq: local_seq(source.seq).to_string(),
            event: &source.event,
            kind: source.kind,
            created_at: rfc3339(source.at_us),
            tool: source.tool.as_deref(),
        };
        Self {
            origin: &provenance.origin,
            event: &provenance.event,
            seq: local_seq(provenance.seq).to_string(),
            host: provenance.host.as_deref(),
            branch: provenance.branch.as_deref(),
            reply: provenance.reply.as_ref(),
            sources: provenance.sources.iter().map(source).collect(),
        }
    }
}
