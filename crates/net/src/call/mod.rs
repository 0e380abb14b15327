//! The client half of RPC: many calls outstanding, answered in any order.
//!
//! One task drives the connections: it sends what callers submit, matches replies to calls by XID
//! and decides about calls that have waited too long. Callers hold an [`Rpc`], whose clones share
//! the connections; they close when the last is dropped, or when the server ends them. There are
//! three such tasks:
//!
//! - `plain.rs`: one connection, and when it breaks its calls fail. For measurements, where what is
//!   done again silently would be a lie, and for single questions.
//! - `persistent/`: up to 16 connections that are made again when they break; what is unanswered
//!   is retransmitted with the same XIDs. For mounts.
//! - `datagrams.rs`: calls are retransmitted, with the same XID, when `retransmit.rs` says so.
//!
//! A caller who drops its future gives the call up; its reply, should it come, is counted among
//! the bad XIDs.

mod counters;
mod datagrams;
mod estimate;
mod handed;
mod options;
mod persistent;
mod plain;
mod retransmit;
mod submission;
mod timer;
mod transfer_size;
mod window;
mod xids;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use tokio::sync::{mpsc, oneshot};
use wire::record::Message;
use wire::rpc::{CallHeader, OpaqueAuth};
use wire::xdr::Encode;

pub use self::counters::{Counters, ProcedureCounters, TransportCounters};
pub use self::options::{Bulk, Event, Events, NCONNECT_MAX, Options, Recovery, Traits};
use self::retransmit::Rules;
pub use self::submission::Answer;
pub(crate) use self::submission::results_at;
use self::submission::{CallState, Submission};
use crate::clock::Clock;
use crate::error::{CallError, ConnectError};
use crate::transport::Transport;
use crate::transport::datagram::Datagrams;

/// Calls submitted and not yet taken by the driver; more wait in their callers.
const SUBMISSIONS_MAX: usize = 256;

/// How long a call over datagrams waits before anything is known about the server's times, where
/// nobody says (RFC 6298 section 2).
const WAIT_INITIAL: Nanos = Nanos::from_secs(1);

/// Which procedure to call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Target {
    pub program: u32,
    pub version: u32,
    pub procedure: u32,
}

/// A connection to an RPC server; clones share it.
#[derive(Clone, Debug)]
pub struct Rpc {
    submit: mpsc::Sender<Submission>,
    shared: Arc<CallState>,
}

impl Rpc {
    /// Drives `transport` in a task of its own. A call without reply fails after `reply_limit`.
    /// XIDs count up from `first_xid`, which should differ from connection to connection.
    pub fn start(
        transport: impl Transport + 'static,
        clock: &Clock,
        reply_limit: Nanos,
        first_xid: u32,
    ) -> Self {
        let (submit, submissions) = mpsc::channel(SUBMISSIONS_MAX);
        let shared = CallState::new(clock, reply_limit, first_xid);
        shared.counters.lock().transport.connects = 1;
        clock.spawn(plain::Driver::new(transport, submissions, Arc::clone(&shared)).run());
        Self { submit, shared }
    }

    /// As [`Rpc::start`], over datagrams to one server. A call is retransmitted until its limit.
    pub fn start_datagrams(
        socket: impl Datagrams + 'static,
        server: SocketAddr,
        clock: &Clock,
        reply_limit: Nanos,
        first_xid: u32,
    ) -> Self {
        let (recovery, timeo) = (Recovery::Soft, WAIT_INITIAL);
        let options = Options { recovery, timeo, first_xid, ..Options::datagrams() };
        let rules = Rules::datagrams(&options).within(reply_limit);
        Self::over_datagrams(socket, server, clock, &options, rules)
    }

    /// A client that outlives its connections: `connect` makes one whenever one is needed, given
    /// our end of the connection that it follows: from the same port, if it can be had, so that a
    /// server's reply cache knows what is retransmitted. Waits for the first.
    ///
    /// # Errors
    /// That of the first connection, unless [`Options::insist`] has it tried again for ever.
    pub async fn persistent<T, F, Fut>(
        connect: F,
        clock: &Clock,
        options: Options,
    ) -> Result<Self, ConnectError>
    where
        T: Transport + 'static,
        F: Fn(Option<SocketAddr>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ConnectError>> + Send + 'static,
    {
        let first = match connect(None).await {
            Ok(transport) => Some(transport),
            Err(_) if options.insist => None,
            Err(cause) => return Err(cause),
        };
        let (submit, submissions) = mpsc::channel(SUBMISSIONS_MAX);
        let shared = CallState::new(clock, options.major_timeout(), options.first_xid);
        let own = Arc::clone(&shared);
        let connect = Box::new(move |before: Option<SocketAddr>| {
            Box::pin(connect(before)) as persistent::Connecting<T>
        });
        clock.spawn(persistent::Driver::new(first, connect, submissions, own, options).run());
        Ok(Self { submit, shared })
    }

    /// As [`Rpc::persistent`], over datagrams to one server.
    pub fn persistent_datagrams(
        socket: impl Datagrams + 'static,
        server: SocketAddr,
        clock: &Clock,
        options: &Options,
    ) -> Self {
        Self::over_datagrams(socket, server, clock, options, Rules::datagrams(options))
    }

    fn over_datagrams(
        socket: impl Datagrams + 'static,
        server: SocketAddr,
        clock: &Clock,
        options: &Options,
        rules: Rules,
    ) -> Self {
        let (submit, submissions) = mpsc::channel(SUBMISSIONS_MAX);
        let shared = CallState::new(clock, rules.major_timeout(), options.first_xid);
        let own = Arc::clone(&shared);
        let driver = datagrams::Driver::new(socket, server, submissions, own, options, rules);
        clock.spawn(driver.run());
        Self { submit, shared }
    }

    /// Calls a procedure: its arguments are what `encode` writes, followed by `payload`.
    ///
    /// # Errors
    /// [`CallError`]; an error status inside the procedure's results is not one.
    pub async fn call(
        &self,
        target: Target,
        credential: OpaqueAuth<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
        payload: Bytes,
    ) -> Result<Answer, CallError> {
        self.call_sent(target, credential, encode, payload, None).await
    }

    /// As [`Rpc::call`]; `handed` resolves when the message was passed to the socket, or over an
    /// emulated link when its last byte left. It is dropped unused when that never happens.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub async fn call_sent(
        &self,
        target: Target,
        credential: OpaqueAuth<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
        payload: Bytes,
        handed: Option<oneshot::Sender<Instant>>,
    ) -> Result<Answer, CallError> {
        let called = self.shared.clock.now();
        let xid = self.shared.next_xid.fetch_add(1, Ordering::Relaxed);
        let mut head = Vec::with_capacity(256);
        let Target { program, version, procedure } = target;
        let verifier = OpaqueAuth::NONE;
        CallHeader { xid, program, version, procedure, credential, verifier }.encode(&mut head);
        encode(&mut head);
        let (answer, answered) = oneshot::channel();
        let message = Message { head, payload };
        let encoded = self.shared.clock.now();
        let submission = Submission { xid, procedure, message, called, encoded, answer, handed };
        if self.submit.send(submission).await.is_err() {
            return Err(self.failure());
        }
        answered.await.unwrap_or_else(|_driver_gone| Err(self.failure()))
    }

    /// What the next call will have.
    pub fn next_xid(&self) -> u32 {
        self.shared.next_xid.load(Ordering::Relaxed)
    }

    /// The next call has this XID: to retransmit what another connection has carried. Only while no
    /// call is under way.
    pub fn go_on_from_xid(&self, xid: u32) {
        self.shared.next_xid.store(xid, Ordering::Relaxed);
    }

    /// How long a call waits for its reply.
    pub fn reply_limit(&self) -> Nanos {
        self.shared.reply_limit
    }

    /// Replies that came too late or were never requested.
    pub fn bad_xids(&self) -> u64 {
        self.shared.counters.lock().transport.bad_xids
    }

    /// Calls that were retransmitted.
    pub fn retransmissions(&self) -> u64 {
        self.shared.counters.lock().retransmissions()
    }

    /// Everything that is counted, as it is now.
    pub fn counters(&self) -> Counters {
        self.shared.counters.lock().clone()
    }

    /// The answer to a question that needed no call: without results, and without time passed.
    pub fn without_call(&self) -> Answer {
        let now = self.shared.clock.now();
        Answer {
            record: Bytes::new(),
            results_at: 0,
            called: now,
            encoded: now,
            sent: now,
            transmissions: 0,
            received: now,
        }
    }

    /// The time of day, as the client's clock has it.
    pub fn since_1970(&self) -> Duration {
        self.shared.clock.since_1970()
    }

    /// Most bytes to ask for in one READ now: less than at first where large datagrams are lost.
    pub fn read_bytes_max(&self) -> u32 {
        self.shared.read_bytes.load(Ordering::Relaxed)
    }

    /// Most bytes to send in one WRITE now.
    pub fn write_bytes_max(&self) -> u32 {
        self.shared.write_bytes.load(Ordering::Relaxed)
    }

    fn failure(&self) -> CallError {
        self.shared.failure.lock().clone().unwrap_or(CallError::Closed)
    }
}
