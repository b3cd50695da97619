//! The status as text.

use std::fmt::Write as _;

use jiff::{Timestamp, tz::TimeZone};

use super::{Hooks, Memory, StatusReport, Worker, memory::ProviderFailure};
use claude_mem_core::{
    app::Output,
    format::{bytes, count, number},
    wrap::cut,
};
use claude_mem_distill::{
    prompts::InstructionsSource,
    providers::auto::RULES,
    status::{DistillStatus, Redo},
};

const GOOD: &str = "32";
const BAD: &str = "31";
const WARNING: &str = "33";

/// The line that matters first, then problems and what the user set up; everything with
/// `is_verbose`.
pub(super) fn page(found: &StatusReport, output: &Output, is_verbose: bool) -> String {
    let mut page = Page { text: format!("{}\n", headline(found, output)), output };
    let detail = |text: String| if is_verbose { text } else { String::new() };
    if is_verbose || !found.is_writable {
        page.line("data", &place(found, output));
    }
    page.line("recorded", &detail(recorded(found)));
    page.line("", &detail(kinds(found)));
    page.line("today", &detail(today(found)));
    for problem in &found.settings_problems {
        page.line("settings", &output.paint(BAD, problem));
    }
    if is_verbose || !is_recorded(found) {
        page.line("project", &project(found, output));
    }
    page.line("durability", &detail(durability(found)));
    let damage = damage(found, output);
    page.line("damage", &damage.unwrap_or_else(|| detail(output.paint(GOOD, "none"))));
    page.line("dropped", &dropped(found, output));
    page.line("removed", &detail(removed(found)));
    page.line("disk", &detail(disk(found)));
    for (line, is_good) in hooks(&found.hooks, output) {
        page.line("hooks", if is_verbose || !is_good { &line } else { "" });
    }
    page.line("memory", &memory(&found.memory));
    page.line("vectors", &vectors(found, output));
    page.line("rebuilt", &rebuilt(&found.memory, output));
    for (at, line) in provider(&found.memory, output).into_iter().enumerate() {
        page.line(if at == 0 { "provider" } else { "" }, &line);
    }
    page.line("prompt", prompt(found.prompt));
    if is_verbose || found.worker.status.as_deref() != Some("ok") {
        page.line("worker", &worker(&found.worker, output));
    }
    page.line("shipping", &shipping(found, output));
    page.line("backup", &backup(found, output));
    page.line("repaired", &repaired(found));
    for left in &found.repair.unrepaired {
        page.line("damaged", &output.paint(BAD, left));
    }
    if is_verbose || found.diagnostics.is_recent {
        page.line("diagnostics", &diagnostics(found));
    }
    page.text
}

/// `recording · 3 memories from today's 2 sessions · distilled by Claude Code`
fn headline(found: &StatusReport, output: &Output) -> String {
    let mut parts = vec![match obstacle(found) {
        None => output.paint(GOOD, "recording"),
        Some(why) => output.paint(BAD, &format!("not recording: {why}")),
    }];
    if let Some(counts) = &found.memory.counts {
        let sessions = found.counted.today.sessions;
        parts.push(match (counts.observations_today, sessions) {
            // Memories of today without a session are imported.
            (0, _) | (_, 0) => count(counts.observations, "memory"),
            (new, 1) => format!("{} from today's session", count(new, "memory")),
            (new, _) => {
                format!("{} from today's {}", count(new, "memory"), count(sessions, "session"))
            }
        });
    }
    let status = found.memory.distilling.as_ref();
    if let Some(outage) = status.and_then(DistillStatus::blocked_by) {
        parts.push(output.paint(BAD, &format!("not distilling: {} fails", outage.provider)));
        return parts.join(" · ");
    }
    let provider = status.and_then(|status| status.provider.as_deref());
    parts.extend(provider.map(|provider| match provider {
        RULES => "distilled by the built-in rules".into(),
        "claude" => "distilled by Claude Code".into(),
        provider => format!("distilled by {provider}"),
    }));
    parts.join(" · ")
}

/// What keeps the sessions of this project from being recorded.
fn obstacle(found: &StatusReport) -> Option<String> {
    if !found.is_writable {
        return Some(format!("{} is not writable", found.data_dir.display()));
    }
    if let Some(setting) = found.project.excluded_by {
        return Some(format!("{setting} excludes this project"));
    }
    if !found.is_enabled {
        return Some("CLAUDE_MEM_ENABLED is off".into());
    }
    let has_hooks =
        found.hooks.is_plugin || found.hooks.registered.iter().any(|file| file.is_program_there);
    (!has_hooks).then(|| "the hooks are not installed (`claude-mem install`)".into())
}

fn is_recorded(found: &StatusReport) -> bool {
    found.is_enabled && found.project.excluded_by.is_none()
}

fn today(found: &StatusReport) -> String {
    let today = &found.counted.today;
    format!("{} in {}", events(today.events), count(today.sessions, "session"))
}

/// Empty for the built-in prompt.
fn prompt(current: InstructionsSource) -> &'static str {
    match current {
        InstructionsSource::BuiltIn => "",
        InstructionsSource::Own => "your own, in prompts/init.txt",
        InstructionsSource::Adopted => {
            "adopted, in prompts/adopted.txt; go back with `claude-mem replay --prompt default`, \
             or delete that file for new events only"
        }
    }
}

struct Page<'a> {
    text: String,
    output: &'a Output,
}

impl Page<'_> {
    fn line(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            let name = self.output.dim(&format!("{name:>11}"));
            let line = self.output.hanging(13, &format!("{name}  {value}"));
            let _ = writeln!(self.text, "{line}");
        }
    }
}

/// Empty without memories, and if vectors are switched off.
fn vectors(found: &StatusReport, output: &Output) -> String {
    if let Some(problem) = &found.memory.vectors_problem {
        return output.paint(BAD, problem);
    }
    let how = if found.worker.is_running {
        "the worker adds them"
    } else {
        "`claude-mem index` adds them"
    };
    match found.memory.vectors {
        None => String::new(),
        Some(counts) if counts.total == 0 => String::new(),
        Some(counts) if counts.missing == 0 => format!("all {}", number(counts.total)),
        Some(counts) => {
            format!("{} of {} missing; {how}", number(counts.missing), number(counts.total))
        }
    }
}

fn place(found: &StatusReport, output: &Output) -> String {
    let path = found.data_dir.display().to_string();
    match found.is_writable {
        true => path,
        false => {
            format!("{path} {}", output.paint(BAD, "(not writable: nothing is recorded)"))
        }
    }
}

fn shipping(found: &StatusReport, output: &Output) -> String {
    let Some(shipping) = &found.shipping else { return String::new() };
    let mut text = shipping.place.clone();
    if shipping.key.is_some() {
        text.push_str(", encrypted");
    }
    let _ = match (shipping.behind_bytes, &shipping.shipped_at) {
        (_, None) => write!(text, ": no backup yet"),
        (None, Some(at)) => write!(text, ": shipped once, {at}; not saved"),
        (Some(0), _) => write!(text, ": up to date"),
        (Some(behind), _) => write!(text, ": {} behind", bytes(behind)),
    };
    if let Some(error) = &shipping.error {
        let _ = write!(text, " {}", output.paint(BAD, &format!("({error})")));
    }
    text
}

fn backup(found: &StatusReport, output: &Output) -> String {
    let Some(backup) =
        found.backup.as_ref().filter(|backup| backup.copied_at.is_some() || backup.error.is_some())
    else {
        return String::new();
    };
    let mut text = format!("{} of log in {}", bytes(backup.log_bytes), backup.place.display());
    if let Some(error) = &backup.error {
        let _ = write!(text, " {}", output.paint(BAD, &format!("({error})")));
    }
    text
}

fn repaired(found: &StatusReport) -> String {
    let repair = &found.repair;
    match repair.repaired_at {
        Some(time) => {
            let date = time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M");
            format!("{date}: {}", repair.repaired.join("; "))
        }
        None => String::new(),
    }
}

fn memory(memory: &Memory) -> String {
    let Some(counts) = &memory.counts else {
        return memory.problem.clone().unwrap_or_else(|| "not built yet".into());
    };
    let mut text = format!(
        "{}, {}",
        count(counts.observations, "observation"),
        count(counts.summaries, "summary")
    );
    if counts.unfolded > 0 {
        let _ = write!(text, "; {} not indexed yet", events(counts.unfolded));
    }
    if counts.outstanding > 0 {
        let _ = write!(text, "; {} pending", events(counts.outstanding));
    }
    if counts.parked > 0 {
        let _ = write!(
            text,
            "; {} parked after failures (`claude-mem distill retry`)",
            events(counts.parked)
        );
    }
    text
}

/// Whether the database was built from another history of the log.
fn rebuilt(memory: &Memory, output: &Output) -> String {
    if memory.is_rebuild_due {
        let text =
            "due: memory.db has events that the log does not; `claude-mem distill` rebuilds it";
        return output.paint(WARNING, text);
    }
    memory.rebuilt.as_ref().map(|text| output.paint(WARNING, text)).unwrap_or_default()
}

/// The last failure, outages with their remedies, and what could be distilled again.
fn provider(memory: &Memory, output: &Output) -> Vec<String> {
    let mut lines = Vec::new();
    let outages = memory.distilling.iter().flat_map(|distilling| &distilling.outages);
    let is_outage =
        |trouble: &&ProviderFailure| outages.clone().all(|out| out.provider != trouble.provider);
    if let Some(trouble) = memory.trouble.as_ref().filter(is_outage) {
        let text = failed(&trouble.provider, &trouble.message);
        lines.push(format!("{}, {}", output.paint(BAD, &text), local(&trouble.at)));
    }
    let Some(distilling) = &memory.distilling else { return lines };
    if distilling.is_fallback() {
        lines.push(output.paint(
            WARNING,
            "using the built-in rules, because a better provider is not available",
        ));
    }
    for out in &distilling.outages {
        let text = failed(&out.provider, &out.message);
        lines.push(format!("{}, next attempt {}", output.paint(WARNING, &text), out.retry_at));
        lines.push(out.remedy.clone());
    }
    lines.extend(distilling.by_rules.as_ref().map(Redo::line));
    lines
}

/// A message of a provider can be a whole page.
fn failed(provider: &str, message: &str) -> String {
    const CHARS_MAX: usize = 100;
    format!("{provider} fails: {}", cut(message.lines().next().unwrap_or_default(), CHARS_MAX))
}

fn worker(worker: &Worker, output: &Output) -> String {
    let text = worker.summary();
    match worker.status.as_deref() {
        None | Some("ok") => text,
        Some("degraded") => output.paint(WARNING, &text),
        _ => output.paint(BAD, &text),
    }
}

fn recorded(found: &StatusReport) -> String {
    let counted = &found.counted;
    let (Some(first), Some(last)) = (&counted.first, &counted.last) else {
        return "nothing yet".into();
    };
    format!(
        "{} in {} of {}, {} to {}",
        events(counted.events),
        count(counted.sessions, "session"),
        count(counted.projects, "project"),
        local(first),
        local(last)
    )
}

fn kinds(found: &StatusReport) -> String {
    let kinds = found.counted.kinds.iter().map(|(name, count)| format!("{name} {count}"));
    kinds.collect::<Vec<_>>().join(", ")
}

fn project(found: &StatusReport, output: &Output) -> String {
    let label = format!("{} ({})", found.project.label, found.project.key);
    match (found.is_enabled, found.project.excluded_by) {
        (true, None) => format!("{label}: recorded"),
        (_, Some(setting)) => {
            format!(
                "{label}: {}",
                output.paint(WARNING, &format!("not recorded, because of {setting}"))
            )
        }
        (false, None) => format!("{label}: {}", output.paint(WARNING, "not recorded")),
    }
}

fn durability(found: &StatusReport) -> String {
    let durability = &found.durability;
    format!(
        "prompts, stops and ends are on disk {}, tool uses {} (sync={})",
        durability.prompts_stops_ends, durability.tool_uses, durability.sync
    )
}

/// `None` without damage.
fn damage(found: &StatusReport, output: &Output) -> Option<String> {
    let damage = &found.counted.damage;
    let counts = [
        (damage.damaged, "damaged place"),
        (damage.missing_segments, "missing segment"),
        (damage.torn_writes, "unfinished write, never acknowledged"),
        (damage.unknown, "event of a newer version"),
        (damage.unreadable_inputs, "unreadable input, kept"),
        (found.disk.spilled_files as u64, "spilled file"),
    ];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(number, what)| count(number, what))
        .collect();
    match (parts.is_empty(), damage.is_loss()) {
        (true, _) => None,
        (false, true) => Some(output.paint(BAD, &parts.join(", "))),
        (false, false) => Some(parts.join(", ")),
    }
}

fn dropped(found: &StatusReport, output: &Output) -> String {
    let Some(dropped) = &found.dropped else { return String::new() };
    let text = format!("{} could not be recorded", events(dropped.events));
    let last = local(&dropped.last);
    format!("{}, the last at {last}; see `claude-mem doctor`", output.paint(BAD, &text))
}

/// Events that were forgotten and compacted, which is not damage.
fn removed(found: &StatusReport) -> String {
    match found.counted.damage.erased {
        0 => String::new(),
        erased => format!("content of {}, permanently", events(erased)),
    }
}

fn disk(found: &StatusReport) -> String {
    let disk = &found.disk;
    let free = disk.free_bytes.map(|free| format!(", {} free", bytes(free))).unwrap_or_default();
    format!(
        "{} of log in {}, {} in all{free}",
        bytes(disk.log_bytes),
        count(disk.segments, "segment"),
        bytes(disk.data_bytes)
    )
}

/// Each line with whether it reports no problem.
fn hooks(hooks: &Hooks, output: &Output) -> Vec<(String, bool)> {
    let mut lines = Vec::new();
    if hooks.is_plugin {
        lines.push((output.paint(GOOD, "installed as a plugin"), true));
    }
    for found in &hooks.registered {
        let file = found.file.display();
        lines.push(match (found.is_program_there, found.missing.as_slice()) {
            (false, _) => {
                let program = &found.program;
                let text =
                    format!("in {file}, but {program} does not exist: run `claude-mem install`");
                (output.paint(BAD, &text), false)
            }
            (true, []) => (format!("{} in {file}", output.paint(GOOD, "installed")), true),
            (true, missing) => {
                let missing = missing.join(", ");
                let text = format!("in {file}, without {missing}: run `claude-mem install`");
                (output.paint(WARNING, &text), false)
            }
        });
    }
    if lines.is_empty() {
        // The first line contains it already.
        lines.push((output.paint(WARNING, "not installed: run `claude-mem install`"), true));
    }
    lines
}

fn diagnostics(found: &StatusReport) -> String {
    let Some(last) = &found.diagnostics.last else { return String::new() };
    let lines = count(found.diagnostics.lines, "line");
    format!("{lines} in {}, the last: {last}", found.diagnostics.file.display())
}

fn events(number: u64) -> String {
    count(number, "event")
}

fn local(moment: &str) -> String {
    let moment: Timestamp = moment.parse().unwrap_or_default();
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
