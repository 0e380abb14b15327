//! The write log in a store: what is logged, what a crash leaves, and what is refused.
//!
//! A loss of power is played: the store is dropped without an end, what it had written to a file is
//! taken back, and the next one sees another boot.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::store::dir::sync::group::Need;
use crate::store::dir::write_log::{self, LogTrouble, Recovered, WriteLog};

pub(super) const SIZE: u64 = 16 << 20;

pub(super) struct Logged {
    pub(super) at: Fixture,
    pub(super) syncs: Arc<AtomicUsize>,
    pub(super) fails: Arc<AtomicBool>,
}

pub(super) fn options(log: PathBuf, boot: u8) -> DirOptions {
    DirOptions {
        handles: HandleChoice::Kernel,
        identity: Identity::Best,
        write_log: Some(WriteLog {
            boot: Some([boot; 16]),
            is_faster: Some(false),
            ..WriteLog::new(vec![log], SIZE)
        }),
        ..DirOptions::default()
    }
}

/// None, loudly, where a log cannot be.
pub(super) fn logged() -> Option<Logged> {
    if !kernel_handles_work() {
        not_tested("a write log: kernel handles may not be opened");
        return None;
    }
    let plain = DirOptions { handles: HandleChoice::Kernel, ..DirOptions::default() };
    let mut at = Fixture::new(plain);
    if at.store.medium() == Medium::Memory || !at.store.tree.handles.are_lasting() {
        not_tested("a write log: temporary files lie in memory");
        return None;
    }
    at.options = options(at.outside("log"), 1);
    let (syncs, fails) = (Arc::default(), Arc::default());
    let mut logged = Logged { at, syncs, fails };
    logged.open();
    Some(logged)
}

impl Logged {
    /// A store that counts its syncs, and has them fail on demand.
    pub(super) fn open(&mut self) {
        self.at.store = self.try_open().unwrap();
    }

    fn try_open(&self) -> Result<DirStore, OpenError> {
        let (syncs, fails) = (Arc::clone(&self.syncs), Arc::clone(&self.fails));
        let call = Box::new(move |fd: BorrowedFd<'_>, need: Need| {
            syncs.fetch_add(1, Ordering::SeqCst);
            match fails.load(Ordering::SeqCst) {
                true => Err(Errno::IO),
                false => sync::sync_call(fd, need),
            }
        });
        DirStore::open_with(&self.at.path(""), &self.at.options, call)
    }

    /// The process is killed, and started again in this boot of the machine.
    pub(super) fn again(mut self, boot: u8, between: impl FnOnce(&Fixture)) -> (Self, Recovered) {
        let Fixture { store, place, mut options } = self.at;
        let plain = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
        drop(store);
        // It stands for nothing until the next is open.
        let other = DirStore::open(place.path().join("outside"), &plain).unwrap();
        options.write_log.as_mut().unwrap().boot = Some([boot; 16]);
        self.at = Fixture { store: other, options, place };
        between(&self.at);
        self.open();
        let recovered = self.at.store.recovered().unwrap().clone();
        (self, recovered)
    }

    /// A file that was made and synced, with `old` in it.
    pub(super) fn file(&self, name: &str, old: &'static [u8]) -> Handle {
        let file = self.at.create(&self.at.root(), name).handle;
        self.write(&file, 0, old, Stability::FileSync).unwrap();
        file
    }

    pub(super) fn write(
        &self,
        file: &Handle,
        offset: u64,
        data: &'static [u8],
        stability: Stability,
    ) -> Result<Committed, Status> {
        let data = Bytes::from_static(data);
        let written = block_on(self.at.store.write(&ME, file, offset, data, stability));
        written.result.map(|written| written.committed)
    }

    pub(super) fn commit(&self, file: &Handle) -> Result<(), Status> {
        block_on(self.at.store.commit(&ME, file, 0, 0)).result.map(drop)
    }

    pub(super) fn syncs(&self) -> usize {
        self.syncs.load(Ordering::SeqCst)
    }
}

/// What the page cache had of a file is gone, and so are its later times.
pub(super) fn lose(at: &Fixture, name: &str, old: &[u8]) {
    fs::write(at.path(name), old).unwrap();
}

#[test]
fn a_stable_write_is_answered_by_the_log_and_survives() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    let before = at.syncs();
    let committed = at.write(&file, 2, b"new!", Stability::FileSync).unwrap();
    assert!(matches!(committed, Committed::Stable(Stability::FileSync, _)));
    let committed = at.write(&file, 6, b"more", Stability::DataSync).unwrap();
    assert!(matches!(committed, Committed::Stable(Stability::DataSync, _)));
    assert_eq!(at.syncs(), before, "the file itself was not synced");
    assert_eq!(at.at.read(&file, 0, 99).unwrap().0, b"olnew!more", "read without the log");
    let modified = at.at.attr(&file).unwrap().modified;

    let (at, recovered) = at.again(2, |at| lose(at, "file", b"old"));
    assert_eq!((recovered.files, recovered.records, recovered.bytes), (1, 2, 8));
    assert_eq!((recovered.gone, recovered.was_running), (0, false));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"olnew!more");
    let file = at.at.walk("file").unwrap();
    assert!(file.attr.modified >= modified);
    // Once is enough.
    let (at, recovered) = at.again(3, |_| ());
    assert_eq!((recovered.files, recovered.records), (0, 0));
    assert_eq!(at.at.read(&file.handle, 0, 99).unwrap().0, b"olnew!more");
}

#[test]
fn the_time_of_the_last_write_comes_back_with_it() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let modified = at.at.attr(&file).unwrap().modified;
    let (at, _) = at.again(2, |at| {
        lose(at, "file", b"old");
        let early = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        fs::File::options().write(true).open(at.path("file")).unwrap().set_times(early).unwrap();
    });
    let now = at.at.walk("file").unwrap().attr.modified;
    assert_eq!((now.secs, now.nanos), (modified.secs, modified.nanos));
}

#[test]
fn a_process_that_was_killed_leaves_the_page_cache_which_is_newer() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let (at, recovered) = at.again(1, |at| fs::write(at.path("file"), b"a program's").unwrap());
    assert!(recovered.was_running);
    assert_eq!((recovered.files, recovered.records), (1, 0));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"a program's");
}

#[test]
fn what_was_committed_or_truncated_after_a_logged_write_stands() {
    let Some(at) = logged() else { return };
    let files = ["committed", "truncated", "made again", "large"].map(|name| at.file(name, b"old"));
    for file in &files {
        at.write(file, 0, b"logged", Stability::FileSync).unwrap();
    }
    at.write(&files[0], 0, b"newer!", Stability::Unstable).unwrap();
    at.commit(&files[0]).unwrap();
    at.at.set_attr(&files[1], SetAttr { size: Some(2), ..SetAttr::default() }).unwrap();
    let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    block_on(at.at.store.create(&ME, &at.at.root(), b"made again", how)).result.unwrap();
    static LARGE: [u8; 300 << 10] = [7; 300 << 10];
    let before = at.syncs();
    at.write(&files[3], 0, &LARGE, Stability::FileSync).unwrap();
    assert!(at.syncs() > before, "it goes to its file");

    let (at, recovered) = at.again(2, |_| ());
    assert_eq!((recovered.files, recovered.records), (0, 0));
    let read = |name| fs::read(at.at.path(name)).unwrap();
    assert_eq!(read("committed"), b"newer!");
    assert_eq!(read("truncated"), b"lo");
    assert_eq!(read("made again"), b"");
    assert_eq!(read("large"), LARGE);
}

#[test]
fn a_file_that_was_renamed_gets_its_bytes_and_one_that_is_gone_does_not() {
    let Some(at) = logged() else { return };
    let root = at.at.root();
    let files = ["moved", "removed", "replaced"].map(|name| at.file(name, b"old"));
    for file in &files {
        at.write(file, 0, b"new", Stability::FileSync).unwrap();
    }
    at.at.rename(&root, "moved", &root, "elsewhere").unwrap();
    at.at.remove(&root, "removed").unwrap();
    at.at.remove(&root, "replaced").unwrap();
    at.at.create(&root, "replaced");
    let (at, recovered) = at.again(2, |at| lose(at, "elsewhere", b"old"));
    assert_eq!((recovered.files, recovered.gone), (3, 2));
    assert_eq!(fs::read(at.at.path("elsewhere")).unwrap(), b"new");
    assert_eq!(fs::read(at.at.path("replaced")).unwrap(), b"");
    assert!(!at.at.path("removed").exists());
}

#[test]
fn a_file_whose_sync_has_failed_is_replayed_also_without_a_reboot() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    at.fails.store(true, Ordering::SeqCst);
    assert_eq!(at.commit(&file), Err(Status::Io));
    at.fails.store(false, Ordering::SeqCst);
    // The kernel has reported its error, and would report now that all is well.
    assert_eq!(at.commit(&file), Err(Status::Io));
    assert!(at.write(&file, 0, b"xxx", Stability::FileSync).is_err());
    // Other files are as they were; the frame says that one is not.
    at.file("other", b"something");
    let (at, recovered) = at.again(1, |at| lose(at, "file", b"old"));
    assert!(!recovered.was_running && recovered.records > 0);
    assert_eq!(&fs::read(at.at.path("file")).unwrap()[..], b"new");
    let file = at.at.walk("file").unwrap().handle;
    at.commit(&file).unwrap();
}

/// The kernel reports once that it has thrown pages away.
#[test]
fn a_start_whose_sync_fails_leaves_all_to_be_done_again() {
    let Some(mut at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let plain = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
    at.at.store = DirStore::open(at.at.outside(""), &plain).unwrap();
    at.fails.store(true, Ordering::SeqCst);
    let refused = at.try_open().map(drop).unwrap_err().to_string();
    assert!(refused.ends_with("to be replayed by the next start"), "{refused}");
    at.fails.store(false, Ordering::SeqCst);
    let (at, recovered) = at.again(1, |at| lose(at, "file", b"old"));
    assert_eq!((recovered.was_running, recovered.records), (false, 1));
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"new");
    let (_, recovered) = at.again(1, |_| ());
    assert!(recovered.was_running, "nothing is in doubt any more");
}

#[test]
fn a_file_that_cannot_get_its_bytes_is_named_with_what_helps() {
    let Some(mut at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let plain = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
    at.at.store = DirStore::open(at.at.outside(""), &plain).unwrap();
    at.at.options.write_log.as_mut().unwrap().boot = Some([2; 16]);
    let Some(immutable) = Chattr::set(at.at.path("file"), "i") else { return };
    let refused = at.try_open().map(drop).unwrap_err().to_string();
    let inode = fs::metadata(at.at.path("file")).unwrap().ino();
    let path = at.at.path("file").display().to_string();
    assert!(refused.contains(&path) || refused.contains(&format!("-inum {inode} ")), "{refused}");
    assert!(refused.contains("chattr -i"), "{refused}");
    drop(immutable);
    at.open();
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"new");
}

#[test]
fn more_than_the_log_holds_goes_through_it() {
    let Some(at) = logged() else { return };
    static PIECE: [u8; 200 << 10] = [9; 200 << 10];
    let file = at.file("file", b"old");
    for index in 0..200 {
        at.write(&file, index * PIECE.len() as u64, &PIECE, Stability::FileSync).unwrap();
    }
    let (at, _) = at.again(2, |at| {
        // What a sync has brought to its place is there; of the rest nothing.
        let end = 200 * PIECE.len() as u64;
        let file = fs::File::options().write(true).open(at.path("file")).unwrap();
        file.write_all_at(&[0; 100], end - 100).unwrap();
    });
    let found = fs::read(at.at.path("file")).unwrap();
    assert_eq!(found.len(), 200 * PIECE.len());
    let log = fs::metadata(at.at.outside("log")).unwrap();
    assert_eq!((log.len(), log.mode() & 0o777), (SIZE, 0o600));
    assert!(found[..found.len() - 100].iter().all(|&byte| byte == 9));
}

#[test]
fn files_are_brought_to_their_place_after_some_seconds() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let log = at.at.store.tree.log.as_ref().unwrap();
    let object = at.at.store.tree.object(&file).unwrap();
    assert!(log.has(&object));
    at.at.tend(100);
    for _ in 0..10_000_000 {
        if !log.has(&object) {
            return;
        }
        thread::yield_now();
    }
    panic!("it still has records");
}

#[test]
fn without_its_log_a_directory_is_not_served_and_after_its_end_it_is() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let plain = DirOptions::default();
    let refused = |options: &DirOptions| {
        DirStore::open(at.at.path(""), options).map(drop).unwrap_err().to_string()
    };
    assert!(refused(&plain).contains("--write-log"), "{}", refused(&plain));
    assert!(refused(&at.at.options).contains("another server"), "{}", refused(&at.at.options));
    let other = options(at.at.outside("other"), 1);
    // Also if it comes before the first one has set its mark.
    assert!(refused(&other).contains("another server"), "{}", refused(&other));
    assert!(!at.at.outside("other").exists(), "nothing was made");

    block_on(at.at.store.end_log()).unwrap();
    DirStore::open(at.at.path(""), &plain).unwrap();
    let inspection = |at: &Fixture| write_log::inspect(&[at.outside("log")]);
    assert_eq!(inspection(&at.at).unwrap_err().kind(), LogTrouble::InUse);
    let place = at.at.place;
    drop(at.at.store);
    let found = write_log::inspect(&[place.path().join("outside/log")]).unwrap();
    assert!(found.is_clean && !found.is_torn && !found.has_doubts);
    assert_eq!((found.files, found.records), (0, 0));
}

#[test]
fn a_server_in_the_moment_of_its_start_keeps_another_with_another_log_out() {
    let Some(at) = logged() else { return };
    block_on(at.at.store.end_log()).unwrap();
    // It knows of no log any more, as a directory that gets its first.
    let other = options(at.at.outside("other"), 1);
    let refused = DirStore::open(at.at.path(""), &other).map(drop).unwrap_err().to_string();
    assert!(refused.contains("another server has the directory"), "{refused}");
    assert!(!at.at.outside("other").exists(), "nothing was made");
}

/// From a backup, or a snapshot of the disk that it lies on.
#[test]
fn a_copy_of_the_log_from_before_the_newest_start_is_refused() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"older", Stability::FileSync).unwrap();
    let (log, copy) = (at.at.outside("log"), at.at.outside("copy"));
    fs::copy(&log, &copy).unwrap();
    let (mut at, _) = at.again(1, |_| ());
    let file = at.at.walk("file").unwrap().handle;
    at.write(&file, 0, b"newer", Stability::FileSync).unwrap();
    at.commit(&file).unwrap();
    let plain = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
    at.at.store = DirStore::open(at.at.outside(""), &plain).unwrap();
    at.at.options.write_log.as_mut().unwrap().boot = Some([2; 16]);
    fs::rename(&log, at.at.outside("newest")).unwrap();
    fs::rename(&copy, &log).unwrap();
    let refused = at.try_open().map(drop).unwrap_err().to_string();
    assert!(refused.contains("copy of an earlier time"), "{refused}");
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"newer");
    fs::rename(at.at.outside("newest"), &log).unwrap();
    at.open();
}

#[test]
fn a_mark_that_is_another_logs_or_very_long_stands() {
    let Some(at) = logged() else { return };
    let set = |value: &[u8]| {
        let how = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(at.at.path(""), "user.nfskit.write_log", value, how)
    };
    set(b"another's id 123/log").unwrap();
    block_on(at.at.store.end_log()).unwrap();
    let mut value = [0; 100];
    let len = rustix::fs::getxattr(at.at.path(""), "user.nfskit.write_log", &mut value).unwrap();
    assert_eq!(&value[..len], b"another's id 123/log");
    // Some file systems have no room for it.
    if set(&[b'x'; 6000]).is_ok() {
        let plain = DirStore::open(at.at.path(""), &DirOptions::default());
        assert!(plain.map(drop).unwrap_err().to_string().contains("--write-log"));
    }
}

#[test]
fn a_directory_inside_one_that_has_a_log_is_not_served_by_itself() {
    let Some(at) = logged() else { return };
    let sub = at.at.make_dir(&at.at.root(), "sub").handle;
    at.at.make_dir(&sub, "deep");
    let open = || DirStore::open(at.at.path("sub/deep"), &DirOptions::default()).map(drop);
    let refused = open().unwrap_err().to_string();
    let (dir, log) = (at.at.path(""), at.at.outside("log"));
    assert!(
        refused.contains(&format!("{}, whose", dir.display().to_string().trim_end_matches('/')))
    );
    assert!(refused.contains(&log.display().to_string()), "{refused}");
    block_on(at.at.store.end_log()).unwrap();
    open().unwrap();
}

#[test]
fn a_server_of_a_directory_above_does_not_serve_one_that_has_a_log() {
    let Some(at) = logged() else { return };
    at.file("file", b"old");
    at.at.make_dir(&at.at.root(), "sub");
    let Fixture { store, place, .. } = at.at;
    let above = DirStore::open(place.path(), &DirOptions::default()).unwrap();
    let look = |store: &DirStore, dir: &Handle, name: &str| {
        block_on(store.lookup(&ME, dir, name.as_bytes())).result.map(|node| node.handle)
    };
    let root = above.root();
    assert_eq!(look(&above, &root, "export"), Err(Status::Access));
    look(&above, &root, "outside").unwrap();
    block_on(store.end_log()).unwrap();
    let export = look(&above, &root, "export").unwrap();
    look(&above, &export, "sub").unwrap();
    // A handle from before, whose directory was closed.
    drop((store, above));
    let store =
        DirStore::open(place.path().join("export"), &options(place.path().join("outside/log"), 1));
    let above = DirStore::open(place.path(), &DirOptions::default()).unwrap();
    assert_eq!(look(&above, &export, "sub"), Err(Status::Access));
    drop(store);
}

#[test]
fn a_log_of_another_directory_or_with_damage_is_refused_and_left_as_it_is() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let log = place.path().join("outside/log");
    let whole = fs::read(&log).unwrap();
    let opened = |dir: &str, boot| {
        let dir = place.path().join(dir);
        DirStore::open(dir, &options(log.clone(), boot)).map(drop)
    };
    let refused = |dir, boot| opened(dir, boot).unwrap_err().to_string();
    fs::create_dir(place.path().join("another")).unwrap();
    assert!(refused("another", 2).contains("another directory"));
    let OpenError::Log(error) = opened("another", 2).unwrap_err() else { panic!("it has none") };
    assert_eq!(error.kind(), LogTrouble::Taken, "it never had a log");
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 5] = [
        ("its first block is damaged", |log| log[3] ^= 1),
        ("damaged", |log| log[100] ^= 1),
        ("no whole frame", |log| log[4096..].fill(0)),
        ("made with", |log| log.truncate(log.len() - 4096)),
        ("not a write log", Vec::clear),
    ];
    for (reason, damage) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        fs::write(&log, &bytes).unwrap();
        let why = refused("export", 2);
        assert!(why.contains(reason), "{why}");
        let OpenError::Log(error) = opened("export", 2).unwrap_err() else { panic!("{why}") };
        let kinds = [LogTrouble::Damaged, LogTrouble::WrongLength];
        assert!(kinds.contains(&error.kind()), "its directory knows it: {why}");
        assert!(fs::read(&log).unwrap() == bytes, "nothing was overwritten");
    }
    fs::write(&log, &whole).unwrap();
    fs::write(place.path().join("export/file"), b"old").unwrap();
    let store = DirStore::open(place.path().join("export"), &options(log, 2)).unwrap();
    assert_eq!(store.recovered().unwrap().records, 1);
    assert_eq!(fs::read(place.path().join("export/file")).unwrap(), b"new");
}

/// Gives a log that nobody has another UUID of its directory's file system.
pub(super) fn with_uuid(log: &Path, uuid: [u8; 16]) {
    let mut bytes = fs::read(log).unwrap();
    let mut identity = ::log::Identity::decode(&bytes[..4096]).unwrap();
    identity.export[..16].copy_from_slice(&uuid);
    bytes[..4096].copy_from_slice(&identity.encode());
    fs::write(log, bytes).unwrap();
}

/// Linux reports it from 6.9 on.
#[test]
fn a_log_is_its_directorys_also_if_its_kernel_did_not_report_a_uuid() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let [log, export] = ["outside/log", "export"].map(|name| place.path().join(name));
    let has_uuid =
        ::log::Identity::decode(&fs::read(&log).unwrap()[..4096]).unwrap().export[..16] != [0; 16];
    with_uuid(&log, if has_uuid { [0; 16] } else { [1; 16] });
    fs::write(export.join("file"), b"old").unwrap();
    let opened = || DirStore::open(&export, &options(log.clone(), 2));
    let store = opened().unwrap();
    assert_eq!(store.recovered().unwrap().records, 1);
    assert_eq!(fs::read(export.join("file")).unwrap(), b"new");
    block_on(store.end_log()).unwrap();
    drop(store);
    drop(opened().expect("it ended in order, and no directory names it"));
    fs::create_dir(place.path().join("another")).unwrap();
    let another = DirStore::open(place.path().join("another"), &options(log, 3));
    assert!(another.map(drop).unwrap_err().to_string().contains("another directory"));
}

/// The owner of one exported directory would keep the server from serving all others, and a copy
/// (`cp -a`) names the log of the directory that it was made of.
#[test]
fn a_mark_of_a_log_counts_where_a_server_has_set_it_for_this_directory() {
    use std::os::unix::fs::PermissionsExt;

    const MARK: &str = "user.nfskit.write_log";
    const PROOF: &str = "trusted.nfskit.write_log";
    let Some(at) = logged() else { return };
    let Fixture { store, place, .. } = at.at;
    drop(store);
    let [export, copy, foreign] = ["export", "copy", "foreign"].map(|name| place.path().join(name));
    let open = |dir: &Path| {
        DirStore::open(dir, &DirOptions::default()).map(drop).map_err(|error| error.to_string())
    };
    let set = |dir: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(dir, name, value, rustix::fs::XattrFlags::empty())
    };
    for dir in [&copy, &foreign] {
        fs::create_dir(dir).unwrap();
    }
    for name in [MARK, PROOF] {
        let mut value = [0; 4096];
        let len = rustix::fs::getxattr(&export, name, &mut value).unwrap_or(0);
        if len > 0 {
            set(&copy, name, &value[..len]).unwrap();
        }
    }
    assert_eq!(open(&copy), Ok(()));
    assert_eq!(write_log::named_in_vain(&copy), Some(vec![place.path().join("outside/log")]));
    assert!(open(&export).unwrap_err().contains("--write-log"));
    if rustix::fs::getxattr(&export, PROOF, &mut [0; 4096]).is_err() {
        not_tested("the proof of a mark: this process or file system has no trusted attributes");
        return;
    }
    for dir in [&export, &foreign] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let forged = [&[7; 16][..], b"/var/lib/nfskit/log"].concat();
    set(&foreign, MARK, &forged).unwrap();
    assert_eq!(open(&foreign), Ok(()));
    fs::rename(place.path().join("outside/log"), place.path().join("outside/away")).unwrap();
    assert!(open(&export).unwrap_err().contains("--write-log"), "its log is not to be found");
}

#[test]
fn a_write_that_takes_set_id_bits_is_stable_in_its_file() {
    let Some(at) = logged() else { return };
    if !at.at.store.acts_as_callers() {
        return not_tested("set-id bits: this process acts as itself");
    }
    let file = at.file("file", b"old");
    at.at.set_attr(&file, mode(0o4777)).unwrap();
    let before = at.syncs();
    let somebody = Caller { uid: 1000, gid: 1000, gids: Vec::new() };
    let data = Bytes::from_static(b"new");
    let write = at.at.store.write(&somebody, &file, 0, data.clone(), Stability::FileSync);
    block_on(write).result.unwrap();
    assert_eq!(at.syncs(), before + 1, "the bits are gone for good");
    let write = at.at.store.write(&somebody, &file, 0, data, Stability::FileSync);
    block_on(write).result.unwrap();
    assert_eq!(at.syncs(), before + 1);
}

#[test]
fn a_link_where_a_log_is_being_made_is_not_followed() {
    let Some(at) = logged() else { return };
    let outside = |name: &str| at.at.outside(name);
    fs::create_dir(outside("export")).unwrap();
    fs::write(outside("precious"), b"content").unwrap();
    std::os::unix::fs::symlink(outside("precious"), outside("second.new")).unwrap();
    let open = || DirStore::open(outside("export"), &options(outside("second"), 1)).map(drop);
    let refused = open().unwrap_err().to_string();
    assert!(refused.contains("second.new is a file that is no log"), "{refused}");
    assert_eq!(fs::read(outside("precious")).unwrap(), b"content");
    assert!(fs::symlink_metadata(outside("second.new")).unwrap().is_symlink());
    // What an interrupted start has left goes.
    fs::remove_file(outside("second.new")).unwrap();
    fs::write(outside("second.new"), b"").unwrap();
    open().unwrap();
    let made = fs::symlink_metadata(outside("second")).unwrap();
    assert!(made.is_file() && made.len() == SIZE);
}

#[test]
fn a_log_in_memory_or_of_no_size_is_refused() {
    let Some(at) = logged() else { return };
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("export")).unwrap();
    let refused = |log: PathBuf, bytes| {
        let mut options = options(log, 1);
        options.write_log.as_mut().unwrap().bytes = bytes;
        DirStore::open(place.path().join("export"), &options).map(drop).unwrap_err().to_string()
    };
    let log = place.path().join("log");
    assert!(refused(log.clone(), 1 << 20).contains("16 MiB to 1 GiB"));
    assert!(refused(place.path().join("nowhere/log"), SIZE).contains("cannot be made"));
    fs::create_dir(at.at.outside("memory")).unwrap();
    let Some(memory) = Mount::tmpfs(at.at.outside("memory"), "size=32m") else { return };
    assert!(refused(memory.0.join("log"), SIZE).contains("memory"));
    assert_eq!(fs::read_dir(&memory.0).unwrap().count(), 0, "nothing was made");
    assert!(!log.exists());
    // What stands on it is reported.
    assert!(!write_log::is_above_memory(&at.at.outside("log")));
    let Some(disk) = Mount::made(&memory.0.join("disk"), &["mkfs.ext4", "-q", "-F"]) else {
        return;
    };
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| memory.0.join(name));
    [&lower, &upper, &work].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
    fs::create_dir(at.at.outside("overlay")).unwrap();
    let [lower, upper, work] = [lower, upper, work].map(|dir| dir.display().to_string());
    let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let overlay = ["-t", "overlay", "-o", &layers, "overlay"];
    let Some(overlay) = Mount::at(at.at.outside("overlay"), &overlay) else { return };
    for dir in [&disk.0, &overlay.0] {
        fs::write(dir.join("log"), "").unwrap();
        assert!(write_log::is_above_memory(&dir.join("log")), "{}", dir.display());
        assert!(write_log::is_in_memory(dir), "{}", dir.display());
    }
}

#[test]
fn a_log_that_finds_no_room_leaves_nothing_behind() {
    let Some(at) = logged() else { return };
    let disk = at.at.outside("disk");
    let Some(disk) = Mount::made(&disk, &["mkfs.ext4", "-q", "-F"]) else { return };
    fs::create_dir(at.at.outside("export")).unwrap();
    let mut options = options(disk.0.join("log"), 1);
    options.write_log.as_mut().unwrap().bytes = IMAGE_BYTES;
    let refused = DirStore::open(at.at.outside("export"), &options).map(drop).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("cannot be made") && text.contains("No space"), "{text}");
    let left: Vec<_> =
        fs::read_dir(&disk.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lost+found"]);
    // Nor does the directory wait for a log.
    DirStore::open(at.at.outside("export"), &DirOptions::default()).unwrap();
}

#[test]
fn a_directory_that_cannot_remember_a_log_gets_none() {
    let Some(at) = logged() else { return };
    let Fixture { store, place, .. } = at.at;
    block_on(store.end_log()).unwrap();
    drop(store);
    let [new, bound] = ["outside/new", "outside/bound"].map(|name| place.path().join(name));
    fs::create_dir(&bound).unwrap();
    let Some(bound) = Mount::bind(&place.path().join("export"), bound) else { return };
    let mut command = std::process::Command::new("mount");
    command.args(["-o", "remount,bind,ro"]).arg(&bound.0);
    assert!(command.status().unwrap().success());
    let refused = DirStore::open(&bound.0, &options(new.clone(), 1)).map(drop).unwrap_err();
    let OpenError::Log(error) = refused else { panic!("{refused}") };
    assert_eq!(error.kind(), LogTrouble::NotRememberedReadOnly, "{error}");
    assert!(!new.exists(), "nothing was made");
}

#[test]
fn devices_are_measured_where_nothing_is_needed() {
    let Some(at) = logged() else { return };
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    // Twice, so that what the first has replayed is behind the second's first frame.
    let (at, recovered) = at.again(2, |at| lose(at, "file", b"old"));
    assert_eq!(recovered.records, 1);
    let took = at.at.store.log_latencies()[0];
    assert!(!took.log.is_zero() && !took.log_side_by_side.is_zero());
    let file = at.at.walk("file").unwrap().handle;
    at.commit(&file).unwrap();
    at.write(&file, 3, b"er", Stability::FileSync).unwrap();
    let (at, recovered) = at.again(3, |at| lose(at, "file", b"new"));
    assert_eq!(recovered.records, 1);
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"newer");
}

/// A program on this machine writes after the record, and all of it comes to the disk.
fn newer(at: &Fixture, name: &str, bytes: &[u8]) {
    let changed = |path: &PathBuf| {
        let file = fs::metadata(path).unwrap();
        (file.ctime(), file.ctime_nsec())
    };
    let path = at.path(name);
    let before = changed(&path);
    while changed(&path) == before {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(bytes, 0).unwrap();
    }
}

#[test]
fn files_that_lose_what_a_program_wrote_after_a_stable_write_are_named() {
    let Some(at) = logged() else { return };
    for name in ["same", "beside", "overwritten", "untouched", "emptied"] {
        let file = at.file(name, b"0123456789");
        at.write(&file, 2, b"ab", Stability::FileSync).unwrap();
        at.write(&file, 3, b"c", Stability::FileSync).unwrap();
    }
    let (at, recovered) = at.again(2, |at| {
        newer(at, "same", b"01ac");
        newer(at, "beside", b"**");
        newer(at, "overwritten", b"***");
        newer(at, "emptied", b"*");
        fs::write(at.path("emptied"), b"").unwrap();
    });
    assert_eq!((recovered.files, recovered.changed), (5, 4));
    let emptied = fs::metadata(at.at.path("emptied")).unwrap().ino();
    let [named] = &recovered.lengthened.named[..] else { panic!("{recovered:?}") };
    assert_eq!((recovered.lengthened.files, named.inode), (1, emptied));
    let inode = fs::metadata(at.at.path("overwritten")).unwrap().ino();
    let [named] = &recovered.replaced.named[..] else { panic!("{recovered:?}") };
    assert_eq!((recovered.replaced.files, named.inode), (1, inode));
    // The kernel of a machine that has just started may not know it.
    assert!(named.path.as_deref().is_none_or(|path| path == Path::new("overwritten")), "{named:?}");
    let [beside, overwritten] =
        ["beside", "overwritten"].map(|name| fs::read(at.at.path(name)).unwrap());
    assert_eq!((&beside[..], &overwritten[..]), (&b"**ac456789"[..], &b"**ac456789"[..]));
}
