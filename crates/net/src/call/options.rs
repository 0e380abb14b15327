//! How stubborn a client is: `nconnect`, `hard` and `soft`, `timeo`, `retrans`, as in nfs(5).

use std::fmt;
use std::sync::Arc;

use perf::units::Nanos;

use crate::error::CallError;

/// Most connections to one server, as Linux has it.
pub const NCONNECT_MAX: u32 = 16;

/// What becomes of a call that a server does not answer in `timeo` x `retrans`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Recovery {
    /// It is retransmitted for ever, and reported once.
    #[default]
    Hard,
    /// It fails.
    Soft,
}

/// What a client that waits reports.
#[derive(Clone, Debug)]
pub enum Event {
    /// A call had no reply for `timeo` x `retrans`, and the client goes on trying.
    NotResponding,
    /// The first reply since.
    Responding,
    /// A connection with calls under way broke; what is unanswered is retransmitted.
    Disconnected { cause: CallError },
    /// A connection was made again.
    Reconnected,
}

/// Called for every [`Event`], from the task that drives the calls: it must not block.
#[derive(Clone, Default)]
pub struct Events(Option<Arc<dyn Fn(Event) + Send + Sync>>);

impl Events {
    pub fn new(observer: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observer)))
    }

    pub(super) fn emit(&self, event: Event) {
        if let Some(observer) = &self.0 {
            observer(event);
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Events(observed)" } else { "Events(ignored)" })
    }
}

/// Which way a procedure moves data, for those that move much.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bulk {
    /// In its reply.
    Read,
    /// In its call.
    Write,
}

/// What has to be known of a program's procedures; numbers mean nothing here.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Procedures of one class share an estimate of their response time. Those of none always wait
    /// `timeo`: their times say nothing about the next one's.
    pub class: fn(u32) -> Option<u32>,
    pub bulk: fn(u32) -> Option<Bulk>,
    /// Whether it may be done twice, also behind later calls: it changes nothing.
    pub is_idempotent: fn(u32) -> bool,
}

impl Traits {
    /// An estimate for each procedure, none moves much, and each may change something.
    pub const UNKNOWN: Self = Self { class: Some, bulk: |_| None, is_idempotent: |_| false };
}

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Options {
    /// Connections, 1 to [`NCONNECT_MAX`]; over datagrams there is one socket whatever it says.
    pub nconnect: u32,
    pub recovery: Recovery,
    /// How long a call waits for its reply before it is retransmitted; over datagrams before
    /// anything is known about the server's times, and for procedures without a class.
    pub timeo: Nanos,
    /// After so many times `timeo` a call is given up, or the server is reported not to respond.
    pub retrans: u32,
    /// Wait for a server that has never answered, too. Without it whoever never answers is no
    /// server, and its calls fail.
    pub insist: bool,
    /// How long a hard client waits for the first reply of all, unless it insists.
    pub first_reply_limit: Nanos,
    /// Calls under way; more wait in their callers.
    pub in_flight_max: usize,
    /// What is transferred in one call over datagrams at first and at most.
    pub transfer_bytes_max: u32,
    pub traits: Traits,
    /// XIDs count up from here; it should differ from one client to the next.
    pub first_xid: u32,
    pub events: Events,
}

impl Options {
    /// What nfs(5) has for TCP: 60 s, 2 times, hard.
    pub fn stream() -> Self {
        Self {
            nconnect: 1,
            recovery: Recovery::Hard,
            timeo: Nanos::from_secs(60),
            retrans: 2,
            insist: false,
            first_reply_limit: Nanos::from_secs(20),
            in_flight_max: 1024,
            transfer_bytes_max: u32::MAX,
            traits: Traits::UNKNOWN,
            first_xid: 0,
            events: Events::default(),
        }
    }

    /// For UDP: 1.1 s, which doubles each time, and 3 times. A datagram of 32 KiB is the largest
    /// that clients and servers have agreed on.
    pub fn datagrams() -> Self {
        Self {
            timeo: Nanos::from_millis(1_100),
            retrans: 3,
            in_flight_max: 256,
            transfer_bytes_max: 32 << 10,
            ..Self::stream()
        }
    }

    /// How long a call may be without reply.
    pub fn major_timeout(&self) -> Nanos {
        self.timeo * u64::from(self.retrans.max(1))
    }
}
