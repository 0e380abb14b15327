//! Storing, reading, changing.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use cache::medium::Memory;
use cache::{Cache, Cause, Geometry, Key, Limits, Part, Time, Token};

pub(crate) fn token(size: u64, state: i64) -> Token {
    let time = Time { seconds: state, nanos: 5 };
    Token { size, mtime: time, ctime: time, fileid: 1, change: 0 }
}

pub(crate) fn key(number: u8) -> Key {
    Key::new(&[number; 32]).unwrap()
}

pub(crate) fn geometry() -> Geometry {
    Geometry::of_blocks_up_to(4096)
}

pub(crate) fn content(size: u64, state: u8) -> Bytes {
    (0..size).map(|at| (at / 7) as u8 ^ state).collect::<Vec<_>>().into()
}

/// In memory nothing waits.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

pub(crate) fn in_memory(memory: &Memory) -> Cache {
    Cache::in_memory(memory.clone(), geometry(), Limits::default())
}

#[test]
fn what_was_stored_is_read_also_by_the_next_process() {
    let memory = Memory::default();
    let cache = in_memory(&memory);
    let size = geometry().segment_bytes() * 2 + 100;
    let (token, data) = (token(size, 1), content(size, 1));
    assert_eq!(now(cache.read(&key(1), &token, 0, 10)), Err(Cause::Cold));
    cache.store(&key(1), &token, 0, data.clone());
    let cache = in_memory(&memory);
    for (offset, count) in [(0, 10), (4095, 2), (0, u32::MAX), (size - 1, 5), (1_048_570, 20)] {
        let end = (offset + u64::from(count)).min(size);
        let expected = &data[offset as usize..end as usize];
        assert_eq!(now(cache.read(&key(1), &token, offset, count)).unwrap(), expected);
    }
    assert_eq!(now(cache.read(&key(1), &token, size, 5)).unwrap(), Bytes::new());
    assert_eq!(now(cache.read(&key(2), &token, 0, 10)), Err(Cause::Cold));
    let statistics = cache.statistics();
    assert_eq!((statistics.hits, statistics.misses_of(Cause::Cold)), (5, 1));
    assert_eq!(statistics.filled.files, 3);
}

#[test]
fn only_whole_blocks_are_stored_and_the_one_that_the_end_cuts() {
    let cache = in_memory(&Memory::default());
    let (token, data) = (token(10_000, 1), content(10_000, 1));
    cache.store(&key(1), &token, 100, data.slice(100..9000));
    assert_eq!(now(cache.read(&key(1), &token, 0, 4096)), Err(Cause::Cold));
    assert_eq!(now(cache.read(&key(1), &token, 4096, 4096)).unwrap(), data[4096..8192]);
    assert_eq!(now(cache.read(&key(1), &token, 4096, 5000)), Err(Cause::Cold));
    cache.store(&key(1), &token, 8192, data.slice(8192..));
    assert_eq!(now(cache.read(&key(1), &token, 4096, 9999)).unwrap(), data[4096..]);
    assert_eq!(cache.around(5000, 10, 1 << 20), (4096, 4096));
    assert_eq!(cache.around(5000, 10, 100), (5000, 10));
    assert_eq!(cache.around(u64::MAX - 3, 10, 1 << 20), (u64::MAX - 3, 10));
}

#[test]
fn another_state_of_the_file_is_missed_and_the_old_one_dropped() {
    let cache = in_memory(&Memory::default());
    let (old, new) = (token(5000, 1), token(5000, 2));
    cache.store(&key(1), &old, 0, content(5000, 1));
    assert_eq!(now(cache.read(&key(1), &new, 0, 10)), Err(Cause::Changed));
    cache.store(&key(1), &new, 0, content(5000, 2));
    assert_eq!(now(cache.read(&key(1), &old, 0, 10)), Err(Cause::Changed));
    assert_eq!(now(cache.read(&key(1), &new, 0, 5000)).unwrap(), content(5000, 2));
    assert_eq!(cache.statistics().dropped_of(Cause::Changed), 1);
}

#[test]
fn a_change_of_ours_keeps_what_it_has_not_touched() {
    let cache = in_memory(&Memory::default());
    let size = 3 * geometry().segment_bytes();
    let (old, new) = (token(size, 1), token(size, 2));
    let mut data = content(size, 1).to_vec();
    cache.store(&key(1), &old, 0, data.clone().into());
    let at = geometry().segment_bytes() + 8192;
    let written = Bytes::from(vec![9; 4096]);
    data[at as usize..][..4096].copy_from_slice(&written);
    let part = Part { offset: at, bytes: 4096, data: Some(written) };
    cache.changed(&key(1), &old, &new, vec![part]);
    let read = |from: u64, count| now(cache.read(&key(1), &new, from, count));
    assert_eq!(read(0, 1 << 20).unwrap(), data[..1 << 20]);
    assert_eq!(read(2 << 20, 1 << 20).unwrap(), data[2 << 20..]);
    assert_eq!(read(at, 4096).unwrap(), data[at as usize..][..4096]);
    assert_eq!(read(1 << 20, 1 << 20).unwrap(), data[1 << 20..2 << 20], "beside it");
    assert_eq!(now(cache.read(&key(1), &old, 0, 10)), Err(Cause::Changed));
    // Shorter, and with a part that nobody knows.
    let cut = token(size - 100, 3);
    let part = Part { offset: size - 100, bytes: 100, data: None };
    cache.changed(&key(1), &new, &cut, vec![part]);
    assert_eq!(now(cache.read(&key(1), &cut, 0, 4096)).unwrap(), data[..4096]);
    let end = &data[size as usize - 4096..size as usize - 100];
    assert_eq!(now(cache.read(&key(1), &cut, size - 4096, 4096)).unwrap(), end);
    // Nobody knows what stands there.
    let part = Part { offset: size - 200, bytes: 100, data: None };
    cache.changed(&key(1), &cut, &token(size - 100, 4), vec![part]);
    assert!(now(cache.read(&key(1), &token(size - 100, 4), size - 4096, 4096)).is_err());
}

#[test]
fn blocks_that_are_written_in_part_are_made_of_both() {
    let memory = Memory::default();
    let cache = in_memory(&memory);
    let part = |offset: u64, data: &[u8]| Part {
        offset,
        bytes: data.len() as u64,
        data: Some(Bytes::copy_from_slice(data)),
    };
    // From nothing: what nobody has written are zeros.
    let (empty, one) = (token(0, 1), token(9000, 2));
    let parts = vec![part(10, b"ab"), part(5000, b"c"), part(8999, b"z")];
    cache.changed(&key(1), &empty, &one, parts);
    let mut expected = vec![0; 9000];
    expected[10..12].copy_from_slice(b"ab");
    expected[5000] = b'c';
    expected[8999] = b'z';
    assert_eq!(now(cache.read(&key(1), &one, 0, 9000)).unwrap(), expected);
    // Over a block's end, and longer.
    let two = token(13_000, 3);
    cache.changed(&key(1), &one, &two, vec![part(4095, b"xy"), part(12_990, b"end")]);
    expected.resize(13_000, 0);
    expected[4095..4097].copy_from_slice(b"xy");
    expected[12_990..12_993].copy_from_slice(b"end");
    let cache = in_memory(&memory);
    assert_eq!(now(cache.read(&key(1), &two, 0, 20_000)).unwrap(), expected);
    // Shorter, then longer again.
    let (three, four) = (token(5000, 4), token(6000, 5));
    cache.changed(&key(1), &two, &three, vec![]);
    cache.changed(&key(1), &three, &four, vec![]);
    expected.truncate(5000);
    expected.resize(6000, 0);
    assert_eq!(now(cache.read(&key(1), &four, 0, 9000)).unwrap(), expected);
    // What is not there is not made up.
    cache.changed(&key(2), &token(9000, 1), &token(9000, 2), vec![part(10, b"ab")]);
    assert_eq!(now(cache.read(&key(2), &token(9000, 2), 0, 10)), Err(Cause::Cold));
    // Nor is a damaged block taken for what was there.
    memory.change(memory.names()[0], |bytes| bytes[4096 + 100] ^= 1);
    cache.changed(&key(1), &four, &token(6000, 6), vec![part(0, b"new")]);
    assert!(now(cache.read(&key(1), &token(6000, 6), 0, 10)).is_err());
    assert_eq!(now(cache.read(&key(1), &token(6000, 6), 4096, 10)).unwrap(), expected[4096..4106]);
}

#[test]
fn a_draft_becomes_the_state_that_it_has_come_to() {
    let cache = in_memory(&Memory::default());
    let size = geometry().segment_bytes() + 5000;
    let data = content(size, 7);
    let draft = Token::draft(Time { seconds: 5, nanos: 0 }, 1);
    cache.store(&key(1), &token(100, 1), 0, content(100, 1));
    assert!(cache.store_draft(&key(1), &draft, 0, data.clone()));
    assert_eq!(now(cache.read(&key(1), &token(size, 2), 0, 10)), Err(Cause::Changed));
    let end = size / 4096 * 4096;
    let rest = data.slice(end as usize..);
    let part = Part { offset: end, bytes: rest.len() as u64, data: Some(rest) };
    cache.changed(&key(1), &draft, &token(size, 2), vec![part]);
    assert_eq!(now(cache.read(&key(1), &token(size, 2), 0, u32::MAX)).unwrap(), data);
    // Another draft, of the same time, is another one.
    let other = Token::draft(Time { seconds: 5, nanos: 0 }, 2);
    cache.changed(&key(1), &other, &token(size, 3), vec![]);
    assert!(now(cache.read(&key(1), &token(size, 3), 0, 10)).is_err());
}

#[test]
fn what_is_invalidated_is_gone_and_why_is_reported() {
    let cache = in_memory(&Memory::default());
    for number in 1..=2 {
        cache.store(&key(number), &token(100, 1), 0, content(100, 1));
    }
    cache.invalidate(Some(key(1).hash()));
    let read = |number| now(cache.read(&key(number), &token(100, 1), 0, 100)).map(drop);
    assert_eq!((read(1), read(2)), (Err(Cause::Invalidated), Ok(())));
    cache.invalidate(None);
    assert_eq!(read(2), Err(Cause::Invalidated));
    assert_eq!(cache.statistics().filled, cache::Filled::default());
}
