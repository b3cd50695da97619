//! `claude-mem doctor`: find problems and suggest fixes.

mod checks;
mod clients;
mod mcp_servers;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use claude_mem_core::{app::App, failure::Failure};

/// Find problems, and show how to fix them
///
/// Checks hooks, MCP servers, other memory tools, permissions, disk space, settings, every byte of
/// the log, the database, the provider, the worker and the backup. Changes nothing without `--fix`.
/// Exits with code 1 if a problem keeps claude-mem from working.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Fix problems that need no decision
    #[arg(long)]
    fix: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Fine,
    Fixed,
    /// It works, but could be better.
    Warning,
    /// It does not work, or data is lost.
    Problem,
}

/// Result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    what: String,
    remedy: Option<String>,
}

impl Finding {
    fn fine(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fine, what: what.into(), remedy: None }
    }

    fn fixed(check: &'static str, what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fixed, ..Self::fine(check, what) }
    }

    fn warning(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { verdict: Verdict::Warning, remedy, ..Self::fine(check, what) }
    }

    fn problem(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, ..Self::warning(check, what, remedy) }
    }
}

impl Doctor {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let findings = checks::all(app, self.fix);
        let problems = count(&findings, Verdict::Problem);
        if self.json {
            let is_healthy = problems == 0;
            app.output.json(&json!({ "is_healthy": is_healthy, "findings": findings }))?;
        } else {
            for finding in &findings {
                app.output.line(shown(app, finding))?;
            }
        }
        match problems {
            0 => Ok(()),
            1 => Err(Failure::new("1 problem was found")),
            many => Err(Failure::new(format!("{many} problems were found"))),
        }
    }
}

fn count(findings: &[Finding], verdict: Verdict) -> usize {
    findings.iter().filter(|finding| finding.verdict == verdict).count()
}

fn shown(app: &App, finding: &Finding) -> String {
    let (mark, colour) = match finding.verdict {
        Verdict::Fine => ("ok     ", "32"),
        Verdict::Fixed => ("fixed  ", "32"),
        Verdict::Warning => ("warning", "33"),
        Verdict::Problem => ("problem", "31"),
    };
    let line = format!("{} {}: {}", app.output.paint(colour, mark), finding.check, finding.what);
    let text = match &finding.remedy {
        Some(remedy) => format!("{line}\n        {remedy}"),
        None => line,
    };
    app.output.hanging(8, &text)
}
