//! The packet traces of Boumenot 2002, chapter 11, made again in a world, and explained by
//! `analyze::trace` from their packets alone.
//!
//! As there: several calls at once until data are committed, which stops everything; then one call
//! at a time. Data go to memory (UNSTABLE), and a COMMIT writes them to the disk of Beast (46.55
//! MB/s) or of Revanche (33.82 MB/s: 242.23 us for 8 KiB). Shorter than there: 8 MiB between
//! commits instead of 100 MB. Over TCP.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use analyze::capture::Capture;
use analyze::trace::{Analyzer, Cause, Filter, Talk};
use bytes::Bytes;
use client::transfer::{Kind, Limit};
use load::scratch::Scratch;
use load::seqwrite::{self, Run, Workload};
use net::call::Rpc;
use net::clock::Clock;
use net::error::TransportError;
use net::shape::profile::Profile;
use net::transport::Transport;
use parking_lot::Mutex;
use perf::units::Nanos;
use server::store::sim::{SimOptions, WriteBack};
use wire::nfs3::{Procedure, StableHow};
use wire::record::{Fragment, Message};
use world::{ClientSpec, Costs, ServerSpec, World};

const CALL_BYTES: u32 = 8192;
const ROUND_TRIP_US: f64 = 175.39;
const OP_US: f64 = 61.87;
const COMMIT_BYTES: u64 = 8 << 20;
const REPLY_LIMIT: Nanos = Nanos::from_secs(60);

/// A capture in memory; guards the bytes of the file, and how far both directions are.
#[derive(Debug, Default)]
struct Tape(Mutex<(Vec<u8>, [u32; 2])>);

/// A connection that is captured as at the client's end.
#[derive(Debug)]
struct Taped {
    inner: Box<dyn Transport>,
    tape: Arc<Tape>,
    clock: Clock,
}

impl Tape {
    fn begin() -> Arc<Self> {
        let mut head = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
        Arc::new(Self(Mutex::new((head, [0; 2]))))
    }

    /// A message of the client (0) or the server (1) as one segment of raw IP.
    fn add(&self, from: usize, at: Nanos, parts: [&[u8]; 2]) {
        let message: Vec<u8> = parts.concat();
        let len = u32::try_from(message.len()).unwrap();
        let payload = [&Fragment { last: true, len }.to_header()[..], &message].concat();
        let mut tape = self.0.lock();
        let (file, sent) = &mut *tape;
        let total = u32::try_from(40 + payload.len()).unwrap();
        let ns = 1_000_000_000_000 + at.as_nanos();
        for word in [ns / 1_000_000_000, ns % 1_000_000_000, total.into(), total.into()] {
            file.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        let mut head = [0_u8; 40];
        (head[0], head[8], head[9]) = (0x45, 64, 6);
        head[2..4].copy_from_slice(&u16::try_from(total).unwrap().to_be_bytes());
        let ends = [([10, 0, 0, 1], 1023_u16), ([10, 0, 0, 2], 2049)];
        head[12..16].copy_from_slice(&ends[from].0);
        head[16..20].copy_from_slice(&ends[1 - from].0);
        head[20..22].copy_from_slice(&ends[from].1.to_be_bytes());
        head[22..24].copy_from_slice(&ends[1 - from].1.to_be_bytes());
        head[24..28].copy_from_slice(&sent[from].to_be_bytes());
        head[28..32].copy_from_slice(&sent[1 - from].to_be_bytes());
        (head[32], head[33], head[34]) = (0x50, 0x10, 0xff);
        file.extend(head);
        file.extend(&payload);
        sent[from] = sent[from].wrapping_add(u32::try_from(payload.len()).unwrap());
    }
}

impl Taped {
    fn now(&self) -> Nanos {
        self.clock.now().since(perf::units::Instant::EPOCH)
    }
}

impl Transport for Taped {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        let polled = self.inner.poll_receive(cx);
        if let Poll::Ready(Ok(Some(message))) = &polled {
            self.tape.add(1, self.now(), [message, &[]]);
        }
        polled
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn send(&mut self, message: Message) {
        self.tape.add(0, self.now(), [&message.head, &message.payload]);
        self.inner.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_flush(cx)
    }

    fn peer(&self) -> SocketAddr {
        self.inner.peer()
    }

    fn unsent_bytes(&self) -> usize {
        self.inner.unsent_bytes()
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_close(cx)
    }
}

fn spec(disk: &str) -> ServerSpec {
    let costs = Costs::default().with(Procedure::Write, Nanos::from_micros_f64(OP_US));
    let store = SimOptions {
        disk: disk.parse().unwrap(),
        write_back: WriteBack::OnDemand,
        ..SimOptions::default()
    };
    ServerSpec { cores: 1, costs, store, ..ServerSpec::default() }.stalling()
}

/// Transfers until the first commit with four calls at once, and behind it with one; their runs,
/// and the capture.
fn played(disk: &'static str) -> (Vec<Run>, Vec<u8>) {
    let tape = Tape::begin();
    let taped = Arc::clone(&tape);
    let world = World::new(1);
    let runs = world.run(move |stage| async move {
        let server = stage.server(spec(disk));
        let latency = Nanos::from_micros_f64(ROUND_TRIP_US / 2.0);
        let link = Profile::of("crossover", latency, 1_000_000_000);
        let client = stage.client(ClientSpec::behind(link));
        let inner = client.connection(&server).unwrap();
        let clock = stage.clock().clone();
        let line = Taped { inner, tape: taped, clock: clock.clone() };
        let rpc = Rpc::start(line, &clock, REPLY_LIMIT, 1);
        let session = client.session(rpc, &server).await.unwrap();
        let scratch = Scratch::create(&session, "traces").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let data = seqwrite::pattern(CALL_BYTES as usize);
        let mut runs = Vec::new();
        for (outstanding, commits) in [(4, 1), (1, 2)] {
            let workload = Workload {
                call_bytes: CALL_BYTES,
                outstanding,
                file_bytes: 64 << 20,
                total_bytes: commits * COMMIT_BYTES,
                commit_bytes: COMMIT_BYTES,
                stable: StableHow::Unstable,
                limit: Limit::default(),
            };
            runs.push(seqwrite::run(&clock, &session, file, &data, workload).await.unwrap());
        }
        runs
    });
    let capture = std::mem::take(&mut tape.0.lock().0);
    (runs.unwrap(), capture)
}

fn analyzed(capture: Vec<u8>) -> Analyzer {
    let mut capture = Capture::open("tape", Box::new(Cursor::new(capture))).unwrap();
    let mut analyzer = Analyzer::new(Filter::default());
    while capture.advance().unwrap() {
        analyzer.packet(&capture.packet().unwrap(), &mut |_, _, _| {});
    }
    analyzer.end();
    analyzer
}

/// The time from one WRITE to the next, while one is outstanding, as the client itself saw it.
fn true_cycle_us(run: &Run) -> f64 {
    let writes: Vec<_> = run.events.iter().filter(|event| event.kind == Kind::Write).collect();
    let cycles = writes.windows(2).map(|pair| pair[1].sent.since(pair[0].sent).as_micros_f64());
    let mut cycles: Vec<f64> = cycles.collect();
    cycles.sort_by(f64::total_cmp);
    cycles[cycles.len() / 2]
}

fn explains(disk: &'static str, block_us: f64) {
    let (runs, capture) = played(disk);
    let analyzer = analyzed(capture);
    let talks: Vec<&Talk> = analyzer.talks().iter().map(|(_, talk)| talk).collect();
    let [talk] = talks[..] else { panic!("one connection") };
    let pace = &talk.pace;

    // The stalls are commits, each as long as the disk needs.
    let mut gaps = pace.gaps.clone();
    gaps.sort_by_key(|gap| gap.begin_ns);
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    #[expect(clippy::cast_precision_loss, reason = "a number of blocks")]
    let disk_us = (COMMIT_BYTES / u64::from(CALL_BYTES)) as f64 * block_us;
    for gap in &gaps {
        assert_eq!(gap.cause, Cause::Commit);
        let us = Nanos::from_nanos(gap.ns()).as_micros_f64();
        assert!((us / disk_us - 1.0).abs() < 0.05, "{us} {disk_us}");
    }

    // Several calls before the first of them; stop-and-wait behind it, and slower.
    let phases = pace.phases(talk.first_ns);
    let shares: Vec<f64> = phases.iter().filter_map(|phase| phase.stop_and_wait()).collect();
    assert!(shares[0] < 0.1, "{shares:?}");
    assert!(shares[1..].iter().all(|share| *share > 0.99), "{shares:?}");
    let slopes: Vec<f64> = phases.iter().filter_map(|phase| phase.bytes_per_s()).collect();
    assert!(slopes[0] > 1.5 * slopes[1], "{slopes:?}");

    // T_cycle: of the client's own times, and of the formula.
    let cycle_us = pace.write_cycle.quantile(0.5).as_micros_f64();
    let truth_us = true_cycle_us(&runs[1]);
    assert!((cycle_us / truth_us - 1.0).abs() < 0.05, "{cycle_us} {truth_us}");
    let formula_us = ROUND_TRIP_US + OP_US + f64::from(CALL_BYTES) * 8.0 / 1000.0;
    assert!((cycle_us / formula_us - 1.0).abs() < 0.05, "{cycle_us} {formula_us}");
}

#[test]
fn the_fast_disks_trace_is_explained_by_commits_and_stop_and_wait() {
    explains("rate=46.55MB/s,seek=0", 175.98);
}

#[test]
fn the_slow_disks_trace_is_explained_by_longer_commits() {
    explains("rate=33.82MB/s,seek=0", 242.23);
}
