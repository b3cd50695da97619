//! The environment of one project is never used for another project.

use claude_mem_tools::{
    client::executable,
    model::{Answer, Request, Server},
};
use serde_json::json;

use crate::{hook_session::HookSession, model::reply, sandbox::Sandbox, serving::until};

/// A gateway that responds to every request.
fn gateway() -> Server {
    Server::answering(|request: &Request| Answer::text(reply("saw", request))).unwrap()
}

/// The environment of a company project, which points to its own gateway.
fn of_project(url: &str) -> Vec<(String, String)> {
    let pairs = [
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_AUTH_TOKEN", "token-of-a"),
        ("ANTHROPIC_API_KEY", "key-of-a"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x-team: a"),
        ("AWS_PROFILE", "a"),
        ("HTTP_PROXY", url),
        ("NODE_OPTIONS", "--no-warnings"),
        ("CLAUDE_CONFIG_DIR", "/nowhere"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "oauth-of-a"),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// One turn in the project of this name, whose hooks have these variables.
fn work(sandbox: &Sandbox, project: &str, variables: &[(String, String)]) {
    let folder = sandbox.home().join(project);
    std::fs::create_dir_all(&folder).unwrap();
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let session = HookSession::new(sandbox, project).in_folder(folder).with(&variables);
    let marker = format!("MARK-{project}");
    session.prompt(&marker);
    let response = json!({"stdout": marker, "stderr": ""});
    session.tool("t", "Bash", &json!({"command": marker}), &response);
    session.stop(&marker);
}

fn has_seen(server: &Server, marker: &str) -> bool {
    server.requests().iter().any(|request| request.all_text().contains(marker))
}

/// The client is the provider, and all projects use the user's own gateway.
fn use_client(sandbox: &Sandbox, url: &str) {
    let settings = json!({
        "CLAUDE_MEM_PROVIDER": "claude",
        "CLAUDE_CODE_PATH": executable().unwrap(),
        "CLAUDE_MEM_CLAUDE_AUTH_METHOD": "api-key",
        "CLAUDE_MEM_WORKER_PORT": "0",
    });
    sandbox.write(".claude-mem/settings.json", &settings.to_string());
    sandbox.use_gateway(url);
}

/// The directory of `node`.
fn path() -> (String, String) {
    ("PATH".into(), std::env::var("PATH").unwrap())
}

#[test]
fn a_worker_that_one_project_starts_serves_no_project_with_its_tokens_and_addresses() {
    let (of_a, of_b, of_user) = (gateway(), gateway(), gateway());
    let sandbox = Sandbox::new();
    use_client(&sandbox, &of_user.url());
    let mut variables = of_project(&of_a.url());
    // Settings in the environment of one project do not apply to another one either.
    for (name, value) in [
        ("CLAUDE_MEM_WORKER_AUTOSTART", "true"),
        ("CLAUDE_MEM_PROVIDER", "openai"),
        ("CLAUDE_MEM_OPENAI_BASE_URL", &format!("{}/v1", of_a.url())),
        ("CLAUDE_MEM_OPENAI_MODEL", "m"),
        ("CLAUDE_MEM_OPENAI_API_KEY", "k"),
    ] {
        variables.push((name.into(), value.into()));
    }
    variables.push(path());
    work(&sandbox, "a", &variables);
    let variables_of_b = of_project(&of_b.url());
    work(&sandbox, "b", &variables_of_b);
    let have_arrived = |markers: [&str; 2]| {
        for gateway in [&of_a, &of_b] {
            assert_eq!(gateway.requests().len(), 0, "nothing goes to the gateway of one project");
        }
        markers.iter().all(|marker| has_seen(&of_user, marker))
    };
    until(|| have_arrived(["MARK-a", "MARK-b"]));
    // The next worker is started from the other project.
    let mut restart = sandbox.command(&["worker", "restart"]);
    let output = restart.envs(variables_of_b.clone()).envs([path()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    work(&sandbox, "a-again", &variables);
    work(&sandbox, "b-again", &variables_of_b);
    until(|| have_arrived(["MARK-a-again", "MARK-b-again"]));
    sandbox.run(&["worker", "stop"]).ok();
}

#[test]
fn a_command_in_one_project_distils_the_others_without_its_tokens_and_addresses() {
    let (of_a, of_user) = (gateway(), gateway());
    let sandbox = Sandbox::new();
    use_client(&sandbox, &of_user.url());
    work(&sandbox, "a", &[]);
    work(&sandbox, "b", &[]);
    let mut command = sandbox.command(&["distill"]);
    command.envs(of_project(&of_a.url())).envs([path()]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(has_seen(&of_user, "MARK-a") && has_seen(&of_user, "MARK-b"));
    assert_eq!(of_a.requests().len(), 0, "nothing goes to the gateway of one project");
}
