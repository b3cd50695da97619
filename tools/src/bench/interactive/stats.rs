//! The time of the requests of the viewer's Stats page.

use std::time::Duration;

use claude_mem_tools::worker_process::{WorkerHttp, WorkerProcess, wait_for};
use serde_json::json;

use super::{WITHOUT_VECTORS, figure, home, sizes};
use crate::bench::{Figure, Outcome, Samples, Scratch, Settings, binary, time};

/// Half of what the page took when it was first measured, with all its requests and its drawing.
const LIMIT: Duration = Duration::from_millis(800);

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let rounds = settings.size(20, 2);
    let mut samples = Vec::new();
    for observations in sizes(settings) {
        let home = home(scratch, observations)?;
        let worker = WorkerProcess::start(&binary()?, &home, &[WITHOUT_VECTORS])?;
        let mut http = worker.http()?;
        wait_until_idle(&mut http)?;
        for days in [30, 365] {
            let (mut first, mut again) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                let note =
                    json!({"text": format!("note {round} of {days} days"), "project": "bench"});
                http.ask("POST", "/api/memory/save", Some(&note))?;
                first.push(time(|| page(&mut http, days))?.0);
                again.push(time(|| page(&mut http, days))?.0);
            }
            let name = |when: &str| format!("{observations} observations, {days} days, {when}");
            samples.push(Samples::new(name("nothing new"), again));
            samples.push(Samples::new(name("after a new memory"), first));
        }
    }
    let about = "\
        The requests of the Stats page and of the frame around it, one after the other, over HTTP \
        to the real worker. Drawing in a browser comes on top of it. A new memory invalidates \
        what the worker keeps.";
    Ok(vec![figure("The Stats page", about, &samples, LIMIT)])
}

/// What the page requests.
fn page(http: &mut WorkerHttp, days: u64) -> Outcome<()> {
    for path in ["/api/processing", "/api/projects", "/api/stats"] {
        http.request("GET", path, "")?;
    }
    http.request("GET", &format!("/api/stats/daily?days={days}"), "")?;
    Ok(())
}

fn wait_until_idle(http: &mut WorkerHttp) -> Outcome<()> {
    wait_for("a worker without work", || {
        let now = http.ask("GET", "/api/processing", None).ok()?;
        (now["queueDepth"] == 0 && now["isProcessing"] == false).then_some(())
    })
}
