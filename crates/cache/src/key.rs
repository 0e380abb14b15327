//! What a block is found by: whose it is, of which file, and which state of that file.

use std::fmt;
use std::hash::Hasher as _;
use std::time::Duration;

use siphasher::sip128::{Hasher128, SipHasher24};

/// Most bytes of a file's handle: NFS4_FHSIZE of RFC 8881; version 3 has 64.
pub const KEY_BYTES_MAX: usize = 128;

/// A file of the origin, by the bytes of its handle.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Key {
    len: u8,
    bytes: [u8; KEY_BYTES_MAX],
}

impl Key {
    /// None: more bytes than any handle has, or none at all.
    pub fn new(handle: &[u8]) -> Option<Self> {
        let len = u8::try_from(handle.len()).ok().filter(|len| *len > 0)?;
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(Self { len, bytes })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Under which its segments lie. Two files may share it: the whole key is in each header.
    pub fn hash(&self) -> FileHash {
        FileHash(hash(self.as_bytes()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// A file's key in short; its order is that of the folders.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileHash([u8; 16]);

impl FileHash {
    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
        Some(Self(value.to_be_bytes()))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A part of a file that lies in one local file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Name {
    pub file: FileHash,
    pub segment: u32,
}

/// Whose files they are: a server and an export of it. Another one has a folder of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The server and its export as the user names them, without secrets: for people.
    pub name: String,
    /// The handle of the export's root.
    pub root: Vec<u8>,
}

impl Origin {
    /// Names its folder: what of the name can stand in one, and a hash of all.
    pub fn folder(&self) -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let readable: String = self.name.chars().filter(is_plain).take(48).collect();
        let readable = readable.trim_start_matches('.');
        let mut all = (self.name.len() as u64).to_le_bytes().to_vec();
        all.extend(self.name.as_bytes());
        all.extend(&self.root);
        let short = u128::from_be_bytes(hash(&all)) >> 64;
        format!("{readable}-{short:016x}")
    }
}

/// SipHash-2-4 with 128 bits, of a key that nobody has to keep: values are on disks.
fn hash(bytes: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(b"nfskit cache key");
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

/// A time as servers tell it.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time {
    pub seconds: i64,
    pub nanos: u32,
}

impl Time {
    /// So long after the beginning of 1970.
    pub fn since_1970(passed: Duration) -> Self {
        let seconds = i64::try_from(passed.as_secs()).unwrap_or(i64::MAX);
        Self { seconds, nanos: passed.subsec_nanos() }
    }
}

/// Which state of a file its data are of: two states of one file have two tokens, as far as the
/// origin can tell them apart ([`crate::settle`] says when it can).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Token {
    /// Of the file in that state.
    pub size: u64,
    /// When its data were changed, or zero where `change` says it all.
    pub mtime: Time,
    /// When anything of it was changed.
    pub ctime: Time,
    /// The origin's number of the file.
    pub fileid: u64,
    /// The change attribute of version 4; zero for what has none.
    pub change: u64,
}

/// More than any file has.
const DRAFT_BYTES: u64 = 1 << 62;

/// Bytes of a token in a header.
pub(crate) const TOKEN_BYTES: usize = 48;

impl Token {
    /// Of bytes that the caller writes to a file, before it is known which state of the file that
    /// comes to ([`crate::Cache::changed`]). Another one for each time and number.
    pub fn draft(at: Time, number: u64) -> Self {
        Self { size: DRAFT_BYTES, mtime: at, ctime: at, fileid: number, change: u64::MAX }
    }

    pub fn is_draft(&self) -> bool {
        self.size == DRAFT_BYTES && self.change == u64::MAX
    }

    pub(crate) fn encode(&self) -> [u8; TOKEN_BYTES] {
        let mut out = [0; TOKEN_BYTES];
        out[..8].copy_from_slice(&self.size.to_le_bytes());
        out[8..16].copy_from_slice(&self.mtime.seconds.to_le_bytes());
        out[16..20].copy_from_slice(&self.mtime.nanos.to_le_bytes());
        out[20..28].copy_from_slice(&self.ctime.seconds.to_le_bytes());
        out[28..32].copy_from_slice(&self.ctime.nanos.to_le_bytes());
        out[32..40].copy_from_slice(&self.fileid.to_le_bytes());
        out[40..].copy_from_slice(&self.change.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; TOKEN_BYTES]) -> Self {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let time = |at: usize| Time { seconds: long(at).cast_signed(), nanos: short(at + 8) };
        Self { size: long(0), mtime: time(8), ctime: time(20), fileid: long(32), change: long(40) }
    }

    /// What of it differs from another's, in words: none when they are the same.
    pub fn differs(&self, other: &Self) -> Option<&'static str> {
        if self == other {
            return None;
        }
        Some(match () {
            () if self.fileid != other.fileid => "it is another file (fileid)",
            () if self.size != other.size => "its size has changed",
            () if self.mtime != other.mtime => "its data have changed (mtime)",
            () if self.ctime != other.ctime => "it has changed (ctime)",
            () => "it has changed (change attribute)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let hash = Key::new(&[1, 2, 3]).unwrap().hash();
        assert_eq!(FileHash::parse(&hash.to_string()), Some(hash));
        for wrong in ["", "0", "+0000000000000000000000000000000", "zz"] {
            assert_eq!(FileHash::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Key::new(&[]), None);
        assert_eq!(Key::new(&[0; KEY_BYTES_MAX + 1]), None);
        assert!(Key::new(&[0; KEY_BYTES_MAX]).is_some());
    }

    #[test]
    fn another_server_export_or_root_has_another_folder() {
        let folder = |name: &str, root: &[u8]| {
            Origin { name: name.to_owned(), root: root.to_vec() }.folder()
        };
        let one = folder("nfs://server/export", &[1]);
        assert_ne!(one, folder("nfs://server/export", &[2]));
        assert_ne!(one, folder("nfs://server/exporu", &[1]));
        assert!(one.starts_with("nfsserverexport-"), "{one}");
        assert!(!folder("../../etc", &[]).contains('/') && !folder("..", &[]).starts_with('.'));
    }

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let time = |seconds, nanos| Time { seconds, nanos };
        let token = Token {
            size: 1 << 40,
            mtime: time(-1, 2),
            ctime: time(3, 4),
            fileid: u64::MAX,
            change: 9,
        };
        assert_eq!(Token::decode(&token.encode()), token);
        let other = Token { ctime: time(3, 5), ..token };
        assert_eq!(token.differs(&other), Some("it has changed (ctime)"));
        assert_eq!(token.differs(&token), None);
    }
}
