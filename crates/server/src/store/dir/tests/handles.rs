//! Handles: they follow their file, and never lead to another or outside.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_handle_follows_its_file_through_renames() {
    each_kind(|at| {
        let (a, b) = (at.make_dir(&at.root(), "a"), at.make_dir(&at.root(), "b"));
        let file = at.create(&a.handle, "file");
        at.write(&file.handle, 0, b"hello").unwrap();
        at.rename(&a.handle, "file", &b.handle, "moved").unwrap();
        at.rename(&at.root(), "b", &a.handle, "inner").unwrap();
        // Others in between, so that a cache of one has to open it again.
        at.create(&at.root(), "other");
        assert_eq!(at.read(&file.handle, 0, 10).unwrap().0, b"hello");
        assert_eq!(at.walk("a/inner/moved").unwrap().handle, file.handle);
        assert_eq!(at.attr(&file.handle).unwrap().fileid, file.attr.fileid);
    });
}

#[test]
fn after_a_rename_by_others_a_kernel_handle_works_and_a_table_handle_when_looked_up_again() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        let file = at.create(&dir.handle, "file");
        at.create(&at.root(), "other");
        fs::rename(at.path("dir"), at.path("renamed")).unwrap();
        if at.is_kernel() {
            assert!(at.attr(&file.handle).is_ok());
        }
        assert_eq!(at.walk("renamed/file").unwrap().handle, file.handle);
        at.lookup(&at.root(), "other").unwrap();
        assert!(at.attr(&file.handle).is_ok());
    });
}

#[test]
fn a_deleted_file_is_stale_whoever_deletes_it() {
    each_kind(|at| {
        let mine = at.create(&at.root(), "mine");
        let theirs = at.create(&at.root(), "theirs");
        let dir = at.make_dir(&at.root(), "dir");
        at.remove(&at.root(), "mine").unwrap();
        fs::remove_file(at.path("theirs")).unwrap();
        fs::remove_dir(at.path("dir")).unwrap();
        for gone in [mine, theirs, dir] {
            assert_eq!(at.attr(&gone.handle).unwrap_err(), Status::Stale);
        }
        assert_eq!(at.read(&theirs.handle, 0, 1).unwrap_err(), Status::Stale);
        assert_eq!(at.write(&theirs.handle, 0, b"x").unwrap_err(), Status::Stale);
        assert_eq!(at.lookup(&dir.handle, "x").unwrap_err(), Status::Stale);
    });
}

/// The same name, often the same inode, sometimes the same time of birth; never the same handle.
#[test]
fn a_replaced_file_is_stale() {
    each_kind(|at| {
        for round in 0..20 {
            let old = at.create(&at.root(), "name");
            if round % 2 == 0 {
                at.remove(&at.root(), "name").unwrap();
            } else {
                at.create(&at.root(), "successor");
                at.rename(&at.root(), "successor", &at.root(), "name").unwrap();
                at.remove(&at.root(), "name").unwrap();
            }
            let new = at.create(&at.root(), "name");
            assert_ne!(old.handle, new.handle);
            assert_eq!(at.attr(&old.handle).unwrap_err(), Status::Stale);
            assert!(at.attr(&new.handle).is_ok());
            at.remove(&at.root(), "name").unwrap();
        }
    });
}

#[test]
fn a_file_replaced_by_others_is_stale() {
    each_kind(|at| {
        let old = at.create(&at.root(), "name");
        // So that a cache of one has to find the old one by its name.
        at.create(&at.root(), "other");
        fs::write(at.path("successor"), "new").unwrap();
        fs::rename(at.path("successor"), at.path("name")).unwrap();
        assert_eq!(at.attr(&old.handle).unwrap_err(), Status::Stale);
        let new = at.lookup(&at.root(), "name").unwrap();
        assert_eq!(at.read(&new.handle, 0, 10).unwrap().0, b"new");
    });
}

#[test]
fn the_roots_handle_survives_a_restart_and_kernel_handles_do_too() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        let file = at.create(&dir.handle, "file");
        let root = at.root();
        let at = at.restart();
        assert_eq!(at.root(), root);
        match at.store.handles_in_use() {
            HandlesInUse::Kernel { survive_restart: true } => {
                assert!(at.attr(&file.handle).is_ok())
            }
            HandlesInUse::Kernel { survive_restart: false } => {
                not_tested("a restart: the key cannot be stored here")
            }
            HandlesInUse::Table { .. } => {
                assert_eq!(at.attr(&file.handle).unwrap_err(), Status::Stale);
                assert!(at.walk("dir/file").is_ok());
            }
        }
    });
}

#[test]
fn a_key_from_outside_makes_handles_survive_without_an_attribute() {
    if !kernel_handles_work() {
        not_tested("a key from outside: no kernel handles");
        return;
    }
    let at = Fixture::new(DirOptions {
        handle_key: Some([7; 16]),
        handles: HandleChoice::Kernel,
        ..DirOptions::default()
    });
    let file = at.create(&at.root(), "file");
    let at = at.restart();
    assert!(at.attr(&file.handle).is_ok());
    let mut names = [0; 256];
    let len = rustix::fs::listxattr(at.path(""), &mut names).unwrap();
    assert!(!names[..len].windows(6).any(|part| part == b"nfskit"));
}

/// `cp -a` and snapshots bring extended attributes along.
#[test]
fn a_handle_of_one_root_is_stale_in_a_copy_that_has_its_key() {
    const KEY: &str = "trusted.nfskit.handle_key";
    let options = DirOptions { handles: HandleChoice::Best, ..DirOptions::default() };
    let at = Fixture::new(options.clone());
    let (mut key, copy) = ([0; 16], at.outside("copy"));
    fs::create_dir(&copy).unwrap();
    let copied = rustix::fs::getxattr(at.path(""), KEY, &mut key)
        .and_then(|_| rustix::fs::setxattr(&copy, KEY, &key, rustix::fs::XattrFlags::empty()));
    if copied.is_err() {
        not_tested("a copied key: none can be stored with the files here");
        return;
    }
    let file = at.create(&at.root(), "file");
    let copy = DirStore::open(&copy, &options).unwrap();
    for handle in [file.handle, at.root()] {
        assert_eq!(block_on(copy.attr(&ME, &handle)).unwrap_err(), Status::Stale);
    }
    assert!(at.restart().attr(&file.handle).is_ok());
}

#[test]
fn forged_and_foreign_handles_are_refused() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let good = file.handle.as_bytes();
        for index in 0..good.len() {
            let mut forged = good.to_vec();
            forged[index] ^= 1;
            let status = at.attr(&Handle::new(&forged).unwrap()).unwrap_err();
            assert!(matches!(status, Status::Stale | Status::BadHandle));
            let short = Handle::new(&good[..index]).unwrap();
            let status = at.attr(&short).unwrap_err();
            assert!(matches!(status, Status::Stale | Status::BadHandle));
        }
        let garbage = Handle::new(&[0xff; 40]).unwrap();
        assert_eq!(at.attr(&garbage).unwrap_err(), Status::BadHandle);
        let other_kind = if at.is_kernel() { b'T' } else { b'K' };
        let foreign = Handle::new(&[other_kind; 33]).unwrap();
        assert_eq!(at.attr(&foreign).unwrap_err(), Status::Stale);
    });
}

#[test]
fn links_lead_nowhere() {
    each_kind(|at| {
        symlink(at.outside(""), at.path("out")).unwrap();
        symlink("../outside/secret", at.path("file")).unwrap();
        let out = at.lookup(&at.root(), "out").unwrap();
        assert_eq!(out.attr.kind, FileKind::Symlink);
        assert_eq!(at.lookup(&out.handle, "secret").unwrap_err(), Status::NotDirectory);
        let file = at.lookup(&at.root(), "file").unwrap();
        assert_eq!(at.read(&file.handle, 0, 9).unwrap_err(), Status::Invalid);
        assert_eq!(at.write(&file.handle, 0, b"x").unwrap_err(), Status::Invalid);
        let size = SetAttr { size: Some(0), ..SetAttr::default() };
        assert_eq!(at.set_attr(&file.handle, size).unwrap_err(), Status::Invalid);
        // CREATE must not write through it either.
        let how = CreateHow::Unchecked(size);
        let created = block_on(at.store.create(&ME, &at.root(), b"file", how));
        assert_eq!(created.result.unwrap_err(), Status::Exists);
        assert_eq!(fs::read(at.outside("secret")).unwrap(), b"secret");
    });
}

/// Another process swaps a directory for a link to the outside, where the same names exist.
#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        let file = at.create(&dir.handle, "secret");
        at.create(&at.root(), "other");
        fs::rename(at.path("dir"), at.path("gone")).unwrap();
        symlink(at.outside(""), at.path("dir")).unwrap();
        match at.read(&file.handle, 0, 9) {
            Ok((data, _)) => assert_eq!(data, b"", "the file itself, by its kernel handle"),
            Err(status) => assert_eq!(status, Status::Stale),
        }
        let through = at.lookup(&dir.handle, "secret");
        assert!(through.is_err() || through.unwrap().attr.size == 0);
    });
}

#[test]
fn mount_points_inside_are_not_crossed() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "mounted");
        at.make_dir(&dir.handle, "below");
        let Some(_mount) = Mount::tmpfs(at.path("mounted"), "size=1m") else {
            return;
        };
        fs::write(at.path("mounted/file"), "elsewhere").unwrap();
        assert_eq!(at.lookup(&at.root(), "mounted").unwrap_err(), Status::Access);
        assert_eq!(at.remove(&at.root(), "mounted").unwrap_err(), Status::Access);
        // Its handle, from before, is still of the directory below the mount.
        assert_ne!(at.lookup(&dir.handle, "file").map(|_| ()), Ok(()));
    });
}

#[test]
fn a_store_tells_whether_it_leads_into_another() {
    let at = Fixture::new(DirOptions::default());
    fs::create_dir_all(at.path("a/b/c d")).unwrap();
    let store = |path: PathBuf| DirStore::open(path, &at.options).unwrap();
    let inner = store(at.path("a/b/c d"));
    assert!(at.store.leads_into(&inner));
    assert!(!inner.leads_into(&at.store));
    assert!(!at.store.leads_into(&store(at.path(""))), "the same, and not another inside it");
    assert!(!at.store.leads_into(&store(at.outside(""))));
    symlink(at.path("a/b"), at.path("link")).unwrap();
    assert!(at.store.leads_into(&store(at.path("link"))), "by its own name");
    fs::create_dir(at.outside("bound")).unwrap();
    let Some(_elsewhere) = Mount::bind(&at.path("a/b"), at.outside("bound")) else {
        return;
    };
    let bound = store(at.outside("bound"));
    assert!(at.store.leads_into(&bound), "it is a/b");
    let Some(_onto_itself) = Mount::bind(&at.path("a/b"), at.path("a/b")) else {
        return;
    };
    assert!(!at.store.leads_into(&store(at.path("a/b"))), "behind a mount point");
    assert!(!at.store.leads_into(&store(at.path("a/b/c d"))));
    assert_eq!(at.walk("a/b").unwrap_err(), Status::Access);
}

#[test]
fn a_place_of_this_host_is_found_in_an_export_by_any_name_that_leads_there() {
    let at = Fixture::new(DirOptions::default());
    fs::create_dir_all(at.path("var/state")).unwrap();
    fs::write(at.path("var/log"), "").unwrap();
    fs::create_dir(at.outside("bound")).unwrap();
    symlink(at.path("var/log"), at.outside("link")).unwrap();
    let (export, elsewhere) = (at.path(""), at.outside(""));
    for inside in ["var/state", "var/log", "var/not there", ""] {
        assert!(leads_to(&export, &at.path(inside)), "{inside}");
        assert!(!leads_to(&elsewhere, &at.path(inside)), "{inside}");
    }
    assert!(leads_to(&export, &at.outside("link")), "where a link leads");
    assert!(leads_to(&elsewhere, &at.outside("link")), "clients could let it lead elsewhere");
    assert!(!leads_to(&at.path("var/state"), &at.path("var/log")), "beside it");
    let Some(_bound) = Mount::bind(&at.path("var"), at.outside("bound")) else { return };
    let bound = at.outside("bound");
    assert!(leads_to(&bound, &at.path("var/state")) && leads_to(&bound, &at.path("var/log")));
    assert!(leads_to(&export, &bound.join("state")));
    assert!(!leads_to(&elsewhere, &at.path("var/state")), "behind a mount point");
}

/// A store with the table, which is stored; with a cache of one object, so that handles are opened.
fn stored(place: &tempfile::TempDir) -> Fixture {
    Fixture::new(DirOptions {
        handles: HandleChoice::Table,
        state_dir: Some(place.path().join("state")),
        open_files_max: Some(3),
        metadata_sync: MetadataSync::Never,
        ..DirOptions::default()
    })
}

#[test]
fn a_table_that_is_stored_knows_its_handles_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let at = stored(&state);
    assert_eq!(at.store.handles_in_use(), HandlesInUse::Table { survive_restart: true });
    let dir = at.make_dir(&at.root(), "dir");
    let file = at.create(&dir.handle, "file");
    let moved = at.create(&dir.handle, "old name");
    let deleted = at.create(&dir.handle, "deleted");
    at.write(&file.handle, 0, b"content").unwrap();
    at.rename(&dir.handle, "old name", &at.root(), "new name").unwrap();
    at.remove(&dir.handle, "deleted").unwrap();

    let mut at = at;
    for _ in 0..3 {
        at = at.restart();
        assert_eq!(at.read(&file.handle, 0, 100).unwrap().0, b"content");
        assert_eq!(at.attr(&moved.handle).unwrap().fileid, moved.attr.fileid);
        assert_eq!(at.attr(&deleted.handle).unwrap_err(), Status::Stale);
        assert_eq!(at.walk("dir/file").unwrap().handle, file.handle, "the same bytes");
        assert_eq!(at.walk("new name").unwrap().handle, moved.handle);
    }
    let new = at.create(&at.root(), "new");
    assert_ne!(new.handle, deleted.handle);
}

#[test]
fn what_others_did_while_the_server_was_away_is_found_or_stale() {
    let state = tempfile::tempdir().unwrap();
    let at = stored(&state);
    let (a, b) = (at.make_dir(&at.root(), "a"), at.make_dir(&at.root(), "b"));
    let inner = at.make_dir(&a.handle, "inner");
    let file = at.create(&inner.handle, "file");
    let replaced = at.create(&b.handle, "replaced");
    let deleted = at.create(&b.handle, "deleted");
    let Fixture { store, options, place } = at;
    drop(store);
    let path = |inside: &str| place.path().join("export").join(inside);
    fs::rename(path("a/inner"), path("b/elsewhere")).unwrap();
    fs::rename(path("b/elsewhere/file"), path("b/elsewhere/renamed")).unwrap();
    fs::write(path("b/successor"), "new").unwrap();
    fs::rename(path("b/successor"), path("b/replaced")).unwrap();
    fs::remove_file(path("b/deleted")).unwrap();
    let store = DirStore::open(path(""), &options).unwrap();
    let at = Fixture { store, options, place };
    assert_eq!(at.attr(&file.handle).unwrap().fileid, file.attr.fileid);
    assert_eq!(at.attr(&inner.handle).unwrap().fileid, inner.attr.fileid);
    assert_eq!(at.walk("b/elsewhere/renamed").unwrap().handle, file.handle);
    for gone in [replaced, deleted] {
        assert_eq!(at.attr(&gone.handle).unwrap_err(), Status::Stale);
        assert_eq!(at.attr(&gone.handle).unwrap_err(), Status::Stale);
    }
    // Moved out of the export it is out of reach.
    fs::rename(at.path("b/elsewhere/renamed"), at.outside("away")).unwrap();
    at.create(&at.root(), "other");
    assert_eq!(at.attr(&file.handle).unwrap_err(), Status::Stale);
}
