//! What of a log is to be done again: each WRITE and SETATTR that its file is not past, in order.
//! To do it twice leaves the same. And what calls were answered, for when they come again.

use std::collections::{BTreeMap, VecDeque};

use crate::frame::{Header, Op, Record, Stamp};
use crate::replies::{EncodedReply, OTHERS_MAX, WRITES_MAX};
use crate::reply::Effect;
use crate::scan::{Found, ScanError, walk};
use crate::{Key, Medium, Reply, Set};

/// What a file is to get.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Needed {
    pub records: u64,
    /// Of the records, those that set attributes.
    pub attributes: u64,
    pub bytes: u64,
    /// The times after its last record; the access time only if one has set it.
    pub modified: Stamp,
    pub changed: Stamp,
    pub accessed: Option<Stamp>,
}

impl Needed {
    fn add(&mut self, op: &Op<'_>) {
        match op {
            Op::Data { modified, changed, data, .. } => {
                self.bytes += data.len() as u64;
                (self.modified, self.changed) = (*modified, *changed);
            }
            Op::Attributes { modified, changed, set } => {
                (self.modified, self.changed) = (*modified, *changed);
                self.accessed = set.accessed.or(self.accessed);
                self.attributes += 1;
            }
            Op::Change { data } => self.bytes += data.len() as u64,
            Op::Past { .. } | Op::Done { .. } | Op::Reply { .. } => return,
        }
        self.records += 1;
    }
}

/// The replies to calls that were executed; `shows` looks whether the file system has what a call
/// did. What a later call has taken back or moved on was there: of that the later one tells.
pub fn executed(
    replies: Vec<Answered>,
    mut shows: impl FnMut(&Key, &Effect<'_>) -> bool,
) -> Vec<EncodedReply> {
    let mut later: Vec<EncodedReply> = Vec::new();
    for Answered { reply, is_decided } in replies.into_iter().rev() {
        let bytes = reply.bytes.clone();
        let Some(Reply { effect, .. }) = Reply::decode(&bytes) else { continue };
        let is_proof = |other: &EncodedReply| {
            Reply::decode(&other.bytes)
                .is_some_and(|proof| has_replaced(&proof.effect, &other.key, &effect, &reply.key))
        };
        if is_decided || shows(&reply.key, &effect) || later.iter().any(is_proof) {
            later.push(reply);
        }
    }
    later.into_iter().rev().map(EncodedReply::decided).collect()
}

/// Whether what was done later has taken the name from what it was made for, in its directory.
fn has_replaced(later: &Effect<'_>, in_dir: &Key, made: &Effect<'_>, dir: &Key) -> bool {
    let &Effect::Named { name, file } = made else { return false };
    match *later {
        Effect::Unnamed { name: gone, file: removed } => {
            (in_dir, gone, removed) == (dir, name, file)
        }
        // Moved on, or another has been moved to its name.
        Effect::Named { name: other, file: moved } => {
            (moved == file) != ((in_dir, other) == (dir, name))
        }
        Effect::Logged | Effect::Changed { .. } => false,
    }
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    past: BTreeMap<Key, u64>,
    /// The files that get anything.
    pub files: BTreeMap<Key, Needed>,
    /// In the order in which the calls came, each once.
    pub replies: Vec<Answered>,
}

/// A call that was answered, or would have been next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    pub reply: EncodedReply,
    /// It was executed, as far as the log is concerned. Else the file system shows it.
    pub is_decided: bool,
}

impl Plan {
    /// Reads the log twice: what files are past may stand behind all of their records. Memory is
    /// 150 bytes for each file in it.
    pub fn of<M: Medium + ?Sized>(medium: &M, set: &Set, found: &Found) -> Result<Self, ScanError> {
        let mut plan = Self::default();
        let mut newest = Newest::of(&found.last);
        walk(medium, set, found, |frame| {
            for record in frame.records().flatten() {
                match record.op {
                    Op::Past { through } | Op::Done { through, .. } => {
                        let past = plan.past.entry(record.key).or_default();
                        *past = through.max(*past);
                    }
                    Op::Reply { came, bytes } => newest.add(&record, came, bytes),
                    Op::Data { .. } | Op::Attributes { .. } | Op::Change { .. } => {}
                }
            }
            Ok::<_, ScanError>(())
        })?;
        let mut files = BTreeMap::<_, Needed>::new();
        plan.run(medium, set, found, |record| {
            files.entry(record.key).or_default().add(&record.op);
            Ok::<_, ScanError>(())
        })?;
        plan.files = files;
        plan.replies = newest.each_once();
        Ok(plan)
    }

    /// Whether this record is to be done again.
    pub fn needs(&self, record: &Record<'_>) -> bool {
        !matches!(record.op, Op::Past { .. } | Op::Done { .. } | Op::Reply { .. })
            && self.past.get(&record.key).is_none_or(|&past| record.sequence > past)
    }

    /// Gives each record that is needed to `each`, in order.
    pub fn run<M: Medium + ?Sized, E: From<ScanError>>(
        &self,
        medium: &M,
        set: &Set,
        found: &Found,
        mut each: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        walk(medium, set, found, |frame| {
            let mut records = frame.records().flatten().filter(|record| self.needs(record));
            records.try_for_each(|record| each(&record))
        })
    }
}

/// The newest replies of a log, which may hold many more than are retained. Twice as many are
/// taken: some were written again.
struct Newest {
    /// Records from here on are open.
    open_from: u64,
    others: VecDeque<(u64, Answered)>,
    writes: VecDeque<(u64, Answered)>,
}

impl Newest {
    fn of(last: &Header) -> Self {
        let open_from = last.next_record.saturating_sub(u64::from(last.undecided));
        Self { open_from, others: VecDeque::new(), writes: VecDeque::new() }
    }

    fn add(&mut self, record: &Record<'_>, came: Stamp, bytes: &[u8]) {
        let Some(reply) = Reply::decode(bytes) else { return };
        let is_decided =
            record.sequence < self.open_from || reply.is_decided || reply.effect == Effect::Logged;
        let is_write = reply.is_write;
        let reply = EncodedReply { key: record.key, came, bytes: bytes.to_vec().into(), is_write };
        let (queue, max) = match is_write {
            true => (&mut self.writes, WRITES_MAX),
            false => (&mut self.others, OTHERS_MAX),
        };
        if queue.len() >= 2 * max {
            queue.pop_front();
        }
        queue.push_back((record.sequence, Answered { reply, is_decided }));
    }

    /// Of several records of a call the last one counts.
    fn each_once(self) -> Vec<Answered> {
        let mut all: Vec<_> = self.others.into_iter().chain(self.writes).collect();
        all.sort_by_key(|(sequence, _)| *sequence);
        let call = |answered: &Answered| Reply::decode(&answered.reply.bytes).map(|of| of.call);
        let last: BTreeMap<_, _> =
            all.iter().map(|(sequence, answered)| (call(answered), *sequence)).collect();
        all.retain(|(sequence, answered)| last.get(&call(answered)) == Some(sequence));
        // Those that were written again have newer records than others that came after them.
        all.sort_by_key(|(_, answered)| answered.reply.came);
        let (mut writes, mut others) = (0, 0);
        let mut is_retained = |answered: &Answered| {
            let (count, max) = match answered.reply.is_write {
                true => (&mut writes, WRITES_MAX),
                false => (&mut others, OTHERS_MAX),
            };
            *count += 1;
            *count <= max
        };
        let newest_first = all.into_iter().rev().map(|(_, answered)| answered);
        let mut newest: Vec<_> = newest_first.filter(|answered| is_retained(answered)).collect();
        newest.reverse();
        newest
    }
}
