//! `claude-mem viewer`: open the viewer in a browser.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use clap::Args;
use serde_json::Value;

use claude_mem_core::{
    app::App,
    environment::Environment,
    failure::Failure,
    os,
    paths::Paths,
    user_file::{self, Readers},
};
use claude_mem_projections::search::MemoryId;
use claude_mem_server::{
    instance::Instance,
    worker::client::{self, Started},
};

/// A healthy worker responds at once.
const RESPONSE_MAX: Duration = Duration::from_secs(5);

/// Open the viewer in your browser
///
/// Opens the feed, a memory (`42`, `S3`, `P9`) or a page: `stats`, `sessions`, `settings`,
/// `health`. Starts the worker if needed, and opens a link that works once, within a minute. From
/// then on the browser can open the viewer and its bookmarks by itself, until it does not for 30
/// days. The link is passed in a file that only you can read, because other users can see command
/// lines.
#[derive(Debug, Args)]
pub(crate) struct Viewer {
    /// A memory, a page, or a path of the viewer [default: the feed]
    #[arg(value_name = "PAGE")]
    page: Option<String>,
    /// Print the link instead of opening it
    #[arg(long)]
    print: bool,
    /// Lock the viewer in all browsers first; restarts the worker
    #[arg(long)]
    reset: bool,
}

impl Viewer {
    /// Prints the link if no browser can be opened.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let path = self.page.as_deref().map(path).transpose()?.unwrap_or_default();
        let dir = &app.paths.data;
        app.paths.create_data().map_err(|error| Failure::no_directory(dir, &error))?;
        if self.reset {
            // Their keys end with the worker, and without the file they get no new ones.
            client::stop(dir)?;
            forget_browsers(&app.paths)?;
        }
        let (Started::New(worker) | Started::InsteadOf(worker, _) | Started::AlreadyThere(worker)) =
            client::ensure(&app.paths.data)?;
        let link = link(&worker)? + &path;
        if self.print {
            return app.output.line(link);
        }
        match browser(&app.environment) {
            Some(program) if open(&program, &page(&app.paths, &link)?) => {
                app.output.say(format_args!("opened {} in your browser", worker.url()));
                app.output.say("if nothing appears: `claude-mem viewer --print`");
                Ok(())
            }
            _ => {
                app.output.say("no browser found; open this link within a minute:");
                app.output.line(link)
            }
        }
    }
}

/// Deletes the public keys of all browsers.
fn forget_browsers(paths: &Paths) -> Result<(), Failure> {
    let file = paths.viewer_browsers();
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new(format!("{} cannot be deleted: {error}", file.display()))
                .meaning("the browsers in it can still open the viewer"))
        }
        _ => Ok(()),
    }
}

/// Pages by name, and their paths.
const PAGES: [(&str, &str); 12] = [
    ("feed", "/"),
    ("sessions", "/s"),
    ("projects", "/p"),
    ("decisions", "/decisions"),
    ("files", "/files"),
    ("stats", "/stats"),
    ("context", "/context"),
    ("replay", "/replay"),
    ("settings", "/settings"),
    ("health", "/log"),
    ("log", "/events"),
    ("events", "/events"),
];

/// The path of a page. In the link it follows the secret, where the page looks for it.
fn path(page: &str) -> Result<String, Failure> {
    if page.starts_with('/') && !page.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Ok(page.to_owned());
    }
    if let Ok(memory) = page.trim_start_matches('#').parse::<MemoryId>() {
        return Ok(format!("/m/{memory}"));
    }
    let known = PAGES.iter().find(|(name, _)| *name == page);
    known.map(|(_, path)| (*path).to_owned()).ok_or_else(|| {
        let names: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        Failure::usage(format!("there is no page `{page}`"))
            .remedy(format!("pass the ID of a memory, or one of {}", names.join(", ")))
    })
}

/// Requests a link from the worker, authorized by the token in worker.json.
fn link(worker: &Instance) -> Result<String, Failure> {
    let refused = |message: String| {
        Failure::new(format!("the worker did not return a link: {message}"))
            .remedy("restart it with `claude-mem worker restart`")
    };
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(RESPONSE_MAX))
        // No proxy may see the token.
        .proxy(None)
        .build();
    let request = config.new_agent().post(format!("{}/api/viewer/link", worker.url()));
    let request = request.header("authorization", format!("Bearer {}", worker.token));
    let mut response = request.send_empty().map_err(|error| refused(error.to_string()))?;
    let body = response.body_mut().read_json::<Value>();
    let body = body.map_err(|error| refused(error.to_string()))?;
    let field = |name: &str| body[name].as_str().map(ToOwned::to_owned);
    field("url").ok_or_else(|| refused(field("message").unwrap_or_default()))
}

/// The program that opens links, if there is a display.
fn browser(environment: &Environment) -> Option<OsString> {
    if let Some(chosen) = environment.get("BROWSER") {
        return Some(chosen);
    }
    os::link_opener(environment).map(Into::into)
}

/// Writes a file that redirects the browser to the link. Other users can read command lines, so the
/// link must not be on one.
fn page(paths: &Paths, link: &str) -> Result<PathBuf, Failure> {
    let file = paths.viewer_page();
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>claude-mem</title>\n"
    );
    // Overwriting would keep the permissions of an existing file.
    let _ = fs::remove_file(&file);
    match user_file::write(&file, text.as_bytes(), Readers::Owner) {
        Ok(()) => Ok(file),
        Err(error) => Err(Failure::new(format!("{} cannot be written: {error}", file.display()))
            .remedy("print the link instead with `claude-mem viewer --print`")),
    }
}

/// Whether the browser was started. Its exit status is ignored.
fn open(program: &OsString, page: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_opens_if_there_is_a_display_or_it_is_configured() {
        let with = |variables: &[(&str, &str)]| browser(&Environment::fixed(variables));
        assert_eq!(with(&[("BROWSER", "lynx"), ("DISPLAY", ":0")]), Some("lynx".into()));
        if cfg!(target_os = "linux") {
            assert_eq!(with(&[]), None);
            assert_eq!(with(&[("WAYLAND_DISPLAY", "wayland-0")]), Some("xdg-open".into()));
        }
    }

    #[test]
    fn a_page_is_named_by_a_memory_a_name_or_a_path() {
        for (page, expected) in [
            ("42", "/m/42"),
            ("#42", "/m/42"),
            ("S3", "/m/S3"),
            ("stats", "/stats"),
            ("/s?project=a", "/s?project=a"),
        ] {
            assert_eq!(path(page).unwrap(), expected);
        }
        for page in ["nowhere", "", "/a b"] {
            assert!(path(page).is_err(), "{page}");
        }
    }

    #[test]
    fn a_missing_browser_is_detected() {
        assert!(!open(&"/nowhere/browser".into(), Path::new("viewer.html")));
    }
}
