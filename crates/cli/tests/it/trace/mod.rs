//! `nfskit trace`: captures in, what they say out.

mod explain;
mod hostile;
mod live;
mod parquet;

use std::path::Path;

use crate::link::Linked;
use crate::program::{Finished, run};
use crate::rpc::{Connection, NULL};
use crate::served::Served;

/// The capture of a relay through which this was sent.
fn captured(file: &Path, exchange: impl FnOnce(&mut Connection)) {
    let served = Served::memory(&[]);
    let linked = Linked::to(served.address, &["--pcap", file.to_str().unwrap(), "3ms/1g"]);
    let mut connection = Connection::at(linked.address);
    exchange(&mut connection);
    drop(connection);
    linked.stop();
    served.stop();
}

fn json(finished: &Finished) -> serde_json::Value {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_call_that_a_relay_passes_on_counts_once_as_its_client_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    captured(&file, |connection| {
        for _ in 0..5 {
            connection.call(NULL, &[]);
        }
    });
    let found = json(&run(["trace", file.to_str().unwrap(), "--json", "-"]));
    assert_eq!(found["calls"], 5, "{found}");
    assert_eq!(found["replies"], 5);
    assert_eq!(found["passed_on"], 5);
    assert_eq!(found["unanswered"], 0);
    assert_eq!(found["operations"][0]["operation"], "NULL");
    assert_eq!(found["operations"][0]["program"], "NFS v3");
    let latency = &found["operations"][0]["latency_us"];
    assert!(latency["min"].as_f64().unwrap() >= 6000.0, "{latency}");
    assert!(latency["p50"].is_number() && latency["p99"].is_null(), "{latency}");
    let screen = run(["trace", file.to_str().unwrap()]).stdout;
    // Neither bytes nor a p99 are known of five calls without any.
    let row = screen.lines().find(|line| line.starts_with("NULL ")).unwrap();
    assert_eq!(row.matches(" - ").count(), 2, "{row}");
    assert!(screen.contains("5 calls were seen twice"), "{screen}");
    assert!(screen.contains("behind the relay they took "), "{screen}");
    let mix = run(["trace", file.to_str().unwrap(), "--mix", "-"]);
    assert!(mix.stdout.contains("NULL 100.0000"), "{mix:?}");
    let csv = run(["trace", file.to_str().unwrap(), "--csv", "-"]);
    assert_eq!(csv.stdout.lines().count(), 6, "{csv:?}");
    let page = run(["trace", file.to_str().unwrap(), "--html", "-"]);
    for part in ["<!DOCTYPE html>", "Operations", "Response times (rt)", "Calls outstanding"] {
        assert!(page.stdout.contains(part), "no {part:?}");
    }
    // The verdict comes before all else, and says that it is none.
    let verdict = screen.find("verdict     none: 5 replies are too few");
    assert!(verdict.is_some_and(|at| at < screen.find("\ncalls  ").unwrap()), "{screen}");
    // Too few calls for a model, which is no failure.
    let explained = run(["trace", file.to_str().unwrap(), "--explain"]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert!(explained.stdout.contains("none fits: "), "{explained:?}");
    let none = json(&run(["trace", file.to_str().unwrap(), "--operation", "READ", "--json", "-"]));
    assert_eq!(none["calls"], 0);
    let name = found["connections"][0]["name"].as_str().unwrap();
    let (client, _) = name.split_once(' ').unwrap();
    let client: std::net::SocketAddr = client.parse().unwrap();
    let address = client.ip().to_string();
    let own = run(["trace", file.to_str().unwrap(), "--client", &address, "--json", "-"]);
    assert_eq!(json(&own)["calls"], 5);
}

#[test]
fn what_two_files_both_have_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    captured(&file, |connection| {
        for _ in 0..20 {
            connection.call(NULL, &[]);
        }
    });
    let (file, other) = (file.to_str().unwrap(), folder.path().join("other.pcap"));
    std::fs::copy(file, &other).unwrap();
    let other = other.to_str().unwrap();
    let [once, twice] = [&[file][..], &[file, other]]
        .map(|files| json(&run([&["trace"], files, &["--json", "-"]].concat())));
    for part in ["calls", "replies", "operations", "unanswered", "passed_on"] {
        assert_eq!(once[part], twice[part], "{part}");
    }
    assert_eq!(once["capture"]["copied_packets"], 0);
    let (packets, copies) = (&once["capture"]["packets"], &twice["capture"]["copied_packets"]);
    assert!(copies.as_u64().unwrap() * 2 > packets.as_u64().unwrap(), "{copies} of {packets}");
    assert!(!run(["trace", file]).stdout.contains("copies"));
    let screen = run(["trace", file, other]).stdout;
    assert!(screen.contains("captured elsewhere on their way"), "{screen}");
    assert!(screen.contains(&format!("as captured in {file}")), "{screen}");
}

/// What is reported of lost calls and replies.
fn lost(found: &serde_json::Value) -> (u64, u64, u64) {
    let of = |name: &str| -> u64 {
        let all = found["connections"].as_array().unwrap();
        all.iter().map(|one| one[name].as_u64().unwrap()).sum()
    };
    (found["unanswered"].as_u64().unwrap(), of("unanswered"), of("unasked_replies"))
}

#[test]
fn a_filter_loses_no_calls_and_a_server_has_a_port() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    captured(&file, |connection| {
        connection.is_served();
        connection.creates(b"f");
        for _ in 0..5 {
            connection.call(NULL, &[]);
        }
    });
    let file = file.to_str().unwrap();
    let all = json(&run(["trace", file, "--json", "-"]));
    let server = all["servers"][0]["address"].as_str().unwrap().to_owned();
    let port = server.rsplit(':').next().unwrap().to_owned();
    let with =
        |option: &str, value: &str| json(&run(["trace", file, option, value, "--json", "-"]));
    for (option, value) in [("--operation", "CREATE"), ("--server", &*server), ("--until", "1000s")]
    {
        let found = with(option, value);
        assert!(found["calls"].as_u64().unwrap() > 0, "{option}: {found}");
        assert_eq!(lost(&found), (0, 0, 0), "{option}: {found}");
    }
    assert_eq!(with("--operation", "CREATE")["calls"], 1);
    assert_eq!(with("--server", &server)["calls"], all["calls"]);
    let other = if port == "1" { "127.0.0.1:2" } else { "127.0.0.1:1" };
    let none = with("--server", other);
    assert_eq!((none["calls"].as_u64(), lost(&none)), (Some(0), (0, 0, 0)), "{none}");
    let mapped = format!("[::ffff:127.0.0.1]:{port}");
    assert_eq!(with("--server", &mapped)["calls"], all["calls"]);
    let wrong = run(["trace", file, "--server", "host:2049"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("'host:2049'") && wrong.stderr.contains("[fd00::2]:2049"));
}

#[test]
fn frames_are_those_of_wireshark() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    captured(&file, |connection| {
        connection.is_served();
        connection.creates(b"f");
        for _ in 0..20 {
            connection.call(NULL, &[]);
        }
    });
    let file = file.to_str().unwrap();
    let found = run(["trace", file, "--csv", "-"]).stdout;
    let ours: Vec<(u64, u64)> = found
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let [.., call, reply] = fields[..] else { panic!("{line}") };
            (call.parse().unwrap(), reply.parse().unwrap())
        })
        .collect();
    assert!(ours.len() > 20, "{found}");
    let mut tshark = std::process::Command::new("tshark");
    tshark.args(["-r", file, "-Y", "rpc.msgtyp == 1", "-T", "fields", "-e", "rpc.repframe"]);
    tshark.args(["-e", "frame.number", "-d", "tcp.port==1-65535,rpc"]);
    let Ok(output) = tshark.output() else {
        println!("NOT TESTED: tshark is not installed, so frames are compared with nothing");
        return;
    };
    let output = String::from_utf8(output.stdout).unwrap();
    let theirs: std::collections::BTreeSet<(u64, u64)> = output
        .lines()
        .filter_map(|line| {
            let (call, reply) = line.split_once('\t')?;
            Some((call.parse().ok()?, reply.parse().ok()?))
        })
        .collect();
    // Theirs have each call twice: on both sides of the relay.
    assert_eq!(theirs.len(), 2 * ours.len(), "{output}");
    assert!(ours.iter().all(|pair| theirs.contains(pair)), "{ours:?} {theirs:?}");
}

#[test]
fn what_cannot_be_read_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let text = with("text", b"no capture at all");
    run(["trace", &text]).complains(3, &["is not a capture", "no captu", "tcpdump"]);
    let empty = with("empty", b"");
    run(["trace", &empty]).complains(3, &["is empty"]);
    run(["trace", "/no/such/file"]).complains(3, &["cannot read /no/such/file"]);
    let mut head = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    head.extend(105_u32.to_le_bytes());
    let wireless = with("wireless", &head);
    run(["trace", &wireless]).complains(3, &["link type 105", "Ethernet"]);
    head[20] = 1;
    let silent = with("silent", &head);
    let finished = run(["trace", &silent]);
    assert!(finished.stdout.contains("no NFS found"), "{finished:?}");
    run(["trace", &silent, "--mix", "-"]).complains(1, &["no NFS call"]);
    head.extend([0; 10]);
    let cut = with("cut", &head);
    let finished = run(["trace", &cut]);
    assert_eq!(finished.code, Some(0));
    assert!(finished.stderr.contains("ends in the middle of a packet"), "{finished:?}");
}
