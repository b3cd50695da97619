//! Evidence from the tools of a turn: files changed and read, commands run, sources consulted.

use serde_json::Value;

use super::answer::Answer;
use super::commands::{Purpose, Run};
use super::commits::Commit;
use super::files::{self, FileChange};
use super::forms::FormAnswer;
use super::prompt::plan_heading;
use super::text::{add, clip, code, contains_any, one_line, relative, words};
use crate::turn_prompt::{ToolView, Turn};
use claude_mem_capture::clients::patched_files;
use claude_mem_privacy::own_words;

const LIST_MAX: usize = 30;
const RUNS_MAX: usize = 400;

/// All evidence of a turn.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Changed files, without duplicates, ordered by their first change.
    pub(super) files: Vec<FileChange>,
    pub(super) runs: Vec<Run>,
    /// Paths of files read, as passed to the tool.
    pub(super) read: Vec<String>,
    /// Search queries.
    pub(super) searches: Vec<String>,
    /// Web pages, subagents and MCP tools, each with its result.
    pub(super) consulted: Vec<String>,
    /// Questions put to the user during the turn, with the answers.
    pub(super) choices: Vec<FormAnswer>,
    /// Unfinished tasks from the assistant's to-do list.
    pub(super) unfinished: Vec<String>,
    /// A program asked for data, and there is none, such as a review without findings.
    pub(super) has_empty_result: bool,
    /// The heading of the plan that the turn wrote.
    plan: Option<String>,
}

/// A command that failed, then passed after a change.
pub(super) struct Fix<'e> {
    /// The first failing run.
    pub(super) before: &'e Run,
    /// The first passing run after it.
    pub(super) after: &'e Run,
    /// Files edited between the two runs.
    pub(super) files: Vec<&'e FileChange>,
    /// Other changes between the two runs.
    pub(super) effects: Vec<&'e str>,
}

/// A command that did not start, and the command that replaced it.
pub(super) struct Detour<'e> {
    pub(super) wrong: &'e Run,
    /// The error line.
    pub(super) why: &'e str,
    pub(super) right: &'e Run,
}

/// The replacement must follow within this number of tool uses.
const DETOUR_TOOLS_MAX: usize = 3;

const PLAN_LINES_MAX: usize = 40;

const WORKS_MAX: usize = 4;

impl Evidence {
    /// Collects the evidence of all tools of a turn.
    pub(super) fn of(turn: &Turn<'_>) -> Self {
        let mut evidence = Self::default();
        for (at, view) in turn.tools.iter().enumerate() {
            let (input, output) = (parsed(view.input), parsed(view.output));
            evidence.take(view, &input, &output, (turn.cwd, at));
        }
        let last = turn.last_assistant_message.unwrap_or_default().trim();
        evidence.has_empty_result |= last.starts_with(['{', '['])
            && serde_json::from_str(last).is_ok_and(|data| is_empty_data(&data));
        let inside = |file: &FileChange| !is_scratch(&file.path) || file.path != file.shown;
        if evidence.files.iter().any(inside) {
            evidence.files.retain(inside);
        }
        evidence
    }

    /// The heading of the plan, if the turn wrote nothing else.
    pub(super) fn plan_alone(&self) -> Option<&str> {
        let is_alone = self.files.iter().all(|file| is_plan_file(&file.path));
        self.plan.as_deref().filter(|_| is_alone && self.commits().is_empty())
    }

    fn take(
        &mut self,
        view: &ToolView<'_>,
        input: &Value,
        output: &Value,
        (cwd, at): (&str, usize),
    ) {
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        match view.tool {
            tool if files::is_change(tool) => {
                if files::path(input).is_some_and(is_plan_file) {
                    let written = [&input["content"], &output["originalFile"]];
                    self.plan(written.iter().find_map(|text| text.as_str()).unwrap_or_default());
                }
                files::gather(&mut self.files, view, (input, output), (cwd, at));
            }
            // Only for a patch of several files. A patch of one file is recorded as `Edit`.
            "apply_patch" => {
                for (tool, input) in patched_files(text("command")) {
                    let view = ToolView { tool, ..view.clone() };
                    files::gather(&mut self.files, &view, (&input, output), (cwd, at));
                }
            }
            "Bash" | "PowerShell" if self.runs.len() < RUNS_MAX => {
                self.runs.extend(Run::of(view, (input, output), (cwd, at)));
            }
            "Read" | "NotebookRead" if !view.failed => {
                add(&mut self.read, files::path(input).unwrap_or_default(), LIST_MAX);
            }
            "Grep" | "Glob" | "LSP" => add(&mut self.searches, clip(text("pattern"), 60), LIST_MAX),
            "WebSearch" => {
                let line = format!("Searched the web for {}", code(&clip(text("query"), 80)));
                add(&mut self.consulted, line, LIST_MAX);
            }
            "WebFetch" if !view.failed => {
                let address = text("url").trim_start_matches("https://");
                let result = output["result"].as_str().or(output.as_str()).unwrap_or_default();
                add(
                    &mut self.consulted,
                    source_with_finding(&code(&clip(address, 80)), result),
                    LIST_MAX,
                );
            }
            "Agent" | "Task" if output["status"] != "async_launched" => {
                let task = clip(text("description"), 60);
                add(
                    &mut self.consulted,
                    source_with_finding(&format!("Agent “{task}”"), &plain(output)),
                    LIST_MAX,
                );
            }
            "StructuredOutput" => self.has_empty_result = is_empty_data(input),
            "ExitPlanMode" => self.plan(text("plan")),
            "AskUserQuestion" => self.choices(input, output),
            "TodoWrite" => self.todos(input),
            tool if tool.starts_with("mcp__") && !tool.contains("claude-mem") => {
                add(&mut self.consulted, service(tool, view.failed, output), LIST_MAX);
            }
            _ => {}
        }
    }

    fn plan(&mut self, text: &str) {
        // A file may be long; its heading is at its start.
        let start: Vec<&str> = text.lines().take(PLAN_LINES_MAX).collect();
        self.plan = plan_heading(&start.join("\n")).or(self.plan.take());
    }

    fn choices(&mut self, input: &Value, output: &Value) {
        let forms = [&output["questions"], &input["questions"]];
        let questions = || forms.iter().filter_map(|form| form.as_array()).flatten();
        for (question, answer) in output["answers"].as_object().into_iter().flatten() {
            let notes = output["annotations"][question]["notes"].as_str().unwrap_or_default();
            let answer = match answer.as_str().unwrap_or_default() {
                "(notes only)" => notes,
                answer => answer,
            };
            let form = questions().find(|form| form["question"] == *question);
            let header = form.and_then(|form| form["header"].as_str()).unwrap_or_default();
            let options = form.and_then(|form| form["options"].as_array());
            let label = |option: &Value| option["label"].as_str().unwrap_or_default().to_owned();
            let chosen = options.into_iter().flatten().find(|option| label(option) == answer);
            let description = chosen.and_then(|option| option["description"].as_str());
            // Of several options the answer lists the labels.
            let is_chosen = |option: &Value| answer.starts_with(&label(option));
            let is_typed = options.is_some_and(|options| !options.iter().any(is_chosen));
            let own = if is_typed { own_words(answer) } else { answer.to_owned() };
            let choice = FormAnswer {
                header: one_line(header),
                question: clip(question, 300),
                answer: clip(&own, 300),
                description: clip(&one_line(description.unwrap_or_default()), 240),
                is_typed,
            };
            let is_known = self.choices.contains(&choice);
            if !choice.answer.is_empty() && !is_known && self.choices.len() < LIST_MAX {
                self.choices.push(choice);
            }
        }
    }

    /// Each write contains the complete list, so the latest one replaces the earlier ones.
    fn todos(&mut self, input: &Value) {
        self.unfinished.clear();
        for todo in input["todos"].as_array().into_iter().flatten() {
            if todo["status"] != "completed" {
                add(
                    &mut self.unfinished,
                    clip(todo["content"].as_str().unwrap_or_default(), 160),
                    LIST_MAX,
                );
            }
        }
    }

    /// Commands that failed, then passed after a change; at most one per check.
    pub(super) fn fixes(&self) -> Vec<Fix<'_>> {
        let mut found: Vec<Fix<'_>> = Vec::new();
        for (number, before) in self.runs.iter().enumerate() {
            let is_known = found.iter().any(|fix| before.repeats(fix.before));
            if !before.has_failed()
                || before.purpose == Purpose::Look
                || before.fault.is_none()
                || is_known
            {
                continue;
            }
            let later = &self.runs[number + 1..];
            let Some(after) = later.iter().find(|run| run.has_passed() && run.repeats(before))
            else {
                continue;
            };
            let between = |at: &usize| (before.at..after.at).contains(at);
            let files: Vec<_> =
                self.files.iter().filter(|file| file.at.iter().any(between)).collect();
            let runs = self.runs.iter().filter(|run| between(&run.at));
            let effects: Vec<_> = runs.flat_map(|run| &run.effects).map(String::as_str).collect();
            if !files.is_empty() || !effects.is_empty() {
                found.push(Fix { before, after, files, effects });
            }
        }
        found
    }

    /// Checks that failed and did not pass again, each with its last failing run.
    pub(super) fn failures(&self) -> Vec<&Run> {
        let is_check = |run: &&Run| run.has_failed() && run.purpose >= Purpose::Build;
        let mut found: Vec<&Run> = Vec::new();
        for (number, run) in self.runs.iter().enumerate().filter(|(_, run)| is_check(run)) {
            // A commit after a failed selected test implies that the remaining tests passed.
            let commits = |later: &Run| run.is_part() && !later.commits.is_empty();
            let later = &self.runs[number + 1..];
            let is_settled = later.iter().any(|later| later.settles(run) || commits(later));
            // A program name that the shell substitutes is unknown.
            let is_named = !run.shown.starts_with(['$', '(']);
            let has_error =
                run.counts.is_some() || run.fault.as_ref().is_some_and(|fault| fault.weight > 1);
            if !is_settled && has_error && is_named {
                found.push(run);
            }
        }
        found
    }

    /// The last passing run of each test check.
    pub(super) fn passed(&self) -> Vec<&Run> {
        let mut found: Vec<&Run> = Vec::new();
        let is_green =
            |run: &&Run| run.purpose == Purpose::Test && run.has_passed() && run.counts.is_some();
        for run in self.runs.iter().rev().filter(is_green) {
            if !found.iter().any(|later| later.repeats(run)) {
                found.push(run);
            }
        }
        found.reverse();
        found
    }

    /// Commands that did not start, each with a similar command that succeeded soon afterwards.
    /// Excludes pairs with an edit or an installation in between.
    pub(super) fn detours(&self) -> Vec<Detour<'_>> {
        let mut found: Vec<Detour<'_>> = Vec::new();
        for (number, wrong) in self.runs.iter().enumerate() {
            let is_significant = !wrong.is_plain_look && !is_one_off(wrong);
            let Some(why) = wrong.refusal.as_deref().filter(|_| is_significant) else {
                continue;
            };
            let is_near = |run: &&Run| run.at <= wrong.at + DETOUR_TOOLS_MAX;
            let later = self.runs[number + 1..].iter().take_while(is_near);
            let right = later.take_while(|run| !self.is_changed(wrong.at, run.at)).find(|run| {
                (run.has_passed() || run.has_begun())
                    && !run.is_plain_look
                    && !is_one_off(run)
                    && run.whole != wrong.whole
                    && is_alike(wrong, run)
                    && is_same_task(wrong, why, run)
            });
            let is_known =
                |right: &Run| found.iter().any(|detour| detour.right.whole == right.whole);
            if let Some(right) = right.filter(|right| !is_known(right)) {
                found.push(Detour { wrong, why, right });
            }
        }
        found
    }

    /// Whether a file was edited or something installed between two tool uses.
    fn is_changed(&self, from: usize, to: usize) -> bool {
        let is_between = |at: &usize| (from + 1..to).contains(at);
        let installs = |run: &Run| run.effects.iter().any(|effect| effect.starts_with("Installed"));
        self.files.iter().any(|file| file.at.iter().any(is_between))
            || self.runs.iter().any(|run| is_between(&run.at) && installs(run))
    }

    /// Commands that succeeded and show how to test, build, run and reach things in this project.
    /// Keeps the broadest command of each program, the most significant first.
    pub(super) fn works_here(&self) -> Vec<String> {
        let is_worth = |run: &&Run| {
            !is_for_once(run)
                && run.has_passed()
                && (run.purpose >= Purpose::Build
                    || run.is_of_project && run.purpose == Purpose::Run
                    || !run.way.is_empty() && run.way.split(' ').count() > 1)
                || !is_for_once(run) && run.is_background && run.is_of_project
        };
        let mut found: Vec<&Run> = Vec::new();
        for run in self.runs.iter().rev().filter(is_worth) {
            let same = found.iter().position(|known| {
                if run.way.is_empty() {
                    known.way.is_empty() && known.repeats(run)
                } else {
                    known.way == run.way
                }
            });
            match same {
                Some(at) if run.breadth() < found[at].breadth() => found[at] = run,
                Some(_) => {}
                None => found.push(run),
            }
        }
        found.sort_by_key(|run| (std::cmp::Reverse(run.purpose), run.at));
        found.truncate(WORKS_MAX);
        found.iter().map(|run| works(run)).collect()
    }

    /// Subjects of commits, in order.
    pub(super) fn commits(&self) -> Vec<&str> {
        self.made_commits().map(|commit| commit.subject.as_str()).collect()
    }

    /// Commits with their hashes, in order.
    pub(super) fn made_commits(&self) -> impl Iterator<Item = &Commit> {
        self.runs.iter().flat_map(|run| &run.commits)
    }

    /// Changes made by commands, in order, without duplicates.
    pub(super) fn effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        for effect in self.runs.iter().flat_map(|run| &run.effects) {
            add(&mut effects, effect, LIST_MAX);
        }
        effects
    }

    pub(super) fn has_work(&self) -> bool {
        let has_effect = |run: &Run| !run.effects.is_empty() || !run.commits.is_empty();
        !self.files.is_empty() || self.runs.iter().any(has_effect)
    }

    /// Paths of files that were read but not changed, as passed to the tool.
    pub(super) fn only_read(&self) -> Vec<String> {
        let is_changed = |path: &String| self.files.iter().any(|file| file.path == *path);
        self.read.iter().filter(|path| !is_changed(path)).cloned().collect()
    }

    /// Files that were read but not changed, relative to the project.
    pub(super) fn shown_read(&self, cwd: &str) -> Vec<String> {
        self.only_read().iter().map(|path| code(relative(path, cwd))).collect()
    }
}

/// Whether the command is an inline script or a temporary file, which is not run again.
fn is_one_off(run: &Run) -> bool {
    // A here-document used as an argument is not a script: `git commit -m "$(cat <<'EOF'`.
    let whole = run.whole.replace("$(cat <<", "");
    // More verbose output does not make it a different command: `GIT_TRACE=1 git stash`.
    let is_trace = whole.split(' ').take_while(|word| word.contains('=')).any(|assignment| {
        let name = assignment.split('=').next().unwrap_or_default();
        contains_any(name, "TRACE|DEBUG|VERBOSE|LOG")
    });
    is_trace || contains_any(&whole, "/tmp/|<<| -c \"| -c '| -e \"| -e '")
}

/// Whether the command only tests for a program, or produces a temporary result.
fn is_for_once(run: &Run) -> bool {
    let place = format!("{} {}", run.whole, run.folder).replace('\\', "/").to_lowercase();
    contains_any(&place, "/tmp/|/temp/|$tmp|$temp|scratch|command -v| --version")
}

/// Whether two commands of one program have the same subcommand: `git commit` is not a replacement
/// for `git add`. The subcommand of the failed command may not exist.
fn is_same_task(wrong: &Run, why: &str, right: &Run) -> bool {
    let unknown =
        "unrecognized subcommand|unknown command|no such command|missing script|script not found";
    let task = |run: &Run| -> Vec<String> {
        let words = run.core.split_whitespace().skip_while(|word| word.contains('='));
        words.take(3).map(str::to_owned).collect()
    };
    let is_name = |word: &String| word.bytes().all(|byte| byte.is_ascii_lowercase());
    match (&task(wrong)[..], &task(right)[..]) {
        ([one, ..], [other, ..]) if one != other => true,
        ([_, one, script, ..], [_, other, other_script, ..]) if one == other => {
            one != "run" || script == other_script || contains_any(&why.to_lowercase(), unknown)
        }
        ([_, one, ..], [_, other, ..]) if one != other && is_name(one) && is_name(other) => {
            contains_any(&why.to_lowercase(), unknown)
        }
        // `git stash list` is not a replacement for `git stash`.
        ([_, one], [_, other, third, ..]) if one == other => !is_name(third),
        _ => true,
    }
}

/// Whether two commands are similar: the second has two fifths of the first one's words, and at
/// least two of them if the first has three or more.
fn is_alike(wrong: &Run, right: &Run) -> bool {
    let (few, many) = (wrong.tokens(), right.tokens());
    let shared = few.iter().filter(|word| many.contains(word)).count();
    let needed = if few.len() < 3 { 1 } else { 2 };
    shared >= needed && shared * 5 >= few.len() * 2
}

/// A command with its result, and the folder or the remote machine it ran on.
fn works(run: &Run) -> String {
    let place =
        if run.folder.is_empty() { String::new() } else { format!(" in {}", code(&run.folder)) };
    match run.counts {
        _ if !run.way.is_empty() => code(&run.way),
        _ if run.is_background => format!("{}{place} (left running)", code(&run.whole)),
        Some(counts) => format!("{}{place} ({})", code(&run.whole), counts.shown()),
        None => format!("{}{place}", code(&run.whole)),
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

fn is_empty_data(data: &Value) -> bool {
    match data {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty_data),
        Value::Object(fields) => fields.values().all(is_empty_data),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether the client keeps a plan in a file, which has a random name.
fn is_plan_file(path: &str) -> bool {
    path.replace('\\', "/").contains("/.claude/plans/")
}

/// Whether a path is in a folder for temporary files.
fn is_scratch(path: &str) -> bool {
    let path = path.replace('\\', "/");
    ["/tmp/", "/private/tmp/", "/var/folders/"].iter().any(|dir| path.starts_with(dir))
        || contains_any(&path, "/.claude/plans/|/AppData/Local/Temp/")
}

/// The source, with the main sentence of its text.
fn source_with_finding(source: &str, text: &str) -> String {
    let answer = Answer::of(text);
    let point = answer.headline.or_else(|| answer.points.first().cloned());
    point.map_or_else(|| source.to_owned(), |point| format!("{source}: {}", clip(&point, 160)))
}

/// Formats `mcp__server__tool` with its result.
fn service(tool: &str, has_failed: bool, output: &Value) -> String {
    let mut parts = tool.splitn(3, "__").skip(1);
    let server = parts.next().unwrap_or_default().trim_start_matches("plugin_");
    let name = code(&format!("{server} {}", parts.next().unwrap_or_default()));
    let text = plain(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    // Services often return headings, data and paths. Only a sentence is worth recording.
    let is_sentence = words(line) >= 4
        && line.ends_with(['.', '!', '。'])
        && !line.starts_with(['#', '{', '[', '<']);
    match has_failed {
        true => format!("{name} failed: {}", clip(line, 120)),
        false if is_sentence => format!("{name}: {}", clip(line, 120)),
        false => String::new(),
    }
}

/// The text of a tool result: its content blocks if it has any, or else the result itself.
fn plain(output: &Value) -> String {
    let blocks = output.get("content").unwrap_or(output);
    match blocks {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<&str> =
                items.iter().filter_map(|block| block["text"].as_str()).collect();
            texts
                .iter()
                .find(|text| !text.starts_with('<'))
                .or(texts.first())
                .map_or("", |text| text)
                .to_owned()
        }
        _ => String::new(),
    }
}
