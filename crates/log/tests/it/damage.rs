//! What a scan reports of a log that is not as it was written.

use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;
use log::journal::Begin;
use log::replay::Plan;
use log::scan::{Found, Lost, ScanError, salvage, scan};
use log::{BLOCK, Journal, Key, Limits, Medium, Set, Stamp};

const BYTES: usize = 16 << 20;

fn set() -> Set {
    Set { id: [5; 16], bytes: vec![BYTES as u64] }
}

/// A log with so many frames of one record each, and where they lie.
fn written(frames: u64) -> (Vec<u8>, Vec<usize>) {
    let mut log = vec![0; BYTES];
    let mut journal = Journal::new(&set(), [0; 16], None, Limits::default());
    let mut places = Vec::new();
    let mut buffer = Vec::new();
    for frame in 0..=frames {
        let Begin::Write { at, frame: begun } = journal.begin(0, &mut buffer) else {
            panic!("nothing to write")
        };
        let at = usize::try_from(at).unwrap();
        log[at..at + buffer.len()].copy_from_slice(&buffer);
        journal.finish(begun, true);
        places.push(at);
        let key = Key::new(b"file").unwrap();
        let stamps = (Stamp::default(), Stamp::default());
        journal.submit(key, frame * 5000, stamps, Bytes::from(vec![7; 5000]), ());
    }
    (log, places)
}

fn found(log: &[u8]) -> Result<Found, ScanError> {
    scan(log, &set())
}

#[test]
fn what_was_written_is_found_and_planned() {
    let (log, places) = written(3);
    let found = found(&log).unwrap();
    let at: Vec<_> = found.frames.iter().map(|place| usize::try_from(place.at).unwrap()).collect();
    assert_eq!(at, places[1..], "the first frame holds nothing");
    let plan = Plan::of(&log[..], &set(), &found).unwrap();
    let needed = plan.files.values().next().unwrap();
    assert_eq!((needed.records, needed.bytes, found.is_torn), (3, 15_000, false));
}

#[test]
fn a_torn_end_is_distinguished_from_damage_in_the_middle() {
    let (whole, places) = written(4);
    for (index, at) in places.iter().enumerate() {
        let mut log = whole.clone();
        log[at + 200] ^= 1;
        match (index, found(&log)) {
            // Nothing needs it.
            (0, Ok(found)) => assert_eq!(found.frames.len(), 4),
            (4, Ok(found)) => assert_eq!((found.frames.len(), found.is_torn), (3, true)),
            (_, Err(ScanError::Damaged { missing, tail: 2, last: 5 })) => {
                assert_eq!(missing, index as u64 + 1);
            }
            (_, found) => panic!("frame {index}: {found:?}"),
        }
    }
}

#[test]
fn what_is_whole_of_a_damaged_log_is_salvaged_and_the_rest_is_counted() {
    let (mut log, places) = written(4);
    let of = |log: &[u8]| {
        let (found, lost) = salvage(log, &set()).unwrap();
        let frames: Vec<_> = found.frames.iter().map(|place| place.sequence).collect();
        (frames, found.next, lost)
    };
    assert_eq!(of(&log), (vec![2, 3, 4, 5], 6, Lost { frames: 0, first: 0 }));
    log[places[1] + 200] ^= 1;
    log[places[3] + 200] ^= 1;
    assert_eq!(of(&log), (vec![3, 5], 6, Lost { frames: 2, first: 2 }));
    // The last was answered to nobody, as far as anything tells.
    log[places[4] + 200] ^= 1;
    assert_eq!(of(&log), (vec![3], 6, Lost { frames: 2, first: 2 }));
    // Of a header nothing is left either, and no later one knows of it.
    log[places[4]..places[4] + 112].fill(0);
    assert_eq!(of(&log), (vec![3], 5, Lost { frames: 1, first: 2 }));
    assert_eq!(of(&vec![0; BYTES]), (vec![], 1, Lost { frames: 0, first: 0 }));
}

/// Behind what was salvaged, a log goes on as behind anything else.
#[test]
fn a_salvaged_log_goes_on() {
    let (mut log, places) = written(4);
    log[places[2] + 200] ^= 1;
    let (found, _) = salvage(&log[..], &set()).unwrap();
    let mut journal = Journal::<()>::new(&set(), [0; 16], Some(&found), Limits::default());
    let mut buffer = Vec::new();
    for _ in 0..3 {
        let Begin::Write { at, frame } = journal.begin(0, &mut buffer) else {
            panic!("nothing to write")
        };
        let at = usize::try_from(at).unwrap();
        log[at..at + buffer.len()].copy_from_slice(&buffer);
        journal.finish(frame, true);
        let key = Key::new(b"file").unwrap();
        let stamps = (Stamp::default(), Stamp::default());
        journal.submit(key, 0, stamps, Bytes::from(vec![8; 100]), ());
    }
    let found = scan(&log[..], &set()).unwrap();
    let plan = Plan::of(&log[..], &set(), &found).unwrap();
    assert_eq!(plan.files.values().next().unwrap().records, 2);
}

#[test]
fn a_frame_that_was_begun_proves_that_the_one_before_was_whole() {
    let (mut log, places) = written(3);
    log[places[2] + 200] ^= 1;
    log[places[3] + 4608] ^= 1;
    assert!(matches!(found(&log), Err(ScanError::Damaged { missing: 3, tail: 2, last: 4 })));
}

/// One record, every bit of its frame: either it is seen that it is torn, or nothing is different.
#[test]
fn every_flipped_bit_of_the_newest_frame_makes_it_torn() {
    let (mut log, places) = written(1);
    // A small file of the part that matters is as good.
    log.truncate(places[1] + 8192);
    let small = Set { bytes: vec![log.len() as u64], ..set() };
    for bit in 0..8192 * 8 {
        log[places[1] + bit / 8] ^= 1 << (bit % 8);
        let found = scan(&log[..], &small).unwrap();
        // A header is believed if its own checksum is right.
        let is_begun = bit / 8 >= 112 || (104..108).contains(&(bit / 8));
        assert_eq!((found.last.sequence, found.is_torn), (1, is_begun), "bit {bit}");
        log[places[1] + bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn every_flipped_bit_of_a_frame_in_the_middle_is_damage() {
    let (mut log, places) = written(2);
    log.truncate(places[2] + 8192);
    let small = Set { bytes: vec![log.len() as u64], ..set() };
    for bit in 0..8192 * 8 {
        log[places[1] + bit / 8] ^= 1 << (bit % 8);
        let result = scan(&log[..], &small);
        assert!(
            matches!(result, Err(ScanError::Damaged { missing: 2, .. })),
            "bit {bit}: {result:?}"
        );
        log[places[1] + bit / 8] ^= 1 << (bit % 8);
    }
    assert!(scan(&log[..], &small).is_ok());
}

#[test]
fn an_empty_log_and_one_of_another_id_are_damaged() {
    assert!(matches!(found(&vec![0; BYTES]), Err(ScanError::Empty)));
    let (log, _) = written(2);
    let other = Set { id: [6; 16], ..set() };
    assert!(matches!(scan(&log[..], &other), Err(ScanError::Empty)));
    let cut = &log[..3 << 20];
    assert!(matches!(found(cut), Err(ScanError::Io(_))));
}

/// A client may write a copy of the log's own frames, at any place.
#[test]
fn a_copy_of_a_frame_in_the_data_is_none() {
    let (log, places) = written(2);
    let copy = log[places[1]..places[1] + 8192].to_vec();
    let mut journal = Journal::new(&set(), [0; 16], None, Limits::default());
    let mut buffer = Vec::new();
    let mut new = vec![0; BYTES];
    for _ in 0..2 {
        let Begin::Write { at, frame } = journal.begin(0, &mut buffer) else {
            panic!("nothing to write")
        };
        let at = usize::try_from(at).unwrap();
        new[at..at + buffer.len()].copy_from_slice(&buffer);
        journal.finish(frame, true);
        let key = Key::new(b"file").unwrap();
        let stamps = (Stamp::default(), Stamp::default());
        // Such that the copy begins at a block.
        let data = [vec![0; 4096 - 112 - 56 - 4], copy.clone()].concat();
        journal.submit(key, 0, stamps, Bytes::from(data), ());
    }
    // The newest frame is torn, so that its blocks are looked at one by one.
    let end = usize::try_from(found(&new).unwrap().last.at).unwrap();
    new[end + 200] ^= 1;
    assert_eq!(found(&new).unwrap().last.sequence, 1);
}

/// Bytes of the corpus and others through the body of the fuzz target.
#[test]
fn arbitrary_bytes_are_refused_or_read() {
    let (mut log, places) = written(2);
    log.truncate(places[2] + 8192);
    log::fuzzing::write_log(&log);
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        let mut input = log.clone();
        for _ in 0..rng.usize(1..40) {
            let at = rng.usize(0..input.len());
            input[at] = rng.u8(..);
        }
        input.truncate(rng.usize(0..=input.len()));
        log::fuzzing::write_log(&input);
    }
}

/// A disk that has lost some of its sectors.
struct Bad<'l> {
    log: &'l [u8],
    blocks: BTreeSet<usize>,
}

impl Medium for Bad<'_> {
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at).unwrap();
        match self.blocks.range(from..from + into.len()).next() {
            Some(_) => Err(io::Error::other("a bad sector")),
            None => self.log.read(log, at, into),
        }
    }
}

fn with_bad(log: &[u8], blocks: impl IntoIterator<Item = usize>) -> Result<Found, ScanError> {
    scan(&Bad { log, blocks: blocks.into_iter().collect() }, &set())
}

#[test]
fn a_block_that_cannot_be_read_is_damage_only_where_a_needed_frame_is() {
    let (log, places) = written(4);
    let end = places[4] + 8192;
    for at in (BLOCK..32 * BLOCK).step_by(BLOCK) {
        let frame = places.iter().rposition(|&place| place <= at).unwrap();
        match (frame, with_bad(&log, [at])) {
            // Before the tail.
            (0, Ok(found)) => {
                let unreadable = found.unreadable.unwrap();
                assert_eq!((unreadable.at, unreadable.may_be_newest), (at as u64, false));
                assert_eq!((found.frames.len(), found.is_torn), (4, false));
            }
            (1..4, Err(ScanError::Unreadable { what, unreadable })) => {
                let missing = matches!(*what, ScanError::Damaged { missing, tail: 2, last: 5 }
                    if missing == frame as u64 + 1);
                assert!(missing && unreadable.at == at as u64, "{what}");
            }
            (4, Ok(found)) => {
                let unreadable = found.unreadable.unwrap();
                assert_eq!(found.frames.len(), if at < end { 3 } else { 4 }, "{at}");
                assert_eq!(unreadable.may_be_newest, at <= end, "{at}");
                assert!(found.next > 5, "its number is not given again");
            }
            (_, found) => panic!("block {at} of frame {frame}: {found:?}"),
        }
    }
}

#[test]
fn what_is_whole_around_blocks_that_cannot_be_read_is_salvaged() {
    let (log, places) = written(4);
    let bad = Bad { log: &log, blocks: [places[1], places[3]].into() };
    let (found, lost) = salvage(&bad, &set()).unwrap();
    assert_eq!(lost, Lost { frames: 2, first: 2 });
    let frames: Vec<_> = found.frames.iter().map(|place| place.sequence).collect();
    assert_eq!((frames, found.unreadable.unwrap().blocks), (vec![3, 5], 2));
    assert_eq!(Plan::of(&bad, &set(), &found).unwrap().files.len(), 1);
}

#[test]
fn a_disk_that_reads_hardly_anything_is_given_up() {
    let (log, _) = written(1);
    let blocks = |count: usize| (100..100 + count).map(|block| block * BLOCK);
    assert_eq!(with_bad(&log, blocks(256)).unwrap().unreadable.unwrap().blocks, 256);
    assert!(matches!(with_bad(&log, blocks(257)), Err(ScanError::Io(_))));
}
