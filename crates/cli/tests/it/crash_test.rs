//! `nfskit crash-test` on servers that are killed: one whose files stay, and one in memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::shell::quoted;
use rustix::process::Signal;

use crate::program::{Finished, Program, appears, nfskit, run};
use crate::served::Served;

/// A server that is killed and started again; its first life has begun.
pub(crate) struct Lives {
    pub(crate) first: Served,
    kill: String,
    restart: String,
}

impl Lives {
    /// Notes in `folder` which process is the server.
    pub(crate) fn begin(serve: impl Fn() -> Command, folder: &Path) -> Self {
        let first = Served::start(serve(), "127.0.0.1:0");
        let (port, pid) = (first.port(), folder.join("pid"));
        fs::write(&pid, first.program.pid().to_string()).unwrap();
        let mut again = serve();
        again.args(["--listen", &format!("127.0.0.1:{port}")]);
        let words = [again.get_program()].into_iter().chain(again.get_args());
        let words: Vec<String> = words.map(quoted).collect();
        let noted = quoted(&pid);
        // The threads of a killed process end one after the other, and the last closes what it had
        // open: until then nobody else can have the port, nor the lock of a log.
        let ended = "grep -sc -e 'State:.Z' -e 'Threads:.1$' /proc/$p/status";
        let kill = format!(
            "p=$(cat {noted}); kill -KILL $p; \
             while case $({ended}) in 0|1) ;; *) false ;; esac; do :; done"
        );
        let restart = format!("{} >/dev/null 2>&1 & echo $! >{noted}", words.join(" "));
        Self { first, kill, restart }
    }

    /// Kills it once, and starts it again.
    pub(crate) fn kill(&self) {
        shell(&self.kill);
        shell(&self.restart);
    }

    /// It is over.
    pub(crate) fn end(self) {
        shell(&self.kill);
    }

    /// Kills it three times, while four clients work on what the URL names, and a last time.
    pub(crate) fn killed(self, url: &str, load: &str, options: &[&str]) -> Finished {
        let mut arguments =
            vec!["crash-test", url, "--kill", &self.kill, "--restart", &self.restart];
        arguments.extend(["--rounds", "3", "--load", load, "--seed", "7", "--clients", "4"]);
        arguments.extend(options);
        let finished = run(arguments);
        self.end();
        finished
    }
}

fn shell(command: &str) {
    assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
}

fn tested(store: &str, folder: &Path, options: &[&str]) -> Finished {
    let lives = Lives::begin(|| serve(store, folder), folder);
    let port = lives.first.port();
    let url = format!("nfs://127.0.0.1/?nfsport={port}&mountport={port}");
    lives.killed(&url, "300ms", options)
}

fn serve(store: &str, folder: &Path) -> Command {
    let mut command = nfskit(["serve", store, "--export", "/=no_root_squash,insecure"]);
    command.arg("--state").arg(folder);
    command
}

#[test]
fn a_server_whose_process_is_killed_has_lost_nothing() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let record = state.path().join("record.json");
    // Replies outlive a process.
    let options = ["--retransmit", "--json", record.to_str().unwrap()];
    let finished = tested(data.path().to_str().unwrap(), state.path(), &options);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["kills       3, after", "again       ", "lost        nothing"] {
        assert!(finished.stdout.contains(part), "no {part:?}: {finished:?}");
    }
    assert!(fs::read_to_string(record).unwrap().contains("lost_data_sync"));
    assert_eq!(fs::read_dir(data.path()).unwrap().count(), 0, "its directory is removed");
}

#[test]
fn a_server_in_memory_has_lost_everything_whatever_it_has_to_hold() {
    let state = tempfile::tempdir().unwrap();
    let finished = tested("mem:", state.path(), &[]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stdout.contains("lost        names: 3\n"), "{finished:?}");
    for (held, shows) in [("data-sync", "lost        data-sync: "), ("verifier", "files were gone")]
    {
        let finished = tested("mem:", state.path(), &["--hold", held]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        for part in ["names: 3 (not held)", shows] {
            assert!(finished.stdout.contains(part), "no {part:?}: {finished:?}");
        }
    }
}

#[test]
fn a_server_that_ends_by_itself_under_the_load_is_reported() {
    let server = Served::folder(&[]);
    let arguments = ["crash-test", &server.url(), "--kill", "true", "--restart", "true"];
    let running = Program::start(nfskit(arguments).args(["--load", "1h", "--clients", "1"]));
    let scratch = appears(server.path(), |name| name.starts_with(load::scratch::PREFIX));
    let client = appears(&scratch, |name| name == "client0-1");
    appears(&client, |_| true);
    server.program.signal(Signal::KILL);
    running.finish().complains(3, &["ended by itself", "before --kill"]);
}

#[test]
fn a_kill_that_kills_nothing_is_an_error() {
    let server = Served::memory(&[]);
    let (url, rounds) = (server.url(), ["--rounds", "1", "--load", "9ms"]);
    let finished =
        run(["crash-test", &url, "--kill", "true", "--restart", "true"].into_iter().chain(rounds));
    finished.complains(3, &["it was not killed"]);
    assert!(!finished.stderr.contains("is left"), "{finished:?}");
    assert_eq!(server.left_behind(), [] as [String; 0]);
}

/// What it had answered was never in danger.
#[test]
fn a_server_that_was_stopped_and_not_killed_is_reported_as_such() {
    let (store, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Served::start(serve(store.path().to_str().unwrap(), folder.path()), "127.0.0.1:0");
    let pid = server.program.pid();
    let (stop, go_on) = (format!("kill -STOP {pid}"), format!("kill -CONT {pid}"));
    let arguments = ["crash-test", &server.url(), "--kill", &stop, "--restart", &go_on];
    let finished = run(arguments.into_iter().chain(["--load", "50ms", "--clients", "1"]));
    let went_on = "went on     connections, after 1 of the 1 kills: the server was stopped";
    assert!(finished.stdout.contains(went_on), "{finished:?}");
    assert!(finished.stderr.contains("nothing lost; CONNECTIONS WENT ON"), "{finished:?}");
}

/// A zombie has its PID.
#[test]
fn a_restart_that_goes_on_as_the_server_is_waited_for_when_it_is_killed() {
    let (store, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let lives =
        Lives::begin(|| serve(store.path().to_str().unwrap(), folder.path()), folder.path());
    let noted = quoted(folder.path().join("pid"));
    let (first, gone) = (lives.first.program.pid(), "kill -0 $p 2>/dev/null");
    // The first is this test's child.
    let kill =
        format!("p=$(cat {noted}); {}; [ $p = {first} ] || while {gone}; do :; done", lives.kill);
    let (command, _) = lives.restart.split_once(" >/dev/null").unwrap();
    let restart = format!("echo $$ >{noted}; exec {command} >/dev/null 2>&1");
    let arguments = ["crash-test", &lives.first.url(), "--kill", &kill, "--restart", &restart];
    let finished = run(arguments.into_iter().chain(["--load", "50ms", "--rounds", "2"]));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stdout.contains("went on"), "{finished:?}");
    lives.end();
}

#[test]
fn a_command_that_fails_is_named() {
    let server = Served::memory(&[]);
    let finished = run([
        "crash-test",
        &server.url(),
        "--kill",
        "exit 7",
        "--restart",
        "true",
        "--load",
        "9ms",
    ]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("--kill: exit status: 7"), "{finished:?}");
    assert_eq!(server.left_behind(), [] as [String; 0]);
}

/// The server of somebody who ends the run would stay down.
#[test]
fn an_interrupt_while_the_server_is_down_starts_it_again() {
    let (store, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let lives =
        Lives::begin(|| serve(store.path().to_str().unwrap(), folder.path()), folder.path());
    let killed = quoted(folder.path().join("killed"));
    let kill = format!("{}; touch {killed}; sleep 3600; true", lives.kill);
    let mut command =
        nfskit(["crash-test", &lives.first.url(), "--kill", &kill, "--restart", &lives.restart]);
    let running = Program::start(command.args(["--load", "50ms"]));
    appears(folder.path(), |name| name == "killed");
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    let left = fs::read_dir(store.path()).unwrap().count();
    assert_eq!(left, 0, "the server that is back has removed the directory");
    let back = run(["doctor", &lives.first.url()]);
    assert_eq!(back.code, Some(0), "{back:?}");
    lives.end();
}

/// What it has started would hold its standard error open, and kill the server a little later.
#[test]
fn an_interrupt_ends_the_kill_that_is_under_way_and_removes_the_directory() {
    let (server, folder) = (Served::memory(&[]), tempfile::tempdir().unwrap());
    let begun = quoted(folder.path().join("begun"));
    let kill = format!("echo $$ >{begun}.new; mv {begun}.new {begun}; sleep 3600; true");
    let mut command = nfskit(["crash-test", &server.url(), "--kill", &kill, "--restart", "true"]);
    let running = Program::start(command.args(["--load", "9ms"]));
    let begun = appears(folder.path(), |name| name == "begun");
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    let pid = fs::read_to_string(begun).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid}");
    assert_eq!(server.left_behind(), [] as [String; 0]);
}
