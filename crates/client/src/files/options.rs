//! How to use a file system.

use perf::units::Nanos;

use crate::cache::attributes::Times;
use crate::write_behind;

/// How to use a file system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    pub times: Times,
    /// Whether opening a file asks the server if it is still what it was (`cto`, `nocto`).
    pub close_to_open: bool,
    /// Files whose attributes are remembered, and names, and rights.
    pub files_max: usize,
    pub names_max: usize,
    pub rights_max: usize,
    /// Bytes that are held for readers that have not come yet.
    pub read_ahead_bytes_max: u64,
    /// How to write.
    pub write: write_behind::Options,
    /// Whether every write waits for stable storage (`sync`).
    pub sync: bool,
    /// How long a server is waited for that asks for a retry later (NFS3ERR_JUKEBOX); none for as
    /// long as it takes.
    pub put_off_max: Option<Nanos>,
    /// None, but where tests are tested.
    pub mistake: Option<Mistake>,
}

/// A mistake that is made on purpose, to see whether simulated worlds notice it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mistake {
    /// The attributes that a reply tells go with whatever version is known by then.
    OldAttributes,
    /// What a WRITE beside another excuses does not count when the file is opened next.
    ForgottenExcuses,
    /// An append goes to where the file was last seen to end.
    UncheckedEnds,
    /// A name is remembered of whatever the directory is when the reply comes.
    LateNames,
    /// Of those who have a file open, the first who asks gets an error, and no other.
    ErrorsReportedOnce,
    /// The state that a COMMIT tells of is taken to be of our making.
    CommitMakesState,
    /// An error that a close has reported counts as reported, whether anybody has heard it or not.
    UnheardErrors,
    /// What the local disk has of a file is taken to be of whatever state an open tells.
    OldBlocks,
    /// What we have written is stored under the state that the file has then, whoever has made it.
    OthersBlocks,
    /// What is known of a directory's names stays when others have changed it.
    OldNames,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            times: Times::default(),
            close_to_open: true,
            files_max: 1 << 16,
            names_max: 1 << 17,
            rights_max: 1 << 16,
            read_ahead_bytes_max: 64 << 20,
            write: write_behind::Options::default(),
            sync: false,
            put_off_max: None,
            mistake: None,
        }
    }
}
