//! Campaigns against the log: damage, killed processes, power loss, failing disks, concurrency.
//!
//! Every campaign runs in a small size with the other tests. `CLAUDE_MEM_CAMPAIGN=full` multiplies
//! the random ones and runs the storm to 10,000 kills.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests; what a campaign covered is printed"
)]

mod compaction;
mod damage;
mod failing_calls;
mod fuzz;
mod golden;
mod golden_records;
mod growing;
mod power_loss;
mod programs;
mod random;
#[cfg(unix)]
mod real_disk;
mod records;
mod scenario;
mod schedules;
mod sim;

/// The factor for the size of campaigns; 1 in CI.
fn scale() -> u64 {
    if std::env::var_os("CLAUDE_MEM_CAMPAIGN").is_some_and(|size| size == "full") { 20 } else { 1 }
}
