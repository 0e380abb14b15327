//! From a seed to a plan.
//!
//! The kinds of faults are chosen for each plan (some have none, most a few), so that between them
//! the plans try each kind alone and with others. Names are few, so that operations meet.

use fastrand::Rng;
use perf::model::disk::PROFILES;
use perf::units::Nanos;
use wire::nfs3::StableHow;

use super::{By, Client, Fault, Level, Op, PART_BYTES, Plan, Step, Style, What};
use crate::reference::tree::{Change, How, Path, Thing, Tree};

/// Which faults a plan may have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Kinds {
    network: bool,
    crash: bool,
    disk: bool,
    clock: bool,
    vanish: bool,
}

impl Plan {
    /// The plan that a seed stands for.
    pub fn generate(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let clients = (0..random.usize(1..=4)).map(|_| client(&mut random)).collect::<Vec<_>>();
        let latency = Nanos::from_micros(random.u64(20..2_000));
        let kinds = Kinds {
            network: random.u8(..4) > 0,
            crash: random.bool(),
            disk: random.u8(..4) == 0,
            clock: random.u8(..8) == 0,
            vanish: random.u8(..8) == 0,
        };
        let mut steps = Vec::new();
        for client in 0..clients.len() {
            let mut at = Nanos::from_micros(random.u64(..2_000));
            let mut doing = Doing {
                random: &mut random,
                clients: clients.len(),
                tree: Tree::default(),
                made: 0,
            };
            for _ in 0..doing.random.usize(5..60) {
                let op = doing.op();
                steps.push(Step { at, what: What::Do { client, op } });
                at += pause(doing.random, latency);
            }
        }
        for _ in 0..random.usize(0..10) {
            if let Some(fault) = fault(&mut random, kinds, clients.len()) {
                // When something is going on: most of the time nothing is.
                let beside = &steps[random.usize(..steps.len())].at;
                let at = *beside + latency * random.u64(..4);
                steps.push(Step { at, what: What::Fault(fault) });
            }
        }
        steps.sort_by_key(|step| step.at);
        let disk = PROFILES[random.usize(..PROFILES.len())];
        Self { seed, latency, disk, clients, steps }
    }
}

fn client(random: &mut Rng) -> Client {
    let level = if random.bool() { Level::Calls } else { Level::Files };
    let by = if random.u8(..3) > 0 { By::Stream } else { By::Datagrams };
    Client { level, by }
}

/// Mostly about as long as a call takes, now and then as long as a background task waits.
fn pause(random: &mut Rng, latency: Nanos) -> Nanos {
    let micros = latency.as_nanos() / 1_000;
    Nanos::from_micros(match random.u8(..24) {
        0 => random.u64(..3_000_000),
        1 => random.u64(..1_000_000),
        2..5 => random.u64(..200_000),
        _ => random.u64(..6 * micros + 1),
    })
}

/// What a client does next, by chance and by what there may be by now.
struct Doing<'r> {
    random: &'r mut Rng,
    clients: usize,
    /// What there is, if nothing goes wrong.
    tree: Tree,
    made: u32,
}

impl Doing<'_> {
    fn name(&mut self) -> &'static str {
        ["a", "b", "c"][self.random.usize(..3)]
    }

    /// Any path, below a directory that there is more often than not.
    fn path(&mut self) -> Path {
        if self.random.u8(..4) > 0 {
            let dir = self.existing(|thing| *thing == Thing::Dir);
            let depth = dir.split('/').count();
            if !dir.is_empty() && depth < 4 && self.random.bool() {
                return format!("{dir}/{}", self.name());
            }
            return self.name().to_owned();
        }
        let depth = [1, 1, 2, 3][self.random.usize(..4)];
        (0..depth).map(|_| self.name()).collect::<Vec<_>>().join("/")
    }

    /// Something that there is, if there is any; else the directory that all is in.
    fn existing(&mut self, is_it: impl Fn(&Thing) -> bool) -> Path {
        let things = self.tree.things().iter().filter(|(_, thing)| is_it(thing));
        let paths: Vec<Path> = things.map(|(path, _)| path.clone()).collect();
        match paths.len() {
            0 => Path::new(),
            len => paths[self.random.usize(..len)].clone(),
        }
    }

    /// Mostly something that there is, else any path.
    fn likely(&mut self, is_it: impl Fn(&Thing) -> bool) -> Path {
        let path = if self.random.u8(..8) > 0 { self.existing(is_it) } else { Path::new() };
        if path.is_empty() { self.path() } else { path }
    }

    fn file(&mut self) -> Path {
        self.likely(|thing| matches!(thing, Thing::File(_)))
    }

    fn op(&mut self) -> Op {
        let op = self.any_op();
        if let Op::Change(change) = &op {
            self.made += 1;
            self.tree = self.tree.after(change, self.made).1;
        }
        op
    }

    fn any_op(&mut self) -> Op {
        match self.random.u8(..100) {
            0..11 => {
                let how = [How::Unchecked, How::Guarded, How::Exclusive][self.random.usize(..3)];
                Op::Change(Change::Create(self.path(), how))
            }
            11..17 => Op::Change(Change::Mkdir(self.path())),
            17..20 => Op::Change(Change::Symlink(self.path())),
            20..27 => Op::Change(Change::Remove(self.likely(|thing| *thing != Thing::Dir))),
            27..30 => Op::Change(Change::Rmdir(self.likely(|thing| *thing == Thing::Dir))),
            30..37 => Op::Change(Change::Rename(self.likely(|_| true), self.path())),
            37..41 => {
                Op::Change(Change::Link(self.likely(|thing| *thing != Thing::Dir), self.path()))
            }
            41..58 => self.write(),
            58..63 => Op::Commit(self.file()),
            63..67 => Op::Close(self.file()),
            67..71 => {
                let path = self.file();
                Op::Resize(path, place(self.random))
            }
            71..80 => {
                let path = self.likely(|thing| *thing != Thing::Dir);
                Op::Read { path, at: place(self.random), bytes: length(self.random) }
            }
            80..84 => Op::Look(self.likely(|_| true)),
            84..87 => Op::List(self.existing(|thing| *thing == Thing::Dir)),
            87..90 => {
                let style = [Style::InPlace, Style::Cut, Style::Replaced][self.random.usize(..3)];
                Op::Publish { bytes: length(self.random) + 1, style }
            }
            90..94 => Op::Peek { of: self.random.usize(..self.clients) },
            94..97 => {
                let at = self.random.u32(..PART_BYTES);
                let bytes = length(self.random).min(PART_BYTES - at);
                let (value, stable) = (self.random.u8(1..=255), stable(self.random));
                Op::WritePart { at, bytes, value, stable }
            }
            97..98 => Op::CommitPart,
            _ => Op::ReadPart,
        }
    }

    fn write(&mut self) -> Op {
        let path = self.file();
        let random = &mut *self.random;
        let (at, bytes) = (place(random), length(random));
        let pieces = if random.u8(..4) == 0 { random.u32(2..9) } else { 1 };
        let (value, stable) = (random.u8(1..=255), stable(random));
        Op::Write { path, at, bytes, value, stable, pieces }
    }
}

/// About pages and transfers, and their edges.
fn place(random: &mut Rng) -> u32 {
    match random.u8(..4) {
        0 => 0,
        1 => random.u32(..200),
        2 => 4_096 * random.u32(..20) + random.u32(..3),
        _ => random.u32(..100_000),
    }
}

fn length(random: &mut Rng) -> u32 {
    match random.u8(..4) {
        0 => random.u32(..10),
        1 => 4_096 * random.u32(1..8),
        2 => random.u32(1..1_000),
        _ => random.u32(1..60_000),
    }
}

fn stable(random: &mut Rng) -> StableHow {
    match random.u8(..8) {
        0 => StableHow::DataSync,
        1..3 => StableHow::FileSync,
        _ => StableHow::Unstable,
    }
}

fn fault(random: &mut Rng, kinds: Kinds, clients: usize) -> Option<Fault> {
    let client = random.usize(..clients);
    let span = Nanos::from_micros(match random.u8(..3) {
        0 => random.u64(..5_000_000),
        1 => random.u64(..500_000),
        _ => random.u64(..20_000),
    });
    let fault = match random.u8(..16) {
        0..2 => Fault::Cut { client },
        2 => Fault::CutAfterCalls { client, calls: random.u64(..20) },
        3..5 => Fault::CutAfterReplies { client, replies: random.u64(..20) },
        5 => Fault::Outage { client, span },
        6..9 => {
            let (lost, doubled) = (random.u64(..400), random.u64(..400));
            let jitter = Nanos::from_micros(random.u64(..20_000));
            Fault::Impairments { client, lost, doubled, jitter, span }
        }
        9 => Fault::Clock { secs: random.i64(-100_000..100_000) },
        10 => Fault::Vanish { client },
        11..14 => {
            // Longer than anything is on its way; often before a client has committed.
            let most = if random.bool() { 300 } else { 5_000 };
            let down = Nanos::from_millis(random.u64(50..most));
            Fault::Crash { polls: random.u64(..400), down }
        }
        _ => match random.u8(..4) {
            0 => Fault::WriteErrors { span },
            1 => Fault::SyncErrors { span },
            2 => Fault::Full { span },
            _ => Fault::Slow { factor: random.u32(2..50), span },
        },
    };
    let may = match fault {
        Fault::Clock { .. } => kinds.clock,
        Fault::Vanish { .. } => kinds.vanish,
        Fault::Crash { .. } => kinds.crash,
        Fault::WriteErrors { .. }
        | Fault::SyncErrors { .. }
        | Fault::Full { .. }
        | Fault::Slow { .. } => kinds.disk,
        _ => kinds.network,
    };
    may.then_some(fault)
}
