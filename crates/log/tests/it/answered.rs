//! Replies: seeded machines that make and remove names and set attributes of files, whose power is
//! cut again and again. What was answered is known afterwards, and nothing is taken for done that
//! the disk does not have.

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
/// Behind the names: files that are there, whose attributes are set.
const FILES: usize = 2;
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
    /// A change of a file's inode after the machine has begun again counts as the call's.
    BelievesOthers,
    /// Of a CREATE that cuts a file which was there, the reply says that the name is there.
    CutsByName,
}

/// A name in a directory of its own, or a file.
#[derive(Clone, Copy, Default)]
struct Inode {
    /// Which file the name is of; the call that has set the file's attributes.
    content: Option<u64>,
    /// Changes so far.
    changes: u64,
    changed: i64,
}

#[derive(Clone, Copy, Default)]
struct Name {
    cache: Inode,
    disk: Inode,
    /// Others have changed it since the machine has begun.
    is_touched: bool,
}

struct Doing {
    name: usize,
    record: u64,
    is_recorded: bool,
    /// What a sync that has begun will write.
    sync: Option<Inode>,
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
    now: i64,
    /// Since when others than this server may have changed inodes.
    others_since: Option<i64>,
    restored: u64,
    looked_at: u64,
}

fn is_file(index: usize) -> bool {
    index >= NAMES
}

fn at(seconds: i64) -> Stamp {
    Stamp { seconds, nanos: 0 }
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
            names: vec![Name::default(); NAMES + FILES],
            doing: BTreeMap::new(),
            done: BTreeMap::new(),
            submitted: Vec::new(),
            next: 1,
            now: 1,
            others_since: None,
            restored: 0,
            looked_at: 0,
        };
        machine.begin_frame();
        machine.write_whole();
        machine
    }

    fn step(&mut self) {
        self.now += 1;
        match self.rng.u32(0..20) {
            0..=4 if self.doing.len() < IN_PROGRESS_MAX => self.execute(),
            0..=9 => self.sync(),
            10..=13 => self.begin_frame(),
            14..=17 => self.finish_frame(),
            18 => {
                let name = self.rng.usize(0..self.names.len());
                let name = &mut self.names[name];
                name.disk = name.cache;
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

    /// A CREATE or a REMOVE, or a SETATTR, in the page cache; its reply goes to the log.
    fn execute(&mut self) {
        let (index, xid) = (self.rng.usize(0..self.names.len()), self.next);
        self.next += 1;
        let content = self.names[index].cache.content.filter(|_| !is_file(index));
        let (file, makes) = content.map_or_else(|| (u64::from(xid), true), |file| (file, false));
        let encoded = self.reply(index, xid, (file, makes));
        if !self.journal.admits_reply(&encoded, 0) {
            return;
        }
        let inode = &mut self.names[index].cache;
        inode.content = makes.then_some(file);
        inode.changes += 1;
        inode.changed = self.now;
        let change = inode.changes;
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

    fn reply(&self, index: usize, xid: u32, (file, makes): (u64, bool)) -> EncodedReply {
        let by_name = self.mistake == Mistake::CutsByName;
        let inode = if is_file(index) { index as u64 } else { file };
        let id = FileId { inode, born: None };
        let effect = match makes {
            true if is_file(index) && !by_name => Effect::Changed { changed: at(self.now) },
            true => Effect::Named { name: b"name", file: id },
            false => Effect::Unnamed { name: b"name", file: id },
        };
        let bytes = xid.to_le_bytes();
        let (is_decided, is_write, call) = (false, false, Call { xid, ..Call::default() });
        let reply = Reply { call, effect, is_decided, is_write, bytes: &bytes };
        EncodedReply::new(key(index), at(i64::from(xid)), &reply).unwrap()
    }

    /// Begins or ends the sync of some call's directory.
    fn sync(&mut self) {
        let ready = self.doing.iter().filter(|(_, doing)| !doing.is_synced);
        let ready: Vec<u32> = ready.map(|(&xid, _)| xid).collect();
        let Some(&xid) = ready.get(self.rng.usize(0..ready.len().max(1))) else { return };
        let Some(doing) = self.doing.get_mut(&xid) else { return };
        let name = &mut self.names[doing.name];
        let Some(inode) = doing.sync else {
            doing.sync = Some(name.cache);
            return;
        };
        if self.rng.u32(0..15) == 0 {
            // The disk has refused, and the client gets the error.
            self.journal.decide(doing.record, self.mistake == Mistake::DecidesFailed);
            self.doing.remove(&xid);
            return;
        }
        if inode.changes > name.disk.changes {
            name.disk = inode;
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
        if !has_power {
            self.lose_cache();
        }
        self.recover()
    }

    fn lose_cache(&mut self) {
        for (index, name) in self.names.iter_mut().enumerate() {
            let of_it = self.done.values_mut().filter(|done| done.name == index);
            // To remove what was never there is as good as done.
            let is_undone = |done: &Done| done.makes || name.disk.content == Some(done.file);
            of_it
                .filter(|done| done.change > name.disk.changes && is_undone(done))
                .for_each(|done| done.is_lost = true);
            *name = Name { cache: name.disk, ..*name };
        }
        self.touch();
    }

    /// Programs since the boot, or a replay, change the inodes of files.
    fn touch(&mut self) {
        self.now += 1;
        self.others_since.get_or_insert(self.now);
        for name in &mut self.names[NAMES..] {
            if self.rng.bool() {
                name.cache.changed = self.now;
                name.is_touched = true;
            }
        }
    }

    fn shows(&self, key: &Key, effect: &Effect<'_>) -> bool {
        let index = usize::from(key.as_bytes()[1]);
        let inode = self.names[index].cache;
        let file = if is_file(index) { Some(index as u64) } else { inode.content };
        let others = self.others_since.filter(|_| self.mistake != Mistake::BelievesOthers);
        match *effect {
            _ if self.mistake == Mistake::BelievesOpen => true,
            Effect::Named { file: named, .. } => file == Some(named.inode),
            Effect::Unnamed { file: named, .. } => file != Some(named.inode),
            Effect::Changed { changed } => {
                Effect::is_shown_by(changed, at(inode.changed), others.map(at))
            }
            Effect::Logged => true,
        }
    }

    fn recover(&mut self) -> Result<(), String> {
        let text = |error: ScanError| error.to_string();
        let found = scan(&self.log[..], &self.set).map_err(text)?;
        let plan = Plan::of(&self.log[..], &self.set, &found).map_err(text)?;
        self.journal = Journal::new(&self.set, [0; 16], Some(&found), limits());
        let mut looked_at = 0;
        let replies = executed(plan.replies, |key, effect| {
            looked_at += 1;
            self.shows(key, effect)
        });
        self.looked_at += looked_at;
        let mut known = BTreeSet::new();
        for encoded in replies {
            known.insert(Reply::decode(&encoded.bytes).unwrap().call.xid);
            if self.mistake != Mistake::RestoresNothing {
                self.journal.submit_reply(encoded, false, 0);
            }
        }
        self.names.iter_mut().for_each(|name| name.disk = name.cache);
        self.check(&known)?;
        self.restored += known.len() as u64;
        self.begin_frame();
        // Now and then the power goes again before anything has begun.
        if self.rng.u32(0..10) == 0 {
            self.cut_writes();
            self.touch();
            return self.recover();
        }
        self.write_whole();
        self.others_since = None;
        self.names.iter_mut().for_each(|name| name.is_touched = false);
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

    fn check(&mut self, known: &BTreeSet<u32>) -> Result<(), String> {
        // What others have changed since is set again.
        for done in self.done.values_mut() {
            done.is_answered &= !(is_file(done.name) && self.names[done.name].is_touched);
        }
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
        Mistake::BelievesOthers,
        Mistake::CutsByName,
    ];
    are_found(&mistakes, live);
}
