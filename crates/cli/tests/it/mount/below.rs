//! A mount as the file system below a server: FUSE, whose handles are of one life of its program.

use std::fs;
use std::path::Path;

use wire::Procedure;
use wire::nfs3::{DirOp, FileHandle, NfsStat3, Procedure as P, getattr, lookup};
use wire::xdr::{Encode, from_bytes};

use super::{Mounted, can_mount};
use crate::program::{nfskit, run};
use crate::rpc::Connection;
use crate::served::Served;

/// Serves what is mounted, with this state.
fn above(mounted: &Mounted, state: &Path) -> Served {
    let mut command = nfskit(["serve", "--export", "/=no_root_squash,insecure", "--state"]);
    command.arg(state).arg(mounted.at.path());
    Served::start(command, "127.0.0.1:0")
}

fn looks_up(client: &mut Connection, name: &[u8]) -> FileHandle {
    let what = DirOp { dir: client.root(), name };
    let call = lookup::Args { what }.to_bytes();
    let found = client.call(Procedure::Nfs3(P::Lookup), &call).results;
    from_bytes::<lookup::Reply>(&found).unwrap().unwrap().object
}

/// Whether a handle leads to a file.
fn looks_at(client: &mut Connection, object: FileHandle) -> Result<(), NfsStat3> {
    let call = getattr::Args { object }.to_bytes();
    let got = client.call(Procedure::Nfs3(P::Getattr), &call).results;
    from_bytes::<getattr::Reply>(&got).unwrap().map(drop).map_err(|failure| failure.status)
}

#[test]
fn a_handle_of_an_earlier_mount_is_stale_and_never_another_file() {
    if !can_mount() {
        return;
    }
    let origin = Served::folder(&[]);
    for name in ["first", "other"] {
        fs::write(origin.path().join(name), name).unwrap();
    }
    let state = tempfile::tempdir().unwrap();
    let mounted = Mounted::new(&origin, &[]);
    let served = above(&mounted, state.path());
    served.program.wait_for(|text| text.contains("good until this process ends").then_some(()));
    let mut client = Connection::to(&served);
    let first = looks_up(&mut client, b"first");
    assert_eq!(looks_at(&mut client, first), Ok(()));
    drop(client);
    served.stop();
    mounted.stop();
    // The next life of the program: the other file is the first that is looked up.
    let mounted = Mounted::new(&origin, &[]);
    let served = above(&mounted, state.path());
    let mut client = Connection::to(&served);
    let other = looks_up(&mut client, b"other");
    assert_ne!(other, first);
    assert_eq!(looks_at(&mut client, first), Err(NfsStat3::Stale));
    drop(client);
    served.stop();
    mounted.stop();
    origin.stop();
}

#[test]
fn a_write_log_is_refused_above_a_mount() {
    if !can_mount() {
        return;
    }
    let origin = Served::folder(&[]);
    let mounted = Mounted::new(&origin, &[]);
    let place = tempfile::tempdir().unwrap();
    let (dir, log) = (mounted.at.path().to_str().unwrap(), place.path().join("log"));
    let words = ["serve", dir, "--listen", "127.0.0.1:0", "--write-log", log.to_str().unwrap()];
    run(words).complains(3, &["write log", "handles", "ext4, xfs or btrfs"]);
    assert!(!log.exists());
    mounted.stop();
    origin.stop();
}
