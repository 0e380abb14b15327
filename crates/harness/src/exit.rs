//! How a command ends: exit codes, and the one message that says what failed, where, and what to
//! try.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; of what runs until a signal ends it: ended in order |
//! | 1 | a check or goal failed, or data was lost |
//! | 2 | usage |
//! | 3 | the target or the environment failed |
//! | 130 | interrupted before it was done: Ctrl-C, SIGTERM, the end of the terminal |
//!
//! A reader of what is printed that goes away (`| head`) is no failure. `mount` ends with 3 where
//! others end with 2: whoever mounts wants one answer to "is it mounted?".

use std::fmt::Display;
use std::process::ExitCode;

use crate::{hints, stderr};

/// As the table has them.
const CHECK: u8 = 1;
const USAGE: u8 = 2;
const ENVIRONMENT: u8 = 3;
const INTERRUPTED: u8 = 130;

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    what: String,
    advice: String,
}

impl Failure {
    /// The target or the environment failed.
    pub fn environment(what: impl Display, advice: impl Into<String>) -> Self {
        Self { code: ENVIRONMENT, what: what.to_string(), advice: advice.into() }
    }

    /// The system gave no descriptor or no thread.
    pub fn resources(what: impl Display) -> Self {
        Self::environment(what, "raise the limits of open files and threads (ulimit -n -u)")
    }

    /// Arguments that do not go together.
    pub fn usage(what: impl Display, advice: impl Into<String>) -> Self {
        Self { code: USAGE, what: what.to_string(), advice: advice.into() }
    }

    /// What failed has been printed already.
    pub fn printed(code: u8) -> Self {
        Self { code, what: String::new(), advice: String::new() }
    }

    /// A check or goal failed, or data was lost.
    pub fn check(what: impl Display, advice: impl Into<String>) -> Self {
        Self { code: CHECK, what: what.to_string(), advice: advice.into() }
    }

    pub fn interrupted() -> Self {
        Self { code: INTERRUPTED, what: "interrupted".to_owned(), advice: String::new() }
    }

    pub fn is_interrupted(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// A command line that is not understood. What was requested with `--help` is printed and no
    /// failure, unless it cannot be.
    pub fn of_arguments(error: &clap::Error) -> Result<(), Self> {
        use std::io::ErrorKind;
        match (error.print(), error.use_stderr()) {
            (_, true) if is_mount() => Err(Self::printed(ENVIRONMENT)),
            (_, true) => Err(Self::printed(USAGE)),
            (Err(cause), false) if cause.kind() != ErrorKind::BrokenPipe => {
                Err(hints::cannot_print(&cause))
            }
            (_, false) => Ok(()),
        }
    }

    /// Adds a sentence to the message.
    pub fn and(mut self, more: impl Display) -> Self {
        self.what = format!("{}; {more}", self.what);
        self
    }

    /// Adds something else to try.
    #[must_use]
    pub fn or_try(mut self, more: &str) -> Self {
        self.advice = format!("{}; {more}", self.advice);
        self
    }

    /// What failed.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What to try.
    pub fn advice(&self) -> &str {
        &self.advice
    }

    /// Says it; the process is to end with this.
    pub fn report(self) -> ExitCode {
        ExitCode::from(self.say())
    }

    /// Says it and ends the process, whatever else runs.
    pub fn end(self) -> ! {
        std::process::exit(i32::from(self.say()))
    }

    /// Says it and gives the code.
    fn say(self) -> u8 {
        if !self.what.is_empty() {
            stderr::say(&self.what);
        }
        if !self.advice.is_empty() {
            stderr::complain(format_args!("   try: {}\n", self.advice));
        }
        self.code
    }
}

/// Whether the command line is one of `mount`.
fn is_mount() -> bool {
    let mut words = std::env::args_os().skip(1);
    words
        .find(|word| !word.as_encoded_bytes().starts_with(b"-"))
        .is_some_and(|verb| verb == "mount")
}
