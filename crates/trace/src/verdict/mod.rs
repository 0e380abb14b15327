//! What a client with its server mostly waits for, how sure that is, and what speaks against it.
//!
//! The time from the first call to the last reply is shared out ([`super::Waited`]): to what was
//! outstanding when a reply came, to nothing, to repairs of what was lost. [`judge`] makes
//! candidates of that, each with its share of the time; the one with the largest is the verdict. It
//! is a pure function of [`Evidence`]: numbers in, no words out.
//!
//! The rules with their thresholds and sources are a table in `docs/trace.md`.

mod evidence;
mod rules;

pub use self::evidence::{Evidence, SideNumbers, WorkNumbers};
pub use self::rules::{CALLS_MIN, SHARE_MIN, is_cut_too_much, judge, nominal_rate};

/// What is found guilty.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Suspect {
    SlowCommit,
    SlowStableWrite,
    SmallSyncs,
    Latency,
    OneOutstanding,
    Rate,
    Loss,
    Stalls,
    AttributeStorm,
    Retransmission,
    ZeroWindow,
    IdleClient,
    SlowServer,
}

impl Suspect {
    /// A word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowCommit => "slow_commit",
            Self::SlowStableWrite => "slow_stable_write",
            Self::SmallSyncs => "small_syncs",
            Self::Latency => "latency",
            Self::OneOutstanding => "one_outstanding",
            Self::Rate => "rate",
            Self::Loss => "loss",
            Self::Stalls => "server_stalls",
            Self::AttributeStorm => "attribute_storm",
            Self::Retransmission => "retransmission",
            Self::ZeroWindow => "zero_window",
            Self::IdleClient => "idle_client",
            Self::SlowServer => "slow_server",
        }
    }
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Certainty {
    Possible,
    Likely,
    Sure,
}

impl Certainty {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Sure => "sure",
        }
    }
}

/// A suspect with its share of the time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    pub suspect: Suspect,
    pub share: f64,
    /// How often it was seen.
    pub events: u64,
}

/// What makes a verdict less sure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// The capture has lost packets, or their ends.
    CaptureLost,
    /// Packets were cut off, and messages in them not seen.
    CaptureCut,
    /// There is little to go by.
    FewEvents,
    /// Another suspect has nearly the same share.
    Rival(Suspect),
    /// Nothing acknowledges: the round trip is at most what the fastest call took.
    RoundTripUnknown,
    /// The rate is none that a link is known to have.
    OddRate,
}

/// What a conversation mostly waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// None where nothing has a large share, or too little was seen.
    pub verdict: Option<(Finding, Certainty)>,
    /// Against it.
    pub doubts: Vec<Doubt>,
    /// What else takes a tenth of the time and more, the largest first.
    pub also: Vec<Finding>,
}
