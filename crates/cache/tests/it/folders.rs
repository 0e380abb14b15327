//! Directories: whose they are, who has them, and what lies in them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cache::offline::carry_out;
use cache::orders::{self, Order};
use cache::place::{NoIdentity, OpenError};
use cache::survey::Blocks;
use cache::{Cache, Cause, Event, Limits, Origin, pins, survey};
use parking_lot::Mutex;

use crate::using::{content, key, token};

fn origin(name: &str) -> Origin {
    Origin { name: name.to_owned(), root: vec![1, 2] }
}

fn open(dir: &Path, name: &str) -> Result<Cache, OpenError> {
    Cache::open(dir, &origin(name), 4096, Limits::default(), Box::new(|_| ()))
}

/// One that is open, and what it has reported.
fn heard(dir: &Path) -> (Cache, Arc<Mutex<Vec<Event>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let hear = Box::new(move |event: &Event| heard.lock().push(event.clone()));
    let cache = Cache::open(dir, &origin("nfs://one/x"), 4096, Limits::default(), hear).unwrap();
    (cache, events)
}

fn read(cache: &Cache, number: u8, size: u64) -> Result<Bytes, Cause> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(cache.read(&key(number), &token(size, 1), 0, u32::MAX))
}

/// What lies there is counted on a thread of its own: what is not known yet cannot be cleaned.
fn wait_until_counted(cache: &Cache) {
    while !cache.is_counted() {
        std::thread::yield_now();
    }
}

/// Stores a file and closes.
fn filled(dir: &Path) {
    let cache = open(dir, "nfs://one/x").unwrap();
    cache.store(&key(1), &token(50_000, 1), 0, content(50_000, 1));
    // Another that begins with a hole of what is not there.
    cache.store(&key(2), &token(1 << 30, 1), 1 << 29, content(8192, 2));
}

#[test]
fn a_folder_survives_its_process_and_is_for_its_owner_alone() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("a/cache");
    filled(&dir);
    let cache = open(&dir, "nfs://one/x").unwrap();
    assert_eq!(read(&cache, 1, 50_000).unwrap(), content(50_000, 1));
    assert_eq!(read(&cache, 2, 1 << 30), Err(Cause::Cold));
    assert_eq!(cache.statistics().hits, 1);
    let mut folders = vec![dir];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700, "{folder:?}");
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{entry:?}");
                assert!(entry.metadata().unwrap().blocks() < 1000, "it is sparse");
            }
        }
    }
    assert!(files >= 5);
}

#[test]
fn several_that_are_the_first_make_one_cache() {
    for _ in 0..20 {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("cache");
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (dir, start) = (&dir, &start);
                scope.spawn(move || {
                    start.wait();
                    open(dir, &format!("nfs://one/{number}")).unwrap();
                });
            }
        });
        assert_eq!(survey::origins(&dir).unwrap().len(), 8);
    }
}

/// A disk that was full then, or a loss of power.
#[test]
fn a_cache_that_was_begun_is_made() {
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("nfskit-cache.new"), "").unwrap();
    filled(base.path());
    assert!(!base.path().join("nfskit-cache.new").exists());
}

/// A file system that allocates room ahead of an end would take more than the bound.
#[test]
fn a_segment_is_as_long_as_its_file_before_all_of_it_is_there() {
    let base = tempfile::tempdir().unwrap();
    let cache = open(base.path(), "nfs://one/x").unwrap();
    cache.store(&key(1), &token(50_000, 1), 0, content(4096, 1));
    drop(cache);
    let folder = survey::origins(base.path()).unwrap()[0].path.clone();
    let mut lengths = Vec::new();
    for name in (0..=255).map(|first| folder.join(format!("{first:02x}"))) {
        let segments = fs::read_dir(name).into_iter().flatten();
        lengths.extend(segments.map(|segment| segment.unwrap().metadata().unwrap().len()));
    }
    assert_eq!(lengths, [4096 + 50_000]);
}

#[test]
fn two_processes_are_refused_and_another_server_has_its_own() {
    let base = tempfile::tempdir().unwrap();
    filled(base.path());
    let one = open(base.path(), "nfs://one/x").unwrap();
    assert!(matches!(open(base.path(), "nfs://one/x"), Err(OpenError::Busy { .. })));
    let other = open(base.path(), "nfs://two/x").unwrap();
    assert_eq!(read(&other, 1, 50_000), Err(Cause::Cold));
    drop(one);
    let one = open(base.path(), "nfs://one/x").unwrap();
    assert!(read(&one, 1, 50_000).is_ok());
    let found = survey::origins(base.path()).unwrap();
    let names: Vec<_> =
        found.iter().map(|found| found.identity.clone().unwrap().origin.name).collect();
    assert_eq!(names, ["nfs://one/x", "nfs://two/x"]);
    // One that was copied to where another's should be.
    drop((one, other));
    let (mut from, mut to) = (None, None);
    for found in found {
        let place =
            if found.identity.unwrap().origin.name.contains("one") { &mut from } else { &mut to };
        *place = Some(found.path);
    }
    fs::copy(from.unwrap().join("identity"), to.unwrap().join("identity")).unwrap();
    assert!(matches!(open(base.path(), "nfs://two/x"), Err(OpenError::OtherOrigin { .. })));
}

#[test]
fn a_folder_that_is_looked_at_is_there_for_a_process_that_begins() {
    let base = tempfile::tempdir().unwrap();
    filled(base.path());
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let open = |_: &u32| open(base.path(), "nfs://one/x").map(drop).err();
            (0..500).find_map(|number| open(&number))
        });
        while !opening.is_finished() {
            let found = survey::origins(base.path()).unwrap();
            assert!(found[0].lock().is_ok());
        }
        let refused = opening.join().unwrap();
        assert!(refused.is_none(), "{refused:?}");
    });
}

#[test]
fn what_is_no_cache_or_another_version_is_refused_and_left_alone() {
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("precious"), "x").unwrap();
    assert!(matches!(open(base.path(), "a"), Err(OpenError::NoCache { .. })));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    // Whoever may write there: nobody is led to change a directory of something else.
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(survey::origins(base.path()), Err(OpenError::NoCache { .. })));
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(base.path().join("empty")).unwrap();
    let empty = cache::place::open_base(&base.path().join("empty"), false);
    assert!(matches!(empty, Err(OpenError::Empty { .. })));
    let dir = base.path().join("cache");
    filled(&dir);
    fs::write(dir.join("nfskit-cache"), "nfskit cache 2\n").unwrap();
    let error = open(&dir, "nfs://one/x").unwrap_err().to_string();
    assert!(error.contains("version 2, and this program has version 1"), "{error}");
    assert!(survey::origins(&dir).is_err());
}

#[test]
fn a_damaged_identity_is_reported_and_one_of_another_version_refused() {
    let base = tempfile::tempdir().unwrap();
    filled(base.path());
    let found = || survey::origins(base.path()).unwrap().remove(0);
    let path = found().path.join("identity");
    let mut text = fs::read(&path).unwrap();
    text[20] ^= 1;
    fs::write(&path, text).unwrap();
    assert_eq!(found().identity, Err(NoIdentity::Damaged));
    let (cache, events) = heard(base.path());
    assert_eq!(*events.lock(), [Event::Identity]);
    assert!(read(&cache, 1, 50_000).is_ok());
    drop(cache);
    assert!(found().identity.is_ok());
    let (cache, events) = heard(base.path());
    assert_eq!(*events.lock(), []);
    drop(cache);
    fs::remove_file(&path).unwrap();
    assert_eq!(found().identity, Err(NoIdentity::Missing));
    let of_seven = "nfskit cache 7\nother\ncheck ba67b574\n";
    fs::write(&path, of_seven).unwrap();
    assert_eq!(found().identity, Err(NoIdentity::Version("7".to_owned())));
    let refused = open(base.path(), "nfs://one/x");
    assert!(matches!(refused, Err(OpenError::Version { .. })), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), of_seven.as_bytes(), "it is left as it is");
}

#[test]
fn a_damaged_list_of_pins_is_reported_and_what_can_be_read_of_it_stays() {
    let base = tempfile::tempdir().unwrap();
    filled(base.path());
    let found = survey::origins(base.path()).unwrap().remove(0);
    let files = [1, 2].map(|number| (key(number).hash(), u64::from(number)));
    pins::write(found.dir(), &files.into()).unwrap();
    let whole = pins::read(found.dir()).unwrap();
    assert!(whole.is_whole && whole.files == files.into());
    let path = found.path.join("pins");
    let mut text = fs::read(&path).unwrap();
    // The last digit of the first file's number.
    let at = text.iter().position(|byte| *byte == b'\n').unwrap();
    text[at - 1] = b'x';
    fs::write(&path, text).unwrap();
    let (cache, events) = heard(base.path());
    cache.settle();
    assert_eq!(*events.lock(), [Event::Pins]);
    wait_until_counted(&cache);
    cache.clean(0);
    cache.settle();
    assert_eq!(cache.statistics().filled.files, 1);
}

#[test]
fn what_others_may_write_to_and_links_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("cache");
    filled(&dir);
    symlink(&dir, base.path().join("link")).unwrap();
    assert!(matches!(open(&base.path().join("link"), "a"), Err(OpenError::Link { .. })));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let error = open(&dir, "nfs://one/x").unwrap_err();
    assert!(matches!(error, OpenError::Open { mode: 0o777, .. }), "{error}");
    // A segment that somebody has replaced by a link is not followed.
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let found = &survey::origins(&dir).unwrap()[0];
    let mut names = Vec::new();
    found
        .walk(Blocks::All, &mut |looked| {
            assert!(looked.wrong.is_empty() && looked.header.is_ok());
            names.push(looked.name);
        })
        .unwrap();
    assert_eq!(names.len(), 2);
    for name in names {
        let first = name.file.to_string()[..2].to_owned();
        let path = found.path.join(first).join(format!("{}-{:x}", name.file, name.segment));
        fs::rename(&path, base.path().join("moved")).unwrap();
        symlink(base.path().join("moved"), path).unwrap();
    }
    let cache = open(&dir, "nfs://one/x").unwrap();
    assert!(read(&cache, 1, 50_000).is_err());
}

#[test]
fn orders_are_carried_out_by_whoever_has_it() {
    let base = tempfile::tempdir().unwrap();
    filled(base.path());
    let cache = open(base.path(), "nfs://one/x").unwrap();
    assert!(read(&cache, 1, 50_000).is_ok());
    wait_until_counted(&cache);
    let found = &survey::origins(base.path()).unwrap()[0];
    let mut command = orders::Command::begin(found.dir()).unwrap();
    command.leave(Order::Forget(Some(key(1).hash()))).unwrap();
    // Its keeper looks each second, and at the end.
    drop(cache);
    assert_eq!(command.look(), 0);
    let cache = open(base.path(), "nfs://one/x").unwrap();
    assert_eq!(read(&cache, 1, 50_000), Err(Cause::Cold));
}

#[test]
fn what_was_changed_longest_ago_is_cleaned_first_whatever_its_folder() {
    let base = tempfile::tempdir().unwrap();
    let cache = open(base.path(), "nfs://one/x").unwrap();
    (0..40).for_each(|number| cache.store(&key(number), &token(8192, 1), 0, content(8192, number)));
    drop(cache);
    let found = survey::origins(base.path()).unwrap().remove(0);
    let mut names = Vec::new();
    found.walk(Blocks::Unread, &mut |looked| names.push(looked.name)).unwrap();
    names.sort_unstable();
    // Those of the last folders are the oldest.
    let mut all_bytes = 0;
    for (age, name) in (1..).zip(&names) {
        let first = name.file.to_string()[..2].to_owned();
        let path = found.path.join(first).join(format!("{}-{:x}", name.file, name.segment));
        let file = fs::File::open(path).unwrap();
        all_bytes += file.metadata().unwrap().blocks() * 512;
        let day = Duration::from_secs(86_400);
        file.set_modified(SystemTime::UNIX_EPOCH + day * (20_000 - age)).unwrap();
    }
    let removed = carry_out(base.path(), &found.folder, &[Order::Clean(all_bytes / 2)]).unwrap();
    assert_eq!(removed.files, 20);
    let mut left = Vec::new();
    found.walk(Blocks::Unread, &mut |looked| left.push(looked.name)).unwrap();
    assert_eq!(left.len(), 20);
    assert!(left.iter().all(|name| names[..20].contains(name)), "{left:?} of {names:?}");
}

#[test]
fn flipped_bits_on_a_disk_are_found_by_a_look_at_all() {
    let base = tempfile::tempdir().unwrap();
    filled(base.path());
    let found = &survey::origins(base.path()).unwrap()[0];
    let mut names = Vec::new();
    found.walk(Blocks::Unread, &mut |looked| names.push(looked.name)).unwrap();
    for name in &names {
        let first = name.file.to_string()[..2].to_owned();
        let path = found.path.join(first).join(format!("{}-{:x}", name.file, name.segment));
        let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        // In the first block of each, behind the header.
        std::os::unix::fs::FileExt::write_at(&file, b"!", 4096).unwrap();
    }
    let wrong = |blocks| {
        let mut wrong = 0;
        found.walk(blocks, &mut |looked| wrong += looked.wrong.len()).unwrap();
        wrong
    };
    let own = token(50_000, 1).fileid;
    assert_eq!([Blocks::All, Blocks::Of(own), Blocks::Of(own + 1)].map(wrong), [2, 2, 0]);
    let cache = open(base.path(), "nfs://one/x").unwrap();
    assert_eq!(read(&cache, 1, 50_000), Err(Cause::Damaged));
}

/// A page of data in each 64 KiB of a file, and at its end.
#[test]
fn holes_stay_holes_and_what_becomes_one_gives_its_room_back() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("cache");
    let size = (2 << 20) + 5000;
    let mut data = vec![0; size];
    (0..size).step_by(64 << 10).for_each(|at| data[at..size.min(at + 4096)].fill(7));
    let (key, whole) = (key(1), |state| token(size as u64, state));
    let read = |cache: &Cache, state| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(cache.read(&key, &whole(state), 0, u32::MAX))
    };
    let cache = open(&dir, "nfs://one/x").unwrap();
    cache.store(&key, &whole(1), 0, data.clone().into());
    cache.settle();
    assert_eq!(read(&cache, 1).unwrap(), data);
    let pages = 33;
    let filled = cache.statistics().filled;
    // Each of its three segments has a header.
    assert_eq!((filled.bytes, filled.files), ((pages + 3) * 4096, 3));
    drop(cache);
    let cache = open(&dir, "nfs://one/x").unwrap();
    wait_until_counted(&cache);
    assert_eq!(cache.statistics().filled, filled, "as the file system counts it");
    assert_eq!(read(&cache, 1).unwrap(), data);
    // What was there is cleared, and something comes where nothing was.
    data[..4096].fill(0);
    data[8192..12_288].fill(9);
    let part = cache::Part { offset: 0, bytes: 16_384, data: Some(data[..16_384].to_vec().into()) };
    cache.changed(&key, &whole(1), &whole(2), vec![part]);
    cache.settle();
    assert_eq!(read(&cache, 2).unwrap(), data);
    assert!(cache.statistics().filled.bytes <= filled.bytes + 4096);
    drop(cache);
    let cache = open(&dir, "nfs://one/x").unwrap();
    wait_until_counted(&cache);
    assert_eq!(cache.statistics().filled, filled);
    assert_eq!(read(&cache, 2).unwrap(), data);
    let damaged = cache.statistics().misses_of(Cause::Damaged);
    assert_eq!(damaged, 0);
}
