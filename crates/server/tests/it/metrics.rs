//! What an engine counts, and where it says that the time goes. The clock is moved by hand, and
//! by the store: it takes [`STORE`] for everything it stamps.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use perf::units::{Instant, Nanos};
use server::metrics::{Metrics, MonotonicClock, Page, SlowCall, SlowCalls};
use server::store::mem::{MemOptions, MemStore};
use server::types::Time;
use server::{CommitMode, Engine, EngineConfig, Export, Exports, Replies, Times};
use wire::Procedure;
use wire::nfs3::{self, DirOp, FileHandle, Procedure as P, Sattr3, StableHow};
use wire::rpc::{Answer, AuthStat, CallHeader, OpaqueAuth, ReplyHeader};
use wire::xdr::Encode;

use crate::held::Held;
use crate::prometheus::Scrape;
use crate::world::{PEER, XID, credential, mode, results, write_args};

/// How long the store works on what changes a file.
const STORE: Nanos = Nanos::from_millis(3);

struct Rig {
    engine: Engine<Held<MemStore>>,
    metrics: Metrics,
    slow: SlowCalls,
    now: Arc<AtomicU64>,
}

type Pending<'r> = Pin<Box<dyn Future<Output = (Answer, u32)> + Send + 'r>>;

impl Rig {
    fn new(config: EngineConfig) -> Self {
        let now = Arc::new(AtomicU64::new(1));
        let hand = Arc::clone(&now);
        let store_time = move || {
            hand.fetch_add(STORE.as_nanos(), Ordering::Relaxed);
            Time::default()
        };
        let hand = Arc::clone(&now);
        let clock: MonotonicClock =
            Arc::new(move || Instant::from_nanos(hand.load(Ordering::Relaxed)));
        let store = Held::new(MemStore::new(MemOptions::default(), Arc::new(store_time)));
        let times = Times { of_day: Arc::new(Time::default), passing: Arc::clone(&clock) };
        let (metrics, slow) = Metrics::with_slow_log(clock, Nanos::from_millis(10));
        let engine = Engine::new(Exports::one(Export::default(), store), config)
            .remembering(Replies::in_memory(100, times))
            .measured(metrics.clone());
        Self { engine, metrics, slow, now }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    fn pass(&self, millis: u64) {
        self.now.fetch_add(Nanos::from_millis(millis).as_nanos(), Ordering::Relaxed);
    }

    fn start(&self, procedure: P, args: &impl Encode) -> Pending<'_> {
        self.send(record(Procedure::Nfs3(procedure), args))
    }

    fn send(&self, record: Bytes) -> Pending<'_> {
        Box::pin(self.engine.call_arrived(PEER, record, Some(self.now())))
    }

    fn create(&self, name: &[u8]) -> FileHandle {
        let where_ = DirOp { dir: self.engine.root(), name };
        let how = nfs3::create::CreateHow::Unchecked(mode(0o666));
        let (reply, _) = ready(&mut self.start(P::Create, &nfs3::create::Args { where_, how }));
        let reply: nfs3::create::Reply = results(&reply.reply().unwrap());
        reply.unwrap().obj.unwrap()
    }

    fn scrape(&self) -> Scrape {
        let mut page = Page::default();
        self.engine.write_metrics(&mut page);
        Scrape::of(page.as_str())
    }

    fn slow(&mut self) -> Option<SlowCall> {
        self.slow.next().now_or_never().flatten()
    }
}

fn record(procedure: Procedure, args: &impl Encode) -> Bytes {
    let body = credential((1000, 100), &[]);
    let mut record = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body)).to_bytes();
    args.encode(&mut record);
    Bytes::from(record)
}

#[track_caller]
fn ready(pending: &mut Pending<'_>) -> (Answer, u32) {
    pending.as_mut().now_or_never().expect("it need not wait")
}

fn is_pending(pending: &mut Pending<'_>) -> bool {
    pending.as_mut().now_or_never().is_none()
}

/// The mean of a phase in milliseconds.
#[track_caller]
fn phase(scrape: &Scrape, procedure: &str, phase: &str) -> f64 {
    let labels = [("procedure", procedure), ("phase", phase)];
    scrape.value("nfskit_phase_seconds_sum", &labels) * 1e3
}

#[track_caller]
fn assert_phases(scrape: &Scrape, procedure: &str, expected: [f64; 4]) {
    let found = ["queue", "decode", "store", "sync_wait"].map(|p| phase(scrape, procedure, p));
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(close, "{procedure}: {found:?} and not {expected:?}");
    let labels = [("procedure", procedure)];
    let total = scrape.value("nfskit_call_seconds_sum", &labels) * 1e3;
    assert!((total - expected.iter().sum::<f64>()).abs() < 1e-9, "{procedure}: {total} ms");
}

#[test]
fn a_sync_is_waited_for_and_the_store_works() {
    let mut rig = Rig::new(EngineConfig::default());
    let file = rig.create(b"f");
    let args = write_args(file, 0, b"data", StableHow::FileSync);
    let mut write = rig.start(P::Write, &args);
    rig.pass(2); // it was read, and others were served first
    assert!(is_pending(&mut write));
    rig.pass(10);
    rig.engine.store().release();
    let (answer, tag) = ready(&mut write);
    assert!(matches!(answer, Answer::Reply(_)));
    drop(write);
    rig.metrics.sent(tag, Nanos::from_millis(7));
    let scrape = rig.scrape();
    assert_phases(&scrape, "WRITE", [2.0, 0.0, 3.0, 10.0]);
    assert_eq!(phase(&scrape, "WRITE", "send"), 7.0);
    let slow = rig.slow().unwrap();
    assert_eq!(slow.procedure, Some(Procedure::Nfs3(P::Write)));
    assert_eq!((slow.xid, slow.uid, slow.client), (XID, Some(1000), PEER.address.ip()));
    assert!(slow.args.contains("stable=FILE_SYNC"), "{}", slow.args);
    assert_eq!(slow.phases.total(), Nanos::from_millis(15));
    assert_eq!(rig.slow(), None, "CREATE was not slow");
}

#[test]
fn who_waits_for_a_thread_is_queued() {
    for (threads, commit_mode) in [(1, CommitMode::Concurrent), (64, CommitMode::Stall)] {
        let rig = Rig::new(EngineConfig { threads, commit_mode, ..EngineConfig::default() });
        let file = rig.create(b"f");
        let mut commit = rig.start(P::Commit, &nfs3::commit::Args { file, offset: 0, count: 0 });
        assert!(is_pending(&mut commit));
        let mut getattr = rig.start(P::Getattr, &nfs3::getattr::Args { object: file });
        rig.pass(1);
        assert!(is_pending(&mut getattr));
        rig.pass(20);
        rig.engine.store().release();
        ready(&mut commit);
        drop(commit);
        ready(&mut getattr);
        let scrape = rig.scrape();
        // It waits for what the store does for the other, too.
        assert_phases(&scrape, "GETATTR", [24.0, 0.0, 0.0, 0.0]);
        assert_phases(&scrape, "COMMIT", [0.0, 0.0, 3.0, 21.0]);
    }
}

#[test]
fn calls_and_their_bytes_are_counted_by_procedure_and_client() {
    let rig = Rig::new(EngineConfig::default());
    let file = rig.create(b"f");
    let call = record(Procedure::Nfs3(P::Getattr), &nfs3::getattr::Args { object: file });
    let (mut received, mut sent) = (0.0, 0.0);
    for _ in 0..3 {
        let (answer, _) = ready(&mut rig.send(call.clone()));
        received += call.len() as f64;
        sent += answer.reply().unwrap().wire_len() as f64;
    }
    let scrape = rig.scrape();
    let getattr = [("program", "nfs"), ("version", "3"), ("procedure", "GETATTR")];
    assert_eq!(scrape.value("nfskit_calls_total", &getattr), 3.0);
    assert_eq!(scrape.value("nfskit_received_bytes_total", &getattr), received);
    assert_eq!(scrape.value("nfskit_sent_bytes_total", &getattr), sent);
    let client = [("client", "10.0.0.7")];
    assert_eq!(scrape.value("nfskit_client_calls_total", &client), 4.0);
    assert_eq!(scrape.value("nfskit_client_errors_total", &client), 0.0);
    assert_eq!(scrape.value("nfskit_client_store_seconds_total", &client), 0.003);
    assert_eq!(scrape.value("nfskit_calls_in_progress", &[]), 0.0);
    assert!(!scrape.has("nfskit_errors_total"));
    assert_eq!(scrape.value("nfskit_store_memory_files", &[("export", "/")]), 2.0);
}

#[test]
fn failures_are_counted_by_their_status() {
    let rig = Rig::new(EngineConfig::default());
    let root = rig.engine.root();
    let lookup = nfs3::lookup::Args { what: DirOp { dir: root, name: b"none" } };
    ready(&mut rig.start(P::Lookup, &lookup));
    ready(&mut rig.start(P::Lookup, &lookup));
    ready(&mut rig.start(P::Lookup, &())); // garbage
    let unknown = Procedure::Unknown { program: 7, version: 8, procedure: 9 };
    ready(&mut rig.send(record(unknown, &())));
    let bad = CallHeader::new(XID, Procedure::Nfs3(P::Null), OpaqueAuth { flavor: 77, body: &[] });
    let (answer, _) = ready(&mut rig.send(Bytes::from(bad.to_bytes())));
    let refused = ReplyHeader::auth_error(XID, AuthStat::BadCred).to_bytes();
    assert_eq!(answer.reply().unwrap().to_vec(), refused);
    let (answer, tag) = ready(&mut rig.send(Bytes::from_static(b"no call")));
    assert_eq!((answer, tag), (Answer::NotACall, 0));

    let scrape = rig.scrape();
    let errors = |procedure, layer, status| {
        let labels = [("procedure", procedure), ("layer", layer), ("status", status)];
        scrape.value("nfskit_errors_total", &labels)
    };
    assert_eq!(errors("LOOKUP", "nfs", "NOENT"), 2.0);
    assert_eq!(errors("LOOKUP", "rpc", "GARBAGE_ARGS"), 1.0);
    assert_eq!(errors("?", "rpc", "PROG_UNAVAIL"), 1.0);
    assert_eq!(errors("NULL", "rpc", "AUTH_BADCRED"), 1.0);
    assert_eq!(scrape.value("nfskit_calls_total", &[("procedure", "LOOKUP")]), 3.0);
    assert_eq!(scrape.value("nfskit_client_errors_total", &[("client", "10.0.0.7")]), 5.0);
    assert_eq!(scrape.value("nfskit_records_garbled_total", &[]), 1.0);
}

#[test]
fn retransmissions_and_calls_given_up_are_counted() {
    let rig = Rig::new(EngineConfig::default());
    let file = rig.create(b"f");
    let args = nfs3::setattr::Args { object: file, new_attributes: Sattr3::default(), guard: None };
    ready(&mut rig.start(P::Setattr, &args));
    ready(&mut rig.start(P::Setattr, &args));
    let write = write_args(file, 0, b"data", StableHow::FileSync);
    let mut first = rig.start(P::Write, &write);
    assert!(is_pending(&mut first));
    assert_eq!(ready(&mut rig.start(P::Write, &write)), (Answer::Nothing, 0));
    assert_eq!(rig.scrape().value("nfskit_calls_in_progress", &[]), 1.0);
    drop(first);
    let scrape = rig.scrape();
    for (name, value) in [
        ("nfskit_calls_in_progress", 0.0),
        ("nfskit_calls_abandoned_total", 1.0),
        ("nfskit_replies_remembered", 3.0),
        ("nfskit_replies_replayed_total", 1.0),
        ("nfskit_replies_in_progress_total", 1.0),
        ("nfskit_replies_in_doubt_total", 0.0),
        ("nfskit_replies_evicted_total", 0.0),
    ] {
        assert_eq!(scrape.value(name, &[]), value, "{name}");
    }
}

#[test]
fn an_engine_without_metrics_has_no_tags() {
    let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
    let engine = Engine::new(Exports::one(Export::default(), store), EngineConfig::default());
    let call = record(Procedure::Nfs3(P::Null), &());
    let (answer, tag) = engine.call_arrived(PEER, call, None).now_or_never().unwrap();
    assert!(matches!(answer, Answer::Reply(_)));
    assert_eq!(tag, 0);
}

#[test]
fn every_family_is_in_the_manual() {
    let manual = include_str!("../../../../docs/metrics.md");
    let rig = Rig::new(EngineConfig::default());
    rig.create(b"f");
    let scrape = rig.scrape();
    let missing: Vec<_> =
        scrape.families().filter(|name| !manual.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
