//! Every index against a model that is plainly right: three arrays of bytes.
//!
//! Whatever writers, sends, replies, short replies, failures, COMMITs and restarts of the server
//! come in whatever order, the server ends with the newest bytes of everything that did not fail,
//! and what a COMMIT covered is on its disk.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::extents::Extents;
use super::index::{Chunk, Data, Index, Promise};
use super::pages::{Find, Pages};

/// Bytes of the file in the model: a few cells, and no multiple of a page.
const FILE_BYTES: usize = 5 * 4096 + 1000;

const WSIZE: u32 = 8192;

#[derive(Clone, Debug)]
enum Step {
    Write {
        offset: usize,
        len: usize,
        caller: u32,
        given: bool,
    },
    Send {
        urgent: bool,
        bytes_max: u32,
    },
    /// Of those under way, one is answered for a part of a thousand.
    Answer {
        which: usize,
        part: u32,
        stable: bool,
    },
    Fail {
        which: usize,
    },
    Commit,
    Committed,
    CommitFailed,
    /// The server forgets what is unstable.
    Restart,
    Discard {
        from: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![1..200_usize, Just(4096), Just(8192), 1..9000_usize];
    let offset = prop_oneof![
        0..FILE_BYTES,
        (0..6_usize).prop_map(|page| page * 4096),
        Just(usize::MAX), // where the last one ended
    ];
    let write = (offset, len, 0..2_u32, any::<bool>())
        .prop_map(|(offset, len, caller, given)| Step::Write { offset, len, caller, given });
    let bytes_max = prop_oneof![Just(WSIZE), 1..WSIZE];
    let send =
        (any::<bool>(), bytes_max).prop_map(|(urgent, bytes_max)| Step::Send { urgent, bytes_max });
    let part = prop_oneof![3 => Just(1000_u32), 1 => 1..1000_u32];
    let answer = (0..8_usize, part, any::<bool>()).prop_map(|(which, part, stable)| Step::Answer {
        which,
        part,
        stable,
    });
    prop_oneof![
        8 => write,
        6 => send,
        6 => answer,
        1 => (0..8_usize).prop_map(|which| Step::Fail { which }),
        2 => Just(Step::Commit),
        2 => Just(Step::Committed),
        1 => Just(Step::CommitFailed),
        1 => Just(Step::Restart),
        1 => (0..FILE_BYTES).prop_map(|from| Step::Discard { from }),
    ]
}

struct World {
    index: Box<dyn Index>,
    /// What the last writer of each byte wrote; 0 where nobody did, or it need not arrive.
    newest: Vec<u8>,
    /// Bytes whose writing failed or was discarded: anything may be there.
    doubtful: Vec<bool>,
    /// Bytes that were discarded and not written since: they must not be sent any more.
    dead: Vec<bool>,
    /// The server's memory and disk.
    cache: Vec<u8>,
    disk: Vec<u8>,
    boot: u8,
    under_way: BTreeMap<u64, Chunk>,
    /// A COMMIT that has been executed, and by which server.
    commit: Option<u8>,
    writes: u8,
    last_end: usize,
}

impl World {
    fn new(index: Box<dyn Index>) -> Self {
        Self {
            index,
            newest: vec![0; FILE_BYTES],
            doubtful: vec![false; FILE_BYTES],
            dead: vec![false; FILE_BYTES],
            cache: vec![0; FILE_BYTES],
            disk: vec![0; FILE_BYTES],
            boot: 1,
            under_way: BTreeMap::new(),
            commit: None,
            writes: 0,
            last_end: 0,
        }
    }

    fn verifier(&self) -> [u8; 8] {
        [self.boot; 8]
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write { offset, len, caller, given } => {
                let offset = if offset == usize::MAX { self.last_end } else { offset };
                let end = (offset + len).min(FILE_BYTES);
                if offset < end {
                    self.write(offset, end, caller, given);
                }
            }
            Step::Send { urgent, bytes_max } => {
                self.send(bytes_max, if urgent { self.index.age() } else { 0 });
            }
            Step::Answer { which, part, stable } => {
                let offset = self.under_way.keys().nth(which).copied();
                if let Some(offset) = offset {
                    self.answer(offset, part, stable);
                }
            }
            Step::Fail { which } => {
                let offset = self.under_way.keys().nth(which).copied();
                if let Some(chunk) = offset.and_then(|offset| self.under_way.remove(&offset)) {
                    // A page's request fails as a whole.
                    self.doubt(chunk.offset / 4096 * 4096, chunk.offset + chunk.data.len() as u64);
                    self.index.failed(chunk.offset);
                }
            }
            Step::Commit => {
                if self.commit.is_none() {
                    self.index.begin_commit();
                    self.disk.copy_from_slice(&self.cache);
                    self.commit = Some(self.boot);
                }
            }
            Step::Committed => {
                if let Some(boot) = self.commit.take() {
                    self.index.committed([boot; 8]);
                }
            }
            Step::CommitFailed => {
                if self.commit.take().is_some() {
                    self.index.commit_failed();
                    self.doubt(0, FILE_BYTES as u64);
                }
            }
            Step::Restart => {
                self.cache.copy_from_slice(&self.disk);
                self.boot = self.boot.wrapping_add(1).max(1);
            }
            Step::Discard { from } => {
                self.index.discard(from as u64);
                self.doubt(from as u64, FILE_BYTES as u64);
                self.dead[from..].fill(true);
            }
        }
        self.check();
    }

    fn write(&mut self, offset: usize, end: usize, caller: u32, given: bool) {
        self.writes = self.writes.wrapping_add(1).max(1);
        let bytes = vec![self.writes; end - offset];
        let data = if given {
            Data::Given { of_bytes: bytes.len(), bytes: bytes.clone().into() }
        } else {
            Data::Lent(&bytes)
        };
        // Page by page, as the policy of the pages has it.
        let mut at = 0;
        while at < data.len() {
            let left = 4096 - (offset + at) % 4096;
            let until = (at + left).min(data.len());
            let part = data.slice(at..until);
            let from = (offset + at) as u64;
            let (mut before, charge) =
                (self.index.sums().held_bytes, self.index.charge(from, part.len()));
            while self.index.insert(from, &part, caller).is_err() {
                self.settle();
                before = self.index.sums().held_bytes;
            }
            let held = self.index.sums().held_bytes;
            assert!(held <= before + charge, "{held} {before} {charge}");
            let range = offset + at..offset + until;
            self.newest[range.clone()].fill(self.writes);
            self.doubtful[range.clone()].fill(false);
            self.dead[range].fill(false);
            at = until;
        }
        self.last_end = end;
    }

    fn send(&mut self, bytes_max: u32, urgent_age: u64) -> bool {
        let is_ready = self.index.is_ready(urgent_age);
        let chunk = self.index.take(bytes_max, urgent_age);
        assert_eq!(is_ready, chunk.is_some());
        let Some(chunk) = chunk else { return false };
        assert!(!chunk.data.is_empty() && chunk.data.len() <= WSIZE as usize);
        let range = chunk.offset..chunk.offset + chunk.data.len() as u64;
        let within = |at: u64| usize::try_from(at).unwrap();
        let is_dead = self.dead[within(range.start)..within(range.end)].contains(&true);
        assert!(!is_dead, "discarded: {range:?}");
        for other in self.under_way.values() {
            let end = other.offset + other.data.len() as u64;
            assert!(end <= range.start || range.end <= other.offset, "overtaken: {range:?}");
        }
        self.under_way.insert(chunk.offset, chunk);
        true
    }

    fn answer(&mut self, offset: u64, part: u32, stable: bool) {
        let chunk = self.under_way.remove(&offset).unwrap();
        let len = u32::try_from(chunk.data.len()).unwrap();
        let count = (len * part / 1000).max(1);
        let from = usize::try_from(offset).unwrap();
        let to = from + count as usize;
        let data = &chunk.data[..count as usize];
        self.cache[from..to].copy_from_slice(data);
        if stable {
            self.disk[from..to].copy_from_slice(data);
            self.index.written(offset, count, Promise::Stable);
        } else {
            let verifier = self.verifier();
            self.index.written(offset, count, Promise::Unstable { verifier });
        }
    }

    /// Sends, answers and commits until nothing is left.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            while self.send(WSIZE, self.index.age()) {}
            if let Some((&offset, _)) = self.under_way.first_key_value() {
                self.answer(offset, 1000, false);
                continue;
            }
            if self.index.oldest_unstable().is_none() {
                return;
            }
            if self.commit.is_none() {
                self.step(&Step::Commit);
            }
            self.step(&Step::Committed);
        }
        panic!("it does not settle: {:?}", self.index);
    }

    fn doubt(&mut self, from: u64, to: u64) {
        let range = usize::try_from(from).unwrap()..usize::try_from(to).unwrap();
        self.doubtful[range].fill(true);
    }

    /// The sums agree with each other and with the ages.
    fn check(&self) {
        let sums = self.index.sums();
        let nothing_unanswered = self.index.oldest_unanswered().is_none();
        assert_eq!(nothing_unanswered, self.index.dirty_end().is_none());
        assert_eq!(self.index.oldest_unstable().is_none(), sums.unstable_bytes == 0);
        assert!(sums.held_unstable_bytes >= sums.unstable_bytes);
        assert!(sums.held_bytes >= sums.held_unstable_bytes);
        let end = self.index.unstable_end();
        assert_eq!(end.is_none(), sums.unstable_bytes == 0);
        for (range, is_all) in [(0..FILE_BYTES as u64, true), (7..31, false)] {
            let unstable = self.index.unstable(&range);
            let ends = unstable.iter().map(|(at, data)| at + data.len() as u64);
            assert!(ends.clone().all(|end| end <= range.end), "not more than was requested");
            assert!(unstable.iter().all(|(at, data)| *at >= range.start && !data.is_empty()));
            assert!(unstable.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order");
            let bytes: usize = unstable.iter().map(|(_, data)| data.len()).sum();
            if is_all {
                assert_eq!((bytes as u64, ends.last()), (sums.unstable_bytes, end));
            }
        }
        for chunk in self.under_way.values() {
            let range = chunk.offset..chunk.offset + chunk.data.len() as u64;
            assert!(self.index.is_unanswered(&range, u64::MAX));
        }
    }

    fn finish(&mut self) {
        self.settle();
        // A server that loses its memory now loses nothing.
        let same = |array: &[u8]| {
            (0..FILE_BYTES).find(|&at| array[at] != self.newest[at] && !self.doubtful[at])
        };
        assert_eq!(same(&self.cache), None, "memory");
        assert_eq!(same(&self.disk), None, "disk");
        let sums = self.index.sums();
        assert_eq!((sums.held_bytes, sums.requests), (0, 0));
    }
}

fn run(index: Box<dyn Index>, steps: &[Step]) {
    let mut world = World::new(index);
    for step in steps {
        world.step(step);
    }
    world.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn extents_end_as_the_writers_wanted(steps in prop::collection::vec(step(), 1..120)) {
        run(Box::new(Extents::new(WSIZE)), &steps);
    }

    #[test]
    fn scanned_pages_end_as_the_writers_wanted(steps in prop::collection::vec(step(), 1..120)) {
        run(Box::new(Pages::new(WSIZE, Find::Scan)), &steps);
    }

    #[test]
    fn hashed_pages_end_as_the_writers_wanted(steps in prop::collection::vec(step(), 1..120)) {
        run(Box::new(Pages::new(WSIZE, Find::Hash)), &steps);
    }
}
