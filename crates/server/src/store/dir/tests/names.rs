//! Making, removing and moving names.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

#[test]
fn every_kind_of_file_is_made_found_and_removed() {
    each_kind(|at| {
        let root = at.root();
        at.create(&root, "file");
        at.make_dir(&root, "dir");
        let symlink = at.store.symlink(&ME, &root, b"link", b"some/where", mode(0o777));
        let link = block_on(symlink).result.unwrap();
        let text = block_on(at.store.read_link(&ME, &link.handle));
        assert_eq!(&text.result.unwrap()[..], b"some/where");
        for (name, what) in [("fifo", Special::Fifo), ("socket", Special::Socket)] {
            let made = at.store.make_node(&ME, &root, name.as_bytes(), what, mode(0o640));
            assert_eq!(block_on(made).result.unwrap().attr.mode, 0o640);
        }
        let kinds = ["file", "dir", "link", "fifo", "socket"].map(|name| {
            let node = at.lookup(&root, name).unwrap();
            assert_eq!(at.attr(&node.handle).unwrap().kind, node.attr.kind);
            node.attr.kind
        });
        let expected = [
            FileKind::Regular,
            FileKind::Directory,
            FileKind::Symlink,
            FileKind::Fifo,
            FileKind::Socket,
        ];
        assert_eq!(kinds, expected);
        for name in ["file", "link", "fifo", "socket"] {
            at.remove(&root, name).unwrap();
        }
        block_on(at.store.remove_dir(&ME, &root, b"dir")).result.unwrap();
        assert_eq!(fs::read_dir(at.path("")).unwrap().count(), 0);
    });
}

/// Who may write to a directory can put something else under a name before it is found by that.
#[test]
fn what_somebody_has_put_where_a_directory_was_made_gets_no_mode_of_it() {
    each_kind(|at| {
        let tree = &at.store.tree;
        let dir = tree.object(&at.root()).unwrap();
        let name = |name: &'static str| beneath::Component::new(name.as_bytes());
        let made = |kind, at_name| {
            let set = mode(0o777);
            tree.made_node(&ME, &dir, name(at_name).unwrap(), kind, &set).map(|_| ())
        };
        let private = fs::Permissions::from_mode(0o700);
        fs::create_dir(at.path("full")).unwrap();
        fs::write(at.path("full/secret"), "secret").unwrap();
        fs::write(at.path("file"), "secret").unwrap();
        for path in ["full", "file"] {
            fs::set_permissions(at.path(path), private.clone()).unwrap();
            assert_eq!(made(FileKind::Directory, path), Err(Status::Exists));
            assert_eq!(fs::metadata(at.path(path)).unwrap().mode() & 0o777, 0o700, "{path}");
        }
        fs::create_dir(at.path("new")).unwrap();
        fs::set_permissions(at.path("new"), private).unwrap();
        assert_eq!(made(FileKind::Directory, "new"), Ok(()));
        assert_eq!(fs::metadata(at.path("new")).unwrap().mode() & 0o777, 0o777);
    });
}

#[test]
fn devices_are_made_only_with_privilege() {
    each_kind(|at| {
        let root = at.root();
        let what = Special::CharDevice { major: 1, minor: 3 };
        let made = at.store.make_node(&ME, &root, b"null", what, mode(0o600));
        match block_on(made).result {
            Ok(node) => assert_eq!(node.attr.device, (1, 3)),
            Err(status) => assert!(!is_privileged() && status == Status::NotOwner),
        }
    });
}

#[test]
fn modes_are_as_requested_whatever_the_umask() {
    each_kind(|at| {
        let root = at.root();
        for (index, wanted) in [0o666, 0o777, 0o602, 0o4755].into_iter().enumerate() {
            let how = CreateHow::Guarded(mode(wanted));
            let name = format!("file{index}");
            let created = block_on(at.store.create(&ME, &at.root(), name.as_bytes(), how));
            assert_eq!(created.result.unwrap().attr.mode, wanted);
            let name = format!("dir{index}");
            let made = at.store.make_dir(&ME, &root, name.as_bytes(), mode(wanted));
            assert_eq!(block_on(made).result.unwrap().attr.mode, wanted);
        }
    });
}

#[test]
fn what_is_made_without_a_mode_is_its_makers_alone() {
    each_kind(|at| {
        let (root, none) = (at.root(), SetAttr::default());
        let how = CreateHow::Guarded(none);
        let file = block_on(at.store.create(&ME, &root, b"file", how)).result.unwrap().attr;
        let dir = block_on(at.store.make_dir(&ME, &root, b"dir", none)).result.unwrap().attr;
        let fifo = at.store.make_node(&ME, &root, b"fifo", Special::Fifo, none);
        let fifo = block_on(fifo).result.unwrap().attr;
        assert_eq!([file.mode, dir.mode, fifo.mode], [0o600, 0o700, 0o600]);
    });
}

/// In the bytes of acl(5)'s extended attribute.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |&(tag, may, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
}

/// A directory with a default ACL; none, loudly, where the file system has no such thing.
fn with_default_acl(at: &Fixture, name: &str, default: &[u8]) -> Option<Handle> {
    let within = at.make_dir(&at.root(), name).handle;
    let (flags, path) = (rustix::fs::XattrFlags::empty(), at.path(name));
    match rustix::fs::setxattr(&path, c"system.posix_acl_default", default, flags) {
        Err(Errno::OPNOTSUPP) => not_tested("default ACLs: none on this file system"),
        outcome => return outcome.map(|()| within).ok(),
    }
    None
}

#[test]
fn rights_that_a_default_acl_withholds_are_given_to_nobody() {
    let [owner, user, group, mask, others] = [1, 2, 4, 0x10, 0x20];
    let nobody = u32::MAX;
    let plain = acl(&[(owner, 7, nobody), (group, 5, nobody), (others, 0, nobody)]);
    let named = [(owner, 7, nobody), (user, 7, 1001), (group, 5, nobody), (mask, 5, nobody)];
    let named = acl(&[&named[..], &[(others, 0, nobody)]].concat());
    each_kind(|at| {
        for (default, dir) in [(&plain, "plain"), (&named, "named")] {
            let Some(within) = with_default_acl(&at, dir, default) else { return };
            let how = CreateHow::Guarded(mode(0o4664));
            let file = block_on(at.store.create(&ME, &within, b"file", how)).result.unwrap();
            assert_eq!(file.attr.mode, 0o4640, "{dir}");
            let made = at.store.make_dir(&ME, &within, b"dir", mode(0o1777));
            assert_eq!(block_on(made).result.unwrap().attr.mode, 0o1750, "{dir}");
            let made = at.store.make_node(&ME, &within, b"fifo", Special::Fifo, mode(0o666));
            assert_eq!(block_on(made).result.unwrap().attr.mode, 0o640, "{dir}");
        }
    });
}

/// As what is made with a mode, and whatever is written before it has one.
#[test]
fn an_exclusive_create_gets_no_rights_that_a_default_acl_withholds() {
    let [owner, user, group, mask, others] = [1, 2, 4, 0x10, 0x20];
    let nobody = u32::MAX;
    let private = acl(&[(owner, 7, nobody), (group, 0, nobody), (others, 0, nobody)]);
    let many = (0..80).map(|id| (user, 7, 1000 + id));
    let many = [(owner, 7, nobody)].into_iter().chain(many);
    let rest = [(group, 5, nobody), (mask, 5, nobody), (others, 0, nobody)];
    let named = acl(&many.chain(rest).collect::<Vec<_>>());
    let times = SetAttr { accessed: SetTime::ToServer, modified: SetTime::ToServer, ..mode(0o664) };
    each_kind(|at| {
        for (default, dir, expected) in [(&private, "private", 0o600), (&named, "named", 0o640)] {
            let Some(within) = with_default_acl(&at, dir, default) else { return };
            for (name, first, writes) in [
                ("plain", times, false),
                ("written", times, true),
                ("mode alone", mode(0o664), false),
            ] {
                let create = || {
                    let how = CreateHow::Exclusive([0xfe, 2, 3, 4, 5, 6, 7, 8]);
                    block_on(at.store.create(&ME, &within, name.as_bytes(), how)).result
                };
                let file = create().unwrap().handle;
                assert_eq!(create().unwrap().handle, file, "the same once more");
                if writes {
                    at.write(&file, 0, b"secret").unwrap();
                }
                at.set_attr(&file, first).unwrap();
                assert_eq!(at.attr(&file).unwrap().mode, expected, "{dir}/{name}");
                // Who gives rights afterwards means them.
                at.set_attr(&file, mode(0o664)).unwrap();
                assert_eq!(at.attr(&file).unwrap().mode, 0o664, "{dir}/{name}");
            }
        }
    });
}

/// What cp -a does: the times of its source, and then the mode.
#[test]
fn a_copy_gets_its_mode_whatever_time_its_source_was_read() {
    each_kind(|at| {
        let how = CreateHow::Guarded(mode(0o600));
        let copy = block_on(at.store.create(&ME, &at.root(), b"copy", how)).result.unwrap().handle;
        at.write(&copy, 0, b"data").unwrap();
        let accessed = Time { secs: 1_700_000_000, nanos: 717_000_000 + 0o044 };
        let modified = Time { secs: 1_700_000_000, nanos: 123_456_789 };
        let (to_accessed, to_modified) = (SetTime::To(accessed), SetTime::To(modified));
        let times = SetAttr { accessed: to_accessed, modified: to_modified, ..SetAttr::default() };
        at.set_attr(&copy, times).unwrap();
        at.set_attr(&copy, mode(0o644)).unwrap();
        let attr = at.attr(&copy).unwrap();
        assert_eq!((attr.mode, attr.accessed), (0o644, accessed));
    });
}

#[test]
fn a_device_that_linux_has_no_numbers_for_is_not_made() {
    each_kind(|at| {
        let root = at.root();
        for (major, minor) in [(4097, 3), (8, 0x20_0001), (1 << 12, 0), (0, 1 << 20)] {
            let what = Special::CharDevice { major, minor };
            let made = at.store.make_node(&ME, &root, b"device", what, SetAttr::default());
            assert_eq!(block_on(made).result.unwrap_err(), Status::Invalid, "{major}:{minor}");
        }
        assert!(at.lookup(&at.root(), "device").is_err());
    });
}

#[test]
fn names_that_cannot_be_are_refused_with_their_reason() {
    each_kind(|at| {
        let root = at.root();
        let file = at.create(&root, "file");
        let dir = at.make_dir(&root, "dir");
        at.create(&dir.handle, "inner");
        let lookup = |dir: &Node, name| at.lookup(&dir.handle, name).unwrap_err();
        assert_eq!(at.lookup(&root, "none").unwrap_err(), Status::NoEntry);
        assert_eq!(lookup(&file, "x"), Status::NotDirectory);
        assert_eq!(lookup(&file, "."), Status::NotDirectory);
        assert_eq!(at.lookup(&root, "a/b").unwrap_err(), Status::Invalid);
        assert_eq!(at.lookup(&root, &"x".repeat(256)).unwrap_err(), Status::NameTooLong);
        assert_eq!(at.remove(&root, "none").unwrap_err(), Status::NoEntry);
        assert_eq!(at.remove(&root, "dir").unwrap_err(), Status::IsDirectory);
        assert_eq!(at.remove(&root, "..").unwrap_err(), Status::Invalid);
        let remove_dir = |name: &[u8]| block_on(at.store.remove_dir(&ME, &root, name)).result;
        assert_eq!(remove_dir(b"dir").unwrap_err(), Status::NotEmpty);
        assert_eq!(remove_dir(b"file").unwrap_err(), Status::NotDirectory);
        let made = at.store.make_dir(&ME, &root, b"file", mode(0o755));
        assert_eq!(block_on(made).result.unwrap_err(), Status::Exists);
        let how = CreateHow::Guarded(SetAttr::default());
        let created = block_on(at.store.create(&ME, &root, b"file", how));
        assert_eq!(created.result.unwrap_err(), Status::Exists);
        let how = CreateHow::Unchecked(SetAttr::default());
        let created = block_on(at.store.create(&ME, &root, b"dir", how));
        assert_eq!(created.result.unwrap_err(), Status::Exists);
        let read = block_on(at.store.read_link(&ME, &file.handle));
        assert_eq!(read.result.unwrap_err(), Status::Invalid);
        assert_eq!(read.attr.unwrap().fileid, file.attr.fileid);
    });
}

#[test]
fn an_unchecked_create_opens_what_is_there_and_sets_only_its_size() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        at.write(&file.handle, 0, b"content").unwrap();
        let create = |attrs| {
            let how = CreateHow::Unchecked(attrs);
            block_on(at.store.create(&ME, &at.root(), b"file", how)).result.unwrap()
        };
        let opened = create(mode(0o600));
        assert_eq!((opened.handle, opened.attr.mode), (file.handle, 0o644));
        assert_eq!(opened.attr.size, 7);
        let emptied = create(SetAttr { size: Some(0), ..mode(0o600) });
        assert_eq!((emptied.attr.size, emptied.attr.mode), (0, 0o644));
    });
}

#[test]
fn a_repeated_exclusive_create_is_the_same_success_even_after_a_restart() {
    each_kind(|at| {
        let create = |at: &Fixture, verifier| {
            let how = CreateHow::Exclusive(verifier);
            block_on(at.store.create(&ME, &at.root(), b"file", how)).result
        };
        let verifier = [0xfe, 2, 3, 4, 0x85, 6, 7, 8];
        let first = create(&at, verifier).unwrap();
        assert_eq!(create(&at, verifier).unwrap().handle, first.handle);
        assert_eq!(create(&at, [9; 8]).unwrap_err(), Status::Exists);
        let at = at.restart();
        let again = create(&at, verifier).unwrap();
        assert_eq!(again.attr.fileid, first.attr.fileid);
        assert_eq!(create(&at, [9; 8]).unwrap_err(), Status::Exists);
        // Once it has its real times, the name is simply taken.
        let times =
            SetAttr { accessed: SetTime::ToServer, modified: SetTime::ToServer, ..mode(0o644) };
        at.set_attr(&again.handle, times).unwrap();
        assert_eq!(create(&at, verifier).unwrap_err(), Status::Exists);
    });
}

#[test]
fn a_create_whose_attributes_fail_leaves_nothing_behind() {
    each_kind(|at| {
        let bad = SetAttr {
            modified: SetTime::To(Time { secs: 0, nanos: u32::MAX }),
            ..SetAttr::default()
        };
        let how = CreateHow::Guarded(bad);
        let created = block_on(at.store.create(&ME, &at.root(), b"file", how));
        assert_eq!(created.result.unwrap_err(), Status::Invalid);
        let made = block_on(at.store.make_dir(&ME, &at.root(), b"dir", bad));
        assert_eq!(made.result.unwrap_err(), Status::Invalid);
        assert_eq!(fs::read_dir(at.path("")).unwrap().count(), 0);
    });
}

#[test]
fn a_file_renamed_over_is_stale_and_its_successor_keeps_its_handle() {
    each_kind(|at| {
        let root = at.root();
        let old = at.create(&root, "name");
        let new = at.create(&root, "new");
        at.rename(&root, "new", &root, "name").unwrap();
        assert_eq!(at.attr(&old.handle).unwrap_err(), Status::Stale);
        assert_eq!(at.lookup(&root, "name").unwrap().handle, new.handle);
        assert_eq!(at.lookup(&root, "new").unwrap_err(), Status::NoEntry);
    });
}

#[test]
fn renames_that_cannot_be_change_nothing() {
    each_kind(|at| {
        let root = at.root();
        let dir = at.make_dir(&root, "dir");
        let inner = at.make_dir(&dir.handle, "inner");
        at.create(&root, "file");
        let into_itself = at.rename(&root, "dir", &inner.handle, "loop");
        assert_eq!(into_itself.unwrap_err(), Status::Invalid);
        assert_eq!(at.rename(&root, "none", &root, "x").unwrap_err(), Status::NoEntry);
        assert_eq!(at.rename(&root, "file", &root, "dir").unwrap_err(), Status::IsDirectory);
        at.make_dir(&root, "empty");
        let onto_full = at.rename(&root, "empty", &root, "dir").unwrap_err();
        // XFS says the one, others the other.
        assert!([Status::NotEmpty, Status::Exists].contains(&onto_full), "{onto_full:?}");
        assert!(at.walk("dir/inner").is_ok() && at.walk("file").is_ok());
    });
}

#[test]
fn a_linked_file_lives_until_its_last_name_goes() {
    each_kind(|at| {
        let root = at.root();
        let dir = at.make_dir(&root, "dir");
        let file = at.create(&root, "file");
        let linked = block_on(at.store.link(&ME, &file.handle, &dir.handle, b"too"));
        linked.result.unwrap();
        assert_eq!(linked.attr.unwrap().links, 2);
        assert_eq!(at.walk("dir/too").unwrap().handle, file.handle);
        // To move one name of a file onto another does nothing (rename(2)).
        at.rename(&root, "file", &dir.handle, "too").unwrap();
        assert!(at.walk("file").is_ok());
        at.remove(&root, "file").unwrap();
        assert_eq!(at.attr(&file.handle).unwrap().links, 1);
        at.create(&root, "other");
        at.write(&file.handle, 0, b"alive").unwrap();
        at.remove(&dir.handle, "too").unwrap();
        assert_eq!(at.attr(&file.handle).unwrap_err(), Status::Stale);
        let of_dir = block_on(at.store.link(&ME, &dir.handle, &root, b"x"));
        assert_eq!(of_dir.result.unwrap_err(), Status::IsDirectory);
    });
}

#[test]
fn replies_carry_the_directory_before_and_after() {
    each_kind(|at| {
        let before = at.attr(&at.root()).unwrap();
        let made = block_on(at.store.make_dir(&ME, &at.root(), b"dir", mode(0o755)));
        let after = at.attr(&at.root()).unwrap();
        assert_eq!(made.wcc.before.unwrap().changed, before.changed);
        assert_eq!(made.wcc.after, Some(after));
        assert_eq!(after.links, before.links + u32::from(after.links != before.links));
        let failed = block_on(at.store.remove(&ME, &at.root(), b"none"));
        assert_eq!(failed.wcc.after, Some(after), "in failure too");
        let root = at.root();
        let renamed = at.store.rename(&ME, &root, b"dir", &root, b"new");
        let renamed = block_on(renamed);
        assert_eq!(renamed.from.before.unwrap().changed, after.changed);
        assert_eq!(renamed.from.after, renamed.to.after);
    });
}

#[test]
fn attributes_are_set_and_guarded() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let time = |secs| Time { secs, nanos: 123 };
        let changes = SetAttr {
            size: Some(10_000),
            accessed: SetTime::To(time(1_000_000_000)),
            modified: SetTime::To(time(2_000_000_000)),
            ..mode(0o600)
        };
        at.set_attr(&file.handle, changes).unwrap();
        let attr = at.attr(&file.handle).unwrap();
        assert_eq!((attr.size, attr.mode), (10_000, 0o600));
        // Some file systems keep whole seconds.
        let stored =
            |secs| if attr.changed.nanos == 0 { Time { secs, nanos: 0 } } else { time(secs) };
        assert_eq!(attr.accessed, stored(1_000_000_000));
        assert_eq!(attr.modified, stored(2_000_000_000));
        let seen = fs::metadata(at.path("file")).unwrap();
        assert_eq!((seen.mtime(), seen.size()), (2_000_000_000, 10_000));
        let guarded = |guard| {
            let set = at.store.set_attr(&ME, &file.handle, mode(0o640), Some(guard));
            block_on(set)
        };
        let refused = guarded(time(5));
        assert_eq!(refused.result.unwrap_err(), Status::NotSync);
        assert_eq!(refused.wcc.after.unwrap().mode, 0o600);
        guarded(attr.changed).result.unwrap();
        assert_eq!(at.attr(&file.handle).unwrap().mode, 0o640);
    });
}

#[test]
fn attributes_of_directories_links_and_fifos_can_be_set_too() {
    each_kind(|at| {
        let root = at.root();
        let dir = at.make_dir(&root, "dir");
        at.set_attr(&dir.handle, mode(0o711)).unwrap();
        let size = SetAttr { size: Some(0), ..SetAttr::default() };
        assert_eq!(at.set_attr(&dir.handle, size).unwrap_err(), Status::IsDirectory);
        let fifo = at.store.make_node(&ME, &root, b"fifo", Special::Fifo, mode(0o600));
        let fifo = block_on(fifo).result.unwrap();
        let link = at.store.symlink(&ME, &root, b"link", b"dir", SetAttr::default());
        let link = block_on(link).result.unwrap();
        at.set_attr(&fifo.handle, mode(0o622)).unwrap();
        let times =
            SetAttr { modified: SetTime::To(Time { secs: 77, nanos: 0 }), ..SetAttr::default() };
        for node in [dir, fifo, link] {
            at.set_attr(&node.handle, times).unwrap();
            assert_eq!(at.attr(&node.handle).unwrap().modified.secs, 77);
        }
        assert_eq!(at.attr(&fifo.handle).unwrap().mode, 0o622);
        assert_eq!(at.attr(&dir.handle).unwrap().mode, 0o711);
    });
}

#[test]
fn owners_change_only_with_privilege() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let owner = SetAttr { uid: Some(12_345), gid: Some(54_321), ..SetAttr::default() };
        let set = at.set_attr(&file.handle, owner);
        if is_privileged() {
            set.unwrap();
            let attr = at.attr(&file.handle).unwrap();
            assert_eq!((attr.uid, attr.gid), (12_345, 54_321));
        } else {
            assert_eq!(set.unwrap_err(), Status::NotOwner);
        }
    });
}

#[test]
fn access_is_what_this_process_may() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        at.set_attr(&file.handle, mode(0o400)).unwrap();
        let access = |handle: &Handle, wanted| {
            let looked = block_on(at.store.access(&ME, handle, Access(wanted)));
            looked.result.unwrap().0
        };
        let writes = if is_privileged() { Access::MODIFY | Access::EXTEND } else { 0 };
        assert_eq!(access(&file.handle, 0x3f), Access::READ | writes);
        assert_eq!(access(&file.handle, Access::READ), Access::READ);
        assert_eq!(access(&file.handle, Access::EXECUTE), 0);
        assert_eq!(
            access(&at.root(), 0x3f),
            0x3f & !Access::EXECUTE,
            "EXECUTE means nothing for a directory"
        );
    });
}
