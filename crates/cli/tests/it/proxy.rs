//! `nfskit serve nfs://origin/export`: a proxy as users run it, and its origin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use perf::units::Nanos;
use rustix::process::Signal;
use wire::nfs3::{FileHandle, Sattr3};

use crate::crash_test::Lives;
use crate::mount::{Mounted, can_mount};
use crate::observed::{get, metrics_address};
use crate::program::{Deadline, Finished, Program, appears, nfskit, run};
use crate::rpc::Connection;
use crate::served::{Served, url};

const TRUSTING: [&str; 2] = ["--export", "/=no_root_squash,insecure"];

fn proxy(origin: &Served, options: &[&str]) -> Command {
    let mut command = nfskit(["serve", &origin.url()]);
    if !options.contains(&"--export") {
        command.args(TRUSTING);
    }
    command.args(options);
    command
}

fn proxied(origin: &Served, options: &[&str]) -> Served {
    Served::start(proxy(origin, options), "127.0.0.1:0")
}

#[test]
fn the_banner_tells_whose_files_they_are_and_what_stable_means() {
    let origin = Served::memory(&[]);
    let place = format!("?uid=1000&{}", origin.url().split_once('?').unwrap().1);
    let mut command = nfskit(["serve", &format!("nfs://127.0.0.1/{place}"), "--origin", "soft"]);
    command.args(["--export", "/files"]);
    let served = Served::start(command, "127.0.0.1:0");
    let banner = served.program.wait_for(|text| text.contains("macOS").then(|| text.to_owned()));
    let address = format!("NFS v3 over TCP at {}; soft", origin.address);
    let parts = [
        &address,
        "export      /files = nfs://127.0.0.1/?uid=1000",
        "root_squash to 65534:65534, secure",
        "until this process ends",
        "FILE_SYNC and COMMIT are answered when it has",
        "every caller acts as uid 1000",
        "this host only",
    ];
    for part in parts {
        assert!(banner.contains(part), "no {part:?} in {banner}");
    }
    served.stop();
    origin.stop();
}

#[test]
fn what_makes_no_sense_for_a_proxy_is_refused_and_says_why() {
    let origin = Served::memory(&[]);
    let url = origin.url();
    let refused = |arguments: &[&str], code, parts: &[&str]| {
        let command = ["serve"].iter().chain(arguments).chain(&["--listen", "127.0.0.1:0"]);
        run(command).complains(code, parts);
    };
    refused(&[&url, "--origin", "acregmin=3"], 2, &["acregmin=3", "is not an option of a proxy"]);
    refused(&[&url, "--origin", "timeo=x"], 2, &["--origin", "timeo=x"]);
    refused(&[&url, "--write-log", "/tmp/log"], 2, &["stable where its origin says so"]);
    refused(&["mem:", "--origin", "soft"], 2, &["--origin is of the store nfs://"]);
    refused(&["nfs://"], 2, &["nfs://"]);
    refused(&["nfs://127.0.0.1/?version=9"], 2, &["version"]);
    let inside = url.replace("/?", "/not/there?");
    refused(&[&inside], 3, &["/not/there", "NOENT"]);
    origin.stop();
    refused(&[&url], 3, &["refused", "no server listens"]);
}

#[test]
fn a_proxy_of_itself_finds_nobody() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let own = url(free.port(), "/");
    let finished = run(["serve", &own, "--listen", &free.to_string()]);
    finished.complains(3, &["refused", "no server listens"]);
}

#[test]
fn a_file_of_the_origin_is_no_export() {
    let origin = Served::folder(&[]);
    fs::write(origin.path().join("file"), "").unwrap();
    let finished = run(["serve", &url(origin.port(), "/file"), "--listen", "127.0.0.1:0"]);
    finished.complains(3, &["/file", "is not a directory"]);
    origin.stop();
}

#[test]
fn calls_of_the_origin_are_counted() {
    let origin = Served::memory(&[]);
    let served = proxied(&origin, &["--metrics", "127.0.0.1:0"]);
    let bench = ["bench", "seqwrite", "--wire", "--size", "4M", "--target", &served.url()];
    let measured = run(bench);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let page = get(metrics_address(&served), "/metrics");
    for part in [
        "nfskit_origin_calls_total{procedure=\"WRITE\",export=\"/\"}",
        "nfskit_origin_calls_total{procedure=\"COMMIT\",export=\"/\"}",
        "nfskit_readahead_bytes{export=\"/\"}",
        "nfskit_proxy_handles{export=\"/\"} 0",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    served.stop();
    origin.stop();
}

#[test]
fn misses_of_a_proxys_cache_have_their_causes() {
    if !can_mount() {
        return;
    }
    let (origin, cache) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    fs::write(origin.path().join("file"), "abc").unwrap();
    let options = ["--metrics", "127.0.0.1:0", "--cache", cache.path().to_str().unwrap()];
    let served = proxied(&origin, &options);
    let mounted = Mounted::new(&served, &[]);
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"abc");
    let address = metrics_address(&served);
    let page = get(address, "/metrics");
    for part in [
        "nfskit_cache_misses_total{cause=\"cold\",export=\"/\"} ",
        "nfskit_cache_misses_total{cause=\"changed\",export=\"/\"} 0",
        "nfskit_cache_dropped_total{cause=\"evicted\",export=\"/\"} 0",
        "nfskit_cache_unstored_bytes_total{export=\"/\"} 0",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    let stat = run(["stat", "--metrics", &address.to_string()]);
    let table = stat.stdout.split_once(": cache\n").expect(&stat.stdout).1;
    let heads = table.lines().next().unwrap();
    assert!(heads.contains("hit") && heads.contains("cold"), "{table}");
    let (dir, file) = (cache.path().to_str().unwrap(), mounted.path("file"));
    let why = || run(["cache", "why", dir, file.to_str().unwrap()]).stdout;
    let doubt = format!("only if {} is the proxy that has this cache", served.address);
    // What was missed is written each second.
    let deadline = Deadline::after(Nanos::from_secs(20));
    while !why().contains(&doubt) {
        assert!(deadline.left() > Duration::ZERO, "{}", why());
    }
    mounted.stop();
    served.stop();
    origin.stop();
}

/// Mounts of two proxies and of the origin.
#[test]
fn mounts_of_two_proxies_and_of_the_origin_see_what_is_closed() {
    if !can_mount() {
        return;
    }
    let origin = Served::folder(&[]);
    let proxies = [proxied(&origin, &[]), proxied(&origin, &[])];
    let mounts = [&origin, &proxies[0], &proxies[1]].map(|server| Mounted::new(server, &[]));
    let mut random = fastrand::Rng::with_seed(21);
    fs::write(mounts[0].path("file"), b"begin").unwrap();
    for round in 0..100 {
        let (writer, reader) = (&mounts[random.usize(..3)], &mounts[random.usize(..3)]);
        let length = [1, 4095, 4097, 100_000, 900_000][random.usize(..5)];
        let data: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        if random.bool() {
            fs::write(writer.path("file"), &data).unwrap();
        } else {
            fs::write(writer.path("new"), &data).unwrap();
            fs::rename(writer.path("new"), writer.path("file")).unwrap();
        }
        assert!(fs::read(reader.path("file")).unwrap() == data, "round {round}");
        assert!(fs::read(origin.path().join("file")).unwrap() == data, "round {round}");
    }
    let dir = mounts[1].path("fsx");
    fs::create_dir(&dir).unwrap();
    let dir = dir.to_str().unwrap();
    let fsx = run(["bench", "fsx", "--dir", dir, "--seed", "7", "--ops", "500", "--files", "2"]);
    assert_eq!(fsx.code, Some(0), "{fsx:?}");
    mounts.into_iter().for_each(Mounted::stop);
    for server in proxies.into_iter().chain([origin]) {
        server.stop();
    }
}

/// By which way the clients reach what is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Through {
    Nothing,
    AProxy,
}

/// Kills what `serve` starts three times, while four clients work; its first life is over when this
/// returns.
fn killed(serve: impl Fn() -> Command, through: Through, folder: &Path) -> Finished {
    let lives = Lives::begin(serve, folder);
    let behind = || proxied(&lives.first, &["--state", folder.to_str().unwrap()]);
    let proxy = (through == Through::AProxy).then(behind);
    let url = proxy.as_ref().unwrap_or(&lives.first).url();
    lives.killed(&url, "500ms", &[])
}

#[track_caller]
fn has_lost_nothing(finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["kills       3, after", "lost        nothing"] {
        assert!(finished.stdout.contains(part), "no {part:?}: {finished:?}");
    }
}

#[test]
fn a_proxy_that_is_killed_has_lost_nothing() {
    let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let serve = || proxy(&origin, &["--state", state.path().to_str().unwrap()]);
    has_lost_nothing(&killed(serve, Through::Nothing, state.path()));
    origin.stop();
}

#[test]
fn behind_a_proxy_an_origin_that_is_killed_has_lost_nothing() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let serve = || {
        let mut command = nfskit(["serve", data.path().to_str().unwrap()]);
        command.args(TRUSTING).arg("--state").arg(state.path());
        command
    };
    has_lost_nothing(&killed(serve, Through::AProxy, state.path()));
}

/// A proxy with a log, which lies beside its state.
fn writes_back(origin: &Served, folder: &Path) -> Command {
    let mut command = proxy(origin, &["--state", folder.to_str().unwrap()]);
    command.arg("--write-back").arg(folder.join("log")).args(["--write-back-size", "16M"]);
    command
}

/// Such a proxy, and a client of it with a file that has come to the origin.
fn with_a_file(origin: &Served, folder: &Path) -> (Served, Connection, FileHandle) {
    let served = Served::start(writes_back(origin, folder), "127.0.0.1:0");
    let mut client = Connection::to(&served);
    client.creates(b"first");
    let file = client.creates(b"file");
    let log = folder.join("log");
    while !run(["log", "status", log.to_str().unwrap()]).stdout.contains("pending    0 changes") {}
    (served, client, file)
}

fn drained(origin: &Served, folder: &Path) {
    let log = folder.join("log");
    let finished = run(["log", "drain", log.to_str().unwrap(), &origin.url()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains(" brought to"), "{finished:?}");
    let names = fs::read_dir(origin.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 0, "what was tested with is removed, and so is the lease: {names:?}");
    assert!(!folder.join("log.conflicts").exists());
}

#[test]
fn a_proxy_with_a_log_that_is_killed_has_lost_nothing() {
    let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let serve = || writes_back(&origin, state.path());
    has_lost_nothing(&killed(serve, Through::Nothing, state.path()));
    drained(&origin, state.path());
    origin.stop();
}

#[test]
fn a_drain_says_what_the_origin_did_not_get_and_fails() {
    let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let log = state.path().join("log");
    let log = log.to_str().unwrap();
    let (served, mut client, file) = with_a_file(&origin, state.path());
    origin.program.signal(Signal::STOP);
    client.sets(file, Sattr3::of_mode(0o600));
    served.program.signal(Signal::KILL);
    served.program.finish();
    fs::remove_file(origin.path().join("file")).unwrap();
    origin.program.signal(Signal::CONT);
    assert!(run(["log", "status", log]).stdout.contains("pending    1 change, "));
    let failed = run(["log", "drain", log, &origin.url()]);
    assert_eq!(failed.code, Some(1));
    for part in ["0 changes brought to", "1 change not carried out", "1 conflict", "log.conflicts"]
    {
        assert!(failed.stderr.contains(part), "no {part:?}: {failed:?}");
    }
    let again = run(["log", "drain", log, &origin.url()]);
    assert!(again.code == Some(0) && again.stdout.starts_with("0 changes brought"), "{again:?}");
    origin.stop();
}

#[test]
fn a_log_is_not_brought_to_another_directory_of_the_same_origin() {
    let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let (log, root) = (state.path().join("log"), state.path().join("log.root"));
    let log = log.to_str().unwrap();
    let (served, mut client, file) = with_a_file(&origin, state.path());
    origin.program.signal(Signal::STOP);
    client.sets(file, Sattr3::of_mode(0o600));
    let (url, address) = (origin.url(), origin.address.to_string());
    for program in [served.program, origin.program] {
        program.signal(Signal::KILL);
        program.finish();
    }
    let beneath = tempfile::tempdir().unwrap();
    let mut serve = nfskit(["serve"]);
    serve.arg(beneath.path()).args(TRUSTING);
    let other = Served::start(serve, &address);
    let advice = format!("or remove {}", root.display());
    let another = ["1 change of files in another directory", &advice];
    run(["log", "drain", log, &url]).complains(3, &another);
    assert_eq!(fs::read_dir(beneath.path()).unwrap().count(), 0);
    fs::remove_file(root).unwrap();
    let all_the_same = run(["log", "drain", log, &url]);
    assert_eq!(all_the_same.code, Some(1), "{all_the_same:?}");
    assert!(all_the_same.stderr.contains("1 change not carried out"), "{all_the_same:?}");
    other.stop();
}

#[test]
fn a_drain_that_the_origin_does_not_take_ends_when_it_is_to_and_says_what_is_left() {
    static PIECE: [u8; 64 << 10] = [7; 64 << 10];
    let (origin, state) = (Served::memory(&["--mem-size", "1M"]), tempfile::tempdir().unwrap());
    let log = state.path().join("log");
    let log = log.to_str().unwrap();
    let (served, mut client, file) = with_a_file(&origin, state.path());
    let mut other = Connection::to(&origin);
    let full = other.creates(b"full");
    let room = (0..).find(|at| other.writes_at(full, at << 16, &PIECE).is_err());
    assert!(room > Some(8), "{room:?}");
    client.writes(file, &PIECE);
    served.program.signal(Signal::KILL);
    served.program.finish();
    let left = format!("; 0 changes brought, 1 left in {log} (the origin refuses: NoSpace)");
    let over = run(["log", "drain", "--for", "5s", log, &origin.url()]);
    assert_eq!(over.code, Some(3));
    let says = format!("nfskit: the time of --for is over{left}\n   try: the same again");
    assert!(over.stderr.contains(&says), "no {says:?}: {over:?}");
    let waiting = Program::start(&mut nfskit(["log", "drain", log, &origin.url()]));
    waiting.wait_for_error(|text| text.contains("NoSpace").then_some(()));
    waiting.signal(Signal::INT);
    let interrupted = waiting.finish();
    assert_eq!(interrupted.code, Some(130));
    let says = format!("nfskit: interrupted{left}\n");
    assert!(interrupted.stderr.ends_with(&says), "no {says:?}: {interrupted:?}");
    // The time that it takes to reach the origin is of the time that it has.
    origin.program.signal(Signal::STOP);
    let away = run(["log", "drain", "--for", "1s", log, &origin.url()]);
    let says = format!("nfskit: the time of --for is over; all is left in {log}\n");
    assert_eq!(away.code, Some(3));
    assert!(away.stderr.contains(&says), "no {says:?}: {away:?}");
    origin.program.signal(Signal::CONT);
    origin.stop();
}

#[test]
fn a_proxy_whose_origin_stalls_as_it_begins_ends_when_it_is_to() {
    for signal in [Signal::TERM, Signal::INT] {
        let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
        // What is no lease is looked at twice, 13 seconds apart.
        fs::write(origin.path().join(".nfskit-write-back"), "of somebody").unwrap();
        let mut command = writes_back(&origin, state.path());
        let begins = Program::start(command.args(["--listen", "127.0.0.1:0"]));
        appears(state.path(), |name| name == "log");
        origin.program.signal(Signal::STOP);
        begins.signal(signal);
        begins.finish().was_interrupted();
        origin.program.signal(Signal::CONT);
        origin.stop();
    }
}

#[test]
fn nothing_is_answered_from_a_log_that_was_removed() {
    let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let served = Served::start(writes_back(&origin, state.path()), "127.0.0.1:0");
    let mut client = Connection::to(&served);
    client.creates(b"first");
    let file = client.creates(b"file");
    fs::remove_file(state.path().join("log")).unwrap();
    client.writes(file, b"data");
    assert_eq!(fs::read(origin.path().join("file")).unwrap(), b"data");
    let says = "the log cannot be written (";
    let removed = "log was removed): what it holds goes to the origin";
    served.program.wait_for_error(|text| {
        (text.matches(says).count() == 1 && text.contains(removed)).then_some(())
    });
    served.program.signal(Signal::TERM);
    assert_eq!(served.program.finish().code, Some(0));
    assert!(!origin.path().join(".nfskit-write-back").exists(), "all is there");
    origin.stop();
}

/// Everything below a directory: names, and the bytes of files.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut seen = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            seen.extend(
                tree(&path)
                    .into_iter()
                    .map(|(below, data)| (Path::new(path.file_name().unwrap()).join(below), data)),
            );
        } else {
            seen.push((path.file_name().unwrap().into(), fs::read(&path).unwrap()));
        }
    }
    seen.sort();
    seen
}

/// Programs on a mount, while the origin is killed under them, and then the proxy.
#[test]
fn programs_behind_a_proxy_with_a_log_do_not_see_that_its_origin_is_killed() {
    if !can_mount() {
        return;
    }
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let serve = || {
        let mut command = nfskit(["serve", data.path().to_str().unwrap()]);
        command.args(TRUSTING).arg("--state").arg(state.path());
        command
    };
    let lives = Lives::begin(serve, state.path());
    let behind = tempfile::tempdir().unwrap();
    let proxy = Served::start(writes_back(&lives.first, behind.path()), "127.0.0.1:0");
    let mount = Mounted::new(&proxy, &[]);
    let dir = mount.path("fsx");
    fs::create_dir(&dir).unwrap();
    let arguments = ["bench", "fsx", "--seed", "3", "--ops", "120", "--files", "2", "--dir"];
    let fsx = Program::start(nfskit(arguments).arg(&dir));
    for round in 0..3 {
        for number in 0..9 {
            let dir = mount.path(&format!("d{round}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("new"), format!("{round} {number}")).unwrap();
            fs::rename(dir.join("new"), dir.join(format!("f{}", number % 7))).unwrap();
        }
        lives.kill();
    }
    let fsx = fsx.finish();
    assert_eq!(fsx.code, Some(0), "{fsx:?}");
    let seen = tree(&mount.path(""));
    mount.stop();
    // What has not come to the origin by now is in the log.
    proxy.program.signal(Signal::KILL);
    proxy.program.finish();
    let log = behind.path().join("log");
    let conflicts = fs::read_to_string(behind.path().join("log.conflicts"));
    assert_eq!(conflicts.unwrap_or_default(), "");
    let drain = run(["log", "drain", log.to_str().unwrap(), &lives.first.url()]);
    assert_eq!(drain.code, Some(0), "{drain:?}");
    assert!(tree(data.path()) == seen, "{:?}", tree(data.path()));
    lives.end();
}

#[test]
fn what_is_on_its_way_is_reported_and_a_log_has_one_proxy_and_one_origin() {
    let (origin, state) = (Served::folder(&[]), tempfile::tempdir().unwrap());
    let log = state.path().join("log");
    let log = log.to_str().unwrap();
    let served = Served::start(writes_back(&origin, state.path()), "127.0.0.1:0");
    let banner = served.program.wait_for(|text| text.contains("macOS").then(|| text.to_owned()));
    for part in ["stable in the log, and at the origin later", "16 MiB: nothing was on its way"] {
        assert!(banner.contains(part), "no {part:?} in {banner}");
    }
    let bench = ["bench", "seqwrite", "--wire", "--size", "1M", "--target", &served.url()];
    assert_eq!(run(bench).code, Some(0));
    let status = run(["log", "status", log]);
    assert_eq!(status.code, Some(0), "{status:?}");
    for part in ["a proxy has it", "pending    ", "conflicts  0"] {
        assert!(status.stdout.contains(part), "no {part:?}: {status:?}");
    }
    let mut second = writes_back(&origin, state.path());
    second.args(["--listen", "127.0.0.1:0"]);
    Program::start(&mut second)
        .finish()
        .complains(3, &["another server has it", "nfskit log status"]);
    let refused = |arguments: &[&str], code, parts: &[&str]| run(arguments).complains(code, parts);
    refused(&["log", "drain", log, &origin.url()], 3, &["a proxy has", "log status"]);
    served.stop();
    assert!(!origin.path().join(".nfskit-write-back").exists(), "the lease has no owner");
    let other = Served::memory(&[]);
    let mut foreign = writes_back(&other, state.path());
    foreign.args(["--listen", "127.0.0.1:0"]);
    let made_for = format!("made for another origin: nfs://127.0.0.1:{}/", origin.port());
    Program::start(&mut foreign).finish().complains(3, &[&made_for]);
    let of_proxy = ["the log of a proxy", "log status FILE", "log drain FILE URL"];
    for verb in ["inspect", "verify"] {
        refused(&["log", verb, log], 3, &of_proxy);
    }
    refused(&["log", "replay", log, &origin.url()], 3, &of_proxy);
    refused(&["log", "drain", log, "/nowhere"], 3, &of_proxy);
    let within = ["log", "drain", "--for", "1s", log, "/nowhere"];
    refused(&within, 2, &["--for is of the log of a proxy"]);
    let cut = state.path().join("cut");
    fs::write(&cut, &fs::read(log).unwrap()[..100_000]).unwrap();
    let cut_off = ["of 100000 bytes and was made with 16777216: cut off", "keep a copy"];
    refused(&["log", "status", cut.to_str().unwrap()], 3, &cut_off);
    let whole = fs::read(log).unwrap();
    let long = state.path().join("long");
    fs::write(&long, [&whole[..], &[0; 4096]].concat()).unwrap();
    let too_long = ["of 16781312 bytes and was made with 16777216", "keep a copy"];
    refused(&["log", "status", long.to_str().unwrap()], 3, &too_long);
    let damaged = state.path().join("damaged");
    fs::write(&damaged, [&whole[..20], &[!whole[20]], &whole[21..]].concat()).unwrap();
    let checksum = ["its first block is damaged", "keep a copy", "not brought anywhere by itself"];
    refused(&["log", "status", damaged.to_str().unwrap()], 3, &checksum);
    refused(&["log", "verify", damaged.to_str().unwrap()], 1, &checksum);
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    refused(&["serve", data, "--write-back", log], 2, &["--write-back is of the store nfs://"]);
    let url = origin.url();
    let anywhere = ["serve", &url, "--write-back", log, "--listen", "127.0.0.1:0"];
    refused(&anywhere, 3, &["needs a state directory", "--state DIR"]);
    let for_readers = [&anywhere[..], &["--ro"]].concat();
    refused(&for_readers, 2, &["an export that is read-only", "no --write-back"]);
    let shut = Served::folder(&["--ro"]);
    let new = tempfile::tempdir().unwrap();
    let mut of_shut = writes_back(&shut, new.path());
    of_shut.args(["--listen", "127.0.0.1:0"]);
    Program::start(&mut of_shut).finish().complains(3, &["ReadOnly", "exports it read-write"]);
    shut.stop();
    let junk = state.path().join("junk");
    fs::write(&junk, vec![1; 100_000]).unwrap();
    refused(&["log", "status", junk.to_str().unwrap()], 3, &["not a write log of nfskit"]);
    origin.stop();
    other.stop();
}
