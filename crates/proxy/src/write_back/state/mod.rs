//! All that is on its way to the origin: the log, the order of the changes in it, and what clients
//! see meanwhile. Decisions only: its input is what has happened, its output what is to be done.

pub(super) mod notes;
pub(super) mod room;
mod shown;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use log::Journal;
use log::journal::cost;
use lru::LruCache;
use perf::units::{Instant, Nanos};
use server::types::{Attr, Handle, Status, Time};
use tokio::sync::oneshot;

use super::aliases;
use super::killed::{Lives, Signs};
use super::nodes::Nodes;
use super::options::Options;
use super::order::{Order, Thing};
use super::record::{Change, Entry};
use super::recover::HeldEntry;
use super::touches::{Place, file, involved, key, named, names, uses};
use super::turns::{Claim, Turns};
use super::verifiers::Verifiers;
use notes::{Notes, Waiter};
use room::{CUTS_BYTES, CUTS_MAX};

/// Names whose state at the origin is known from a moment ago.
const RECENT_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");

/// Files and directories of which it is known where they are, if nothing of them is on its way:
/// some 300 bytes each. The one met least lately goes; a copy of it is in the root, then.
const PLACES_MAX: usize = 1 << 15;

/// Names and files of which it is known when they were changed last.
const TOUCHED_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// Most changes that go with another one.
const JOINED_MAX: usize = 16;

/// When names and files were changed last, as epochs.
#[derive(Debug)]
struct Touched {
    last: LruCache<Thing, u64>,
    /// All others: not after this.
    others: u64,
}

impl Touched {
    fn note(&mut self, thing: Thing, epoch: u64) {
        match self.last.get_mut(&thing) {
            Some(last) => *last = epoch,
            None => {
                let gone = self.last.push(thing, epoch);
                self.others = gone.map_or(self.others, |(_, gone)| gone.max(self.others));
            }
        }
    }

    fn since(&self, thing: &Thing, epoch: u64) -> bool {
        self.last.peek(thing).copied().unwrap_or(self.others) > epoch
    }
}

/// A change on its way.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) entry: Entry,
    /// Who waits until it is stable, here or there.
    done: Option<oneshot::Sender<()>>,
    /// A proxy that was killed may have carried it out already.
    pub(crate) is_in_doubt: bool,
    /// As it was in the log: this life has not tried it.
    is_carried: bool,
    pub(crate) since: Instant,
    /// Why the origin did not take it when it was tried last.
    trouble: Option<Status>,
    /// It goes to the origin with the one before it, which is under way.
    is_joined: bool,
    /// Of bytes that are to be cut, or of a file that the origin has removed.
    is_given_up: bool,
    /// It cuts bytes that wait for room.
    makes_room: bool,
    /// Bytes that it takes of the log at most.
    cost: u64,
}

impl Op {
    /// One that nobody waits for was found in a log.
    fn new(entry: Entry, done: Option<oneshot::Sender<()>>, bytes: usize, since: Instant) -> Self {
        Self {
            entry,
            is_in_doubt: done.is_none(),
            is_carried: done.is_none(),
            done,
            since,
            trouble: None,
            is_joined: false,
            is_given_up: false,
            makes_room: false,
            cost: cost(bytes),
        }
    }
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) taken: u64,
    pub(crate) taken_bytes: u64,
    /// They are not on their way any more.
    pub(crate) arrived: u64,
    /// Of these, those that were not carried out, or not in full.
    pub(crate) lost: u64,
    pub(crate) conflicts: u64,
    pub(crate) held_back: u64,
    pub(crate) tried_again: u64,
    pub(crate) passed_through: u64,
    pub(crate) set_aside: u64,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) journal: Journal<Waiter>,
    pub(crate) order: Order,
    pub(crate) ops: HashMap<u64, Op>,
    pub(crate) nodes: Nodes,
    /// Names and files that the origin is changing for a caller who waits for that. What is to be
    /// changed of them waits, too.
    pub(crate) busy: HashSet<Thing>,
    /// Who waits for that, and for what is on its way.
    pub(crate) turns: Turns,
    recent: LruCache<(Handle, Bytes), (Option<Handle>, Instant)>,
    /// Where clients have met files.
    places: LruCache<Handle, (Handle, Bytes)>,
    touched: Touched,
    /// Grows with each change, here and there.
    pub(crate) epoch: u64,
    /// Bytes that all of them take of the log at most.
    pub(crate) cost: u64,
    /// What was needed of the log's frames up to this one was written again.
    pub(crate) carried: u64,
    pub(crate) under_way: usize,
    /// Changes that the origin did not take when they were tried last.
    pub(crate) troubled: usize,
    /// When a client has changed something last.
    last_taken: Option<Instant>,
    /// What the log is to hear.
    pub(crate) notes: Notes,
    /// The origin does not answer.
    pub(crate) is_away: bool,
    /// Somebody else has the origin's export.
    pub(crate) is_fenced: bool,
    /// It has ended in order.
    pub(crate) is_over: bool,
    /// Of proxies before this one.
    pub(crate) lives: Lives,
    pub(crate) signs: Signs,
    pub(crate) counts: Counts,
    /// Of listings.
    pub(crate) verifiers: Verifiers,
    log: [u8; 16],
    records_max: usize,
}

/// A change that was taken up: its number, and who tells when it is stable.
pub(crate) type Taken = (u64, oneshot::Receiver<()>);

impl State {
    /// At this time of day.
    pub(crate) fn new(
        journal: Journal<Waiter>,
        log: [u8; 16],
        records_max: usize,
        time: Duration,
    ) -> Self {
        Self {
            journal,
            order: Order::default(),
            ops: HashMap::new(),
            nodes: Nodes::default(),
            busy: HashSet::new(),
            turns: Turns::default(),
            recent: LruCache::new(RECENT_MAX),
            places: LruCache::unbounded(),
            touched: Touched { last: LruCache::new(TOUCHED_MAX), others: 0 },
            epoch: 1,
            cost: 0,
            carried: 0,
            under_way: 0,
            troubled: 0,
            last_taken: None,
            notes: Notes::default(),
            is_away: false,
            is_fenced: false,
            is_over: false,
            lives: Lives::default(),
            signs: Signs::default(),
            counts: Counts::default(),
            verifiers: Verifiers::new(&log, time),
            log,
            records_max,
        }
    }

    /// What the next record would call what it makes.
    pub(crate) fn next_identity(&self) -> (Handle, u64) {
        aliases::identity(&self.log, self.journal.next_record())
    }

    pub(crate) fn identity(&self, record: u64) -> (Handle, u64) {
        aliases::identity(&self.log, record)
    }

    /// Whether a change may have been carried out by a call of which nobody has heard.
    pub(crate) fn is_in_doubt(&self, number: u64) -> bool {
        self.ops.get(&number).is_some_and(|op| op.is_in_doubt)
    }

    /// Changes of a file that may have been carried out, in their order, and whether a proxy before
    /// has sent them. Once this life has sent one, it has seen what those before had left.
    pub(crate) fn doubtful(&self, id: &Handle) -> (Vec<Entry>, bool) {
        let has_sent = self.nodes.find(id).is_some_and(|node| node.trail.has_sent());
        let is_doubtful = |op: &Op| op.is_in_doubt && !(has_sent && op.is_carried);
        let is_of_file = |op: &Op| file(&op.entry.change) == Some(*id);
        let ops = self.ops.iter().filter(|(_, op)| is_doubtful(op) && is_of_file(op));
        let mut ops: Vec<_> = ops.collect();
        ops.sort_unstable_by_key(|(number, _)| **number);
        (ops.into_iter().map(|(_, op)| op.entry.clone()).collect(), !has_sent)
    }

    /// Takes up a change, after all that were taken before it, and shows it to clients. None: there
    /// is no room; nothing was done.
    pub(crate) fn take(&mut self, mut entry: Entry, now: Instant) -> Option<Taken> {
        let bytes = entry.encode();
        let len = bytes.len();
        let number = self.journal.next_record();
        let key = key(number);
        let makes_room = self.makes_room(&entry.change);
        let (places, bytes_left) = if makes_room { (CUTS_MAX, 0) } else { (0, CUTS_BYTES) };
        if self.ops.len() >= self.records_max + places
            || !self.journal.has_room_for(cost(len) + bytes_left)
            || !self.journal.admits(&key, len)
        {
            return None;
        }
        // One copy of the data for the log and for readers.
        if let Change::Write { data, .. } = &mut entry.change {
            *data = bytes.slice(len - data.len()..);
            self.counts.taken_bytes += data.len() as u64;
        }
        let is_known = self.is_known(&entry.change);
        self.notes.submitted(is_known, self.journal.is_waiting(), now);
        self.journal.submit_change(key, bytes, Waiter::Taken(number));
        self.counts.taken += 1;
        self.last_taken = Some(now);
        let (done, hears) = oneshot::channel();
        self.show(number, &entry, now);
        let mut op = Op::new(entry, Some(done), len, now);
        op.makes_room = makes_room;
        op.done.take_if(|_| is_known).and_then(|done| done.send(()).ok());
        self.add(number, op);
        Some((number, hears))
    }

    /// Whether a change sets what changes in the log have set already, of a file that the origin
    /// does not have yet. If its record is lost, nothing of it is.
    fn is_known(&self, change: &Change) -> bool {
        let Change::Set { file, set } = change else { return false };
        let is_stable = |number| self.ops.get(&number).is_some_and(|op| op.done.is_none());
        self.nodes.find(file).is_some_and(|node| node.origin.is_none() && node.is_as(set))
            && self.order.newest_alone(&Thing::File(*file)).is_some_and(is_stable)
    }

    /// The same of one that a log had. A change that was answered and set nothing new may be lost,
    /// but for its time: so that no client sees an older one, it is not before `time`. What the
    /// origin has done already is in the links that it has reported.
    pub(crate) fn carry_on(
        &mut self,
        number: u64,
        HeldEntry { entry, bytes, records }: HeldEntry,
        is_done: bool,
        (now, time): (Instant, Time),
    ) {
        for (record, frame) in records {
            self.journal.hold(key(number), record, frame);
        }
        if is_done {
            self.take_back(&entry.change);
        }
        self.show(number, &entry, now);
        let made = self.identity(number).0;
        let file = file(&entry.change).unwrap_or(made);
        if let Some(node) = self.nodes.find_mut(&file) {
            node.attr.changed = node.attr.changed.max(time);
        }
        self.add(number, Op::new(entry, None, bytes, now));
        self.order.stable(number);
    }

    fn add(&mut self, number: u64, op: Op) {
        self.cost += op.cost;
        self.order.add(number, uses(&op.entry.change, &self.identity(number).0));
        self.ops.insert(number, op);
    }

    /// A record is stable in the log, or never will be: then its change is stable when the origin
    /// has it.
    pub(crate) fn taken(&mut self, number: u64, is_stable: bool) {
        let waits = self.ops.get_mut(&number).filter(|_| is_stable);
        if let Some(done) = waits.and_then(|op| op.done.take()) {
            done.send(()).ok();
        }
        self.give_up_before(number);
        self.order.stable(number);
    }

    /// How long what is due waits still for others and for clients that have nothing to do; none:
    /// it does not, or nothing is due.
    pub(crate) fn gathers(&self, options: &Options, now: Instant) -> Option<Nanos> {
        let oldest = self.ops.get(&self.order.oldest_due()?)?;
        let is_wanted = self.notes.is_hurried
            || self.journal.is_failed()
            || self.journal.is_filling()
            || self.ops.len() > self.records_max / 2;
        let since = self.last_taken.map_or(oldest.since, |at| at.max(oldest.since));
        let at = (since + options.gather_within).min(oldest.since + options.rest_within);
        (!is_wanted && now < at).then(|| at.since(now))
    }

    /// The next change that may go to the origin.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let number = self.order.next()?;
        self.under_way += 1;
        Some(number)
    }

    /// It goes now, as a call; whether who writes the log is to look how long he may wait.
    pub(crate) fn sends(&mut self, number: u64, now: Instant) -> bool {
        let waits_for_none = self.signs.wait(now).is_none();
        self.signs.sent(number, now);
        waits_for_none || self.sign_wait(now) == Some(Nanos::ZERO)
    }

    /// The changes that wait for this one alone and can be one call with it.
    pub(crate) fn join(&mut self, number: u64) -> Vec<u64> {
        let (mut joined, mut last) = (Vec::new(), number);
        while let Some(next) = self.order.follower(last).filter(|_| joined.len() < JOINED_MAX) {
            let (Some(before), Some(op)) = (self.ops.get(&last), self.ops.get(&next)) else {
                break;
            };
            if !before.entry.goes_with(&op.entry) {
                break;
            }
            self.set_joined(next, true);
            joined.push(next);
            last = next;
        }
        joined
    }

    /// They go by themselves after all, and may have gone together.
    pub(crate) fn part(&mut self, number: u64, joined: &[u64]) {
        joined.iter().for_each(|number| self.set_joined(*number, false));
        for number in joined.iter().chain([&number]) {
            if let Some(op) = self.ops.get_mut(number) {
                (op.is_in_doubt, op.is_carried) = (true, false);
            }
        }
    }

    fn set_joined(&mut self, number: u64, is_joined: bool) {
        self.order.join(number, is_joined);
        if let Some(op) = self.ops.get_mut(&number) {
            op.is_joined = is_joined;
        }
    }

    /// A change has come to the origin. What follows it waits until the log has noted that.
    pub(crate) fn arrived(&mut self, number: u64, now: Instant) -> Option<Op> {
        let mut op = self.ops.remove(&number)?;
        self.signs.answered(number);
        self.cost -= op.cost;
        self.under_way -= usize::from(!op.is_joined);
        if op.trouble.is_some() {
            self.troubled -= 1;
            let left = self.ops.iter().filter(|(_, op)| op.trouble.is_some());
            self.order.troubled(left.map(|(number, _)| *number));
        }
        self.epoch += 1;
        self.counts.arrived += 1;
        let epoch = self.epoch;
        for id in self.touched(number, &op.entry.change) {
            if let Some(node) = self.nodes.find_mut(&id) {
                node.arrived(number, epoch, now);
            }
        }
        for (dir, name) in names(&op.entry.change) {
            self.touched.note(named(dir, name), epoch);
            if let Some(node) = self.nodes.find_mut(dir) {
                node.name_is_there(name, number, now);
            }
        }
        if let Some(done) = op.done.take() {
            done.send(()).ok();
        }
        Some(op)
    }

    /// The nodes that a change is pending on.
    fn touched(&self, number: u64, change: &Change) -> Vec<Handle> {
        let mut all = involved(change);
        if matches!(change, Change::Make { .. }) {
            all.push(self.identity(number).0);
        }
        all
    }

    /// The origin may have changed these.
    pub(crate) fn touch(&mut self, things: impl IntoIterator<Item = Thing>) {
        self.epoch += 1;
        things.into_iter().for_each(|thing| self.touched.note(thing, self.epoch));
    }

    /// A file may be gone at the origin: what is known of it counts no more.
    pub(crate) fn forget_file(&mut self, file: &Handle) {
        self.touch([Thing::File(*file)]);
        self.nodes.forget(file);
    }

    /// Whether a reply to a call of this epoch may not be so any more.
    pub(crate) fn is_touched(&self, thing: &Thing, epoch: u64) -> bool {
        self.touched.since(thing, epoch)
    }

    /// Whether what these names were found to be may not be so any more, and it is not known here.
    pub(crate) fn are_moved(&self, places: &[Place<'_>], epoch: u64, now: Instant) -> bool {
        places.iter().any(|(dir, name)| {
            self.own_name(dir, name, now).is_none() && self.is_touched(&named(dir, name), epoch)
        })
    }

    /// Whether the origin is changing any of these for a caller who waits for that.
    pub(crate) fn is_busy(&self, places: &[Place<'_>], files: &[Handle]) -> bool {
        let is_busy = |file: &Handle| self.busy.contains(&Thing::File(*file));
        !self.busy.is_empty()
            && (files.iter().any(is_busy)
                || places
                    .iter()
                    .any(|(dir, name)| is_busy(dir) || self.busy.contains(&named(dir, name))))
    }

    /// Whether all that waits for the origin may wait for long.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_away || self.is_fenced
    }

    /// Looks whether a caller waits for what is in trouble; whether that is news.
    pub(crate) fn hold_up(&mut self, claim: &Claim) -> bool {
        let Self { turns, order, .. } = self;
        turns.hold_up(claim, |thing, how| order.is_stuck(thing, how))
    }

    /// Whether a change of the file itself is on its way, not of names in it or bytes of it.
    pub(crate) fn changes(&self, file: &Handle) -> bool {
        self.order.uses_alone(&Thing::File(*file))
    }

    /// What clients see of a file of which the origin returns this.
    pub(crate) fn learn(&mut self, id: &Handle, returned: Attr, epoch: u64) -> Attr {
        self.nodes.find_mut(id).map_or(returned, |node| node.learn(returned, epoch))
    }

    /// The oldest change that is on its way, and how long.
    pub(crate) fn oldest(&self, now: Instant) -> Nanos {
        let oldest = self.ops.values().map(|op| op.since).min();
        oldest.map_or(Nanos::ZERO, |oldest| now.since(oldest))
    }

    /// Why the origin does not take the oldest change of those that it does not.
    pub(crate) fn oldest_trouble(&self) -> Option<Status> {
        let troubled = self.ops.iter().filter_map(|(number, op)| Some((number, op.trouble?)));
        let oldest = troubled.min_by_key(|(number, _)| **number).map(|(_, status)| status);
        oldest.or_else(|| self.is_away.then_some(Status::Away))
    }

    /// The origin does not take a change; whether that is known already.
    pub(crate) fn trouble(&mut self, number: u64, status: Status) -> bool {
        let Some(op) = self.ops.get_mut(&number) else { return true };
        // It may have been executed.
        (op.is_in_doubt, op.is_carried) = (true, false);
        self.signs.answered(number);
        let before = op.trouble.replace(status);
        self.order.trouble(number);
        self.troubled += usize::from(before.is_none());
        self.give_up_if_cut(number);
        before == Some(status)
    }

    /// Whether another change waits for the same reason.
    pub(crate) fn troubles_others(&self, number: u64, status: Status) -> bool {
        self.ops.iter().any(|(other, op)| *other != number && op.trouble == Some(status))
    }
}
