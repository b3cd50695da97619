//! Redacts a whole event before it is appended, on every channel other than hooks.
//!
//! Events of clients are redacted field by field in `build_event.rs`. Everything else that is
//! recorded passes through here: imported events, replies of models, notes, and old events when
//! `claude-mem redact` runs.

use claude_mem_events::{Envelope, Event, NoteScope, Revision, Tombstone};

use claude_mem_core::settings::{
    Settings,
    table::{FIELD_BYTES_MAX, REDACT_PERSONAL, REDACT_SECRETS},
};
use claude_mem_privacy::{Policy, redact_bytes, redact_json, redact_text, work};

/// The policy that the settings choose.
pub fn policy(settings: &Settings) -> Policy {
    Policy {
        redact_secrets: settings.get(&REDACT_SECRETS),
        redact_personal: settings.get(&REDACT_PERSONAL),
        field_bytes_max: settings.get(&FIELD_BYTES_MAX),
        ..Policy::default()
    }
}

/// Larger than any record: nothing is cut here.
const BYTES_MAX: usize = 256 << 20;

/// Removes private text and secrets from an event and its envelope.
pub fn redact(envelope: &mut Envelope, event: &mut Event, policy: Policy) {
    let _scope = work::Scope::new(work::EVENT_BYTES_MAX);
    let redactor = EventRedactor::new(policy);
    redactor.envelope(envelope);
    redactor.event(event);
}

/// Removes private text and secrets from an envelope.
pub(crate) fn redact_envelope(envelope: &mut Envelope, policy: Policy) {
    EventRedactor::new(policy).envelope(envelope);
}

/// Whether an event can be stored. An event of an unknown kind cannot be redacted, so it must
/// contain nothing to redact.
pub fn is_storable(event: &Event, policy: Policy) -> bool {
    let Event::Unknown { payload, .. } = event else { return true };
    let text = String::from_utf8_lossy(payload);
    redact_bytes(
        payload,
        Policy { field_bytes_max: BYTES_MAX, total_bytes_max: BYTES_MAX, ..policy },
    ) == text
}

struct EventRedactor {
    policy: Policy,
}

impl EventRedactor {
    fn new(policy: Policy) -> Self {
        let (field_bytes_max, total_bytes_max) = (BYTES_MAX, BYTES_MAX);
        Self { policy: Policy { field_bytes_max, total_bytes_max, ..policy } }
    }

    fn envelope(&self, envelope: &mut Envelope) {
        let Envelope { host, platform, session, project, branch, commit } = envelope;
        self.texts([host, platform, session, branch, commit]);
        self.text(&mut project.label);
        self.path(&mut project.key);
        self.path(&mut project.root);
    }

    /// Redacts a path. A URL in a path has lost one of its slashes, so no rule would recognize it.
    fn path(&self, path: &mut String) {
        if path.contains(":/") {
            let urls = path.replace("://", ":/").replace(":/", "://");
            let redacted = redact_text(&urls, self.policy).text;
            if redacted != urls {
                *path = redacted;
                return;
            }
        }
        self.text(path);
    }

    fn text(&self, text: &mut String) {
        if !text.is_empty() {
            *text = redact_text(text, self.policy).text;
        }
    }

    fn texts<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        for text in texts {
            self.text(text);
        }
    }

    /// Redacts JSON, or text if it is not valid JSON. JSON that was cut in the middle may be
    /// invalid.
    fn json(&self, json: &mut String) {
        match serde_json::from_str::<serde::de::IgnoredAny>(json) {
            Ok(_) => *json = redact_json(json, self.policy),
            Err(_) => self.text(json),
        }
    }

    /// Redacts a reply, element by element. No private text is ever sent to a model, so an unclosed
    /// `<private>` in a reply only mentions the tag. It removes the rest of its element, not the
    /// other memories in the reply.
    fn reply(&self, reply: &mut String) {
        let mut redacted = String::with_capacity(reply.len());
        let mut rest = reply.as_str();
        while !rest.is_empty() {
            let (element, after) = rest.split_at(end_of_element(rest));
            redacted.push_str(&redact_text(element, self.policy).text);
            rest = after;
        }
        *reply = redacted;
    }

    fn event(&self, event: &mut Event) {
        match event {
            Event::SessionStarted(it) => {
                self.texts([&mut it.source, &mut it.cwd, &mut it.model, &mut it.transcript_path]);
                self.json(&mut it.extra);
            }
            Event::PromptSubmitted(it) => {
                self.texts([&mut it.prompt, &mut it.prompt_id, &mut it.cwd]);
                self.json(&mut it.extra);
            }
            Event::ToolUsed(it) => {
                self.json(&mut it.input);
                self.json(&mut it.output);
                self.texts([&mut it.tool, &mut it.error, &mut it.tool_use_id, &mut it.cwd]);
                self.texts([&mut it.agent_id, &mut it.agent_type, &mut it.prompt_id]);
                self.json(&mut it.extra);
            }
            Event::SummaryRequested(it) => {
                self.texts([&mut it.last_user_message, &mut it.last_assistant_message]);
                self.texts([&mut it.agent_id, &mut it.agent_type, &mut it.prompt_id, &mut it.cwd]);
                self.json(&mut it.extra);
                for remark in &mut it.remarks {
                    self.texts([&mut remark.tool_use_id, &mut remark.text]);
                }
            }
            Event::SessionEnded(it) => {
                self.text(&mut it.reason);
                self.json(&mut it.extra);
            }
            Event::AgentReplied(it) => {
                self.reply(&mut it.reply);
                self.texts([&mut it.provider, &mut it.model]);
                self.texts([&mut it.memory_session_id, &mut it.prompt_version]);
            }
            Event::AgentFailed(it) => {
                self.reply(&mut it.reply);
                self.texts([&mut it.message, &mut it.provider, &mut it.model]);
                self.text(&mut it.prompt_version);
            }
            Event::MemoryAdded(it) => {
                self.texts([&mut it.title, &mut it.text, &mut it.kind, &mut it.via]);
                self.texts(&mut it.concepts);
                self.texts(&mut it.files);
                self.json(&mut it.metadata);
                if let NoteScope::Tree(folder) = &mut it.scope {
                    self.text(folder);
                }
            }
            Event::MemoryRevised(it) => {
                self.text(&mut it.via);
                match &mut it.revision {
                    Revision::Edited { title, text, kind } => {
                        self.texts([title, text, kind].into_iter().flatten());
                    }
                    Revision::MarkedWrong { because } => self.text(because),
                    Revision::Restored
                    | Revision::Pinned
                    | Revision::Unpinned
                    | Revision::SupersededBy(_) => {}
                }
            }
            Event::Forgotten(it) => {
                self.texts([&mut it.session, &mut it.project, &mut it.file, &mut it.text]);
                self.text(&mut it.reason);
                self.texts(&mut it.rows);
            }
            Event::Imported(it) => {
                self.texts([&mut it.source, &mut it.origin, &mut it.table, &mut it.row_id]);
                self.json(&mut it.row);
            }
            Event::InputUnreadable(it) => {
                self.texts([&mut it.hook, &mut it.error, &mut it.text]);
            }
            Event::ProjectMerged(it) => {
                self.texts([&mut it.from, &mut it.into, &mut it.label]);
            }
            Event::ReprocessStarted(it) => {
                // The prompt is the user's own file, and can mention our tags.
                self.texts([&mut it.provider, &mut it.model, &mut it.project, &mut it.session]);
            }
            Event::Erased { left: Some(left), .. } => self.left(left),
            Event::ReprocessFinished(_)
            | Event::LogCompacted(_)
            | Event::MemoryInjected(_)
            | Event::Erased { .. }
            | Event::Unknown { .. } => {}
        }
    }

    fn left(&self, left: &mut Tombstone) {
        self.json(&mut left.reply);
        self.texts(left.files_read.iter_mut().chain(&mut left.files_written));
        if let Some(event) = &mut left.event {
            self.event(event);
        }
    }
}

/// Elements of a reply that contain text.
const ELEMENTS: [&str; 19] = [
    "type",
    "title",
    "subtitle",
    "narrative",
    "facts",
    "fact",
    "concepts",
    "concept",
    "files",
    "file",
    "observation",
    "request",
    "investigated",
    "learned",
    "completed",
    "next",
    "notes",
    "summary",
    "skip",
];

/// The end of the first element: before the second closing tag, if the text starts with one.
fn end_of_element(reply: &str) -> usize {
    let is_closing = |at: &usize| {
        let name = &reply.as_bytes()[at + 2..];
        let is_name = |element: &&str| {
            name.get(..element.len())
                .is_some_and(|given| given.eq_ignore_ascii_case(element.as_bytes()))
        };
        *at > 0 && ELEMENTS.iter().any(is_name)
    };
    memchr::memmem::find_iter(reply.as_bytes(), b"</").find(is_closing).unwrap_or(reply.len())
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{AgentReplied, Remark, SummaryRequested};

    use super::*;

    fn redacted(reply: &str) -> String {
        let mut event = AgentReplied { reply: reply.into(), ..AgentReplied::default() }.into();
        redact(&mut Envelope::default(), &mut event, Policy::default());
        let Event::AgentReplied(replied) = event else { panic!("{event:?}") };
        replied.reply
    }

    #[test]
    fn a_tag_that_a_reply_only_mentions_costs_the_rest_of_its_element() {
        let reply = "<observation><title>a <private> tag</title><facts><fact>b</fact>\
            <fact>c <private>d</private> e</fact></facts></observation><summary>f</summary>";
        let expected = "<observation><title>a [redacted:private]</title><facts><fact>b</fact>\
            <fact>c [redacted:private] e</fact></facts></observation><summary>f</summary>";
        assert_eq!(redacted(reply), expected);
        for reply in ["", "</title>", "</title></title>", "<", "</", "plain"] {
            assert_eq!(redacted(reply), reply);
        }
    }

    #[test]
    fn remarks_lose_their_secrets() {
        let text = "no, <private>x</private> use ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        let remarks = vec![Remark { text: text.into(), ..Remark::default() }];
        let mut event = SummaryRequested { remarks, ..SummaryRequested::default() }.into();
        redact(&mut Envelope::default(), &mut event, Policy::default());
        let Event::SummaryRequested(stop) = event else { panic!("{event:?}") };
        assert_eq!(stop.remarks[0].text, "no, [redacted:private] use [redacted:github-token]");
    }

    #[test]
    fn a_url_in_a_path_loses_its_password() {
        let redacted = |root: &str| {
            let mut envelope = Envelope::default();
            envelope.project.root = root.into();
            redact_envelope(&mut envelope, Policy::default());
            envelope.project.root
        };
        let expected = "/p/postgres://ada:[redacted:url-password]@db/x";
        assert_eq!(redacted("/p/postgres:/ada:hunter2@db/x"), expected);
        assert_eq!(redacted(expected), expected);
        assert_eq!(redacted("C:/Users/ada/x"), "C:/Users/ada/x");
    }

    #[test]
    fn secrets_in_a_branch_are_removed_and_a_commit_is_not_a_secret() {
        let mut envelope = Envelope {
            branch: "fix/ghp_16C7e42F292c6912E7710c838347Ae178B4a".into(),
            commit: "8f14e45fceea167a5a36dedd4bea2543c0ffee01".into(),
            ..Envelope::default()
        };
        redact_envelope(&mut envelope, Policy::default());
        assert_eq!(envelope.branch, "fix/[redacted:github-token]");
        assert_eq!(envelope.commit, "8f14e45fceea167a5a36dedd4bea2543c0ffee01");
    }

    #[test]
    fn an_unknown_event_is_stored_only_if_there_is_nothing_to_redact() {
        let unknown = |payload: &[u8]| Event::Unknown {
            kind: 999,
            version: 1,
            codec: 1,
            payload: payload.to_vec(),
        };
        let is_storable = |payload| is_storable(&unknown(payload), Policy::default());
        assert!(is_storable(b"\xff\x00plain"));
        assert!(!is_storable(b"\x28\0\0\0ghp_16C7e42F292c6912E7710c838347Ae178B4a"));
        assert!(!is_storable(b"\0<private>x"));
    }
}
