//! Flipped bits, failing disks: misses and notices, never wrong bytes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use cache::catalog::Entry;
use cache::header::{BLOCKS, HEADER_BYTES};
use cache::key::Name;
use cache::medium::Memory;
use cache::{Cache, Catalog, Cause, Event, Limits};

use crate::using::{content, geometry, in_memory, key, now, token};

/// One cache with a file of this many blocks, and its content.
fn filled(memory: &Memory, blocks: u64) -> Bytes {
    let (size, cache) = (blocks * 4096 - 10, in_memory(memory));
    let data = content(size, 1);
    cache.store(&key(1), &token(size, 1), 0, data.clone());
    data
}

#[test]
fn a_flipped_bit_in_every_block_is_missed_in_every_block() {
    let memory = Memory::default();
    let blocks = BLOCKS as u64 + 20;
    let data = filled(&memory, blocks);
    for (at, name) in memory.names().into_iter().enumerate() {
        memory.change(name, |bytes| {
            for block in (4096..bytes.len()).step_by(4096) {
                let place = block + (block / 4096 * 37 + at) % 4000.min(bytes.len() - block);
                bytes[place] ^= 1 << (block / 4096 % 8);
            }
        });
    }
    let notices = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&notices);
    let hear = move |event: &Event| {
        assert!(matches!(event, Event::Damaged { .. }), "{event:?}");
        hears.fetch_add(1, Ordering::Relaxed);
    };
    let cache = Cache::in_memory_heard(memory, geometry(), Limits::default(), Box::new(hear));
    let token = token(data.len() as u64, 1);
    for block in 0..blocks {
        let read = now(cache.read(&key(1), &token, block * 4096, 4096));
        assert_eq!(read, Err(Cause::Damaged), "block {block}");
    }
    assert_eq!(cache.statistics().misses_of(Cause::Damaged), blocks);
    assert_eq!(notices.load(Ordering::Relaxed), 1, "there is one notice");
    // And filled again.
    cache.store(&key(1), &token, 0, data.clone());
    assert_eq!(now(cache.read(&key(1), &token, 0, u32::MAX)).unwrap(), data);
}

#[test]
fn a_flipped_bit_anywhere_in_a_header_is_a_miss() {
    for bit in (0..HEADER_BYTES * 8).step_by(13) {
        let memory = Memory::default();
        let data = filled(&memory, 3);
        memory.change(memory.names()[0], |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let cache = in_memory(&memory);
        let read = now(cache.read(&key(1), &token(data.len() as u64, 1), 0, 10));
        assert_eq!(read, Err(Cause::Damaged), "bit {bit}");
    }
}

#[test]
fn segments_that_were_cut_or_exchanged_are_misses() {
    let memory = Memory::default();
    let data = filled(&memory, 3 + BLOCKS as u64);
    let token = token(data.len() as u64, 1);
    let names = memory.names();
    // One in the place of the other.
    let mut first = Vec::new();
    memory.change(names[0], |bytes| first = bytes.clone());
    memory.change(names[1], |bytes| std::mem::swap(bytes, &mut first));
    memory.change(names[0], |bytes| bytes.truncate(4096 + 100));
    let cache = in_memory(&memory);
    for offset in [0, 4096, geometry().segment_bytes()] {
        assert!(now(cache.read(&key(1), &token, offset, 100)).is_err(), "{offset}");
    }
    // A file that a power failure has left without its content says nothing.
    memory.change(names[0], |bytes| bytes.fill(0));
    let cache = in_memory(&memory);
    assert_eq!(now(cache.read(&key(1), &token, 0, 100)), Err(Cause::Cold));
}

#[test]
fn a_disk_that_fails_is_a_miss_and_is_given_up_at_last() {
    let memory = Memory::default();
    let data = filled(&memory, 3);
    let events = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let hear = move |event: &Event| heard.lock().push(event.clone());
    let limits = Limits::default();
    let cache = Cache::in_memory_heard(memory.clone(), geometry(), limits, Box::new(hear));
    let token = token(data.len() as u64, 1);
    memory.fail(Some(io::ErrorKind::StorageFull));
    cache.store(&key(2), &token, 0, data.clone());
    assert_eq!(*events.lock(), [Event::Full]);
    memory.fail(None);
    cache.settle();
    cache.store(&key(2), &token, 0, data.clone());
    assert!(now(cache.read(&key(2), &token, 0, 100)).is_ok(), "it has room again");
    memory.fail(Some(io::ErrorKind::Other));
    assert_eq!(now(cache.read(&key(2), &token, 0, 100)), Err(Cause::Failed));
    for number in 3..10 {
        cache.store(&key(number), &token, 0, data.clone());
    }
    assert!(matches!(events.lock()[..], [Event::Full, Event::Failed { .. }, Event::Off { .. }]));
    memory.fail(None);
    cache.store(&key(3), &token, 0, data);
    assert_eq!(now(cache.read(&key(3), &token, 0, 100)), Err(Cause::Cold));
    assert!(cache.statistics().failures >= 4);
}

fn catalog() -> Catalog {
    let entry = |number: u8| match number % 3 {
        0 => Entry { name: vec![b'a', number], ..Entry::default() },
        rest => Entry {
            name: vec![b'a', number],
            is_there: true,
            cookie: (rest == 1).then_some(u64::from(number)),
            fileid: 7,
            key: vec![number; 32],
            attributes: vec![number; 84],
            link: if rest == 1 { Vec::new() } else { b"to".to_vec() },
        },
    };
    let entries = (1..40).map(entry).collect();
    Catalog { key: key(9), token: token(4096, 3), whole: Some([1; 8]), entries }
}

#[test]
fn a_catalog_is_found_by_the_next_process_and_missed_if_it_is_of_another_state_or_damaged() {
    let memory = Memory::default();
    let cache = in_memory(&memory);
    let find = |cache: &Cache, state| now(cache.catalog(&key(9), &token(4096, state)));
    assert_eq!(find(&cache, 3), Err(Cause::Cold));
    cache.keep_catalog(&catalog());
    let cache = in_memory(&memory);
    assert_eq!(find(&cache, 3), Ok(catalog()));
    assert_eq!(find(&cache, 4), Err(Cause::Changed));
    assert_eq!(now(cache.catalog(&key(8), &token(4096, 3))), Err(Cause::Cold));
    cache.keep_catalog(&Catalog { token: token(4096, 4), ..catalog() });
    assert_eq!(find(&cache, 3), Err(Cause::Changed));
    assert!(find(&cache, 4).is_ok());
    // Every part of it.
    for at in (0..catalog().encode().unwrap().len()).step_by(7) {
        memory.change(memory.names()[0], |bytes| bytes[at] ^= 0x10);
        assert_eq!(find(&cache, 4), Err(Cause::Damaged), "{at}");
        memory.change(memory.names()[0], |bytes| bytes[at] ^= 0x10);
    }
    for len in [0, 1, 255, 256, 257, 1000] {
        let memory = Memory::default();
        memory.put(key_name(), |bytes| {
            *bytes = catalog().encode().unwrap();
            bytes.truncate(len);
        });
        assert!(find(&in_memory(&memory), 3).is_err(), "{len}");
    }
    cache.invalidate(Some(key(9).hash()));
    assert_eq!(find(&cache, 4), Err(Cause::Invalidated));
    assert_eq!(cache.statistics().filled, cache::Filled::default());
}

#[test]
fn a_directory_whose_attributes_change_is_not_damaged() {
    let memory = Memory::default();
    in_memory(&memory).keep_catalog(&catalog());
    let hear = |event: &Event| panic!("{event:?}");
    let cache = Cache::in_memory_heard(memory, geometry(), Limits::default(), Box::new(hear));
    cache.changed(&key(9), &token(4096, 2), &token(4096, 3), Vec::new());
    assert_eq!(now(cache.catalog(&key(9), &token(4096, 3))), Ok(catalog()));
}

fn key_name() -> Name {
    Name { file: key(9).hash(), segment: 0 }
}

#[test]
fn changed_catalogs_are_answers_or_errors() {
    let whole = catalog().encode().unwrap();
    cache::fuzzing::catalog(&whole);
    let mut rng = fastrand::Rng::with_seed(8);
    for _ in 0..1000 {
        let mut input = whole.clone();
        for _ in 0..rng.usize(0..4) {
            let at = rng.usize(..input.len());
            input[at] = rng.u8(..);
        }
        input.truncate(rng.usize(0..=input.len()));
        // As one who knows the checksum would change it.
        if rng.bool() && input.len() > 20 {
            let len = u32::try_from(input.len()).unwrap();
            input[16..20].copy_from_slice(&len.to_le_bytes());
            input[12..16].fill(0);
            let crc = crc32fast::hash(&input);
            input[12..16].copy_from_slice(&crc.to_le_bytes());
        }
        cache::fuzzing::catalog(&input);
    }
}

#[test]
fn changed_headers_and_identities_are_answers_or_errors() {
    let memory = Memory::default();
    filled(&memory, 5);
    let mut header = Vec::new();
    memory.change(memory.names()[0], |bytes| header = bytes[..HEADER_BYTES].to_vec());
    cache::fuzzing::cache(&header);
    let identity = b"nfskit cache 1\norigin x\nroot 01\nblock 12\ncheck 00000000\n";
    let mut rng = fastrand::Rng::with_seed(7);
    for input in [&header[..], identity] {
        for _ in 0..500 {
            let mut input = input.to_vec();
            for _ in 0..rng.usize(0..4) {
                let at = rng.usize(..input.len());
                input[at] = rng.u8(..);
            }
            input.truncate(rng.usize(0..=input.len()));
            cache::fuzzing::cache(&input);
        }
    }
}
