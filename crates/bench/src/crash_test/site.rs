//! The server under test, and the commands that end and start it.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use client::error::Error as ClientError;
use client::mount;
use client::session::Session;
use client::url::Target;
use harness::exit::Failure;
use load::crash::Site;
use net::clock::Clock;
use perf::units::Nanos;

/// How often it is looked whether a command has ended.
const LOOK: Nanos = Nanos::from_millis(5);
/// A command that starts a server and goes on is not waited for longer.
const START_LIMIT: Nanos = Nanos::from_millis(500);

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
        match self.has_ended("--kill", &self.kill, self.answer_limit).await? {
            true => Ok(()),
            false => {
                let what = format!("--kill has not ended within {}", self.answer_limit);
                Err(Failure::environment(what, "a command that ends when the server is gone"))
            }
        }
    }

    async fn restart(&self) -> Result<(), Failure> {
        self.has_ended("--restart", &self.restart, START_LIMIT).await.map(drop)
    }

    fn gone(&self, last: Option<ClientError>) -> Failure {
        let why = last.map_or_else(|| "no reply".to_owned(), |error| error.to_string());
        let what =
            format!("the server does not answer {} after --restart: {why}", self.answer_limit);
        Failure::environment(what, "see whether --restart starts it; a longer --back-within")
    }

    fn alive(&self) -> Failure {
        Failure::environment(
            "the server still answers over the connections from before --kill: it was not killed",
            "a command that ends the process that serves: kill -KILL of its PID",
        )
    }
}

impl Killed {
    async fn session(&self, target: &Target) -> Result<Session, ClientError> {
        let mounted = mount::mount(&self.clock, target, &self.mount).await?;
        Ok(mounted.session.patient(&self.clock, Some(self.reply_limit)))
    }

    /// Whether a command ends within this time; one that goes on is left alone.
    async fn has_ended(&self, option: &str, line: &str, limit: Nanos) -> Result<bool, Failure> {
        let advice = "the command as sh takes it, by hand";
        let mut command = Command::new("sh");
        // Its own group: an interrupt is for us, and not for the server that it starts.
        command.args(["-c", line]).stdin(Stdio::null()).process_group(0);
        // Standard output is the report's.
        command.stdout(Stdio::from(std::io::stderr()));
        let failed = |what: String| Failure::environment(format!("{option}: {what}"), advice);
        let mut child = command.spawn().map_err(|cause| failed(cause.to_string()))?;
        let until = self.clock.now() + limit;
        loop {
            match child.try_wait().map_err(|cause| failed(cause.to_string()))? {
                Some(status) if status.success() => return Ok(true),
                Some(status) => return Err(failed(status.to_string())),
                None if self.clock.now() >= until => return Ok(false),
                None => self.clock.sleep(LOOK).await,
            }
        }
    }
}
