//! A frame between the queue and the disk: its place and its records are decided, and its bytes
//! are still to be made. Those who submit need not wait for that.

use bytes::Bytes;

use crate::Key;
use crate::frame::{Attributes, Builder, Header, Op, RECORD_BYTES, Record, Stamp};
use crate::replies::EncodedReply;

/// What a record has; the data are shared with whoever wrote them.
#[derive(Debug)]
pub(crate) enum Content {
    Data {
        offset: u64,
        modified: Stamp,
        changed: Stamp,
        data: Bytes,
    },
    Attributes {
        modified: Stamp,
        changed: Stamp,
        set: Attributes,
    },
    Past {
        through: u64,
    },
    /// Until it is stable, the frame `instead` is needed.
    Reply {
        reply: EncodedReply,
        instead: Option<u64>,
    },
    /// It is in this record of the same key already, which is needed until it is stable.
    Change {
        data: Bytes,
        instead: Option<u64>,
    },
    Done {
        through: u64,
        data: Bytes,
    },
}

impl Content {
    /// Of a record with this, which has a key.
    pub(crate) fn record_bytes(&self, key: &Key) -> usize {
        let data = match self {
            Self::Data { data, .. } | Self::Change { data, .. } | Self::Done { data, .. } => {
                data.len()
            }
            Self::Attributes { .. } => Attributes::BYTES,
            Self::Past { .. } => 0,
            Self::Reply { reply, .. } => reply.bytes.len(),
        };
        RECORD_BYTES + key.as_bytes().len() + data
    }

    fn op(&self) -> Op<'_> {
        match self {
            &Self::Data { offset, modified, changed, ref data } => {
                Op::Data { offset, modified, changed, data }
            }
            &Self::Attributes { modified, changed, set } => {
                Op::Attributes { modified, changed, set }
            }
            &Self::Past { through } => Op::Past { through },
            Self::Reply { reply, .. } => Op::Reply { came: reply.came, bytes: &reply.bytes },
            Self::Change { data, .. } => Op::Change { data },
            &Self::Done { through, ref data } => Op::Done { through, data },
        }
    }
}

/// See the module's head.
#[derive(Debug)]
pub struct Draft {
    pub(crate) header: Header,
    pub(crate) records: Vec<(u64, Key, Content)>,
}

impl Draft {
    /// Where in its log it goes.
    pub fn at(&self) -> u64 {
        self.header.at
    }

    /// By which [`Journal::finish`](crate::Journal::finish) knows it.
    pub fn frame(&self) -> u64 {
        self.header.sequence
    }

    /// Puts it into memory, from this byte to the end.
    pub fn write(&self, memory: &mut Vec<u8>, from: usize) {
        let mut builder = Builder::at(memory, from);
        for &(sequence, key, ref content) in &self.records {
            builder.push(&Record { sequence, key, op: content.op() });
        }
        let header = builder.seal(&self.header);
        debug_assert_eq!(header, self.header, "its place was found for this length");
    }
}
