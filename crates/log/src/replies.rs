//! Which replies a log retains, and which of their calls are known to have been executed.
//! Decisions only: the journal asks.
//!
//! The newest stay, those of WRITEs apart from all others. They prevent their frame from being
//! overwritten; so that they do not keep all that comes behind it, each sweep writes them once
//! more.
//!
//! A reply is *open* while what its call did is being made stable in its place. One whose sync has
//! failed stays open as long as a recovery would read its record.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;

use crate::reply::Reply;
use crate::{Key, Stamp};

/// Most replies to WRITEs that are retained: as many calls are in service at once.
pub const WRITES_MAX: usize = 256;

/// Most others: some 500 bytes each, in the log and in memory.
pub const OTHERS_MAX: usize = 1024;

/// What a record of a reply has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EncodedReply {
    pub key: Key,
    /// When the call came.
    pub came: Stamp,
    /// A [`Reply`].
    pub bytes: Bytes,
    pub is_write: bool,
}

impl EncodedReply {
    /// None if it is too long for a record.
    pub fn new(key: Key, came: Stamp, reply: &Reply<'_>) -> Option<Self> {
        Some(Self { key, came, bytes: reply.encode()?.into(), is_write: reply.is_write })
    }

    /// The same of a call that was seen to be executed.
    #[must_use]
    pub fn decided(self) -> Self {
        let decided = Reply::decode(&self.bytes)
            .filter(|reply| !reply.is_decided)
            .and_then(|reply| Reply { is_decided: true, ..reply }.encode());
        match decided {
            Some(bytes) => Self { bytes: bytes.into(), ..self },
            None => self,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Open,
    Stable,
    /// What it did could not be made stable.
    Void,
}

#[derive(Debug)]
struct Retained {
    /// Its first record: less is older.
    age: u64,
    /// Its last record.
    sequence: u64,
    /// None while the record waits for one.
    frame: Option<u64>,
    reply: EncodedReply,
    state: State,
}

/// Those of one kind, the oldest first.
#[derive(Debug)]
struct Shelf {
    replies: VecDeque<Retained>,
    max: usize,
}

#[derive(Debug)]
pub(crate) struct Replies {
    others: Shelf,
    writes: Shelf,
    /// The age of each that has been written again, by its last record.
    again: HashMap<u64, u64>,
    /// Records of open replies; with the frame, if it was dropped.
    open: BTreeMap<u64, Option<u64>>,
}

/// What a sweep does.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// To be written again: its age, and the frame that is needed until then.
    pub(crate) again: Vec<(u64, EncodedReply, u64)>,
    /// Frames that are not needed any more, once for each reply.
    pub(crate) released: Vec<u64>,
}

impl Replies {
    pub(crate) fn new(others_max: usize, writes_max: usize) -> Self {
        let shelf = |max: usize| Shelf { replies: VecDeque::new(), max: max.max(1) };
        Self {
            others: shelf(others_max),
            writes: shelf(writes_max),
            again: HashMap::new(),
            open: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.others.replies.len() + self.writes.replies.len()
    }

    fn shelf(&mut self, is_write: bool) -> &mut Shelf {
        if is_write { &mut self.writes } else { &mut self.others }
    }

    /// Whether there is room for one, or one that can go.
    pub(crate) fn admits(&self, is_write: bool) -> bool {
        let shelf = if is_write { &self.writes } else { &self.others };
        shelf.replies.len() < shelf.max || shelf.oldest_settled().is_some()
    }

    /// Retains one whose record was queued. Gives the frame of one that had to go for it.
    pub(crate) fn add(&mut self, sequence: u64, reply: EncodedReply, is_open: bool) -> Option<u64> {
        let state = if is_open { State::Open } else { State::Stable };
        if is_open {
            self.open.insert(sequence, None);
        }
        let shelf = self.shelf(reply.is_write);
        let gone = match shelf.replies.len() < shelf.max {
            true => None,
            false => shelf.oldest_settled().and_then(|oldest| shelf.replies.remove(oldest)),
        };
        shelf.replies.push_back(Retained { age: sequence, sequence, frame: None, reply, state });
        let Retained { sequence, frame, state, .. } = gone?;
        self.again.remove(&sequence);
        if state == State::Void {
            self.open.insert(sequence, frame);
        }
        frame
    }

    /// A record goes into this frame; whether its reply is still retained.
    pub(crate) fn begun(&mut self, sequence: u64, is_write: bool, frame: u64) -> bool {
        let age = self.again.get(&sequence).copied().unwrap_or(sequence);
        let retained =
            self.shelf(is_write).of(age).filter(|retained| retained.sequence == sequence);
        retained.map(|retained| retained.frame = Some(frame)).is_some()
    }

    /// One that is carried has this record now, which waits for its frame.
    pub(crate) fn written_again(&mut self, age: u64, is_write: bool, sequence: u64) {
        let Some(retained) = self.shelf(is_write).of(age) else { return };
        let before = std::mem::replace(&mut retained.sequence, sequence);
        self.again.remove(&before);
        self.again.insert(sequence, age);
    }

    /// What the call did was made stable, or could not be.
    pub(crate) fn decide(&mut self, sequence: u64, is_stable: bool) {
        let Some(retained) = self.others.of(sequence) else { return };
        retained.state = if is_stable { State::Stable } else { State::Void };
        if is_stable {
            self.open.remove(&sequence);
        }
    }

    /// The oldest record of which a recovery has to look in the file system whether its call was
    /// executed, if it needs no frame before `tail`.
    pub(crate) fn oldest_open(&mut self, tail: u64) -> Option<u64> {
        while let Some((&sequence, frame)) = self.open.first_key_value() {
            if frame.is_none_or(|frame| frame >= tail) {
                return Some(sequence);
            }
            self.open.pop_first();
        }
        None
    }

    /// The oldest frame that is needed for an open one.
    pub(crate) fn oldest_open_frame(&self) -> Option<u64> {
        let open = self.others.replies.iter().filter(|one| one.state == State::Open);
        open.filter_map(|one| one.frame).min()
    }

    /// What is to be done with all that stand in a frame before this one and are not open: those of
    /// calls that came since `oldest` are written again, the others are dropped.
    pub(crate) fn carry(&mut self, oldest: Stamp, before: u64) -> Carried {
        let mut carried = Carried::default();
        let Self { others, writes, again, open } = self;
        for shelf in [others, writes] {
            shelf.replies.retain_mut(|retained| {
                let is_carried = |&frame: &u64| frame < before && retained.state != State::Open;
                let Some(frame) = retained.frame.filter(is_carried) else { return true };
                let stays = retained.state == State::Stable && retained.reply.came >= oldest;
                if stays {
                    retained.frame = None;
                    retained.reply = retained.reply.clone().decided();
                    carried.again.push((retained.age, retained.reply.clone(), frame));
                    return true;
                }
                if retained.state == State::Void {
                    open.insert(retained.sequence, Some(frame));
                }
                again.remove(&retained.sequence);
                carried.released.push(frame);
                false
            });
        }
        carried
    }
}

impl Shelf {
    fn of(&mut self, age: u64) -> Option<&mut Retained> {
        let index = self.replies.binary_search_by_key(&age, |one| one.age).ok()?;
        self.replies.get_mut(index)
    }

    /// Not of an open one: its record would be believed.
    fn oldest_settled(&self) -> Option<usize> {
        self.replies.iter().position(|one| match one.state {
            State::Open => false,
            State::Stable => true,
            State::Void => one.frame.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{Call, Effect, FileId};

    fn encoded(xid: u32, is_write: bool) -> EncodedReply {
        let file = FileId { inode: 1, born: None };
        let effect = if is_write { Effect::Logged } else { Effect::Named { name: b"n", file } };
        let call = Call { xid, ..Call::default() };
        let reply = Reply { call, effect, is_decided: false, is_write, bytes: b"done" };
        let came = Stamp { seconds: i64::from(xid), nanos: 0 };
        EncodedReply::new(Key::new(b"dir").unwrap(), came, &reply).unwrap()
    }

    #[test]
    fn the_newest_stay_and_what_is_open_does_not_go() {
        let mut replies = Replies::new(3, 1);
        for sequence in 1..=3 {
            assert_eq!(replies.add(sequence, encoded(1, false), true), None);
            assert!(replies.begun(sequence, false, 10 + sequence));
        }
        assert!(!replies.admits(false) && replies.admits(true));
        replies.decide(2, true);
        assert!(replies.admits(false));
        assert_eq!(replies.add(4, encoded(4, false), false), Some(12));
        assert_eq!(replies.len(), 3);
        assert!(!replies.begun(2, false, 20), "it was dropped");
        assert_eq!(replies.oldest_open(0), Some(1));
    }

    #[test]
    fn what_is_carried_is_of_calls_that_were_executed() {
        let mut replies = Replies::new(9, 9);
        for sequence in 1..=4 {
            let xid = u32::try_from(sequence).unwrap();
            replies.add(sequence, encoded(xid, false), true);
            replies.begun(sequence, false, 10 + sequence);
        }
        replies.add(5, encoded(5, true), false);
        replies.decide(1, true);
        replies.decide(2, true);
        replies.decide(3, false);
        let Carried { again, released } = replies.carry(Stamp { seconds: 2, nanos: 0 }, 14);
        // The first is too old, the third was not executed for certain.
        assert_eq!(released, [11, 13]);
        let [(2, encoded, 12)] = &again[..] else { panic!("{again:?}") };
        assert!(Reply::decode(&encoded.bytes).unwrap().is_decided);
        // As long as a recovery would read the third, it has to look; of the fourth in any case.
        assert_eq!(replies.oldest_open(13), Some(3));
        assert_eq!(replies.oldest_open(14), Some(4));
        assert_eq!(replies.len(), 3);
        replies.written_again(2, false, 6);
        assert!(!replies.begun(2, false, 20) && replies.begun(6, false, 20));
        // It is still the oldest of them.
        let mut all = replies.others.replies.iter().map(|one| (one.age, one.frame));
        assert_eq!((all.next(), all.next()), (Some((2, Some(20))), Some((4, Some(14)))));
    }
}
