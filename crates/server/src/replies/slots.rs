//! The reply cache's memory across the death of the process: a file of slots.
//!
//! A slot is written when a call is claimed, and its second part with the reply. Both go to the
//! page cache ([`FileBytes`]), which has them when the process is killed, and that is all they are
//! for. After a loss of power the file may say less than was answered, which is what a server
//! without it would know.
//!
//! ```text
//!   slot, 512 bytes: | seal 8 | sequence 8 | client 16
//!                    | xid, program, version, procedure 4 each | checksum 8
//!                    | claimed at: secs 8, nanos 4 | zeros 4
//!                    | seal 8 | sequence 8 | reply len 2 | reply |
//! ```
//!
//! Slots are used in turn; the oldest is overwritten, except while its call is in progress. Either
//! part counts only if its seal fits, and a reply if it has its claim's sequence: a process that is
//! killed while it writes a reply leaves a call in doubt, and no half of a reply. A slot whose
//! first seal does not fit is empty: half written, or of another version.

use std::fs::OpenOptions;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use super::answered::octets;
use super::cache::Key;
use super::file::FileBytes;
use crate::siphash::siphash;
use crate::types::Time;

const SLOT_BYTES: usize = 512;
const SEAL_BYTES: usize = 8;
const CLAIM_BYTES: usize = 68;
const REPLY_AT: usize = 72;
const REPLY_HEAD_BYTES: usize = SEAL_BYTES + 8 + 2;

/// The longest reply that is recorded.
const REPLY_BYTES_MAX: usize = SLOT_BYTES - REPLY_AT - REPLY_HEAD_BYTES;

/// Not a secret: it tells this layout's slots from other bytes.
const SEAL_KEY: [u8; 16] = *b"nfskit replies 2";

#[derive(Debug)]
pub(super) struct Slots {
    bytes: FileBytes,
    busy: Vec<AtomicBool>,
    next: AtomicUsize,
    sequence: AtomicU64,
    failures: AtomicU64,
    /// The last write has failed.
    is_failing: AtomicBool,
    /// Why writes will fail, if that was seen at the start.
    no_room: Option<io::Error>,
}

/// A slot that is held while its call is in progress.
#[derive(Debug)]
pub(super) struct Slot {
    at: usize,
    sequence: u64,
}

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
        let len = count * SLOT_BYTES;
        file.set_len(len as u64)?;
        let mut records = Vec::new();
        for at in 0..count {
            let mut slot = [0; SLOT_BYTES];
            file.read_exact_at(&mut slot, (at * SLOT_BYTES) as u64)?;
            records.extend(SlotRecord::read(&slot, at));
        }
        records.sort_unstable_by_key(|record| record.sequence);
        let sequence = records.last().map_or(0, |last| last.sequence + 1);
        // The turn goes on where it ended, so that the oldest is overwritten first.
        let next = records.last().map_or(0, |last| last.slot + 1);
        let (bytes, room) = FileBytes::of(file, len);
        let slots = Self {
            bytes,
            busy: (0..count).map(|_| AtomicBool::new(false)).collect(),
            next: AtomicUsize::new(next),
            sequence: AtomicU64::new(sequence),
            failures: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            no_room: room.err(),
        };
        Ok((slots, records))
    }

    /// None when all are held, or the file cannot be written: then the call is not remembered.
    pub(super) fn claim(&self, key: &Key, claimed_at: Time) -> Option<Slot> {
        let at = (0..self.busy.len()).find_map(|_| {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.busy.len();
            (!self.busy[turn].swap(true, Ordering::Acquire)).then_some(turn)
        })?;
        let slot = Slot { at, sequence: self.sequence.fetch_add(1, Ordering::Relaxed) };
        if self.put(&slot, 0, &claim(slot.sequence, key, claimed_at)) {
            return Some(slot);
        }
        self.release(slot);
        None
    }

    /// Of a reply that is longer than [`REPLY_BYTES_MAX`] only the claim stays.
    pub(super) fn answer(&self, slot: Slot, reply: &[u8]) {
        let mut bytes = [0; REPLY_HEAD_BYTES + REPLY_BYTES_MAX];
        if let Some(len) = answer(&mut bytes, slot.sequence, reply) {
            self.put(&slot, REPLY_AT, &bytes[..len]);
        }
        self.release(slot);
    }

    /// Keeps what the slot says.
    pub(super) fn release(&self, slot: Slot) {
        self.busy[slot.at].store(false, Ordering::Release);
    }

    /// Empties a slot: the call was not executed.
    pub(super) fn clear(&self, slot: Slot) {
        self.put(&slot, 0, &[0; CLAIM_BYTES]);
        self.release(slot);
    }

    fn put(&self, slot: &Slot, offset: usize, bytes: &[u8]) -> bool {
        let written = self.bytes.put(slot.at * SLOT_BYTES + offset, bytes).is_ok();
        if !written {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        if self.is_failing.load(Ordering::Relaxed) == written {
            self.is_failing.store(!written, Ordering::Relaxed);
        }
        written
    }

    /// Writes that failed, a full disk say: those calls are not known after a restart.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    pub(super) fn no_room(&self) -> Option<&io::Error> {
        self.no_room.as_ref()
    }
}

/// The first part of a slot.
fn claim(sequence: u64, key: &Key, claimed_at: Time) -> [u8; CLAIM_BYTES] {
    let mut bytes = [0; CLAIM_BYTES];
    let mut at = SEAL_BYTES;
    let mut put = |field: &[u8]| {
        bytes[at..][..field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(&sequence.to_le_bytes());
    put(&octets(key.client));
    for number in [key.xid, key.program, key.version, key.procedure] {
        put(&number.to_le_bytes());
    }
    put(&key.checksum.to_le_bytes());
    put(&claimed_at.secs.to_le_bytes());
    put(&claimed_at.nanos.to_le_bytes());
    seal(&mut bytes);
    bytes
}

/// Makes the second part of a slot; gives its length.
fn answer(bytes: &mut [u8], sequence: u64, reply: &[u8]) -> Option<usize> {
    let len = REPLY_HEAD_BYTES + reply.len();
    let sealed = bytes.get_mut(..len)?;
    sealed[SEAL_BYTES..][..8].copy_from_slice(&sequence.to_le_bytes());
    sealed[SEAL_BYTES + 8..][..2].copy_from_slice(&u16::try_from(reply.len()).ok()?.to_le_bytes());
    sealed[REPLY_HEAD_BYTES..].copy_from_slice(reply);
    seal(sealed);
    Some(len)
}

/// Puts the seal of the bytes behind it at their beginning.
fn seal(bytes: &mut [u8]) {
    let (seal, sealed) = bytes.split_at_mut(SEAL_BYTES);
    seal.copy_from_slice(&siphash(&SEAL_KEY, sealed).to_le_bytes());
}

/// What stands behind a seal that fits.
fn unsealed(bytes: &[u8]) -> Option<Fields<'_>> {
    let (seal, sealed) = bytes.split_first_chunk::<SEAL_BYTES>()?;
    (siphash(&SEAL_KEY, sealed).to_le_bytes() == *seal).then_some(Fields(sealed))
}

impl SlotRecord {
    fn read(bytes: &[u8; SLOT_BYTES], slot: usize) -> Option<Self> {
        let mut fields = unsealed(&bytes[..CLAIM_BYTES])?;
        let sequence = u64::from_le_bytes(fields.take()?);
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
            reply: reply(&bytes[REPLY_AT..], sequence),
        })
    }
}

/// The reply to the claim of this sequence, if it is there.
fn reply(bytes: &[u8], sequence: u64) -> Option<Bytes> {
    let len: [u8; 2] = bytes[REPLY_HEAD_BYTES - 2..].first_chunk().copied()?;
    let len = REPLY_HEAD_BYTES + usize::from(u16::from_le_bytes(len));
    let mut fields = unsealed(bytes.get(..len)?)?;
    let is_of_it = u64::from_le_bytes(fields.take()?) == sequence;
    let _len: [u8; 2] = fields.take()?;
    is_of_it.then(|| Bytes::copy_from_slice(fields.0))
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
        let (slots, records) = Slots::open(&path, 4).unwrap();
        assert_eq!(records, []);
        let answered = slots.claim(&key(1), AT).unwrap();
        slots.answer(answered, b"the reply");
        let _held = slots.claim(&key(2), AT).unwrap();
        let cleared = slots.claim(&key(3), AT).unwrap();
        slots.clear(cleared);
        let (_, records) = Slots::open(&path, 4).unwrap();
        let found: Vec<_> =
            records.iter().map(|record| (record.key, record.reply.as_deref())).collect();
        assert_eq!(found, [(key(1), Some(&b"the reply"[..])), (key(2), None)]);
        assert!(records.iter().all(|record| record.claimed_at == AT));
    }

    #[test]
    fn the_oldest_is_overwritten_and_what_is_held_is_not() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, _) = Slots::open(&path, 3).unwrap();
        let held = slots.claim(&key(0), AT).unwrap();
        for xid in 1..=5 {
            let slot = slots.claim(&key(xid), AT).unwrap();
            slots.answer(slot, &xid.to_be_bytes());
        }
        let (_, records) = Slots::open(&path, 3).unwrap();
        let xids: Vec<u32> = records.iter().map(|record| record.key.xid).collect();
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
            slots.answer(slot, b"");
        }
        let (_, records) = Slots::open(&path, 4).unwrap();
        let xids: Vec<u32> = records.iter().map(|record| record.key.xid).collect();
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
            slots.answer(slot, &[7; REPLY_BYTES_MAX]);
        }
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, slot) in bytes.chunks_mut(SLOT_BYTES).enumerate().take(7) {
            slot[at * 11] ^= 0x80;
        }
        let (last, reply) = (7 * SLOT_BYTES, 7 * SLOT_BYTES + REPLY_AT);
        bytes[last + CLAIM_BYTES - 1] ^= 0x80;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Slots::open(&path, 8).unwrap().1, []);
        // Of a damaged reply the claim is left, wherever the damage is.
        bytes[last + CLAIM_BYTES - 1] ^= 0x80;
        for at in reply..8 * SLOT_BYTES {
            bytes[at] ^= 0x80;
            std::fs::write(&path, &bytes).unwrap();
            let records = Slots::open(&path, 8).unwrap().1;
            assert!(matches!(&records[..], [SlotRecord { reply: None, .. }]), "{at}: {records:?}");
            bytes[at] ^= 0x80;
        }
    }

    /// As when a process is killed between a claim and its reply.
    #[test]
    fn a_reply_to_the_call_before_is_not_that_of_this_one() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, _) = Slots::open(&path, 1).unwrap();
        let slot = slots.claim(&key(1), AT).unwrap();
        slots.answer(slot, b"the first");
        let _held = slots.claim(&key(2), AT).unwrap();
        let (_, records) = Slots::open(&path, 1).unwrap();
        let found: Vec<_> = records.iter().map(|record| (record.key, &record.reply)).collect();
        assert_eq!(found, [(key(2), &None)], "in doubt");
    }

    #[test]
    fn a_file_without_room_is_noticed_and_written_when_there_is_some() {
        let place = place();
        let system = |program: &str, args: &[&str]| {
            let mut command = std::process::Command::new(program);
            command.args(args).arg(place.path()).status().is_ok_and(|status| status.success())
        };
        if !system("mount", &["-t", "tmpfs", "-o", "size=64k", "nfskit-test"]) {
            eprintln!("NOT TESTED: a full state directory: this process may not mount");
            return;
        }
        let filler = place.path().join("filler");
        let is_full = std::fs::write(&filler, [7; 128 << 10]).is_err();
        let (slots, _) = Slots::open(&place.path().join("replies"), 64).unwrap();
        let is_noticed = slots.no_room().is_some() && !slots.is_failing();
        let is_claimed = slots.claim(&key(1), AT).is_some();
        let fails = slots.is_failing() && slots.failures() == 1;
        std::fs::remove_file(filler).unwrap();
        let works = slots.claim(&key(2), AT).is_some() && !slots.is_failing();
        drop(slots);
        assert!(system("umount", &["-l"]));
        assert!(is_full && is_noticed && !is_claimed && fails && works);
    }

    #[test]
    fn a_reply_that_is_too_long_is_not_recorded() {
        let place = place();
        let path = place.path().join("replies");
        let (slots, _) = Slots::open(&path, 2).unwrap();
        let slot = slots.claim(&key(1), AT).unwrap();
        slots.answer(slot, &[0; REPLY_BYTES_MAX + 1]);
        let (_, records) = Slots::open(&path, 2).unwrap();
        assert_eq!(records[0].reply, None, "in doubt");
    }
}
