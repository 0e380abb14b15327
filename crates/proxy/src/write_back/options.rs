//! How changes are stored and sent.

use std::sync::Arc;

use perf::units::Nanos;
use server::types::Caller;

use super::events::Event;

/// Hears of what nobody should miss. An error: it is recorded nowhere, and a change by which
/// something is lost waits.
pub type Hear = dyn Fn(&Event) -> Result<(), String> + Send + Sync;

/// How changes are stored and sent.
#[derive(Clone)]
pub struct Options {
    /// Changes under way to the origin at a time.
    pub under_way_max: usize,
    /// How long a caller waits for room; for ever, if not given.
    pub patience: Option<Nanos>,
    /// How long the log's note that a change has come to the origin waits for others to share a
    /// frame with.
    pub note_within: Nanos,
    /// A change is sent when clients have changed nothing for so long.
    pub gather_within: Nanos,
    /// How long it waits at most for that, so that sending takes no time from them.
    pub rest_within: Nanos,
    /// How much later than its proxy was killed the origin may still execute a call: the next proxy
    /// begins after that with what the log held, and serves nothing before.
    pub late_max: Nanos,
    /// Bytes of the log in use from which on changes that wait for long are written again; half of
    /// it, if not given.
    pub again_above: Option<u64>,
    /// Whose lease is in the origin's export; none is taken in worlds that have one proxy.
    pub owner: Option<Owner>,
    pub hear: Arc<Hear>,
    /// Mistakes, for tests of tests.
    pub mistake: Option<Mistake>,
}

/// What simulations have to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mistake {
    /// Changes are answered before they are stable in the log.
    AnswerEarly,
    /// Changes go to the origin as they come, whatever they have to follow.
    AnyOrder,
    /// A file that the origin has made gets the origin's handle and number.
    ForgetNames,
    /// What follows a change goes to the origin before the log has noted that one.
    FollowEarly,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("under_way_max", &self.under_way_max)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    /// 128 calls under way: 12,800 a second behind 10 ms.
    fn default() -> Self {
        Self {
            under_way_max: 128,
            patience: None,
            note_within: Nanos::from_millis(10),
            gather_within: Nanos::from_millis(10),
            rest_within: Nanos::from_secs(1),
            // A guess: many times what an origin takes for a call, and little beside a restart.
            late_max: Nanos::from_secs(2),
            again_above: None,
            owner: None,
            hear: Arc::new(|_| Ok(())),
            mistake: None,
        }
    }
}

/// Who takes a lease.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The id of the log.
    pub log: [u8; 16],
    pub host: String,
    pub process: u32,
    pub boot: [u8; 16],
    /// Whose file it is at the origin.
    pub caller: Caller,
}
