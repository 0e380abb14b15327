//! What a log holds. Every block is looked at, because nothing but the frames themselves says where
//! the newest one is: at 1 GiB that is what reading 1 GiB takes.
//!
//! Some frames may have been on their way at the same time, and any of them have come. They are
//! answered in order, so that what stands behind one that is missing was answered to nobody, and is
//! left out. But each says which frame was stable with all before it when it was begun: where one
//! of those is missing, that is damage, and is not gone over in silence. (A frame that was stable
//! when no other was begun after it cannot be distinguished from one that never was.)
//!
//! The frames of several logs have one sequence, and are one log to all that follows.
//!
//! A block that cannot be read is zeros: the frame that it was of is not whole.

use std::collections::{BTreeMap, BTreeSet};
use std::{fmt, io};

use crate::frame::{FRAME_BYTES_MAX, Frame, FrameError, Header};
use crate::ring::Place;
use crate::{BLOCK, BLOCK_BYTES, Medium, Set};

/// Read at once.
const WINDOW_BYTES: u64 = 4 << 20;

/// A log with more blocks that cannot be read is given up: a disk may try each for many seconds
/// (guess).
const UNREADABLE_MAX: usize = 256;

/// The frames that a recovery needs.
#[derive(Clone, Debug)]
pub struct Found {
    /// From the tail of the newest to the newest, one after the other.
    pub frames: Vec<Place>,
    /// The newest one's.
    pub last: Header,
    /// Behind it lies something of others that were answered to nobody.
    pub is_torn: bool,
    /// Of the next frame: no frame that lies there has it, also none of those.
    pub next: u64,
    pub unreadable: Option<Unreadable>,
}

/// Blocks that could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unreadable {
    pub blocks: u64,
    /// The log and the place of the first.
    pub log: usize,
    pub at: u64,
    /// The newest frames may have been in one of them.
    pub may_be_newest: bool,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { blocks, log, at, .. } = self;
        match blocks {
            1 => write!(f, "1 block of it cannot be read, at byte {at}")?,
            _ => write!(f, "{blocks} blocks of it cannot be read, the first at byte {at}")?,
        }
        if log > 0 { write!(f, " of log {}", log + 1) } else { Ok(()) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is damaged: there is no whole frame in it")]
    Empty,
    #[error(
        "it is damaged in the middle: frame {missing} is not whole, and frames {tail} to {last} \
         are needed"
    )]
    Damaged { missing: u64, tail: u64, last: u64 },
    #[error("it is damaged: frame {sequence} is there twice")]
    Twice { sequence: u64 },
    #[error("{what}; {unreadable}")]
    Unreadable { what: Box<Self>, unreadable: Unreadable },
}

impl ScanError {
    /// Whether what is whole can be salvaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Empty | Self::Damaged { .. } => true,
            Self::Io(_) | Self::Twice { .. } => false,
            Self::Unreadable { what, .. } => what.is_damage(),
        }
    }
}

/// What of a damaged log is not there any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lost {
    /// Frames that were needed, and of those the first.
    pub frames: u64,
    pub first: u64,
}

/// Finds them.
pub fn scan<M: Medium + ?Sized>(medium: &M, set: &Set) -> Result<Found, ScanError> {
    let seen = Seen::all(medium, set)?;
    seen.found(set).map_err(|what| match seen.unreadable(&[], set) {
        Some(unreadable) => ScanError::Unreadable { what: Box::new(what), unreadable },
        None => what,
    })
}

/// The same of a damaged log: the frames that are whole, whatever is missing between them, and what
/// that is. What a missing frame had to say of files that are past their records is missing, too.
///
/// # Errors
/// It cannot be read, or there is nothing of which the order is known.
pub fn salvage<M: Medium + ?Sized>(medium: &M, set: &Set) -> Result<(Found, Lost), ScanError> {
    let seen = Seen::all(medium, set)?;
    let Seen { whole, known, .. } = &seen;
    let &Some(Known { begun, witness, tail }) = known else {
        let (last, next) = (Header { id: set.id, ..Header::default() }, seen.next());
        let unreadable = seen.unreadable(&[], set);
        let found = Found { frames: Vec::new(), last, is_torn: false, next, unreadable };
        return Ok((found, Lost { frames: 0, first: 0 }));
    };
    let frames: Vec<_> = whole.range(tail..).map(|(_, header)| Place::from(header)).collect();
    let last = whole.range(tail..).next_back().map_or(begun, |(_, &last)| last);
    let is_torn = begun.sequence > last.sequence;
    let answered = tail..=witness.stable;
    let missing = (tail..).find(|sequence| !whole.contains_key(sequence));
    let first = missing.filter(|sequence| answered.contains(sequence));
    let there = whole.keys().filter(|sequence| answered.contains(sequence)).count() as u64;
    let wanted = (witness.stable + 1).saturating_sub(tail);
    let lost = Lost { frames: wanted.saturating_sub(there), first: first.unwrap_or(0) };
    let (next, unreadable) = (seen.next(), seen.unreadable(&frames, set));
    Ok((Found { frames, last, is_torn, next, unreadable }, lost))
}

/// All that is there.
struct Seen {
    whole: BTreeMap<u64, Header>,
    known: Option<Known>,
    /// By log and place.
    unreadable: Vec<(usize, u64)>,
}

/// What headers say, also those of frames that are not whole.
#[derive(Clone, Copy)]
struct Known {
    /// Of all that was ever begun, the newest, and the one that knows most of what was stable.
    begun: Header,
    witness: Header,
    /// No frame before it is needed.
    tail: u64,
}

impl Seen {
    fn all<M: Medium + ?Sized>(medium: &M, set: &Set) -> Result<Self, ScanError> {
        let mut seen = Self { whole: BTreeMap::new(), known: None, unreadable: Vec::new() };
        for (log, &bytes) in set.bytes.iter().enumerate() {
            let mut window = Window::new(medium, log, bytes);
            seen.look_at(&mut window, &set.id)?;
            seen.unreadable.extend(window.unreadable.into_iter().map(|at| (log, at)));
        }
        Ok(seen)
    }

    fn found(&self, set: &Set) -> Result<Found, ScanError> {
        let Some(Known { begun, witness, .. }) = self.known else { return Err(ScanError::Empty) };
        let whole = &self.whole;
        let frames = newest_complete(whole);
        let newest = frames.last().filter(|newest| newest.sequence >= witness.stable);
        let Some(&&last) = newest else {
            let stable = whole.get(&witness.stable);
            let needed = witness.tail.min(stable.map_or(u64::MAX, |at| at.tail));
            let missing = (needed..).find(|sequence| !whole.contains_key(sequence));
            let (missing, tail) = (missing.unwrap_or(needed), witness.tail);
            return Err(match whole.is_empty() {
                true => ScanError::Empty,
                false => ScanError::Damaged { missing, tail, last: begun.sequence },
            });
        };
        let is_torn = begun.sequence > last.sequence;
        let frames: Vec<_> = frames.into_iter().map(Place::from).collect();
        let (next, unreadable) = (self.next(), self.unreadable(&frames, set));
        Ok(Found { frames, last, is_torn, next, unreadable })
    }

    /// Above all that were ever begun, also those of blocks that may be read again one day.
    fn next(&self) -> u64 {
        let newest = self.known.map_or(0, |known| known.begun.sequence);
        newest + 1 + self.unreadable.len() as u64
    }

    /// What could not be read beside these frames.
    fn unreadable(&self, frames: &[Place], set: &Set) -> Option<Unreadable> {
        let &(log, at) = self.unreadable.first()?;
        let may_be_newest = |&(log, at): &(usize, u64)| {
            let of_newest = self.known.is_some_and(|Known { begun, .. }| {
                begun.log as usize == log && (begun.at..begun.at + begun.bytes).contains(&at)
            });
            let last = frames.iter().rfind(|place| place.log == log);
            let follows = last.is_none_or(|last| {
                let end = last.at + last.bytes;
                let is_short = end + FRAME_BYTES_MAX as u64 > set.bytes[log];
                at == end || is_short && at == BLOCK_BYTES
            });
            of_newest || follows
        };
        let may_be_newest = self.unreadable.iter().any(may_be_newest);
        Some(Unreadable { blocks: self.unreadable.len() as u64, log, at, may_be_newest })
    }

    /// One log, block by block.
    fn look_at<M: Medium + ?Sized>(
        &mut self,
        window: &mut Window<'_, M>,
        id: &[u8; 16],
    ) -> Result<(), ScanError> {
        let mut at = BLOCK_BYTES;
        while at < window.end {
            let look = look(window, id, at)?;
            if let Look::Whole(header) | Look::Broken(header) = look {
                let known = self.known.map(|known| known.and(header));
                self.known = known.or_else(|| Some(Known::of(header)));
            }
            at += match look {
                Look::Whole(header) => {
                    if self.whole.insert(header.sequence, header).is_some() {
                        return Err(ScanError::Twice { sequence: header.sequence });
                    }
                    header.bytes
                }
                Look::Broken(_) | Look::Nothing => BLOCK_BYTES,
            };
        }
        Ok(())
    }
}

impl Known {
    fn of(header: Header) -> Self {
        Self { begun: header, witness: header, tail: header.tail }
    }

    fn and(self, header: Header) -> Self {
        let is_newer = header.sequence >= self.begun.sequence;
        let knows_more = header.stable >= self.witness.stable;
        Self {
            begun: if is_newer { header } else { self.begun },
            witness: if knows_more { header } else { self.witness },
            tail: self.tail.max(header.tail),
        }
    }
}

/// The frames from the tail of the newest to the newest, of those that have all of them.
fn newest_complete(whole: &BTreeMap<u64, Header>) -> Vec<&Header> {
    let mut from = BTreeMap::new();
    let mut newest: Option<&Header> = None;
    for (&sequence, header) in whole {
        let first = from.get(&header.previous()).copied().unwrap_or(sequence);
        from.insert(sequence, first);
        if header.tail >= first {
            newest = Some(header);
        }
    }
    let before = |header: &&Header| whole.get(&header.previous());
    let tail = newest.map_or(0, |newest| newest.tail);
    let chain = std::iter::successors(newest, before);
    let mut frames: Vec<_> = chain.take_while(|header| header.sequence >= tail).collect();
    frames.reverse();
    frames
}

/// Reads the frames again, in order.
pub fn walk<M: Medium + ?Sized, E: From<ScanError>>(
    medium: &M,
    set: &Set,
    found: &Found,
    mut each: impl FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let logs = set.bytes.iter().enumerate();
    let mut windows: Vec<_> = logs.map(|(log, &bytes)| Window::new(medium, log, bytes)).collect();
    for place in &found.frames {
        let window = &mut windows[place.log];
        let log = window.number();
        let bytes = window.at(place.at, place.bytes).map_err(ScanError::from)?;
        let frame = Frame::decode(bytes, &set.id, log, place.at)
            .ok()
            .filter(|frame| frame.header.sequence == place.sequence);
        let (missing, tail, last) = (place.sequence, found.last.tail, found.last.sequence);
        each(&frame.ok_or(ScanError::Damaged { missing, tail, last })?)?;
    }
    Ok(())
}

enum Look {
    Whole(Header),
    Broken(Header),
    Nothing,
}

fn look<M: Medium + ?Sized>(
    window: &mut Window<'_, M>,
    id: &[u8; 16],
    at: u64,
) -> io::Result<Look> {
    let log = window.number();
    let Ok(header) = Header::decode(window.at(at, BLOCK_BYTES)?, id, log, at) else {
        return Ok(Look::Nothing);
    };
    let frame = Frame::decode(window.at(at, header.bytes)?, id, log, at);
    Ok(match frame {
        Ok(frame) => Look::Whole(frame.header),
        Err(FrameError::None) => Look::Nothing,
        Err(_) => Look::Broken(header),
    })
}

/// What of a log was read last, which mostly has what comes next.
struct Window<'m, M: ?Sized> {
    medium: &'m M,
    log: usize,
    end: u64,
    from: u64,
    bytes: Vec<u8>,
    /// Places of blocks.
    unreadable: BTreeSet<u64>,
}

impl<'m, M: Medium + ?Sized> Window<'m, M> {
    fn new(medium: &'m M, log: usize, end: u64) -> Self {
        Self { medium, log, end, from: 0, bytes: Vec::new(), unreadable: BTreeSet::new() }
    }

    /// As headers have it.
    fn number(&self) -> u32 {
        u32::try_from(self.log).unwrap_or(u32::MAX)
    }

    /// As many of these bytes as there are before the end.
    fn at(&mut self, at: u64, len: u64) -> io::Result<&[u8]> {
        let len = len.min(self.end.saturating_sub(at));
        let has = at >= self.from && at + len <= self.from + self.bytes.len() as u64;
        if !has {
            let wanted = WINDOW_BYTES.max(len).min(self.end - at);
            let wanted = usize::try_from(wanted).expect("some MiB are in memory");
            match wanted > self.bytes.len() {
                true => self.bytes = vec![0; wanted],
                false => self.bytes.truncate(wanted),
            }
            self.fill(at)?;
            self.from = at;
        }
        let from = usize::try_from(at - self.from).expect("within the window");
        let len = usize::try_from(len).expect("within the window");
        Ok(&self.bytes[from..from + len])
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        let end = at + self.bytes.len() as u64;
        if self.unreadable.range(at..end).next().is_none() {
            match self.medium.read(self.log, at, &mut self.bytes) {
                // It is shorter than it was made.
                Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Err(cause),
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
        self.fill_by_blocks(at)
    }

    /// Something in it cannot be read, which is not tried a second time.
    fn fill_by_blocks(&mut self, at: u64) -> io::Result<()> {
        for (block, at) in self.bytes.chunks_mut(BLOCK).zip((at..).step_by(BLOCK)) {
            if self.unreadable.contains(&at) {
                block.fill(0);
                continue;
            }
            match self.medium.read(self.log, at, block) {
                Err(cause) if self.unreadable.len() == UNREADABLE_MAX => return Err(cause),
                Err(_) => {
                    block.fill(0);
                    self.unreadable.insert(at);
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

impl From<&Header> for Place {
    fn from(header: &Header) -> Self {
        let &Header { log, sequence, at, bytes, .. } = header;
        Self { log: log as usize, sequence, at, bytes }
    }
}
