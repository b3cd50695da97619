//! What the client says in one turn, read until it is an answer or a refusal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use claude_mem_events::FailureClass;
use serde_json::Value;

use crate::providers::{
    Answer, REPLY_BYTES_MAX, Refusal, Spent, micros, name_of, prices, reported,
};

/// A pause of the client that is longer than this is not waited for: the question is taken back.
const CLIENT_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The model's name on what the client says in its place.
const SYNTHETIC: &str = "<synthetic>";

/// One turn as it comes in.
#[derive(Debug, Default)]
pub(super) struct Turn {
    session_id: Option<String>,
    model: String,
    /// Text is that of one message. When a stream breaks off in good order the client passes on what
    /// it has and asks again, and then the whole answer comes under another id.
    message_id: String,
    text: String,
    usage: Value,
    /// The client's name for what went wrong.
    error: Option<String>,
    resets_at: Option<u64>,
    paid_before: f64,
    tokens_out_max: u32,
}

/// What a line means for the turn.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    More,
    Answered(Said),
    Refused(Refusal),
}

/// An answer, and what the client has cost so far.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    pub(super) answer: Answer,
    pub(super) paid: f64,
}

impl Turn {
    /// A turn of a client that has cost so many dollars before.
    pub(super) fn new(paid_before: f64, tokens_out_max: u32) -> Self {
        Self { paid_before, tokens_out_max, ..Self::default() }
    }

    /// Whether the client has said anything that makes sense.
    pub(super) fn has_begun(&self) -> bool {
        self.session_id.is_some()
    }

    /// Reads one line. Types that are not known are none of our business; newer clients have more.
    pub(super) fn take(&mut self, line: &Value) -> Step {
        if line["session_id"].as_str().is_some_and(|id| !id.is_empty()) {
            self.session_id = Some(name_of(&line["session_id"], ""));
        }
        match (line["type"].as_str(), line["subtype"].as_str()) {
            (Some("system"), Some("api_retry")) => retry(line),
            (Some("assistant"), _) => self.assistant(line),
            (Some("user"), _) => self.nudge(line),
            (Some("rate_limit_event"), _) => self.rate_limit(&line["rate_limit_info"]),
            (Some("result"), _) => self.result(line),
            _ => Step::More,
        }
    }

    /// The wall clock ran out. What was said until then is kept with the refusal.
    pub(super) fn timed_out(&self, after: Duration) -> Refusal {
        let why = format!("claude did not answer within {after:.0?}");
        Refusal::too_slow(why).costing(self.estimate()).saying(&self.text)
    }

    fn assistant(&mut self, line: &Value) -> Step {
        let message = &line["message"];
        if message["model"] == SYNTHETIC {
            self.error = Some(line["error"].as_str().unwrap_or("unknown").to_owned());
            return Step::More;
        }
        let id = message["id"].as_str().unwrap_or_default();
        if id != self.message_id {
            self.text.clear();
            id.clone_into(&mut self.message_id);
        }
        self.model = name_of(&message["model"], "");
        self.usage = message["usage"].clone();
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.text.extend(blocks.iter().filter_map(|block| block["text"].as_str()));
        if self.text.len() > REPLY_BYTES_MAX {
            return Step::Refused(Refusal::too_large("claude").costing(self.estimate()));
        }
        Step::More
    }

    /// When the limit of tokens cut the answer off, the client tells the model to go on, up to three
    /// times. What is there is enough, and the rest would cost as much again each time.
    fn nudge(&self, line: &Value) -> Step {
        let content = &line["message"]["content"];
        let text = content[0]["text"].as_str().or(content.as_str()).unwrap_or_default();
        if text.starts_with("Output token limit hit") && !self.text.trim().is_empty() {
            return self.cut(self.estimate());
        }
        Step::More
    }

    fn rate_limit(&mut self, info: &Value) -> Step {
        if info["status"] == "rejected" {
            self.resets_at = info["resetsAt"].as_u64();
        }
        Step::More
    }

    fn result(&mut self, line: &Value) -> Step {
        let paid = line["total_cost_usd"].as_f64().unwrap_or(self.paid_before);
        let spent = self.spent(&line["usage"], paid);
        if line["is_error"] == true || line["subtype"] != "success" || self.error.is_some() {
            return self.failed(line, spent);
        }
        if self.text.trim().is_empty() {
            let why = "claude gave an empty answer";
            return Step::Refused(Refusal::new(FailureClass::Unreadable, why).costing(spent));
        }
        Step::Answered(Said { answer: self.answer(spent, false), paid })
    }

    /// The client reports failures as if they were answers: `subtype` is `success`, and an assistant
    /// nobody asked says what went wrong.
    fn failed(&mut self, line: &Value, spent: Spent) -> Step {
        let error = self.error.as_deref();
        if error == Some("max_output_tokens") && !self.text.trim().is_empty() {
            return self.cut(spent);
        }
        let kind = error.or(line["subtype"].as_str().filter(|subtype| *subtype != "success"));
        let what = line["result"].as_str().or(line["errors"][0].as_str()).or(kind);
        let what = what.unwrap_or("claude failed without a reason");
        let kind = match line["terminal_reason"].as_str() {
            Some("prompt_too_long") => Some("invalid_request"),
            _ => kind,
        };
        let refusal = refusal(kind, line["api_error_status"].as_u64(), what);
        let retry_after = self.resets_at.and_then(until).or(refusal.retry_after);
        Step::Refused(refusal.after(retry_after).costing(spent).saying(&self.text))
    }

    fn cut(&self, spent: Spent) -> Step {
        Step::Answered(Said { answer: self.answer(spent, true), paid: self.paid_before })
    }

    fn answer(&self, spent: Spent, is_cut: bool) -> Answer {
        Answer {
            text: self.text.clone(),
            is_cut,
            memory_session_id: self.session_id.clone(),
            model: self.model.clone(),
            spent,
            duration: Duration::ZERO,
        }
    }

    /// `usage` is that of the turn, the cost that of the whole process.
    fn spent(&self, usage: &Value, paid: f64) -> Spent {
        let cost_micros = Some(micros((paid - self.paid_before).max(0.0)));
        Spent { cost_micros, ..tokens(usage) }
    }

    /// What a turn without a `result` must have cost: the tokens read are told at the beginning of an
    /// answer, those written are as many as there can have been.
    fn estimate(&self) -> Spent {
        if self.text.is_empty() {
            return Spent::default();
        }
        let spent = Spent { tokens_out: u64::from(self.tokens_out_max), ..tokens(&self.usage) };
        let stored = reported(&self.usage["cache_creation_input_tokens"]);
        Spent { cost_micros: prices::cost_micros(&self.model, &spent, stored), ..spent }
    }
}

/// The client will try again by itself. A short pause is worth waiting for; a long one tells us when
/// to come back, which the error at the end would not.
fn retry(line: &Value) -> Step {
    let pause = Duration::from_millis(line["retry_delay_ms"].as_u64().unwrap_or(0));
    if pause <= CLIENT_PAUSE_MAX {
        return Step::More;
    }
    let error = line["error"].as_str().unwrap_or("unknown");
    let status = line["error_status"].as_u64();
    let said = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
    let refusal = refusal(Some(error), status, &format!("claude has to wait: {error}{said}"));
    Step::Refused(refusal.after(Some(pause)))
}

fn tokens(usage: &Value) -> Spent {
    let count = |name: &str| reported(&usage[name]);
    let tokens_cached = count("cache_read_input_tokens");
    Spent {
        tokens_in: count("input_tokens") + count("cache_creation_input_tokens") + tokens_cached,
        tokens_cached,
        tokens_out: count("output_tokens"),
        cost_micros: None,
    }
}

fn refusal(kind: Option<&str>, status: Option<u64>, what: &str) -> Refusal {
    let class = match (kind.unwrap_or_default(), status) {
        _ if what.to_lowercase().contains("credit balance") => FailureClass::Quota,
        ("billing_error" | "error_max_budget_usd", _) | (_, Some(402)) => FailureClass::Quota,
        ("authentication_failed" | "oauth_org_not_allowed", _) | (_, Some(401 | 403)) => {
            FailureClass::Auth
        }
        ("rate_limit", _) | (_, Some(429)) => FailureClass::RateLimit,
        ("model_not_found", _) | (_, Some(404)) => return Refusal::of_settings(what),
        ("invalid_request", _) | (_, Some(400 | 413 | 422)) => FailureClass::Invalid,
        ("max_output_tokens", _) => FailureClass::Unreadable,
        _ => FailureClass::Transient,
    };
    Refusal::new(class, what)
}

/// How long it is until that second since 1970.
fn until(then: u64) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Duration::from_secs(then).checked_sub(now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use FailureClass::{Auth, Invalid, Quota, RateLimit, Transient, Unreadable};

    fn assistant(id: &str, text: &str) -> Value {
        let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1});
        let content = json!([{"type": "text", "text": text}]);
        let message =
            json!({"id": id, "model": "claude-haiku-4-5", "content": content, "usage": usage});
        json!({"type": "assistant", "message": message, "session_id": "m1"})
    }

    fn synthetic(error: &str) -> Value {
        let message =
            json!({"id": "s", "model": "<synthetic>", "content": [{"type": "text", "text": "no"}]});
        json!({"type": "assistant", "error": error, "message": message, "session_id": "m1"})
    }

    fn result(is_error: bool, status: Option<u16>, text: &str) -> Value {
        json!({"subtype": "success", "is_error": is_error, "api_error_status": status,
            "result": text, "total_cost_usd": 0.003, "session_id": "m1",
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
            "type": "result"})
    }

    /// The last step of these lines; all before it must ask for more.
    fn steps(lines: &[Value]) -> Step {
        let mut turn = Turn::new(0.001, 100);
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            assert_eq!(turn.take(line), Step::More, "{line}");
        }
        turn.take(last)
    }

    fn answered(lines: &[Value]) -> Said {
        match steps(lines) {
            Step::Answered(said) => said,
            other => panic!("{other:?}"),
        }
    }

    fn refused(lines: &[Value]) -> Refusal {
        match steps(lines) {
            Step::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_blocks_of_a_message_are_joined_and_the_cost_is_that_of_the_turn() {
        let init = json!({"type": "system", "subtype": "init", "session_id": "m0"});
        let unknown = json!({"type": "ui_invalidate", "subtype": 7});
        let said = answered(&[
            init,
            assistant("a", "<one/>"),
            unknown,
            assistant("a", "<two/>"),
            result(false, None, "<two/>"),
        ]);
        assert_eq!(said.answer.text, "<one/><two/>");
        assert_eq!(said.answer.memory_session_id.as_deref(), Some("m1"), "the latest counts");
        let spent =
            Spent { tokens_in: 100, tokens_cached: 90, tokens_out: 7, cost_micros: Some(2000) };
        assert_eq!((said.answer.spent, said.answer.is_cut), (spent, false));
        assert!((said.paid - 0.003).abs() < 1e-9);
    }

    #[test]
    fn half_a_message_gives_way_to_the_whole_one() {
        let lines =
            [assistant("a", "<obs"), assistant("b", "<obs/>"), result(false, None, "<obs/>")];
        assert_eq!(answered(&lines).answer.text, "<obs/>");
    }

    #[test]
    fn an_answer_cut_off_by_its_limit_is_taken_as_it_is() {
        let nudge = json!({"type": "user", "isSynthetic": true, "message": {"role": "user",
            "content": [{"type": "text", "text": "Output token limit hit. Resume directly"}]}});
        let said = answered(&[assistant("a", "<obs>half"), nudge.clone()]);
        assert_eq!((said.answer.text.as_str(), said.answer.is_cut), ("<obs>half", true));
        let spent = Spent {
            tokens_in: 100,
            tokens_cached: 90,
            tokens_out: 100,
            cost_micros: Some(10 + 9 + 500),
        };
        assert_eq!(said.answer.spent, spent);
        let lines =
            [assistant("a", "half"), synthetic("max_output_tokens"), result(true, None, "no")];
        assert!(answered(&lines).answer.is_cut, "clients that do not say that they go on");
        let refusal = refused(&[nudge, synthetic("max_output_tokens"), result(true, None, "no")]);
        assert_eq!(refusal.class, Unreadable);
    }

    #[test]
    fn failures_that_look_like_answers_are_told_by_their_kind() {
        let cases = [
            ("authentication_failed", Some(401), Auth),
            ("authentication_failed", Some(403), Auth),
            ("authentication_failed", None, Auth),
            ("model_not_found", Some(404), Invalid),
            ("rate_limit", Some(429), RateLimit),
            ("server_error", Some(500), Transient),
            ("overloaded", Some(529), Transient),
            ("server_error", None, Transient),
            ("unknown", Some(400), Invalid),
            ("invalid_request", Some(400), Invalid),
            ("billing_error", Some(400), Quota),
            ("unknown", None, Transient),
        ];
        for (error, status, class) in cases {
            let refusal = refused(&[synthetic(error), result(true, status, "what went wrong")]);
            assert_eq!(refusal.class, class, "{error} {status:?}");
            assert_eq!(refusal.message, "what went wrong");
        }
        let low =
            refused(&[synthetic("unknown"), result(true, Some(400), "Credit balance is too low")]);
        assert_eq!(low.class, Quota);
        let is_error_alone = refused(&[assistant("a", "text"), result(true, None, "broke")]);
        assert_eq!((is_error_alone.class, is_error_alone.reply.as_str()), (Transient, "text"));
        let synthetic_alone = refused(&[synthetic("server_error"), result(false, None, "no")]);
        assert_eq!(synthetic_alone.class, Transient, "never an answer");
    }

    #[test]
    fn a_result_without_text_has_its_reason_among_the_errors() {
        let budget = json!({"type": "result", "subtype": "error_max_budget_usd", "is_error": true,
            "errors": ["Reached maximum budget ($1)"]});
        let refusal = refused(&[budget]);
        assert_eq!(
            (refusal.class, refusal.message.as_str()),
            (Quota, "Reached maximum budget ($1)")
        );
    }

    #[test]
    fn an_empty_answer_is_unreadable_and_was_paid_for() {
        let refusal = refused(&[result(false, None, "")]);
        assert_eq!((refusal.class, refusal.spent.cost_micros), (Unreadable, Some(2000)));
    }

    #[test]
    fn a_long_pause_of_the_client_ends_the_turn_and_says_when_to_come_back() {
        let retry = |delay: u64| {
            json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1,
                "retry_delay_ms": delay, "error_status": 429, "error": "rate_limit"})
        };
        let refusal = refused(&[retry(600), retry(90_000)]);
        assert_eq!(refusal.class, RateLimit);
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(90)));
        assert_eq!(refusal.message, "claude has to wait: rate_limit (HTTP 429)");
    }

    #[test]
    fn the_end_of_a_subscriptions_window_says_when_to_come_back() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let event = json!({"type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": now + 3600}});
        let refusal = refused(&[event, synthetic("rate_limit"), result(true, Some(429), "limit")]);
        let wait = refusal.retry_after.unwrap().as_secs();
        assert!((3500..=3600).contains(&wait), "{wait}");
    }

    #[test]
    fn no_line_of_any_shape_is_too_strange() {
        let mut turn = Turn::new(0.0, 1);
        for line in [
            "null",
            "[]",
            "7",
            "{}",
            r#"{"type":[]}"#,
            r#"{"type":"assistant"}"#,
            r#"{"type":"user","message":7}"#,
            r#"{"type":"rate_limit_event"}"#,
        ] {
            assert_eq!(turn.take(&serde_json::from_str(line).unwrap()), Step::More, "{line}");
        }
        assert!(matches!(turn.take(&json!({"type": "result"})), Step::Refused(_)));
        assert!(!turn.has_begun());
    }
}
