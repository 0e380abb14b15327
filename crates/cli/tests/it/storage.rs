//! Servers that take no writes, or no more.

use std::process::Command;

use rustix::process::Signal;
use wire::nfs3::NfsStat3;

use crate::program::{Program, nfskit};
use crate::rpc::Connection;
use crate::served::Served;

fn study(served: &Served) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nfskit(["study", "--quick", "--target", &served.url(), "--out"]);
    command.arg(folder.path());
    (command, folder)
}

fn bench(served: &Served) -> Command {
    nfskit(["bench", "seqwrite", "--wire", "--size", "64M", "--target", &served.url()])
}

/// Asserts that a study and a benchmark fail for want of space and leave none of it taken.
#[track_caller]
fn is_full(served: &Served) {
    let address = served.address.to_string();
    let (mut study, _folder) = study(served);
    for command in [&mut study, &mut bench(served)] {
        let finished = Program::start(command).finish();
        finished.complains(3, &["WRITE", &address, "NFS3ERR_NOSPC", "free space on the server"]);
        assert!(!finished.stderr.contains("could not be removed"), "{finished:?}");
        assert_eq!(served.left_behind(), [] as [String; 0]);
    }
}

#[test]
fn a_read_only_export() {
    let served = Served::folder(&["--ro"]);
    let address = served.address.to_string();
    let (mut study, _folder) = study(&served);
    for command in [&mut study, &mut bench(&served)] {
        let finished = Program::start(command).finish();
        finished.complains(3, &["MKDIR", &address, "NFS3ERR_ROFS", "a writable export"]);
    }
    served.stop();
}

#[test]
fn a_full_memory() {
    let served = Served::memory(&["--mem-size", "8M"]);
    is_full(&served);
    served.stop();
}

/// On a small tmpfs in a mount namespace of the server's own, which goes away with it. Where the
/// system lets us make none, there is nothing to see.
#[test]
fn a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=8m tmpfs \"$1\" && shift && exec \"$@\"";
    let in_namespace = |then: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        command.arg(folder.path()).args(then);
        command
    };
    if !in_namespace(&["true"]).output().is_ok_and(|tried| tried.status.success()) {
        println!("skipped: no mount namespaces here");
        return;
    }
    let mut command = in_namespace(&[env!("CARGO_BIN_EXE_nfskit"), "serve"]);
    command.arg(folder.path()).args(["--export", "/=no_root_squash"]);
    let served = Served::start(command, "127.0.0.1:0");
    is_full(&served);
    served.stop();
}

/// The kernel sends a signal with the refusal, which would end the server.
#[test]
fn a_limit_of_file_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 64 && exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_nfskit"),
        "serve",
    ]);
    command.arg(folder.path()).args(["--export", "/=no_root_squash"]);
    let served = Served::start(command, "127.0.0.1:0");
    let mut client = Connection::to(&served);
    let file = client.creates(b"file");
    assert_eq!(client.writes_at(file, 1 << 20, b"beyond"), Err(NfsStat3::FBig));
    client.writes(file, b"within");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}
