//! What a cache takes never exceeds its bounds, whatever is stored.

use bytes::Bytes;
use cache::medium::Memory;
use cache::{Cache, Cause, Key, Limits};
use proptest::prelude::*;

use crate::using::{content, geometry, key, now, token};

fn limits(bytes_max: u64, files_max: u64) -> Limits {
    Limits { bytes_max, files_max, ..Limits::default() }
}

fn numbered(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

#[test]
fn bytes_and_files_stay_below_their_bounds_and_what_went_is_reported() {
    let cache = Cache::in_memory(Memory::default(), geometry(), limits(1 << 20, 50));
    for number in 0..1000 {
        cache.store(&numbered(number), &token(10_000, 1), 0, content(10_000, 1));
        let filled = cache.statistics().filled;
        assert!(filled.bytes <= 1 << 20 && filled.files <= 50, "{filled:?}");
    }
    let statistics = cache.statistics();
    assert!(statistics.filled.files >= 40, "{statistics:?}");
    assert_eq!(statistics.dropped_of(Cause::Evicted), 1000 - statistics.filled.files);
    let read = now(cache.read(&numbered(0), &token(10_000, 1), 0, 1));
    assert_eq!(read, Err(Cause::Evicted));
}

#[test]
fn a_file_larger_than_the_cache_passes_through_and_pinned_ones_stay() {
    let cache = Cache::in_memory(Memory::default(), geometry(), limits(4 << 20, 1000));
    cache.pin(key(1).hash(), true);
    cache.store(&key(1), &token(1 << 20, 1), 0, content(1 << 20, 1));
    let large = token(64 << 20, 1);
    for at in (0..64 << 20).step_by(1 << 20) {
        cache.store(&key(2), &large, at, Bytes::from(vec![1; 1 << 20]));
        assert!(cache.statistics().filled.bytes <= 4 << 20);
    }
    assert!(now(cache.read(&key(1), &token(1 << 20, 1), 0, 1 << 20)).is_ok());
    assert!(now(cache.read(&key(2), &large, 63 << 20, 1 << 20)).is_ok(), "the last is there");
    cache.clean(1 << 20);
    assert!(now(cache.read(&key(1), &token(1 << 20, 1), 0, 1 << 20)).is_ok());
    assert!(now(cache.read(&key(2), &large, 63 << 20, 1 << 20)).is_err());
}

#[test]
fn nothing_fits_and_nothing_is_stored() {
    let cache = Cache::in_memory(Memory::default(), geometry(), limits(4096, 10));
    cache.store(&key(1), &token(4096, 1), 0, content(4096, 1));
    let statistics = cache.statistics();
    assert_eq!((statistics.filled.files, statistics.unstored_bytes), (0, 4096));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a model that keeps everything: what is read is what was stored last under the token
    /// that is requested, or a miss, and the bounds hold.
    #[test]
    fn reads_are_right_or_misses(
        steps in prop::collection::vec((0_u8..8, 1_u8..6, 0_u64..6, 0_u64..30_000), 1..120),
    ) {
        let memory = Memory::default();
        let limits = limits(150_000, 12);
        let mut cache = Cache::in_memory(memory.clone(), geometry(), limits);
        let mut states = [1_u8; 6];
        for (what, file, segment, size) in steps {
            let state = states[usize::from(file)];
            let size = segment * geometry().segment_bytes() + size;
            let from = size.saturating_sub(40_000) / 4096 * 4096;
            let data = |state: u8| -> Bytes {
                (from..size).map(|at| (at / 7) as u8 ^ state ^ file).collect::<Vec<_>>().into()
            };
            match what {
                0..=2 => {
                    cache.store(&key(file), &token(size, i64::from(state)), from, data(state));
                }
                3..=5 => {
                    let wanted = token(size, i64::from(state));
                    if let Ok(read) = now(cache.read(&key(file), &wanted, from, 50_000)) {
                        prop_assert_eq!(read, data(state));
                    }
                }
                6 => states[usize::from(file)] += 1,
                _ => cache = Cache::in_memory(memory.clone(), geometry(), limits),
            }
            let filled = cache.statistics().filled;
            prop_assert!(what == 7 || filled.bytes <= 150_000 && filled.files <= 12, "{filled:?}");
        }
    }
}
