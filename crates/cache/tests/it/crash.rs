//! Power that goes at any moment. Nothing is synced, so any part of any write may be on the disk,
//! in any order: sectors of 512 bytes, names made and removed.

use std::collections::BTreeMap;

use cache::medium::Memory;
use cache::{Cache, Limits, Part};
use fastrand::Rng;

use crate::using::{content, geometry, key, now, token};

/// A disk that has recorded all that is done to it while files change, and what each state of each
/// file holds.
struct Run {
    memory: Memory,
    states: Vec<(u8, u64, i64, Vec<u8>)>,
}

fn run(rng: &mut Rng) -> Run {
    let memory = Memory::default();
    memory.record();
    let limits = Limits { bytes_max: 300_000, files_max: 12, ..Limits::default() };
    let cache = Cache::in_memory(memory.clone(), geometry(), limits);
    let mut states = Vec::new();
    let mut last: BTreeMap<u8, (u64, i64, Vec<u8>)> = BTreeMap::new();
    for step in 1..60_i64 {
        let file = rng.u8(1..5);
        let size = match rng.u8(0..8) {
            0 => geometry().segment_bytes() + rng.u64(0..50_000),
            _ => rng.u64(1..120_000),
        };
        let from = usize::try_from(size.saturating_sub(120_000) / 4096 * 4096).unwrap();
        let is_known = last.contains_key(&file) && rng.bool();
        match last.get(&file).cloned().filter(|_| is_known) {
            // A change of ours of a few bytes, that goes through.
            Some((size, state, mut data)) => {
                let from = rng.u64(size.saturating_sub(120_000)..size) / 4096 * 4096;
                let end = (from + 8192).min(size);
                let range = usize::try_from(from).unwrap()..usize::try_from(end).unwrap();
                // Zeros are not written.
                data[range.clone()].fill(if rng.bool() { 0 } else { rng.u8(..) });
                let part = Part {
                    offset: from,
                    bytes: end - from,
                    data: Some(data[range].to_vec().into()),
                };
                let (old, new) = (token(size, state), token(size, step));
                cache.changed(&key(file), &old, &new, vec![part]);
                states.push((file, size, step, data.clone()));
                last.insert(file, (size, step, data));
            }
            None => {
                let data = content(size, rng.u8(..)).to_vec();
                let token = token(size, step);
                cache.store(&key(file), &token, from as u64, data[from..].to_vec().into());
                states.push((file, size, step, data.clone()));
                last.insert(file, (size, step, data));
            }
        }
    }
    Run { memory, states }
}

/// A disk on which of these writes some sectors have arrived, and some have not. What was made and
/// removed may be as it was before.
fn cut(memory: &Memory, rng: &mut Rng) -> Memory {
    let arrives = rng.u8(0..=10);
    let crash = rng.usize(0..=memory.recorded());
    // Long before, everything has arrived.
    let synced = crash.saturating_sub(rng.usize(0..400));
    memory.after_power_loss(crash, synced, || rng.u8(0..10) < arrives)
}

#[test]
fn whatever_of_the_writes_has_arrived_no_wrong_byte_is_read() {
    let (mut hits, mut misses) = (0, 0);
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let run = run(&mut rng);
        for _ in 0..6 {
            let memory = cut(&run.memory, &mut rng);
            let cache = Cache::in_memory(memory, geometry(), Limits::default());
            for (file, size, state, data) in &run.states {
                for from in (size.saturating_sub(120_000) / 4096 * 4096..*size).step_by(16 << 10) {
                    let token = token(*size, *state);
                    let count = if rng.bool() { 4096 } else { 60_000 };
                    match now(cache.read(&key(*file), &token, from, count)) {
                        Ok(read) => {
                            let at = usize::try_from(from).unwrap();
                            assert!(data[at..].starts_with(&read), "seed {seed}, file {file}");
                            hits += 1;
                        }
                        Err(_) => misses += 1,
                    }
                }
            }
        }
    }
    assert!(hits > 100 && misses > 1000, "{hits} {misses}");
}
