//! Replies: seeded machines that make and remove names, whose power is cut again and again. What
//! was answered is known afterwards, and nothing is taken for done that the disk does not have.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use log::journal::Begin;
use log::replay::{Plan, executed};
use log::reply::{Call, Effect, FileId};
use log::scan::{ScanError, scan};
use log::{EncodedReply, Journal, Key, Limits, Reply, Set, Stamp};

use crate::seeds::{are_found, seeds};

/// In the gate: see [`seeds`].
const SEEDS: u64 = 100;

const NAMES: usize = 5;
const IN_PROGRESS_MAX: usize = 3;
const RETAINED_MAX: usize = 8;
const SECTOR: usize = 512;

/// What a server may get wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mistake {
    None,
    /// A call is answered when its name is stable, its reply or not.
    AnswersWithoutRecord,
    /// A reply is taken for that of a call that was executed before its name is stable.
    DecidesEarly,
    /// Also if the sync has failed.
    DecidesFailed,
    /// A recovery does not look whether a call was executed.
    BelievesOpen,
    /// A sweep does not write replies again.
    CarriesNothing,
    /// A start does not, either.
    RestoresNothing,
}

/// A name in a directory of its own, and which file it is of.
#[derive(Clone, Default)]
struct Name {
    cache: Option<u64>,
    disk: Option<u64>,
    /// Changes so far, and those that the disk has.
    changes: u64,
    written: u64,
}

struct Doing {
    name: usize,
    record: u64,
    is_recorded: bool,
    /// What a sync that has begun will write.
    sync: Option<(Option<u64>, u64)>,
    is_synced: bool,
}

/// What a call did, for ever.
#[derive(Clone, Copy)]
struct Done {
    name: usize,
    file: u64,
    makes: bool,
    /// Which change of the name it was.
    change: u64,
    is_answered: bool,
    /// A loss of power has undone it.
    is_lost: bool,
}

struct Machine {
    rng: Rng,
    mistake: Mistake,
    set: Set,
    log: Vec<u8>,
    journal: Journal<u32>,
    writing: Vec<(u64, u64, Vec<u8>)>,
    names: Vec<Name>,
    doing: BTreeMap<u32, Doing>,
    done: BTreeMap<u32, Done>,
    /// In the order in which their records were submitted.
    submitted: Vec<u32>,
    next: u32,
    restored: u64,
    looked_at: u64,
}

fn limits() -> Limits {
    Limits {
        data_bytes_max: 4096,
        frame_bytes_due: 4096,
        in_flight_max: 2,
        other_replies_max: RETAINED_MAX,
        ..Limits::default()
    }
}

fn key(name: usize) -> Key {
    Key::new(&[b'D', u8::try_from(name).unwrap()]).unwrap()
}

impl Machine {
    fn new(seed: u64, mistake: Mistake) -> Self {
        let set = Set { id: [4; 16], bytes: vec![64 * 4096] };
        let mut machine = Self {
            rng: Rng::with_seed(seed),
            mistake,
            log: vec![0; 64 * 4096],
            journal: Journal::new(&set, [0; 16], None, limits()),
            set,
            writing: Vec::new(),
            names: vec![Name::default(); NAMES],
            doing: BTreeMap::new(),
            done: BTreeMap::new(),
            submitted: Vec::new(),
            next: 1,
            restored: 0,
            looked_at: 0,
        };
        machine.begin_frame();
        machine.write_whole();
        machine
    }

    fn step(&mut self) {
        match self.rng.u32(0..20) {
            0..=4 if self.doing.len() < IN_PROGRESS_MAX => self.execute(),
            0..=9 => self.sync(),
            10..=13 => self.begin_frame(),
            14..=17 => self.finish_frame(),
            18 => {
                let name = self.rng.usize(0..NAMES);
                let name = &mut self.names[name];
                (name.disk, name.written) = (name.cache, name.changes);
            }
            _ => {
                let all = Stamp { seconds: i64::MIN, nanos: 0 };
                let none = Stamp { seconds: i64::MAX, nanos: 0 };
                let nothing = self.mistake == Mistake::CarriesNothing;
                self.journal.carry(if nothing { none } else { all }, || 0);
                self.journal.say_decided();
            }
        }
    }

    /// A CREATE or a REMOVE, in the page cache; its reply goes to the log.
    fn execute(&mut self) {
        let (index, xid) = (self.rng.usize(0..NAMES), self.next);
        self.next += 1;
        let name = &mut self.names[index];
        let (file, makes) = name.cache.map_or_else(|| (u64::from(xid), true), |file| (file, false));
        let id = FileId { inode: file, born: None };
        let effect = match makes {
            true => Effect::Named { name: b"name", file: id },
            false => Effect::Unnamed { name: b"name", file: id },
        };
        let bytes = xid.to_le_bytes();
        let (is_decided, is_write, call) = (false, false, Call { xid, ..Call::default() });
        let reply = Reply { call, effect, is_decided, is_write, bytes: &bytes };
        let encoded =
            EncodedReply::new(key(index), Stamp { seconds: i64::from(xid), nanos: 0 }, &reply)
                .unwrap();
        if !self.journal.admits_reply(&encoded, 0) {
            return;
        }
        name.cache = makes.then_some(file);
        name.changes += 1;
        let change = name.changes;
        let done = Done { name: index, file, makes, change, is_answered: false, is_lost: false };
        self.done.insert(xid, done);
        let record = self.journal.submit_reply(encoded, true, xid);
        self.submitted.push(xid);
        if self.mistake == Mistake::DecidesEarly {
            self.journal.decide(record, true);
        }
        let is_recorded = self.mistake == Mistake::AnswersWithoutRecord;
        let doing = Doing { name: index, record, is_recorded, sync: None, is_synced: false };
        self.doing.insert(xid, doing);
    }

    /// Begins or ends the sync of some call's directory.
    fn sync(&mut self) {
        let ready = self.doing.iter().filter(|(_, doing)| !doing.is_synced);
        let ready: Vec<u32> = ready.map(|(&xid, _)| xid).collect();
        let Some(&xid) = ready.get(self.rng.usize(0..ready.len().max(1))) else { return };
        let Some(doing) = self.doing.get_mut(&xid) else { return };
        let name = &mut self.names[doing.name];
        let Some((disk, written)) = doing.sync else {
            doing.sync = Some((name.cache, name.changes));
            return;
        };
        if self.rng.u32(0..15) == 0 {
            // The disk has refused, and the client gets the error.
            self.journal.decide(doing.record, self.mistake == Mistake::DecidesFailed);
            self.doing.remove(&xid);
            return;
        }
        if written > name.written {
            (name.disk, name.written) = (disk, written);
        }
        doing.is_synced = true;
        self.journal.decide(doing.record, true);
        self.answer(xid);
    }

    fn answer(&mut self, xid: u32) {
        if self.doing.get(&xid).is_some_and(|doing| doing.is_synced && doing.is_recorded) {
            self.doing.remove(&xid);
            self.done.get_mut(&xid).unwrap().is_answered = true;
        }
    }

    fn begin_frame(&mut self) {
        let mut bytes = Vec::new();
        match self.journal.begin(0, &mut bytes) {
            Begin::Idle => {}
            Begin::Write { at, frame } => self.writing.push((frame, at, bytes)),
            Begin::Stuck => panic!("the log is stuck"),
        }
    }

    fn finish_frame(&mut self) {
        if self.writing.is_empty() {
            return;
        }
        let index = self.rng.usize(0..self.writing.len());
        let (frame, at, bytes) = self.writing.remove(index);
        self.put(at, &bytes);
        for xid in self.journal.finish(frame, true) {
            if let Some(doing) = self.doing.get_mut(&xid) {
                doing.is_recorded = true;
                self.answer(xid);
            }
        }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let at = usize::try_from(at).unwrap();
        self.log[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn write_whole(&mut self) {
        for (frame, at, bytes) in std::mem::take(&mut self.writing) {
            self.put(at, &bytes);
            self.journal.finish(frame, true);
        }
    }

    /// Any sectors of the frames on their way may have come.
    fn cut_writes(&mut self) {
        for (_, at, bytes) in std::mem::take(&mut self.writing) {
            let some = self.rng.u32(0..=4);
            for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                if self.rng.u32(0..4) < some {
                    self.put(at + (index * SECTOR) as u64, sector);
                }
            }
        }
    }

    /// The process is killed; without power, what the disk does not have is gone.
    fn restart(&mut self, has_power: bool) -> Result<(), String> {
        self.cut_writes();
        self.doing.clear();
        for (index, name) in self.names.iter_mut().enumerate().filter(|_| !has_power) {
            let of_it = self.done.values_mut().filter(|done| done.name == index);
            // To remove what was never there is as good as done.
            let is_undone = |done: &Done| match done.makes {
                true => true,
                false => name.disk == Some(done.file),
            };
            of_it
                .filter(|done| done.change > name.written && is_undone(done))
                .for_each(|done| done.is_lost = true);
            (name.cache, name.changes) = (name.disk, name.written);
        }
        self.recover()
    }

    fn recover(&mut self) -> Result<(), String> {
        let text = |error: ScanError| error.to_string();
        let found = scan(&self.log[..], &self.set).map_err(text)?;
        let plan = Plan::of(&self.log[..], &self.set, &found).map_err(text)?;
        self.journal = Journal::new(&self.set, [0; 16], Some(&found), limits());
        let mut looked_at = 0;
        let replies = executed(plan.replies, |key, effect| {
            looked_at += 1;
            let name = &self.names[usize::from(key.as_bytes()[1])];
            self.mistake == Mistake::BelievesOpen
                || match effect {
                    Effect::Named { file, .. } => name.cache == Some(file.inode),
                    Effect::Unnamed { file, .. } => name.cache != Some(file.inode),
                    _ => true,
                }
        });
        self.looked_at += looked_at;
        let mut known = BTreeSet::new();
        for encoded in replies {
            known.insert(Reply::decode(&encoded.bytes).unwrap().call.xid);
            if self.mistake != Mistake::RestoresNothing {
                self.journal.submit_reply(encoded, false, 0);
            }
        }
        for name in &mut self.names {
            (name.disk, name.written) = (name.cache, name.changes);
        }
        self.check(&known)?;
        self.restored += known.len() as u64;
        self.begin_frame();
        // Now and then the power goes again before anything has begun.
        if self.rng.u32(0..10) == 0 {
            self.cut_writes();
            return self.recover();
        }
        self.write_whole();
        Ok(())
    }

    /// Something was made, and removed again in the moment of the cut by a call that came to the
    /// disk before its record: nothing tells that it was there.
    fn is_undone_unseen(&self, made: &Done) -> bool {
        let removed = |later: &Done| {
            (later.name, later.file) == (made.name, made.file) && !later.makes && !later.is_answered
        };
        made.makes && self.done.values().any(removed)
    }

    fn check(&self, known: &BTreeSet<u32>) -> Result<(), String> {
        // What was made and removed is as good as done, if both are answered so.
        let is_removed = |made: &Done| {
            let mut known = known.iter().map(|xid| &self.done[xid]);
            made.makes && known.any(|later| later.file == made.file && !later.makes)
        };
        let is_wrong = |done: &Done| done.is_lost && !is_removed(done);
        if let Some(xid) = known.iter().find(|xid| is_wrong(&self.done[xid])) {
            return Err(format!("call {xid} is taken for done, and its change is lost"));
        }
        // Those in progress may have taken the places of the newest.
        let newest = self.submitted.iter().rev().take(RETAINED_MAX - IN_PROGRESS_MAX);
        let is_missing = |xid: &u32| {
            let done = &self.done[xid];
            done.is_answered && !known.contains(xid) && !self.is_undone_unseen(done)
        };
        match newest.copied().find(is_missing) {
            Some(xid) => Err(format!("call {xid} was answered, and that is forgotten")),
            None => Ok(()),
        }
    }
}

fn live(seed: u64, mistake: Mistake) -> Result<Machine, String> {
    let mut machine = Machine::new(seed, mistake);
    let mut rng = Rng::with_seed(!seed);
    for _ in 0..rng.u32(2..8) {
        (0..rng.u32(1..400)).for_each(|_| machine.step());
        machine.restart(rng.u32(0..4) == 0)?;
    }
    Ok(machine)
}

#[test]
fn what_was_answered_is_known_after_every_power_cut() {
    let (mut restored, mut looked_at) = (0, 0);
    for seed in 0..seeds(SEEDS) {
        match live(seed, Mistake::None) {
            Ok(machine) => {
                restored += machine.restored;
                looked_at += machine.looked_at;
            }
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(restored > looked_at && looked_at > 0, "{restored} restored, {looked_at} looked at");
}

#[test]
fn mistakes_with_replies_are_found() {
    let mistakes = [
        Mistake::AnswersWithoutRecord,
        Mistake::DecidesEarly,
        Mistake::DecidesFailed,
        Mistake::BelievesOpen,
        Mistake::CarriesNothing,
        Mistake::RestoresNothing,
    ];
    are_found(&mistakes, live);
}
