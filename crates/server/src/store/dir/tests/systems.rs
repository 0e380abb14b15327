//! File systems that keep less, or other things, than most: no time of birth, layers.

use std::collections::BTreeSet;

use super::*;

/// The table on a file system of the test's own, with a cache of a single object.
fn table_on(place: tempfile::TempDir, root: &Path) -> Fixture {
    let options = DirOptions {
        handles: HandleChoice::Table,
        open_files_max: Some(3),
        metadata_sync: MetadataSync::Never,
        ..DirOptions::default()
    };
    let store = DirStore::open(root, &options).unwrap();
    Fixture { store, options, place }
}

/// ext4 with small inodes: device and inode are all that statx says of a file.
#[test]
fn a_handle_never_means_the_next_file_with_its_inode() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("export");
    let Some(_mount) = Mount::made(&root, &["mkfs.ext4", "-q", "-F", "-I", "128"]) else {
        return;
    };
    let at = table_on(place, &root);
    let mut reused = 0;
    for round in 0..20 {
        let name = format!("file-{round}");
        let old = at.create(&at.root(), &name);
        // Closes it, so that its inode is free when it is deleted.
        at.create(&at.root(), &format!("other-{round}"));
        fs::remove_file(at.path(&name)).unwrap();
        fs::write(at.path(&name), "new").unwrap();
        let new = at.lookup(&at.root(), &name).unwrap();
        reused += usize::from(new.attr.fileid == old.attr.fileid);
        at.lookup(&at.root(), &format!("other-{round}")).unwrap();
        assert_eq!(at.read(&old.handle, 0, 3).unwrap_err(), Status::Stale);
        assert_eq!(at.write(&old.handle, 0, b"bad").unwrap_err(), Status::Stale);
        assert_eq!(at.read(&new.handle, 0, 3).unwrap().0, b"new");
        assert_eq!(fs::read(at.path(&name)).unwrap(), b"new");
    }
    assert!(reused > 0, "this file system gives inodes again at once");
}

#[test]
fn a_file_system_of_whole_seconds_says_so() {
    let place = tempfile::tempdir().unwrap();
    for (name, inode_bytes, resolution) in
        [("old", "128", Time { secs: 1, nanos: 0 }), ("new", "256", Time { secs: 0, nanos: 1 })]
    {
        let root = place.path().join(name);
        let make = ["mkfs.ext4", "-q", "-F", "-I", inode_bytes];
        let Some(_mount) = Mount::made(&root, &make) else { return };
        let store = DirStore::open(&root, &DirOptions::default()).unwrap();
        assert_eq!(store.tree.properties().unwrap().time_resolution, resolution, "{name}");
    }
}

/// btrfs gives each subvolume the number of a device, a new one whenever it is mounted.
#[test]
fn files_of_a_subvolume_keep_their_handles_when_the_file_system_is_mounted_again() {
    let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = place.path().join("export");
    let Some(mount) = Mount::made(&root, &["mkfs.btrfs", "-q"]) else { return };
    let mut btrfs = std::process::Command::new("btrfs");
    let made = btrfs.args(["subvolume", "create"]).arg(root.join("sub")).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let device_of = |at: &Path| std::os::unix::fs::MetadataExt::dev(&fs::metadata(at).unwrap());
    let device = || device_of(&root.join("sub"));
    let options = DirOptions {
        handles: HandleChoice::Table,
        state_dir: Some(state.path().to_owned()),
        ..DirOptions::default()
    };
    let store = DirStore::open(&root, &options).unwrap();
    let at = Fixture { store, options, place };
    let sub = at.lookup(&at.root(), "sub").unwrap();
    let file = at.create(&sub.handle, "file");
    at.write(&file.handle, 0, b"content").unwrap();
    let (before, Fixture { store, options, place }) = (device(), at);
    drop((store, mount));
    // Others take numbers of devices meanwhile, the lowest that are free, and in the end this one.
    let mut others = Vec::new();
    for number in 0..200 {
        let at = place.path().join(format!("other-{number}"));
        fs::create_dir(&at).unwrap();
        others.push(Mount::tmpfs(at.clone(), "size=1m").unwrap());
        if device_of(&at) == before {
            break;
        }
    }
    let _mount = Mount::again(&root).unwrap();
    assert_ne!(device(), before);
    let at = Fixture { store: DirStore::open(&root, &options).unwrap(), options, place };
    assert_eq!(at.attr(&sub.handle).unwrap().fileid, sub.attr.fileid);
    assert_eq!(at.read(&file.handle, 0, 9).unwrap().0, b"content");
    drop(others);
}

/// Directories for the layers of an overlay and its mount point, in one place: below, above with
/// its work, and where to mount it.
fn layers(place: &Path, below: &str, above: &str) -> [String; 4] {
    ["lower", "upper", "work", "export"].map(|name| {
        let within = match name {
            "lower" => below,
            "upper" | "work" => above,
            _ => "",
        };
        let path = place.join(within).join(name);
        fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

fn overlay([lower, upper, work, root]: &[String; 4], more: &str) -> Option<Mount> {
    let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}{more}");
    Mount::at(PathBuf::from(root), &["-t", "overlay", "-o", &layers, "overlay"])
}

#[test]
fn an_overlay_whose_files_change_their_numbers_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let on = |name: &str| {
        let at = place.path().join(name);
        fs::create_dir(&at).unwrap();
        Mount::tmpfs(at, "size=1m")
    };
    let (Some(_below), Some(_above)) = (on("below"), on("above")) else { return };
    let layers = layers(place.path(), "below", "above");
    let root = &layers[3];
    fs::write(format!("{}/file", layers[0]), "lower").unwrap();
    let open = || DirStore::open(root, &DirOptions::default());
    let Some(mount) = overlay(&layers, ",xino=off") else { return };
    assert!(matches!(open().err(), Some(OpenError::Layers)));
    drop(mount);
    let mount = overlay(&layers, ",xino=on").unwrap();
    assert!(open().is_ok());
    drop(mount);
    // Nothing can be made in it.
    let below = format!("lowerdir={}:{}", layers[0], layers[1]);
    let options = ["-t", "overlay", "-o", &below, "overlay"];
    let _mount = Mount::at(PathBuf::from(root), &options).unwrap();
    assert!(matches!(open().err(), Some(OpenError::Layers)));
}

/// Like a container's root: the first write to a file moves it to another layer.
#[test]
fn files_of_an_overlay_keep_their_handles_and_listings_are_whole() {
    let place = tempfile::tempdir().unwrap();
    let layers = layers(place.path(), "", "");
    let [lower, _, _, root] = &layers;
    fs::write(format!("{lower}/file"), "lower").unwrap();
    fs::create_dir(format!("{lower}/dir")).unwrap();
    for index in 0..600 {
        fs::write(format!("{lower}/dir/{index}"), "").unwrap();
    }
    let Some(_mount) = overlay(&layers, "") else {
        return;
    };
    let root = root.clone();
    let at = table_on(place, Path::new(&root));
    let file = at.lookup(&at.root(), "file").unwrap();
    let dir = at.lookup(&at.root(), "dir").unwrap();
    at.write(&file.handle, 0, b"UPPER").unwrap();
    at.lookup(&dir.handle, "0").unwrap();
    assert_eq!(at.read(&file.handle, 0, 9).unwrap().0, b"UPPER", "under its handle from before");
    assert_eq!(at.lookup(&at.root(), "file").unwrap().handle, file.handle);
    // Removed as they are listed, as `rm -r` does.
    let (mut last, mut removed) = (0, BTreeSet::new());
    loop {
        let from = ListFrom { cookie: last, verifier: [0; 8], with_nodes: false, bytes: 1 << 16 };
        let mut names = Vec::new();
        let mut sink = |entry: Entry<'_>| {
            let has_room = names.len() < 50;
            if has_room {
                last = entry.cookie;
                names.push(String::from_utf8(entry.name.to_vec()).unwrap());
            }
            has_room
        };
        let listed = block_on(at.store.list(&ME, &dir.handle, from, &mut sink)).result.unwrap();
        for name in names.into_iter().filter(|name| !name.starts_with('.')) {
            at.remove(&dir.handle, &name).unwrap();
            assert!(removed.insert(name));
        }
        if listed.eof {
            break;
        }
    }
    assert_eq!(removed.len(), 600);
    assert_eq!(fs::read_dir(at.path("dir")).unwrap().count(), 0);
}

/// The names of a file of a lower layer: the one that is written to becomes a file of its own.
#[test]
fn what_is_written_to_one_name_of_a_file_that_an_overlay_parts_is_in_no_other() {
    for open_files_max in [Some(3), None] {
        let place = tempfile::tempdir().unwrap();
        let layers = layers(place.path(), "", "");
        let [lower, _, _, root] = &layers;
        fs::write(format!("{lower}/h1"), "lower").unwrap();
        let all_read = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        fs::set_permissions(format!("{lower}/h1"), all_read).unwrap();
        for name in ["h2", "h3"] {
            fs::hard_link(format!("{lower}/h1"), format!("{lower}/{name}")).unwrap();
        }
        let Some(_mount) = overlay(&layers, ",index=off") else { return };
        let root = PathBuf::from(root);
        let Fixture { options, place, .. } = table_on(place, &root);
        let options = DirOptions { open_files_max, ..options };
        let at = Fixture { store: DirStore::open(&root, &options).unwrap(), options, place };
        let read = |name: &str| {
            let node = at.lookup(&at.root(), name).unwrap();
            String::from_utf8(at.read(&node.handle, 0, 9).unwrap().0).unwrap()
        };
        let of = |name: &str| fs::read_to_string(at.path(name)).unwrap();
        let write = |name: &str, data: &'static [u8]| {
            let node = at.lookup(&at.root(), name).unwrap();
            at.write(&node.handle, 0, data)
        };
        let shared = ["h1", "h2", "h3"].map(|name| at.lookup(&at.root(), name).unwrap().handle);
        let mode_0600 = at.set_attr(&shared[0], mode(0o600));
        assert_eq!(mode_0600.unwrap_err(), Status::Stale);
        // Whichever name has parted, none has changed, and who looks it up again writes to it.
        for (name, data) in [("h1", b"to h1"), ("h3", b"to h3")] {
            let tries: Vec<_> = (0..4).map(|_| write(name, data)).collect();
            assert!(tries.contains(&Ok(5)), "{tries:?}");
            assert!(tries.iter().all(|tried| [Ok(5), Err(Status::Stale)].contains(tried)));
        }
        for (name, data) in [("h1", "to h1"), ("h2", "lower"), ("h3", "to h3")] {
            assert_eq!((read(name).as_str(), of(name).as_str()), (data, data), "{name}");
            let metadata = fs::metadata(at.path(name)).unwrap();
            assert_eq!(
                std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777,
                0o644
            );
        }
        // A local program writes to the last.
        at.lookup(&at.root(), "h2").unwrap();
        fs::write(at.path("h2"), "local").unwrap();
        assert_eq!(read("h2"), "local");
        for handle in shared {
            assert!(at.read(&handle, 0, 9).is_err(), "it named a file that has no name now");
        }
    }
}

#[test]
fn the_names_of_a_file_stay_together_on_an_overlay_with_an_index() {
    let place = tempfile::tempdir().unwrap();
    let layers = layers(place.path(), "", "");
    fs::write(format!("{}/h1", layers[0]), "lower").unwrap();
    fs::hard_link(format!("{}/h1", layers[0]), format!("{}/h2", layers[0])).unwrap();
    let Some(_mount) = overlay(&layers, ",index=on") else { return };
    let at = table_on(place, Path::new(&layers[3]));
    let (h1, h2) = (at.lookup(&at.root(), "h1").unwrap(), at.lookup(&at.root(), "h2").unwrap());
    assert_eq!(h1.handle, h2.handle);
    assert_eq!(at.write(&h1.handle, 0, b"UPPER"), Ok(5));
    assert_eq!(fs::read(at.path("h2")).unwrap(), b"UPPER");
}

/// Its syncs do nothing, by the document of the kernel.
#[test]
fn a_volatile_overlay_is_no_more_stable_than_memory() {
    let place = tempfile::tempdir().unwrap();
    let layers = layers(place.path(), "", "");
    let root = Path::new(&layers[3]);
    let medium = |options: &DirOptions| DirStore::open(root, options).map(|store| store.medium());
    let plain = DirOptions::default();
    let Some(mount) = overlay(&layers, "") else { return };
    let else_where = medium(&plain).unwrap();
    assert_eq!(write_log::is_in_memory(root), else_where == Medium::Memory);
    drop(mount);
    let Some(_mount) = overlay(&layers, ",index=on,nfs_export=on,volatile") else { return };
    assert_eq!(medium(&plain).unwrap(), Medium::Memory);
    assert!(write_log::is_in_memory(root));
    let log = |path: PathBuf| write_log::WriteLog::new(vec![path], 16 << 20);
    let logged = DirOptions { write_log: Some(log(place.path().join("log"))), ..plain };
    let refused = medium(&logged).unwrap_err().to_string();
    assert!(refused.contains("volatile"), "{refused}");
    assert!(!place.path().join("log").exists(), "nothing was made");
    // Nor is a log that lies there.
    let export = place.path().join("plain");
    fs::create_dir(&export).unwrap();
    let options = DirOptions { write_log: Some(log(root.join("log"))), ..DirOptions::default() };
    let refused = DirStore::open(&export, &options).map(drop).unwrap_err().to_string();
    let lacks_handles = !kernel_handles_work();
    assert!(refused.contains("nothing is stable") || lacks_handles, "{refused}");
}

/// Neither a name that another process gave it nor a wide tree makes a file unreachable.
#[test]
fn a_file_whose_known_name_is_gone_is_found_by_another_however_wide_the_tree() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("export");
    fs::create_dir(&root).unwrap();
    fs::create_dir(place.path().join("outside")).unwrap();
    let at = table_on(place, &root);
    for index in 0..1000 {
        fs::create_dir_all(at.path(&format!("wide/{index}/below"))).unwrap();
    }
    let (linked, moved) = (at.create(&at.root(), "linked"), at.create(&at.root(), "moved"));
    at.write(&linked.handle, 0, b"linked").unwrap();
    fs::hard_link(at.path("linked"), at.path("wide/7/other name")).unwrap();
    at.remove(&at.root(), "linked").unwrap();
    fs::rename(at.path("moved"), at.path("wide/999/below/moved")).unwrap();
    at.create(&at.root(), "others in between");
    assert_eq!(at.read(&linked.handle, 0, 9).unwrap().0, b"linked");
    assert_eq!(at.attr(&moved.handle).unwrap().fileid, moved.attr.fileid);
    assert_eq!(at.walk("wide/7/other name").unwrap().handle, linked.handle);
    // What is really gone is looked for once, by a thread of the store.
    fs::remove_file(at.path("wide/7/other name")).unwrap();
    at.create(&at.root(), "more in between");
    for _ in 0..2 {
        assert_eq!(at.attr(&linked.handle).unwrap_err(), Status::Stale);
    }
}
