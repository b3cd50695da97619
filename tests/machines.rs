//! Several machines that ship to one remote: all have the same memory.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use claude_mem_projections::Store;
use claude_mem_tools::s3::S3Server;
use serde_json::{Value, json};

use crate::{
    folders::{contains, files_below},
    sandbox::{Run, Sandbox},
};

/// Noon of the first day, on a correct clock.
const BEGIN_S: i64 = 1_772_366_400;

/// One machine, with a possibly wrong clock and the repository in its own folder.
pub(crate) struct Machine {
    pub(crate) sandbox: Sandbox,
    name: String,
    skew_s: i64,
    now_s: i64,
    /// The remote that all machines ship to, and its credentials.
    place: String,
    variables: Vec<(String, String)>,
    sessions: usize,
}

impl Machine {
    pub(crate) fn new(
        number: usize,
        skew_s: i64,
        place: &str,
        variables: &[(String, String)],
    ) -> Self {
        let sandbox = Sandbox::new();
        let name = format!("machine-{number}");
        let url = match number % 2 {
            0 => "https://example.org/team/app.git",
            _ => "git@example.org:team/app",
        };
        sandbox.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
        sandbox.write(
            &format!("{name}/.git/config"),
            &format!("[remote \"origin\"]\n\turl = {url}\n"),
        );
        let mut variables = variables.to_vec();
        variables.extend([
            ("CLAUDE_MEM_SHIP_NAME".into(), name.clone()),
            ("CLAUDE_MEM_PROVIDER".into(), "extract".into()),
        ]);
        let place = place.to_owned();
        Self { sandbox, name, skew_s, now_s: BEGIN_S, place, variables, sessions: 0 }
    }

    /// Runs a command one second after the previous one, on this machine's clock.
    fn variables(&mut self) -> Vec<(String, String)> {
        self.now_s += 1;
        let now = jiff::Timestamp::from_second(self.now_s + self.skew_s).unwrap();
        let mut variables = self.variables.clone();
        variables.push(("CLAUDE_MEM_NOW".into(), now.to_string()));
        variables
    }

    pub(crate) fn run(&mut self, arguments: &[&str]) -> Run {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        self.sandbox.run_with(arguments, &variables, "")
    }

    fn hook(&mut self, name: &str, session: &str, mut payload: Value) {
        payload["session_id"] = json!(session);
        payload["cwd"] = json!(self.sandbox.home().join(&self.name));
        let variables = self.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        self.sandbox.hook_with(name, &variables, payload.to_string());
    }

    /// A session about `word`, distilled by rules.
    pub(crate) fn work(&mut self, word: &str) {
        self.sessions += 1;
        let session = format!("{}-{}", self.name, self.sessions);
        let file = self.sandbox.home().join(&self.name).join(format!("src/{word}.rs"));
        let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
        self.hook("context", &session, start);
        let prompt = format!("please make {word} faster");
        self.hook(
            "new",
            &session,
            json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}),
        );
        let used = json!({
            "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_use_id": "t1",
            "tool_input": {"file_path": file, "content": format!("fn {word}() {{}}")},
            "tool_response": {"type": "create", "filePath": file},
        });
        self.hook("save", &session, used);
        let message = format!("{word} is faster now");
        let stop = json!({"hook_event_name": "Stop", "last_assistant_message": message});
        self.hook("summary", &session, stop);
        self.run(&["distill"]).ok();
    }

    pub(crate) fn ship(&mut self) {
        let place = self.place.clone();
        self.run(&["ship", "--to", &place]).ok();
    }

    pub(crate) fn pull(&mut self) -> Vec<Value> {
        let place = self.place.clone();
        let mut arguments = vec!["pull", "--json", "--from", &place];
        // The buckets of these tests are unencrypted.
        arguments.extend(place.contains("://").then_some("--trust"));
        let output = self.run(&arguments).ok();
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The hits of `search` by kind. A turn gives one hit.
    pub(crate) fn find(&mut self, word: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for kind in ["observation", "summary", "prompt"] {
            let hits = self.run(&["search", "--json", "--all-projects", "--kind", kind, word]);
            found.extend(hits.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()));
        }
        found
    }

    /// The rows that must be the same on all machines.
    pub(crate) fn shared(&self) -> String {
        let database = self.sandbox.data().join("memory.db");
        let store = Store::open_read_only(&database).unwrap().unwrap();
        let mut text = Vec::new();
        store.write_shared_dump(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// Every file below the copies of other hosts' logs.
    fn copies(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(&self.sandbox.data().join("foreign"))
    }
}

pub(crate) fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    files_below(dir).into_iter().map(read).collect()
}

/// This many machines that ship to a directory.
fn with_directory(count: usize) -> (tempfile::TempDir, Vec<Machine>) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap().to_owned();
    let skew = |number: usize| [0, 7_300, -86_400][number % 3];
    let machines = (0..count).map(|number| Machine::new(number, skew(number), &place, &[]));
    let machines = machines.collect();
    (dir, machines)
}

#[track_caller]
fn assert_same(machines: &[Machine]) {
    let first = machines[0].shared();
    assert!(first.contains("-- observations"));
    for machine in &machines[1..] {
        let other = machine.shared();
        let mut lines = first.lines().zip(other.lines());
        if let Some((left, right)) = lines.find(|(left, right)| left != right) {
            panic!("{}: {left}\n{}: {right}", machines[0].name, machine.name);
        }
        assert_eq!(first.lines().count(), other.lines().count(), "{}", machine.name);
    }
}

#[test]
fn events_of_one_machine_are_found_on_another_in_the_same_project() {
    let (_place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[1].work("badger");
    machines[0].ship();
    let pulled = machines[1].pull();
    assert_eq!((pulled.len(), &pulled[0]["name"]), (1, &json!("machine-0")));
    let found = machines[1].find("walrus");
    assert!(found.iter().any(|hit| hit["host"] == "machine-0"), "{found:?}");
    let own = machines[1].find("badger");
    assert!(own.iter().all(|hit| hit.get("host").is_none()), "{own:?}");
    assert_eq!(found[0]["project"], own[0]["project"]);
    // Its own row numbers stay small, and events distilled there are not distilled here.
    assert!(own.iter().any(|hit| hit["id"] == "1"), "{own:?}");
    let asked: Value = serde_json::from_str(&machines[1].run(&["distill", "--json"]).ok()).unwrap();
    assert_eq!((&asked["answered"], &asked["events"]), (&json!(0), &json!(0)));
}

#[test]
fn only_new_data_is_downloaded_even_during_a_session() {
    let (_place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[0].ship();
    let first = machines[1].pull()[0]["new_bytes"].as_u64().unwrap();
    assert_eq!(machines[1].pull()[0]["new_bytes"], json!(0));
    machines[0].work("badger");
    machines[0].ship();
    let second = machines[1].pull()[0]["new_bytes"].as_u64().unwrap();
    let whole: usize = files(&machines[0].sandbox.data().join("log"))
        .iter()
        .filter(|(path, _)| path.ends_with("active.log"))
        .map(|(_, bytes)| bytes.len())
        .sum();
    assert_eq!(first + second, whole as u64);
    assert!(!machines[1].find("badger").is_empty());
}

#[test]
fn forgetting_on_one_machine_applies_to_all() {
    let (_place, mut machines) = with_directory(3);
    machines[0].work("walrus");
    machines[0].work("badger");
    machines[0].ship();
    machines[1].pull();
    // The second machine forgets a memory of the first; the third receives both in the wrong order.
    let ids: Vec<String> = machines[1]
        .find("walrus")
        .iter()
        .map(|hit| hit["id"].to_string().trim_matches('"').to_owned())
        .collect();
    let mut forget = vec!["forget", "--yes"];
    forget.extend(ids.iter().map(String::as_str));
    machines[1].run(&forget).ok();
    machines[1].ship();
    machines[2].work("ferret");
    machines[2].ship();
    for machine in &mut machines {
        machine.pull();
        assert!(machine.find("walrus").is_empty(), "{}", machine.name);
        assert!(!machine.find("badger").is_empty(), "{}", machine.name);
    }
    machines[0].pull();
    machines[1].pull();
    assert_same(&machines);
}

#[test]
fn a_faulty_remote_leaves_the_copy_unchanged() {
    let (place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[0].ship();
    machines[1].pull();
    let (before, memory) = (machines[1].copies(), machines[1].shared());
    machines[0].work("badger");
    machines[0].ship();
    let objects = files(place.path());
    let newest = objects.keys().rfind(|path| path.parent().unwrap().ends_with("chain"));
    let newest = newest.unwrap();
    let whole = fs::read(newest).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let older = objects[&newest.with_file_name("0000000000000001")].clone();
    for lie in [flipped, whole[..whole.len() / 2].to_vec(), Vec::new(), older] {
        fs::write(newest, &lie).unwrap();
        let (from, arguments) = (place.path().to_str().unwrap(), ["pull", "--from"]);
        let run = machines[1].run(&[arguments[0], arguments[1], from]);
        assert_eq!(run.code, 1, "{run:?}");
        assert_eq!(machines[1].copies(), before);
        assert_eq!(machines[1].shared(), memory);
    }
    fs::write(newest, &whole).unwrap();
    machines[1].pull();
    assert!(!machines[1].find("badger").is_empty());
}

#[test]
fn a_diverged_history_is_not_pulled() {
    let (place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[0].ship();
    machines[1].pull();
    let before = machines[1].copies();
    // The log is truncated, continues differently, and is shipped from the beginning again.
    let host = fs::read_dir(place.path().join("hosts")).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(&host).unwrap();
    let active = machines[0].sandbox.data().join("log/active.log");
    let bytes = fs::read(&active).unwrap();
    fs::write(&active, &bytes[..64]).unwrap();
    for name in ["ship.json", "log/synced", "memory.db", "memory.db-wal", "memory.db-shm"] {
        let _ = fs::remove_file(machines[0].sandbox.data().join(name));
    }
    for word in ["badger", "ferret"] {
        machines[0].work(word);
        machines[0].ship();
    }
    let from = place.path().to_str().unwrap();
    let run = machines[1].run(&["pull", "--from", from]);
    assert_eq!(run.code, 1, "{run:?}");
    let without_state = |copies: &BTreeMap<PathBuf, Vec<u8>>| {
        copies.clone().into_iter().filter(|(path, _)| !path.ends_with("lock")).collect::<Vec<_>>()
    };
    assert_eq!(without_state(&machines[1].copies()), without_state(&before));
    assert!(!machines[1].find("walrus").is_empty());
}

#[test]
fn a_machine_is_hidden_shown_and_dropped_and_its_forgettings_hold() {
    let (_place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[1].work("badger");
    machines[1].ship();
    machines[0].pull();
    let id = machines[0].find("badger")[0]["id"].to_string();
    machines[0].run(&["forget", "--yes", id.trim_matches('"')]).ok();
    let left = machines[0].find("badger").len();
    machines[0].ship();
    machines[1].pull();
    assert_eq!(machines[1].find("badger").len(), left);
    machines[1].run(&["hosts", "hide", "machine-0"]).ok();
    assert!(machines[1].find("walrus").is_empty());
    assert_eq!(machines[1].find("badger").len(), left);
    machines[1].run(&["hosts", "show", "machine-0"]).ok();
    assert!(!machines[1].find("walrus").is_empty());
    machines[1].run(&["hosts", "confirm", "machine-0"]).ok();
    assert_eq!(machines[1].run(&["hosts", "drop", "machine-0"]).code, 2);
    machines[1].run(&["hosts", "drop", "--yes", "machine-0"]).ok();
    assert!(machines[1].find("walrus").is_empty());
    assert_eq!(machines[1].find("badger").len(), left);
    let copies = machines[1].copies();
    assert!(copies.keys().all(|path| path.ends_with("host.json") || path.ends_with("lock")));
    machines[1].pull();
    assert!(machines[1].find("walrus").is_empty());
    let listed: Value = serde_json::from_str(&machines[1].run(&["hosts", "--json"]).ok()).unwrap();
    assert_eq!((&listed["name"], &listed["is_dropped"]), (&json!("machine-0"), &json!(true)));
    machines[1].run(&["hosts", "show", "machine-0"]).ok();
    machines[1].pull();
    assert!(!machines[1].find("walrus").is_empty());
}

/// A real server. If it cannot be installed, the test fails.
fn real_server() -> S3Server {
    S3Server::start().unwrap_or_else(|error| panic!("there is no S3 server here: {error}"))
}

/// Records, ships and pulls on all machines for some rounds, with machines offline and the server
/// down at times, until every machine has every event.
fn rounds(machines: &mut [Machine], server: &mut S3Server, rounds: Range<usize>) {
    for round in rounds {
        if round == 1 {
            server.stop();
        }
        for number in 0..machines.len() {
            let is_away = (number + round) % 3 == 0;
            machines[number].work(&format!("{}{number}{round}", ["walrus", "badger"][number % 2]));
            if round == 1 {
                let place = machines[number].place.clone();
                assert_eq!(machines[number].run(&["ship", "--to", &place]).code, 1);
            } else if !is_away {
                machines[number].ship();
                machines[number].pull();
            }
        }
        if round == 1 {
            server.start_again().unwrap();
        }
    }
}

fn converge(machines: &mut [Machine]) {
    for machine in machines.iter_mut() {
        machine.ship();
    }
    for machine in machines.iter_mut() {
        machine.pull();
    }
}

fn converging(count: usize) {
    let mut server = real_server();
    let (place, variables) = (server.place("shared"), server.variables());
    // One clock is two hours ahead, one a day behind, one ten years ahead.
    let skews = [0, 7_200, -86_400, 315_360_000, -3];
    let mut machines: Vec<Machine> =
        (0..count).map(|number| Machine::new(number, skews[number], &place, &variables)).collect();
    rounds(&mut machines, &mut server, 0..3);
    converge(&mut machines);
    assert_same(&machines);
    let last = count - 1;
    let found = machines[last].find("walrus00");
    assert!(!found.is_empty());
    let ids: Vec<String> =
        found.iter().map(|hit| hit["id"].to_string().trim_matches('"').to_owned()).collect();
    let mut forget = vec!["forget", "--yes"];
    forget.extend(ids.iter().map(String::as_str));
    machines[last].run(&forget).ok();
    rounds(&mut machines, &mut server, 3..4);
    converge(&mut machines);
    assert_same(&machines);
    for machine in &mut machines {
        assert!(machine.find("walrus00").is_empty(), "{}", machine.name);
        machine.run(&["replay", "--offline"]).ok();
    }
    assert_same(&machines);
}

#[test]
fn two_machines_and_a_real_bucket_come_to_the_same_memory() {
    converging(2);
}

#[test]
fn five_machines_and_a_real_bucket_come_to_the_same_memory() {
    converging(5);
}

#[test]
fn forgotten_events_leave_every_copy_when_their_machine_compacts() {
    let (place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[0].work("badger");
    machines[0].work("ferret");
    machines[0].ship();
    machines[1].pull();
    let holds = |dir: &Path| {
        let found = files(dir);
        let is_forgotten = |part: &[u8]| part == b"walrus" || part == b"ferret";
        found.values().any(|bytes| bytes.windows(6).any(is_forgotten))
    };
    let copies = machines[1].sandbox.data().join("foreign");
    assert!(holds(&copies));
    machines[1].run(&["forget", "--yes", "--session", "machine-0-1"]).ok();
    machines[1].run(&["forget", "--yes", "--text", "ferret"]).ok();
    machines[1].ship();
    machines[0].pull();
    // Hidden at once; erased only after the machine is confirmed.
    machines[0].run(&["compact"]).ok();
    assert!(machines[0].find("walrus").is_empty() && machines[0].find("ferret").is_empty());
    assert!(holds(&machines[0].sandbox.data().join("log")));
    machines[0].run(&["hosts", "confirm", "machine-1"]).ok();
    machines[0].run(&["compact"]).ok();
    assert!(!holds(&machines[0].sandbox.data().join("log")));
    machines[0].ship();
    machines[1].pull();
    assert!(!holds(&copies));
    assert!(!holds(place.path()));
    assert!(!machines[1].find("badger").is_empty());
}

#[test]
fn a_remote_that_others_can_write_to_is_pulled_only_if_trusted_once() {
    let (place, mut machines) = with_directory(2);
    machines[0].work("walrus");
    machines[0].ship();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let from = place.path().to_str().unwrap();
    let error = machines[1].run(&["pull", "--from", from]).fails(1);
    assert!(error.contains("others may be able to write to it") && error.contains("--trust"));
    assert!(machines[1].find("walrus").is_empty());
    machines[1].run(&["pull", "--from", from, "--trust"]).ok();
    machines[1].run(&["pull", "--from", from]).ok();
    assert!(!machines[1].find("walrus").is_empty());
}

#[test]
fn the_context_names_the_machine_and_has_none_of_its_secrets() {
    let (_place, mut machines) = with_directory(2);
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    machines[0].variables.push(("CLAUDE_MEM_REDACT_SECRETS".into(), "false".into()));
    let note = format!("deploy with {token}");
    machines[0].run(&["remember", "--global", &note]).ok();
    machines[0].ship();
    machines[1].pull();
    machines[1].work("badger");
    let page = machines[1].run(&["context"]).stdout;
    assert!(page.contains("on machine-0") && page.contains("deploy with"), "{page}");
    let shown = machines[1].run(&["show", "1000000001", "--json"]).ok();
    let found = format!("{:?}", machines[1].find("deploy"));
    let database = fs::read(machines[1].sandbox.data().join("memory.db")).unwrap();
    for text in [page.as_bytes(), shown.as_bytes(), found.as_bytes(), &database] {
        assert!(!contains(text, &token), "{}", String::from_utf8_lossy(text));
    }
}
