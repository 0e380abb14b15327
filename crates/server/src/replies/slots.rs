//! The reply cache's memory across the death of the process: a file of slots.
//!
//! A slot is written when a call is claimed, and again with the reply. Both are plain writes: the
//! page cache keeps them when the process is killed, and that is all they are for. After a loss of
//! power the file may say less than was answered, which is what a server without it would know.
//!
//! ```text
//!   slot, 512 bytes: | seal 8 | sequence 8 | state 1 | reply len 2 | client 16 |
//!                    | xid, program, version, procedure 4 each | checksum 8 |
//!                    | claimed at: secs 8, nanos 4 | reply |
//! ```
//!
//! Slots are used in turn; the oldest is overwritten, except while its call is in progress. A slot
//! whose seal does not fit is empty: half written, or of another version.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use super::cache::Key;
use super::recorded::octets;
use crate::siphash::siphash;
use crate::types::Time;

const SLOT_BYTES: usize = 512;
const HEAD_BYTES: usize = 71;

/// The longest reply that is kept.
pub(super) const REPLY_BYTES_MAX: usize = SLOT_BYTES - HEAD_BYTES;

/// Not a secret: it tells this layout's slots from other bytes.
const SEAL_KEY: [u8; 16] = *b"nfskit replies 1";

const CLAIMED: u8 = 1;
const ANSWERED: u8 = 2;

#[derive(Debug)]
pub(super) struct Slots {
    file: File,
    busy: Vec<AtomicBool>,
    next: AtomicUsize,
    sequence: AtomicU64,
    failures: AtomicU64,
}

/// A slot that is held while its call is in progress.
#[derive(Debug)]
pub(super) struct Slot(usize);

/// What a slot held at the start.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct SlotRecord {
    sequence: u64,
    slot: usize,
    pub(super) key: Key,
    pub(super) claimed_at: Time,
    /// None when the call was in progress.
    pub(super) reply: Option<Bytes>,
}

impl Slots {
    /// Opens or makes the file and gives what it holds, oldest first.
    pub(super) fn open(path: &Path, count: usize) -> io::Result<(Self, Vec<SlotRecord>)> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.set_len(offset(count))?;
        let mut kept = Vec::new();
        for at in 0..count {
            let mut slot = [0; SLOT_BYTES];
            file.read_exact_at(&mut slot, offset(at))?;
            kept.extend(SlotRecord::read(&slot, at));
        }
        kept.sort_unstable_by_key(|kept| kept.sequence);
        let sequence = kept.last().map_or(0, |last| last.sequence + 1);
        // The turn goes on where it ended, so that the oldest is overwritten first.
        let next = kept.last().map_or(0, |last| last.slot + 1);
        let slots = Self {
            file,
            busy: (0..count).map(|_| AtomicBool::new(false)).collect(),
            next: AtomicUsize::new(next),
            sequence: AtomicU64::new(sequence),
            failures: AtomicU64::new(0),
        };
        Ok((slots, kept))
    }

    /// None when all are held, or the file cannot be written: then the call is not remembered.
    pub(super) fn claim(&self, key: &Key, at: Time) -> Option<Slot> {
        let slot = (0..self.busy.len()).find_map(|_| {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.busy.len();
            (!self.busy[turn].swap(true, Ordering::Acquire)).then_some(Slot(turn))
        })?;
        if self.write(&slot, key, at, None) {
            return Some(slot);
        }
        self.release(slot);
        None
    }

    pub(super) fn answer(&self, slot: Slot, key: &Key, at: Time, reply: &[u8]) {
        self.write(&slot, key, at, Some(reply));
        self.release(slot);
    }

    /// Keeps what the slot says.
    pub(super) fn release(&self, Slot(at): Slot) {
        self.busy[at].store(false, Ordering::Release);
    }

    /// Empties a slot: the call was not executed.
    pub(super) fn clear(&self, slot: Slot) {
        self.put(&slot, &[0; HEAD_BYTES]);
        self.release(slot);
    }

    fn write(&self, slot: &Slot, key: &Key, at: Time, reply: Option<&[u8]>) -> bool {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; SLOT_BYTES];
        match encode(&mut bytes, sequence, key, at, reply) {
            Some(len) => self.put(slot, &bytes[..len]),
            None => false,
        }
    }

    fn put(&self, slot: &Slot, bytes: &[u8]) -> bool {
        let written = self.file.write_all_at(bytes, offset(slot.0)).is_ok();
        if !written {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    /// Writes that failed, a full disk say: those calls are not known after a restart.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

fn offset(slot: usize) -> u64 {
    (slot * SLOT_BYTES) as u64
}

fn encode(
    slot: &mut [u8; SLOT_BYTES],
    sequence: u64,
    key: &Key,
    at: Time,
    reply: Option<&[u8]>,
) -> Option<usize> {
    let state = if reply.is_some() { ANSWERED } else { CLAIMED };
    let reply = reply.unwrap_or_default();
    let client = octets(key.client);
    let mut bytes = Vec::with_capacity(SLOT_BYTES);
    bytes.extend(sequence.to_le_bytes());
    bytes.push(state);
    bytes.extend(u16::try_from(reply.len()).ok()?.to_le_bytes());
    bytes.extend(client);
    for number in [key.xid, key.program, key.version, key.procedure] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(key.checksum.to_le_bytes());
    bytes.extend(at.secs.to_le_bytes());
    bytes.extend(at.nanos.to_le_bytes());
    bytes.extend_from_slice(reply);
    let seal = siphash(&SEAL_KEY, &bytes);
    let len = 8 + bytes.len();
    slot.get_mut(8..len)?.copy_from_slice(&bytes);
    slot[..8].copy_from_slice(&seal.to_le_bytes());
    Some(len)
}

impl SlotRecord {
    fn read(bytes: &[u8; SLOT_BYTES], slot: usize) -> Option<Self> {
        let (seal, rest) = bytes.split_first_chunk::<8>()?;
        let reply_len = usize::from(u16::from_le_bytes([rest[9], rest[10]]));
        let sealed = rest.get(..HEAD_BYTES - 8 + reply_len)?;
        if siphash(&SEAL_KEY, sealed).to_le_bytes() != *seal {
            return None;
        }
        let mut fields = Fields(sealed);
        let sequence = u64::from_le_bytes(fields.take()?);
        let [state] = fields.take()?;
        let _reply_len: [u8; 2] = fields.take()?;
        let client = IpAddr::V6(Ipv6Addr::from(fields.take::<16>()?)).to_canonical();
        let [xid, program, version, procedure] = [
            u32::from_le_bytes(fields.take()?),
            u32::from_le_bytes(fields.take()?),
            u32::from_le_bytes(fields.take()?),
            u32::from_le_bytes(fields.take()?),
        ];
        let checksum = u64::from_le_bytes(fields.take()?);
        let secs = i64::from_le_bytes(fields.take()?);
        let nanos = u32::from_le_bytes(fields.take()?);
        Some(Self {
            sequence,
            slot,
            key: Key { client, xid, program, version, procedure, checksum },
            claimed_at: Time { secs, nanos },
            reply: (state == ANSWERED).then(|| Bytes::copy_from_slice(fields.0)),
        })
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Time = Time { secs: 1_700_000_000, nanos: 999_999_999 };

    fn key(xid: u32) -> Key {
        let client = "10.0.0.7".parse().unwrap();
        Key { client, xid, program: 100_003, version: 3, procedure: 14, checksum: u64::MAX - 1 }
    }

    fn place() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn what_was_written_is_there_again() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, kept) = Slots::open(&path, 4).unwrap();
        assert_eq!(kept, []);
        let answered = slots.claim(&key(1), AT).unwrap();
        slots.answer(answered, &key(1), AT, b"the reply");
        let _held = slots.claim(&key(2), AT).unwrap();
        let cleared = slots.claim(&key(3), AT).unwrap();
        slots.clear(cleared);
        let (_, kept) = Slots::open(&path, 4).unwrap();
        let found: Vec<_> = kept.iter().map(|kept| (kept.key, kept.reply.as_deref())).collect();
        assert_eq!(found, [(key(1), Some(&b"the reply"[..])), (key(2), None)]);
        assert!(kept.iter().all(|kept| kept.claimed_at == AT));
    }

    #[test]
    fn the_oldest_is_overwritten_and_what_is_held_is_not() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, _) = Slots::open(&path, 3).unwrap();
        let held = slots.claim(&key(0), AT).unwrap();
        for xid in 1..=5 {
            let slot = slots.claim(&key(xid), AT).unwrap();
            slots.answer(slot, &key(xid), AT, &xid.to_be_bytes());
        }
        let (_, kept) = Slots::open(&path, 3).unwrap();
        let xids: Vec<u32> = kept.iter().map(|kept| kept.key.xid).collect();
        assert_eq!(xids, [0, 4, 5]);
        slots.release(held);
    }

    #[test]
    fn after_a_restart_the_oldest_is_overwritten_first() {
        let place = place();
        let path = place.path().join("replies");
        for start in [0, 1, 2, 3, 4] {
            let (slots, _) = Slots::open(&path, 4).unwrap();
            let slot = slots.claim(&key(start), AT).unwrap();
            slots.answer(slot, &key(start), AT, b"");
        }
        let (_, kept) = Slots::open(&path, 4).unwrap();
        let xids: Vec<u32> = kept.iter().map(|kept| kept.key.xid).collect();
        assert_eq!(xids, [1, 2, 3, 4]);
    }

    #[test]
    fn when_all_are_held_there_is_none() {
        let place = place();
        let (slots, _) = Slots::open(&place.path().join("replies"), 1).unwrap();
        let held = slots.claim(&key(1), AT).unwrap();
        assert!(slots.claim(&key(2), AT).is_none());
        slots.release(held);
        assert!(slots.claim(&key(2), AT).is_some());
    }

    #[test]
    fn damage_is_an_empty_slot() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, _) = Slots::open(&path, 8).unwrap();
        for xid in 0..8 {
            let slot = slots.claim(&key(xid), AT).unwrap();
            slots.answer(slot, &key(xid), AT, &[7; REPLY_BYTES_MAX]);
        }
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, slot) in bytes.chunks_mut(SLOT_BYTES).enumerate().take(7) {
            slot[at * 70] ^= 0x80;
        }
        bytes.truncate(8 * SLOT_BYTES - 1);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Slots::open(&path, 8).unwrap().1, []);
    }

    #[test]
    fn a_reply_that_is_too_long_is_not_kept() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, _) = Slots::open(&path, 2).unwrap();
        let slot = slots.claim(&key(1), AT).unwrap();
        slots.answer(slot, &key(1), AT, &[0; REPLY_BYTES_MAX + 1]);
        let (_, kept) = Slots::open(&path, 2).unwrap();
        assert_eq!(kept[0].reply, None, "in doubt");
    }
}
