//! `nfskit serve --write-log` and `nfskit log`, as root; everybody else gets the reason why not.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use wire::Procedure;
use wire::nfs3::{DirOp, NfsStat3, Procedure as P, Sattr3, mkdir, rename, rmdir};
use wire::xdr::Encode;

use crate::program::{Finished, nfskit, run};
use crate::rpc::{Connection, call};
use crate::served::Served;

/// Where a log can be, outside of a directory to serve; none where temporary files lie in memory.
struct Places {
    folder: tempfile::TempDir,
}

impl Places {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("data.wal")
    }

    fn serve(&self, options: &[&Path]) -> Served {
        let mut command = nfskit(["serve", "--export", "/=no_root_squash,insecure"]);
        command.arg(self.data()).args(options);
        Served::start(command, "127.0.0.1:0")
    }

    fn with_log(&self) -> Served {
        let (option, size) = (Path::new("--write-log"), Path::new("--write-log-size=16M"));
        self.serve(&[option, &self.log(), size])
    }

    fn refused(&self, options: &[&str]) -> Finished {
        let mut command = nfskit(["serve", "--listen", "127.0.0.1:0"]);
        command.arg(self.data()).args(options);
        crate::program::Program::start(&mut command).finish()
    }

    fn command(&self, verb: &str) -> Finished {
        let log = self.log();
        run(["log", verb, log.to_str().unwrap()])
    }
}

/// Whether this process may have a log, or has the reason why not.
fn may(places: &Places) -> bool {
    let is_memory = rustix::fs::statfs(places.data()).unwrap().f_type == 0x0102_1994;
    if rustix::process::geteuid().is_root() && !is_memory {
        return true;
    }
    let log = places.log();
    let text = places.refused(&["--write-log", log.to_str().unwrap()]);
    text.complains(3, &["write log"]);
    assert!(!log.exists());
    false
}

#[test]
fn a_log_outlives_its_server_and_its_directory_waits_for_it() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    let served = places.with_log();
    let mut client = Connection::to(&served);
    let file = client.creates(b"file");
    client.writes(file, b"the first goes to its file");
    client.writes(file, b"the second is in the log");
    places.command("inspect").complains(3, &["another server"]);
    served.program.signal(Signal::KILL);
    served.program.finish();

    places.refused(&[]).complains(3, &["--write-log", "data.wal"]);
    let inspected = places.command("inspect");
    assert_eq!(inspected.code, Some(0), "{inspected:?}");
    assert!(inspected.stdout.contains("1 stable write of 24 bytes to 1 file"), "{inspected:?}");
    assert!(inspected.stdout.contains("did not end in order"), "{inspected:?}");
    assert_eq!(places.command("verify").code, Some(0));

    let served = places.with_log();
    served
        .program
        .wait_for(|banner| banner.contains("1 file of the write log synced").then_some(()));
    let mut client = Connection::to(&served);
    let file = client.creates(b"another");
    client.writes(file, b"1");
    client.writes(file, b"2");
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
    assert!(places.command("inspect").stdout.contains("ended in order"));
    let served = places.serve(&[]);
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
    let content = fs::read(places.data().join("file")).unwrap();
    assert_eq!(content, b"the second is in the logle");
}

#[test]
fn a_size_that_a_log_does_not_have_is_warned_of() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    for (size, is_warned) in [("16M", false), ("32M", true), ("16M", false)] {
        let option = format!("--write-log-size={size}");
        let served = places.serve(&[Path::new("--write-log"), &places.log(), Path::new(&option)]);
        served.program.wait_for(|banner| banner.contains("a write of it takes").then_some(()));
        served.program.signal(Signal::TERM);
        let ended = served.program.finish();
        let warning = "is of 16 MiB: --write-log-size is for a new one";
        assert_eq!((ended.code, ended.stdout.contains(warning)), (Some(0), is_warned), "{ended:?}");
    }
}

#[test]
fn a_start_that_fails_leaves_the_directory_free_of_its_log() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let log = places.log();
    let with_log = ["--write-log-size", "16M", "--write-log", log.to_str().unwrap()];
    for (option, complaint) in [
        (["--metrics", &taken], "cannot serve metrics"),
        (["--export", "/=client=no-such-host.invalid"], "no-such-host.invalid"),
    ] {
        places.refused(&[&with_log[..], &option].concat()).complains(3, &[complaint]);
        let served = places.serve(&[]);
        served.program.signal(Signal::TERM);
        assert_eq!(served.program.finish().code, Some(0), "{option:?}");
    }
}

#[test]
fn a_log_is_drained_without_its_server_and_damage_is_reported() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    let served = places.with_log();
    let mut client = Connection::to(&served);
    let file = client.creates(b"file");
    for text in [&b"one"[..], b"two", b"three"] {
        client.writes(file, text);
    }
    served.program.signal(Signal::KILL);
    served.program.finish();
    let log = places.log();
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    // The first of two frames that are needed: the newest was not begun before it was stable.
    let at = newest_but_one(&damaged);
    damaged[at + 200] ^= 1;
    fs::write(&log, &damaged).unwrap();
    places.command("verify").complains(1, &["damaged in the middle"]);
    places
        .refused(&["--write-log", log.to_str().unwrap()])
        .complains(3, &["damaged in the middle"]);
    assert!(fs::read(&log).unwrap() == damaged, "nothing was overwritten");
    fs::write(&log, &whole).unwrap();
    let drained = run(["log", "drain", log.to_str().unwrap(), places.data().to_str().unwrap()]);
    assert!(drained.stdout.contains("needs no log any more"), "{drained:?}");
    fs::remove_file(&log).unwrap();
    let served = places.serve(&[]);
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
}

/// By a server that has no other memory: with a port of its own it keeps no state.
#[test]
fn a_server_that_was_killed_answers_from_its_log_what_it_had_answered() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    let mut served = places.with_log();
    let mut client = Connection::to(&served);
    let dir = client.root();
    let at = |name| DirOp { dir, name };
    let mkdir = mkdir::Args { where_: at(b"made"), attributes: Sattr3::default() };
    let rename = rename::Args { from: at(b"made"), to: at(b"moved") };
    let rmdir = rmdir::Args { object: at(b"moved") };
    let calls = [
        call(901, Procedure::Nfs3(P::Mkdir), &mkdir.to_bytes()),
        call(902, Procedure::Nfs3(P::Rename), &rename.to_bytes()),
        call(903, Procedure::Nfs3(P::Rmdir), &rmdir.to_bytes()),
    ];
    let mut answered = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        client.say_record(call);
        answered.push(client.hear().unwrap());
        assert_eq!(answered[number][24..28], [0; 4], "NFS3_OK");
        served.program.signal(Signal::KILL);
        served.program.finish();
        served = places.with_log();
        client = Connection::to(&served);
        for (call, answered) in calls.iter().zip(&answered) {
            client.say_record(call);
            assert_eq!(client.hear().as_ref(), Some(answered), "after {} kills", number + 1);
        }
    }
    // Another caller's, which was never answered.
    client.say_record(&call(904, Procedure::Nfs3(P::Rmdir), &rmdir.to_bytes()));
    assert_eq!(client.hear().unwrap()[24..28], NfsStat3::NoEnt.code().to_be_bytes());
}

/// Where the frame before the newest begins.
fn newest_but_one(log: &[u8]) -> usize {
    let frames = log.chunks(4096).enumerate().filter(|(_, block)| block.starts_with(b"nfsframe"));
    let mut frames: Vec<_> = frames
        .map(|(index, block)| (u64::from_le_bytes(block[48..56].try_into().unwrap()), index * 4096))
        .collect();
    frames.sort_unstable();
    frames[frames.len() - 2].1
}

#[test]
fn a_log_where_clients_could_write_or_without_a_disk_is_refused() {
    let places = Places::new();
    let inside = places.data().join("log");
    let text = places.refused(&["--write-log", inside.to_str().unwrap()]);
    text.complains(3, &["clients could change it"]);
    // However it is written.
    fs::write(&inside, "").unwrap();
    let link = places.folder.path().join("link");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    let text = places.refused(&["--write-log", link.to_str().unwrap()]);
    text.complains(3, &["clients could change it"]);
    fs::remove_file(&inside).unwrap();
    let log = places.log();
    let log = log.to_str().unwrap();
    run(["serve", "mem:", "--write-log", log]).complains(2, &["mem:"]);
    let exported = run(["serve", "--export", "/srv", "--write-log", log]);
    exported.complains(2, &["a single DIR", "nfskit serve DIR --export"]);
    let never = ["--write-log", log, "--metadata-sync", "never"];
    places.refused(&never).complains(2, &["--metadata-sync"]);
    run(["log", "inspect", log]).complains(3, &["data.wal"]);
    assert!(!places.log().exists());
}

#[test]
fn advice_on_a_log_is_by_what_is_wrong_with_it_and_not_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("in memory and damaged");
    let log = log.to_str().unwrap();
    run(["log", "inspect", log]).complains(3, &["No such file", "the log by its name"]);
    run(["log", "status", log]).complains(3, &["No such file", "as the user who has it"]);
}

/// Whatever is wrong with what lies there, nothing of it is overwritten.
#[test]
fn what_is_no_log_of_this_directory_is_refused_with_a_sentence() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    let log = places.log();
    let refused = |text: &str| {
        let before = fs::read(&log).unwrap();
        places.refused(&["--write-log", log.to_str().unwrap()]).complains(3, &[text]);
        places.command("inspect").complains(3, &[text]);
        assert!(fs::read(&log).unwrap() == before, "nothing was overwritten");
    };
    fs::write(&log, b"a letter to somebody").unwrap();
    refused("not a write log");
    fs::write(&log, vec![0; 16 << 20]).unwrap();
    refused("not a write log");
    fs::remove_file(&log).unwrap();
    let served = places.with_log();
    served.program.wait_for(|banner| banner.contains("a write of it takes").then_some(()));
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..whole.len() - 4096]).unwrap();
    refused("made with");
    let mut older = whole;
    older[16] = 1;
    let sum = crc32(&older[..4092]).to_le_bytes();
    older[4092..4096].copy_from_slice(&sum);
    fs::write(&log, &older).unwrap();
    refused("version 1");
}

/// CRC-32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}

#[test]
fn a_damaged_log_is_salvaged_when_that_was_requested() {
    let places = Places::new();
    if !may(&places) {
        return;
    }
    let served = places.with_log();
    let mut client = Connection::to(&served);
    let file = client.creates(b"file");
    for text in [&b"one"[..], b"two", b"three"] {
        client.writes(file, text);
    }
    served.program.signal(Signal::KILL);
    served.program.finish();
    let (log, data) = (places.log(), places.data());
    let mut damaged = fs::read(&log).unwrap();
    let at = newest_but_one(&damaged);
    damaged[at + 200] ^= 1;
    fs::write(&log, &damaged).unwrap();
    let replay = |option: &[&str]| {
        let words = ["log", "replay", log.to_str().unwrap(), data.to_str().unwrap()];
        run(words.into_iter().chain(option.iter().copied()))
    };
    replay(&[]).complains(3, &["damaged in the middle"]);
    assert!(fs::read(&log).unwrap() == damaged, "nothing was overwritten");
    replay(&["--salvage"]).complains(1, &["LOST of the damaged write log: 1 frame"]);
    // It lay before the end, which somebody has cut off.
    let mut whole = fs::read(&log).unwrap();
    let len = whole.len();
    whole.truncate(len / 2);
    fs::write(&log, &whole).unwrap();
    replay(&[]).complains(3, &["made with", "--salvage"]);
    replay(&["--salvage"]).complains(1, &["LOST of the write log: ", "bytes that were cut off"]);
    assert_eq!(fs::metadata(&log).unwrap().len(), len as u64, "it is as long as it was made");
    // It stays the directory's, and needs nothing any more.
    places.refused(&[]).complains(3, &["--write-log"]);
    let again = replay(&[]);
    assert!(again.stdout.contains("held nothing"), "{again:?}");
}

/// A log on a disk that takes no writes any more: its file system lies in a file that lies in
/// memory, of which there is none left.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    const BYTES: u64 = 48 << 20;

    /// None where this process may not mount.
    fn new(folder: &Path) -> Option<Self> {
        let disk = Self { folder: folder.join("disks") };
        fs::create_dir(&disk.folder).unwrap();
        let commands: [&[&str]; 4] = [
            &["mount", "-t", "tmpfs", "-o", "size=64m", "nfskit-test", "."],
            &["mkdir", "disk"],
            &["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "image", "48M"],
            &["mount", "-o", "loop", "image", "disk"],
        ];
        let made = commands.iter().all(|command| disk.does(command));
        if !made {
            eprintln!("SKIPPED: a disk that fails: this process may not mount");
        }
        made.then_some(disk)
    }

    fn does(&self, command: &[&str]) -> bool {
        let (program, words) = command.split_first().unwrap();
        let mut command = std::process::Command::new(program);
        command.args(words).current_dir(&self.folder);
        command.output().is_ok_and(|ended| ended.status.success())
    }

    fn log(&self) -> PathBuf {
        self.folder.join("disk/log")
    }

    fn fail(&self) {
        let bytes = Self::BYTES.to_string();
        assert!(self.does(&["fallocate", "-p", "-o", "0", "-l", &bytes, "image"]));
        let mut rest = fs::File::create(self.folder.join("rest")).unwrap();
        while std::io::Write::write_all(&mut rest, &[1; 4096]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What was not mounted cannot be unmounted.
        for what in ["disk", "."] {
            self.does(&["umount", "-l", what]);
        }
    }
}

/// One that doctor finds by the command line, and that nobody else has.
fn metrics_address() -> String {
    let [.., high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}:9049", high | 0x80)
}

#[test]
fn a_server_whose_log_cannot_be_written_ends_or_goes_on_as_configured() {
    for degrades in [false, true] {
        let places = Places::new();
        if !may(&places) {
            return;
        }
        let Some(disk) = Disk::new(places.folder.path()) else { return };
        let how = if degrades { "--log-failure=degrade" } else { "--log-failure=stop" };
        let metrics = metrics_address();
        let log = disk.log();
        let log = ["--write-log", log.to_str().unwrap(), "--write-log-size=16M", how];
        let options = [&log[..], &["--metrics", &metrics]].concat();
        let served = places.serve(&options.iter().map(Path::new).collect::<Vec<_>>());
        let mut client = Connection::to(&served);
        let file = client.creates(b"file");
        client.writes(file, b"the first goes to its file");
        client.writes(file, b"the second is in the log");
        disk.fail();
        let outcome = client.writes_at(file, 0, b"the third finds no log");
        if degrades {
            assert_eq!(outcome, Ok(()));
            client.writes(file, b"the fourth does not look for one");
            let found = run(["doctor", "--for", "100ms"]).stdout;
            let words = found.split_whitespace().collect::<Vec<_>>().join(" ");
            let server = words.split_once(&metrics).map_or("", |(_, server)| server);
            assert!(server.contains(", 4 KiB in ") && server.contains("it has FAILED"), "{found}");
            served.program.signal(Signal::TERM);
            let ended = served.program.finish();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(ended.stderr.contains("files are synced, as without a log"), "{ended:?}");
        } else {
            assert_eq!(outcome, Err(NfsStat3::Jukebox));
            let ended = served.program.finish();
            assert_eq!(ended.code, Some(3), "{ended:?}");
            let why = format!("the write log cannot be written ({}: ", disk.log().display());
            assert!(ended.stderr.contains(&why), "{ended:?}");
        }
        // The directory needs it no more.
        let served = places.serve(&[]);
        served.program.signal(Signal::TERM);
        assert_eq!(served.program.finish().code, Some(0));
    }
}
