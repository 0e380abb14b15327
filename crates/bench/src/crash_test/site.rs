//! The server under test, and the commands that end and start it.

use std::fmt::Display;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use client::error::Error as ClientError;
use client::mount;
use client::session::Session;
use client::url::Target;
use harness::exit::Failure;
use load::crash::Site;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use rustix::process::{Pid, Signal, kill_process_group};

/// How often it is looked whether a command has ended.
const LOOK: Nanos = Nanos::from_millis(5);
/// A command that starts a server and goes on is not waited for longer.
const START_LIMIT: Nanos = Nanos::from_millis(500);

/// The commands of `--restart` that have failed after they were not waited for any more: with the
/// number of the kill that they followed, and how they ended. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Restarts(Arc<Mutex<Ended>>);

#[derive(Debug, Default)]
struct Ended {
    kills: u32,
    failed: Vec<(u32, String)>,
}

impl Restarts {
    /// From now on a command that ends does so because of the kill.
    fn kill(&self) {
        self.0.lock().kills += 1;
    }

    fn kills(&self) -> u32 {
        self.0.lock().kills
    }

    fn ended(&self, after_kill: u32, status: io::Result<ExitStatus>) {
        let mut ended = self.0.lock();
        let how = match status {
            Ok(status) if status.success() => return,
            Ok(status) => status.to_string(),
            Err(cause) => cause.to_string(),
        };
        if ended.kills == after_kill {
            ended.failed.push((after_kill, how));
        }
    }

    pub(super) fn failed(&self) -> Vec<(u32, String)> {
        self.0.lock().failed.clone()
    }

    /// In a failure, for which it may be the reason.
    fn and(&self, failure: Failure) -> Failure {
        match self.0.lock().failed.last() {
            Some((kill, how)) => failure.and(format!("--restart after kill {kill}: {how}")),
            None => failure,
        }
    }
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Killed {
    pub(super) clock: Clock,
    pub(super) target: Target,
    pub(super) behind: Option<Target>,
    pub(super) mount: mount::Options,
    pub(super) kill: String,
    pub(super) restart: String,
    pub(super) reply_limit: Nanos,
    pub(super) answer_limit: Nanos,
    pub(super) restarts: Restarts,
}

impl Site for Killed {
    type Trouble = Failure;

    async fn connect(&self) -> Result<Session, ClientError> {
        self.session(&self.target).await
    }

    async fn behind(&self) -> Option<Result<Session, ClientError>> {
        Some(self.session(self.behind.as_ref()?).await)
    }

    async fn kill(&self) -> Result<(), Failure> {
        let (option, limit) = ("--kill", self.answer_limit);
        self.restarts.kill();
        let mut group = Group(begin(option, &self.kill)?);
        match self.has_ended(option, &mut group.0, limit).await? {
            true => Ok(()),
            false => {
                let what = format!("--kill has not ended within {}", self.answer_limit);
                Err(Failure::environment(what, "a command that ends when the server is gone"))
            }
        }
    }

    async fn restart(&self) -> Result<(), Failure> {
        let option = "--restart";
        let mut child = begin(option, &self.restart)?;
        if !self.has_ended(option, &mut child, START_LIMIT).await? {
            // It goes on as long as the server does. When that is killed, somebody has to wait for
            // it, or a --kill that waits until its PID is gone would do so for ever.
            let (restarts, kill) = (self.restarts.clone(), self.restarts.kills());
            std::thread::spawn(move || restarts.ended(kill, child.wait()));
        }
        Ok(())
    }

    fn gone(&self, last: Option<ClientError>) -> Failure {
        let why = last.map_or_else(|| "no reply".to_owned(), |error| error.to_string());
        let what =
            format!("the server does not answer {} after --restart: {why}", self.answer_limit);
        let advice = "see whether --restart starts it; a longer --back-within";
        self.restarts.and(Failure::environment(what, advice))
    }

    fn alive(&self) -> Failure {
        Failure::environment(
            "the server still answers over the connections from before --kill: it was not killed",
            "a command that ends the process that serves: kill -KILL of its PID",
        )
    }

    fn ended(&self, after: Nanos, why: ClientError) -> Failure {
        let what = format!(
            "the server ended by itself, or answered no more, {after} after the load began and \
             before --kill: {why}"
        );
        self.restarts.and(Failure::environment(what, "the server's log; its start by hand"))
    }
}

impl Killed {
    async fn session(&self, target: &Target) -> Result<Session, ClientError> {
        let mounted = mount::mount(&self.clock, target, &self.mount).await?;
        Ok(mounted.session.patient(&self.clock, Some(self.reply_limit)))
    }

    /// Whether a command ends within this time.
    async fn has_ended(
        &self,
        option: &str,
        child: &mut Child,
        limit: Nanos,
    ) -> Result<bool, Failure> {
        let until = self.clock.now() + limit;
        loop {
            match child.try_wait().map_err(|cause| failed(option, &cause))? {
                Some(status) if status.success() => return Ok(true),
                Some(status) => return Err(failed(option, &status)),
                None if self.clock.now() >= until => return Ok(false),
                None => self.clock.sleep(LOOK).await,
            }
        }
    }
}

/// Starts a command for sh.
fn begin(option: &str, line: &str) -> Result<Child, Failure> {
    let mut command = Command::new("sh");
    // Its own group: an interrupt is for us, and not for the server that it starts.
    command.args(["-c", line]).stdin(Stdio::null()).process_group(0);
    // Standard output is the report's.
    command.stdout(Stdio::from(io::stderr()));
    command.spawn().map_err(|cause| failed(option, &cause))
}

fn failed(option: &str, what: &dyn Display) -> Failure {
    Failure::environment(format!("{option}: {what}"), "the command as sh takes it, by hand")
}

/// A command that is to kill the server. Whoever no longer waits for that, because of an interrupt
/// or of its limit, wants no server killed later: it ends, with all that it has started.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            kill_process_group(Pid::from_child(&self.0), Signal::KILL).ok();
            // Killed, it ends at once.
            self.0.wait().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_restart_has_failed_unless_a_kill_has_ended_it() {
        let restarts = Restarts::default();
        let ends = |kill, code| restarts.ended(kill, Ok(ExitStatus::from_raw(code << 8)));
        restarts.kill();
        ends(1, 0);
        ends(1, 3);
        restarts.kill();
        ends(1, 9);
        let failed = [(1, "exit status: 3".to_owned())];
        assert_eq!(restarts.failed(), failed);
        let failure = restarts.and(Failure::environment("no reply", "wait"));
        assert_eq!(failure.what(), "no reply; --restart after kill 1: exit status: 3");
    }
}
