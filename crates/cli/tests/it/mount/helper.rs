//! `mount.nfskit`, as mount(8) calls it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::{can_mount, is_mounted, unmount};
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
    unmount(at.path());
    // The way in which mount(8) has always named its source.
    let device = "127.0.0.1:/";
    let ports = format!("port={0},mountport={0},ro", served.port());
    let finished = helper(dir.path(), &["-o", &ports, device, place]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(fs::read(at.path().join("file")).unwrap(), b"data");
    unmount(at.path());
    served.stop();
}

#[test]
fn what_fails_is_reported_by_whoever_was_called() {
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

/// The kernel's words for what is mounted there.
fn flags(at: &Path) -> String {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut here = fields.filter(|fields| Path::new(fields[4]) == at);
    here.next().unwrap()[5].to_owned()
}

#[test]
fn flags_are_as_mount_has_them_and_can_be_changed() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let (dir, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (url, place) = (served.url(), at.path().to_str().unwrap());
    // What mount(8) makes of `suid,dev`, which are its defaults.
    let done = |arguments: &[&str]| {
        let finished = helper(dir.path(), arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        flags(at.path())
    };
    let given = done(&[&url, place, "-o", "rw"]);
    assert!(!given.contains("nosuid") && !given.contains("nodev"), "{given}");
    let file = fs::File::create(at.path().join("file")).unwrap();
    helper(dir.path(), &[&url, place, "-o", "ro,remount"]).complains(3, &["for writing"]);
    drop(file);
    let given = done(&[&url, place, "-o", "ro,nosuid,nodev,noexec,remount"]);
    assert!(["ro", "nosuid", "nodev", "noexec"].iter().all(|word| given.contains(word)), "{given}");
    assert!(fs::write(at.path().join("file"), b"data").is_err());
    // As mount(8) looks for what is mounted, with what it has found in its table; without a PATH.
    let binary = dir.path().join("mount.fuse.nfskit");
    symlink(env!("CARGO_BIN_EXE_nfskit"), &binary).unwrap();
    let words = "rw,nosuid,relatime,user_id=0,group_id=0,default_permissions,allow_other,remount";
    let mut command = Command::new(binary);
    let finished = Program::start(command.env_clear().args([&url, place, "-o", words])).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let given = flags(at.path());
    assert!(given.starts_with("rw") && !given.contains("noexec"), "{given}");
    fs::write(at.path().join("file"), b"data").unwrap();
    unmount(at.path());
    helper(dir.path(), &[&url, place, "-o", "remount"]).complains(3, &["nothing of ours"]);
    // Whoever does without mount(8) has it the careful way.
    let mounted = super::Mounted::new(&served, &[]);
    assert!(flags(mounted.at.path()).contains("nosuid,nodev"));
    mounted.stop();
    served.stop();
}
