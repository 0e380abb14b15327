//! The reply to a call, as the log has it: for the same call coming again after a loss of power.
//!
//! It is written beside what the call did, not after it. For what is in the log itself that is
//! enough: its records stand before the reply's. But a name is made stable in its directory, and
//! which of the two comes to its disk first is not known. So such a reply says how to see in the
//! file system whether the call was executed, and frames say up to which record that is not needed,
//! because it was.

use crate::Stamp;

/// Before the name and the reply.
const FIXED_BYTES: usize = 64;

/// Longest reply that is stored: those of all procedures that must not be executed twice are
/// shorter.
pub const REPLY_BYTES_MAX: usize = 448;

/// Longest name.
pub const NAME_BYTES_MAX: usize = 255;

/// No time of birth.
const UNBORN: u32 = u32::MAX;

/// What makes two calls the same, as the server's reply cache has it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Call {
    /// An address of version 6, or one of version 4 in it.
    pub client: [u8; 16],
    pub xid: u32,
    pub program: u32,
    pub version: u32,
    pub procedure: u32,
    pub checksum: u64,
}

/// Which file it is, in its file system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileId {
    pub inode: u64,
    /// When it was made, if its file system keeps that: a number is given again.
    pub born: Option<Stamp>,
}

/// How to see that a call was executed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect<'a> {
    /// It was: what it did stands in the log before its reply.
    Logged,
    /// The name, in the directory that the record's key means, is this file's.
    Named { name: &'a [u8], file: FileId },
    /// It is not.
    Unnamed { name: &'a [u8], file: FileId },
    /// The file that the record's key means was changed at this time or later.
    Changed { changed: Stamp },
}

impl Effect<'_> {
    /// Whether a file that was last changed at `found` shows that a call did it, at `changed`. Not
    /// where others may have changed the file: since the machine has begun again, or a replay.
    pub fn is_shown_by(changed: Stamp, found: Stamp, others_since: Option<Stamp>) -> bool {
        found >= changed && others_since.is_none_or(|since| found < since)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reply<'a> {
    pub call: Call,
    pub effect: Effect<'a>,
    /// It was seen that the call was executed, and that this is stable.
    pub is_decided: bool,
    /// Of a WRITE: there are so many of these that they have a place of their own.
    pub is_write: bool,
    /// What was answered, from its XID on; at most [`REPLY_BYTES_MAX`].
    pub bytes: &'a [u8],
}

impl<'a> Reply<'a> {
    /// None if a part of it is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let nobody = FileId { inode: 0, born: None };
        let (kind, name, file, changed) = match self.effect {
            Effect::Logged => (0, &[][..], nobody, None),
            Effect::Named { name, file } => (1, name, file, None),
            Effect::Unnamed { name, file } => (2, name, file, None),
            Effect::Changed { changed } => (3, &[][..], nobody, Some(changed)),
        };
        if name.len() > NAME_BYTES_MAX || self.bytes.len() > REPLY_BYTES_MAX {
            return None;
        }
        let time = changed.or(file.born);
        let (seconds, nanos) = time.map_or((0, UNBORN), |time| (time.seconds, time.nanos));
        let mut bytes = Vec::with_capacity(FIXED_BYTES + name.len() + self.bytes.len());
        bytes.extend(self.call.client);
        let Call { xid, program, version, procedure, checksum, .. } = self.call;
        [xid, program, version, procedure].iter().for_each(|part| bytes.extend(part.to_le_bytes()));
        bytes.extend(checksum.to_le_bytes());
        bytes.extend(file.inode.to_le_bytes());
        bytes.extend(seconds.to_le_bytes());
        bytes.extend(nanos.to_le_bytes());
        let flags = u8::from(self.is_write) | u8::from(self.is_decided) << 1;
        bytes.extend([kind, flags, u8::try_from(name.len()).ok()?, 0]);
        debug_assert_eq!(bytes.len(), FIXED_BYTES);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(self.bytes);
        Some(bytes)
    }

    /// None for what [`Self::encode`] does not write.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED_BYTES>()?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| fixed[at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| fixed[at + i]));
        let call = Call {
            client: std::array::from_fn(|i| fixed[i]),
            xid: half(16),
            program: half(20),
            version: half(24),
            procedure: half(28),
            checksum: number(32),
        };
        let time = Stamp { seconds: number(48).cast_signed(), nanos: half(56) };
        let time = (time.nanos != UNBORN).then_some(time);
        let file = FileId { inode: number(40), born: time };
        let (name, reply) = rest.split_at_checked(usize::from(fixed[62]))?;
        let effect = match fixed[60] {
            0 => Effect::Logged,
            1 => Effect::Named { name, file },
            2 => Effect::Unnamed { name, file },
            3 => Effect::Changed { changed: time? },
            _ => return None,
        };
        let (is_write, is_decided) = (fixed[61] & 1 == 1, fixed[61] & 2 == 2);
        let found = Self { call, effect, is_decided, is_write, bytes: reply };
        // What says more than is known here was not written by this.
        (found.encode().as_deref() == Some(bytes)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        client: [7; 16],
        xid: u32::MAX,
        program: 100_003,
        version: 3,
        procedure: 8,
        checksum: u64::MAX - 1,
    };

    fn all() -> Vec<Reply<'static>> {
        let born = Some(Stamp { seconds: -1, nanos: 999_999_999 });
        let file = FileId { inode: 1 << 40, born };
        let unborn = FileId { inode: 0, born: None };
        let changed = Stamp { seconds: 1 << 33, nanos: 5 };
        let effects = [
            Effect::Logged,
            Effect::Named { name: b"a name", file },
            Effect::Named { name: &[b'n'; 255], file: unborn },
            Effect::Unnamed { name: b"x", file },
            Effect::Changed { changed },
        ];
        let reply = |(index, effect)| {
            let bytes = [&b"the reply"[..], &[], &[9; REPLY_BYTES_MAX]][index % 3];
            let (is_decided, is_write) = (index % 3 == 0, index % 2 == 0);
            Reply { call: CALL, effect, is_decided, is_write, bytes }
        };
        effects.into_iter().enumerate().map(reply).collect()
    }

    #[test]
    fn what_goes_in_comes_out() {
        for reply in all() {
            assert_eq!(Reply::decode(&reply.encode().unwrap()), Some(reply));
        }
    }

    #[test]
    fn what_is_too_long_or_cut_short_is_none() {
        let [first, ..] = all()[..] else { panic!("there are some") };
        let file = FileId { inode: 1, born: None };
        let named = |name| Effect::Named { name, file };
        assert_eq!(Reply { effect: named(&[b'n'; 256]), ..first }.encode(), None);
        assert_eq!(Reply { bytes: &[0; REPLY_BYTES_MAX + 1], ..first }.encode(), None);
        let bytes = Reply { effect: named(b"name"), ..first }.encode().unwrap();
        assert!((0..FIXED_BYTES + 4).all(|len| Reply::decode(&bytes[..len]).is_none()));
    }

    /// A frame's checksum tells of flipped bits. Without it a bit makes another reply or none, and
    /// what is taken for one is written the same way again.
    #[test]
    fn a_flipped_bit_makes_another_reply_or_none() {
        for reply in all() {
            let bytes = reply.encode().unwrap();
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                if let Some(other) = Reply::decode(&flipped) {
                    assert_ne!(other, reply, "bit {bit}");
                    assert_eq!(other.encode().as_ref(), Some(&flipped), "bit {bit}");
                }
            }
        }
    }
}
