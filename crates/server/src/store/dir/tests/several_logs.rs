//! Several write logs of one directory, and block devices as logs.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Command;

use super::logged::{Logged, logged, lose};
use super::*;
use crate::store::dir::write_log;

/// A file as a block device; gone with this.
struct Loop(PathBuf);

impl Loop {
    /// None, loudly, where this process may not have one.
    fn of(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            not_tested("block devices: this process may not have any");
            return None;
        };
        Some(Self(PathBuf::from(String::from_utf8(made.stdout).unwrap().trim())))
    }

    fn blank(place: &Path, name: &str) -> Option<Self> {
        let file = place.join(name);
        fs::File::create(&file).unwrap().set_len(IMAGE_BYTES).unwrap();
        Self::of(&file)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

fn beginning(file: &Path) -> Vec<u8> {
    let mut bytes = vec![0; 4 << 20];
    fs::File::open(file).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn with(at: &Logged, files: &[&Path], boot: u8) -> DirOptions {
    let mut options = at.at.options.clone();
    let log = options.write_log.as_mut().unwrap();
    log.files = files.iter().map(|&file| file.to_owned()).collect();
    log.boot = Some([boot; 16]);
    options
}

/// The first log of the directory comes to its end, so that it can get others.
fn without_log() -> Option<Logged> {
    let at = logged()?;
    block_on(at.at.store.end_log()).unwrap();
    Some(at)
}

impl Logged {
    fn reopen(&mut self, options: DirOptions) -> Result<(), OpenError> {
        // It stands for nothing until the next is open.
        let plain = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
        self.at.store = DirStore::open(self.at.outside(""), &plain).unwrap();
        self.at.options = options;
        let mut tries = 0;
        self.at.store = loop {
            match DirStore::open(self.at.path(""), &self.at.options) {
                // A program that another test is about to start has it for a moment longer.
                Err(error) if tries < 300 && error.to_string().contains("in use") => tries += 1,
                opened => break opened?,
            }
            thread::yield_now();
        };
        Ok(())
    }

    fn refused(&mut self, options: DirOptions) -> String {
        self.reopen(options).map(drop).unwrap_err().to_string()
    }
}

#[test]
fn records_of_several_logs_survive_in_their_order() {
    let Some(mut at) = without_log() else { return };
    let [one, two, three] = ["one", "two", "three"].map(|name| at.at.outside(name));
    at.reopen(with(&at, &[&one, &two, &three], 1)).unwrap();
    assert_eq!(at.at.store.log_latencies().len(), 3);
    let files = ["a", "b", "c", "d"].map(|name| at.file(name, b"old"));
    for index in 0..40_u8 {
        let text: &'static [u8] = Box::leak(format!("{index:03}").into_boxed_str()).as_bytes();
        let at_byte = u64::from(index % 3);
        at.write(&files[usize::from(index % 4)], at_byte, text, Stability::FileSync).unwrap();
    }
    let content: Vec<_> =
        ["a", "b", "c", "d"].map(|name| fs::read(at.at.path(name)).unwrap()).into();
    // Given in another order, as devices may have it after a loss of power.
    let again = with(&at, &[&three, &one, &two], 2);
    let lost = at.at.store.recovered().unwrap();
    assert_eq!(lost.records, 0);
    let plain = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
    at.at.store = DirStore::open(at.at.outside(""), &plain).unwrap();
    let inspection = write_log::inspect(&[two, one, three]).unwrap();
    assert_eq!((inspection.logs, inspection.records, inspection.files), (3, 40, 4));
    for name in ["a", "b", "c", "d"] {
        lose(&at.at, name, b"old");
    }
    at.reopen(again).unwrap();
    assert_eq!(at.at.store.recovered().unwrap().records, 40);
    let logs: Vec<_> = at.at.store.logs().iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(logs, ["one", "two", "three"].map(|name| at.at.outside(name)), "as measured");
    let found: Vec<_> = ["a", "b", "c", "d"].map(|name| fs::read(at.at.path(name)).unwrap()).into();
    assert_eq!(found, content);
    block_on(at.at.store.end_log()).unwrap();
}

/// What a log holds is done again with the server's rights.
#[test]
fn one_that_others_own_or_may_write_to_is_refused_and_no_other_file_goes_for_one_that_is_made() {
    let Some(mut at) = without_log() else { return };
    let [one, two, link] = ["one", "two", "link"].map(|name| at.at.outside(name));
    at.reopen(with(&at, &[&one], 1)).unwrap();
    block_on(at.at.store.end_log()).unwrap();
    let mut refused = |file: &Path| at.refused(with(&at, &[file], 1));
    fs::set_permissions(&one, fs::Permissions::from_mode(0o620)).unwrap();
    let why = refused(&one);
    assert!(why.contains("may be written to by others (mode 620"), "{why}");
    fs::set_permissions(&one, fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&one, Some(65534), None).unwrap();
        let why = refused(&one);
        assert!(why.contains("belongs to another user (uid 65534)"), "{why}");
    }
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    assert!(refused(&link).contains("a symbolic link that leads nowhere"));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"));
    let beside = two.with_extension("new");
    fs::write(&beside, "somebody's").unwrap();
    let why = refused(&two);
    assert!(why.contains("two.new is a file that is no log"), "{why}");
    assert_eq!(fs::read(&beside).unwrap(), b"somebody's");
    // As an interrupted start leaves it.
    fs::copy(&one, &beside).unwrap();
    at.reopen(with(&at, &[&two], 1)).unwrap();
    block_on(at.at.store.end_log()).unwrap();
}

#[test]
fn one_that_is_missing_foreign_or_given_twice_is_refused_and_nothing_is_overwritten() {
    let Some(mut at) = without_log() else { return };
    let [one, two, other] = ["one", "two", "other"].map(|name| at.at.outside(name));
    at.reopen(with(&at, &[&one, &two], 1)).unwrap();
    let file = at.file("file", b"old");
    at.write(&file, 0, b"new", Stability::FileSync).unwrap();
    let both = [one.clone(), two.clone()];
    let mut refused = |files: &[&Path]| {
        let options = with(&at, files, 2);
        let why = at.refused(options);
        let inspected = files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>();
        (why, write_log::inspect(&inspected).map(drop))
    };
    let content = both.clone().map(|file| {
        // The server is gone with the first look.
        let _ = refused(&[&one]);
        fs::read(file).unwrap()
    });
    assert!(refused(&[&one]).0.contains("it is log 1 of 2, and one was given"));
    assert!(refused(&[&two]).0.contains("it is log 2 of 2, and one was given"));
    assert!(refused(&[&one, &one]).0.contains("it is given twice"));
    fs::copy(&one, &other).unwrap();
    assert!(refused(&[&one, &other]).0.contains("it is log 1 of 2, and so is"));
    let (why, inspected) = refused(&[&one, &two, &other]);
    assert!(why.contains("log 1 of 2, and 3 were given") && inspected.is_err(), "{why}");
    fs::remove_file(&other).unwrap();
    let (why, _) = refused(&[&one, &other]);
    assert!(why.contains("which may hold stable writes"), "{why}");
    let (why, _) = refused(&[&one, &two, &other]);
    assert!(why.contains("more can be made when"), "{why}");
    assert!(!other.exists(), "nothing was made");
    // Of another directory's logs.
    fs::create_dir(at.at.outside("export")).unwrap();
    let [third, fourth] = ["third", "fourth"].map(|name| at.at.outside(name));
    let theirs = with(&at, &[&third, &fourth], 1);
    drop(DirStore::open(at.at.outside("export"), &theirs).unwrap());
    let why = at.refused(with(&at, &[&one, &fourth], 2));
    assert!(why.contains("of another server or directory than"), "{why}");
    assert_eq!(both.map(|file| fs::read(file).unwrap()), content);

    lose(&at.at, "file", b"old");
    at.reopen(with(&at, &[&one, &two], 2)).unwrap();
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"new");
}

#[test]
fn logs_are_made_together_or_not_at_all() {
    let Some(mut at) = without_log() else { return };
    let [one, nowhere] = ["one", "nowhere/two"].map(|name| at.at.outside(name));
    let why = at.refused(with(&at, &[&one, &nowhere], 1));
    assert!(why.contains("nowhere/two: it cannot be made"), "{why}");
    assert!(!one.exists());
    // What an interrupted start left.
    fs::create_dir(at.at.outside("nowhere")).unwrap();
    at.reopen(with(&at, &[&one, &nowhere], 1)).unwrap();
    block_on(at.at.store.end_log()).unwrap();
    fs::remove_file(&nowhere).unwrap();
    let why = at.refused(with(&at, &[&one, &nowhere], 1));
    assert!(why.contains("logs are made together"), "{why}");
    assert!(!nowhere.exists());
}

#[test]
fn a_blank_device_becomes_a_log_and_what_it_held_survives() {
    let Some(mut at) = without_log() else { return };
    let place = at.at.outside("");
    let (Some(one), Some(two)) = (Loop::blank(&place, "disk1"), Loop::blank(&place, "disk2"))
    else {
        return;
    };
    at.reopen(with(&at, &[&one.0, &two.0], 1)).unwrap();
    let file = at.file("file", b"old");
    for data in [&b"1"[..], b"22", b"333"] {
        at.write(&file, 1, data, Stability::FileSync).unwrap();
    }
    // Nobody else gets it meanwhile: not a second server, not a mount.
    let busy = write_log::inspect(&[one.0.clone(), two.0.clone()]).unwrap_err().to_string();
    assert!(busy.contains("another server has it"), "{busy}");
    let (again, only) = (with(&at, &[&one.0, &two.0], 2), with(&at, &[&one.0], 2));
    let why = at.refused(only);
    assert!(why.contains("it is log 1 of 2"), "{why}");
    lose(&at.at, "file", b"old");
    at.reopen(again).unwrap();
    assert_eq!(at.at.store.recovered().unwrap().records, 3);
    assert_eq!(fs::read(at.at.path("file")).unwrap(), b"o333");
    block_on(at.at.store.end_log()).unwrap();
}

#[test]
fn a_device_that_is_mounted_or_holds_anything_is_refused_and_left_as_it_is() {
    let Some(mut at) = without_log() else { return };
    let place = at.at.outside("");
    let image = place.join("image");
    let makers: [&[&str]; 4] =
        [&["mkfs.ext4", "-q", "-F"], &["mkfs.xfs", "-q", "-f"], &["mkswap", "-q"], &["true"]];
    for maker in makers {
        let new = fs::File::create(&image).unwrap();
        new.set_len(320 << 20).unwrap();
        let made = Command::new(maker[0]).args(&maker[1..]).arg(&image).status();
        if !made.is_ok_and(|made| made.success()) {
            not_tested(&format!("{} is not here", maker[0]));
            continue;
        }
        if maker == ["true"] {
            new.write_all_at(b"x", 70_000).unwrap();
        }
        let Some(device) = Loop::of(&image) else { return };
        let what = match maker[0] {
            "mkfs.ext4" => "ext4",
            "mkfs.xfs" => "xfs",
            "mkswap" => "swap",
            _ => "something",
        };
        let before = beginning(&image);
        let why = at.refused(with(&at, &[&device.0], 1));
        assert!(why.contains(what) && why.contains("not overwritten"), "{why}");
        if maker[0] == "mkfs.ext4" {
            fs::create_dir(place.join("mounted")).unwrap();
            let mount = Mount::at(place.join("mounted"), &[device.0.to_str().unwrap()]).unwrap();
            let why = at.refused(with(&at, &[&device.0], 1));
            assert!(why.contains("mounted"), "{why}");
            drop(mount);
            continue;
        }
        assert!(beginning(&image) == before, "nothing was overwritten");
    }
    // Too small; and one that lies in memory.
    fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let Some(device) = Loop::of(&image) else { return };
    let why = at.refused(with(&at, &[&device.0], 1));
    assert!(why.contains("16 MiB at least"), "{why}");
    fs::create_dir(place.join("memory")).unwrap();
    let Some(memory) = Mount::tmpfs(place.join("memory"), "size=64m") else { return };
    let Some(device) = Loop::blank(&memory.0, "disk") else { return };
    let why = at.refused(with(&at, &[&device.0], 1));
    assert!(why.contains("lies in memory"), "{why}");
}
