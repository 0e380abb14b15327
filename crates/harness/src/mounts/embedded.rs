//! A mount that a command makes for itself, served by a process of its own (`nfskit mounted`).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use client::url::Target;
use perf::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::failures;
use super::settings::{Settings, split};
use crate::exit::Failure;

/// How long connecting and mounting may take: longer than any of its parts.
const MOUNT_LIMIT: Duration = Duration::from_secs(90);
/// How long it may take to tell what was counted.
const CALLS_LIMIT: Duration = Duration::from_secs(10);
/// Parts of the end of a mount, each of which has its limit.
const END_PARTS: u32 = 5;
/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: usize = 1 << 16;

/// What a mount has done since it was made.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counted {
    /// Calls that have ended, by the names of their procedures.
    pub calls: BTreeMap<String, u64>,
    /// Processor time of its process.
    pub cpu: Nanos,
}

/// A server's file system, mounted or between two mounts. All that it does blocks.
#[derive(Debug)]
pub struct EmbeddedMount {
    source: String,
    options: String,
    target: Target,
    at: PathBuf,
    serving: Option<Serving>,
}

/// Why nothing can be mounted here, as far as that is to be seen before.
pub fn obstacle() -> Option<Failure> {
    let device = Path::new("/dev/fuse");
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(device);
    let cause = opened.err()?;
    // Where only root may open it, fusermount3 does it for everybody.
    let is_for_root = cause.kind() == std::io::ErrorKind::PermissionDenied;
    let error = fuse::session::MountError::NoDevice(cause);
    (!is_for_root).then(|| failures::not_mounted(&error))
}

/// What a mount in a benchmark is to be.
pub fn settings(source: &str, words: &str) -> Result<Settings, String> {
    let mut settings = Settings::of(source)?;
    // A server that is gone has to end what works on the mount.
    settings.soft = true;
    for word in split(words) {
        settings.word(&word)?;
    }
    settings.check()?;
    settings.flags.allow_other |= rustix::process::geteuid().is_root();
    Ok(settings)
}

impl EmbeddedMount {
    /// Nothing is mounted yet. `options` are those of `mount -o`.
    pub fn new(source: &str, options: &str, at: PathBuf) -> Result<Self, Failure> {
        let settings = settings(source, options)
            .map_err(|what| Failure::usage(what, "`nfskit mount --help`"))?;
        let (source, options) = (source.to_owned(), options.to_owned());
        Ok(Self { source, options, target: settings.target, at, serving: None })
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Connects and mounts; gives what is spoken with the server, in words.
    pub fn mount(&mut self) -> Result<String, Failure> {
        // Also when the program's file was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.arg("mounted").arg(&self.source).arg(&self.at).arg("--options").arg(&self.options);
        // A Ctrl-C is for us alone: the mount goes when we end it, or when we are gone.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(Failure::resources)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(silent());
        };
        let serving = Serving { child, input: Some(input), output, at: self.at.clone() };
        let serving = self.serving.insert(serving);
        let answer = serving.answer(MOUNT_LIMIT);
        match answer.as_deref().map(|answer| answer.split_once(' ')) {
            Ok(Some(("mounted", spoken))) => Ok(spoken.to_owned()),
            _ => {
                self.serving = None;
                Err(answer.err().unwrap_or_else(silent))
            }
        }
    }

    /// Writes back and unmounts, and forgets everything that was cached; by force if need be.
    pub fn unmount(&mut self, limit: Nanos) -> Result<(), Failure> {
        let Some(mut serving) = self.serving.take() else { return Ok(()) };
        serving.ask(&format!("end {}", limit.as_nanos() / 1_000_000))?;
        serving.answer(Duration::from_nanos(limit.as_nanos()) * END_PARTS).map(drop)
    }

    /// What it has done; nothing while nothing is mounted.
    pub fn counted(&mut self) -> Result<Counted, Failure> {
        let Some(serving) = &mut self.serving else { return Ok(Counted::default()) };
        serving.ask("calls")?;
        counted(&serving.answer(CALLS_LIMIT)?).ok_or_else(silent)
    }
}

fn counted(answer: &str) -> Option<Counted> {
    let mut words = answer.strip_prefix("calls ")?.split(' ');
    let cpu = Nanos::from_nanos(words.next()?.parse().ok()?);
    let pair = |word: &str| {
        let (name, calls) = word.split_once('=')?;
        Some((name.to_owned(), calls.parse().ok()?))
    };
    Some(Counted { cpu, calls: words.map(pair).collect::<Option<_>>()? })
}

fn silent() -> Failure {
    Failure::environment(
        "the process that serves the mount does not answer",
        "the same with `nfskit mount`, which says more",
    )
}

/// The process.
#[derive(Debug)]
struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    at: PathBuf,
}

impl Serving {
    fn ask(&mut self, line: &str) -> Result<(), Failure> {
        let input = self.input.as_mut().ok_or_else(silent)?;
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|_| silent())
    }

    /// The next line; a `failed` one is its failure.
    fn answer(&mut self, limit: Duration) -> Result<String, Failure> {
        let limit = Timespec::try_from(limit).map_err(|_| silent())?;
        let (mut answer, mut byte) = (Vec::new(), [0]);
        // A request and a reply are a line each: nothing stands behind its end.
        while !answer.ends_with(b"\n") && answer.len() < ANSWER_BYTES_MAX {
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&limit)) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(0) | Err(_) => return Err(silent()),
                Ok(_) => {}
            }
            match self.output.read(&mut byte) {
                Ok(1) => answer.push(byte[0]),
                _ => return Err(silent()),
            }
        }
        let answer = String::from_utf8_lossy(&answer).trim_end().to_owned();
        let Some(failed) = answer.strip_prefix("failed ") else { return Ok(answer) };
        let (what, advice) = failed.split_once('\t').unwrap_or((failed, ""));
        Err(Failure::environment(what, advice))
    }

    /// Whether the process has ended by then.
    fn has_ended(&self, within: Duration) -> bool {
        let Ok(pidfd) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) else {
            return true;
        };
        let Ok(limit) = Timespec::try_from(within) else { return false };
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        /// What it has for an end that nobody waits for any more.
        const LAST_LIMIT: Duration = Duration::from_secs(8);
        drop(self.input.take());
        if !self.has_ended(LAST_LIMIT) {
            self.child.kill().ok();
            // With its process the mount answers errors, but stays in the tree.
            unmount(&self.at, UnmountFlags::DETACH).ok();
        }
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_read() {
        let read = counted("calls 1500 GETATTR=3 READ=12").unwrap();
        assert_eq!(
            (read.cpu, read.calls["READ"], read.calls.len()),
            (Nanos::from_nanos(1500), 12, 2)
        );
        assert_eq!(
            counted("calls 7"),
            Some(Counted { cpu: Nanos::from_nanos(7), ..Counted::default() })
        );
        for wrong in ["", "calls", "calls x", "calls 1 READ", "calls 1 READ=x", "ended"] {
            assert_eq!(counted(wrong), None, "{wrong}");
        }
    }
}
