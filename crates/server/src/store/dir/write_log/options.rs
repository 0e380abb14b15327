//! How a directory is served with a log.

use std::path::PathBuf;

/// A stable write log for a directory.
#[derive(Clone, Debug)]
pub struct WriteLog {
    /// One, or several that share the work; at most [`log::identity::LOGS_MAX`].
    pub files: Vec<PathBuf>,
    /// How long each is made if there is none: 16 MiB to 1 GiB. Of a device all is taken.
    pub bytes: u64,
    /// The boot of this machine. `None`: as the kernel says it.
    pub boot: Option<[u8; 16]>,
    pub on_failure: OnFailure,
    /// Of a damaged log, what is whole is brought to its place, and the rest is given up.
    pub salvages: bool,
    /// Hears now and then how far a recovery has come.
    pub progress: Option<fn(Progress)>,
    /// Whether it is faster than the directory's disk, so that SETATTRs and COMMITs go through it,
    /// too. `None`: as measured at the start.
    pub is_faster: Option<bool>,
    /// Replies to calls that must not be executed twice are recorded in it, so that they survive a
    /// loss of power.
    pub keeps_replies: bool,
}

impl WriteLog {
    /// As the kernel says which boot it is; a damaged one is refused.
    pub fn new(files: Vec<PathBuf>, bytes: u64) -> Self {
        let on_failure = OnFailure::default();
        let (boot, progress, is_faster) = (None, None, None);
        let (salvages, keeps_replies) = (false, true);
        Self { files, bytes, boot, on_failure, salvages, progress, is_faster, keeps_replies }
    }
}

/// What a server does that cannot write its log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnFailure {
    /// It answers nothing more from it, and asks to be ended ([`GivenUp`](super::GivenUp)): calls
    /// that need the log are to be made again.
    #[default]
    Stop,
    /// It goes on as without a log.
    Degrade,
}

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Progress {
    pub stage: Stage,
    pub done_bytes: u64,
    pub all_bytes: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// The whole log is looked at.
    Reading,
    /// WRITEs are done again.
    Writing,
}
