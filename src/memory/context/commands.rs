//! Commands that succeeded in earlier sessions, and which to use instead of others.

use std::collections::HashSet;

use claude_mem_projections::ContextObservation;

/// Start of a fact that lists commands that succeeded, each in backticks.
pub const WORKS_HERE: &str = "Works here: ";
/// Start of the title of an observation about a failed command and its replacement.
pub(super) const USE_INSTEAD: &str = "Use `";

/// Longer commands are too specific to be used again.
const COMMAND_CHARS_MAX: usize = 90;
/// Sessions beyond this number do not make a command more useful.
const SESSIONS_MAX: usize = 5;

/// The commands of the facts: those used in most sessions first, then the latest. Of commands that
/// differ only in their options, the first is kept.
pub(super) fn that_work(observations: &[ContextObservation], count: usize) -> Vec<String> {
    let mut found: Vec<(&str, HashSet<Option<i64>>)> = Vec::new();
    for memory in observations {
        let facts = memory.facts.iter().filter_map(|fact| fact.strip_prefix(WORKS_HERE));
        for command in facts.flat_map(commands) {
            match found.iter_mut().find(|(known, _)| *known == command) {
                Some((_, sessions)) => _ = sessions.insert(memory.session),
                None => found.push((command, HashSet::from([memory.session]))),
            }
        }
    }
    found.sort_by_key(|(_, sessions)| std::cmp::Reverse(sessions.len().min(SESSIONS_MAX)));
    let mut seen = HashSet::new();
    let commands = found.into_iter().map(|(command, _)| command);
    commands
        .filter(|command| command.chars().count() <= COMMAND_CHARS_MAX)
        .filter(|command| seen.insert(core(command)))
        .take(count)
        .map(str::to_owned)
        .collect()
}

/// The commands of a fact, with the folder if one is named.
fn commands(fact: &str) -> impl Iterator<Item = &str> {
    let mut rest = fact;
    std::iter::from_fn(move || {
        let start = rest.find('`')?;
        let mut end = start + 1 + rest[start + 1..].find('`')? + 1;
        let folder = rest[end..].strip_prefix(" in `").and_then(|folder| folder.find('`'));
        end += folder.map_or(0, |len| " in `".len() + len + 1);
        let command = &rest[start..end];
        rest = &rest[end..];
        Some(command)
    })
}

/// The first words of a command without its folder, variables and options.
fn core(command: &str) -> Vec<&str> {
    let words = command.trim_matches('`').split('`').next().unwrap_or(command).split_whitespace();
    let words = words.filter(|word| !word.starts_with('-') && !is_variable(word));
    words.take(3).collect()
}

fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

/// Which command to use instead of another: those from most sessions first, then the latest. Of
/// several about the same command, the latest is kept.
pub(super) fn to_use_instead(observations: &[ContextObservation]) -> Vec<&ContextObservation> {
    let mut found: Vec<(&str, &ContextObservation, HashSet<Option<i64>>)> = Vec::new();
    for memory in observations {
        let Some(wrong) = wrong_command(&memory.title) else { continue };
        match found.iter_mut().find(|(known, ..)| *known == wrong) {
            Some((_, _, sessions)) => _ = sessions.insert(memory.session),
            None => found.push((wrong, memory, HashSet::from([memory.session]))),
        }
    }
    found.sort_by_key(|(_, _, sessions)| std::cmp::Reverse(sessions.len().min(SESSIONS_MAX)));
    found.into_iter().map(|(_, memory, _)| memory).collect()
}

/// The first two words of the command that a title advises against.
fn wrong_command(title: &str) -> Option<&str> {
    let (_, wrong) = title.strip_prefix(USE_INSTEAD)?.split_once("`, not `")?;
    let wrong = wrong.split('`').next()?;
    let mut spaces = wrong.match_indices(' ').map(|(at, _)| at);
    Some(spaces.nth(1).map_or(wrong, |end| &wrong[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(session: i64, title: &str, fact: &str) -> ContextObservation {
        ContextObservation {
            session: Some(session),
            title: title.into(),
            facts: vec![fact.into()],
            ..ContextObservation::default()
        }
    }

    #[test]
    fn commands_of_most_sessions_come_first_and_options_make_no_other_command() {
        let rows = [
            memory(3, "a", "Works here: `go build -v ./cmd` in `go`, `make lint`"),
            memory(2, "b", "Works here: `bun test` (12 passed), `CGO=0 go build ./cmd` in `go`"),
            memory(1, "c", "Works here: `bun test`, `unclosed"),
            memory(1, "d", "Works: `no`"),
        ];
        let found = that_work(&rows, 9);
        assert_eq!(found, ["`bun test`", "`go build -v ./cmd` in `go`", "`make lint`"]);
        assert_eq!(that_work(&rows, 1), ["`bun test`"]);
    }

    #[test]
    fn a_command_to_avoid_is_named_once() {
        let rows = [
            memory(4, "Use `gmake`, not `make`: not found", ""),
            memory(3, "Use `bun run test`, not `wrap bun run test`: unrecognized", ""),
            memory(2, "Use `bun run lint`, not `wrap bun run lint`: unrecognized", ""),
            memory(1, "Use WAL", ""),
        ];
        let titles: Vec<_> = to_use_instead(&rows).iter().map(|memory| &*memory.title).collect();
        assert_eq!(titles, [&*rows[1].title, &*rows[0].title]);
    }
}
