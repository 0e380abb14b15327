//! Power cuts of a real file system: what its disk holds is copied while nothing is requested to
//! write to it, the copy is mounted, and the log of the same moment is replayed into it.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::logged;
use super::*;
use crate::store::dir::sync::group::Need;

/// In the gate. Each is a mount and some seconds of work in a second.
const CUTS: u32 = 10;

/// A server with a log, on a file system in a file.
pub(super) struct Machine {
    pub(super) at: Arc<DirStore>,
    mount: Mount,
    place: tempfile::TempDir,
    has: Has,
    boot: u8,
    /// Its syncs fail.
    pub(super) fails: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Has {
    Nothing,
    /// SETATTRs and COMMITs go to it, too.
    FastLog,
    SlowLog,
}

/// What a client knows of a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Known {
    content: Vec<u8>,
    modified: Time,
    mode: u32,
}

/// The server's process begins.
fn start(place: &Path, has: Has, boot: u8, fails: &Arc<AtomicBool>) -> Result<DirStore, OpenError> {
    let mut options = logged::options(place.join("log"), boot);
    match has {
        Has::Nothing => options.write_log = None,
        _ => options.write_log.as_mut().unwrap().is_faster = Some(has == Has::FastLog),
    }
    let fails = Arc::clone(fails);
    let call = Box::new(move |fd: BorrowedFd<'_>, need: Need| {
        if fails.load(Ordering::SeqCst) { Err(Errno::IO) } else { sync::sync_call(fd, need) }
    });
    DirStore::open_with(&place.join("disk"), &options, call)
}

impl Machine {
    pub(super) fn new(has: Has) -> Option<Self> {
        Self::with(has, &["mkfs.ext4", "-q", "-F"])
    }

    fn with(has: Has, make: &[&str]) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let made = Mount::made(&place.path().join("disk"), make)?;
        drop(made);
        let mount = Self::mount(place.path())?;
        let fails = Arc::default();
        let at = match start(place.path(), has, 0, &fails) {
            Err(error) if error.to_string().contains("memory") => {
                not_tested("power cuts: temporary files lie in memory");
                return None;
            }
            opened => Arc::new(opened.unwrap()),
        };
        Some(Self { at, mount, place, has, boot: 0, fails })
    }

    /// The kernel does not commit its journal by itself.
    fn mount(place: &Path) -> Option<Mount> {
        let image = place.join("disk.image");
        let arguments = ["-o", "loop,commit=900", image.to_str().unwrap()];
        Mount::at(place.join("disk"), &arguments)
    }

    fn log(&self) -> Option<&Log> {
        self.at.tree.log.as_ref()
    }

    /// The power is cut, and comes back. All calls were answered: what the log says afterwards is
    /// of no weight, so that it may be copied first.
    pub(super) fn cut(self) -> Self {
        // A copy of a disk that is being written would be none of any moment.
        while self.log().is_some_and(Log::is_sweeping) {
            thread::yield_now();
        }
        self.cut_off("log");
        self.cut_off("disk.image");
        self.comes_back()
    }

    /// What this gets from now on is lost.
    pub(super) fn cut_off(&self, what: &str) {
        let (from, to) = (self.place.path().join(what), self.place.path().join("cut").join(what));
        if from.exists() {
            fs::create_dir_all(self.place.path().join("cut")).unwrap();
            let copied =
                Command::new("cp").args(["--sparse=always", "--"]).arg(from).arg(to).status();
            assert!(copied.unwrap().success());
        }
    }

    /// With what both had when they were cut off.
    pub(super) fn comes_back(self) -> Self {
        let boot = self.boot + 1;
        self.starts_in(boot)
    }

    fn starts_in(self, boot: u8) -> Self {
        let Self { at, mount, place, has, fails, .. } = self;
        drop(at);
        // A program that another test is about to start has its files for a moment longer.
        let unmount = || Command::new("umount").arg(&mount.0).status().unwrap().success();
        assert!((0..200).any(|_| unmount()), "nothing holds it");
        std::mem::forget(mount);
        for what in fs::read_dir(place.path().join("cut")).unwrap() {
            let what = what.unwrap();
            fs::rename(what.path(), place.path().join(what.file_name())).unwrap();
        }
        let mount = Self::mount(place.path()).expect("it was mounted before");
        fails.store(false, Ordering::SeqCst);
        let at = Arc::new(start(place.path(), has, boot, &fails).unwrap());
        assert!(at.recovered().is_none_or(|recovered| !recovered.was_running));
        Self { at, mount, place, has, boot, fails }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.mount.0.join(name)
    }

    /// A file of that content, all of it on the disk.
    fn with_file(&self, name: &str, content: &[u8]) -> Handle {
        let how = CreateHow::Guarded(mode(0o644));
        let made = block_on(self.at.create(&ME, &self.at.root(), name.as_bytes(), how));
        let file = made.result.unwrap().handle;
        self.write(&file, 0, content, Stability::FileSync);
        rustix::fs::syncfs(fs::File::open(&self.mount.0).unwrap()).unwrap();
        file
    }

    /// By another name, which is stable.
    fn rename(&self, from: &str, to: &str) {
        let root = self.at.root();
        let renamed = self.at.rename(&ME, &root, from.as_bytes(), &root, to.as_bytes());
        block_on(renamed).result.unwrap();
    }

    fn set(&self, file: &Handle, changes: SetAttr) -> Attr {
        let set = block_on(self.at.set_attr(&ME, file, changes, None));
        set.result.unwrap();
        set.wcc.after.unwrap()
    }

    /// What is in its directory.
    pub(super) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.mount.0).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(super) fn write(
        &self,
        file: &Handle,
        offset: usize,
        data: &[u8],
        stability: Stability,
    ) -> Time {
        let data = Bytes::copy_from_slice(data);
        let written = block_on(self.at.write(&ME, file, offset as u64, data, stability));
        written.result.unwrap();
        written.wcc.after.unwrap().modified
    }

    pub(super) fn find(&self, name: &str) -> Result<Node, Status> {
        block_on(self.at.lookup(&ME, &self.at.root(), name.as_bytes())).result
    }

    /// One call of a client, and its reply.
    fn call(&self, random: &mut impl FnMut(usize) -> usize, known: &mut BTreeMap<String, Known>) {
        let name = format!("file-{}", random(12));
        let Some(file) = known.get_mut(&name) else {
            let how = CreateHow::Guarded(mode(0o644));
            let made = block_on(self.at.create(&ME, &self.at.root(), name.as_bytes(), how));
            let modified = made.result.unwrap().attr.modified;
            known.insert(name, Known { modified, mode: 0o644, ..Known::default() });
            return;
        };
        let handle = self.find(&name).unwrap().handle;
        let byte = u8::try_from(random(255)).unwrap() + 1;
        match random(20) {
            0 => {
                block_on(self.at.remove(&ME, &self.at.root(), name.as_bytes())).result.unwrap();
                known.remove(&name);
            }
            1 => {
                let size = random(file.content.len() + 5000);
                let changes = SetAttr { size: Some(size as u64), ..SetAttr::default() };
                let changed = block_on(self.at.set_attr(&ME, &handle, changes, None));
                changed.result.unwrap();
                file.content.resize(size, 0);
                file.modified = changed.wcc.after.unwrap().modified;
            }
            2 | 3 => {
                file.mode = 0o600 + u32::from(byte) % 64;
                let modified = Time { secs: i64::from(byte), nanos: 5 };
                let changes = SetAttr { modified: SetTime::To(modified), ..mode(file.mode) };
                let changed = block_on(self.at.set_attr(&ME, &handle, changes, None));
                changed.result.unwrap();
                file.modified = modified;
            }
            4..=6 => {
                let (offset, data) = (random(60_000), vec![byte; 1 + random(9000)]);
                file.modified = self.write(&handle, offset, &data, Stability::Unstable);
                let _durable = block_on(self.at.commit(&ME, &handle, 0, 0)).result.unwrap();
                file.put(offset, &data);
            }
            // More than a record takes.
            7 => {
                let data = vec![byte; 300 << 10];
                file.modified = self.write(&handle, 0, &data, Stability::FileSync);
                file.put(0, &data);
            }
            _ => {
                let (offset, data) = (random(60_000), vec![byte; 1 + random(9000)]);
                file.modified = self.write(&handle, offset, &data, Stability::FileSync);
                file.put(offset, &data);
            }
        }
    }

    fn check(&self, known: &BTreeMap<String, Known>) {
        let mut names = self.names();
        names.retain(|name| name.starts_with("file-"));
        assert!(names.iter().eq(known.keys()), "{names:?}");
        for (name, known) in known {
            let content = fs::read(self.mount.0.join(name)).unwrap();
            assert_eq!(content.len(), known.content.len(), "size of {name}");
            let differs = content.iter().zip(&known.content).position(|(a, b)| a != b);
            assert_eq!(differs, None, "of {name}");
            let attr = self.find(name).unwrap().attr;
            assert_eq!(attr.modified, known.modified, "time of {name}");
            assert_eq!(attr.mode & 0o7777, known.mode, "mode of {name}");
        }
    }
}

impl Known {
    fn put(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if self.content.len() < end {
            self.content.resize(end, 0);
        }
        self.content[offset..end].copy_from_slice(data);
    }
}

/// A disk that was pulled out, say.
#[test]
fn a_file_system_that_was_lost_without_the_machine_loses_nothing() {
    if !kernel_handles_work() || !is_privileged() {
        not_tested("a lost disk: this process may not mount");
        return;
    }
    let Some(machine) = Machine::new(Has::FastLog) else { return };
    let how = CreateHow::Guarded(mode(0o644));
    let made = block_on(machine.at.create(&ME, &machine.at.root(), b"file", how));
    let file = made.result.unwrap().handle;
    let old = machine.write(&file, 0, b"old", Stability::FileSync);
    machine.cut_off("disk.image");
    // Change times move on with the kernel's ticks.
    while machine.write(&file, 0, b"new", Stability::FileSync) <= old {}
    machine.cut_off("log");
    let boot = machine.boot;
    let machine = machine.starts_in(boot);
    assert_eq!(fs::read(machine.path("file")).unwrap(), b"new");
}

/// `tune2fs -U` after a loss of power, say.
#[test]
fn a_log_of_a_directory_whose_file_system_got_a_new_uuid_is_salvaged() {
    if !kernel_handles_work() || !is_privileged() {
        not_tested("another UUID: this process may not mount");
        return;
    }
    let Some(machine) = Machine::new(Has::SlowLog) else { return };
    let file = machine.with_file("file", b"old");
    machine.write(&file, 0, b"new", Stability::FileSync);
    let Machine { at, mount, place, .. } = machine;
    drop(at);
    let log = place.path().join("log");
    let identity = ::log::Identity::decode(&fs::read(&log).unwrap()[..4096]).unwrap();
    if identity.export[..16] == [0; 16] {
        eprintln!("not tried: this kernel reports no UUID");
        return;
    }
    logged::with_uuid(&log, [1; 16]);
    fs::write(mount.0.join("file"), b"old").unwrap();
    let mut options = logged::options(log, 1);
    let Err(OpenError::Log(refused)) = DirStore::open(&mount.0, &options) else {
        panic!("the directory may be a copy")
    };
    assert_eq!(refused.kind(), write_log::LogTrouble::OfOtherUuid);
    options.write_log.as_mut().unwrap().salvages = true;
    let store = DirStore::open(&mount.0, &options).unwrap();
    assert_eq!(store.recovered().unwrap().records, 1);
    assert_eq!(fs::read(mount.0.join("file")).unwrap(), b"new");
}

/// btrfs, whose mount replays names and sets the change times of their files.
fn machine_that_replays_names() -> Option<Machine> {
    if !kernel_handles_work() || !is_privileged() {
        not_tested("names that a mount replays: this process may not mount");
        return None;
    }
    Machine::with(Has::FastLog, &["mkfs.btrfs", "-q"])
}

fn sized(size: u64) -> SetAttr {
    SetAttr { size: Some(size), ..SetAttr::default() }
}

#[test]
fn attributes_of_a_file_whose_name_the_mount_replays_are_set_again() {
    let Some(machine) = machine_that_replays_names() else { return };
    let [longer, cut] = ["longer", "cut"].map(|name| machine.with_file(name, b"old content"));
    machine.rename("longer", "longer too");
    machine.rename("cut", "cut too");
    let modified = Time { secs: 5, nanos: 0 };
    let changes = SetAttr { modified: SetTime::To(modified), ..mode(0o600) };
    machine.set(&longer, SetAttr { size: Some(5000), ..changes });
    machine.set(&cut, sized(0));
    machine.write(&cut, 0, b"new", Stability::FileSync);
    let machine = machine.cut();
    let attr = machine.find("longer too").unwrap().attr;
    assert_eq!((attr.mode & 0o7777, attr.size, attr.modified), (0o600, 5000, modified));
    assert_eq!(fs::read(machine.path("cut too")).unwrap(), b"new");
    let recovered = machine.at.recovered().unwrap();
    assert_eq!((recovered.attributes, recovered.records, recovered.changed), (2, 3, 0));
}

/// The time of its inode is the mount's, that of its bytes is not.
#[test]
fn bytes_that_a_program_has_synced_are_not_cut_off_where_the_mount_replays_names() {
    let Some(machine) = machine_that_replays_names() else { return };
    let file = machine.with_file("file", b"old content");
    machine.rename("file", "other");
    let cut = machine.set(&file, sized(0)).modified;
    let path = machine.path("other");
    let mut program = fs::File::create(&path).unwrap();
    // Times move on with the kernel's ticks.
    while Stat::of(&program).unwrap().attr().modified <= cut {
        program.write_all(b"program's ").unwrap();
    }
    program.sync_all().unwrap();
    drop(program);
    let content = fs::read(&path).unwrap();
    let machine = machine.cut();
    assert_eq!(fs::read(machine.path("other")).unwrap(), content);
    assert_eq!(machine.at.recovered().unwrap().changed, 1);
}

#[test]
fn power_cuts_of_a_real_file_system_lose_nothing_with_a_log() {
    assert!(
        replayed_in_cuts(Has::FastLog).is_none_or(|replayed| replayed > 0),
        "the log was of use"
    );
}

#[test]
fn power_cuts_of_a_real_file_system_lose_nothing_without_one() {
    assert!(replayed_in_cuts(Has::Nothing).is_none_or(|replayed| replayed == 0));
}

/// None, loudly, where it cannot be tried.
fn replayed_in_cuts(has: Has) -> Option<u64> {
    if !kernel_handles_work() || !is_privileged() {
        not_tested("power cuts: this process may not mount");
        return None;
    }
    let mut machine = Machine::new(has)?;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % end.max(1)
    };
    let (mut known, mut replayed) = (BTreeMap::new(), 0);
    for cut in 0..CUTS {
        for call in 0..60 + random(200) {
            machine.call(&mut random, &mut known);
            if call % 50 == 0 {
                let second = cut * 1000 + u32::try_from(call).unwrap() + 5;
                machine.log().into_iter().for_each(|log| log.tend(second));
            }
        }
        machine = machine.cut();
        replayed += machine.at.recovered().map_or(0, |recovered| recovered.records);
        machine.check(&known);
    }
    block_on(machine.at.end_log()).unwrap();
    Some(replayed)
}
