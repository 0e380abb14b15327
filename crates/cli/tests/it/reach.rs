//! `nfskit doctor URL`: the phases of a mount, against servers that are well and that are not.

use std::net::TcpListener;

use serde_json::Value;

use crate::program::run;
use crate::served::{Served, url};

/// What `doctor` says of a server, and with which code.
fn diagnosed(url: &str, more: &[&str]) -> (String, Option<i32>) {
    let ran = run([&["doctor", url][..], more].concat());
    assert_eq!(ran.stderr, "", "{ran:?}");
    (ran.stdout, ran.code)
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn a_server_that_is_well_comes_through_all_phases_and_its_clock_is_ours() {
    let served = Served::folder(&["--export", "/=no_root_squash,insecure"]);
    let ran = run(["doctor", &served.url(), "--write", "--json", "-"]);
    let checked: Value = serde_json::from_str(&ran.stdout).unwrap();
    let outcome = |phase: &str| {
        let steps = checked["steps"].as_array().unwrap();
        steps.iter().find(|step| step["phase"] == phase).unwrap()["outcome"].clone()
    };
    for phase in ["name", "route", "connect", "NULL", "MOUNT program", "export list", "permission"]
    {
        assert!(outcome(phase)["done"].is_string(), "{phase}: {checked}");
    }
    for phase in ["FSINFO", "PATHCONF", "GETATTR", "WRITE"] {
        assert!(outcome(phase)["done"].is_string(), "{phase}: {checked}");
    }
    // Both are this host's.
    let clock = &checked["clock"];
    let [ahead, error] = ["ahead_ms", "error_ms"].map(|name| clock[name].as_f64().unwrap());
    assert!(ahead.abs() <= error, "{clock}");
    assert_eq!(ran.code, Some(0), "{checked}");
}

#[test]
fn a_wrong_export_and_a_refused_one_are_distinguished() {
    let served = Served::folder(&["--export", "/data=insecure"]);
    let port = served.address.port();
    let (text, code) = diagnosed(&url(port, "/dtaa"), &[]);
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["It fails at permission", "1. /dtaa is misspelt: /data is exported", "not tried"]);
    let other = Served::folder(&["--export", "/data=client=192.0.2.1"]);
    let (text, code) = diagnosed(&url(other.address.port(), "/data"), &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("misspelt") && text.contains("likely causes"), "{text}");
}

#[test]
fn a_closed_port_has_nobody_behind_it_and_one_that_never_answers_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Connections are made by the system; nobody reads them.
    let (text, code) = diagnosed(&url(port, "/"), &["--limit", "200ms"]);
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["It fails at NULL", "no reply within 200 ms", "1. the server hangs"]);
    drop(listener);
    let (text, code) = diagnosed(&url(port, "/"), &[]);
    assert_eq!(code, Some(1), "{text}");
    has(&text, &["It fails at connect", "1. the host is up, and no NFS server listens"]);
}

#[test]
fn of_a_host_alone_the_exports_are_listed() {
    let served = Served::folder(&[]);
    let port = served.address.port();
    let (text, code) = diagnosed(&format!("nfs://127.0.0.1?nfsport={port}&mountport={port}"), &[]);
    assert_eq!(code, Some(0), "{text}");
    has(&text, &["export list", "no export was given", "Every phase that a mount needs is well"]);
    run(["doctor", "--write"]).complains(2, &["--write is of a server"]);
    run(["doctor", "nfs://", "--write"]).complains(2, &["nfs://HOST"]);
}
