//! `nfskit serve`: how it begins, what it says, how it ends.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use client::url::Version;
use perf::units::Nanos;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::Signal;

use crate::mount::{Mounted, can_mount};
use crate::peer::Nobody;
use crate::program::{Deadline, Program, nfskit, run};
use crate::rpc::Connection;
use crate::served::Served;

#[test]
fn a_store_that_is_not_there_or_no_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (file, absent) = (folder.path().join("file"), folder.path().join("absent"));
    fs::write(&file, "").unwrap();
    for (store, why) in [(&file, "Not a directory"), (&absent, "No such file")] {
        let store = store.to_str().unwrap();
        let finished = run(["serve", store, "--listen", "127.0.0.1:0"]);
        finished.complains(3, &["cannot serve", store, why, "a directory that exists"]);
    }
}

#[test]
fn a_port_that_is_taken() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let finished = run(["serve", "mem:", "--listen", &address]);
    finished.complains(3, &["cannot listen", &address, "in use", "another port", "ss -tlnp"]);
}

#[test]
fn an_address_that_is_not_of_this_host() {
    // From a block that is reserved for documentation.
    let finished = run(["serve", "mem:", "--listen", "192.0.2.1:0"]);
    finished.complains(3, &["cannot listen", "192.0.2.1", "an address of this host"]);
}

#[test]
fn the_banner_tells_how_to_mount() {
    let served = Served::memory(&["--export", "/data", "--ro"]);
    let banner = served.program.wait_for(|text| text.contains("macOS").then(|| text.to_owned()));
    let port = served.port();
    let linux = format!(
        "mount -t nfs -o vers=3,proto=tcp,port={port},mountport={port},mountproto=tcp,nolock \
         127.0.0.1:/data /mnt"
    );
    let macos = format!(
        "mount -t nfs -o vers=3,tcp,port={port},mountport={port},nolocks,resvport \
         127.0.0.1:/data /mnt"
    );
    let url = format!("nfs://127.0.0.1/data?nfsport={port}&mountport={port}");
    for part in [&linux, &macos, &url, "mem:", "read-only", "nothing survives", "this host only"] {
        assert!(banner.contains(part), "no {part:?} in {banner}");
    }
    // The line about this host says who they are.
    assert!(!banner.contains("clients: everyone"), "{banner}");
    served.stop();
}

#[test]
fn a_directory_in_memory_is_not_announced_as_stable() {
    let Ok(in_memory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED: a test of a directory in memory needs /dev/shm");
        return;
    };
    let served = Served::start(command(&[in_memory.path()]), "127.0.0.1:0");
    assert!(durability(&served).starts_with("memory: "), "{}", durability(&served));
    served.stop();
    // Beside one that lies on a disk.
    let on_disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let kind = |dir: &Path| rustix::fs::statfs(dir).unwrap().f_type;
    if kind(on_disk.path()) == kind(in_memory.path()) {
        return;
    }
    let served = Served::start(command(&[on_disk.path(), in_memory.path()]), "127.0.0.1:0");
    let durability = durability(&served);
    let exception = format!("; NOT {}: on a tmpfs", in_memory.path().display());
    assert!(durability.starts_with("stable: ") && durability.contains(&exception), "{durability}");
    served.stop();
}

#[test]
fn who_squashes_everybody_says_as_whom_they_act() {
    let all = "/=all_squash,anonuid=0,anongid=0,insecure";
    let served = Served::memory(&["--export", all]);
    assert_eq!(line(&served, "identity"), "every caller acts as uid 0, gid 0");
    assert_eq!(line(&served, "warning"), "whoever is squashed acts as root in / (anonuid=0)");
    served.stop();
}

/// A server of directories by their own names.
fn command(dirs: &[&Path]) -> Command {
    let mut command = nfskit(["serve"]);
    for dir in dirs {
        command.arg("--export").arg(dir);
    }
    command
}

fn durability(served: &Served) -> String {
    line(served, "durability")
}

fn line(served: &Served, label: &str) -> String {
    served.program.wait_for(|text| {
        let mut lines = text.lines().filter(|_| text.contains("by FUSE"));
        lines
            .find_map(|line| line.trim_start().strip_prefix(label))
            .map(|text| text.trim().to_owned())
    })
}

/// The words of the line that begins with `label`, as a shell reads them.
fn words(banner: &str, label: &str) -> Vec<String> {
    let line = banner.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
    let script = format!("printf '%s\\n' {line}");
    let read = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(read.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// With what the line for FUSE calls nfskit, and the home in which it was pasted.
fn by_fuse(banner: &str) -> (Vec<String>, tempfile::TempDir) {
    let (_, line) = banner.split_once("by FUSE").unwrap();
    let home = tempfile::tempdir().unwrap();
    let script = format!("nfskit() {{ printf '%s\\n' \"$@\"; }}; {line}");
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &script]).env("HOME", home.path()).output().unwrap();
    (String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect(), home)
}

#[test]
fn a_server_of_one_version_tells_how_to_mount_that() {
    for (words, version) in [("2", Version::Two), ("3", Version::Three), ("2,3", Version::Three)] {
        let served = Served::memory(&["--versions", words]);
        let ready = |text: &str| text.contains("by FUSE").then(|| text.to_owned());
        let banner = served.program.wait_for(ready);
        let option = format!("vers={},", version.number());
        for system in ["Linux", "macOS"] {
            let line = banner.lines().find(|line| line.contains(system)).unwrap();
            assert!(line.contains(&option), "{line}");
        }
        let (lines, _home) = by_fuse(&banner);
        let target: client::url::Target = lines[1].parse().unwrap();
        assert_eq!(target.version, version, "{banner}");
        let measured = run(["bench", "seqwrite", "--wire", "--size", "64K", "--target", &lines[1]]);
        let heading = "seqwrite    64 KiB in WRITEs of ";
        assert!(measured.stdout.starts_with(heading), "{measured:?}");
        for part in ["unstable, 16 outstanding, a COMMIT after 64 MiB", "too little was written"] {
            assert!(measured.stdout.contains(part), "no {part:?} in {measured:?}");
        }
        assert_eq!(measured.code, Some(0), "{measured:?}");
        served.stop();
    }
}

#[test]
fn what_the_banner_prints_works_in_a_shell_whatever_the_name() {
    let name = "/d\u{e9}j\u{e0} vu & it's \"50%\" $HOME";
    let served = Served::memory(&["--export", name]);
    let ready = |text: &str| text.contains("by FUSE").then(|| text.to_owned());
    let banner = served.program.wait_for(ready);
    let place = format!("127.0.0.1:{name}");
    for system in ["Linux", "macOS"] {
        let words = words(&banner, system);
        assert_eq!(words[words.len() - 2..], [place.as_str(), "/mnt"], "{banner}");
    }
    let (lines, home) = by_fuse(&banner);
    let [mount, url, at] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&**mount, Path::new(at)), ("mount", &*home.path().join("nfs")));
    assert!(Path::new(at).is_dir(), "{banner}");
    let target: client::url::Target = url.parse().unwrap();
    assert_eq!(target.path, name.as_bytes());
    let measured = run(["bench", "seqwrite", "--wire", "--size", "64K", "--target", url]);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    served.stop();
}

#[test]
fn whoever_listens_beyond_the_host_without_a_list_of_clients_is_warned() {
    let warned_of = |options: &[&str]| {
        let mut command = nfskit(["serve", "-q", "--log-format", "json"]);
        command.args(options).args(["--listen", "0.0.0.0:0"]);
        let program = Program::start(&mut command);
        // The record of its start comes after it.
        let text = |text: &str| text.contains("\"started\"").then(|| text.to_owned());
        let text = program.wait_for_error(text);
        program.signal(Signal::TERM);
        assert_eq!(program.finish().code, Some(0));
        text
    };
    let warned = |export: &str| warned_of(&["mem:", "--export", export]);
    // What is advised adds a list, and takes nothing away.
    let text = warned("/data=ro,all_squash");
    assert!(text.contains("open to every host that reaches 0.0.0.0:"), "{text}");
    assert!(text.contains("try: add client=10.0.0.0/8 to its --export"), "{text}");
    let text = warned_of(&["mem:", "--ro"]);
    assert!(text.contains("try: --export /=client=10.0.0.0/8, or --listen 127.0.0.1:"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (folder.path().join("exports.toml"), folder.path().display());
    fs::write(&file, format!("[[export]]\npath = \"{path}\"\n")).unwrap();
    let file = file.to_str().unwrap();
    let text = warned_of(&["--exports", file]);
    assert!(text.contains(&format!("try: clients = [\"10.0.0.0/8\"] for it in {file}")), "{text}");
    // All addresses are no list either.
    let text = warned("/data=client=127.0.0.0/8,client=0.0.0.0/0");
    assert!(text.contains("open to every host that reaches 0.0.0.0:"), "{text}");
    let text = warned("/data=client=127.0.0.0/8");
    assert!(!text.contains("open to every host"), "{text}");
}

#[test]
fn an_emulated_disk_says_what_it_is_and_an_unknown_one_is_refused() {
    let served = Served::start(nfskit(["serve", "sim:nvme,sync=1ms"]), "127.0.0.1:0");
    let banner = served.program.wait_for(|text| text.contains("macOS").then(|| text.to_owned()));
    for part in ["sim:nvme,sync=1ms", "an emulated disk in memory: nothing survives"] {
        assert!(banner.contains(part), "no {part:?} in {banner}");
    }
    served.stop();
    let finished = run(["serve", "sim:floppy", "--listen", "127.0.0.1:0"]);
    finished.complains(2, &["sim:floppy", "unknown disk", "hdd, ssd-sata", "sim:rate="]);
}

#[test]
fn a_quiet_server_says_nothing() {
    let nobody = Nobody::there();
    let arguments = ["serve", "mem:", "-q", "--listen", &nobody.address.to_string()];
    let server = Program::start(&mut nfskit(arguments));
    // Nothing tells when it is there, but that it is.
    let deadline = Deadline::after(Nanos::from_secs(60));
    while TcpStream::connect(nobody.address).is_err() {
        assert!(!deadline.left().is_zero(), "nobody listens");
        std::thread::yield_now();
    }
    server.signal(Signal::TERM);
    let finished = server.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
}

#[test]
fn nothing_is_registered_for_a_server_whose_metrics_have_no_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "mem:", "--listen", "127.0.0.1:0", "--register", "--metrics", &taken];
    run(serve).complains(3, &["cannot serve metrics", &taken]);
}

#[test]
fn it_ends_at_a_signal_whatever_it_is_doing() {
    for signal in [Signal::TERM, Signal::INT] {
        let served = Served::folder(&[]);
        let mut idle = Connection::to(&served);
        idle.is_served();
        served.program.signal(signal);
        let finished = served.program.finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    }
}

/// The banner is where scripts take up, so a signal right after it has to be heard.
#[test]
fn a_signal_right_after_the_banner_is_heard() {
    for _ in 0..20 {
        Served::memory(&[]).stop();
    }
}

#[test]
fn files_survive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |n: u8| {
        let mut command = nfskit(["serve"]);
        command.arg(folder.path()).args(["--export", "/=no_root_squash"]);
        let served = Served::start(command, "127.0.0.1:0");
        let mut connection = Connection::to(&served);
        connection.creates(&[b'a' + n]);
        served.program.signal(Signal::TERM);
        assert_eq!(served.program.finish().code, Some(0));
    };
    (0..3).for_each(serve);
    let mut names = crate::program::names(folder.path());
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
}

/// Its output is a pipe that is full: the thread that would end it is in a system call that does
/// not return.
#[test]
fn a_server_whose_threads_do_not_return_ends_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("full");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let pipe = open(&fifo, flags, Mode::empty()).unwrap();
    while rustix::io::write(&pipe, &[0; 4096]).is_ok() {}
    for (grace, signals) in
        [("100ms", &[Signal::TERM][..]), ("3600s", &[Signal::TERM, Signal::INT][..])]
    {
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$@" > "$0""#]).arg(&fifo).arg(env!("CARGO_BIN_EXE_nfskit"));
        command.args(["serve", "mem:", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        let server = Program::start(command.args(["--grace", grace]));
        server.wait_for_error(|text| text.contains("\"started\"").then_some(()));
        signals.iter().for_each(|&signal| server.signal(signal));
        let finished = server.finish();
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stderr.contains("system call has not returned"), "{finished:?}");
    }
}

/// The system may choose any thread that takes a signal, also one that a file system keeps.
#[test]
fn a_server_leaves_signals_to_a_thread_of_their_own() {
    const HUP_INT_TERM: u64 = 1 | 1 << 1 | 1 << 14;
    let served = Served::memory(&[]);
    let tasks = fs::read_dir(format!("/proc/{}/task", served.program.pid())).unwrap();
    let statuses =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let takes = |status: &String| {
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(blocked.trim(), 16).unwrap() & HUP_INT_TERM != HUP_INT_TERM
    };
    let name = |status: String| status.lines().next().unwrap().to_owned();
    let taking: Vec<_> = statuses.filter(takes).map(name).collect();
    assert_eq!(taking, ["Name:\tnfskit-signals"]);
    served.stop();
}

/// It is a mount whose program is stopped, at the start and at a reload.
#[test]
fn a_directory_that_does_not_answer_keeps_nobody_from_ending_the_server() {
    if !can_mount() {
        return;
    }
    let (origin, folder) = (Served::memory(&[]), tempfile::tempdir().unwrap());
    let mounted = Mounted::new(&origin, &[]);
    mounted.program().signal(Signal::STOP);
    let file = folder.path().join("exports.toml");
    let serve = |dir: &Path| {
        fs::write(&file, format!("[[export]]\npath = {dir:?}\n")).unwrap();
        let mut command = nfskit(["serve", "--grace", "3600s", "--exports"]);
        command.arg(&file);
        command
    };
    let dead = mounted.path("");
    let starting = Program::start(serve(&dead).args(["--listen", "127.0.0.1:0"]));
    starting.has_thread(harness::apart::THREAD);
    starting.signal(Signal::TERM);
    assert!(!starting.finish().was_interrupted());
    for signal in [Signal::TERM, Signal::INT] {
        let served = Served::start(serve(folder.path()), "127.0.0.1:0");
        serve(&dead);
        served.program.signal(Signal::HUP);
        served.program.has_thread(harness::apart::THREAD);
        served.program.signal(signal);
        let finished = served.program.finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    }
    mounted.program().signal(Signal::CONT);
    mounted.stop();
}
