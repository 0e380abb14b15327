//! What nobody should miss of the changes on their way, and how it is put.

use server::types::Status;

/// Why ours got a name beside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conflict {
    /// Somebody else has changed the file.
    Changed,
    /// Somebody else has removed the file, or its directory.
    Gone,
    /// Somebody else has something of this name there.
    Replaced,
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gone {
    /// The file whose attributes were to be set is not there.
    File,
    /// What was to be removed or moved is another than it was.
    Replaced,
    /// What was to be removed was changed since.
    Changed,
    /// There is something in the directory that was to be removed.
    NotEmpty,
}

/// What nobody should miss.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Both versions are at the origin: theirs as `name`, ours as `copy`.
    Beside { name: String, copy: String, why: Conflict },
    /// A change was not made, so that what is at the origin stays.
    NotMade { change: String, why: Gone },
    /// The origin refuses a change; it is tried again, and what has to follow it waits. The same
    /// holds for others that it refuses so meanwhile.
    Refused { change: String, path: String, status: Status },
    /// The origin has refused a change for good: it was not made, and its bytes are in a file of
    /// this host.
    SetAside { change: String, path: String, status: Status, copy: Option<String> },
    /// What the origin does not take cannot be stored on this host either, or that it was not
    /// carried out cannot be recorded: it is tried again, and what has to follow it waits.
    NotStored { why: String },
    /// The log cannot be written: changes go to the origin while their callers wait.
    LogFailed { why: String },
    /// Somebody else has taken the lease: nothing is sent to the origin any more.
    Fenced { by: String },
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Beside { name, copy, why } => {
                let why = match why {
                    Conflict::Changed => "was changed at the origin by somebody else",
                    Conflict::Gone => "is gone at the origin",
                    Conflict::Replaced => "was made at the origin by somebody else",
                };
                write!(f, "CONFLICT: {name} {why}; the clients' version is {copy}")
            }
            Self::NotMade { change, why } => {
                let why = match why {
                    Gone::File => "the file is gone",
                    Gone::Replaced => "somebody else has put something else there",
                    Gone::Changed => "somebody else has changed the file since",
                    Gone::NotEmpty => "somebody else has put something into the directory",
                };
                write!(f, "CONFLICT: {change} was not carried out at the origin: {why}")
            }
            Self::Refused { change, path, status } => write!(
                f,
                "the origin refuses {change}{} ({status:?}): it is tried again, as is all else \
                 that is refused so",
                at(path)
            ),
            Self::SetAside { change, path, status, copy } => {
                let at = at(path);
                write!(f, "CONFLICT: the origin refuses {change}{at} for good ({status:?}): ")?;
                match copy {
                    Some(copy) => write!(f, "what clients have written is in {copy}"),
                    None => f.write_str("it was not carried out"),
                }
            }
            Self::NotStored { why } => {
                write!(f, "what the origin does not take cannot be recorded, and waits: {why}")
            }
            Self::LogFailed { why } => write!(
                f,
                "the log cannot be written ({why}): what it holds goes to the origin, and so does \
                 what is new, while clients wait",
            ),
            Self::Fenced { by } => write!(
                f,
                "the lease of the origin's export is that of {by}: nothing is sent there any more; \
                 end one of the two"
            ),
        }
    }
}

/// Where that was, if it is known.
fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" ({path})") }
}
