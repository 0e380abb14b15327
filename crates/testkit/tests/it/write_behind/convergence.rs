//! The window of `adaptive` beside every fixed number of calls, over links of any length.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use client::write_behind::{Options, WriteBehind};
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;

use super::fake::{Fake, Whims, handle};

const FIXED: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

struct Path {
    latency_us: u64,
    mbit_per_s: u64,
    wsize: u32,
    /// A call takes up to so long at the server, evenly distributed.
    busy_max: Nanos,
    outstanding_max: u64,
}

/// MiB/s in the second half of `calls`, and how many calls may be outstanding then, as a mean.
fn run(path: &Path, outstanding: Option<u32>, calls: u64) -> (f64, f64) {
    let outstanding_max = path.outstanding_max;
    let link = Link {
        latency: Nanos::from_micros(path.latency_us),
        gap: Nanos::ZERO,
        gap_per_byte_ps: 8_000_000 / path.mbit_per_s,
    };
    let (wsize, busy_max) = (path.wsize, path.busy_max);
    let world = World::new();
    let clock = world.clock();
    world
        .run(async move {
            let whims = Whims { stable: 1_000, busy_max, ..Whims::default() };
            let session = Fake::new(&clock, whims, 1).session(LinkPair::symmetric(link)).await;
            // Room for twice the largest window that is of use here.
            let dirty_bytes_max = 2 * outstanding_max * u64::from(wsize);
            let options = Options { wsize, dirty_bytes_max, outstanding, ..Options::default() };
            let behind = WriteBehind::new(&clock, options, Arc::new(()));
            let data = Bytes::from(vec![0; wsize as usize]);
            let (file, mut half, mut windows) = (handle("f"), None, 0_u64);
            for at in 0..calls {
                let offset = at * u64::from(wsize);
                behind.take_bytes(&session, file, offset, data.clone()).await.unwrap();
                if at == calls / 2 {
                    half = Some((clock.now(), behind.counters().bytes_sent));
                }
                if half.is_some() {
                    windows += u64::from(behind.counters().window);
                }
            }
            let (begun, sent) = half.unwrap();
            let bytes = behind.counters().bytes_sent - sent;
            let span = clock.now().since(begun).as_secs_f64();
            behind.commit(file).await.unwrap();
            let mib_per_s = bytes as f64 / f64::from(1 << 20) / span;
            (mib_per_s, windows as f64 / (calls - calls / 2) as f64)
        })
        .unwrap()
}

/// One line of the table; `adaptive` must be within a tenth of the best fixed number.
fn line(path: &Path) -> String {
    let calls = 2 * path.outstanding_max + 400;
    let rates = FIXED.map(|fixed| run(path, Some(fixed), calls).0);
    let best = rates.into_iter().fold(0.0, f64::max);
    let least = FIXED[rates.iter().position(|rate| *rate >= best * 0.95).unwrap()];
    let (rate, window) = run(path, None, 6 * calls);
    let mut line = String::new();
    let Path { latency_us, mbit_per_s, wsize, .. } = path;
    write!(line, "{latency_us:6} {mbit_per_s:6} {:5}", wsize >> 10).unwrap();
    for rate in rates {
        write!(line, " {rate:8.2}").unwrap();
    }
    write!(line, " {least:6} {rate:9.2} {window:6.0}").unwrap();
    assert!(rate >= best * 0.9, "{line}");
    line
}

fn table(paths: &[Path]) -> String {
    let mut table = String::from("  L/us Mbit/s   KiB");
    for fixed in FIXED {
        write!(table, " {fixed:8}").unwrap();
    }
    table.push_str("  least  adaptive window\n");
    for path in paths {
        writeln!(table, "{}", line(path)).unwrap();
    }
    table
}

fn path(latency_us: u64, mbit_per_s: u64, wsize: u32) -> Path {
    Path { latency_us, mbit_per_s, wsize, busy_max: Nanos::ZERO, outstanding_max: 512 }
}

#[test]
fn the_window_finds_the_best_number_of_calls_on_a_gigabit() {
    let paths = [10, 100, 1_000, 10_000, 50_000].map(|us| path(us, 1_000, 64 << 10));
    println!("{}", table(&paths));
}

#[test]
fn the_window_finds_the_best_number_of_calls_on_slower_and_faster_links() {
    let paths = [
        path(100, 100, 64 << 10),
        path(10_000, 100, 64 << 10),
        path(100, 10_000, 64 << 10),
        path(10_000, 10_000, 64 << 10),
        path(1_000, 1_000, 8 << 10),
    ];
    println!("{}", table(&paths));
}

#[test]
fn the_window_is_not_misled_by_calls_that_take_more_or_less_time() {
    let busy_max = Nanos::from_millis(4);
    let paths = [10, 1_000].map(|us| Path { busy_max, ..path(us, 1_000, 64 << 10) });
    println!("{}", table(&paths));
}
