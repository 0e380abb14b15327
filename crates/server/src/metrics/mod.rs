//! What the engine does and how long it takes, counted per procedure and per client.
//!
//! ```text
//!   record --begin--> Watch --(queue, decode, store, sync wait)--> end --> counters, slow log
//!   reply's last byte ------------------------------------------> sent --> counters
//!   scrape --> Page <-- Metrics::write, readings of others
//! ```
//!
//! An engine without metrics pays for a branch. With them a call costs three or four looks at the
//! clock and some twenty additions to counters of its own thread (`counter.rs`): no lock, no
//! shared cache line. The clock is an argument, as everywhere: [`MonotonicClock`].

mod clients;
mod counter;
mod files;
mod histogram;
mod outcome;
mod page;
mod phase;
mod procedures;
mod slow;
mod text;
mod watch;

use std::fmt;
use std::sync::Arc;

use perf::units::{Instant, Nanos};
use wire::rpc::Answer;

pub use self::clients::{CLIENTS_MAX, IDLE_MAX};
use self::clients::{ClientCounters, Clients};
use self::counter::{Counter, Shards};
pub use self::files::FILES_MAX;
use self::files::Files;
use self::outcome::Kind as Failure;
pub use self::phase::{Phase, Phases};
use self::procedures::{Procedures, Served, Slot, Slots};
use self::slow::SlowLog;
pub use self::slow::{BURST, PER_SECOND, SlowCall, SlowCalls};
pub use self::text::{CONTENT_TYPE, Family, Kind, Page, Reading};
pub(crate) use self::watch::{Watch, procedure, queue};
use crate::peer::Peer;

/// Tells a time that never goes back, the same as the one by which calls arrive.
pub type MonotonicClock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Counters; clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    clock: MonotonicClock,
    slots: Slots,
    shards: Shards<Shard>,
    clients: Clients,
    slow: Option<SlowLog>,
    files: Option<Files>,
}

/// What one thread counts.
#[derive(Debug, Default)]
struct Shard {
    procedures: Procedures,
    clients: ClientCounters,
    begun: Counter,
    ended: Counter,
    abandoned: Counter,
    garbled: Counter,
}

impl Metrics {
    pub fn new(clock: MonotonicClock) -> Self {
        Self::with(clock, None)
    }

    /// And a record of each call that takes `threshold` or longer until its reply is there.
    pub fn with_slow_log(clock: MonotonicClock, threshold: Nanos) -> (Self, SlowCalls) {
        let (slow, records) = SlowLog::new(threshold, clock());
        (Self::with(clock, Some(slow)), records)
    }

    /// And counts by file, with their names ([`Self::write_files`]); before it is shared.
    #[must_use]
    pub fn with_files(mut self) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.files = Some(Files::new());
        }
        self
    }

    /// Writes what was counted of files, if they are distinguished.
    pub fn write_files(&self, page: &mut Page) -> bool {
        self.0.files.as_ref().inspect(|files| files.write(page)).is_some()
    }

    fn with(clock: MonotonicClock, slow: Option<SlowLog>) -> Self {
        let (slots, shards, clients) = (Slots::new(), Shards::default(), Clients::new());
        Self(Arc::new(Inner { clock, slots, shards, clients, slow, files: None }))
    }

    /// The last byte of a reply was given to the system, so long after the reply was there.
    pub fn sent(&self, tag: u32, since_reply: Nanos) {
        if let Some(slot) = Slot::of_tag(tag) {
            let (shard, writers) = self.0.shards.mine();
            shard.procedures.count_sent(slot, since_reply, writers);
        }
    }

    pub(crate) fn begin(&self, arrived: Option<Instant>) -> Watch<'_> {
        let (shard, writers) = self.0.shards.mine();
        shard.begun.add(1, writers);
        Watch::begin(self, arrived)
    }

    fn ended(
        &self,
        peer: Peer,
        record: &[u8],
        answer: &Answer,
        phases: Phases,
        now: Instant,
    ) -> u32 {
        let (shard, writers) = self.0.shards.mine();
        shard.ended.add(1, writers);
        let reply = match answer {
            Answer::Reply(reply) => reply,
            // The reply cache counts those.
            Answer::Nothing => return 0,
            Answer::NotACall => {
                shard.garbled.add(1, writers);
                return 0;
            }
        };
        let slot = self.0.slots.of(record);
        let failure = Failure::of(&reply.head, self.0.slots.has_status(slot));
        let served = Served {
            slot,
            failure,
            received_bytes: record.len() as u64,
            sent_bytes: reply.wire_len() as u64,
            phases,
        };
        shard.procedures.count(&served, writers);
        let client = peer.address.ip().to_canonical();
        let shards = self.shards().map(|shard| &shard.clients);
        self.0.clients.count((&shard.clients, writers), shards, client, &served, now);
        if let Some(files) = &self.0.files {
            files.count(record, &reply.head, &served);
        }
        if let Some(slow) = &self.0.slow {
            let path = || self.0.files.as_ref()?.path(record);
            slow.look(client, record, path, failure, phases, now);
        }
        slot.tag()
    }

    fn abandoned(&self) {
        let (shard, writers) = self.0.shards.mine();
        shard.abandoned.add(1, writers);
        shard.ended.add(1, writers);
    }

    fn now(&self) -> Instant {
        (self.0.clock)()
    }

    fn clients(&self) -> &Clients {
        &self.0.clients
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> + Clone {
        self.0.shards.iter()
    }

    fn sum(&self, counter: impl Fn(&Shard) -> &Counter) -> u64 {
        self.shards().fold(0, |sum: u64, shard| sum.wrapping_add(counter(shard).value()))
    }

    fn in_progress(&self) -> u64 {
        let ended = self.sum(|shard| &shard.ended);
        self.sum(|shard| &shard.begun).saturating_sub(ended)
    }

    fn slow_counts(&self) -> Option<(u64, u64)> {
        self.0.slow.as_ref().map(SlowLog::counts)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("slow", &self.0.slow).finish_non_exhaustive()
    }
}
