//! File systems whose numbers and handles are not theirs, or of one life only: programs behind
//! FUSE.

use super::*;
use crate::store::dir::beneath::Component;

fn on_fuse(path: &Path, options: &DirOptions) -> Result<DirStore, OpenError> {
    DirStore::open_on(path, options, Box::new(sync::sync_call), FileSystem::as_fuse)
}

fn fixture(options: DirOptions) -> Fixture {
    let at = Fixture::new(options);
    let store = on_fuse(&at.path(""), &at.options).unwrap();
    Fixture { store, ..at }
}

#[test]
fn no_handle_of_a_program_behind_fuse_outlives_the_process_that_gave_it() {
    let state = tempfile::tempdir().unwrap();
    let state_dir = Some(state.path().to_owned());
    for handles in [HandleChoice::Best, HandleChoice::Table] {
        let options = DirOptions { handles, state_dir: state_dir.clone(), ..DirOptions::default() };
        let at = fixture(options);
        assert_eq!(at.store.handles_in_use(), HandlesInUse::Table { survive_restart: false });
        let old = at.create(&at.root(), "file").handle;
        assert!(at.attr(&old).is_ok());
        let Fixture { store, options, place } = at;
        let root = store.root();
        drop(store);
        let store = on_fuse(&place.path().join("export"), &options).unwrap();
        let at = Fixture { store, options, place };
        assert_eq!(at.root(), root, "the root's is what clients have mounted");
        let new = at.lookup(&at.root(), "file").unwrap().handle;
        assert_ne!(new, old);
        assert_eq!(at.attr(&old).unwrap_err(), Status::Stale);
    }
}

#[test]
fn kernel_handles_that_do_not_last_end_with_the_process() {
    if !kernel_handles_work() {
        not_tested("kernel handles: this process may not open them");
        return;
    }
    let key = Some([7; 16]);
    let handles = HandleChoice::Kernel;
    let at = fixture(DirOptions { handles, handle_key: key, ..DirOptions::default() });
    assert_eq!(at.store.handles_in_use(), HandlesInUse::Kernel { survive_restart: false });
    let old = at.create(&at.root(), "file").handle;
    let Fixture { store, options, place } = at;
    drop(store);
    let store = on_fuse(&place.path().join("export"), &options).unwrap();
    let at = Fixture { store, options, place };
    assert_eq!(at.attr(&old).unwrap_err(), Status::Stale);
}

#[test]
fn a_write_log_is_not_taken_where_handles_do_not_last() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    fs::create_dir(place.path().join("export")).unwrap();
    let write_log = Some(write_log::WriteLog::new(vec![log.clone()], 16 << 20));
    let options = DirOptions { write_log, ..DirOptions::default() };
    let refused = on_fuse(&place.path().join("export"), &options).err();
    assert!(matches!(refused, Some(OpenError::Log(LogError::NeedsHandles))), "{refused:?}");
    assert!(!log.exists(), "nothing was made");
}

/// Open, it would be hidden under another name in its directory until it is closed.
#[test]
fn what_is_removed_from_fuse_is_closed_before_if_all_of_it_is_stable() {
    let is_open = |at: &Fixture, file: &Handle| at.store.tree.objects.is_cached(file);
    let at = fixture(DirOptions::default());
    for (name, stability, is_closed) in
        [("stable", Stability::FileSync, true), ("unstable", Stability::Unstable, false)]
    {
        let file = at.create(&at.root(), name).handle;
        let data = Bytes::from_static(b"data");
        block_on(at.store.write(&ME, &file, 0, data, stability)).result.unwrap();
        fs::hard_link(at.path(name), at.path("other name")).unwrap();
        assert!(is_open(&at, &file));
        at.remove(&at.root(), name).unwrap();
        assert_eq!(!is_open(&at, &file), is_closed, "{name}");
        at.remove(&at.root(), "other name").unwrap();
        assert!(!is_open(&at, &file));
    }
}

/// A program passes the numbers of several disks on: two files that are there have one number.
#[test]
fn a_number_alone_makes_no_file_another_that_is_open() {
    let recognised = |at: &Fixture| {
        at.create(&at.root(), "file");
        let name = Component::new(b"file").unwrap();
        at.store.tree.met(&at.store.tree.root, name).unwrap().is_some()
    };
    let plain = Fixture::new(DirOptions::default());
    assert!(recognised(&plain) || !plain.store.tree.file_system.has_own_numbers());
    assert!(!recognised(&fixture(DirOptions::default())));
}
