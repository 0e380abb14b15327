//! `--interface`: what passes while it listens.

use perf::histogram::Histogram;
use rustix::process::Signal;

use super::json;
use crate::program::{Finished, Program, nfskit, run};
use crate::served::Served;

/// Whether we may capture; the tests of others may not.
fn may_capture() -> bool {
    rustix::process::geteuid().is_root()
        && !refuses(&run(["trace", "--interface", "lo", "--time", "1ms"]))
}

fn refuses(finished: &Finished) -> bool {
    finished.stderr.contains("not permitted to capture")
}

#[test]
fn on_the_loopback_every_call_of_a_run_counts_once() {
    if !may_capture() {
        return;
    }
    // Of no other test.
    let (address, listen) = ("127.77.66.55", "127.77.66.55:0");
    let served = Served::start(nfskit(["serve", "mem:"]), listen);
    let live = ["trace", "--interface", "lo", "--server", address, "--json", "-"];
    let live = Program::start(&mut nfskit(live));
    live.wait_for_error(|text| text.contains("listening on lo").then_some(()));
    let port = served.port();
    let url = format!("nfs://{address}/?nfsport={port}&mountport={port}");
    let bench = ["bench", "seqwrite", "--wire", "--target", &url, "--size", "2M", "--call", "8K"];
    let bench = bench.into_iter().chain(["--outstanding", "4", "--repeats", "1", "--json", "-"]);
    let record = json(&run(bench.chain(["-q"])));
    live.signal(Signal::INT);
    let found = json(&live.finish());
    served.stop();

    let capture = &found["capture"];
    assert_eq!(capture["dropped_packets"], 0, "{capture}");
    assert_eq!(found["unanswered"], 0, "{found}");
    let operations = found["operations"].as_array().unwrap();
    let count = |name: &str| {
        let mut all = operations.iter().filter(|operation| operation["operation"] == name);
        all.next().map_or(0, |operation| operation["replies"].as_u64().unwrap())
    };
    let writes = Histogram::from_base64(
        record["histograms"]["write_response_time"]["hdr"].as_str().unwrap(),
    );
    assert_eq!(count("WRITE"), writes.unwrap().count());
    assert_eq!(count("WRITE"), 256);
    assert_eq!((count("COMMIT"), count("CREATE"), count("MKDIR")), (1, 1, 1));
    assert_eq!(found["connections"][0]["retransmissions"], 0);
    assert_eq!(found["sync"]["written_bytes"], 2 << 20);
}

#[test]
fn it_ends_by_itself_after_a_time_and_says_what_passed() {
    if !may_capture() {
        return;
    }
    let finished =
        run(["trace", "--interface", "lo,lo", "--time", "20ms", "--operation", "SETATTR"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.starts_with("capture     live, "), "{finished:?}");
}

#[test]
fn interfaces_that_cannot_be_listened_to_are_reported() {
    let finished = run(["trace", "--interface", "lo7"]);
    finished.complains(3, &["there is no interface lo7", "lo", "ip route get"]);
    let finished = run(["trace"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    let finished = run(["trace", "f", "--interface", "lo"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    let finished = run(["trace", "f", "--time", "1s"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
}

#[test]
fn who_may_not_capture_learns_what_it_takes() {
    // Root without its capabilities, or anybody else as he is.
    let mut command = match rustix::process::geteuid().is_root() {
        false => nfskit(["trace", "--interface", "lo", "-q"]),
        true => {
            let mut command = std::process::Command::new("setpriv");
            command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_nfskit")]);
            command.args(["trace", "--interface", "lo", "-q"]);
            command
        }
    };
    let finished = Program::start(&mut command).finish();
    finished.complains(3, &["not permitted to capture on lo", "CAP_NET_RAW", "setcap", "tcpdump"]);
}
