//! Reads the events of a batch from the log and assembles the turn.

use claude_mem_events::{
    Envelope, Event, EventItem, EventReader, Recorded, Remark, Seq, StopScope, SummaryRequested,
    ToolUsed,
};
use claude_mem_log::{Error, Log};
use claude_mem_privacy::{Author, typed};
use claude_mem_projections::imported_tool_use;

use crate::batches::{Batch, PlannedRequest};
use crate::turn_prompt::{RemarkView, ToolView, Turn};

/// A turn with all its texts.
#[derive(Debug, Default)]
pub struct TurnInput {
    /// Envelope of its first event.
    pub envelope: Envelope,
    /// Number of the prompt that started it.
    pub number: u32,
    prompt: String,
    /// Where in `prompt` further prompts begin.
    queued_at: Vec<usize>,
    prompted_at_us: u64,
    /// HEAD when the prompt was submitted.
    prompted_at_commit: String,
    cwd: String,
    tools: Vec<TakenTool>,
    stop: Option<SummaryRequested>,
    previous_message: String,
    is_over: bool,
    is_continued: bool,
}

/// A tool use with metadata of its event.
#[derive(Debug)]
struct TakenTool {
    at_us: u64,
    used: ToolUsed,
    /// HEAD after it.
    commit: String,
    /// It ran a command such as `git commit`, and HEAD moved.
    has_committed: bool,
}

impl TurnInput {
    /// Reads the events of a request; `None` if all are gone.
    pub fn read(log: &Log, planned: &PlannedRequest) -> Result<Option<Self>, Error> {
        let Batch { sources, turn, is_over } = &planned.batch;
        let is_continued = planned.is_continued;
        let mut input = Self { number: *turn, is_over: *is_over, is_continued, ..Self::default() };
        // Most events of a turn are in one segment, so one reader serves all of them.
        let mut reader = EventReader::from(log, Seq::START);
        for source in sources {
            let Some(recorded) = read(&mut reader, source.seq)? else { continue };
            // A repair of the log may have put another record at this position.
            if *recorded.id.as_bytes() == source.id {
                input.take(recorded);
            }
        }
        if input.tools.is_empty() && input.stop.is_none() {
            return Ok(None);
        }
        for seq in &planned.prompts {
            if let Some(recorded) = read(&mut reader, *seq)? {
                input.take_prompt(recorded);
            }
        }
        if let Some(seq) = planned.previous_stop
            && let Some(recorded) = read(&mut reader, seq)?
        {
            input.take_previous(recorded);
        }
        input.complete();
        Ok(Some(input))
    }

    fn take(&mut self, recorded: Recorded) {
        let (at_us, commit) = (recorded.at_us(), recorded.envelope.commit.clone());
        let taken = |used| TakenTool { at_us, used, commit, has_committed: false };
        match recorded.event {
            Event::ToolUsed(used) => self.tools.push(taken(used)),
            Event::Imported(imported) => self.tools.extend(imported_tool_use(&imported).map(taken)),
            Event::SummaryRequested(stop) if stop.scope == StopScope::Turn => {
                self.stop = Some(stop);
            }
            // The session ended before anything followed the prompt.
            Event::SessionEnded(_) => self.stop = Some(SummaryRequested::default()),
            _ => return,
        }
        if self.envelope.session.is_empty() {
            self.envelope = recorded.envelope;
        }
    }

    /// Adds a prompt of the turn. Text typed during the turn is appended to the first prompt.
    fn take_prompt(&mut self, recorded: Recorded) {
        let at_us = recorded.at_us();
        let Event::PromptSubmitted(prompt) = recorded.event else { return };
        let typed = typed(&prompt.prompt);
        if typed.author != Author::User {
            return;
        }
        if self.prompted_at_us == 0 {
            self.prompted_at_us = at_us;
            self.prompted_at_commit = recorded.envelope.commit;
            self.cwd = prompt.cwd;
        }
        // A prompt that was withdrawn for editing is submitted again, usually longer.
        let last = self.queued_at.last().copied().unwrap_or_default();
        if typed.text.starts_with(&self.prompt[last..]) {
            self.prompt.truncate(last.saturating_sub(2));
            self.queued_at.pop();
        }
        if !self.prompt.is_empty() && !typed.text.is_empty() {
            self.prompt.push_str("\n\n");
            self.queued_at.push(self.prompt.len());
        }
        self.prompt.push_str(&typed.text);
    }

    /// Stores the end of the previous turn's last message, which contains its questions.
    fn take_previous(&mut self, recorded: Recorded) {
        let Event::SummaryRequested(stop) = recorded.event else { return };
        // A repair of the log may have put another record at this position.
        if recorded.envelope.session == self.envelope.session {
            end_of(stop.last_assistant_message.trim_end()).clone_into(&mut self.previous_message);
        }
    }

    /// Fills the fields that no prompt provided.
    fn complete(&mut self) {
        self.find_commits();
        let first_tool = self.tools.first();
        if self.prompted_at_us == 0 {
            self.prompted_at_us = first_tool.map_or(0, |tool| tool.at_us);
            if let Some(stop) = &self.stop {
                self.prompt = typed(&stop.last_user_message).text.into_owned();
            }
        }
        let places = [
            first_tool.map(|tool| tool.used.cwd.as_str()),
            self.stop.as_ref().map(|stop| stop.cwd.as_str()),
            Some(self.envelope.project.root.as_str()),
        ];
        if self.cwd.is_empty()
            && let Some(cwd) = places.into_iter().flatten().find(|cwd| !cwd.is_empty())
        {
            self.cwd = cwd.to_owned();
        }
    }

    /// Marks the tool uses that made a commit. A checkout moves HEAD as well, so the command
    /// decides.
    fn find_commits(&mut self) {
        // The start of a continued turn is not included, so HEAD before its first tool is unknown.
        let mut before = match self.is_continued {
            true => String::new(),
            false => self.prompted_at_commit.clone(),
        };
        for tool in self.tools.iter_mut().filter(|tool| !tool.commit.is_empty()) {
            let has_moved = !before.is_empty() && before != tool.commit;
            tool.has_committed = has_moved && tool.used.input.contains("commit");
            before.clone_from(&tool.commit);
        }
    }

    /// Whether the turn is over, so that it gets a summary.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The turn as it is rendered.
    pub fn turn<'a>(&'a self, digest: Option<&'a str>) -> Turn<'a> {
        let message = self.stop.as_ref().map(|stop| stop.last_assistant_message.as_str());
        Turn {
            project: &self.envelope.project.label,
            cwd: &self.cwd,
            prompt: &self.prompt,
            queued_at: self.queued_at.clone(),
            prompt_number: self.number,
            at: self.prompted_at_us.cast_signed(),
            tools: self.tools.iter().map(view).collect(),
            last_assistant_message: message.filter(|message| !message.is_empty()),
            remarks: self.stop.iter().flat_map(|stop| &stop.remarks).map(remark).collect(),
            previous_message: &self.previous_message,
            is_over: self.is_over,
            is_interrupted: self.is_over && self.stop.is_none(),
            is_continued: self.is_continued,
            digest,
            earlier: Vec::new(),
        }
    }
}

fn view(TakenTool { at_us, used, commit, has_committed }: &TakenTool) -> ToolView<'_> {
    let output = if used.has_failed { &used.error } else { &used.output };
    ToolView {
        tool: &used.tool,
        tool_use_id: &used.tool_use_id,
        input: &used.input,
        output,
        at: at_us.cast_signed(),
        commit: if *has_committed { commit } else { "" },
        cwd: &used.cwd,
        failed: used.has_failed,
        agent: Some(used.agent_type.as_str()).filter(|agent| !agent.is_empty()),
    }
}

fn remark(remark: &Remark) -> RemarkView<'_> {
    RemarkView { kind: remark.kind, tool_use_id: &remark.tool_use_id, text: &remark.text }
}

/// Enough for a question with its options.
const PREVIOUS_CHARS_MAX: usize = 600;
const WORD_BYTES_MAX: usize = 40;

/// The end of a message, from the beginning of a line or at least of a word.
fn end_of(message: &str) -> &str {
    // The character before the end shows whether a word begins there.
    let before = message.char_indices().rev().nth(PREVIOUS_CHARS_MAX);
    let Some((before, first)) = before else { return message };
    let end = &message[before..];
    let line = end.find('\n').filter(|at| *at < end.len() / 2);
    // Some languages have no spaces between words.
    let word = end.find(char::is_whitespace).filter(|at| *at < WORD_BYTES_MAX);
    let from = line.or(word).unwrap_or(first.len_utf8());
    end[from..].trim_start()
}

fn read(reader: &mut EventReader, seq: Seq) -> Result<Option<Recorded>, Error> {
    reader.seek(seq)?;
    match reader.next()? {
        Some(EventItem::Event(recorded)) if recorded.seq == seq => Ok(Some(recorded)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use claude_mem_events::{EventLog, Id, PromptSubmitted, RemarkKind, SessionEnded};
    use claude_mem_log::Options;
    use claude_mem_projections::{EventFilter, Store};

    use super::*;
    use crate::{batches::Limits, plan::Plan};

    fn stop(message: &str, remarks: Vec<Remark>) -> Event {
        let last_assistant_message = message.into();
        SummaryRequested { last_assistant_message, remarks, ..SummaryRequested::default() }.into()
    }

    #[test]
    fn a_command_that_commits_has_the_hash_of_its_commit() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        let bash = |command: &str| {
            let input = format!(r#"{{"command":"{command}"}}"#);
            ToolUsed { tool: "Bash".into(), input, ..ToolUsed::default() }.into()
        };
        let events = [
            ("a1", prompt("commit it")),
            ("a1", bash("git commit --dry-run")),
            ("b2", bash("git commit -qm x")),
            ("", bash("git commit -qm elsewhere")),
            ("c3", bash("git pull")),
            ("c3", bash("git commit")),
            ("c3", stop("Done.", Vec::new())),
        ];
        for (number, (commit, event)) in events.iter().enumerate() {
            let (session, commit) = ("s".into(), (*commit).into());
            let envelope = Envelope { session, commit, ..Envelope::default() };
            log.record(Id::new(number as u64 + 1, number as u64), &envelope, event).unwrap();
        }
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let mut store = Store::in_memory().unwrap();
        store.fold(&log, |_| true).unwrap();
        let pending = store.pending_turns(&EventFilter::default(), 10).unwrap();
        let mut plan = Plan::new(&store, pending, None, &Limits::default(), 0).unwrap();
        let planned = &mut plan.sessions[0].requests[0];
        let commits = |planned: &PlannedRequest| {
            let input = TurnInput::read(&log, planned).unwrap().unwrap();
            input.turn(None).tools.iter().map(|tool| tool.commit.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(commits(planned), ["", "b2", "", "", ""]);
        planned.is_continued = true;
        assert_eq!(commits(planned), ["", "b2", "", "", ""]);
    }

    fn prompt(text: &str) -> Event {
        PromptSubmitted { prompt: text.into(), ..PromptSubmitted::default() }.into()
    }

    /// Calls `shown` for each planned request of a session.
    fn with_requests<T>(events: &[Event], shown: impl Fn(&TurnInput) -> T) -> Vec<T> {
        let dir = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        let envelope = Envelope { session: "s".into(), ..Envelope::default() };
        for (number, event) in events.iter().enumerate() {
            let id = Id::new(number as u64 + 1, number as u64);
            log.record(id, &envelope, event).unwrap();
        }
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let mut store = Store::in_memory().unwrap();
        store.fold(&log, |_| true).unwrap();
        let pending = store.pending_turns(&EventFilter::default(), 10).unwrap();
        let plan = Plan::new(&store, pending, None, &Limits::default(), 0).unwrap();
        let requests = plan.sessions.iter().flat_map(|session| &session.requests);
        requests.map(|planned| shown(&TurnInput::read(&log, planned).unwrap().unwrap())).collect()
    }

    /// Each turn of a session: the end of the previous message, and its remarks.
    fn turns(events: &[Event]) -> Vec<(String, Vec<String>)> {
        with_requests(events, |input| {
            let turn = input.turn(None);
            let remark =
                |it: &RemarkView<'_>| format!("{:?} {} {}", it.kind, it.tool_use_id, it.text);
            let remarks = turn.remarks.iter().map(remark).collect();
            (turn.previous_message.to_owned(), remarks)
        })
    }

    #[test]
    fn a_prompt_without_an_answer_is_part_of_the_next_turn() {
        let texts = ["Sell pens.", "Sell carts.", "Sell carts. Never on Sundays."];
        let events = texts.map(prompt).into_iter().chain([stop("Done.", Vec::new())]);
        let prompts =
            with_requests(&events.collect::<Vec<_>>(), |input| input.turn(None).prompt.to_owned());
        assert_eq!(prompts, ["Sell pens.\n\nSell carts. Never on Sundays."]);
    }

    #[test]
    fn a_prompt_that_ends_its_session_is_a_turn() {
        let events = [prompt("Sell pens. Never on Sundays."), SessionEnded::default().into()];
        let prompts =
            |events: &[Event]| with_requests(events, |input| input.turn(None).prompt.to_owned());
        assert_eq!(prompts(&events), ["Sell pens. Never on Sundays."]);
        assert_eq!(prompts(&events[..1]), Vec::<String>::new(), "it may be answered yet");
    }

    #[test]
    fn a_turn_has_its_remarks_and_the_end_of_the_message_before_it() {
        let remark = Remark {
            kind: RemarkKind::Rejection,
            tool_use_id: "t1".into(),
            text: "not now".into(),
        };
        let long = format!("{} A or B?\n", "é".repeat(1000));
        let found = turns(&[
            prompt("one"),
            stop("Well.", Vec::new()),
            stop(&long, vec![remark]),
            prompt("B"),
            stop("Done.", Vec::new()),
        ]);
        let question = format!("{} A or B?", "é".repeat(592));
        assert_eq!(question.chars().count(), PREVIOUS_CHARS_MAX);
        let (first, second, third) = (&found[0], &found[1], &found[2]);
        assert_eq!(first, &(String::new(), Vec::new()));
        assert_eq!(second, &(String::new(), vec!["Rejection t1 not now".to_owned()]));
        assert_eq!(third, &(question, Vec::new()));
    }

    #[test]
    fn the_end_of_a_message_begins_with_a_line_or_a_word() {
        assert_eq!(end_of("Shall I?"), "Shall I?");
        let whole = "word ".repeat(120);
        assert_eq!((end_of(&whole), end_of(&format!("x {whole}"))), (&*whole, &*whole));
        let words = "wörd ".repeat(200);
        assert!(end_of(&words[3..]).starts_with("wörd "), "{}", end_of(&words[3..]));
        let lines = format!("{}\nShall I?\n{}", "x".repeat(200), "y".repeat(500));
        assert!(end_of(&lines).starts_with("Shall I?\n"), "{}", end_of(&lines));
        assert_eq!(end_of(&"買".repeat(700)).chars().count(), 600);
    }
}
