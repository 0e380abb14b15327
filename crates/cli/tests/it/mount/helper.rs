//! `mount.nfskit`, as mount(8) calls it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::mount::UnmountFlags;

use super::{can_mount, is_mounted};
use crate::program::{Finished, Program};
use crate::served::Served;

fn helper(dir: &Path, arguments: &[&str]) -> Finished {
    let binary = dir.join("mount.nfskit");
    if !binary.exists() {
        symlink(env!("CARGO_BIN_EXE_nfskit"), &binary).unwrap();
    }
    Program::start(Command::new(binary).args(arguments)).finish()
}

#[test]
fn it_returns_when_it_is_mounted_and_the_mount_stays() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let (dir, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = at.path().to_str().unwrap();
    let url = served.url();
    let finished = helper(dir.path(), &[&url, place, "-o", "rw,_netdev,noatime"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(is_mounted(at.path()));
    fs::write(at.path().join("file"), b"data").unwrap();
    let again = helper(dir.path(), &[&url, place]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(again.stderr.contains("mounted there already"), "{again:?}");
    rustix::mount::unmount(at.path(), UnmountFlags::empty()).unwrap();
    // The way in which mount(8) has always named its source.
    let device = "127.0.0.1:/";
    let ports = format!("port={0},mountport={0},ro", served.port());
    let finished = helper(dir.path(), &["-o", &ports, device, place]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(fs::read(at.path().join("file")).unwrap(), b"data");
    rustix::mount::unmount(at.path(), UnmountFlags::empty()).unwrap();
    served.stop();
}

#[test]
fn what_fails_is_told_by_whoever_was_called() {
    let served = Served::memory(&[]);
    let (dir, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (url, place) = (served.url(), at.path().to_str().unwrap());
    helper(dir.path(), &[&url]).complains(3, &["a URL and a directory"]);
    helper(dir.path(), &[&url, place, "-q"]).complains(3, &["-q"]);
    helper(dir.path(), &[&url, place, "-o", "frobnicate"]).complains(3, &["frobnicate"]);
    helper(dir.path(), &[&url, "/nowhere/at/all"]).complains(3, &["is not there"]);
    // Only looked at; and unknown words passed over.
    let finished = helper(dir.path(), &[&url, place, "-sf", "-o", "frobnicate"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!is_mounted(at.path()));
    served.stop();
}
