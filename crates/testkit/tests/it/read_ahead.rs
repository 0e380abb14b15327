//! What is fetched ahead of a reader that asks for much more at a time than a READ has.

use client::files::{Files, Options};
use load::study::Subject;
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::Site;
use wire::nfs3::Sattr3;

use crate::files::{READ, WRITE, me, mounted};

const MIB: u64 = 1 << 20;
const FILE_MIB: u64 = 48;

/// A link of 100 Mbit/s.
const LINK: Link =
    Link { latency: Nanos::from_micros(100), gap: Nanos::ZERO, gap_per_byte_ps: 80_000 };

/// What reading a file in requests of 1 MiB, two of them at a time, has come to.
struct Outcome {
    reads: u64,
    took: Nanos,
    held_bytes_max: u64,
}

fn read_all(read_bytes_max: u32) -> Outcome {
    let world = World::new();
    let clock = world.clock();
    let site = Site::in_memory(&clock, LinkPair::symmetric(LINK), CommitMode::Concurrent);
    world.run(async move { read_by(&clock, &site, read_bytes_max).await }).unwrap()
}

async fn read_by(clock: &Clock, site: &Site<MemStore>, read_bytes_max: u32) -> Outcome {
    let theirs = mounted(site, clock, Options::default()).await;
    let made = theirs.create(&me(), theirs.root(), b"f", Sattr3::default(), true).await.unwrap();
    let open = theirs.open(&me(), made.handle, WRITE).await.unwrap();
    for mib in 0..FILE_MIB {
        open.write(mib * MIB, &vec![7; 1 << 20]).await.unwrap();
    }
    open.flush().await.unwrap();
    open.close().await;
    let session = site.connect().await.unwrap().limited(read_bytes_max, 1 << 20);
    let files = Files::new(clock, session, Options::default());
    let open = files.open(&me(), made.handle, READ).await.unwrap();
    let (begun, mut held_bytes_max) = (clock.now(), 0);
    for mib in (0..FILE_MIB).step_by(2) {
        let (first, second) =
            tokio::join!(open.read(mib * MIB, 1 << 20), open.read((mib + 1) * MIB, 1 << 20));
        assert_eq!((first.unwrap().len(), second.unwrap().len()), (1 << 20, 1 << 20));
        held_bytes_max = held_bytes_max.max(files.read_ahead_bytes());
    }
    let took = clock.now().since(begun);
    let counters = files.session().rpc().counters();
    let reads = counters.procedures.get(6).map_or(0, |read| read.ops);
    Outcome { reads, took, held_bytes_max }
}

#[test]
fn what_is_fetched_ahead_is_fetched_once_however_small_a_read_is() {
    for read_bytes_max in [32 << 10, 256 << 10, 1 << 20] {
        let Outcome { reads, .. } = read_all(read_bytes_max);
        let needed = FILE_MIB * MIB / u64::from(read_bytes_max);
        assert!(reads <= needed + 2, "{reads} READs of {read_bytes_max} for {needed}");
    }
}

#[test]
fn a_full_link_is_not_filled_further() {
    let rate = Nanos::from_nanos(FILE_MIB * MIB * 80);
    for read_bytes_max in [32 << 10, 1 << 20] {
        let Outcome { took, held_bytes_max, .. } = read_all(read_bytes_max);
        assert!(took < rate + rate / 20, "{took:?} where the link takes {rate:?}");
        assert!(held_bytes_max <= 8 * MIB, "{held_bytes_max} bytes wait");
    }
}
