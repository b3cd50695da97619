//! The top-level modules of a crate have no dependency cycles.
//!
//! Cargo forbids cycles between crates, but not within one. The paths in the code (`crate::x`,
//! `super::x`, and names that the crate root re-exports) form the graph. Tests do not count.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The root files of the checked crates.
const CRATES: &[&str] = &[
    "log/src/lib.rs",
    "log/events/src/lib.rs",
    "projections/src/lib.rs",
    "src/main.rs",
    "src/capture/lib.rs",
    "src/core/lib.rs",
    "src/distill/lib.rs",
    "src/embed/lib.rs",
    "src/import/lib.rs",
    "src/install/lib.rs",
    "src/maintenance/lib.rs",
    "src/memory/lib.rs",
    "src/model/lib.rs",
    "src/privacy/lib.rs",
    "src/server/lib.rs",
    "src/sync/lib.rs",
    "src/vectors/lib.rs",
    "tools/src/lib.rs",
];

#[test]
fn top_level_modules_of_a_crate_form_no_cycle() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut failures = Vec::new();
    for root in CRATES {
        let graph = module_graph(&workspace.join(root));
        if let Some(cycle) = find_cycle(&graph) {
            failures.push(format!("{root}: {}", cycle.join(" -> ")));
        }
    }
    assert!(failures.is_empty(), "modules in a circle:\n{}", failures.join("\n"));
}

#[test]
fn a_planted_cycle_is_found() {
    let crate_with = |files: &[(&str, &str)]| {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        find_cycle(&module_graph(&dir.path().join("lib.rs")))
    };
    let root = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::{Name, other as Alias};\n");
    let one_way = [
        root,
        ("a/mod.rs", "mod inner;\nuse crate::b::Thing;\n"),
        ("a/inner.rs", "use super::Other;\nuse crate::a;\n"),
        ("b.rs", "use crate::{\n    c::{self, Third},\n};\n// crate::a is only named here\n"),
        ("c.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        ("c/tests.rs", "use crate::a::inner;\n"),
    ];
    assert_eq!(crate_with(&one_way), None);
    for closing in [
        "fn f() { crate::a::inner::g() }",
        "use crate::{a::inner::{g}, b};",
        "use super::a;",
        "#[cfg(test)]\nuse crate::b;\nuse crate::a;",
    ] {
        let mut files = one_way;
        files[4].1 = closing;
        assert!(crate_with(&files).is_some(), "{closing}");
    }
    // `b` needs `c` already; here `c` is reached by a name that the root re-exports.
    for reexported in ["use crate::Name;", "fn f() -> crate::Alias {}"] {
        let mut files = one_way;
        files[3].1 = reexported;
        files[4].1 = "use crate::b;";
        assert!(crate_with(&files).is_some(), "{reexported}");
    }
}

/// The dependencies of each top-level module.
fn module_graph(root: &Path) -> Graph {
    let text = without_comments_and_tests(&fs::read_to_string(root).unwrap());
    let declared = |line: &str| {
        let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        Some(line.strip_prefix("mod ")?.split([';', ' ', '{']).next()?.to_owned())
    };
    let modules: BTreeSet<String> = text.lines().filter_map(declared).collect();
    // The names that the root re-exports from a module.
    let mut reexports = BTreeMap::new();
    for statement in text.split(';') {
        let (_, path) = statement.rsplit_once("use ").unwrap_or_default();
        let mut names = path.split(|c| !is_word(c)).filter(|name| *name != "crate");
        if let Some(module) = names.next().filter(|name| modules.contains(*name)) {
            reexports.extend(names.map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    let mut graph = Graph::new();
    for module in &modules {
        let edges = graph.entry(module.clone()).or_default();
        for (file, depth) in files_of(root.parent().unwrap(), module) {
            let text = without_comments_and_tests(&fs::read_to_string(file).unwrap());
            for name in names_below_root(&text, depth) {
                let target = if modules.contains(name) {
                    Some(name)
                } else {
                    reexports.get(name).map(String::as_str)
                };
                edges.extend(target.filter(|target| target != module).map(str::to_owned));
            }
        }
    }
    graph
}

/// The files of a top-level module, each with its depth: the number of `super` to the root.
fn files_of(dir: &Path, module: &str) -> Vec<(PathBuf, usize)> {
    let mut files = Vec::new();
    let file = dir.join(format!("{module}.rs"));
    files.extend(file.exists().then_some((file, 1)));
    let mut folders = vec![(dir.join(module), 1)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("tests") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push((entry.path(), depth + 1));
            } else if name == "mod.rs" {
                files.push((entry.path(), depth));
            } else if name.ends_with(".rs") {
                files.push((entry.path(), depth + 1));
            }
        }
    }
    files
}

/// The first step below the crate root of every path: `a` and `b` in `crate::{a::c, b}`.
fn names_below_root(text: &str, depth: usize) -> Vec<&str> {
    let mut names = Vec::new();
    let supers = "super::".repeat(depth);
    for prefix in ["crate::", supers.as_str()] {
        for (at, _) in text.match_indices(prefix) {
            let before = text[..at].chars().next_back().unwrap_or(' ');
            if is_word(before) || before == ':' {
                continue;
            }
            let rest = &text[at + prefix.len()..];
            let (mut level, mut is_first) = (0, true);
            for (at, c) in rest.char_indices() {
                match c {
                    '{' => level += 1,
                    '}' => level -= 1,
                    ',' => is_first |= level == 1,
                    c if is_word(c) && level < 2 && is_first => {
                        is_first = false;
                        names.push(rest[at..].split(|c| !is_word(c)).next().unwrap());
                    }
                    _ => {}
                }
                if level == 0 && !is_first {
                    break;
                }
            }
        }
    }
    names
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Removes comments and every item or statement under `#[cfg(test)]`.
fn without_comments_and_tests(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
    let mut kept = String::new();
    let mut lines = lines.into_iter();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let mut depth = 0_i32;
        for line in lines.by_ref() {
            depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            let is_end = line.trim_end().ends_with([';', '}', ',']);
            if depth <= 0 && is_end {
                break;
            }
        }
    }
    kept
}

fn find_cycle(graph: &Graph) -> Option<Vec<String>> {
    fn visit(
        graph: &Graph,
        module: &str,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|earlier| earlier == module) {
            let mut cycle = path[start..].to_vec();
            cycle.push(module.to_owned());
            return Some(cycle);
        }
        if done.contains(module) {
            return None;
        }
        path.push(module.to_owned());
        let found = graph[module].iter().find_map(|next| visit(graph, next, path, done));
        path.pop();
        done.insert(module.to_owned());
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|module| visit(graph, module, &mut Vec::new(), &mut done))
}
