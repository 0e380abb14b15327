//! Whose log it is, and which of how many: the first block. It is written once, when the log is
//! made.
//!
//! The export is named by bytes that are the same after a reboot and nowhere else: the file
//! system's id and the handle of the export's root. The logs of an export have an id of their own,
//! which the export keeps too while they hold anything for it, so that neither is ever used without
//! the other.

use crate::{BLOCK, BLOCK_BYTES};

pub const MAGIC: [u8; 16] = *b"nfskit write log";

/// How the log of a proxy begins.
pub const PROXY_MAGIC: [u8; 16] = *b"nfskit writeback";
pub const VERSION: u32 = 4;

/// Of a proxy's log, where a change may be in several records. Before, each was in one.
pub const PROXY_VERSION: u32 = 5;
const PROXY_VERSION_MIN: u32 = 4;

/// Most logs of one export.
pub const LOGS_MAX: usize = 8;

/// Most bytes that name an export.
pub const EXPORT_BYTES_MAX: usize = 128;

/// Whose records it has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Purpose {
    /// A server's with a directory: stable WRITEs of its files.
    #[default]
    Server,
    /// A proxy's: changes that are on their way to its origin.
    Proxy,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Server, Self::Proxy];

    fn magic(self) -> [u8; 16] {
        match self {
            Self::Server => MAGIC,
            Self::Proxy => PROXY_MAGIC,
        }
    }

    /// What is written, and the oldest that is understood.
    fn versions(self) -> (u32, u32) {
        match self {
            Self::Server => (VERSION, VERSION),
            Self::Proxy => (PROXY_VERSION, PROXY_VERSION_MIN),
        }
    }

    fn of(magic: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.magic() == magic)
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    pub purpose: Purpose,
    /// Random, the same in all logs of the export, and in every frame.
    pub id: [u8; 16],
    /// Which of them it is, from 0, and how many there are: without one of them nothing is known of
    /// the others' frames.
    pub log: u16,
    pub logs: u16,
    /// Of the whole file.
    pub bytes: u64,
    /// At most [`EXPORT_BYTES_MAX`].
    pub export: Vec<u8>,
}

/// The logs of an export together, by their numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Set {
    pub id: [u8; 16],
    /// Of each log.
    pub bytes: Vec<u64>,
}

impl Set {
    pub fn all_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

/// A log that is the only one.
impl From<&Identity> for Set {
    fn from(identity: &Identity) -> Self {
        Self { id: identity.id, bytes: vec![identity.bytes] }
    }
}

/// Why a first block is none of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum IdentityError {
    #[error("it is not a write log of nfskit")]
    Foreign,
    #[error("its first block is damaged: the checksum is not that of its content")]
    Checksum,
    #[error(
        "it is of version {found}, and this program knows {known}: bring what it holds to its \
         place with the release that made it (nfskit log drain), and remove it"
    )]
    Version { found: u32, known: u32 },
    #[error("its first block says what cannot be")]
    Invalid,
}

impl Identity {
    pub fn encode(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK);
        block.extend(self.purpose.magic());
        block.extend(self.purpose.versions().0.to_le_bytes());
        block.extend(self.log.to_le_bytes());
        block.extend(self.logs.to_le_bytes());
        block.extend(self.id);
        block.extend(self.bytes.to_le_bytes());
        let len = self.export.len().min(EXPORT_BYTES_MAX);
        block.extend(u64::try_from(len).unwrap_or(0).to_le_bytes());
        block.extend(&self.export[..len]);
        block.resize(BLOCK - 4, 0);
        block.extend(crc32fast::hash(&block).to_le_bytes());
        block
    }

    /// What a first block says. Of a flipped bit anywhere in it, this tells.
    pub fn decode(block: &[u8]) -> Result<Self, IdentityError> {
        let block: &[u8; BLOCK] = block.try_into().map_err(|_| IdentityError::Foreign)?;
        let (content, checksum) = block.split_at(BLOCK - 4);
        let is_sum_of = |begin: &[u8]| {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(begin);
            hasher.update(&content[begin.len()..]);
            hasher.finalize().to_le_bytes() == checksum
        };
        let Some(purpose) = Purpose::of(&content[..16]) else {
            // The checksum of a log of ours whose first bytes have suffered is of what they were.
            let is_ours = Purpose::ALL.iter().any(|purpose| is_sum_of(&purpose.magic()));
            return Err(if is_ours { IdentityError::Checksum } else { IdentityError::Foreign });
        };
        if !is_sum_of(&content[..16]) {
            return Err(IdentityError::Checksum);
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| content[at + i]));
        let found = u32::from_le_bytes(std::array::from_fn(|i| content[16 + i]));
        let (known, oldest) = purpose.versions();
        if !(oldest..=known).contains(&found) {
            return Err(IdentityError::Version { found, known });
        }
        let len = usize::try_from(number(48)).unwrap_or(usize::MAX);
        let bytes = number(40);
        let half = |at: usize| u16::from_le_bytes([content[at], content[at + 1]]);
        let (log, logs) = (half(20), half(22));
        let is_sound = len <= EXPORT_BYTES_MAX
            && bytes.is_multiple_of(BLOCK_BYTES)
            && bytes >= 2 * BLOCK_BYTES
            && log < logs
            && usize::from(logs) <= LOGS_MAX;
        if !is_sound {
            return Err(IdentityError::Invalid);
        }
        let id = std::array::from_fn(|i| content[24 + i]);
        let export = content[56..56 + len].to_vec();
        Ok(Self { purpose, id, log, logs, bytes, export })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (id, export) = ([7; 16], vec![1, 2, 3]);
        let purpose = Purpose::Proxy;
        let identity = Identity { purpose, id, log: 1, logs: 2, bytes: 16 << 20, export };
        let block = identity.encode();
        assert_eq!(Identity::decode(&block), Ok(identity.clone()));
        let other = Identity { purpose: Purpose::Server, ..identity };
        assert_eq!(Identity::decode(&other.encode()), Ok(other));
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Identity::decode(&flipped), Err(IdentityError::Checksum), "bit {bit}");
        }
        for (version, is_known) in [(3, false), (4, true), (5, true), (6, false)] {
            let mut block = block.clone();
            block[16..20].copy_from_slice(&u32::to_le_bytes(version));
            let checksum = crc32fast::hash(&block[..BLOCK - 4]);
            block[BLOCK - 4..].copy_from_slice(&checksum.to_le_bytes());
            assert_eq!(Identity::decode(&block).is_ok(), is_known, "version {version}");
        }
        assert_eq!(Identity::decode(&block[1..]), Err(IdentityError::Foreign));
        assert_eq!(Identity::decode(&[0; BLOCK]), Err(IdentityError::Foreign));
    }
}
