//! Programs under test: none outlives its deadline or its test.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use net::clock::Clock;
use perf::units::{Instant, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Far above what any of these programs needs on a busy machine.
const DEADLINE: Nanos = Nanos::from_secs(90);

/// A time after which a test gives up.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    clock: Clock,
    at: Instant,
}

impl Deadline {
    pub(crate) fn after(span: Nanos) -> Self {
        let clock = Clock::real();
        let at = clock.now() + span;
        Self { clock, at }
    }

    /// What is left; zero when it has passed.
    pub(crate) fn left(&self) -> Duration {
        let now = self.clock.now();
        Duration::from_nanos(if now < self.at { self.at.since(now).as_nanos() } else { 0 })
    }

    /// Waits until there is something to read; `false` when the deadline came first.
    fn readable(&self, fd: &OwnedFd) -> bool {
        loop {
            let left = Timespec::try_from(self.left()).expect("a deadline is near");
            match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                ready => return ready.unwrap() > 0,
            }
        }
    }
}

/// The binary, with its arguments.
pub(crate) fn nfskit<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfskit"));
    // What runs beside a test is no reason to refuse a link.
    command.args(arguments).env("NFSKIT_UNCALIBRATED", "1");
    command
}

/// A program that has been started; killed when dropped, if it has not ended.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    /// Names this process and no later one with its number.
    pidfd: OwnedFd,
    deadline: Deadline,
    stdout: Output,
    stderr: Output,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let deadline = Deadline::after(DEADLINE);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let stdout = Output::of(child.stdout.take().unwrap());
        let stderr = Output::of(child.stderr.take().unwrap());
        Self { child, pidfd, deadline, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `found` sees in standard output what it looks for.
    pub(crate) fn wait_for<T>(&self, found: impl Fn(&str) -> Option<T>) -> T {
        self.stdout.wait_for(&self.deadline, found).unwrap_or_else(|printed| {
            let complaint = self.stderr.text();
            panic!("it does not say what we wait for, but {printed:?} and {complaint:?}")
        })
    }

    /// The same, for what it complains about.
    pub(crate) fn wait_for_error<T>(&self, found: impl Fn(&str) -> Option<T>) -> T {
        self.stderr.wait_for(&self.deadline, found).unwrap_or_else(|complaint| {
            panic!("it does not complain about what we wait for, but {complaint:?}")
        })
    }

    /// Waits until it has a thread of this name.
    pub(crate) fn has_thread(&self, name: &str) {
        let tasks = format!("/proc/{}/task", self.pid());
        let is_there = || {
            let tasks = std::fs::read_dir(&tasks).unwrap();
            let names = tasks
                .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
            names.into_iter().any(|found| found.trim_end() == name)
        };
        while !is_there() {
            assert!(self.is_running() && !self.deadline.left().is_zero(), "no thread {name}");
            std::thread::yield_now();
        }
    }

    /// Waits until it handles Ctrl-C, which is the first that it does.
    pub(crate) fn catches_signals(&self) {
        const INT: u64 = 1 << 1;
        while self.signals("SigCgt:") & INT == 0 {
            assert!(self.is_running() && !self.deadline.left().is_zero(), "it catches nothing");
            std::thread::yield_now();
        }
    }

    /// Waits until none of the signals that it was sent is waiting for it.
    pub(crate) fn has_handled_signals(&self) {
        while self.signals("ShdPnd:") != 0 {
            assert!(!self.deadline.left().is_zero(), "a signal is not handled");
            std::thread::yield_now();
        }
    }

    /// A set of signals, as the kernel tells it.
    fn signals(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.unwrap_or_default();
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        set.map_or(0, |set| u64::from_str_radix(set.trim(), 16).unwrap())
    }

    pub(crate) fn is_running(&self) -> bool {
        poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&Timespec::default())).unwrap()
            == 0
    }

    pub(crate) fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.pidfd, signal).unwrap();
    }

    /// Waits for its end, which has to come before its deadline.
    pub(crate) fn finish(mut self) -> Finished {
        if !self.deadline.readable(&self.pidfd) {
            let (printed, complaint) = (self.stdout.text(), self.stderr.text());
            panic!("it does not end; it printed {printed:?} and {complaint:?}");
        }
        let status = self.child.wait().unwrap();
        let text = |output: &Output| {
            output.wait_for(&self.deadline, |_| None::<()>).expect_err("nothing is looked for")
        };
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        // Other tests run beside this one, and what measures says so.
        let of_others = |line: &&str| !line.starts_with("nfskit: busy machine: ");
        let stderr = stderr.split_inclusive('\n').filter(of_others).collect();
        Finished { code: status.code(), stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only for a program that has ended, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the binary and waits for its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Finished {
    Program::start(&mut nfskit(arguments)).finish()
}

/// What a program that came to its end left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// None when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// It ended with `code` and one message of two lines: what failed and where, in which all of
    /// `parts` occur, and what to try.
    #[track_caller]
    pub(crate) fn complains(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        let is_partial = self.stdout.contains("\nPARTIAL     the run ended before its end: ");
        assert!(self.stdout.is_empty() || is_partial, "reported on standard error: {self:?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        let [what, advice] = lines[..] else { panic!("not two lines: {self:?}") };
        let what = what.strip_prefix("nfskit: ").unwrap_or_else(|| panic!("{self:?}"));
        let advice = advice.strip_prefix("   try: ").unwrap_or_else(|| panic!("{self:?}"));
        assert!(advice.len() > 10, "{self:?}");
        for part in parts {
            assert!(what.contains(part) || advice.contains(part), "no {part:?} in {self:?}");
        }
    }

    /// It was stopped by the user: it says so, and has nothing to complain about. What it has
    /// measured before, if anything, is marked. Whether there is.
    #[track_caller]
    pub(crate) fn was_interrupted(&self) -> bool {
        assert_eq!(self.code, Some(130), "{self:?}");
        let mark = "PARTIAL     the run ended before its end: interrupted\n";
        let is_partial = self.stdout.ends_with(mark);
        let more = if is_partial { "; what was measured before is recorded" } else { "" };
        assert_eq!(self.stderr, format!("nfskit: interrupted{more}\n"));
        assert_eq!(self.stdout.is_empty(), !is_partial, "{self:?}");
        is_partial
    }
}

/// What a program has printed so far, read by a thread so that it never waits for us.
#[derive(Debug)]
struct Output(Arc<(Mutex<Printed>, Condvar)>);

#[derive(Debug, Default)]
struct Printed {
    text: String,
    ended: bool,
}

impl Output {
    fn of(mut source: impl Read + Send + 'static) -> Self {
        let shared = Arc::<(Mutex<Printed>, Condvar)>::default();
        let reader = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let count = source.read(&mut bytes).unwrap_or(0);
                let (printed, changed) = &*reader;
                let mut printed = printed.lock().unwrap();
                printed.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
                printed.ended = count == 0;
                changed.notify_all();
                if printed.ended {
                    return;
                }
            }
        });
        Self(shared)
    }

    fn text(&self) -> String {
        self.0.0.lock().unwrap().text.clone()
    }

    /// What `found` sees, or all that was printed when it ended, or the deadline came, without.
    fn wait_for<T>(
        &self,
        deadline: &Deadline,
        found: impl Fn(&str) -> Option<T>,
    ) -> Result<T, String> {
        let (printed, changed) = &*self.0;
        let mut printed = printed.lock().unwrap();
        loop {
            if let Some(found) = found(&printed.text) {
                return Ok(found);
            }
            let left = deadline.left();
            if printed.ended || left.is_zero() {
                return Err(printed.text.clone());
            }
            printed = changed.wait_timeout(printed, left).unwrap().0;
        }
    }
}

/// Waits until a scratch directory has been made in the directory.
pub(crate) fn scratch_appears(dir: &Path) -> PathBuf {
    // A file of the same prefix is what the directory itself is measured with.
    appears(dir, |name| name.starts_with(load::scratch::PREFIX) && dir.join(name).is_dir())
}

/// Waits until there is a name in the directory that `wanted` takes.
pub(crate) fn appears(dir: &Path, wanted: impl Fn(&str) -> bool) -> PathBuf {
    let deadline = Deadline::after(DEADLINE);
    let events = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    let made = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&events, dir, made).unwrap();
    // Looked at after the watch has begun, so that nothing is missed in between.
    loop {
        if let Some(name) = names(dir).into_iter().find(|name| wanted(name)) {
            return dir.join(name);
        }
        assert!(deadline.readable(&events), "nothing of that name appears in {dir:?}");
        rustix::io::read(&events, &mut [0_u8; 4096]).unwrap();
    }
}

/// A wait for somebody to close a file of a directory that was open for writing.
#[derive(Debug)]
pub(crate) struct Closing(OwnedFd);

impl Closing {
    pub(crate) fn watch(dir: &Path) -> Self {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&events, dir, inotify::WatchFlags::CLOSE_WRITE).unwrap();
        Self(events)
    }

    pub(crate) fn wait(&self) {
        assert!(Deadline::after(DEADLINE).readable(&self.0), "nobody closes what he has written");
        rustix::io::read(&self.0, &mut [0_u8; 4096]).unwrap();
    }
}

/// The names in a directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
