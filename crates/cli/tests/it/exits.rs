//! Exit codes, verb by verb: 0 done, 1 a check failed, 2 usage, 3 target or environment, 130
//! interrupted. What is printed for nobody is no failure.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::peer::{Nobody, Peer};
use crate::program::{Program, nfskit, run};
use crate::served::{Served, url};

/// What works on a server, without the server.
const OF_TARGETS: [&[&str]; 14] = [
    &["study", "--quick", "--target"],
    &["probe"],
    &["bench", "seqwrite", "--wire", "--target"],
    &["bench", "seqwrite", "--size", "1M", "--target"],
    &["bench", "policies", "--quick", "--target"],
    &["bench", "basic", "--target"],
    &["bench", "curve", "--target"],
    &["bench", "nhfsstone", "--target"],
    &["bench", "null", "--target"],
    &["bench", "tasks", "--target"],
    &["bench", "rtt", "--target"],
    &["bench", "spray", "--target"],
    &["papers", "loggp", "--target"],
    &["papers", "sensitivity", "--target"],
];

/// What reads a file, without the file.
const OF_FILES: [&[&str]; 10] = [
    &["doctor", "--from"],
    &["trace"],
    &["bench", "basic", "--read"],
    &["model", "fit"],
    &["model", "infer"],
    &["model", "interim"],
    &["model", "network"],
    &["model", "sensitivity"],
    &["model", "simulate"],
    &["model", "whatif", "cpu x0.5"],
];

/// Every verb, as far as it has a name.
const VERBS: [&[&str]; 38] = [
    &["doctor"],
    &["study"],
    &["probe"],
    &["serve"],
    &["link"],
    &["trace"],
    &["bench", "seqwrite"],
    &["bench", "policies"],
    &["bench", "fsx"],
    &["bench", "basic"],
    &["bench", "compare"],
    &["bench", "curve"],
    &["bench", "nhfsstone"],
    &["bench", "null"],
    &["bench", "stream"],
    &["bench", "rtt"],
    &["bench", "spray"],
    &["bench", "storage"],
    &["bench", "suite13"],
    &["bench", "tasks"],
    &["papers", "loggp"],
    &["papers", "predict"],
    &["papers", "sensitivity"],
    &["papers", "whatif"],
    &["model", "cycle"],
    &["model", "fit"],
    &["model", "infer"],
    &["model", "interim"],
    &["model", "network"],
    &["model", "predict"],
    &["model", "sensitivity"],
    &["model", "simulate"],
    &["model", "whatif"],
    &["stat"],
    &["top"],
    &["man"],
    &["completions"],
    &[],
];

/// In a folder of its own, where what has no place of its own goes.
fn command(folder: &Path, verb: &[&str]) -> Command {
    let mut command = nfskit(verb);
    command.current_dir(folder);
    command
}

/// The verb with its file, which of `model` comes before what is to be changed.
fn with_file<'a>(verb: &[&'a str], file: &'a str) -> Vec<&'a str> {
    let (name, rest) = verb.split_at(if verb[0] == "model" { 2 } else { verb.len() });
    [name, &[file], rest].concat()
}

fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn an_argument_that_there_is_not_is_usage_in_every_verb() {
    for verb in VERBS {
        let finished = run([verb, &["--no-such-option"]].concat());
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{verb:?}");
        assert!(finished.stderr.contains("--no-such-option"), "{finished:?}");
    }
    for mount in [&["mount", "--no-such-option"][..], &["-q", "mount"], &["mount", "x"]] {
        assert_eq!(run(mount).code, Some(3), "whoever mounts wants one answer: {mount:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_the_environment_s_failure_in_every_verb() {
    let (nobody, folder) = (Nobody::there(), tempfile::tempdir().unwrap());
    for verb in OF_TARGETS.into_iter().filter(|verb| !verb.contains(&"spray")) {
        let mut command = command(folder.path(), verb);
        let finished = Program::start(command.arg(url(nobody.address.port(), "/export"))).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""), "{finished:?}");
        assert!(finished.stderr.starts_with("nfskit: "), "{finished:?}");
        assert!(finished.stderr.contains("\n   try: "), "{finished:?}");
    }
    let address = nobody.address.to_string();
    for far in [&["bench", "stream", "--to"][..], &["bench", "rtt", "--to"], &["link", "--to"]] {
        let finished = Program::start(command(folder.path(), far).arg(&address)).finish();
        assert_eq!(finished.code, Some(3), "{far:?}: {finished:?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_the_environment_s_failure_in_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    for verb in OF_FILES {
        let arguments = with_file(verb, "no-such-file");
        let finished = Program::start(&mut command(folder.path(), &arguments)).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""), "{arguments:?}");
        assert!(finished.stderr.contains("no-such-file"), "{finished:?}");
    }
}

#[test]
fn a_file_that_is_something_else_is_the_environment_s_failure_in_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("junk"), b"\x9d\xff\x00 junk\n".repeat(2000)).unwrap();
    let others: [&[&str]; 4] = [
        &["log", "inspect"],
        &["log", "verify"],
        &["log", "status"],
        &["bench", "compare", "--second", "junk", "--first"],
    ];
    for verb in OF_FILES.into_iter().chain(others) {
        let arguments = with_file(verb, "junk");
        let finished = Program::start(&mut command(folder.path(), &arguments)).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""), "{finished:?}");
        assert!(finished.stderr.contains("junk"), "{finished:?}");
    }
}

#[test]
fn ctrl_c_and_sigterm_end_with_130_while_a_server_does_not_answer() {
    for (number, verb) in OF_TARGETS.into_iter().enumerate() {
        if verb.contains(&"spray") {
            continue; // over UDP, which nobody can be called by
        }
        let (peer, folder) = (Peer::silent(), tempfile::tempdir().unwrap());
        let running = Program::start(command(folder.path(), verb).arg(peer.url()));
        peer.has_been_called();
        running.signal([Signal::INT, Signal::TERM][number % 2]);
        let finished = running.finish();
        assert_eq!(finished.code, Some(130), "{verb:?}: {finished:?}");
        assert_eq!(finished.stderr, "nfskit: interrupted\n", "{verb:?}");
    }
}

#[test]
fn ctrl_c_ends_with_130_also_before_there_is_anything_to_do() {
    for verb in OF_FILES {
        let folder = tempfile::tempdir().unwrap();
        let file = fifo(folder.path());
        let arguments = with_file(verb, file.to_str().unwrap());
        let running = Program::start(&mut command(folder.path(), &arguments));
        running.catches_signals();
        running.signal(Signal::INT);
        running.finish().was_interrupted();
    }
    // Who has begun to read is interrupted, too.
    let folder = tempfile::tempdir().unwrap();
    let file = fifo(folder.path());
    let arguments = with_file(&["bench", "basic", "--read"], file.to_str().unwrap());
    let running = Program::start(&mut command(folder.path(), &arguments));
    running.has_thread(harness::apart::THREAD);
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    let (store, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = store.path().to_str().unwrap();
    let place = format!("here={dir}");
    for verb in [
        &["bench", "fsx", "--dir", dir][..],
        &["bench", "storage", "--dir", dir],
        &["bench", "tasks", "--dir", dir],
        &["bench", "seqwrite", "--dir", dir],
        &["bench", "suite13", "--compare", &place],
        &["bench", "basic", "--dir", dir],
        &["bench", "policies"],
        &["papers", "loggp"],
        &["papers", "predict"],
        &["papers", "sensitivity"],
        &["papers", "whatif"],
        &["study", "--store", dir],
    ] {
        let running = Program::start(&mut command(folder.path(), verb));
        running.catches_signals();
        running.signal(Signal::INT);
        let finished = running.finish();
        assert_eq!(finished.code, Some(130), "{verb:?}: {finished:?}");
        assert_eq!(finished.stderr, "nfskit: interrupted\n", "{verb:?}");
        let left: Vec<_> = std::fs::read_dir(store.path()).unwrap().collect();
        assert!(left.is_empty(), "{verb:?} has left {left:?}");
    }
}

/// The shell's nohup makes a process ignore the end of its terminal.
#[test]
fn the_end_of_a_terminal_ends_a_run_unless_nohup_was_requested() {
    let peer = Peer::silent();
    let bench = ["bench", "seqwrite", "--wire", "--target"];
    let program = env!("CARGO_BIN_EXE_nfskit");
    // Whoever runs the tests may have used nohup, and a shell cannot take that back.
    let mut env = Command::new("env");
    env.args(["--default-signal=HUP", program]).args(bench).arg(peer.url());
    let running = Program::start(&mut env);
    peer.has_been_called();
    running.signal(Signal::HUP);
    running.finish().was_interrupted();

    let peer = Peer::silent();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh", program]).args(bench).arg(peer.url());
    let running = Program::start(&mut shell);
    peer.has_been_called();
    running.signal(Signal::HUP);
    // Handled in the order of their numbers: had the first not been ignored, nothing would tell
    // them apart, and so the first is seen to be handled before the second is sent.
    running.has_handled_signals();
    assert!(running.is_running(), "it ignores that signal");
    running.signal(Signal::TERM);
    running.finish().was_interrupted();
}

#[test]
fn what_runs_until_a_signal_ends_with_0() {
    for signal in [Signal::INT, Signal::TERM] {
        let served = Served::memory(&[]);
        let mut link = nfskit(["link", "--listen", "127.0.0.1:0", "--uncalibrated", "--to"]);
        let link = Program::start(link.arg(served.address.to_string()));
        link.wait_for(|banner| banner.contains("Linux").then_some(()));
        let far = ["bench", "stream", "--server", "--listen", "127.0.0.1:0"];
        let far = Program::start(&mut nfskit(far));
        far.wait_for(|banner| banner.contains("far end").then_some(()));
        for running in [link, far, served.program] {
            running.signal(signal);
            let finished = running.finish();
            assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        }
    }
}

#[test]
fn a_check_that_fails_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let log = "1500 statfs calls in 0.50 seconds\n1500 statfs calls in ? seconds\n";
    std::fs::write(folder.path().join("log"), log).unwrap();
    // A capture without a packet, and a sweep that no form fits.
    let pcap =
        [0xd4_u8, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    std::fs::write(folder.path().join("pcap"), pcap).unwrap();
    let sweep = "outstanding throughput_per_s\n1 100\n2 1\n4 100\n8 1\n";
    std::fs::write(folder.path().join("sweep"), sweep).unwrap();
    for verb in [
        &["bench", "basic", "--read", "log"][..],
        &["trace", "pcap", "--mix", "mix"],
        &["model", "fit", "sweep"],
    ] {
        let finished = Program::start(&mut command(folder.path(), verb)).finish();
        assert_eq!(finished.code, Some(1), "{verb:?}: {finished:?}");
    }
}

/// Quick runs that write a file, without the file.
fn writers(dir: &str) -> Vec<Vec<&str>> {
    let bench = |words: &[&'static str]| [&["bench"], words].concat();
    let mut writers: Vec<Vec<&str>> = Vec::new();
    let seqwrite = bench(&["seqwrite", "--size", "64K", "--repeats", "1"]);
    for out in ["--json", "--csv", "--latencies"] {
        writers.push([&seqwrite[..], &["--dir", dir, out]].concat());
    }
    let tasks = bench(&["tasks", "--size", "8K", "--tasks", "1", "--repeats", "1"]);
    for out in ["--json", "--csv"] {
        writers.push([&tasks[..], &["--dir", dir, out]].concat());
    }
    let basic = bench(&["basic", "-f", "--test", "1"]);
    writers.push([&basic[..], &["--dir", dir, "--json"]].concat());
    let storage = bench(&["storage", "--size", "64K", "--repeats", "1", "--appends", "1"]);
    writers.push([&storage[..], &["--dir", dir, "--json"]].concat());
    writers.push(vec!["model", "cycle", "--round-trip", "1ms", "--ser", "8us", "--json"]);
    for out in ["--json", "--csv", "--html", "--parquet"] {
        writers.push(vec!["trace", "pcap", out]);
    }
    writers
}

#[test]
fn a_full_disk_is_the_environment_s_failure_wherever_something_is_written() {
    let (store, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pcap =
        [0xd4_u8, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    std::fs::write(folder.path().join("pcap"), pcap).unwrap();
    for verb in writers(store.path().to_str().unwrap()) {
        let mut full = command(folder.path(), &verb);
        let finished = Program::start(full.arg("/dev/full")).finish();
        assert_eq!(finished.code, Some(3), "{verb:?}: {finished:?}");
        assert!(finished.stderr.contains("cannot write /dev/full: No space"), "{finished:?}");
        let mut absent = command(folder.path(), &verb);
        let finished = Program::start(absent.arg("no/such/place")).finish();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""), "{verb:?}");
        assert!(finished.stderr.contains("cannot write no/such/place"), "{finished:?}");
    }
}

#[test]
fn a_capture_that_ends_before_its_relay_is_a_failure_at_the_end() {
    let served = Served::memory(&[]);
    let mut link = nfskit(["link", "--listen", "127.0.0.1:0", "--uncalibrated"]);
    link.args(["--pcap", "/dev/full", "--to", &served.address.to_string()]);
    let link = Program::start(&mut link);
    link.wait_for(|banner| banner.contains("Linux").then_some(()));
    link.wait_for_error(|text| text.contains("No space left").then_some(()));
    link.signal(Signal::TERM);
    let finished = link.finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("/dev/full ended before the relay"), "{finished:?}");
    served.stop();
}

/// How a command ends whose standard output and error go there.
fn ends(command: &mut Command, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Option<i32> {
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    command.status().unwrap().code()
}

/// A pipe that nobody reads.
fn nobody_reads() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let full = || File::create("/dev/full").unwrap();
    for verb in [
        &["--help"][..],
        &["study", "--help"],
        &["--version"],
        &["completions", "bash"],
        &["model", "cycle", "--round-trip", "1ms", "--ser", "8us"],
        &["model", "cycle", "--round-trip", "1ms", "--ser", "8us", "--json", "-"],
        &["bench", "seqwrite", "--size", "64K", "--repeats", "1", "--dir", dir],
    ] {
        assert_eq!(ends(&mut nfskit(verb), nobody_reads(), Stdio::null()), Some(0), "{verb:?}");
        assert_eq!(ends(&mut nfskit(verb), full(), Stdio::null()), Some(3), "{verb:?}");
    }
    // What goes wrong has its code also where nobody hears of it.
    let missing = ["trace", "/no/such/file"];
    assert_eq!(ends(&mut nfskit(missing), nobody_reads(), nobody_reads()), Some(3));
    assert_eq!(ends(&mut nfskit(["trase"]), nobody_reads(), nobody_reads()), Some(2));
    assert_eq!(ends(&mut nfskit(missing), full(), full()), Some(3));
}
