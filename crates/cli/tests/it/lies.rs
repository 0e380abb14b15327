//! Servers whose replies can be decoded and make no sense: every command that meets one says what
//! the server has done, where, and what to try, within its reply limit.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::thread;

use rustix::io::Errno;
use testkit::lies::Lie;

use crate::mount::{self, Mounted};
use crate::peer::Peer;
use crate::program::{Finished, Program, nfskit};
use crate::served::Served;

const LIMIT: [&str; 2] = ["--reply-limit", "2s"];

/// What a command says of each lie that concerns it; the others it does not even notice.
fn meets(name: &str, lies: &[(Lie, &str)], run: impl Fn(&str) -> Finished + Sync) {
    // Most of the time is that until a command gives up, so all of them wait at once.
    thread::scope(|scope| {
        for (lie, words) in lies {
            let run = &run;
            scope.spawn(move || meet(name, *lie, words, run));
        }
    });
}

fn meet(name: &str, lie: Lie, words: &str, run: impl Fn(&str) -> Finished) {
    let served = Served::memory(&[]);
    let peer = Peer::telling(served.address, lie);
    let finished = run(&peer.url().replace("/export", "/"));
    assert_eq!(finished.code, Some(3), "{name}, {lie:?}: {finished:?}");
    let what = finished.stderr.lines().next().unwrap_or_default();
    assert!(what.contains(words), "{name}, {lie:?}: {finished:?}");
    assert!(what.contains(&peer.address()), "{name}, {lie:?}: {finished:?}");
    assert!(finished.stderr.contains("try: "), "{name}, {lie:?}: {finished:?}");
    served.stop();
}

#[test]
fn a_benchmark_says_what_a_server_does_that_makes_no_sense() {
    let lies = [
        (Lie::NoRtmax, "rtmax"),
        (Lie::NoWtmax, "wtmax"),
        (Lie::NeverStable, "verifier"),
        (Lie::NewVerifiers, "verifier"),
        (Lie::WritesNothing, "impossible count"),
        (Lie::WritesMore, "impossible count"),
        (Lie::AlwaysLater, "NFS3ERR_JUKEBOX"),
        // At the end, when its own directory is removed.
        (Lie::CookiesRepeat, "again and again"),
        (Lie::OneCookie, "cookies of a page repeat"),
        (Lie::EmptyPages, "not the last"),
        (Lie::SameNames, "again and again"),
    ];
    meets("bench seqwrite", &lies, |url| {
        let command = [
            "bench",
            "seqwrite",
            "--wire",
            "--size",
            "2M",
            "--commit-every",
            "256K",
            "--repeats",
            "1",
        ];
        let mut command = nfskit(command);
        Program::start(command.args(["--target", url]).args(LIMIT)).finish()
    });
}

#[test]
fn a_probe_says_what_a_server_does_that_makes_no_sense() {
    let lies = [
        (Lie::NoWtmax, "wtmax"),
        (Lie::NeverStable, "verifier"),
        (Lie::NewVerifiers, "verifier"),
        (Lie::WritesNothing, "impossible count"),
        (Lie::AlwaysLater, "NFS3ERR_JUKEBOX"),
    ];
    meets("probe", &lies, |url| {
        Program::start(nfskit(["probe", url, "--quick"]).args(LIMIT)).finish()
    });
}

#[test]
fn a_mount_of_a_server_that_offers_no_transfers_is_refused() {
    let lies =
        [(Lie::NoRtmax, "rtmax"), (Lie::NoWtmax, "wtmax"), (Lie::AlwaysLater, "NFS3ERR_JUKEBOX")];
    meets("mount", &lies, |url| {
        let at = tempfile::tempdir().unwrap();
        Program::start(&mut mount::mount(url, at.path())).finish()
    });
}

/// A mount of a server that lies, softly; and the end of it.
fn mounted(server: SocketAddr, lie: Lie, test: impl FnOnce(&Mounted)) -> String {
    let peer = Peer::telling(server, lie);
    let at = tempfile::tempdir().unwrap();
    let mut command = mount::mount(&peer.url().replace("/export", "/"), at.path());
    let program = Program::start(command.args(["-o", "soft,timeo=5,retrans=2"]));
    program.wait_for(|text| text.contains("locks (flock, fcntl) hold on").then_some(()));
    let mounted = Mounted { program: Some(program), at };
    test(&mounted);
    mounted.program().signal(rustix::process::Signal::TERM);
    mounted.finish().stderr
}

#[test]
fn programs_on_a_mount_get_errors_and_the_mount_says_why() {
    if !mount::can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let honest = Mounted::new(&served, &[]);
    fs::write(honest.path("file"), vec![7; 1 << 20]).unwrap();
    honest.stop();
    let is_io = |error: std::io::Error| {
        assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()), "{error}");
    };
    for (lie, words) in [
        (Lie::CookiesRepeat, "round in a circle"),
        (Lie::OneCookie, "cookies of a page repeat"),
        (Lie::EmptyPages, "not the last"),
        (Lie::SameNames, "same names"),
    ] {
        let complaint = mounted(served.address, lie, |mounted| {
            // The first page comes with the open.
            let listed = fs::read_dir(mounted.at.path());
            let listed = listed.and_then(|mut listed| listed.try_for_each(|one| one.map(drop)));
            is_io(listed.unwrap_err());
        });
        assert!(complaint.contains(words), "{lie:?}: {complaint}");
    }
    for (lie, words) in
        [(Lie::ReadsNothing, "does not end there"), (Lie::ReadsMore, "count and data differ")]
    {
        let complaint = mounted(served.address, lie, |mounted| {
            let mut file = fs::File::open(mounted.path("file")).unwrap();
            file.seek(SeekFrom::Start(1 << 19)).unwrap();
            is_io(file.read(&mut [0; 100]).unwrap_err());
        });
        assert!(complaint.contains(words), "{lie:?}: {complaint}");
    }
    for (lie, words) in [
        (Lie::NeverStable, "less stable than was requested"),
        (Lie::WritesNothing, "impossible count"),
        (Lie::WritesMore, "impossible count"),
    ] {
        let complaint = mounted(served.address, lie, |mounted| {
            let file = fs::File::create(mounted.path("written")).unwrap();
            std::io::Write::write_all(&mut &file, &[1; 100_000]).unwrap();
            is_io(file.sync_all().unwrap_err());
        });
        assert!(complaint.contains(words), "{lie:?}: {complaint}");
    }
    served.stop();
}
