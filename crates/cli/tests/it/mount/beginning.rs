//! What stands in the way of a mount: one message, exit code 3 also for what cannot be meant, and
//! nothing is left mounted.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use perf::units::Nanos;
use rustix::process::Signal;

use super::{Mounted, can_mount, is_mounted, mount, mounts, unmount};
use crate::peer::{Nobody, Peer};
use crate::program::{Deadline, Finished, Program, run};
use crate::served::{Served, url};

fn tried(url: &str, at: &Path, options: &[&str]) -> Finished {
    let finished = Program::start(mount(url, at).args(options)).finish();
    assert!(!is_mounted(at));
    finished
}

#[test]
fn a_directory_that_cannot_be_mounted_on_is_named() {
    let served = Served::memory(&[]);
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    tried(&served.url(), &missing, &[]).complains(3, &["missing", "is not there", "mkdir"]);
    let file = dir.path().join("file");
    fs::write(&file, b"x").unwrap();
    tried(&served.url(), &file, &[]).complains(3, &["file", "not a directory"]);
    tried(&served.url(), dir.path(), &[]).complains(3, &["not empty", "-o nonempty"]);
    served.stop();
}

#[test]
fn a_directory_with_entries_is_mounted_on_when_that_is_wanted() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let at = tempfile::tempdir().unwrap();
    fs::write(at.path().join("below"), b"x").unwrap();
    let program = Program::start(mount(&served.url(), at.path()).args(["-o", "nonempty"]));
    program.wait_for(|text| text.contains("locks (flock").then_some(()));
    let mounted = Mounted { program: Some(program), at };
    assert!(!mounted.path("below").exists());
    mounted.stop();
    served.stop();
}

#[test]
fn what_is_mounted_already_is_not_mounted_again() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &[]);
    let again = Program::start(&mut mount(&served.url(), mounted.at.path())).finish();
    again.complains(3, &["is mounted there already", &served.url(), "umount"]);
    fs::write(mounted.path("file"), b"it still works").unwrap();
    mounted.stop();
    served.stop();
}

#[test]
fn of_two_mounts_that_begin_at_once_one_is_refused() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let at = tempfile::tempdir().unwrap();
    // Both find the directory free, and wait for the server then.
    served.program.signal(Signal::STOP);
    let both = [(); 2].map(|()| Program::start(&mut mount(&served.url(), at.path())));
    both.iter().for_each(Program::catches_signals);
    served.program.signal(Signal::CONT);
    let ended = || both.iter().filter(|program| !program.is_running()).count();
    let deadline = Deadline::after(Nanos::from_secs(60));
    while ended() + mounts(at.path()) < 2 {
        assert!(!deadline.left().is_zero(), "neither mounted nor refused");
        std::thread::yield_now();
    }
    assert_eq!((ended(), mounts(at.path())), (1, 1));
    let [refused, mounted] = match both {
        [first, second] if first.is_running() => [second, first],
        both => both,
    };
    // Which of the two sentences: by how close they were.
    let refused = refused.finish();
    assert_eq!(refused.code, Some(3), "{refused:?}");
    let sentences = ["is mounted there already", "another mount begins there"];
    assert!(sentences.iter().any(|one| refused.stderr.contains(one)), "{refused:?}");
    mounted.signal(Signal::TERM);
    assert_eq!(mounted.finish().code, Some(0));
    assert!(!is_mounted(at.path()));
    served.stop();
}

#[test]
fn words_that_are_unknown_or_wrong_are_named() {
    let at = tempfile::tempdir().unwrap();
    let target = url(1, "/");
    let complains = |options: &[&str], parts: &[&str]| {
        tried(&target, at.path(), options).complains(3, parts);
    };
    complains(&["-o", "ro,frobnicate"], &["\"frobnicate\"", "known are", "hard, soft"]);
    let known = tried(&target, at.path(), &["-o", "frobnicate"]).stderr;
    let help = run(["mount", "--help"]).stdout;
    let (_, known) = known.split_once("known are ").unwrap();
    for word in known.split([',', ' ', '\n']).filter(|word| word.ends_with('=')) {
        assert!(
            help.contains(&format!(" {word}")) || help.contains(&format!("\n{word}")),
            "{word}"
        );
    }
    complains(&["-o", "timeo=soon"], &["timeo=soon", "is not a time", "tenths"]);
    complains(&["--write-policy", "fast"], &["write_policy=fast", "adaptive"]);
    complains(&["--kernel-cache", "all"], &["writethrough"]);
    complains(&["--nconnect", "17"], &["between 1 and 16"]);
    let refused = run(["mount", "http://server/x", "/tmp"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("HOST:/EXPORT"), "{refused:?}");
    let refused = run(["mount", "--fast", "nfs://server/x", "/tmp"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("Usage: nfskit mount"), "{refused:?}");
}

#[test]
fn an_export_that_is_refused_or_missing_is_named() {
    let served = Served::folder(&[]);
    let at = tempfile::tempdir().unwrap();
    tried(&url(served.port(), "/nowhere"), at.path(), &[]).complains(3, &["/nowhere"]);
    fs::write(served.path().join("file"), b"x").unwrap();
    tried(&url(served.port(), "/file"), at.path(), &[]).complains(3, &["/file"]);
    served.stop();
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let at = tempfile::tempdir().unwrap();
    let nobody = Nobody::there();
    let target = url(nobody.address.port(), "/export");
    tried(&target, at.path(), &[]).complains(3, &["start the server"]);
}

#[test]
fn a_server_that_answers_nonsense_is_named() {
    let at = tempfile::tempdir().unwrap();
    for peer in [Peer::noise(1), Peer::echo(), Peer::lying(&[])] {
        tried(&peer.url(), at.path(), &[]).complains(3, &["does not speak"]);
    }
    tried(&Peer::closing().url(), at.path(), &[]).complains(3, &["closed the connection"]);
    tried(&Peer::refusing().url(), at.path(), &[]).complains(3, &["/export", "administrator"]);
}

#[test]
fn an_interrupt_while_the_server_does_not_answer() {
    let at = tempfile::tempdir().unwrap();
    let peer = Peer::silent();
    let program = Program::start(&mut mount(&peer.url(), at.path()));
    peer.has_been_called();
    program.signal(Signal::INT);
    program.finish().was_interrupted();
    assert!(!is_mounted(at.path()));
}

#[test]
fn without_permission_or_helper_it_says_what_to_install() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !can_mount() {
        return;
    }
    // It is found there without a PATH.
    let helpers = ["/usr/bin/fusermount3", "/bin/fusermount3", "/usr/bin/fusermount"];
    if helpers.iter().any(|helper| Path::new(helper).exists()) {
        eprintln!("SKIPPED: a test of mounts without fusermount3, which is installed here");
        return;
    }
    let served = Served::memory(&[]);
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(dir.path());
    let at = dir.path().join("at");
    fs::create_dir(&at).unwrap();
    std::os::unix::fs::chown(&at, Some(65_534), Some(65_534)).unwrap();
    // A copy, because nobody may not look into the folder that it was built in.
    let binary = dir.path().join("nfskit");
    fs::copy(env!("CARGO_BIN_EXE_nfskit"), &binary).unwrap();
    open(&binary);
    let mut command = Command::new(&binary);
    command.arg("mount").arg(served.url()).arg(&at).env("PATH", "/nowhere");
    command.uid(65_534).gid(65_534);
    let finished = Program::start(&mut command).finish();
    finished.complains(3, &["fusermount3", "fuse3"]);
    assert!(!is_mounted(&at));
    served.stop();
}

/// The words of the banner for whoever has only a home and `nfskit` in the PATH.
#[test]
fn what_a_server_prints_for_any_user_mounts() {
    if !can_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let served = Served::memory(&[]);
    let line = served.program.wait_for(|text| {
        let (_, line) = text.split_once("by FUSE")?;
        line.contains('\n').then(|| line.trim().to_owned())
    });
    let binaries = Path::new(env!("CARGO_BIN_EXE_nfskit")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("HOME", home.path()).env("PATH", with(binaries));
    let program = Program::start(&mut shell);
    program.wait_for(|text| text.contains("locks (flock, fcntl) hold on").then_some(()));
    let at = home.path().join("nfs");
    assert!(is_mounted(&at), "{line}");
    fs::write(at.join("file"), b"data").unwrap();
    unmount(&at);
    let finished = program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    served.stop();
}

/// The PATH, and before it a directory.
fn with(binaries: &Path) -> OsString {
    let mut path = binaries.as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    path
}
