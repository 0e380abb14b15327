//! What a call's time is spent on, one phase after the other.
//!
//! ```text
//!   record read   service begins             reply there      last byte given to the system
//!      |-- queue --|-- decode --|-- store / sync wait --|-- send --|
//! ```

use perf::units::Nanos;

perf::named! {
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Phase {
        /// From the record being read to service begun, and waiting for a turn: for a permit, or
        /// while a commit holds the gate.
        Queue => "queue",
        /// The engine's own work: header, credential, export; looking for an earlier reply and
        /// recording this one.
        Decode => "decode",
        /// The procedure and its store at work on this processor, system calls included, and
        /// encoding what came of it.
        Store => "store",
        /// The procedure waiting for its store: for a sync or another thread that reads a disk.
        SyncWait => "sync_wait",
        /// From the reply being there to its last byte given to the system, as far as it is known.
        Send => "send",
    }
}

/// How long each phase of a call took until its reply was there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Phases {
    pub queue: Nanos,
    pub decode: Nanos,
    pub store: Nanos,
    pub sync_wait: Nanos,
}

impl Phases {
    /// From the record's arrival to the reply.
    pub fn total(&self) -> Nanos {
        self.queue + self.decode + self.store + self.sync_wait
    }

    pub fn iter(&self) -> impl Iterator<Item = (Phase, Nanos)> {
        let Self { queue, decode, store, sync_wait } = *self;
        Phase::ALL.into_iter().zip([queue, decode, store, sync_wait])
    }
}
