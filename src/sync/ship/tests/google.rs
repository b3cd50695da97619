//! Specifics of Google Cloud Storage: conditional uploads, paged listings, bucket names.

use claude_mem_tools::bucket::Faults;

use super::*;
use crate::ship::remote::Put;
use claude_mem_core::failure::Failure;

#[test]
fn conditional_uploads_work_on_google() {
    let bucket = Bucket::start_google().unwrap();
    let remote = Machine::with_bucket(&bucket).remote();
    wait(async {
        assert!(matches!(remote.put_new("a/b", b"first").await.unwrap(), Put::Written(_)));
        assert_eq!(remote.put_new("a/b", b"second").await.unwrap(), Put::Exists);
        assert_eq!(remote.get("a/b").await.unwrap(), b"first");
        remote.put_over("a/b", b"third").await.unwrap();
        assert_eq!(remote.get("a/b").await.unwrap(), b"third");
        // Google Cloud Storage reports a deleted object as missing.
        remote.delete("a/b").await.unwrap();
        remote.delete("a/b").await.unwrap();
        assert!(matches!(remote.get("a/b").await, Err(Error::Missing { .. })));
    });
    assert_eq!(bucket.names(), Vec::<String>::new());
}

#[test]
fn paged_listings_of_google_are_read_completely() {
    let bucket = Bucket::start_google().unwrap();
    let remote = Machine::with_bucket(&bucket).remote();
    let names: Vec<String> = (0..10).map(|number| format!("logs/{number}/head")).collect();
    wait(async {
        for name in &names {
            remote.put_new(name, b"something").await.unwrap();
        }
        bucket.inject(Faults::default());
        let mut found = remote.list("logs").await.unwrap();
        assert!(bucket.requests() > 1);
        found.sort();
        assert_eq!(found, names);
        let mut found = remote.folders("logs").await.unwrap();
        found.sort();
        assert_eq!(found, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
    });
}

#[test]
fn a_log_round_trips_through_google_and_old_generations_are_deleted() {
    let bucket = Bucket::start_google().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(40);
    machine.ship().unwrap();
    assert_eq!(machine.ship().unwrap(), Shipped::default());
    machine.check();
    let sealed = machine.compact();
    machine.record(1);
    machine.ship().unwrap();
    let old = format!("/{:016x}.g00/", sealed[0].number);
    assert!(!bucket.names().iter().any(|name| name.contains(&old)), "{:?}", bucket.names());
    machine.check();
}

#[test]
fn invalid_bucket_names_are_reported_without_a_request() {
    let bucket = Bucket::start_google().unwrap();
    let machine = Machine::with_bucket(&bucket);
    for place in ["gs://", "gs:///x", "gs://My-Bucket/x", "gs://-x"] {
        let (settings, environment) = (machine.settings(), &machine.environment);
        let opened = Remote::open(place, Purpose::Read, &machine.paths, &settings, environment);
        let failure = Failure::from(opened.unwrap_err()).render(false);
        assert!(failure.contains("lower-case letters") && failure.contains("hint: "), "{failure}");
    }
    assert_eq!(bucket.requests(), 0);
}
