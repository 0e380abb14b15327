//! Ctrl-C and SIGTERM: exit code 130, and nothing is left behind.

use std::process::Command;

use rustix::process::Signal;

use crate::peer::Peer;
use crate::program::{Program, appears, names, nfskit, scratch_appears};
use crate::served::Served;

fn study(out: &tempfile::TempDir) -> Command {
    let mut command = nfskit(["study", "--out"]);
    command.arg(out.path().join("report"));
    command
}

#[test]
fn a_study_of_a_server_takes_its_scratch_directory_away() {
    for signal in [Signal::INT, Signal::TERM] {
        // Once while its files are filled, once as soon as there is something to remove.
        for file in ["unstable", "sweep"] {
            let served = Served::folder(&[]);
            let out = tempfile::tempdir().unwrap();
            let running = Program::start(study(&out).args(["--target", &served.url()]));
            served.is_written_to(file);
            running.signal(signal);
            running.finish().was_interrupted();
            assert_eq!(served.left_behind(), [] as [String; 0]);
            served.stop();
        }
    }
}

#[test]
fn a_benchmark_takes_its_scratch_directory_away() {
    for signal in [Signal::INT, Signal::TERM] {
        let served = Served::folder(&[]);
        let target = served.url();
        let bench =
            ["bench", "seqwrite", "--wire", "--repeats", "1000", "--size", "16M", "--target"];
        let running = Program::start(nfskit(bench).arg(&target));
        served.is_written_to("run-");
        running.signal(signal);
        running.finish().was_interrupted();
        served.stop();
    }
}

#[test]
fn an_embedded_study_takes_its_temporary_directory_away() {
    for signal in [Signal::INT, Signal::TERM] {
        let (out, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut command = study(&out);
        let running = Program::start(command.env("TMPDIR", temporary.path()));
        let store = appears(temporary.path(), |name| name.starts_with("nfskit-"));
        appears(&scratch_appears(&store), |name| name == "sweep");
        running.signal(signal);
        running.finish().was_interrupted();
        assert_eq!(names(temporary.path()), [] as [String; 0]);
    }
}

#[test]
fn a_study_in_a_directory_of_the_users_leaves_nothing_there() {
    // Once while the directory itself is measured, once while its files are swept.
    for file in ["unstable", "sweep"] {
        let (out, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(store.path().join("precious"), "data").unwrap();
        let running = Program::start(study(&out).arg("--store").arg(store.path()));
        appears(&scratch_appears(store.path()), |name| name == file);
        running.signal(Signal::INT);
        running.finish().was_interrupted();
        assert_eq!(names(store.path()), ["precious"]);
    }
}

/// The servers are being started then, and no call has been made.
#[test]
fn an_interrupt_as_soon_as_there_is_a_temporary_directory() {
    for _ in 0..5 {
        let (out, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut command = study(&out);
        let running = Program::start(command.env("TMPDIR", temporary.path()));
        appears(temporary.path(), |name| name.starts_with("nfskit-"));
        running.signal(Signal::INT);
        running.finish().was_interrupted();
        assert_eq!(names(temporary.path()), [] as [String; 0]);
    }
}

/// What is left behind then is named: the user has to remove it.
#[test]
fn an_interrupt_when_the_server_has_frozen() {
    let served = Served::folder(&[]);
    let bench = ["bench", "seqwrite", "--wire", "--repeats", "1000", "--size", "16M", "--target"];
    let mut command = nfskit(bench);
    let running = Program::start(command.args([&served.url(), "--reply-limit", "600ms"]));
    served.is_written_to("run-");
    served.program.signal(Signal::STOP);
    running.signal(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let scratch = scratch_appears(served.path());
    let named = format!("{} could not be removed", scratch.file_name().unwrap().display());
    assert!(finished.stderr.contains(&named), "{finished:?}");
}

#[test]
fn an_interrupt_while_waiting_for_a_server_that_does_not_answer() {
    let peer = Peer::silent();
    let bench = ["bench", "seqwrite", "--wire", "--reply-limit", "3600s", "--target", &peer.url()];
    let running = Program::start(&mut nfskit(bench));
    peer.has_been_called();
    running.signal(Signal::INT);
    running.finish().was_interrupted();
}

/// Worlds take the processor for seconds, and do not listen.
#[test]
fn a_study_that_simulates_hears_an_interrupt() {
    let (out, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = study(&out);
    let running = Program::start(command.arg("--quick").env("TMPDIR", temporary.path()));
    running.has_thread("nfskit-apart");
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    assert_eq!(names(temporary.path()), [] as [String; 0]);
    assert_eq!(names(&out.path().join("report")), [] as [String; 0]);
}

#[test]
fn emulated_disks_hear_an_interrupt() {
    for signal in [Signal::INT, Signal::TERM] {
        let running = Program::start(&mut nfskit(["papers", "sun", "--time", "3600s"]));
        running.has_thread("nfskit-apart");
        running.signal(signal);
        running.finish().was_interrupted();
    }
}

#[test]
fn what_a_paper_has_of_emulated_disks_is_recorded_when_servers_are_left_in_the_midst() {
    let (without, with) = (Served::folder(&[]), Served::folder(&[]));
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("sun.json");
    // A log on a disk as slow as the other takes few calls, and few are emulated.
    let mut command = nfskit(["papers", "sun", "--time", "1s", "--sim-log", "hdd"]);
    command.args(["--without", &without.url(), "--with", &with.url(), "--json"]).arg(&record);
    let running = Program::start(&mut command);
    without.is_written_to("");
    running.signal(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let record = std::fs::read_to_string(record).unwrap();
    assert!(record.contains("\"partial\"") && record.contains("emulated"), "{record}");
    assert_eq!(without.left_behind(), [] as [String; 0]);
    without.stop();
    with.stop();
}

#[test]
fn calls_at_a_rate_are_interrupted() {
    let served = Served::memory(&[]);
    let spray = ["bench", "spray", "--count", "1000000", "--rate", "1000", "--target"];
    let running = Program::start(nfskit(spray).arg(served.url()));
    running.catches_signals();
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    served.stop();
}

/// The rows that there are stay, in a file that says that it is not whole.
#[test]
fn an_interrupted_trace_leaves_no_file_that_looks_whole() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let mut command = nfskit(["trace"]);
    command.arg(&fifo).arg("--csv").arg(folder.path().join("calls.csv"));
    let running = Program::start(&mut command);
    // The head of a capture, and the end never comes.
    let mut writer = std::fs::File::options().write(true).open(&fifo).unwrap();
    let mut head = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    // One packet, of one byte.
    head.extend([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7]);
    std::io::Write::write_all(&mut writer, &head).unwrap();
    appears(folder.path(), |name| name == "calls.csv.partial");
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, ["calls.csv.partial", "fifo"]);
}
