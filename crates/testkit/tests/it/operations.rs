//! Every operation that a mix can have, against the production server in a world: both versions,
//! streams and datagrams, under conditions that lose calls and replies.

use std::net::SocketAddr;

use bytes::Bytes;
use client::session::{Credential, Session};
use client::url::Version;
use load::curve::validity::mix_points_max;
use load::fileset::{self, Layout};
use load::mix::outcome::Outcome;
use load::mix::table::Sureness;
use load::mix::{Load, Mix, Operation, Plan, run};
use load::scratch::Scratch;
use net::call::{self, Rpc, Target};
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use net::transport::lossy::{Impairments, SharedImpairments};
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::Site;
use wire::mount::{DirPath, MntReply1};
use wire::nfs3::FileHandle;
use wire::rpc::OpaqueAuth;
use wire::xdr::{Encode, from_bytes};

const CALM: Impairments = Impairments {
    seed: 3,
    lost: 0,
    fragment_bytes: None,
    duplicated: 0,
    latency: Nanos::from_micros(100),
    jitter: Nanos::ZERO,
};

#[derive(Clone, Copy, Debug)]
enum Way {
    Stream,
    Datagrams(Impairments),
}

async fn session(rpc: Rpc, site: &Site<MemStore>, version: Version) -> Session {
    if version == Version::Three {
        return site.session(rpc).await.unwrap();
    }
    let mnt = Target { program: wire::mount::PROGRAM, version: 1, procedure: 1 };
    let encode = |out: &mut Vec<u8>| DirPath { dirpath: b"/" }.encode(out);
    let answer = rpc.call(mnt, OpaqueAuth::NONE, encode, Bytes::new()).await.unwrap();
    let root = from_bytes::<MntReply1>(&answer.results()).unwrap().unwrap().directory;
    let root = FileHandle::new(root.as_bytes()).unwrap();
    let credential =
        Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() };
    let server = SocketAddr::from(([127, 1, 0, 1], 2049));
    Session::open_version(rpc, server, &credential, root, version).await.unwrap()
}

/// The outcome, the operations that found nothing to do, and what was left behind.
async fn measured(
    clock: Clock,
    way: Way,
    version: Version,
    mix: Mix,
    layout: Layout,
) -> (Outcome, u64) {
    let link = Link { latency: CALM.latency, ..Link::default() };
    let site = Site::in_memory(&clock, LinkPair::symmetric(link), CommitMode::Concurrent);
    let rpc = match way {
        Way::Stream => site.rpc(),
        Way::Datagrams(impairments) => {
            site.datagrams(&SharedImpairments::new(impairments.into()), &call::Options::datagrams())
        }
    };
    let session = session(rpc, &site, version).await;
    let scratch = Scratch::create(&session, &Scratch::name_for("mix")).await.unwrap();
    let mut shares = Vec::new();
    let built =
        fileset::build_with_progress(&session, scratch.dir(), &layout, |share| shares.push(share))
            .await;
    let mut files = built.unwrap();
    assert!(shares.is_sorted() && shares.last() == Some(&1.0), "{:?}", shares.last());
    // Who has lost a call waits for it long.
    let time = match way {
        Way::Datagrams(impairments) if impairments.lost > 0 => Nanos::from_secs(10),
        _ => Nanos::from_millis(100),
    };
    let plan = Plan {
        mix,
        load: Load::Closed { outstanding: 16 },
        warm_up: Nanos::from_millis(10),
        time,
        seed: 11,
    };
    let outcome = run(&clock, std::slice::from_ref(&session), &mut files, &plan).await.unwrap();
    scratch.remove(&session).await.unwrap();
    (outcome, files.hollow())
}

fn outcome(way: Way, version: Version, mix: Mix, layout: Layout) -> (Outcome, u64) {
    let world = World::new();
    let clock = world.clock();
    world.run(measured(clock, way, version, mix, layout)).unwrap()
}

/// As many of each operation that the version has.
fn all(version: Version) -> Mix {
    let weights: Vec<(Operation, f64)> = Operation::ALL
        .into_iter()
        .filter(|operation| operation.is_in(version))
        .map(|operation| (operation, 1.0))
        .collect();
    Mix::leaked("all".to_owned(), &weights, Sureness::Given, String::new())
}

fn layout() -> Layout {
    Layout { accessed: 0.5, ..Layout::of_bytes(2 << 20, 7) }
}

#[test]
fn every_operation_of_both_versions_is_answered_as_expected_over_both_transports() {
    for version in [Version::Two, Version::Three] {
        for way in [Way::Stream, Way::Datagrams(CALM)] {
            let mix = all(version);
            let (outcome, hollow) = outcome(way, version, mix, layout());
            let failure = &outcome.first_failure;
            assert_eq!((outcome.failed(), failure), (0, &None), "{version:?} {way:?}");
            assert_eq!(outcome.operations.len(), mix.shares.len(), "{version:?} {way:?}");
            assert!(outcome.answered > 5_000, "{version:?} {way:?}: {}", outcome.answered);
            let points_max = mix_points_max(outcome.answered);
            assert!(outcome.mix_error_points(&mix) < points_max, "{version:?} {way:?}");
            assert_eq!(hollow, 0, "{version:?} {way:?}");
        }
    }
}

#[test]
fn what_changes_names_is_answered_once_although_calls_and_replies_are_lost() {
    let impairments = Impairments { lost: 50, ..CALM };
    for version in [Version::Two, Version::Three] {
        let (outcome, _) = outcome(Way::Datagrams(impairments), version, all(version), layout());
        assert_eq!((outcome.failed(), &outcome.first_failure), (0, &None), "{version:?}");
        assert!(outcome.answered > 200, "{}", outcome.answered);
    }
}

#[test]
fn a_mix_that_only_removes_says_how_often_there_was_nothing_to_do() {
    let of = |operation| {
        let mix =
            Mix::leaked("one".to_owned(), &[(operation, 1.0)], Sureness::Given, String::new());
        outcome(Way::Stream, Version::Three, mix, layout())
    };
    for operation in [Operation::Remove, Operation::Rmdir] {
        let (outcome, hollow) = of(operation);
        assert_eq!(outcome.failed(), 0, "{operation}: {:?}", outcome.first_failure);
        assert!(hollow > outcome.answered - 100, "{operation}: {hollow} {}", outcome.answered);
    }
}
