//! What a log holds. Every block is looked at, because nothing but the frames themselves says where
//! the newest one is: at 1 GiB that is what reading 1 GiB takes.
//!
//! A frame is written when the one before it is stable. So one that is cut off at the end was
//! answered to nobody, and is left out; one that is missing *before* another was answered: that is
//! damage, and is not gone over in silence. (A newest frame that was whole once and is not any more
//! cannot be told from one that never was.)

use std::collections::BTreeMap;
use std::io;

use crate::frame::{Frame, FrameError, Header};
use crate::ring::Place;
use crate::{BLOCK_BYTES, Identity, Medium};

/// Read at once.
const WINDOW_BYTES: u64 = 4 << 20;

/// The frames that a recovery needs.
#[derive(Clone, Debug)]
pub struct Found {
    /// From the tail of the newest to the newest, one after the other.
    pub frames: Vec<Place>,
    /// The newest one's.
    pub last: Header,
    /// Behind it lies the beginning of another, which was cut off.
    pub is_torn: bool,
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
}

/// Finds them.
pub fn scan<M: Medium + ?Sized>(medium: &M, identity: &Identity) -> Result<Found, ScanError> {
    let mut window = Window::new(medium, identity.bytes);
    let mut whole: BTreeMap<u64, Header> = BTreeMap::new();
    // Headers without the rest of their frame.
    let mut broken: Option<u64> = None;
    let mut at = BLOCK_BYTES;
    while at < identity.bytes {
        let step = match look(&mut window, identity, at)? {
            Look::Whole(header) => {
                if whole.insert(header.sequence, header).is_some() {
                    return Err(ScanError::Twice { sequence: header.sequence });
                }
                header.bytes
            }
            Look::Broken(sequence) => {
                broken = broken.max(Some(sequence));
                BLOCK_BYTES
            }
            Look::Nothing => BLOCK_BYTES,
        };
        at += step;
    }
    let (&newest, &last) = whole.last_key_value().ok_or(ScanError::Empty)?;
    let frames = (last.tail..=newest).map(|sequence| {
        let header = whole.get(&sequence);
        let missing = ScanError::Damaged { missing: sequence, tail: last.tail, last: newest };
        header.map(Place::from).ok_or(missing)
    });
    let frames: Vec<_> = frames.collect::<Result<_, _>>()?;
    match broken.filter(|&sequence| sequence > newest + 1) {
        // It was begun, so the one before it was stable.
        Some(last_begun) => {
            let (missing, tail) = (newest + 1, last.tail);
            Err(ScanError::Damaged { missing, tail, last: last_begun })
        }
        None => Ok(Found { frames, last, is_torn: broken == Some(newest + 1) }),
    }
}

/// Reads the frames again, in order.
pub fn walk<M: Medium + ?Sized, E: From<ScanError>>(
    medium: &M,
    identity: &Identity,
    found: &Found,
    mut each: impl FnMut(&Frame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut window = Window::new(medium, identity.bytes);
    for place in &found.frames {
        let bytes = window.at(place.at, place.bytes).map_err(ScanError::from)?;
        let frame = Frame::decode(bytes, &identity.id, place.at)
            .ok()
            .filter(|frame| frame.header.sequence == place.sequence);
        let (missing, tail, last) = (place.sequence, found.last.tail, found.last.sequence);
        each(&frame.ok_or(ScanError::Damaged { missing, tail, last })?)?;
    }
    Ok(())
}

enum Look {
    Whole(Header),
    Broken(u64),
    Nothing,
}

fn look<M: Medium + ?Sized>(
    window: &mut Window<'_, M>,
    identity: &Identity,
    at: u64,
) -> io::Result<Look> {
    let Ok(header) = Header::decode(window.at(at, BLOCK_BYTES)?, &identity.id, at) else {
        return Ok(Look::Nothing);
    };
    let frame = Frame::decode(window.at(at, header.bytes)?, &identity.id, at);
    Ok(match frame {
        Ok(frame) => Look::Whole(frame.header),
        Err(FrameError::None) => Look::Nothing,
        Err(_) => Look::Broken(header.sequence),
    })
}

/// What was read last, which mostly has what comes next.
struct Window<'m, M: ?Sized> {
    medium: &'m M,
    end: u64,
    from: u64,
    bytes: Vec<u8>,
}

impl<'m, M: Medium + ?Sized> Window<'m, M> {
    fn new(medium: &'m M, end: u64) -> Self {
        Self { medium, end, from: 0, bytes: Vec::new() }
    }

    /// As many of these bytes as there are before the end.
    fn at(&mut self, at: u64, len: u64) -> io::Result<&[u8]> {
        let len = len.min(self.end.saturating_sub(at));
        let has = at >= self.from && at + len <= self.from + self.bytes.len() as u64;
        if !has {
            let wanted = WINDOW_BYTES.max(len).min(self.end - at);
            self.bytes.resize(usize::try_from(wanted).expect("some MiB are in memory"), 0);
            self.medium.read(at, &mut self.bytes)?;
            self.from = at;
        }
        let from = usize::try_from(at - self.from).expect("within the window");
        let len = usize::try_from(len).expect("within the window");
        Ok(&self.bytes[from..from + len])
    }
}

impl From<&Header> for Place {
    fn from(header: &Header) -> Self {
        Self { sequence: header.sequence, at: header.at, bytes: header.bytes }
    }
}
