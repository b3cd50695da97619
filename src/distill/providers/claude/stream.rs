//! Parses the client's output of one turn into a response or a refusal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use claude_mem_events::FailureClass;
use serde_json::Value;

use crate::providers::{
    REPLY_BYTES_MAX, Refusal, Response, Spent, micros, prices, reported, reported_name,
};

/// A longer retry delay of the client is not worth waiting for: the request is ended.
const CLIENT_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Model name of messages that the client generates itself.
const SYNTHETIC: &str = "<synthetic>";

/// One turn in progress.
#[derive(Debug, Default)]
pub(super) struct Turn {
    session_id: Option<String>,
    model: String,
    /// The text belongs to this message. When a stream breaks off, the client emits the partial
    /// text and retries; the complete response then has a different id.
    message_id: String,
    text: String,
    usage: Value,
    /// The client's error kind.
    error: Option<String>,
    resets_at: Option<u64>,
    paid_before: f64,
    tokens_out_max: u32,
}

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    More,
    Answered(TurnResponse),
    Refused(Refusal),
}

/// A response, and the total cost of the client so far.
#[derive(Debug, PartialEq)]
pub(super) struct TurnResponse {
    pub(super) response: Response,
    pub(super) paid: f64,
}

impl Turn {
    /// `paid_before` is the client's cost in dollars before this turn.
    pub(super) fn new(paid_before: f64, tokens_out_max: u32) -> Self {
        Self { paid_before, tokens_out_max, ..Self::default() }
    }

    /// Whether the client has sent a valid message.
    pub(super) fn has_begun(&self) -> bool {
        self.session_id.is_some()
    }

    /// Reads one line. Unknown types are ignored; newer clients have more.
    pub(super) fn take(&mut self, line: &Value) -> Step {
        if line["session_id"].as_str().is_some_and(|id| !id.is_empty()) {
            self.session_id = Some(reported_name(&line["session_id"], ""));
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

    /// The time limit expired. Partial text is kept with the refusal.
    pub(super) fn timed_out(&self, after: Duration) -> Refusal {
        let why = format!("claude did not respond within {after:.0?}");
        Refusal::too_slow(why).with_cost(self.estimate()).with_reply(&self.text)
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
        self.model = reported_name(&message["model"], "");
        self.usage = message["usage"].clone();
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.text.extend(blocks.iter().filter_map(|block| block["text"].as_str()));
        if self.text.len() > REPLY_BYTES_MAX {
            return Step::Refused(Refusal::too_large("claude").with_cost(self.estimate()));
        }
        Step::More
    }

    /// When the token limit truncates a response, the client asks the model to continue, up to
    /// three times. The partial response is enough, and each continuation would cost as much again.
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
            let why = "claude sent an empty response";
            return Step::Refused(Refusal::new(FailureClass::Unreadable, why).with_cost(spent));
        }
        Step::Answered(TurnResponse { response: self.response(spent, false), paid })
    }

    /// The client reports failures as responses: `subtype` is `success`, and a synthetic assistant
    /// message contains the error.
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
        Step::Refused(refusal.after(retry_after).with_cost(spent).with_reply(&self.text))
    }

    fn cut(&self, spent: Spent) -> Step {
        Step::Answered(TurnResponse {
            response: self.response(spent, true),
            paid: self.paid_before,
        })
    }

    fn response(&self, spent: Spent, is_cut: bool) -> Response {
        Response {
            text: self.text.clone(),
            is_cut,
            memory_session_id: self.session_id.clone(),
            model: self.model.clone(),
            spent,
            duration: Duration::ZERO,
        }
    }

    /// `usage` covers the turn, `paid` the whole process.
    fn spent(&self, usage: &Value, paid: f64) -> Spent {
        let cost_micros = Some(micros((paid - self.paid_before).max(0.0)));
        Spent { cost_micros, ..tokens(usage) }
    }

    /// Estimated cost of a turn without a `result`: input tokens are reported at the start of a
    /// response, output tokens are assumed to be the maximum.
    fn estimate(&self) -> Spent {
        if self.text.is_empty() {
            return Spent::default();
        }
        let spent = Spent { tokens_out: u64::from(self.tokens_out_max), ..tokens(&self.usage) };
        let stored = reported(&self.usage["cache_creation_input_tokens"]);
        Spent { cost_micros: prices::cost_micros(&self.model, &spent, stored), ..spent }
    }
}

/// The client retries by itself. A short delay is worth waiting for; a long one is passed on as
/// `retry_after`, which the final error would not contain.
fn retry(line: &Value) -> Step {
    let pause = Duration::from_millis(line["retry_delay_ms"].as_u64().unwrap_or(0));
    if pause <= CLIENT_PAUSE_MAX {
        return Step::More;
    }
    let error = line["error"].as_str().unwrap_or("unknown");
    let status = line["error_status"].as_u64();
    let suffix = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
    let refusal = refusal(Some(error), status, &format!("claude waits to retry: {error}{suffix}"));
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

/// Time until a second since 1970.
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

    /// The last step of these lines; all before it must return `More`.
    fn steps(lines: &[Value]) -> Step {
        let mut turn = Turn::new(0.001, 100);
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            assert_eq!(turn.take(line), Step::More, "{line}");
        }
        turn.take(last)
    }

    fn answered(lines: &[Value]) -> TurnResponse {
        match steps(lines) {
            Step::Answered(done) => done,
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
        let done = answered(&[
            init,
            assistant("a", "<one/>"),
            unknown,
            assistant("a", "<two/>"),
            result(false, None, "<two/>"),
        ]);
        assert_eq!(done.response.text, "<one/><two/>");
        assert_eq!(done.response.memory_session_id.as_deref(), Some("m1"), "the latest counts");
        let spent =
            Spent { tokens_in: 100, tokens_cached: 90, tokens_out: 7, cost_micros: Some(2000) };
        assert_eq!((done.response.spent, done.response.is_cut), (spent, false));
        assert!((done.paid - 0.003).abs() < 1e-9);
    }

    #[test]
    fn a_whole_message_replaces_a_partial_one() {
        let lines =
            [assistant("a", "<obs"), assistant("b", "<obs/>"), result(false, None, "<obs/>")];
        assert_eq!(answered(&lines).response.text, "<obs/>");
    }

    #[test]
    fn a_response_cut_off_by_its_limit_is_kept() {
        let nudge = json!({"type": "user", "isSynthetic": true, "message": {"role": "user",
            "content": [{"type": "text", "text": "Output token limit hit. Resume directly"}]}});
        let done = answered(&[assistant("a", "<obs>half"), nudge.clone()]);
        assert_eq!((done.response.text.as_str(), done.response.is_cut), ("<obs>half", true));
        let spent = Spent {
            tokens_in: 100,
            tokens_cached: 90,
            tokens_out: 100,
            cost_micros: Some(10 + 9 + 500),
        };
        assert_eq!(done.response.spent, spent);
        let lines =
            [assistant("a", "half"), synthetic("max_output_tokens"), result(true, None, "no")];
        assert!(answered(&lines).response.is_cut, "clients that do not announce a continuation");
        let refusal = refused(&[nudge, synthetic("max_output_tokens"), result(true, None, "no")]);
        assert_eq!(refusal.class, Unreadable);
    }

    #[test]
    fn failures_reported_as_responses_are_classified_by_their_kind() {
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
        assert_eq!(synthetic_alone.class, Transient, "never a response");
    }

    #[test]
    fn the_reason_of_a_result_without_text_is_in_its_errors() {
        let budget = json!({"type": "result", "subtype": "error_max_budget_usd", "is_error": true,
            "errors": ["Reached maximum budget ($1)"]});
        let refusal = refused(&[budget]);
        assert_eq!(
            (refusal.class, refusal.message.as_str()),
            (Quota, "Reached maximum budget ($1)")
        );
    }

    #[test]
    fn an_empty_response_is_unreadable_and_has_a_cost() {
        let refusal = refused(&[result(false, None, "")]);
        assert_eq!((refusal.class, refusal.spent.cost_micros), (Unreadable, Some(2000)));
    }

    #[test]
    fn a_long_retry_delay_of_the_client_ends_the_turn_with_retry_after() {
        let retry = |delay: u64| {
            json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1,
                "retry_delay_ms": delay, "error_status": 429, "error": "rate_limit"})
        };
        let refusal = refused(&[retry(600), retry(90_000)]);
        assert_eq!(refusal.class, RateLimit);
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(90)));
        assert_eq!(refusal.message, "claude waits to retry: rate_limit (HTTP 429)");
    }

    #[test]
    fn the_reset_time_of_a_subscription_becomes_retry_after() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let event = json!({"type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": now + 3600}});
        let refusal = refused(&[event, synthetic("rate_limit"), result(true, Some(429), "limit")]);
        let wait = refusal.retry_after.unwrap().as_secs();
        assert!((3500..=3600).contains(&wait), "{wait}");
    }

    #[test]
    fn malformed_lines_are_ignored() {
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
