//! Calls that took long, one record each, for a log.
//!
//! When a disk stalls, every call is slow: so no more than [`BURST`] records at once are made and
//! [`PER_SECOND`] on average, and the next one says how many were left out. A reader that does not
//! keep up loses records in the same way; the server never waits for it.

use std::fmt;
use std::net::IpAddr;

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::mpsc;
use wire::rpc::{Call, CallHeader};
use wire::xdr::{Decode, Reader};
use wire::{Procedure, dissect};

use super::outcome::Kind;
use super::phase::Phases;

/// Records at once.
pub const BURST: u32 = 20;
/// Records on average.
pub const PER_SECOND: u32 = 10;

/// Bytes of a call's arguments that are shown; names and handles are longer than anyone reads.
const ARGS_LEN_MAX: usize = 300;

/// One slow call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SlowCall {
    pub client: IpAddr,
    /// None where the header made no sense.
    pub procedure: Option<Procedure>,
    pub xid: u32,
    /// Who called, as the credential states it: before squashing.
    pub uid: Option<u32>,
    /// Handle, names and numbers: `file=1f2e.. offset=8192 count=8192 stable=FILE_SYNC`.
    pub args: String,
    /// The path of the file, where files are distinguished ([`Metrics::with_files`]).
    ///
    /// [`Metrics::with_files`]: super::Metrics::with_files
    pub path: Option<String>,
    /// Why it failed, if it did: `NOENT`.
    pub failure: Option<String>,
    pub phases: Phases,
    /// Slow calls since the last record that have none.
    pub suppressed: u64,
}

/// The records, in order.
#[derive(Debug)]
pub struct SlowCalls(mpsc::Receiver<SlowCall>);

impl SlowCalls {
    /// The next one; none when the metrics are gone.
    pub async fn next(&mut self) -> Option<SlowCall> {
        self.0.recv().await
    }
}

/// Decides which calls get a record.
pub(super) struct SlowLog {
    threshold: Nanos,
    records: mpsc::Sender<SlowCall>,
    /// Guards who may make a record; taken by slow calls only.
    rate: Mutex<Rate>,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    /// Records that may be made at `at`, in parts of a second's share.
    credit: Nanos,
    at: Instant,
    suppressed: u64,
    seen: u64,
    suppressed_ever: u64,
}

const SHARE: Nanos = Nanos::from_nanos(1_000_000_000 / PER_SECOND as u64);
const CREDIT_MAX: Nanos = Nanos::from_nanos(SHARE.as_nanos() * BURST as u64);

impl SlowLog {
    pub(super) fn new(threshold: Nanos, now: Instant) -> (Self, SlowCalls) {
        let (records, reader) = mpsc::channel(BURST as usize);
        let rate = Rate { credit: CREDIT_MAX, at: now, suppressed: 0, seen: 0, suppressed_ever: 0 };
        (Self { threshold, records, rate: Mutex::new(rate) }, SlowCalls(reader))
    }

    /// Makes a record of the call if it was slow.
    pub(super) fn look(
        &self,
        client: IpAddr,
        record: &[u8],
        path: impl FnOnce() -> Option<String>,
        failure: Option<Kind>,
        phases: Phases,
        now: Instant,
    ) {
        if phases.total() < self.threshold {
            return;
        }
        let Some(suppressed) = self.rate.lock().admit(now) else { return };
        let call = SlowCall {
            path: path(),
            failure: failure.map(|kind| kind.name().into_owned()),
            phases,
            suppressed,
            ..describe(client, record)
        };
        if self.records.try_send(call).is_err() {
            self.rate.lock().missed(suppressed);
        }
    }

    /// Slow calls, and those of them without a record.
    pub(super) fn counts(&self) -> (u64, u64) {
        let rate = self.rate.lock();
        (rate.seen, rate.suppressed_ever)
    }
}

impl fmt::Debug for SlowLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowLog").field("threshold", &self.threshold).finish_non_exhaustive()
    }
}

impl Rate {
    /// How many were left out before this one; none if it is left out itself.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        self.seen += 1;
        self.credit = (self.credit + now.since(self.at)).min(CREDIT_MAX);
        self.at = self.at.max(now);
        if self.credit < SHARE {
            self.suppressed += 1;
            self.suppressed_ever += 1;
            return None;
        }
        self.credit -= SHARE;
        Some(std::mem::take(&mut self.suppressed))
    }

    /// A record that was admitted was not taken.
    fn missed(&mut self, suppressed: u64) {
        self.suppressed += suppressed + 1;
        self.suppressed_ever += 1;
    }
}

fn describe(client: IpAddr, record: &[u8]) -> SlowCall {
    let mut r = Reader::new(record);
    let header = match Call::decode(&mut r) {
        Ok(Call::Version2(header)) => Some(header),
        _ => None,
    };
    let uid = |header: &CallHeader<'_>| Some(header.credential.auth_sys()?.ok()?.uid);
    SlowCall {
        client,
        procedure: header.as_ref().map(CallHeader::procedure),
        xid: wire::rpc::peek(record).map_or(0, |(xid, _)| xid),
        uid: header.as_ref().and_then(uid),
        args: args(&dissect::call(record)),
        path: None,
        failure: None,
        phases: Phases::default(),
        suppressed: 0,
    }
}

/// What stands behind `call xid=0x1a WRITE`.
fn args(line: &str) -> String {
    let args = line.splitn(4, ' ').nth(3).unwrap_or_default();
    match args.char_indices().nth(ARGS_LEN_MAX) {
        Some((at, _)) => format!("{}..", &args[..at]),
        None => args.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_slow_calls_makes_few_records() {
        let (log, mut records) = SlowLog::new(Nanos::from_millis(1), Instant::EPOCH);
        let client = IpAddr::from([10, 0, 0, 1]);
        let slow = Phases { sync_wait: Nanos::from_millis(2), ..Phases::default() };
        let mut look = |at, phases| {
            log.look(client, &[], || None, None, phases, Instant::EPOCH + Nanos::from_millis(at));
            records.0.try_recv().ok().map(|record| record.suppressed)
        };
        let made: Vec<_> = (0..100).filter_map(|_| look(0, slow)).collect();
        assert_eq!(made, [0; BURST as usize]);
        assert_eq!(look(99, slow), None);
        assert_eq!(look(100, slow), Some(81));
        assert_eq!(look(150, Phases::default()), None, "that was fast");
        assert_eq!(look(201, slow), Some(0));
        assert_eq!(log.counts(), (103, 81));
    }

    #[test]
    fn a_reader_that_does_not_read_is_not_waited_for() {
        let (log, mut records) = SlowLog::new(Nanos::ZERO, Instant::EPOCH);
        for second in 0..1000 {
            let now = Instant::EPOCH + Nanos::from_secs(second);
            log.look(IpAddr::from([10, 0, 0, 1]), &[], || None, None, Phases::default(), now);
        }
        let mut read = 0;
        while let Ok(record) = records.0.try_recv() {
            assert_eq!(record.suppressed, 0);
            read += 1;
        }
        assert_eq!((read, log.counts()), (u64::from(BURST), (1000, 1000 - u64::from(BURST))));
        let now = Instant::EPOCH + Nanos::from_secs(1000);
        log.look(IpAddr::from([10, 0, 0, 1]), &[], || None, None, Phases::default(), now);
        assert_eq!(records.0.try_recv().unwrap().suppressed, 1000 - u64::from(BURST));
    }

    #[test]
    fn arguments_are_what_follows_the_name() {
        assert_eq!(args("call xid=0x1a WRITE file=a1 offset=7"), "file=a1 offset=7");
        assert_eq!(args("call xid=0x1a NULL"), "");
        let long = format!("call xid=0x1a X {}", "y".repeat(1000));
        assert_eq!(args(&long).len(), ARGS_LEN_MAX + 2);
    }
}
