//! Plans: what clients do and what goes wrong, step by step.
//!
//! A seed becomes a plan ([`generate`]), a plan is text ([`text`]) that can be read back, and a
//! plan that fails is made smaller as long as it fails in the same way ([`shrink`]). A step that
//! makes no sense where it has come to stand (it closes what is not open) is passed over, so that
//! any part of a plan is a plan.

pub mod contest;
pub mod generate;
pub mod kills;
pub mod shrink;
pub mod text;

use perf::model::disk::Profile;
use perf::units::Nanos;
use wire::nfs3::StableHow;

use crate::reference::tree::{Change, Path};

/// Most clients of a plan.
pub const CLIENTS_MAX: usize = 6;

/// Most bytes of a file.
pub const FILE_BYTES_MAX: u32 = 1 << 18;

/// Each client's part of the file that all write to.
pub const PART_BYTES: u32 = 16 << 10;

/// See the module's head.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// What decides about everything that steps do not say.
    pub seed: u64,
    /// One way, between any client and the server.
    pub latency: Nanos,
    /// The server's, one of those with a name.
    pub disk: Profile,
    pub clients: Vec<Client>,
    /// In the order of their times, as far as that matters.
    pub steps: Vec<Step>,
}

/// One client, in a directory of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Client {
    pub level: Level,
    pub by: By,
}

perf::named! {
    /// What a client is.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Level {
        /// One call for each step, nothing remembered.
        Calls => "calls",
        /// A mounted file system: caches, write-behind.
        Files => "files",
    }
}

perf::named! {
    /// What carries a client's calls.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum By {
        Stream => "stream",
        Datagrams => "datagrams",
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Step {
    /// Not before this time, and for a client not before its step before has ended.
    pub at: Nanos,
    pub what: What,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum What {
    Do { client: usize, op: Op },
    Fault(Fault),
}

/// What a client does. Paths are below its own directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Op {
    Change(Change),
    /// The same byte again and again, in so many pieces at once.
    Write {
        path: Path,
        at: u32,
        bytes: u32,
        value: u8,
        stable: StableHow,
        pieces: u32,
    },
    /// Until everything written is stable.
    Commit(Path),
    /// The same, and the file is not open any more.
    Close(Path),
    Resize(Path, u32),
    Read {
        path: Path,
        at: u32,
        bytes: u32,
    },
    Look(Path),
    List(Path),
    /// Fills the client's own public file, and closes it.
    Publish {
        bytes: u32,
        style: Style,
    },
    /// Reads the public file of a client, from open to close.
    Peek {
        of: usize,
    },
    /// Writes to the client's own part of the file that all write to.
    WritePart {
        at: u32,
        bytes: u32,
        value: u8,
        stable: StableHow,
    },
    /// Makes it stable.
    CommitPart,
    ReadPart,
    /// A program of the client does something in the directory for which all compete.
    Contend {
        program: usize,
        act: Act,
    },
}

/// Most programs of a client.
pub const PROGRAMS_MAX: usize = 4;

/// A file for which all compete has so many places, with gaps between, which are written whole.
pub const PLACES: u32 = 8;
pub const PLACE_BYTES: u32 = 3_000;

/// Files to which all append.
pub const LOGS: u32 = 2;

/// Files with locks: the first of flock(2), the second of fcntl(2).
pub const LOCKS: u32 = 2;

/// What a program does in the directory for which all compete.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Act {
    /// Makes a file, which must not be there yet.
    Make(Path),
    Remove(Path),
    /// Fills all places of a new file with a value, and renames it to the name.
    Replace {
        name: Path,
        value: u8,
    },
    /// Renames a file to another of the names, whatever either leads to by then.
    Move {
        from: Path,
        to: Path,
    },
    /// Gives a file one more name, which must not be there yet.
    Link {
        from: Path,
        to: Path,
    },
    /// Opens a file, cuts it to nothing, waits, and closes it.
    Cut {
        name: Path,
        hold: Nanos,
    },
    /// Changes the mode of a file, and none of its data.
    Mode(Path),
    /// Opens a file, fills some places with a value, all at once, waits, and closes it.
    Write {
        name: Path,
        first: u32,
        count: u32,
        value: u8,
        hold: Nanos,
    },
    /// Opens a file, fills some places with a value, and closes it, and does not hear what has
    /// become of them.
    Unheard {
        name: Path,
        first: u32,
        count: u32,
        value: u8,
        by: Unheard,
    },
    /// Opens it, reads all of it, and closes it.
    Read(Path),
    /// Looks the name up.
    Look(Path),
    /// Lists the directory, and waits before each portion.
    List {
        wait: Nanos,
    },
    /// Appends a record and syncs, when it is its turn; through a descriptor that stays open, or
    /// from open to close.
    Append {
        log: u32,
        keeps: bool,
    },
    ReadLog {
        log: u32,
    },
    /// Writes the first record of a log over itself, beside those who append, looks at the file's
    /// attributes, waits, and closes it.
    Rewrite {
        log: u32,
        hold: Nanos,
    },
    /// Takes the lock of a file that is there for that, counts on in it, waits, and gives it up; or
    /// closes the file, which has the same effect. Where a host has no locks of its own, nothing.
    Lock {
        lock: u32,
        hold: Nanos,
        keeps: bool,
    },
}

impl Act {
    /// Whether others wait until it is done, or go by what it has promised.
    pub fn is_awaited(&self) -> bool {
        matches!(
            self,
            Self::Append { .. } | Self::Rewrite { .. } | Self::Lock { .. } | Self::Unheard { .. }
        )
    }
}

perf::named! {
    /// Why a program does not hear what has become of what it has written.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Unheard {
        /// It is interrupted when it closes the file.
        Interrupted => "interrupted",
        /// It writes through a mapping that it made before it closed the file.
        Mapped => "mapped",
    }
}

perf::named! {
    /// How a public file is filled.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Style {
        /// Written over, and cut to its length.
        InPlace => "in-place",
        /// Cut to nothing when it is opened.
        Cut => "cut",
        /// Written under another name that then takes its place.
        Replaced => "replaced",
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The client's connections break.
    Cut {
        client: usize,
    },
    /// The one that carries the call after so many breaks.
    CutAfterCalls {
        client: usize,
        calls: u64,
    },
    /// The same with replies: what was called is done.
    CutAfterReplies {
        client: usize,
        replies: u64,
    },
    /// No connection can be made, and those there are break.
    Outage {
        client: usize,
        span: Nanos,
    },
    /// Of a thousand datagrams so many are lost and come twice; each is late by up to `jitter`.
    Impairments {
        client: usize,
        lost: u64,
        doubled: u64,
        jitter: Nanos,
        span: Nanos,
    },
    /// The server's time of day jumps.
    Clock {
        secs: i64,
    },
    /// The client is gone, with all it has not sent.
    Vanish {
        client: usize,
    },
    /// The client's process is killed, and another one begins with what is on its disk. Where
    /// clients compete, and when its programs do nothing that others wait for.
    Kill {
        client: usize,
    },
    /// The same, and its machine loses power: of what was not synced some has reached the disk.
    PowerLoss {
        client: usize,
    },
    /// The server's machine dies when its tasks have been polled so often again; it comes back.
    Crash {
        polls: u64,
        down: Nanos,
    },
    /// Writes to the disk fail.
    WriteErrors {
        span: Nanos,
    },
    /// Syncs fail.
    SyncErrors {
        span: Nanos,
    },
    Full {
        span: Nanos,
    },
    /// Every access to the disk takes so many times as long.
    Slow {
        factor: u32,
        span: Nanos,
    },
}

impl Plan {
    /// When the last step begins, if none before it takes long.
    pub fn span(&self) -> Nanos {
        self.steps.iter().map(|step| step.at).max().unwrap_or(Nanos::ZERO)
    }

    /// The faults, in the order of their times.
    pub fn faults(&self) -> Vec<(Nanos, Fault)> {
        let faults = self.steps.iter().filter_map(|step| match step.what {
            What::Fault(fault) => Some((step.at, fault)),
            What::Do { .. } => None,
        });
        let mut faults: Vec<_> = faults.collect();
        faults.sort_by_key(|(at, _)| *at);
        faults
    }

    /// Whether all clients compete for the same names, and not each in a directory of its own.
    pub fn is_contest(&self) -> bool {
        let contends = |step: &Step| matches!(step.what, What::Do { op: Op::Contend { .. }, .. });
        self.steps.iter().any(contends)
    }

    /// Whether a client is killed, and goes on with its disk.
    pub fn kills(&self, number: usize) -> bool {
        self.faults().iter().any(|(_, fault)| match fault {
            Fault::Kill { client } | Fault::PowerLoss { client } => *client == number,
            _ => false,
        })
    }

    /// What one client does, each with its number in the plan.
    pub fn ops(&self, of: usize) -> Vec<(u32, Nanos, Op)> {
        let ops = (0..).zip(&self.steps).filter_map(|(number, step)| match &step.what {
            What::Do { client, op } if *client == of => Some((number, step.at, op.clone())),
            _ => None,
        });
        ops.collect()
    }
}

impl Fault {
    /// What it is called in a plan, and counted as.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::CutAfterCalls { .. } => "cut-after-calls",
            Self::CutAfterReplies { .. } => "cut-after-replies",
            Self::Outage { .. } => "outage",
            Self::Impairments { .. } => "impairments",
            Self::Clock { .. } => "clock",
            Self::Vanish { .. } => "vanish",
            Self::Kill { .. } => "kill",
            Self::PowerLoss { .. } => "power-loss",
            Self::Crash { .. } => "crash",
            Self::WriteErrors { .. } => "write-errors",
            Self::SyncErrors { .. } => "sync-errors",
            Self::Full { .. } => "full",
            Self::Slow { .. } => "slow",
        }
    }
}
