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

/// The capture of a relay through which this was said.
fn captured(file: &Path, said: impl FnOnce(&mut Connection)) {
    let served = Served::memory(&[]);
    let linked = Linked::to(served.address, &["--pcap", file.to_str().unwrap(), "3ms/1g"]);
    let mut connection = Connection::at(linked.address);
    said(&mut connection);
    drop(connection);
    linked.stop();
    served.stop();
}

fn json(finished: &Finished) -> serde_json::Value {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn the_capture_of_a_relay_has_each_call_twice_and_the_delay_in_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    captured(&file, |connection| {
        for _ in 0..5 {
            connection.call(NULL, &[]);
        }
    });
    let found = json(&run(["trace", file.to_str().unwrap(), "--json", "-"]));
    assert_eq!(found["calls"], 10, "{found}");
    assert_eq!(found["replies"], 10);
    assert_eq!(found["operations"][0]["operation"], "NULL");
    assert_eq!(found["operations"][0]["program"], "NFS v3");
    let latency = &found["operations"][0]["latency_us"];
    assert!(latency["max"].as_f64().unwrap() >= 6000.0, "{latency}");
    let mix = run(["trace", file.to_str().unwrap(), "--mix", "-"]);
    assert!(mix.stdout.contains("NULL 100.0000"), "{mix:?}");
    let csv = run(["trace", file.to_str().unwrap(), "--csv", "-"]);
    assert_eq!(csv.stdout.lines().count(), 11, "{csv:?}");
    let page = run(["trace", file.to_str().unwrap(), "--html", "-"]);
    for part in ["<!DOCTYPE html>", "Operations", "Response times (rt)", "Calls outstanding"] {
        assert!(page.stdout.contains(part), "no {part:?}");
    }
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
    assert_eq!(json(&own)["calls"], 10);
}

#[test]
fn what_cannot_be_read_is_told() {
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
    run(["trace", &silent, "--mix", "-"]).complains(1, &["no call of NFS"]);
    head.extend([0; 10]);
    let cut = with("cut", &head);
    let finished = run(["trace", &cut]);
    assert_eq!(finished.code, Some(0));
    assert!(finished.stderr.contains("ends in the middle of a packet"), "{finished:?}");
}
