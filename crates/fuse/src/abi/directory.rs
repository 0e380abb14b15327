//! Answers of READDIR and READDIRPLUS: entries up to the size that the kernel has room for.

use super::Entry;
use super::answer::Body;

/// Entries of a directory, as far as they fit.
#[derive(Debug)]
pub(crate) struct Listed {
    body: Body,
    room: usize,
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Name<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) ino: u64,
    /// The type, as in the upper bits of a mode; 0 if it is not known.
    pub(crate) kind: u32,
    /// Where reading goes on behind it.
    pub(crate) offset: u64,
}

impl Listed {
    pub(crate) fn new(room: u32) -> Self {
        Self { body: Body::default(), room: room as usize }
    }

    /// Whether an entry of this name would fit.
    pub(crate) fn fits(&self, name: &[u8], plus: bool) -> bool {
        let head = if plus { 128 + 24 } else { 24 };
        self.body.0.len() + (head + name.len()).next_multiple_of(8) <= self.room
    }

    /// Adds a name; `plus` is what READDIRPLUS says of it.
    pub(crate) fn add(&mut self, name: &Name<'_>, plus: Option<&Entry>) {
        let mut body = std::mem::take(&mut self.body);
        if let Some(plus) = plus {
            body = body.entry(plus);
        }
        self.body = body.name(name);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.body.0.is_empty()
    }

    pub(crate) fn into_body(self) -> Body {
        self.body
    }
}

impl Body {
    /// `fuse_dirent`.
    #[expect(clippy::cast_possible_truncation, reason = "names that long do not fit")]
    fn name(self, name: &Name<'_>) -> Self {
        let padding = name.name.len().next_multiple_of(8) - name.name.len();
        self.u64(name.ino)
            .u64(name.offset)
            .u32(name.name.len() as u32)
            .u32(name.kind >> 12)
            .bytes(name.name)
            .bytes(&[0; 8][..padding])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_and_stop_at_the_room() {
        let mut listed = Listed::new(64);
        let name = Name { name: b"abc", ino: 9, kind: 0o100_000, offset: 1 };
        for _ in 0..2 {
            assert!(listed.fits(name.name, false));
            listed.add(&name, None);
        }
        assert!(!listed.fits(b"", false));
        let body = listed.into_body();
        assert_eq!(body.as_slice().len(), 64);
        assert_eq!(body.as_slice()[20..28], [8, 0, 0, 0, b'a', b'b', b'c', 0]);
    }

    #[test]
    fn an_entry_goes_before_its_name() {
        let mut listed = Listed::new(4096);
        let name = Name { name: b"name", ino: 9, kind: 0o040_000, offset: 1 };
        listed.add(&name, Some(&Entry { node: 5, ..Entry::default() }));
        let body = listed.into_body();
        assert_eq!(body.as_slice().len(), 128 + 32);
        assert_eq!(body.as_slice()[..8], 5u64.to_ne_bytes());
    }
}
