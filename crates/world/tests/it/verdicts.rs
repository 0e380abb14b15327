//! Captures that are staged in a world, of the production client and server, and what
//! `trace::verdict` finds guilty: each beside a scene in which that is absent.

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use client::session::Session;
use client::transfer::Limit;
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::call::{Options, Rpc};
use net::shape::conditions::Ppm;
use net::shape::profile::Profile;
use perf::units::Nanos;
use server::store::sim::{SimOptions, WriteBack};
use trace::capture::Capture;
use trace::verdict::{Certainty, Diagnosis, Evidence, Suspect, judge};
use trace::{Analyzer, Filter};
use wire::nfs3::{FileHandle, Procedure, StableHow};
use world::{Client, ClientSpec, Costs, Server, ServerSpec, Stage, World};

use crate::tape::{self, Tape};

const REPLY_LIMIT: Nanos = Nanos::from_secs(60);
const QUICK_DISK: &str = "rate=2GB/s,seek=0";

/// A link of 1 Gbit/s with this round trip.
fn link(round_trip_us: u64) -> Profile {
    Profile::of("a link", Nanos::from_micros(round_trip_us) / 2, 1_000_000_000)
}

fn server(disk: &str, cost_us: u64) -> ServerSpec {
    let us = Nanos::from_micros;
    let costs = [Procedure::Write, Procedure::Read, Procedure::Getattr, Procedure::Lookup]
        .into_iter()
        .fold(Costs::default(), |costs, procedure| costs.with(procedure, us(cost_us)));
    let store = SimOptions {
        disk: disk.parse().unwrap(),
        write_back: WriteBack::OnDemand,
        ..SimOptions::default()
    };
    ServerSpec { cores: 1, costs, store, ..ServerSpec::default() }
}

/// A capture of a play, analyzed.
fn captured<F, Fut>(play: F) -> Analyzer
where
    F: FnOnce(Stage, Arc<Tape>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let tape = Arc::new(Tape::default());
    World::new(1).run(|stage| play(stage, Arc::clone(&tape))).unwrap();
    let file = tape.capture();
    let mut capture = Capture::open("tape", Box::new(Cursor::new(file))).unwrap();
    let mut analyzer = Analyzer::new(Filter::default());
    while capture.advance().unwrap() {
        analyzer.packet(&capture.packet().unwrap(), &mut |_, _, _| {});
    }
    analyzer.end();
    analyzer
}

fn verdict<F, Fut>(play: F) -> Diagnosis
where
    F: FnOnce(Stage, Arc<Tape>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let analyzer = captured(play);
    let evidence = Evidence::busiest(analyzer.flows()).unwrap();
    let diagnosis = judge(&evidence);
    println!("{diagnosis:?}\n{evidence:#?}");
    diagnosis
}

fn is(diagnosis: &Diagnosis, suspect: Suspect, least: Certainty) {
    let Some((found, certainty)) = diagnosis.verdict else { panic!("no verdict: {diagnosis:?}") };
    assert_eq!(found.suspect, suspect, "{diagnosis:?}");
    assert!(certainty >= least, "{diagnosis:?}");
}

/// Neither the cause nor worth a word.
fn is_not(diagnosis: &Diagnosis, suspect: Suspect) {
    let named = diagnosis.verdict.map(|(found, _)| found.suspect);
    assert_ne!(named, Some(suspect), "{diagnosis:?}");
}

async fn session(tape: &Arc<Tape>, client: &Client, server: &Server) -> Session {
    let line = tape::connection(tape, client, server);
    let rpc = Rpc::start(line, client.clock(), REPLY_LIMIT, 7_000);
    client.session(rpc, server).await.unwrap()
}

/// A session with a new file.
async fn opened(session: &Session) -> FileHandle {
    let scratch = Scratch::create(session, "verdicts").await.unwrap();
    scratch.file(session, "f").await.unwrap()
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// What is written: bytes of a call, calls outstanding, bytes in all, bytes between commits.
#[derive(Clone, Copy)]
struct Writes {
    call_bytes: u64,
    outstanding: usize,
    total_bytes: u64,
    commit_bytes: u64,
    stable: StableHow,
}

impl Default for Writes {
    fn default() -> Self {
        Self {
            call_bytes: 32 * KIB,
            outstanding: 8,
            total_bytes: 16 * MIB,
            commit_bytes: 64 * MIB,
            stable: StableHow::Unstable,
        }
    }
}

/// One client that writes to a server over a link.
fn writes(link: Profile, spec: ServerSpec, writes: Writes) -> Diagnosis {
    verdict(|stage, tape| async move {
        let server = stage.server(spec);
        let client = stage.client(ClientSpec::behind(link));
        let session = session(&tape, &client, &server).await;
        let file = opened(&session).await;
        written(&stage, &session, file, writes).await;
    })
}

async fn written(stage: &Stage, session: &Session, file: FileHandle, writes: Writes) {
    let Writes { call_bytes, outstanding, total_bytes, commit_bytes, stable } = writes;
    let call_bytes = u32::try_from(call_bytes).unwrap();
    let data = seqwrite::pattern(call_bytes as usize);
    let workload = Workload {
        call_bytes,
        outstanding,
        file_bytes: 64 * MIB,
        total_bytes,
        commit_bytes,
        stable,
        limit: Limit::default(),
    };
    seqwrite::run(stage.clock(), session, file, &data, workload).await.unwrap();
}

#[test]
fn commits_that_wait_for_a_slow_disk_are_the_verdict_and_those_of_a_quick_one_are_not() {
    let commits = Writes { commit_bytes: MIB, ..Writes::default() };
    is(
        &writes(link(200), server("rate=20MB/s,seek=0", 50), commits),
        Suspect::SlowCommit,
        Certainty::Sure,
    );
    is_not(&writes(link(200), server(QUICK_DISK, 50), commits), Suspect::SlowCommit);
}

#[test]
fn stable_writes_that_wait_for_a_slow_disk_are_the_verdict_and_unstable_ones_are_not() {
    let stable = Writes {
        call_bytes: 64 * KIB,
        outstanding: 2,
        stable: StableHow::FileSync,
        ..Writes::default()
    };
    let slow = "rate=20MB/s,seek=4ms";
    is(&writes(link(200), server(slow, 50), stable), Suspect::SlowStableWrite, Certainty::Sure);
    let unstable = Writes { stable: StableHow::Unstable, ..stable };
    is_not(&writes(link(200), server(slow, 50), unstable), Suspect::SlowStableWrite);
    is_not(&writes(link(200), server(QUICK_DISK, 50), stable), Suspect::SlowStableWrite);
}

#[test]
fn a_long_round_trip_is_the_verdict_and_a_short_one_is_not() {
    is(
        &writes(link(20_000), server(QUICK_DISK, 50), Writes::default()),
        Suspect::Latency,
        Certainty::Sure,
    );
    is_not(&writes(link(200), server(QUICK_DISK, 50), Writes::default()), Suspect::Latency);
}

#[test]
fn a_link_that_is_full_is_the_verdict_and_a_server_that_is_busy_is_another() {
    let slow_link = Profile::of("a link", Nanos::from_micros(100), 100_000_000);
    is(
        &writes(slow_link, server(QUICK_DISK, 50), Writes::default()),
        Suspect::Rate,
        Certainty::Sure,
    );
    let busy = writes(link(200), server(QUICK_DISK, 2_600), Writes::default());
    is(&busy, Suspect::SlowServer, Certainty::Likely);
}

#[test]
fn one_call_at_a_time_is_the_verdict_and_eight_are_not() {
    let alone =
        Writes { call_bytes: 8 * KIB, outstanding: 1, total_bytes: 8 * MIB, ..Writes::default() };
    is(
        &writes(link(200), server(QUICK_DISK, 100), alone),
        Suspect::OneOutstanding,
        Certainty::Sure,
    );
    let eight = Writes { outstanding: 8, ..alone };
    is_not(&writes(link(200), server(QUICK_DISK, 100), eight), Suspect::OneOutstanding);
}

/// A program that writes 4 KiB at a time, and waits until so many bytes are stable.
fn small_writes(sync_bytes: u64) -> Diagnosis {
    verdict(move |stage, tape| async move {
        let server = stage.server(server("rate=100MB/s,seek=0,sync=2ms", 50));
        let client = stage.client(ClientSpec::behind(link(200)));
        let session = session(&tape, &client, &server).await;
        let file = opened(&session).await;
        let page = Bytes::from(vec![7; 4096]);
        for at in (0..2 * MIB).step_by(4096) {
            session.write(file, at, page.clone(), StableHow::Unstable).await.unwrap();
            if (at + 4096) % sync_bytes == 0 {
                session.commit(file, 0, 0).await.unwrap();
            }
        }
    })
}

#[test]
fn an_fsync_for_every_page_is_the_verdict_and_one_for_every_megabyte_is_not() {
    is(&small_writes(4 * KIB), Suspect::SmallSyncs, Certainty::Sure);
    is_not(&small_writes(MIB), Suspect::SmallSyncs);
}

/// One client writes and commits to a slow disk, another sends GETATTRs.
fn two_clients(stalls: bool) -> Diagnosis {
    verdict(move |stage, tape| async move {
        let spec = server("rate=20MB/s,seek=0", 50);
        let server = stage.server(if stalls { spec.stalling() } else { spec });
        let clients = stage.clients(2, &ClientSpec::behind(link(200)));
        let writer = session(&tape, &clients[0], &server).await;
        let reader = session(&tape, &clients[1], &server).await;
        let file = opened(&writer).await;
        let commits = Writes { commit_bytes: 2 * MIB, ..Writes::default() };
        let asks = async {
            loop {
                reader.getattr(file).await.unwrap();
                stage.clock().sleep(Nanos::from_micros(200)).await;
            }
        };
        tokio::select! {
            () = written(&stage, &writer, file, commits) => {}
            () = asks => {}
        }
    })
}

#[test]
fn a_server_that_stands_still_for_both_clients_is_the_verdict_and_a_slow_disk_alone_is_not() {
    is(&two_clients(true), Suspect::Stalls, Certainty::Likely);
    is_not(&two_clients(false), Suspect::Stalls);
}

/// A client that sends so many GETATTRs for each READ.
fn asks(attributes: u32) -> Diagnosis {
    verdict(move |stage, tape| async move {
        let server = stage.server(server(QUICK_DISK, 100));
        let client = stage.client(ClientSpec::behind(link(300)));
        let session = session(&tape, &client, &server).await;
        let file = opened(&session).await;
        session.write(file, 0, Bytes::from(vec![7; 32 << 10]), StableHow::FileSync).await.unwrap();
        for _ in 0..200 {
            for _ in 0..attributes {
                session.getattr(file).await.unwrap();
            }
            session.read(file, 0, 32 << 10).await.unwrap();
        }
    })
}

#[test]
fn calls_for_attributes_are_a_storm_when_they_are_most_of_all() {
    is(&asks(9), Suspect::AttributeStorm, Certainty::Sure);
    is_not(&asks(1), Suspect::AttributeStorm);
}

/// A client over UDP whose link loses so many datagrams in a hundred.
fn datagrams(lost_percent: u32) -> Diagnosis {
    verdict(move |stage, tape| async move {
        let server = stage.server(server(QUICK_DISK, 100));
        let mut lossy = link(300);
        (lossy.there.lost, lossy.back.lost) =
            (Ppm::percent(lost_percent), Ppm::percent(lost_percent));
        let client = stage.client(ClientSpec::behind(lossy));
        let socket = tape::datagrams(&tape, &client, &server);
        let options = Options::datagrams();
        let rpc = Rpc::persistent_datagrams(socket, server.address(), client.clock(), &options);
        let session = client.session(rpc, &server).await.unwrap();
        let file = opened(&session).await;
        for at in 0..1_000 {
            let data = Bytes::from(vec![7; 8 << 10]);
            session.write(file, at * 8192, data, StableHow::Unstable).await.unwrap();
        }
    })
}

#[test]
fn calls_over_udp_that_wait_for_their_timer_are_the_verdict_and_without_losses_there_are_none() {
    is(&datagrams(2), Suspect::Retransmission, Certainty::Sure);
    is_not(&datagrams(0), Suspect::Retransmission);
}

/// A client that reads, and then does something else for so long.
fn reads_and_thinks(us: u64) -> Diagnosis {
    verdict(move |stage, tape| async move {
        let server = stage.server(server(QUICK_DISK, 100));
        let client = stage.client(ClientSpec::behind(link(300)));
        let session = session(&tape, &client, &server).await;
        let file = opened(&session).await;
        session.write(file, 0, Bytes::from(vec![7; 32 << 10]), StableHow::FileSync).await.unwrap();
        for _ in 0..300 {
            session.read(file, 0, 32 << 10).await.unwrap();
            stage.clock().sleep(Nanos::from_micros(us)).await;
        }
    })
}

#[test]
fn a_client_that_asks_for_nothing_is_the_verdict_and_one_that_asks_at_once_is_not() {
    is(&reads_and_thinks(20_000), Suspect::IdleClient, Certainty::Sure);
    is_not(&reads_and_thinks(100), Suspect::IdleClient);
}
