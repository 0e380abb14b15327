//! Which program of this host holds which lock: a plain table, which waits for nothing.
//!
//! Bounded: `RANGES_MAX` ranges are held, by the programs of one user half of what the others
//! leave, so that nobody takes the locks of all; more are refused. Those who wait are as many as
//! there are threads.

use std::collections::HashMap;

use wire::nfs3::FileHandle;

/// About what Linux's default limits let one user's programs hold (guess).
const RANGES_MAX: usize = 1 << 16;

/// How far a circle of programs that wait for each other is followed: as far as Linux does.
const CIRCLE_MAX: usize = 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Shared,
    Exclusive,
}

/// Who holds locks: a process, or an open file, by the kernel's number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Owner {
    pub number: u64,
    /// By flock(2).
    pub is_flock: bool,
}

/// Bytes of a file, the last one included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Range {
    pub first: u64,
    pub last: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lock {
    pub owner: Owner,
    pub kind: Kind,
    pub range: Range,
    /// The open file through which it was taken.
    pub open: u64,
    pub pid: u32,
    /// The user who has taken it.
    pub uid: u32,
}

/// Why the table does not take a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Obstacle {
    /// This one.
    Held(Lock),
    /// There are too many.
    Full,
}

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Table {
    held: HashMap<FileHandle, Vec<Lock>>,
    /// Ranges of all files, and those of each user who has any.
    ranges: usize,
    ranges_by_uid: HashMap<u32, usize>,
    waiting: HashMap<u64, (FileHandle, Lock)>,
    tickets: u64,
}

impl Range {
    fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The bytes that both have.
    fn shared_with(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }

    /// What is left of it, before and behind, where `other` is taken out.
    fn without(self, other: Self) -> [Option<Self>; 2] {
        let before = (self.first < other.first)
            .then(|| Self { first: self.first, last: self.last.min(other.first - 1) });
        let behind = (self.last > other.last)
            .then(|| Self { first: self.first.max(other.last + 1), last: self.last });
        [before, behind]
    }

    fn touches(self, other: Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }
}

impl Table {
    /// A lock that somebody else holds, and with which this one cannot be.
    pub(super) fn conflict(&self, file: &FileHandle, wanted: &Lock) -> Option<Lock> {
        let excludes = |held: &&Lock| {
            held.owner != wanted.owner
                && held.owner.is_flock == wanted.owner.is_flock
                && (held.kind == Kind::Exclusive || wanted.kind == Kind::Exclusive)
                && held.range.meets(wanted.range)
        };
        self.held.get(file)?.iter().find(excludes).copied()
    }

    /// Grants a lock. Gives what its owner held of these bytes before, which it replaces.
    pub(super) fn lock(&mut self, file: &FileHandle, wanted: Lock) -> Result<Vec<Lock>, Obstacle> {
        if let Some(held) = self.conflict(file, &wanted) {
            return Err(Obstacle::Held(held));
        }
        // The most that it can add: itself, and what it splits.
        if !self.has_room(wanted.uid, 2) {
            return Err(Obstacle::Full);
        }
        let replaced = self.take_out(file, wanted.owner, wanted.range);
        self.put(file, wanted);
        Ok(replaced)
    }

    /// Takes back what [`Table::lock`] has granted, as far as its owner still has it: what was
    /// given up since stays free. What it replaced comes back where nobody else has taken a lock
    /// with which that could not be; elsewhere the owner keeps what was granted.
    pub(super) fn undo(&mut self, file: &FileHandle, granted: &Lock, replaced: &[Lock]) {
        let is_left = |lock: &&Lock| {
            (lock.owner, lock.kind) == (granted.owner, granted.kind)
                && lock.range.meets(granted.range)
        };
        let held = self.held.get(file).into_iter().flatten();
        let within = |lock: &Lock| lock.range.shared_with(granted.range);
        let left: Vec<Range> = held.filter(is_left).filter_map(within).collect();
        for range in left {
            self.take_out(file, granted.owner, range);
            for lock in replaced {
                let Some(range) = lock.range.shared_with(range) else { continue };
                let lock = Lock { range, ..*lock };
                let can_be = self.conflict(file, &lock).is_none();
                self.put(file, if can_be { lock } else { Lock { kind: granted.kind, ..lock } });
            }
        }
    }

    /// # Errors
    /// There is no room for the parts of the lock that it splits.
    pub(super) fn unlock(
        &mut self,
        file: &FileHandle,
        owner: Owner,
        range: Range,
    ) -> Result<(), Obstacle> {
        let splits = |lock: &Lock| {
            lock.owner == owner && lock.range.first < range.first && lock.range.last > range.last
        };
        let split = self.held.get(file).and_then(|held| held.iter().find(|lock| splits(lock)));
        if split.is_some_and(|lock| !self.has_room(lock.uid, 1)) {
            return Err(Obstacle::Full);
        }
        self.take_out(file, owner, range);
        Ok(())
    }

    pub(super) fn holds(&self, file: &FileHandle, owner: Owner) -> bool {
        self.held.get(file).is_some_and(|held| held.iter().any(|lock| lock.owner == owner))
    }

    /// All of an owner's locks of a file go: the process has closed it. Gives whether there were
    /// any.
    pub(super) fn release(&mut self, file: &FileHandle, owner: Owner) -> bool {
        self.release_if(file, |lock| lock.owner == owner)
    }

    /// The same of locks that are of another kind than what the owner wants now.
    pub(super) fn release_other(&mut self, file: &FileHandle, wanted: &Lock) -> bool {
        self.release_if(file, |lock| lock.owner == wanted.owner && lock.kind != wanted.kind)
    }

    /// Whatever was locked through an open file goes with it.
    pub(super) fn release_open(&mut self, file: &FileHandle, open: u64) -> bool {
        self.release_if(file, |lock| lock.open == open)
    }

    fn release_if(&mut self, file: &FileHandle, goes: impl Fn(&Lock) -> bool) -> bool {
        let Some(held) = self.held.get_mut(file) else { return false };
        let gone: Vec<Lock> = held.extract_if(.., |lock| goes(lock)).collect();
        if held.is_empty() {
            self.held.remove(file);
        }
        self.count(&gone, &[]);
        !gone.is_empty()
    }

    /// Whether a user may have so many ranges more.
    fn has_room(&self, uid: u32, more: usize) -> bool {
        let own = self.ranges_by_uid.get(&uid).copied().unwrap_or(0);
        own + more <= RANGES_MAX.saturating_sub(self.ranges - own) / 2
    }

    /// Some ranges are no longer held, others are.
    fn count(&mut self, gone: &[Lock], come: &[Lock]) {
        for lock in come {
            *self.ranges_by_uid.entry(lock.uid).or_default() += 1;
        }
        for lock in gone {
            let own = self.ranges_by_uid.get_mut(&lock.uid).expect("counted when it was granted");
            *own -= 1;
            if *own == 0 {
                self.ranges_by_uid.remove(&lock.uid);
            }
        }
        self.ranges = self.ranges + come.len() - gone.len();
        debug_assert_eq!(self.ranges, self.ranges_by_uid.values().sum::<usize>());
    }

    /// Somebody waits for a lock, until [`Table::has_waited`]. None where that would be for ever:
    /// those it waits for wait for it.
    pub(super) fn waits(&mut self, file: &FileHandle, wanted: Lock) -> Option<u64> {
        let mut blocking = self.conflict(file, &wanted);
        for _ in 0..CIRCLE_MAX {
            let Some(holder) = blocking.filter(|_| !wanted.owner.is_flock) else { break };
            if holder.owner == wanted.owner {
                return None;
            }
            let waits_for = |(file, lock): &(FileHandle, Lock)| {
                (lock.owner == holder.owner).then(|| self.conflict(file, lock)).flatten()
            };
            blocking = self.waiting.values().find_map(waits_for);
        }
        self.tickets += 1;
        self.waiting.insert(self.tickets, (*file, wanted));
        Some(self.tickets)
    }

    pub(super) fn has_waited(&mut self, ticket: u64) {
        self.waiting.remove(&ticket);
    }

    /// Takes a range out of what an owner holds; gives what was there.
    fn take_out(&mut self, file: &FileHandle, owner: Owner, range: Range) -> Vec<Lock> {
        let Some(held) = self.held.get_mut(file) else { return Vec::new() };
        let is_in = |lock: &mut Lock| lock.owner == owner && lock.range.meets(range);
        let cut: Vec<Lock> = held.extract_if(.., is_in).collect();
        let without = |lock: &Lock| {
            let lock = *lock;
            lock.range.without(range).into_iter().flatten().map(move |range| Lock { range, ..lock })
        };
        let left: Vec<Lock> = cut.iter().flat_map(without).collect();
        held.extend(&left);
        if held.is_empty() {
            self.held.remove(file);
        }
        self.count(&cut, &left);
        let within = |lock: Lock| Some(Lock { range: lock.range.shared_with(range)?, ..lock });
        cut.into_iter().filter_map(within).collect()
    }

    /// Adds a lock to those with which it can be, and joins it with its owner's beside it.
    fn put(&mut self, file: &FileHandle, mut lock: Lock) {
        let held = self.held.entry(*file).or_default();
        let is_beside = |other: &mut Lock| {
            (other.owner, other.kind) == (lock.owner, lock.kind) && other.range.touches(lock.range)
        };
        let beside: Vec<Lock> = held.extract_if(.., is_beside).collect();
        for other in &beside {
            lock.range.first = lock.range.first.min(other.range.first);
            lock.range.last = lock.range.last.max(other.range.last);
        }
        held.push(lock);
        self.count(&beside, &[lock]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn file(number: u8) -> FileHandle {
        FileHandle::new(&[number; 8]).unwrap()
    }

    fn lock(owner: u64, kind: Kind, first: u64, last: u64) -> Lock {
        let owner = Owner { number: owner, is_flock: false };
        Lock { owner, kind, range: Range { first, last }, open: owner.number, pid: 0, uid: 0 }
    }

    use Kind::{Exclusive, Shared};

    /// Each byte by itself: what the table says must be what this says.
    #[derive(Default)]
    struct Bytes(BTreeMap<(u64, u64), Kind>);

    impl Bytes {
        fn can(&self, wanted: &Lock) -> bool {
            let mut others = self.0.iter().filter(|((byte, owner), _)| {
                (wanted.range.first..=wanted.range.last).contains(byte)
                    && *owner != wanted.owner.number
            });
            others.all(|(_, kind)| *kind == Shared && wanted.kind == Shared)
        }

        fn set(&mut self, owner: u64, range: Range, kind: Option<Kind>) {
            for byte in range.first..=range.last {
                self.0.remove(&(byte, owner));
                self.0.extend(kind.map(|kind| ((byte, owner), kind)));
            }
        }
    }

    #[test]
    fn any_locks_are_those_of_a_table_that_has_each_byte() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut locks, mut bytes) = (Table::default(), Bytes::default());
            for _ in 0..60 {
                let (owner, first) = (random.u64(..3), random.u64(..20));
                let kind = if random.bool() { Shared } else { Exclusive };
                let wanted = lock(owner, kind, first, first + random.u64(..6));
                match random.u8(..8) {
                    0..5 => match locks.lock(&file(1), wanted) {
                        Ok(replaced) if random.u8(..4) == 0 => {
                            assert!(bytes.can(&wanted));
                            locks.undo(&file(1), &wanted, &replaced);
                        }
                        Ok(_) => {
                            assert!(bytes.can(&wanted), "seed {seed}");
                            bytes.set(owner, wanted.range, Some(kind));
                        }
                        Err(_) => assert!(!bytes.can(&wanted), "seed {seed}"),
                    },
                    5..7 => {
                        locks.unlock(&file(1), wanted.owner, wanted.range).unwrap();
                        bytes.set(owner, wanted.range, None);
                    }
                    _ => {
                        locks.release(&file(1), wanted.owner);
                        bytes.set(owner, Range { first: 0, last: 30 }, None);
                    }
                }
                let held = locks.held.get(&file(1)).cloned().unwrap_or_default();
                assert_eq!(locks.ranges, held.len());
                let mut each = Bytes::default();
                held.iter().for_each(|l| each.set(l.owner.number, l.range, Some(l.kind)));
                assert_eq!(each.0, bytes.0, "seed {seed}");
            }
        }
    }

    /// A program is killed while it asks for more than it has: its files are closed before what it
    /// requested is taken back.
    #[test]
    fn what_was_given_up_meanwhile_does_not_come_back_with_a_lock_that_is_taken_back() {
        let mut locks = Table::default();
        let wanted = lock(1, Exclusive, 0, 9);
        locks.lock(&file(1), lock(1, Shared, 0, 9)).unwrap();
        let replaced = locks.lock(&file(1), wanted).unwrap();
        assert!(locks.release(&file(1), wanted.owner));
        locks.undo(&file(1), &wanted, &replaced);
        assert_eq!((locks.ranges, locks.held.len()), (0, 0));
        // Of a part: the rest is as it was.
        locks.lock(&file(1), lock(1, Shared, 0, 9)).unwrap();
        let replaced = locks.lock(&file(1), wanted).unwrap();
        locks.unlock(&file(1), wanted.owner, Range { first: 0, last: 4 }).unwrap();
        locks.undo(&file(1), &wanted, &replaced);
        assert_eq!(locks.held[&file(1)], [lock(1, Shared, 5, 9)]);
    }

    #[test]
    fn a_lock_is_not_made_exclusive_again_where_others_share_it_by_now() {
        let mut locks = Table::default();
        let wanted = lock(1, Shared, 0, 9);
        locks.lock(&file(1), lock(1, Exclusive, 0, 9)).unwrap();
        let replaced = locks.lock(&file(1), wanted).unwrap();
        locks.lock(&file(1), lock(2, Shared, 5, 5)).unwrap();
        locks.undo(&file(1), &wanted, &replaced);
        assert!(locks.lock(&file(1), lock(3, Exclusive, 5, 5)).is_err());
        let mut held = locks.held[&file(1)].clone();
        held.sort_by_key(|lock| (lock.owner.number, lock.range.first));
        assert_eq!(held, [lock(1, Shared, 0, 9), lock(2, Shared, 5, 5)]);
    }

    #[test]
    fn locks_of_flock_and_of_fcntl_do_not_see_each_other() {
        let mut locks = Table::default();
        let all = lock(1, Exclusive, 0, u64::MAX);
        locks.lock(&file(1), all).unwrap();
        let owner = Owner { number: 2, is_flock: true };
        locks.lock(&file(1), Lock { owner, ..all }).unwrap();
        locks.lock(&file(2), lock(3, Exclusive, 0, u64::MAX)).unwrap();
        assert!(locks.lock(&file(1), lock(3, Shared, 7, 7)).is_err());
        assert!(locks.release_open(&file(1), 1));
        assert!(locks.lock(&file(1), lock(3, Shared, 7, 7)).is_ok());
    }

    #[test]
    fn who_would_wait_for_each_other_is_reported() {
        let mut locks = Table::default();
        let of = |owner| lock(owner, Exclusive, owner, owner);
        let wants = |owner, byte| lock(owner, Exclusive, byte, byte);
        (1..=3).for_each(|owner| drop(locks.lock(&file(1), of(owner)).unwrap()));
        let first = locks.waits(&file(1), wants(1, 2)).unwrap();
        locks.waits(&file(1), wants(2, 3)).unwrap();
        assert_eq!(locks.waits(&file(1), wants(3, 1)), None);
        locks.has_waited(first);
        assert!(locks.waits(&file(1), wants(3, 1)).is_some());
    }

    /// One of many files.
    fn one_of(number: u8, n: u64) -> FileHandle {
        FileHandle::new(&[&[number][..], &n.to_be_bytes()].concat()).unwrap()
    }

    /// As many locks of a byte each as the table grants to a user.
    fn fill(locks: &mut Table, number: u8, uid: u32) -> usize {
        let mut granted = 0;
        // In many files, so that the test is not quadratic.
        let of = |n| Lock { uid, ..lock(u64::from(uid), Shared, 2 * (n % 8), 2 * (n % 8)) };
        while locks.lock(&one_of(number, granted / 8), of(granted)).is_ok() {
            granted += 1;
            assert!(granted < 2 * RANGES_MAX as u64);
        }
        usize::try_from(granted).unwrap()
    }

    #[test]
    fn more_than_there_is_room_for_is_refused_and_others_have_room_all_the_same() {
        let mut locks = Table::default();
        let first = fill(&mut locks, 1, 1000);
        assert!((RANGES_MAX / 2 - 2..=RANGES_MAX / 2).contains(&first), "{first}");
        let second = fill(&mut locks, 2, 1001);
        assert!((RANGES_MAX / 4 - 2..=RANGES_MAX / 4).contains(&second), "{second}");
        let own = Lock { uid: 1000, ..lock(1000, Shared, 0, 0) };
        assert_eq!(locks.lock(&file(3), own), Err(Obstacle::Full));
        assert!(locks.lock(&file(3), Lock { uid: 1002, ..lock(3, Shared, 0, 0) }).is_ok());
        assert!((0..=first / 16).all(|n| locks.release(&one_of(1, n as u64), own.owner)));
        assert!(locks.lock(&file(3), own).is_ok());
    }
}
