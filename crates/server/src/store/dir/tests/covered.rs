//! SETATTRs and COMMITs that go through the write log, because it is faster than the directory.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::logged::{Logged, logged, lose};
use super::*;

/// A server that takes its log for faster, whatever the two disks are.
fn covered() -> Option<Logged> {
    let mut at = logged()?;
    at.at.options.write_log.as_mut().unwrap().is_faster = Some(true);
    let (at, _) = at.again(1, |_| ());
    Some(at)
}

/// The same, where changes within one second do not look alike: there more is synced, or less is
/// noticed.
fn covered_with_fine_times() -> Option<Logged> {
    let at = covered()?;
    let are_fine = fs::metadata(at.at.path(".")).unwrap().ctime_nsec() != 0;
    if !are_fine {
        eprintln!("not tried: times are whole seconds here");
    }
    are_fine.then_some(at)
}

/// As if a replay had begun before the last loss of power: the times of files, which this test
/// cannot set back, say nothing.
fn forget_times(at: &Fixture) {
    let name = "user.nfskit.write_log.replay";
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(at.path(""), name, &[0; 12], flags).unwrap();
}

fn set(at: &Logged, file: &Handle, changes: SetAttr) -> usize {
    let before = at.syncs();
    at.at.set_attr(file, changes).unwrap();
    at.syncs() - before
}

#[test]
fn attributes_are_answered_by_the_log_and_survive() {
    let Some(at) = covered() else { return };
    let file = at.file("file", b"old");
    let dir = at.at.make_dir(&at.at.root(), "dir").handle;
    assert_eq!(set(&at, &dir, mode(0o755)), 1, "it was never synced with its attributes");
    let (accessed, modified) = (Time { secs: 1, nanos: 0 }, Time { secs: 3, nanos: 0 });
    let times = SetAttr {
        accessed: SetTime::To(accessed),
        modified: SetTime::To(modified),
        ..SetAttr::default()
    };
    assert_eq!(set(&at, &file, mode(0o640)), 0);
    assert_eq!(set(&at, &file, times), 0);
    assert_eq!(set(&at, &dir, mode(0o711)), 0);
    let (at, recovered) = at.again(2, |at| {
        for (name, mode) in [("file", 0o600), ("dir", 0o700)] {
            fs::set_permissions(at.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        lose(at, "file", b"old");
        forget_times(at);
    });
    assert_eq!((recovered.files, recovered.records, recovered.gone), (2, 3, 0));
    assert_eq!(recovered.attributes, 3);
    let [file, dir] = ["file", "dir"].map(|name| at.at.walk(name).unwrap().attr);
    assert_eq!((file.mode & 0o7777, dir.mode & 0o7777), (0o640, 0o711));
    assert_eq!((file.accessed, file.modified), (accessed, modified));
}

/// What is on the disk was changed after the record: the record is in it.
#[test]
fn attributes_that_others_set_later_stand() {
    let Some(at) = covered_with_fine_times() else { return };
    let file = at.file("file", b"old");
    assert_eq!(set(&at, &file, mode(0o640)), 0);
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let (at, recovered) = at.again(2, |at| {
        fs::set_permissions(at.path("file"), fs::Permissions::from_mode(0o444)).unwrap();
    });
    assert_eq!((recovered.records, recovered.attributes, recovered.changed), (1, 0, 1));
    assert_eq!(fs::metadata(at.at.path("file")).unwrap().mode() & 0o7777, 0o444);
}

#[test]
fn a_truncation_comes_before_what_was_written_after_it() {
    let Some(at) = covered() else { return };
    let sized = |size| SetAttr { size: Some(size), ..SetAttr::default() };
    let [cut, again] = ["cut", "again"].map(|name| at.file(name, b"old content"));
    for file in [&cut, &again] {
        assert_eq!(set(&at, file, sized(1)), 0);
        at.write(file, 2, b"new", Stability::FileSync).unwrap();
    }
    assert!(set(&at, &again, sized(0)) > 0, "it has records, which come to their place first");
    at.write(&again, 0, b"x", Stability::FileSync).unwrap();
    let (at, _) = at.again(2, |at| {
        lose(at, "cut", b"old content");
        lose(at, "again", b"");
        forget_times(at);
    });
    assert_eq!(fs::read(at.at.path("cut")).unwrap(), b"o\0new");
    assert_eq!(fs::read(at.at.path("again")).unwrap(), b"x");
}

#[test]
fn a_commit_of_a_little_is_answered_by_the_log_and_survives() {
    let Some(at) = covered() else { return };
    let file = at.file("file", b"old");
    let before = at.syncs();
    for (offset, data) in [(0, &b"first"[..]), (3, b"second"), (20, b"third")] {
        at.write(&file, offset, data, Stability::Unstable).unwrap();
    }
    at.commit(&file).unwrap();
    assert_eq!(at.syncs(), before, "the file itself was not synced");
    let content = fs::read(at.at.path("file")).unwrap();
    let (at, recovered) = at.again(2, |at| lose(at, "file", b"old"));
    assert_eq!((recovered.files, recovered.records), (1, 3));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), content);
}

#[test]
fn what_the_log_would_not_know_all_of_is_committed_in_the_file() {
    let Some(at) = covered_with_fine_times() else { return };
    static LARGE: [u8; 65 << 10] = [1; 65 << 10];
    let unstable = |file: &Handle, data: &'static [u8]| {
        let _ = at.write(file, 0, data, Stability::Unstable).unwrap();
    };
    type Then<'a> = &'a dyn Fn(&Handle);
    let cases: [(&str, Then<'_>); 4] = [
        ("a lot", &|file| unstable(file, &LARGE)),
        ("a stable write over it", &|file| {
            at.write(file, 2, b"stable", Stability::FileSync).unwrap();
        }),
        ("a truncation", &|file| {
            at.at.set_attr(file, SetAttr { size: Some(2), ..SetAttr::default() }).unwrap();
            unstable(file, b"x");
        }),
        ("a program's", &|_| fs::write(at.at.path("a program's"), b"a program's").unwrap()),
    ];
    for (name, then) in cases {
        let file = at.file(name, b"old");
        unstable(&file, b"unstable");
        let before = at.syncs();
        then(&file);
        at.commit(&file).unwrap();
        assert!(at.syncs() > before, "{name}");
    }
    let met = at.at.create(&at.at.root(), "met just now").handle;
    unstable(&met, b"x");
    let before = at.syncs();
    at.commit(&met).unwrap();
    assert_eq!(at.syncs(), before + 1, "its inode may not be there after a crash");
    unstable(&met, b"y");
    at.commit(&met).unwrap();
    assert_eq!(at.syncs(), before + 1);
}

#[test]
fn what_was_there_before_the_server_is_known_to_be_stable() {
    let Some(at) = covered_with_fine_times() else { return };
    let (at, _) = at.again(1, |at| {
        for name in ["written", "set", "committed", "replaced"] {
            fs::write(at.path(name), b"old").unwrap();
        }
    });
    let [written, setted, committed, replaced] =
        ["written", "set", "committed", "replaced"].map(|name| at.at.walk(name).unwrap().handle);
    let before = at.syncs();
    at.write(&written, 0, b"new", Stability::FileSync).unwrap();
    at.at.set_attr(&setted, mode(0o600)).unwrap();
    at.write(&committed, 0, b"new", Stability::Unstable).unwrap();
    at.commit(&committed).unwrap();
    assert_eq!(at.syncs(), before);
    fs::write(at.at.path("replaced"), b"by a program, and not synced").unwrap();
    at.write(&replaced, 0, b"new", Stability::FileSync).unwrap();
    assert_eq!(at.syncs(), before + 1);
}

#[test]
fn after_a_sync_that_failed_nothing_is_committed_from_memory() {
    let Some(at) = covered() else { return };
    let file = at.file("file", b"old");
    static LARGE: [u8; 65 << 10] = [1; 65 << 10];
    at.write(&file, 0, &LARGE, Stability::Unstable).unwrap();
    at.fails.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(at.commit(&file), Err(Status::Io));
    at.fails.store(false, std::sync::atomic::Ordering::SeqCst);
    at.write(&file, 0, b"little", Stability::Unstable).unwrap();
    let before = at.syncs();
    at.commit(&file).unwrap();
    assert!(at.syncs() > before);
}

#[test]
fn a_log_that_is_no_faster_than_the_directory_has_stable_writes_alone() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    assert_eq!(set(&at, &file, mode(0o640)), 1);
    let before = at.syncs();
    at.write(&file, 0, b"new", Stability::Unstable).unwrap();
    at.commit(&file).unwrap();
    assert_eq!(at.syncs(), before + 1);
}
