//! Whose log it is: the first block. It is written once, when the log is made.
//!
//! The export is named by bytes that are the same after a reboot and nowhere else: the file
//! system's id and the handle of the export's root. The log has an id of its own, which the export
//! keeps too while the log holds anything for it, so that neither is ever used without the other.

use crate::{BLOCK, BLOCK_BYTES};

pub const MAGIC: [u8; 16] = *b"nfskit write log";
pub const VERSION: u32 = 2;

/// Most bytes that name an export.
pub const EXPORT_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// Random, and in every frame.
    pub id: [u8; 16],
    /// Of the whole file.
    pub bytes: u64,
    /// At most [`EXPORT_BYTES_MAX`].
    pub export: Vec<u8>,
}

/// Why a first block is none of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum IdentityError {
    #[error("it is not a write log of nfskit")]
    Foreign,
    #[error("its first block is damaged: the checksum is not that of its content")]
    Checksum,
    #[error("it is of version {found}, and this program knows {VERSION}")]
    Version { found: u32 },
    #[error("its first block says what cannot be")]
    Invalid,
}

impl Identity {
    pub fn encode(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK);
        block.extend(MAGIC);
        block.extend(VERSION.to_le_bytes());
        block.extend([0; 4]);
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
        let is_whole = crc32fast::hash(content).to_le_bytes() == checksum;
        if content[..16] != MAGIC {
            // A log of ours whose first bytes have suffered still has its checksum in place.
            return Err(IdentityError::Foreign);
        }
        if !is_whole {
            return Err(IdentityError::Checksum);
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| content[at + i]));
        let found = u32::from_le_bytes(std::array::from_fn(|i| content[16 + i]));
        if found != VERSION {
            return Err(IdentityError::Version { found });
        }
        let len = usize::try_from(number(48)).unwrap_or(usize::MAX);
        let bytes = number(40);
        if len > EXPORT_BYTES_MAX || !bytes.is_multiple_of(BLOCK_BYTES) || bytes < 2 * BLOCK_BYTES {
            return Err(IdentityError::Invalid);
        }
        let id = std::array::from_fn(|i| content[24 + i]);
        Ok(Self { id, bytes, export: content[56..56 + len].to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        let identity = Identity { id: [7; 16], bytes: 16 << 20, export: vec![1, 2, 3] };
        let block = identity.encode();
        assert_eq!(Identity::decode(&block), Ok(identity));
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Identity::decode(&flipped).is_err(), "bit {bit}");
        }
        assert_eq!(Identity::decode(&block[1..]), Err(IdentityError::Foreign));
        assert_eq!(Identity::decode(&[0; BLOCK]), Err(IdentityError::Foreign));
    }
}
