//! What the memory store costs, with one thread and with two: operations a second and processor
//! time of each, best of five rounds.
//!
//! `cargo run --release -p nfskit-server --example mem_load`

#![expect(
    clippy::disallowed_methods,
    reason = "a stopwatch around whole runs needs no virtual time"
)]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use server::store::Store;
use server::store::mem::{MemOptions, MemStore};
use server::types::{Caller, CreateHow, Handle, SetAttr, Stability, Time};

const TRANSFER: u32 = 64 << 10;

static ME: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

type Operation = fn(&MemStore, &Handle, &Bytes, u64) -> bool;

fn main() {
    let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    let make = |name: &str| {
        let root = store.root();
        let made = store.create(&ME, &root, name.as_bytes(), how).now_or_never();
        made.and_then(|made| made.result.ok()).map(|node| node.handle)
    };
    let files: Vec<_> = ["a", "b"].iter().filter_map(|name| make(name)).collect();
    let operations: [(&str, u64, Operation); 4] = [
        ("write 64 KiB", 20_000, |store, file, data, index| {
            let (offset, data) = (index % 256 * u64::from(TRANSFER), data.clone());
            let write = store.write(&ME, file, offset, data, Stability::Unstable);
            write.now_or_never().is_some_and(|done| done.result.is_ok())
        }),
        ("read 64 KiB", 20_000, |store, file, _, index| {
            let read = store.read(&ME, file, index % 256 * u64::from(TRANSFER), TRANSFER);
            read.now_or_never().is_some_and(|done| done.result.is_ok())
        }),
        ("attr", 1_000_000, |store, file, _, _| {
            store.attr(&ME, file).now_or_never().is_some_and(|done| done.is_ok())
        }),
        ("lookup", 1_000_000, |store, _, _, _| {
            let root = store.root();
            let found = store.lookup(&ME, &root, b"a").now_or_never();
            found.is_some_and(|done| done.result.is_ok())
        }),
    ];
    println!("{:20} {:>12} {:>12}", "", "ops/s", "CPU ns/op");
    for (what, count, operation) in operations {
        for threads in [1, 2] {
            let files = &files[..threads];
            let (rate, each) = best(&store, files, count, operation);
            println!("{:20} {rate:>12.0} {each:>12}", format!("{what} x{threads}"));
        }
    }
}

fn best(store: &MemStore, files: &[Handle], count: u64, operation: Operation) -> (f64, u128) {
    let data = Bytes::from(vec![7; TRANSFER as usize]);
    let mut best = (0.0, u128::MAX);
    for _ in 0..5 {
        let (started, cpu) = (Instant::now(), cpu_time());
        thread::scope(|scope| {
            for file in files {
                let data = &data;
                scope.spawn(move || {
                    assert!((0..count).all(|index| operation(store, file, data, index)));
                });
            }
        });
        let (took, cpu) = (started.elapsed(), cpu_time().saturating_sub(cpu));
        let all = count * files.len() as u64;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let rate = all as f64 / took.as_secs_f64();
        best = (f64::max(best.0, rate), best.1.min(cpu.as_nanos() / u128::from(all)));
    }
    best
}

/// Of all threads of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
