//! A segment that is open: reading it, with every byte checked before it is given to anybody.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use crate::catalog;
use crate::counts::Cause;
use crate::header::{BLOCKS, Geometry, HEADER_BYTES, Header, HeaderError, crc_of};
use crate::key::{Key, Name, Token};
use crate::medium::{Medium, Stored};
use crate::mistake::Mistake;

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: Name,
    pub(crate) stored: Arc<dyn Stored>,
    /// Guards what is known of it, and whether uses were counted that are not written.
    pub(crate) head: Mutex<Head>,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) header: Header,
    pub(crate) has_news: bool,
}

/// What opening a segment comes to.
#[derive(Debug)]
pub(crate) enum Loaded {
    Whole(Arc<Segment>),
    /// There is none, or one that nothing was ever finished in.
    Nothing,
    /// What lies there cannot be trusted.
    Unusable(Unusable),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("its header: {0}")]
    Header(#[from] HeaderError),
    #[error("it is of another file")]
    Key,
    #[error("its blocks are of another size")]
    Geometry,
}

/// Why a segment does not give what was requested.
#[derive(Debug)]
pub(crate) enum Refused {
    Missed(Cause),
    /// Blocks of it were not what they should be, and count as gone now.
    Damaged,
    /// The disk has to be read, and the caller does not wait.
    Waits,
    Failed(io::Error),
}

impl Segment {
    pub(crate) fn new(name: Name, stored: Arc<dyn Stored>, header: Header) -> Self {
        Self { name, stored, head: Mutex::new(Head { header, has_news: false }) }
    }

    /// Opens what lies under this name.
    pub(crate) fn load(
        medium: &dyn Medium,
        (key, segment): (&Key, u32),
        geometry: Geometry,
    ) -> io::Result<Loaded> {
        let name = Name { file: key.hash(), segment };
        let Some(stored) = medium.open(name)? else { return Ok(Loaded::Nothing) };
        let mut bytes = [0; HEADER_BYTES];
        let count = stored.read(0, &mut bytes, false)?;
        // A power failure leaves the file without its content.
        let is_empty = bytes.iter().all(|byte| *byte == 0);
        // Of a directory no data are stored: its attributes have changed.
        let is_catalog = bytes.starts_with(&catalog::MAGIC);
        if is_empty || is_catalog {
            return Ok(Loaded::Nothing);
        }
        Ok(match Header::decode(&bytes[..count]) {
            Err(error) => Loaded::Unusable(Unusable::Header(error)),
            Ok(header) if header.key != *key || header.segment != segment => {
                Loaded::Unusable(Unusable::Key)
            }
            Ok(header) if header.geometry != geometry => Loaded::Unusable(Unusable::Geometry),
            Ok(header) => Loaded::Whole(Arc::new(Self::new(name, stored, header))),
        })
    }

    /// Bytes of the file from `from` to `to`, which lie in this segment and before the end of the
    /// file in the state of `token`.
    pub(crate) fn read(
        &self,
        (key, token): (&Key, &Token),
        (from, to): (u64, u64),
        at_once: bool,
        mistake: Option<Mistake>,
    ) -> Result<Bytes, Refused> {
        let (geometry, wanted) = self.wanted((key, token), (from, to))?;
        let Some((first, last)) = wanted.first().zip(wanted.last()) else {
            return Ok(Bytes::new());
        };
        let block_bytes = usize::try_from(geometry.block_bytes()).unwrap_or(usize::MAX);
        let all = (wanted.len() - 1) * block_bytes + last.len;
        let mut data = BytesMut::zeroed(all);
        match self.stored.read(geometry.place(first.index), &mut data, at_once) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Refused::Waits),
            Err(error) => return Err(Refused::Failed(error)),
        }
        let mut wrong = Vec::new();
        for (block, content) in wanted.iter().zip(data.chunks(block_bytes)) {
            if crc_of((key, self.name.segment), block.index, content) != block.crc {
                wrong.push(*block);
            }
        }
        if !wrong.is_empty() && mistake != Some(Mistake::UncheckedBlocks) {
            return Err(self.is_wrong(token, &wrong));
        }
        let start = u64::from(self.name.segment) * geometry.segment_bytes()
            + first.index as u64 * geometry.block_bytes();
        let place = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
        let mut head = self.head.lock();
        head.header.used.hits += 1;
        head.header.used.hit_bytes += to - from;
        head.has_news = true;
        drop(head);
        Ok(data.freeze().slice(place(from)..place(to)))
    }

    /// A block as it was stored, if it is there and what it should be.
    pub(crate) fn block(&self, index: usize) -> Option<Vec<u8>> {
        let (geometry, key, crc, len) = {
            let header = &self.head.lock().header;
            let len = usize::try_from(header.len(index)).ok()?;
            (header.geometry, header.key, header.crc(index)?, len)
        };
        let mut data = vec![0; len];
        // Behind the end of the local file are holes.
        self.stored.read(geometry.place(index), &mut data, false).ok()?;
        let is_whole = crc_of((&key, self.name.segment), index, &data) == crc;
        is_whole.then_some(data)
    }

    /// The blocks that hold these bytes, if all are there.
    fn wanted(
        &self,
        (key, token): (&Key, &Token),
        (from, to): (u64, u64),
    ) -> Result<(Geometry, Vec<Block>), Refused> {
        let mut head = self.head.lock();
        let header = &head.header;
        if header.key != *key {
            return Err(Refused::Missed(Cause::Cold));
        }
        if header.token != *token {
            return Err(Refused::Missed(Cause::Changed));
        }
        let geometry = header.geometry;
        let start = u64::from(header.segment) * geometry.segment_bytes();
        let index = |at: u64| usize::try_from((at - start) / geometry.block_bytes()).ok();
        let (Some(first), Some(last)) = (index(from), index(to.max(from + 1) - 1)) else {
            return Err(Refused::Missed(Cause::Cold));
        };
        let blocks = (first..=last.min(BLOCKS - 1)).map(|index| {
            let crc = header.crc(index)?;
            Some(Block { index, crc, len: usize::try_from(header.len(index)).ok()? })
        });
        match blocks.collect() {
            Some(blocks) => Ok((geometry, blocks)),
            None => {
                head.header.used.cold += 1;
                head.has_news = true;
                Err(Refused::Missed(Cause::Cold))
            }
        }
    }

    /// These blocks are not what they should be, unless they were replaced meanwhile.
    fn is_wrong(&self, token: &Token, wrong: &[Block]) -> Refused {
        let mut head = self.head.lock();
        let is_same = head.header.token == *token;
        let mut has_gone = false;
        for block in wrong {
            if is_same && head.header.crc(block.index) == Some(block.crc) {
                head.header.take(block.index);
                head.header.used.damaged += 1;
                has_gone = true;
            }
        }
        head.has_news |= has_gone;
        if has_gone { Refused::Damaged } else { Refused::Missed(Cause::Changed) }
    }

    /// Writes the header.
    pub(crate) fn save(&self) -> io::Result<()> {
        let bytes = {
            let mut head = self.head.lock();
            head.has_news = false;
            head.header.encode()
        };
        self.stored.write(0, &bytes)
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    index: usize,
    crc: u32,
    len: usize,
}
