//! What is known of a directory: its names, where they lead and where they do not, and with them
//! the attributes and the text of links. Pure; the bytes are in `docs/formats/cache.md`.
//!
//! A catalog is of one state of its directory, as a segment is of one of its file, and lies where
//! the directory's first segment would: a directory has no blocks.

use crate::header::checksum;
use crate::key::{KEY_BYTES_MAX, Key, TOKEN_BYTES, Token};

pub const MAGIC: [u8; 8] = *b"nfskdirs";
pub const VERSION: u16 = 1;

/// What is read first: it says how long the whole is.
pub const HEAD_BYTES: usize = 256;

/// Of a catalog; of a larger directory there is none.
pub const BYTES_MAX: usize = 4 << 20;

/// Names of one.
pub const ENTRIES_MAX: usize = 16_384;

/// Of a name, and of what a symbolic link leads to.
pub const NAME_BYTES_MAX: usize = 255;
pub const LINK_BYTES_MAX: usize = 4095;

/// Of attributes as the caller writes them.
pub const ATTRIBUTES_BYTES_MAX: usize = 128;

const KEY_AT: usize = 32;
const TOKEN_AT: usize = KEY_AT + KEY_BYTES_MAX;
const ENTRY_BYTES: usize = 24;

const IS_THERE: u8 = 1;
const IS_LISTED: u8 = 2;

/// See the module's head.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Catalog {
    /// The directory, and its state.
    pub key: Key,
    pub token: Token,
    /// Where those that are listed are all names that the directory has: the verifier of their
    /// cookies.
    pub whole: Option<[u8; 8]>,
    pub entries: Vec<Entry>,
}

/// A name of a directory; those that are listed stand in the origin's order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Entry {
    pub name: Vec<u8>,
    /// False: the directory has no such name.
    pub is_there: bool,
    /// Behind which listing goes on.
    pub cookie: Option<u64>,
    pub fileid: u64,
    /// Where it leads, if that is known.
    pub key: Vec<u8>,
    /// Those that were last reported, as the caller writes them.
    pub attributes: Vec<u8>,
    /// What a symbolic link leads to, if that is known.
    pub link: Vec<u8>,
}

/// Why bytes are no catalog.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CatalogError {
    #[error("it is not a catalog of a cache of nfskit")]
    Foreign,
    #[error("it is a catalog of version {found}, and this program knows {VERSION}")]
    Version { found: u16 },
    #[error("the checksum is not that of its content")]
    Checksum,
    #[error("it says what cannot be")]
    Invalid,
}

impl Catalog {
    /// How long the whole is that begins so.
    ///
    /// # Errors
    /// It is no catalog's beginning.
    pub fn len_of(head: &[u8]) -> Result<usize, CatalogError> {
        if !head.starts_with(&MAGIC) {
            return Err(CatalogError::Foreign);
        }
        let len = usize::try_from(short(head, 16).ok_or(CatalogError::Foreign)?);
        let len = len.ok().filter(|len| (HEAD_BYTES..=BYTES_MAX).contains(len));
        len.ok_or(CatalogError::Invalid)
    }

    /// None: it is more than a catalog has.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![0; HEAD_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10] = u8::from(self.whole.is_some());
        out[11] = u8::try_from(self.key.as_bytes().len()).ok()?;
        out[20..24].copy_from_slice(&u32::try_from(self.entries.len()).ok()?.to_le_bytes());
        out[24..32].copy_from_slice(&self.whole.unwrap_or_default());
        out[KEY_AT..][..self.key.as_bytes().len()].copy_from_slice(self.key.as_bytes());
        out[TOKEN_AT..][..TOKEN_BYTES].copy_from_slice(&self.token.encode());
        for entry in &self.entries {
            entry.encode(&mut out)?;
            if out.len() > BYTES_MAX {
                return None;
            }
        }
        let len = u32::try_from(out.len()).ok()?;
        out[16..20].copy_from_slice(&len.to_le_bytes());
        let crc = checksum(&out);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        (self.entries.len() <= ENTRIES_MAX).then_some(out)
    }

    /// What these bytes say, of which none is left over.
    ///
    /// # Errors
    /// They are none, or not whole.
    pub fn decode(bytes: &[u8]) -> Result<Self, CatalogError> {
        if bytes.len() < HEAD_BYTES || Self::len_of(bytes)? != bytes.len() {
            return Err(CatalogError::Foreign);
        }
        if short(bytes, 12) != Some(checksum(bytes)) {
            return Err(CatalogError::Checksum);
        }
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        if found != VERSION {
            return Err(CatalogError::Version { found });
        }
        Self::decode_checked(bytes).ok_or(CatalogError::Invalid)
    }

    fn decode_checked(bytes: &[u8]) -> Option<Self> {
        let key = bytes[KEY_AT..TOKEN_AT].get(..usize::from(bytes[11])).and_then(Key::new)?;
        let token = Token::decode(&std::array::from_fn(|i| bytes[TOKEN_AT + i]));
        let verifier = std::array::from_fn(|i| bytes[24 + i]);
        let whole = match bytes[10] {
            0 if verifier == [0; 8] => None,
            1 => Some(verifier),
            _ => return None,
        };
        let is_padded = |range: std::ops::Range<usize>| bytes[range].iter().all(|byte| *byte == 0);
        let key_end = KEY_AT + key.as_bytes().len();
        if !is_padded(key_end..TOKEN_AT) || !is_padded(TOKEN_AT + TOKEN_BYTES..HEAD_BYTES) {
            return None;
        }
        let count =
            usize::try_from(short(bytes, 20)?).ok().filter(|count| *count <= ENTRIES_MAX)?;
        let mut rest = &bytes[HEAD_BYTES..];
        let mut entries = Vec::with_capacity(count.min(rest.len() / ENTRY_BYTES));
        for _ in 0..count {
            entries.push(Entry::decode(&mut rest)?);
        }
        rest.is_empty().then_some(Self { key, token, whole, entries })
    }
}

impl Entry {
    fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        let within = |bytes: &[u8], most: usize| (bytes.len() <= most).then_some(bytes.len());
        let name = within(&self.name, NAME_BYTES_MAX).filter(|len| *len > 0)?;
        let key = within(&self.key, KEY_BYTES_MAX)?;
        let attributes = within(&self.attributes, ATTRIBUTES_BYTES_MAX)?;
        let link = within(&self.link, LINK_BYTES_MAX)?;
        let there = if self.is_there { IS_THERE } else { 0 };
        let listed = if self.cookie.is_some() { IS_LISTED } else { 0 };
        let lens = [name, key, attributes].map(|len| u8::try_from(len).unwrap_or(0));
        out.push(there | listed);
        out.extend(lens);
        out.extend(u16::try_from(link).unwrap_or(0).to_le_bytes());
        out.extend([0; 2]);
        out.extend(self.cookie.unwrap_or(0).to_le_bytes());
        out.extend(self.fileid.to_le_bytes());
        for part in [&self.name, &self.key, &self.attributes, &self.link] {
            out.extend(part);
        }
        Some(())
    }

    fn decode(rest: &mut &[u8]) -> Option<Self> {
        let (head, tail) = rest.split_at_checked(ENTRY_BYTES)?;
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let (flags, cookie) = (head[0], long(8));
        let link_len = usize::from(u16::from_le_bytes([head[4], head[5]]));
        let mut tail = tail;
        let mut take = |len: usize, most: usize| {
            let (part, after) = tail.split_at_checked(len).filter(|_| len <= most)?;
            tail = after;
            Some(part.to_vec())
        };
        let name = take(usize::from(head[1]), NAME_BYTES_MAX)?;
        let key = take(usize::from(head[2]), KEY_BYTES_MAX)?;
        let attributes = take(usize::from(head[3]), ATTRIBUTES_BYTES_MAX)?;
        let link = take(link_len, LINK_BYTES_MAX)?;
        let (is_there, is_listed) = (flags & IS_THERE != 0, flags & IS_LISTED != 0);
        // What is not there is not listed, leads nowhere and has nothing.
        let has_nothing = key.is_empty() && attributes.is_empty() && link.is_empty();
        let is_right = flags <= (IS_THERE | IS_LISTED)
            && head[6..8] == [0; 2]
            && !name.is_empty()
            && (is_there || has_nothing && !is_listed && long(16) == 0)
            && (is_listed || cookie == 0);
        *rest = tail;
        let cookie = is_listed.then_some(cookie);
        let entry = Self { name, is_there, cookie, fileid: long(16), key, attributes, link };
        is_right.then_some(entry)
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::token;

    fn entry(name: &[u8]) -> Entry {
        Entry {
            name: name.to_vec(),
            is_there: true,
            cookie: Some(7),
            fileid: 9,
            key: vec![1; 64],
            attributes: vec![2; 84],
            link: b"../to".to_vec(),
        }
    }

    fn catalog() -> Catalog {
        let absent = Entry { name: b"absent".to_vec(), ..Entry::default() };
        let entries = vec![entry(b"a"), absent, Entry { cookie: None, ..entry(&[0xff; 255]) }];
        let key = Key::new(&[5; 64]).unwrap();
        Catalog { key, token: token(4096, 9), whole: Some([3; 8]), entries }
    }

    fn sealed(change: impl Fn(&mut Vec<u8>)) -> Result<Catalog, CatalogError> {
        let mut bytes = catalog().encode().unwrap();
        change(&mut bytes);
        let len = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        bytes[16..20].copy_from_slice(&len);
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        Catalog::decode(&bytes)
    }

    #[test]
    fn a_catalog_is_read_as_it_was_written_and_every_flipped_bit_is_noticed() {
        let bytes = catalog().encode().unwrap();
        assert_eq!(Catalog::decode(&bytes), Ok(catalog()));
        assert_eq!(Catalog::len_of(&bytes[..HEAD_BYTES]), Ok(bytes.len()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Catalog::decode(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Catalog::decode(&bytes[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn another_version_and_what_cannot_be_are_reported() {
        assert_eq!(sealed(|_| ()), Ok(catalog()));
        assert_eq!(sealed(|bytes| bytes[8] = 2), Err(CatalogError::Version { found: 2 }));
        let invalid: [fn(&mut Vec<u8>); 9] = [
            |bytes| bytes[10] = 2,
            |bytes| bytes[11] = 0,
            |bytes| bytes[11] = 129,
            |bytes| bytes[20] = 4,
            |bytes| bytes[20] = 2,
            |bytes| bytes[HEAD_BYTES] = 4,
            |bytes| bytes[HEAD_BYTES] = 0,
            |bytes| bytes[HEAD_BYTES + 1] = 0,
            |bytes| bytes.push(0),
        ];
        for (number, change) in invalid.into_iter().enumerate() {
            assert_eq!(sealed(change), Err(CatalogError::Invalid), "{number}");
        }
    }

    #[test]
    fn what_is_too_large_is_none() {
        let mut long = catalog();
        long.entries[0].name = vec![b'a'; 256];
        assert_eq!(long.encode(), None);
        let mut many = catalog();
        many.entries = vec![Entry { name: b"a".to_vec(), ..Entry::default() }; ENTRIES_MAX + 1];
        assert_eq!(many.encode(), None);
        many.entries.pop();
        assert!(many.encode().is_some());
        many.entries = vec![entry(&[b'a'; 255]); ENTRIES_MAX];
        assert_eq!(many.encode(), None, "bytes");
        let mut head = catalog().encode().unwrap();
        head[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Catalog::len_of(&head), Err(CatalogError::Invalid));
    }
}
