//! Bytes one way between two processes of ours: the throughput that no NFS over the same network
//! can pass.
//!
//! Stresses the sending and the receiving half of the network's path: copies, checksums,
//! interrupts. The 2002 thesis measured the same with a transfer of its own (section 7.1; see
//! [`super::rtt`] for that one) and found 600 Mbit/s where NFS had 221; iperf and ttcp are what
//! others use.
//!
//! It differs from them in what it tells: the sender's rate and the receiver's stand apart, each
//! by its own clock, from its first to its last message; of datagrams that were lost it asks the
//! kernel where (the receiver's socket, its reassembly), on both hosts. There is one connection or
//! socket, and it goes from here to the far end; for the other way the two change places.
//! Datagrams are sent and received by one system call each, as sunrpc does it.

use net::floor::near::{Stream, Streamed, Way};
use perf::units::Nanos;

use super::{Outcome, Progress, Protocol};
use crate::cpu::Usage;

/// What to stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub protocols: Vec<Protocol>,
    pub message_bytes: Vec<usize>,
    /// Of each run.
    pub time: Nanos,
    /// Ends a run, should it come before the time.
    pub bytes_max: u64,
    pub repeats: u32,
    /// Bytes in a second; `None` as fast as they go.
    pub bytes_per_s: Option<u64>,
}

/// All runs with messages of one size.
#[derive(Clone, Debug)]
pub struct Measured {
    pub protocol: Protocol,
    pub message_bytes: usize,
    pub runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub streamed: Streamed,
    /// Processor time of the thread that sends, of the time from the connection to the far end's
    /// report.
    pub cpu: Nanos,
    pub took: Nanos,
}

/// A run that does not count: a part of the time, and at least so long.
const WARM_UP_PART: u64 = 5;
const WARM_UP_MIN: Nanos = Nanos::from_millis(100);

impl Measured {
    /// Datagrams sent that did not come, over all that were sent.
    pub fn loss(run: &Run) -> f64 {
        let Streamed { messages, far, .. } = &run.streamed;
        1.0 - (far.messages as f64 / (*messages).max(1) as f64).min(1.0)
    }
}

/// Streams everything in alternation, so that what drifts drifts under all.
pub fn run(way: &Way<'_>, plan: &Plan, progress: Progress<'_>) -> Outcome<Vec<Measured>> {
    let mut measured: Vec<Measured> = Vec::new();
    for &protocol in &plan.protocols {
        let sizes = plan.message_bytes.iter();
        measured.extend(sizes.map(|&message_bytes| Measured {
            protocol,
            message_bytes,
            runs: Vec::new(),
        }));
    }
    let failed = run_all(way, plan, &mut measured, progress).err();
    Outcome { measured, failed }
}

fn run_all(
    way: &Way<'_>,
    plan: &Plan,
    measured: &mut [Measured],
    progress: Progress<'_>,
) -> Result<(), crate::error::Error> {
    let kinds = measured.len();
    let warm_up = (plan.time / WARM_UP_PART).max(WARM_UP_MIN).min(plan.time);
    for one in measured.iter() {
        stream(way, plan, one, warm_up)?;
    }
    let all = kinds * plan.repeats as usize;
    for turn in 0..all {
        let one = &mut measured[(turn + turn / kinds) % kinds];
        let (began, cpu) = (way.clock.now(), Usage::now());
        let streamed = stream(way, plan, one, plan.time)?;
        let (took, cpu) = (way.clock.now().since(began), Usage::now().since(cpu).thread);
        one.runs.push(Run { streamed, cpu, took });
        progress((turn + 1) as f64 / all as f64);
    }
    Ok(())
}

fn stream(
    way: &Way<'_>,
    plan: &Plan,
    one: &Measured,
    time: Nanos,
) -> Result<Streamed, crate::error::Error> {
    let message_bytes = one.message_bytes;
    let per_s = plan.bytes_per_s.map(|bytes| bytes as f64 / message_bytes as f64);
    let what = Stream { message_bytes, time, bytes_max: plan.bytes_max, per_s };
    Ok(match one.protocol {
        Protocol::Tcp => way.tcp_stream(what)?,
        Protocol::Udp => way.udp_stream(what)?,
    })
}
