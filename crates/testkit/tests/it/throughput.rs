//! The study's client and server in a world of one link: throughput as a table that can be read
//! in a diff. Virtual time is exact, so the numbers are, too.
//!
//! A world has no processing time and its store is memory, so T_op and T_B are zero and the cycle
//! model must fit to the headers' few bytes.

use std::fmt::Write as _;

use client::transfer::Limit;
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use load::study::{CALL_BYTES, Subject, WINDOWS};
use net::clock::world::World;
use net::shape::profile::Profile;
use server::CommitMode;
use testkit::Site;
use wire::nfs3::StableHow;

/// MiB/s of sequential writes over a link, for each size and window.
fn table(link: &str) -> String {
    let profile: Profile = link.parse().unwrap();
    let world = World::new();
    let clock = world.clock();
    world
        .run(async move {
            let site = Site::in_memory(&clock, profile.links(), CommitMode::Concurrent);
            let session = site.connect().await.unwrap();
            let scratch = Scratch::create(&session, "table").await.unwrap();
            let file = scratch.file(&session, "f").await.unwrap();
            let data = seqwrite::pattern(1 << 20);
            let mut table = format!("{profile}\n    N   8 KiB calls   1 MiB calls, MiB/s\n");
            for outstanding in WINDOWS {
                write!(table, "{outstanding:5}").unwrap();
                for call_bytes in CALL_BYTES {
                    let calls = u64::try_from(200.max(4 * outstanding)).unwrap();
                    let workload = Workload {
                        call_bytes,
                        outstanding,
                        file_bytes: 64 << 20,
                        total_bytes: calls * u64::from(call_bytes),
                        commit_bytes: u64::MAX,
                        stable: StableHow::Unstable,
                        limit: Limit::default(),
                    };
                    let run = seqwrite::run(&clock, &session, file, &data, workload).await.unwrap();
                    write!(table, "  {:12.3}", run.mib_per_s().unwrap()).unwrap();
                }
                table.push('\n');
            }
            scratch.remove(&session).await.unwrap();
            table
        })
        .unwrap()
}

#[test]
fn throughput_over_a_gigabit_lan() {
    insta::assert_snapshot!(table("lan-1g"));
}

#[test]
fn throughput_over_a_wide_area() {
    insta::assert_snapshot!(table("wan-10ms"));
}

#[test]
fn the_same_world_gives_the_same_table() {
    assert_eq!(table("lan-10g"), table("lan-10g"));
}
