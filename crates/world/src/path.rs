//! A path of the transaction model as a world: the production client and server with a link, a
//! processor and a disk of these times, and a sequential write through them.
//!
//! | in the model | in the world |
//! |---|---|
//! | 2 T_prop | latency of the link, half either way |
//! | G, g (the slowest stage's) | rate of the link, and its pause after each message |
//! | an end that takes longer than the link | the same pause |
//! | T_ser beyond G | time of the server for each byte, of many processors |
//! | T_op | time of the server for a WRITE, of many processors |
//! | the one processor's time for a call | of one; what is left of the cycle is the link's |
//! | o | time of the client for each call it sends |
//! | T_sync, rate | the disk; it stalls, or writes back early |
//!
//! So what waits for what follows from the code, and not from a formula. What the model has and a
//! world has not: `unhidden`, and of `left` only whether nearly all of the work is left to a
//! COMMIT.

use client::transfer::Kind;
use load::scratch::Scratch;
use load::seqwrite::{self, Run, Workload};
use net::shape::conditions::Overhead;
use net::shape::profile::Profile;
use perf::model::disk;
use perf::model::loggp::Link;
use perf::model::transaction::{Path, Server, Storage, Transfer};
use perf::model::whatif::of_path::PathCase;
use perf::model::write_log::{LogDevice, Stable};
use perf::units::Nanos;
use server::store::sim::{LogSpec, SimOptions, WriteBack};
use wire::nfs3::{Procedure, StableHow};

use crate::simulate::SimulateError;
use crate::{ClientSpec, Costs, ServerSpec, World};

/// Processors of the server: what is not the model's slowest stage keeps nobody waiting.
const CORES: usize = 256;

/// The file; longer transfers overwrite it.
const FILE_BYTES: u64 = 32 << 20;

/// Bytes between two COMMITs: at least, and at most.
const COMMIT_BYTES: (u64, u64) = (4 << 20, 48 << 20);

/// COMMITs of a run, and calls before each, at most: those of a run are a moment's.
const COMMITS: u64 = 3;
const CALLS_MAX: u64 = 8192;

/// Throughput of the transfer in MiB/s: the bytes that COMMITs cover, over the time that they took.
///
/// COMMITs come more often than in a long transfer, each with its share of what a sync takes, so
/// that T_B of a block is the same and the run is short.
///
/// # Errors
/// [`SimulateError`].
pub fn mib_per_s(path: &Path, server: Server, transfer: &Transfer) -> Result<f64, SimulateError> {
    run(path, server, transfer, |spec| spec)
}

/// The same for a case: with its threads, and with its processor where the time of that is known.
///
/// # Errors
/// [`SimulateError`].
pub fn case_mib_per_s(case: &PathCase) -> Result<f64, SimulateError> {
    let (path, with) = of_case(case);
    run(&path, case.server, &case.transfer, with)
}

/// Stable WRITEs a second of a case, without a log or with one on such a device, while that has
/// room.
///
/// # Errors
/// [`SimulateError`].
pub fn stable_per_s(
    case: &PathCase,
    log: Option<&LogDevice>,
    stable: &Stable,
) -> Result<f64, SimulateError> {
    let transfer = Transfer { call_bytes: stable.bytes, ..case.transfer };
    let (path, with) = of_case(&PathCase { transfer, ..*case });
    let server = case.server;
    let log = log.map(|device| LogSpec { bytes: LOG_BYTES, ..LogSpec::new(device.profile()) });
    let with = move |spec| {
        let ServerSpec { store, .. } = spec;
        with(ServerSpec { store: SimOptions { write_log: log, ..store }, ..spec })
    };
    let most = (STABLE_BYTES_MAX / stable.bytes.max(1)).max(CALLS_EACH);
    let calls = (CALLS_EACH * u64::from(stable.outstanding)).max(CALLS_MIN).min(most);
    let workload = Workload {
        call_bytes: u32::try_from(stable.bytes).unwrap_or(u32::MAX),
        outstanding: stable.outstanding as usize,
        file_bytes: FILE_BYTES,
        total_bytes: calls * stable.bytes,
        commit_bytes: u64::MAX,
        stable: StableHow::FileSync,
        limit: client::transfer::Limit::default(),
    };
    let ran = transfer_in_world(&path, server, &transfer, with, workload)?;
    let writes = ran.events.iter().filter(|event| event.kind == Kind::Write);
    let mut replies: Vec<_> = writes.map(|event| event.received).collect();
    replies.sort_unstable();
    // Without what the beginning and the end take.
    let skip = (stable.outstanding as usize).min(replies.len() / 4);
    let steady = &replies[skip..replies.len() - skip];
    let (Some(first), Some(last)) = (steady.first(), steady.last()) else {
        return Err(SimulateError::Lost);
    };
    let secs = last.since(*first).as_secs_f64();
    if secs > 0.0 { Ok((steady.len() - 1) as f64 / secs) } else { Err(SimulateError::Lost) }
}

/// Stable WRITEs of each caller, and of all at least; and their bytes, which have room in the log.
const CALLS_EACH: u64 = 16;
const CALLS_MIN: u64 = 160;
const STABLE_BYTES_MAX: u64 = 32 << 20;
const LOG_BYTES: u64 = 1 << 30;

/// A case as a path, and the server that it has.
fn of_case(case: &PathCase) -> (Path, impl FnOnce(ServerSpec) -> ServerSpec + Send + use<>) {
    let PathCase { mut path, server, transfer, threads, processor_us, ends, .. } = *case;
    if let Some(ends) = ends {
        // The link's pause makes up what an end takes longer than the link.
        let bytes = transfer.call_bytes as f64;
        let longer_us = ends.call_of_us(bytes) - path.capacity.call_of_us(bytes);
        path.capacity.call_us += longer_us.max(0.0);
    }
    if let Some(processor_us) = processor_us {
        let kib = transfer.call_bytes as f64 / 1024.0;
        let copied_us = kib * (path.ser_us_per_kib - path.capacity.us_per_kib);
        let others_us = path.round_trip_us + path.op_us + copied_us - processor_us;
        path.round_trip_us = others_us.max(0.0);
        path.op_us = processor_us;
        path.ser_us_per_kib = path.capacity.us_per_kib;
    }
    let with = move |spec: ServerSpec| ServerSpec {
        cores: if processor_us.is_some() { 1 } else { spec.cores },
        threads: match (server, threads) {
            (Server::Concurrent, Some(threads)) => threads as usize,
            _ => spec.threads,
        },
        ..spec
    };
    (path, with)
}

fn run(
    path: &Path,
    server: Server,
    transfer: &Transfer,
    with: impl FnOnce(ServerSpec) -> ServerSpec + Send + 'static,
) -> Result<f64, SimulateError> {
    let mut path = *path;
    let commit_bytes = commit_bytes(transfer);
    path.storage.sync_us *= commit_bytes as f64 / transfer.commit_bytes.max(commit_bytes) as f64;
    let transfer = Transfer { commit_bytes, ..*transfer };
    let workload = Workload {
        call_bytes: u32::try_from(transfer.call_bytes).unwrap_or(u32::MAX),
        outstanding: transfer.outstanding as usize,
        file_bytes: FILE_BYTES,
        total_bytes: COMMITS * commit_bytes,
        commit_bytes,
        stable: StableHow::Unstable,
        limit: client::transfer::Limit::default(),
    };
    let ran = transfer_in_world(&path, server, &transfer, with, workload)?;
    ran.mib_per_s().ok_or(SimulateError::Lost)
}

/// Bytes between two COMMITs: of large calls two windows, of small ones as many as are run.
fn commit_bytes(transfer: &Transfer) -> u64 {
    let (least, most) = COMMIT_BYTES;
    let window = 2 * u64::from(transfer.outstanding) * transfer.call_bytes;
    let calls = CALLS_MAX.max(u64::from(transfer.outstanding)) * transfer.call_bytes;
    window.clamp(least, most).min(calls.max(1)).min(transfer.commit_bytes.max(1))
}

fn transfer_in_world(
    path: &Path,
    server: Server,
    transfer: &Transfer,
    with: impl FnOnce(ServerSpec) -> ServerSpec + Send + 'static,
    workload: Workload,
) -> Result<Run, SimulateError> {
    let (path, transfer) = (*path, *transfer);
    World::new(1).run(move |stage| async move {
        let server = stage.server(with(spec(&path, server, &transfer)));
        let client = stage.client(ClientSpec::behind(link(&path)));
        let session = client.mount(&server).await?;
        let scratch = Scratch::create(&session, "path").await?;
        let file = scratch.file(&session, "f").await?;
        let call_bytes = workload.call_bytes.min(session.sizes().write_bytes_max);
        let workload = Workload { call_bytes, ..workload };
        let data = seqwrite::pattern(call_bytes as usize);
        Ok::<_, SimulateError>(seqwrite::run(stage.clock(), &session, file, &data, workload).await?)
    })?
}

fn link(path: &Path) -> Profile {
    let send = Nanos::from_micros_f64(path.overhead_us.min(path.round_trip_us));
    let rest = Nanos::from_micros_f64((path.round_trip_us - path.overhead_us).max(0.0) / 2.0);
    let link = Link {
        latency: rest,
        gap: Nanos::from_micros_f64(path.capacity.call_us),
        gap_per_byte_ps: picos_per_byte(path.capacity.us_per_kib),
    };
    Profile {
        overhead: Overhead { send, receive: Nanos::ZERO },
        ..Profile::symmetric("path", link)
    }
}

/// Whether a world of the case writes back before a COMMIT comes.
pub fn writes_back_early(case: &PathCase) -> bool {
    is_early(&case.path, case.server)
}

/// Of a disk that is slower than what comes, a COMMIT finds much to do though the server began at
/// once: what is left is what the disk takes beyond the WRITEs.
fn is_early(path: &Path, server: Server) -> bool {
    let Storage { left_us_per_kib, us_per_kib, .. } = path.storage;
    server == Server::Concurrent && left_us_per_kib <= LEFT * us_per_kib
}

/// A server of which more of the work is left to a COMMIT counts as one that does not write back
/// early. One that does, before a disk so slow, is simulated up to the rest of it too slow: a
/// fifth. Measured from one end the two cannot be distinguished there: how much is left is as
/// uncertain (a guess).
const LEFT: f64 = 0.8;

fn spec(path: &Path, server: Server, transfer: &Transfer) -> ServerSpec {
    let storage = &path.storage;
    let disk = disk::Profile {
        name: "path",
        sync: Nanos::from_micros_f64(storage.sync_us),
        write_ps_per_byte: picos_per_byte(storage.us_per_kib),
        ..disk::PROFILES[disk::PROFILES.len() - 1]
    };
    let bytes = picos_per_byte((path.ser_us_per_kib - path.capacity.us_per_kib).max(0.0));
    let costs = Costs { per_byte_ps: bytes, ..Costs::default() }
        .with(Procedure::Write, Nanos::from_micros_f64(path.op_us));
    let write_back = match is_early(path, server) {
        false => WriteBack::OnDemand,
        // Often enough that little is left to a COMMIT, which here comes often, too.
        true => WriteBack::Early { bytes: (transfer.commit_bytes / 16).max(64 << 10) },
    };
    let store = SimOptions {
        disk,
        write_back,
        dirty_bytes_max: (4 * transfer.commit_bytes).max(256 << 20),
        crashes: false,
        ..SimOptions::default()
    };
    let spec = ServerSpec { cores: CORES, costs, store, ..ServerSpec::default() };
    match server {
        Server::Stall => spec.stalling(),
        Server::Concurrent => spec,
    }
}

/// At most what a link and a disk can have.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn picos_per_byte(us_per_kib: f64) -> u64 {
    (us_per_kib * 1e6 / 1024.0).clamp(0.0, 1e12).round() as u64
}

#[cfg(test)]
mod tests {
    use perf::model::transaction::Capacity;

    use super::*;

    const PATH: Path = Path {
        round_trip_us: 200.0,
        ser_us_per_kib: 9.0,
        op_us: 60.0,
        overhead_us: 0.0,
        capacity: Capacity { call_us: 5.0, us_per_kib: 8.0 },
        storage: Storage {
            sync_us: 100.0,
            us_per_kib: 4.0,
            left_us_per_kib: 0.0,
            unhidden_us_per_kib: 0.0,
        },
    };

    #[test]
    fn a_run_has_no_more_calls_the_smaller_they_are() {
        for call_bytes in [1, 8, 64, 512, 8192, 1 << 20] {
            for outstanding in [1, 64, 4096] {
                let transfer = Transfer { call_bytes, outstanding, commit_bytes: 64 << 20 };
                let calls = commit_bytes(&transfer) / call_bytes;
                assert!(calls <= CALLS_MAX, "{calls} of {call_bytes} B, {outstanding} outstanding");
            }
        }
        let transfer = Transfer { call_bytes: 1, outstanding: 4, commit_bytes: 64 << 20 };
        let ratio = mib_per_s(&PATH, Server::Concurrent, &transfer).unwrap()
            / PATH.predict(Server::Concurrent, &transfer).mib_per_s;
        assert!((0.8..1.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn one_thread_works_on_one_call_at_a_time() {
        let path = Path { op_us: 400.0, ..PATH };
        let transfer = Transfer { call_bytes: 8192, outstanding: 8, commit_bytes: 8 << 20 };
        let run = |threads| {
            let (server, latency_us) = (Server::Concurrent, 0.0);
            case_mib_per_s(&PathCase {
                path,
                server,
                transfer,
                latency_us,
                link_us_per_kib: 0.0,
                ends: None,
                threads,
                processor_us: None,
            })
            .unwrap()
        };
        let most = 8192.0 / 400.0 * 1e6 / f64::from(1 << 20);
        assert!((0.75..1.02).contains(&(run(Some(1)) / most)), "{} {most}", run(Some(1)));
        assert!(run(Some(2)) > 1.7 * run(Some(1)));
        assert!((run(Some(10_000)) / run(None) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_disk_that_is_slower_than_what_comes_has_much_left_and_is_written_early_all_the_same() {
        let transfer = Transfer { call_bytes: 64 << 10, outstanding: 16, commit_bytes: 8 << 20 };
        let ratio = |us_per_kib: f64, left_us_per_kib| {
            let storage = Storage { us_per_kib, left_us_per_kib, ..PATH.storage };
            let path = Path { storage, ..PATH };
            let server = Server::Concurrent;
            mib_per_s(&path, server, &transfer).unwrap() / path.predict(server, &transfer).mib_per_s
        };
        // The link brings a KiB in 8 us: the disk has done so much of its work when it is full.
        for us_per_kib in [20.0, 24.0, 32.0] {
            let early = ratio(us_per_kib, us_per_kib - 8.0);
            assert!((0.88..1.1).contains(&early), "{us_per_kib}: {early}");
        }
        // A server that begins with the COMMIT, for which the formula has no form of its own.
        let late = ratio(24.0, 24.0);
        assert!((0.65..0.8).contains(&late), "{late}");
    }

    #[test]
    fn a_world_of_a_path_has_the_throughput_of_its_formula() {
        for server in [Server::Stall, Server::Concurrent] {
            for (call_bytes, outstanding) in [(8192, 1), (8192, 4), (8192, 32), (1 << 20, 4)] {
                let transfer = Transfer { call_bytes, outstanding, commit_bytes: 8 << 20 };
                let world = mib_per_s(&PATH, server, &transfer).unwrap();
                let formula = PATH.predict(server, &transfer).mib_per_s;
                // Below the formula where the window just fills the slowest stage: it has a corner.
                let ratio = world / formula;
                assert!((0.83..1.1).contains(&ratio), "{server:?} {transfer:?}: {ratio}");
            }
        }
    }
}
