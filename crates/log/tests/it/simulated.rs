//! A machine with a log or several, some files and a page cache, whose power can be cut between any
//! two steps and in the middle of any write. The steps of calls in progress are mixed at random.
//!
//! What is true stands beside it: of each cell of each file all that was ever written to it, and
//! from which of these on a client has a reply that it is stable.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fastrand::Rng;
use log::journal::Begin;
use log::replay::Plan;
use log::scan::{ScanError, scan};
use log::unstable::{Budget, Unstable};
use log::{Attributes, Journal, Key, Limits, Op, Set, Stamp, frame};

const FILES: usize = 4;
const SECTOR: usize = 512;
const SECTORS: usize = 8;
/// Written as a whole: a number that nothing else has.
const CELL: usize = 8;
const CELLS: usize = SECTOR * SECTORS / CELL;
const LOG_BYTES: u64 = 64 * 4096;
/// And what a start needs, with the quarter more that is reserved for that.
const START_BYTES: u64 = 4 * 4096;

/// What a server may get wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mistake {
    None,
    /// WRITEs are answered when their frame is begun, not when it is stable.
    AnswersEarly,
    /// Files are taken for past without a sync.
    TrimsUnsynced,
    /// A frame is answered although one before it is still on its way.
    AnswersOutOfOrder,
    /// What was synced without the log is answered before the log knows.
    NoBarrier,
    /// A later sync that succeeds heals one that has failed.
    ForgetsDoubt,
    /// When the log cannot be written, what is synced without it is answered although the directory
    /// still knows it, so that it would be replayed.
    KeepsFailedLog,
    /// The directory forgets a log that cannot be written before its files are synced.
    ForgetsLogEarly,
    /// A COMMIT is answered with what an UNSTABLE WRITE gave, also if a stable one came after it.
    CommitsOlder,
    /// Also if a recovery would do WRITEs again that are older than the last sync.
    CommitsBehindSync,
}

#[derive(Default)]
struct File {
    cache: Vec<u8>,
    disk: Vec<u8>,
    /// The step of the last write to the cache that is not on the disk; 0 if all is.
    dirty: [u64; SECTORS],
    /// The step whose content is on the disk.
    written: [u64; SECTORS],
    /// Its existence is stable, and so are its attributes, by a sync of its own.
    is_rooted: bool,
    truth: Vec<Cell>,
    unstable: Unstable,
}

#[derive(Clone, Default)]
struct Cell {
    history: Vec<u64>,
    stable: usize,
}

/// A frame on its way, and what waits for it.
struct Frame {
    number: u64,
    log: usize,
    at: u64,
    bytes: Vec<u8>,
    calls: Vec<u64>,
}

/// A call in progress.
struct Call {
    file: usize,
    kind: Kind,
    stage: Stage,
    /// To be stable when it is answered: of each cell how much of its history.
    promise: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Write,
    Commit,
    Truncate { from: usize, is_done: bool },
    Sweep,
}

enum Stage {
    Waits,
    Mark,
    Sync { mark: Option<u64>, began: u64, snapshot: Vec<u8>, dirty: [u64; SECTORS] },
    Synced { mark: Option<u64> },
    Done,
}

pub(crate) struct Machine {
    rng: Rng,
    mistake: Mistake,
    set: Set,
    boot: [u8; 16],
    logs: Vec<Vec<u8>>,
    journal: Journal<u64>,
    writing: Vec<Frame>,
    files: Vec<File>,
    calls: BTreeMap<u64, Call>,
    /// The directory knows the log: else it is not replayed.
    is_known: bool,
    /// Of a log that cannot be written: whom it did not answer, and the files synced since.
    unanswered: Vec<Call>,
    swept: BTreeSet<Key>,
    step: u64,
    next: u64,
    pub(crate) logged: u64,
    pub(crate) committed: u64,
    pub(crate) truncated: u64,
    pub(crate) replayed: u64,
    pub(crate) failures: u64,
}

fn key(file: usize) -> Key {
    Key::new(&[b'K', u8::try_from(file).unwrap()]).unwrap()
}

fn limits() -> Limits {
    let (files_max, records_max, in_flight_max) = (FILES, 300, 2);
    let (write_replies_max, other_replies_max) = (4, 8);
    Limits {
        files_max,
        records_max,
        data_bytes_max: 4096,
        frame_bytes_due: 8192,
        in_flight_max,
        write_replies_max,
        other_replies_max,
    }
}

impl Machine {
    pub(crate) fn new(seed: u64, mistake: Mistake) -> Self {
        // Some have one log, and some have several, which are not of one length.
        let logs = usize::try_from(seed % 4).unwrap().max(1);
        let share = if logs == 1 { LOG_BYTES } else { LOG_BYTES / 2 } + START_BYTES;
        let bytes = (0..logs).map(|log| share + log as u64 * 8 * 4096).collect();
        let set = Set { id: [3; 16], bytes };
        let journal = Journal::new(&set, [0; 16], None, limits());
        let empty = vec![0; SECTOR * SECTORS];
        let files = (0..FILES).map(|_| File {
            cache: empty.clone(),
            disk: empty.clone(),
            truth: vec![Cell { history: vec![0], stable: 0 }; CELLS],
            unstable: Unstable::within(Budget::of(1 << 20)),
            ..File::default()
        });
        let mut machine = Self {
            rng: Rng::with_seed(seed),
            mistake,
            logs: set.bytes.iter().map(|&len| vec![0; usize::try_from(len).unwrap()]).collect(),
            set,
            boot: [0; 16],
            journal,
            writing: Vec::new(),
            files: files.collect(),
            calls: BTreeMap::new(),
            is_known: true,
            unanswered: Vec::new(),
            swept: BTreeSet::new(),
            step: 0,
            next: 1,
            logged: 0,
            committed: 0,
            truncated: 0,
            replayed: 0,
            failures: 0,
        };
        machine.begin_first_frame();
        machine.write_whole();
        machine
    }

    /// One step of anything.
    pub(crate) fn step(&mut self) {
        self.step += 1;
        match self.rng.u32(0..20) {
            0..=4 if self.calls.len() < 12 => self.call(),
            0..=9 => self.go_on(),
            10..=12 => self.begin_frame(),
            13..=16 => self.finish_frame(),
            17..=18 => self.write_back(),
            _ => self.sweep(),
        }
    }

    fn call(&mut self) {
        let file = self.rng.usize(0..FILES);
        match self.rng.u32(0..10) {
            0..=5 => self.write(file, true),
            6..=7 => self.write(file, false),
            8 => self.commit_all(file),
            _ => {
                let from = self.rng.usize(0..CELLS);
                let kind = Kind::Truncate { from, is_done: false };
                self.start(file, kind, Vec::new(), Stage::Mark);
            }
        }
    }

    fn commit_all(&mut self, file: usize) {
        let all = self.files[file].truth.iter().enumerate();
        let promise = all.map(|(at, cell)| (at, cell.history.len() - 1)).collect();
        self.commit(file, promise);
    }

    /// Of the log, if that knows all that is unstable.
    fn commit(&mut self, index: usize, promise: Vec<(usize, usize)>) {
        let (key, file) = (key(index), &mut self.files[index]);
        let is_careless = self.mistake == Mistake::CommitsBehindSync;
        let records = self.journal.records(&key).filter(|_| !is_careless);
        let little = file.unstable.committable(Stamp::default(), records);
        let little = little.filter(|_| file.is_rooted);
        let room = |(writes, bytes)| self.journal.admits(&key, bytes + writes * 64);
        if !little.is_some_and(room) {
            self.start(index, Kind::Commit, promise, Stage::Mark);
            return;
        }
        let writes = file.unstable.take();
        // The data of a stable WRITE that waits for a sync of the file have no owner yet.
        let is_pending = |one: &(usize, usize)| {
            let syncs = |call: &Call| call.kind == Kind::Write && !call.waits();
            let mut own = self.calls.values().filter(|call| call.file == index);
            own.any(|call| syncs(call) && call.promise.contains(one))
        };
        let promise = promise.into_iter().filter(|one| !is_pending(one)).collect();
        let id = self.start(index, Kind::Commit, promise, Stage::Waits);
        let (last, stamp) = (writes.len() - 1, Stamp::default());
        for (number, (offset, data)) in writes.into_iter().enumerate() {
            let waiter = if number == last { id } else { 0 };
            let record = self.journal.submit(key, offset, (stamp, stamp), data, waiter);
            self.files[index].unstable.logged(record);
        }
        self.committed += 1;
    }

    fn start(
        &mut self,
        file: usize,
        kind: Kind,
        promise: Vec<(usize, usize)>,
        stage: Stage,
    ) -> u64 {
        let id = self.next;
        self.next += 1;
        self.calls.insert(id, Call { file, kind, stage, promise });
        id
    }

    fn write(&mut self, index: usize, is_stable: bool) {
        let from = self.rng.usize(0..CELLS - 1);
        let len = self.rng.usize(1..=(CELLS - from).min(200));
        let number = self.next << 8;
        let cells = (0..len).map(|at| number + (at as u64 & 0xff));
        let data: Vec<u8> = cells.flat_map(u64::to_le_bytes).collect();
        let promise = self.files[index].put(from, &data, self.step);
        let unstable = &mut self.files[index].unstable;
        match is_stable {
            false => unstable.wrote((from * CELL) as u64, &data, Stamp::default()),
            true if self.mistake == Mistake::CommitsOlder => {}
            true => unstable.overwrote((from * CELL) as u64, data.len() as u64, Stamp::default()),
        }
        let may_log = is_stable && self.files[index].is_rooted;
        if may_log && self.journal.admits(&key(index), data.len()) {
            let id = self.start(index, Kind::Write, promise, Stage::Waits);
            let stamp = Stamp { seconds: 0, nanos: u32::try_from(self.step).unwrap() };
            let offset = (from * CELL) as u64;
            let data = Bytes::from(data);
            let record = self.journal.submit(key(index), offset, (stamp, stamp), data, id);
            self.files[index].unstable.logged(record);
            self.logged += 1;
        } else if is_stable {
            self.start(index, Kind::Write, promise, Stage::Mark);
        } else {
            self.next += 1;
        }
    }

    /// Brings a call that does not wait for the log one step further.
    fn go_on(&mut self) {
        if self.is_known && self.journal.is_failed() && self.rng.bool() {
            return self.give_up();
        }
        let ready = self.calls.iter().filter(|(_, call)| !call.waits());
        let ready: Vec<u64> = ready.map(|(&id, _)| id).collect();
        let Some(&id) = ready.get(self.rng.usize(0..ready.len().max(1))) else { return };
        let mut call = self.calls.remove(&id).unwrap();
        let (key, file) = (key(call.file), call.file);
        let mut hurries = false;
        call.stage = match call.stage {
            Stage::Mark if self.journal.is_doubtful(&key) && !self.forgets_doubt() => return,
            // One sync of a file at a time.
            Stage::Mark if self.is_syncing(call.file) => Stage::Mark,
            Stage::Mark => {
                let file = &mut self.files[call.file];
                file.unstable.sync_begins();
                let (snapshot, dirty, began) = (file.cache.clone(), file.dirty, self.step);
                Stage::Sync { mark: self.journal.mark(&key), began, snapshot, dirty }
            }
            Stage::Sync { mark, began, snapshot, dirty } => {
                let trims = self.mistake == Mistake::TrimsUnsynced && call.kind == Kind::Sweep;
                // A disk that fails now and then, while there are records: else it is the write
                // verifier that tells clients of it.
                if self.journal.mark(&key).is_some() && self.rng.u32(0..60) == 0 {
                    self.files[call.file].clean(began);
                    self.files[call.file].unstable.sync_ended(false);
                    if !self.forgets_doubt() {
                        self.journal.doubt(&key);
                    }
                    return;
                }
                if !trims {
                    self.files[call.file].flush(&snapshot, &dirty, began);
                }
                self.files[call.file].unstable.sync_ended(true);
                hurries = mark.is_some() && self.rng.u32(0..4) == 0;
                Stage::Synced { mark }
            }
            Stage::Synced { mark } if self.journal.is_doubtful(&key) && mark.is_some() => return,
            Stage::Synced { mark: Some(_) } if self.journal.is_failed() => {
                if self.is_known && self.mistake != Mistake::KeepsFailedLog {
                    call.stage = Stage::Done;
                    self.unanswered.push(call);
                    return;
                }
                Stage::Done
            }
            Stage::Synced { mark: Some(mark) } => {
                let waits = self.mistake != Mistake::NoBarrier;
                self.journal.past(key, mark, if waits { id } else { 0 });
                if waits { Stage::Waits } else { Stage::Done }
            }
            Stage::Synced { mark: None } => Stage::Done,
            stage => stage,
        };
        if matches!(call.stage, Stage::Done) {
            self.done(call);
        } else {
            self.calls.insert(id, call);
        }
        // Somebody writes and commits, before the log knows of the sync.
        if hurries {
            self.write(file, false);
            self.commit_all(file);
        }
    }

    fn is_syncing(&self, file: usize) -> bool {
        let syncs = |call: &Call| call.file == file && matches!(call.stage, Stage::Sync { .. });
        self.calls.values().any(syncs)
    }

    fn forgets_doubt(&self) -> bool {
        self.mistake == Mistake::ForgetsDoubt
    }

    /// What a call waited for is there.
    fn done(&mut self, mut call: Call) {
        let file = &mut self.files[call.file];
        if let Kind::Truncate { from, is_done: false } = call.kind {
            let zeros = vec![0; (CELLS - from) * CELL];
            call.promise = file.put(from, &zeros, self.step);
            file.unstable.spoil();
            call.kind = Kind::Truncate { from, is_done: true };
            call.stage = Stage::Mark;
            let key = key(call.file);
            let may_log = file.is_rooted && self.journal.mark(&key).is_none();
            if may_log && self.journal.admits(&key, 0) {
                let set = Attributes { size: Some((from * CELL) as u64), ..Attributes::default() };
                let stamps = (Stamp::default(), Stamp::default());
                let record = self.journal.submit_attributes(key, set, stamps, self.next + 1);
                file.unstable.logged(record);
                call.stage = Stage::Waits;
                self.truncated += 1;
            }
            self.next += 1;
            self.calls.insert(self.next, call);
            self.next += 1;
            return;
        }
        file.is_rooted |= call.kind != Kind::Write || !matches!(call.stage, Stage::Waits);
        for (cell, stable) in call.promise {
            let cell = &mut file.truth[cell];
            cell.stable = cell.stable.max(stable);
        }
    }

    /// A thread of some log looks for work.
    fn begin_frame(&mut self) {
        let log = self.rng.usize(0..self.logs.len());
        self.begin_frame_in(log);
    }

    /// The first one after a start, wherever there is room for it.
    fn begin_first_frame(&mut self) {
        for log in 0..self.logs.len() {
            if self.writing.is_empty() {
                self.begin_frame_in(log);
            }
        }
        assert!(!self.writing.is_empty(), "there is room for a frame");
    }

    fn begin_frame_in(&mut self, log: usize) {
        let mut bytes = Vec::new();
        match self.journal.begin(log, &mut bytes) {
            Begin::Idle => {}
            Begin::Write { at, frame } => {
                let of_others = |id: &u64| self.writing.iter().any(|one| one.calls.contains(id));
                let waiting = self.calls.iter().filter(|(_, call)| call.waits());
                let calls = waiting.map(|(&id, _)| id).filter(|id| !of_others(id)).collect();
                self.writing.push(Frame { number: frame, log, at, bytes, calls });
                if self.mistake == Mistake::AnswersEarly {
                    self.answer(self.writing.len() - 1);
                }
            }
            Begin::Stuck => panic!("the log is stuck"),
        }
    }

    /// By a server that makes a mistake.
    fn answer(&mut self, frame: usize) {
        for id in std::mem::take(&mut self.writing[frame].calls) {
            if let Some(call) = self.calls.remove(&id) {
                self.done(call);
            }
        }
    }

    /// Any of those on their way.
    fn finish_frame(&mut self) {
        if self.writing.is_empty() {
            return;
        }
        let index = self.rng.usize(0..self.writing.len());
        if self.mistake == Mistake::AnswersOutOfOrder {
            self.answer(index);
        }
        // Now and then it is the last: the device takes no more.
        if self.rng.u32(0..80) == 0 && !self.journal.is_failed() {
            return self.fail(index);
        }
        let Frame { number, log, at, bytes, .. } = self.writing.remove(index);
        let at = usize::try_from(at).unwrap();
        self.logs[log][at..at + bytes.len()].copy_from_slice(&bytes);
        for id in self.journal.finish(number, true) {
            if let Some(call) = self.calls.remove(&id) {
                self.done(call);
            }
        }
    }

    /// A frame cannot be written, nor those behind it; any sectors of them may be there.
    fn fail(&mut self, index: usize) {
        self.failures += 1;
        let number = self.writing[index].number;
        let is_behind = |frame: &mut Frame| frame.number >= number;
        let lost: Vec<_> = self.writing.extract_if(.., is_behind).collect();
        let others = std::mem::replace(&mut self.writing, lost);
        self.cut_writes();
        self.writing = others;
        for id in self.journal.finish(number, false) {
            self.unanswered.extend(self.calls.remove(&id));
        }
        self.swept.clear();
    }

    /// The files that have records are synced, one in a step; then the directory forgets the log,
    /// and whom it did not answer is answered after a sync of his own.
    fn give_up(&mut self) {
        let files = self.with_records();
        if files.iter().any(|key| self.journal.is_doubtful(key)) {
            // These are errors then, and the log stays.
            self.unanswered.clear();
            return;
        }
        let next = files.iter().find(|key| !self.swept.contains(key));
        if let Some(key) = next.filter(|_| self.mistake != Mistake::ForgetsLogEarly) {
            self.swept.insert(*key);
            let file = &mut self.files[usize::from(key.as_bytes()[1])];
            let (snapshot, dirty) = (file.cache.clone(), file.dirty);
            file.flush(&snapshot, &dirty, self.step);
            return;
        }
        self.is_known = false;
        self.journal.abandon();
        for mut call in std::mem::take(&mut self.unanswered) {
            let is_stable = matches!(call.stage, Stage::Done) || call.kind != Kind::Write;
            call.stage = if is_stable { Stage::Done } else { Stage::Mark };
            match is_stable {
                true => self.done(call),
                false => {
                    self.next += 1;
                    self.calls.insert(self.next, call);
                    self.next += 1;
                }
            }
        }
    }

    /// The kernel writes some dirty page when it likes.
    fn write_back(&mut self) {
        let (file, sector) = (self.rng.usize(0..FILES), self.rng.usize(0..SECTORS));
        let step = self.step;
        let file = &mut self.files[file];
        if file.dirty[sector] > 0 {
            file.dirty[sector] = 0;
            file.store(sector, None, step);
        }
    }

    /// The files that have records, in an order that is the same in each run.
    fn with_records(&self) -> Vec<Key> {
        let mut files: Vec<Key> = self.journal.files().copied().collect();
        files.sort_unstable();
        files
    }

    fn sweep(&mut self) {
        for one in self.with_records() {
            let file = usize::from(one.as_bytes()[1]);
            self.start(file, Kind::Sweep, Vec::new(), Stage::Mark);
        }
    }

    /// The process is killed, and with `has_power` nothing else; then the next one starts.
    pub(crate) fn restart(&mut self, has_power: bool) -> Result<(), ScanError> {
        self.cut_writes();
        let calls = std::mem::take(&mut self.calls);
        if !has_power {
            self.boot[0] = self.boot[0].wrapping_add(1);
            for (_, call) in calls {
                if let Stage::Sync { snapshot, dirty, began, .. } = call.stage {
                    let some = dirty.map(|dirty| dirty * u64::from(self.rng.bool()));
                    self.files[call.file].flush(&snapshot, &some, began);
                }
            }
            self.files.iter_mut().for_each(File::lose_cache);
        } else {
            // A sync that nobody waits for goes on.
            for (_, call) in calls {
                if let Stage::Sync { snapshot, dirty, began, .. } = call.stage {
                    self.files[call.file].flush(&snapshot, &dirty, began);
                }
            }
        }
        for file in &mut self.files {
            file.is_rooted = false;
            file.unstable = Unstable::within(Budget::of(1 << 20));
        }
        self.recover()?;
        Ok(())
    }

    /// Any sectors of the frames on their way may have come.
    fn cut_writes(&mut self) {
        for Frame { log, at, bytes, .. } in std::mem::take(&mut self.writing) {
            let at = usize::try_from(at).unwrap();
            let some = self.rng.u32(0..=4);
            for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                if self.rng.u32(0..4) < some {
                    let at = at + index * SECTOR;
                    self.logs[log][at..at + SECTOR].copy_from_slice(sector);
                }
            }
        }
    }

    fn recover(&mut self) -> Result<(), ScanError> {
        self.unanswered.clear();
        if !std::mem::replace(&mut self.is_known, true) {
            // The directory gets another log.
            self.set.id[0] = self.set.id[0].wrapping_add(1);
            self.logs.iter_mut().for_each(|log| log.fill(0));
            self.sync_all();
            self.journal = Journal::new(&self.set, self.boot, None, limits());
            self.begin_first_frame();
            self.write_whole();
            return Ok(());
        }
        let found = scan(&self.logs[..], &self.set)?;
        let same_boot = found.last.boot == self.boot && found.last.flags & frame::DOUBT == 0;
        if !same_boot {
            let plan = Plan::of(&self.logs[..], &self.set, &found)?;
            let (files, replayed, step) = (&mut self.files, &mut self.replayed, self.step);
            plan.run(&self.logs[..], &self.set, &found, |record| {
                let file = &mut files[usize::from(record.key.as_bytes()[1])];
                let place = |at: u64| usize::try_from(at).unwrap();
                match record.op {
                    Op::Data { offset, data, .. } => {
                        file.cache[place(offset)..][..data.len()].copy_from_slice(data);
                    }
                    Op::Attributes { set, .. } => file.cache[place(set.size.unwrap())..].fill(0),
                    Op::Past { .. } | Op::Change { .. } | Op::Done { .. } | Op::Reply { .. } => {
                        return Ok(());
                    }
                }
                file.dirty = [step; SECTORS];
                *replayed += 1;
                Ok::<_, ScanError>(())
            })?;
        }
        self.sync_all();
        self.journal = Journal::new(&self.set, self.boot, Some(&found), limits());
        self.begin_first_frame();
        // Now and then the power goes again before anything has begun.
        if self.rng.u32(0..10) == 0 {
            self.cut_writes();
            self.boot[0] = self.boot[0].wrapping_add(1);
            self.files.iter_mut().for_each(File::lose_cache);
            return self.recover();
        }
        self.write_whole();
        Ok(())
    }

    /// So that what is compared is also stable.
    fn sync_all(&mut self) {
        for file in &mut self.files {
            let (snapshot, dirty) = (file.cache.clone(), file.dirty);
            file.flush(&snapshot, &dirty, self.step);
        }
    }

    /// The frame on its way is written as it should be.
    fn write_whole(&mut self) {
        for Frame { number, log, at, bytes, .. } in std::mem::take(&mut self.writing) {
            let at = usize::try_from(at).unwrap();
            self.logs[log][at..at + bytes.len()].copy_from_slice(&bytes);
            self.journal.finish(number, true);
        }
    }

    /// Whether a doubt waits to be written: a kill at this very moment is not survived.
    pub(crate) fn has_unrecorded_doubt(&self) -> bool {
        (0..FILES).any(|file| self.journal.is_doubtful(&key(file)))
    }

    /// Compares what is there with what was promised, and goes on from it.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        for (index, file) in self.files.iter_mut().enumerate() {
            for (at, cell) in file.truth.iter_mut().enumerate() {
                let bytes = &file.cache[at * CELL..(at + 1) * CELL];
                let found = u64::from_le_bytes(bytes.try_into().unwrap());
                if !cell.history[cell.stable..].contains(&found) {
                    return Err(format!(
                        "file {index}, cell {at}: {found:x}, but {:x?} are stable from {} on",
                        cell.history, cell.stable
                    ));
                }
                *cell = Cell { history: vec![found], stable: 0 };
            }
        }
        Ok(())
    }
}

impl Call {
    fn waits(&self) -> bool {
        matches!(self.stage, Stage::Waits)
    }
}

impl File {
    /// Into the page cache; what was promised of it when that is stable.
    fn put(&mut self, from: usize, data: &[u8], step: u64) -> Vec<(usize, usize)> {
        let at = from * CELL;
        self.cache[at..at + data.len()].copy_from_slice(data);
        (at / SECTOR..=(at + data.len() - 1) / SECTOR).for_each(|sector| self.dirty[sector] = step);
        let cells = data.chunks(CELL).enumerate().map(|(index, cell)| {
            let history = &mut self.truth[from + index].history;
            history.push(u64::from_le_bytes(cell.try_into().unwrap()));
            (from + index, history.len() - 1)
        });
        cells.collect()
    }

    /// A sync that began with this in the cache, of which the dirty sectors are to be written.
    fn flush(&mut self, snapshot: &[u8], dirty: &[u64; SECTORS], began: u64) {
        for (sector, _) in dirty.iter().enumerate().filter(|(_, dirty)| **dirty > 0) {
            if self.written[sector] <= began {
                self.store(sector, Some(snapshot), began);
            }
        }
        self.clean(began);
    }

    /// What was dirty then counts as written.
    fn clean(&mut self, began: u64) {
        let was_then = self.dirty.iter_mut().filter(|dirty| **dirty <= began);
        was_then.for_each(|dirty| *dirty = 0);
    }

    fn store(&mut self, sector: usize, from: Option<&[u8]>, step: u64) {
        let range = sector * SECTOR..(sector + 1) * SECTOR;
        let from = from.unwrap_or(&self.cache);
        self.disk[range.clone()].copy_from_slice(&from[range]);
        self.written[sector] = step;
    }

    fn lose_cache(&mut self) {
        self.cache.clone_from(&self.disk);
        self.dirty = [0; SECTORS];
    }
}
