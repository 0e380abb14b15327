//! Idle files are closed when nobody uses them, in time that the tests make.

use std::process::Command;

use super::*;

/// The descriptors of this process that are open on something whose path contains `part`.
fn open_on(part: &str) -> usize {
    let fds = fs::read_dir("/proc/self/fd").unwrap();
    let paths = fds.filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    paths.filter(|path| path.to_string_lossy().contains(part)).count()
}

fn fixture() -> Fixture {
    let metadata_sync = MetadataSync::Never;
    Fixture::new(DirOptions { metadata_sync, ..DirOptions::default() })
}

/// As a client does before it closes a file.
fn commit(at: &Fixture, file: &Handle) {
    let _ = block_on(at.store.commit(&ME, file, 0, 0));
}

/// What is held for a moment more, by the thread that has synced a file or by another test's child
/// of this process until it runs its program, comes to an end.
fn eventually(is_so: impl Fn() -> bool) {
    assert!((0..1000).any(|_| is_so() || {
        thread::yield_now();
        false
    }));
}

#[test]
fn a_program_written_by_a_client_can_be_run_when_it_was_idle_for_some_seconds() {
    each_kind(|at| {
        at.tend(10);
        let how = CreateHow::Guarded(mode(0o755));
        let made = block_on(at.store.create(&ME, &at.root(), b"program", how)).result.unwrap();
        at.write(&made.handle, 0, b"#!/bin/sh\nexit 7\n").unwrap();
        // As another client writes it, by a descriptor that was opened for it.
        commit(&at, &made.handle);
        let run = || Command::new(at.path("program")).status().map(|status| status.code());
        let is_busy = || run().is_err_and(|why| why.kind() == io::ErrorKind::ExecutableFileBusy);
        assert!(is_busy(), "it is open for writing");
        at.tend(13);
        assert!(is_busy(), "it may be written again");
        eventually(|| {
            at.tend(14);
            !is_busy()
        });
        assert_eq!(run().unwrap(), Some(7));
        // It is opened again when it is requested.
        assert_eq!(at.read(&made.handle, 0, 9).unwrap().0, b"#!/bin/sh");
        at.write(&made.handle, 15, b"8").unwrap();
        assert!(is_busy());
    });
}

#[test]
fn a_file_that_is_requested_again_and_again_stays_open() {
    let at = fixture();
    at.tend(1);
    let (used, idle) = (at.create(&at.root(), "used"), at.create(&at.root(), "idle"));
    let place = at.path("").to_string_lossy().into_owned();
    let is_open = |name: &str| open_on(&format!("{place}{name}"));
    for second in 2..20 {
        at.attr(&used.handle).unwrap();
        at.tend(second);
        assert_eq!(is_open("used"), 1);
        assert_eq!(is_open("idle"), usize::from(second < 5), "{second}");
    }
    assert!(at.attr(&idle.handle).is_ok());
}

#[test]
fn a_file_that_others_delete_gives_its_space_back_within_a_second_or_two() {
    let at = fixture();
    at.tend(1);
    let (idle, polled) = (at.create(&at.root(), "idle"), at.create(&at.root(), "polled"));
    at.write(&idle.handle, 0, b"data that nobody will ask for").unwrap();
    let place = at.path("").to_string_lossy().into_owned();
    for name in ["idle", "polled"] {
        fs::remove_file(at.path(name)).unwrap();
    }
    let held = || open_on(&format!("{place}idle")) + open_on(&format!("{place}polled"));
    assert_eq!(held(), 2);
    at.tend(2);
    assert_eq!(at.attr(&polled.handle).unwrap_err(), Status::Stale);
    at.tend(3);
    assert_eq!(held(), 0, "asking for what is gone does not keep it");
    for node in [idle, polled] {
        assert_eq!(at.attr(&node.handle).unwrap_err(), Status::Stale);
    }
}

#[test]
fn a_file_system_can_be_made_read_only_when_nobody_writes() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path().to_owned();
    let Some(_mount) = Mount::tmpfs(at.clone(), "size=1m") else {
        return;
    };
    let store = DirStore::open(&at, &DirOptions::default()).unwrap();
    let at = Fixture { store, options: DirOptions::default(), place };
    at.tend(1);
    let how = CreateHow::Guarded(mode(0o644));
    let root = at.root();
    let made = block_on(at.store.create(&ME, &root, b"file", how)).result.unwrap();
    at.write(&made.handle, 0, b"data").unwrap();
    commit(&at, &made.handle);
    let remount = |how: &str| {
        let mount = Command::new("mount").args(["-o", how]).arg(at.place.path()).output();
        mount.unwrap().status.success()
    };
    assert!(!remount("remount,ro"), "a file is open for writing");
    eventually(|| {
        at.tend(5);
        remount("remount,ro")
    });
    assert!(remount("remount,rw"));
    at.write(&made.handle, 0, b"more").unwrap();
}

/// An unprivileged server writes it by the descriptor of its CREATE, and by no other.
#[test]
fn a_file_that_could_not_be_opened_again_stays_open_for_as_long_as_a_client_holds_data_back() {
    if is_privileged() {
        not_tested("a file that its owner may not open: root may open it");
        return;
    }
    let at = fixture();
    at.tend(1);
    let how = CreateHow::Guarded(mode(0o444));
    let made = block_on(at.store.create(&ME, &at.root(), b"object", how)).result.unwrap();
    at.tend(31);
    at.write(&made.handle, 0, b"written late").unwrap();
    commit(&at, &made.handle);
    at.tend(32);
    eventually(|| {
        at.tend(92);
        at.store.tree.objects.readings()[0].value == 0.0
    });
    assert_eq!(at.write(&made.handle, 0, b"written too late").unwrap_err(), Status::Access);
}
