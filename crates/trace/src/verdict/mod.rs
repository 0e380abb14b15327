//! What a client with its server mostly waits for, how sure that is, and what speaks against it.
//!
//! The time from the first call to the last reply is shared out ([`super::Waited`]): to what was
//! outstanding when a reply came, to nothing, to repairs of what was lost. [`judge`] makes
//! candidates of that, each with its share of the time; the one with the largest is the verdict. It
//! is a pure function of [`Evidence`]: numbers in, no words out.
//!
//! The rules with their thresholds and sources are a table in `docs/trace.md`.

mod chosen;
mod evidence;
mod rules;
mod ways;

pub use self::chosen::Chosen;
pub use self::evidence::{Evidence, Gaps, SideNumbers, WorkNumbers};
pub use self::rules::{
    CALLS_MIN, SHARE_MIN, hangs, is_cut_too_much, judge, nominal_rate, unknown_share,
};
pub use self::ways::BULK_BYTES;

perf::named! {
    /// What is found guilty.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Suspect {
        NoReply => "no_reply",
        HangingCalls => "hanging_calls",
        SlowCommit => "slow_commit",
        SlowStableWrite => "slow_stable_write",
        SmallSyncs => "small_syncs",
        Latency => "latency",
        OneOutstanding => "one_outstanding",
        Rate => "rate",
        Loss => "loss",
        Stalls => "server_stalls",
        AttributeStorm => "attribute_storm",
        Retransmission => "retransmission",
        ZeroWindow => "zero_window",
        IdleClient => "idle_client",
        Postponed => "postponed",
        SlowServer => "slow_server",
        Relay => "relay",
    }
}

perf::named! {
    /// How sure a verdict is.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Certainty {
        Possible => "possible",
        Likely => "likely",
        Sure => "sure",
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
    /// Of some connections one direction was captured: what is outstanding there is not known.
    OneWay,
    /// Fragments of datagrams were not captured.
    Fragments,
    /// Packets were cut off, and messages in them not seen.
    CaptureCut,
    /// There is little to go by.
    FewEvents,
    /// Another suspect has nearly the same share.
    Rival(Suspect),
    /// Nothing acknowledges: the round trip is at most what the fastest call took.
    RoundTripUnknown,
    /// Nothing shows the round trip at all: what is the network's and what the server's is not
    /// known.
    NoRoundTrip,
    /// The round trip is less than what the capture's times are multiples of.
    CoarseTimes,
    /// Acknowledgements come at once and no reply does: something else may acknowledge.
    EarlyAcks,
    /// This end acknowledges so late, at the median, that what it is blamed for may be the way's.
    LateAcks(usize),
    /// Nothing shows the way to the client, which seems idle.
    NoAcks,
    /// This end sends at one rate, as over a full link before the capture.
    Steady(usize),
    /// Of some calls is not known what they are for.
    Nameless,
    /// RPC refused calls.
    Refused,
    /// Calls were answered with errors.
    Failed,
    /// The capture's clock was set back.
    SetBack,
    /// All packets have the same time.
    NoTime,
    /// The rate is none that a link is known to have.
    OddRate,
}

impl Doubt {
    /// By how many steps it makes a verdict less sure.
    pub(super) const fn steps(self) -> u32 {
        if matches!(self, Self::NoRoundTrip | Self::OneWay) { 2 } else { 1 }
    }
}

/// What a conversation mostly waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// None where nothing has a large share, too little was seen, or more of the time is not known.
    pub verdict: Option<(Finding, Certainty)>,
    /// Against it.
    pub doubts: Vec<Doubt>,
    /// What else takes a tenth of the time and more, the largest first.
    pub also: Vec<Finding>,
}
