//! Redacts a whole event before it is appended, on every channel other than hooks.
//!
//! Events of clients are redacted in `build_event.rs`, which also cuts long texts. Everything else
//! that is recorded passes through here: imported events, replies of models, notes, and old events
//! when `claude-mem redact` runs.

use claude_mem_events::{Envelope, Event, TextForm, VisitTexts};

use claude_mem_core::settings::{
    Settings,
    table::{FIELD_BYTES_MAX, REDACT_PERSONAL, REDACT_SECRETS},
};
use claude_mem_privacy::{
    Policy, redact_bytes, redact_json_or_text, redact_path, redact_reply, redact_text, work,
};

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
    redact_texts(envelope, policy);
    redact_texts(event, policy);
}

/// Removes private text and secrets from every text of an event or an envelope.
pub(crate) fn redact_texts(texts: &mut dyn VisitTexts, policy: Policy) {
    let policy = Policy { field_bytes_max: BYTES_MAX, total_bytes_max: BYTES_MAX, ..policy };
    texts.visit_texts(&mut |form, text| {
        if text.is_empty() {
            return;
        }
        *text = match form {
            TextForm::Plain => redact_text(text, policy).text,
            TextForm::Json => redact_json_or_text(text, policy),
            TextForm::Reply => redact_reply(text, policy),
            TextForm::Path => redact_path(text, policy),
        };
    });
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

#[cfg(test)]
mod tests {
    use claude_mem_events::{Remark, SummaryRequested};

    use super::*;

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
    fn secrets_in_a_branch_are_removed_and_a_commit_is_not_a_secret() {
        let mut envelope = Envelope {
            branch: "fix/ghp_16C7e42F292c6912E7710c838347Ae178B4a".into(),
            commit: "8f14e45fceea167a5a36dedd4bea2543c0ffee01".into(),
            ..Envelope::default()
        };
        redact_texts(&mut envelope, Policy::default());
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
