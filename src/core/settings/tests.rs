//! Tests of loading, storing and reporting settings.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{table::*, *};

struct Case {
    dir: tempfile::TempDir,
    environment: Environment,
}

fn case(file: &str, environment: &[(&str, &str)]) -> Case {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("settings.json"), file).unwrap();
    Case { dir, environment: Environment::fixed(environment) }
}

impl Case {
    fn paths(&self) -> Paths {
        Paths { home: None, data: self.dir.path().into() }
    }
    fn load(&self) -> Settings {
        Settings::load(&self.paths(), &self.environment)
    }
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let case = case(
        r#"{"CLAUDE_MEM_MODEL": "from-file", "CLAUDE_MEM_PROVIDER": "openai"}"#,
        &[("CLAUDE_MEM_PROVIDER", "extract"), ("CLAUDE_MEM_MODE", "")],
    );
    let settings = case.load();
    assert_eq!(settings.find(&PROVIDER), ("extract".into(), Source::Environment));
    assert_eq!(settings.find(&MODEL), ("from-file".into(), Source::File));
    assert_eq!(settings.find(&MODE), ("code".into(), Source::Default));
}

#[test]
fn numbers_booleans_lists_a_mark_and_the_old_nesting_are_understood() {
    let file =
        "\u{feff}{\"env\": {\"CLAUDE_MEM_CONTEXT_OBSERVATIONS\": 40, \"CLAUDE_MEM_MODE\": \"old\"},
        \"CLAUDE_MEM_WORKER_AUTOSTART\": false, \"CLAUDE_MEM_MODE\": \"new\",
        \"CLAUDE_MEM_SKIP_TOOLS\": [\"Read\", \"Bash\"], \"CLAUDE_MEM_LANGUAGE\": null}";
    let settings = case(file, &[]).load();
    assert_eq!(settings.get(&CONTEXT_OBSERVATIONS), 40);
    assert!(!settings.get(&WORKER_AUTOSTART));
    assert_eq!(settings.get(&MODE), "new");
    assert_eq!(settings.get(&SKIP_TOOLS), ["Read", "Bash"]);
    assert_eq!(settings.find(&LANGUAGE).1, Source::Default);
}

#[test]
fn an_invalid_value_is_replaced_by_the_next_source() {
    let settings =
        case(r#"{"CLAUDE_MEM_SYNC": "always"}"#, &[("CLAUDE_MEM_SYNC", "sometimes")]).load();
    assert_eq!(settings.find(&SYNC), ("always".into(), Source::File));
    let Refused { given, accepted } = settings.refused(&SYNC).unwrap();
    assert_eq!((given.as_str(), accepted.as_str()), ("sometimes", "one of `default`, `always`"));
}

#[test]
fn an_unusable_file_is_left_alone_and_logged() {
    for broken in ["{\"a\": ", "[1]", "null", "\u{0}\u{1}"] {
        let case = case(broken, &[("CLAUDE_MEM_MODEL", "still-wins")]);
        let settings = case.load();
        assert!(settings.is_unknown() && !settings.get(&ENABLED));
        assert_eq!(settings.get(&PROVIDER), ProviderName::Extract, "nothing leaves this machine");
        assert_eq!(settings.get(&MODEL), "still-wins");
        assert_eq!(case.read("settings.json"), broken);
        assert!(case.read("logs/claude-mem.log").contains("settings.json cannot be used"));
        assert!(keep(&case.paths(), &MODEL, Some("x")).is_err());
        assert_eq!(case.read("settings.json"), broken);
    }
}

#[test]
fn an_unusable_file_is_replaced_by_the_last_one_that_could_be_read() {
    let case = case(r#"{"CLAUDE_MEM_EXCLUDED_PROJECTS": "~/secret"}"#, &[]);
    assert_eq!(case.load().problems(), [""; 0]);
    for broken in ["", " \n", "{\"CLAUDE_MEM_EXCLUDED_PROJECTS\": \"~/secret\",}", "{\"env\": 1}"] {
        fs::write(case.paths().settings(), broken).unwrap();
        let settings = case.load();
        assert_eq!(settings.find(&EXCLUDED_PROJECTS).0, "~/secret", "{broken}");
        assert!(settings.get(&ENABLED) && !settings.is_unknown());
        let problems = settings.problems();
        assert!(problems[0].contains("last read without an error"), "{problems:?}");
    }
    fs::remove_file(case.paths().settings()).unwrap();
    assert_eq!(case.load().find(&EXCLUDED_PROJECTS).0, "~/secret", "the file is missing");
    keep(&case.paths(), &MODEL, Some("x")).unwrap();
    assert_eq!(case.load().find(&EXCLUDED_PROJECTS).0, "~/secret", "it was written again");
    fs::remove_file(case.paths().settings()).unwrap();
    fs::write(case.dir.path().join("settings.good"), "damaged").unwrap();
    assert!(case.load().is_unknown());
    fs::write(case.paths().settings(), "{}").unwrap();
    assert_eq!(case.load().find(&EXCLUDED_PROJECTS).0, "", "a reset");
}

#[test]
fn an_invalid_privacy_setting_takes_its_most_private_value() {
    let cases: [(&str, &dyn AnySetting, &str); 12] = [
        ("{\"CLAUDE_MEM_ENABLED\": \"flase\"}", &ENABLED, "false"),
        ("{\"CLAUDE_MEM_ENABLED\": {}}", &ENABLED, "false"),
        ("{\"CLAUDE_MEM_REDACT_SECRETS\": \"ture\"}", &REDACT_SECRETS, "true"),
        ("{\"CLAUDE_MEM_PROVIDER\": \"extrct\"}", &PROVIDER, "extract"),
        ("{\"CLAUDE_MEM_SKIP_TOOLS\": 7}", &SKIP_TOOLS, ""),
        ("{\"CLAUDE_MEM_EXCLUDED_PROJECTS\": {\"~/secret\": true}}", &EXCLUDED_PROJECTS, ""),
        ("{\"CLAUDE_MEM_EXCLUDED_PROJECTS\": \"~/[s]ecret\"}", &EXCLUDED_PROJECTS, ""),
        ("{\"CLAUDE_MEM_EXCLUDED_PROJECTS\": [\"~/a,b\"]}", &EXCLUDED_PROJECTS, ""),
        ("{\"CLAUDE_MEM_DISABLED_PROJECTS\": [[1]]}", &DISABLED_PROJECTS, ""),
        ("{\"CLAUDE_MEM_EXCLUDE_PROJECTS\": \"~/secret\"}", &EXCLUDED_PROJECTS, ""),
        ("{\"CLAUDE_MEM_ENBALED\": false}", &ENABLED, "false"),
        ("{\"claude_mem_enabled\": false}", &ENABLED, "false"),
    ];
    for (written, setting, closed) in cases {
        let settings = case(written, &[]).load();
        assert_eq!(settings.find(setting).0, closed, "{written}");
        assert!(settings.is_doubtful(setting), "{written}");
        assert!(settings.problems()[0].contains(setting.name()), "{written}");
    }
    for (setting, closed) in
        ALL.iter().filter_map(|setting| Some((setting, setting.closed_text()?)))
    {
        assert_eq!(setting.check(&closed), Ok(closed), "{}", setting.name());
    }
    let other = r#"{"CLAUDE_MEM_ENABLED_X": 1, "CLAUDE_MEM_MODEL": "m", "CLAUDE_MEM_ENABLED": true,
        "CLAUDE_MEM_ENABLE": false}"#;
    assert_eq!(case(other, &[]).load().problems(), [""; 0], "the right key is there");
    let environment = [("CLAUDE_MEM_ENABLED", "flase")];
    assert!(!case(r#"{"CLAUDE_MEM_ENABLED": true}"#, &environment).load().get(&ENABLED));
}

#[test]
fn keeping_a_value_keeps_the_keys_we_do_not_know() {
    let case = case(r#"{"z": {"deep": 1}, "CLAUDE_MEM_MODEL": "a", "b": "2"}"#, &[]);
    keep(&case.paths(), &MODEL, Some("other")).unwrap();
    keep(&case.paths(), &SYNC, Some("always")).unwrap();
    keep(&case.paths(), &MODE, None).unwrap();
    let compact: Value = serde_json::from_str(&case.read("settings.json")).unwrap();
    assert_eq!(
        compact.to_string(),
        r#"{"z":{"deep":1},"CLAUDE_MEM_MODEL":"other","b":"2","CLAUDE_MEM_SYNC":"always"}"#
    );
    keep(&case.paths(), &MODEL, None).unwrap();
    assert_eq!(case.load().find(&MODEL).1, Source::Default);
}

#[test]
fn a_value_in_the_old_nesting_can_be_removed() {
    let case = case(r#"{"env": {"CLAUDE_MEM_MODEL": "a", "other": 1}}"#, &[]);
    assert_eq!(case.load().get(&MODEL), "a");
    keep(&case.paths(), &MODEL, None).unwrap();
    assert_eq!(case.load().find(&MODEL).1, Source::Default);
    let left: Value = serde_json::from_str(&case.read("settings.json")).unwrap();
    assert_eq!(left, serde_json::json!({"env": {"other": 1}}));
}

#[test]
fn a_key_in_the_callers_environment_is_never_ours() {
    let case = case("{}", &[("ANTHROPIC_API_KEY", "sk-of-a-project")]);
    assert_eq!(case.load().get(&ANTHROPIC_API_KEY), "");
    fs::write(case.paths().credentials(), "# mine\nexport ANTHROPIC_API_KEY=\"sk-mine\"\n")
        .unwrap();
    let found = case.load().find(&ANTHROPIC_API_KEY);
    assert_eq!(found, ("sk-mine".into(), Source::Credentials));
}

#[test]
fn a_key_is_stored_separately_and_only_its_owner_can_read_it() {
    let case = case(r#"{"CLAUDE_MEM_OPENAI_API_KEY": "sk-old"}"#, &[]);
    assert_eq!(case.load().get(&OPENAI_API_KEY), "sk-old");
    keep(&case.paths(), &OPENAI_API_KEY, Some("sk-new")).unwrap();
    assert_eq!(case.load().find(&OPENAI_API_KEY), ("sk-new".into(), Source::Credentials));
    assert!(!case.read("settings.json").contains("sk-"));
    let mode = fs::metadata(case.paths().credentials()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    keep(&case.paths(), &OPENAI_API_KEY, None).unwrap();
    assert_eq!(case.load().get(&OPENAI_API_KEY), "");
}

#[test]
fn a_number_out_of_range_is_reported_and_the_default_is_used() {
    let file = r#"{"CLAUDE_MEM_MAX_CONCURRENT_AGENTS": 65, "CLAUDE_MEM_WORKER_PORT": "65536",
        "CLAUDE_MEM_DAILY_COST_MAX": -1, "CLAUDE_MEM_FIELD_BYTES_MAX": "1023"}"#;
    let settings = case(file, &[]).load();
    assert_eq!(settings.get(&MAX_CONCURRENT_AGENTS), 2);
    assert_eq!(settings.get(&WORKER_PORT), 37777);
    assert_eq!(settings.get(&DAILY_COST_MAX).to_bits(), 2.0_f64.to_bits());
    assert_eq!(settings.find(&FIELD_BYTES_MAX), ("262144".into(), Source::Default));
    let refused = Refused { given: "65".into(), accepted: "a whole number from 1 to 64".into() };
    assert_eq!(settings.refused(&MAX_CONCURRENT_AGENTS), Some(refused));
    let all: [&dyn AnySetting; 4] =
        [&MAX_CONCURRENT_AGENTS, &WORKER_PORT, &DAILY_COST_MAX, &FIELD_BYTES_MAX];
    assert!(all.iter().all(|setting| settings.refused(*setting).is_some()));
    assert_eq!(settings.problems(), [""; 0], "none of them is about privacy");
}

thread_local! {
    static PARSED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Counts how often it is parsed.
struct Counted(String);

impl SettingValue for Counted {
    type Spec = ();
    fn of_spec((): ()) -> Self {
        Self("default".into())
    }
    fn parse((): (), text: &str) -> Result<Self, String> {
        PARSED.set(PARSED.get() + 1);
        Ok(Self(text.into()))
    }
    fn to_text(&self) -> String {
        self.0.clone()
    }
    fn kind((): ()) -> Kind {
        Kind::Text
    }
}

#[test]
fn a_value_is_parsed_once_and_a_default_never() {
    static COUNTED: Setting<Counted> =
        Setting::new("CLAUDE_MEM_COUNTED", (), (Group::Worker, "Counted", "Counted."));
    assert_eq!(case("{}", &[]).load().get(&COUNTED).0, "default");
    assert_eq!(PARSED.get(), 0);
    let settings = case(r#"{"CLAUDE_MEM_COUNTED": "x"}"#, &[("CLAUDE_MEM_COUNTED", "y")]).load();
    assert_eq!(settings.get(&COUNTED).0, "y");
    assert_eq!(PARSED.get(), 1);
}
