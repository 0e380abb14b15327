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
