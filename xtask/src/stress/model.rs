//! What one client knows to be on the server: its own folders, and nobody else changes them.
//!
//! An object is locked while calls on it are in progress whose order matters: `naming` for what
//! changes its names, `alone` for what needs the file's data to stand still, `ranges` for bytes
//! that are being read or written. So every answer has exactly one right value.

use std::ops::Range;

use wire::nfs3::FileHandle;

use super::operation::{Id, Name};

/// Bytes in a file at most: many files, and overlapping writes.
pub(super) const FILE_BYTES_MAX: usize = 256 << 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Fifo,
    File,
    Folder,
    Symlink,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// `None` until it is known: after CREATE, and after a violation.
    pub(super) handle: Option<FileHandle>,
    /// Empty when it is removed, or not yet made.
    pub(super) names: Vec<Name>,
    pub(super) content: Vec<u8>,
    /// Acknowledged as unstable, and not yet covered by a COMMIT.
    pub(super) dirty: Vec<Dirty>,
    /// Writes to be done again.
    pub(super) lost: Vec<Range<usize>>,
    pub(super) naming: bool,
    pub(super) alone: bool,
    pub(super) committing: bool,
    pub(super) ranges: Vec<Range<usize>>,
}

#[derive(Clone, Debug)]
pub(super) struct Dirty {
    pub(super) range: Range<usize>,
    pub(super) verifier: [u8; 8],
    /// Counts acknowledgements, so that a COMMIT covers those that came before it was sent.
    pub(super) order: u64,
}

impl Object {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            handle: None,
            names: Vec::new(),
            content: Vec::new(),
            dirty: Vec::new(),
            lost: Vec::new(),
            naming: true,
            alone: false,
            committing: false,
            ranges: Vec::new(),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        !self.names.is_empty()
    }

    /// No call about its names is in progress.
    pub(super) fn may_rename(&self) -> bool {
        self.is_there() && !self.naming
    }

    /// Its data stand still, and may be requested as a whole.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_there() && !self.alone && !self.committing && self.ranges.is_empty()
    }

    pub(super) fn may_touch(&self, range: &Range<usize>) -> bool {
        self.is_there() && !self.alone && !self.ranges.iter().any(|busy| overlap(busy, range))
    }

    pub(super) fn release(&mut self, range: &Range<usize>) {
        if let Some(at) = self.ranges.iter().position(|busy| busy == range) {
            self.ranges.swap_remove(at);
        }
    }

    pub(super) fn write(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if self.content.len() < end {
            self.content.resize(end, 0);
        }
        self.content[at..end].copy_from_slice(data);
    }

    pub(super) fn truncate(&mut self, size: usize) {
        self.content.resize(size, 0);
        let clip = |range: &Range<usize>| range.start.min(size)..range.end.min(size);
        for dirty in &mut self.dirty {
            dirty.range = clip(&dirty.range);
        }
        self.dirty.retain(|dirty| !dirty.range.is_empty());
        self.lost = self.lost.iter().map(clip).filter(|range| !range.is_empty()).collect();
    }

    /// Takes the outcome of a COMMIT; returns the bytes that it showed to be lost.
    pub(super) fn committed(&mut self, upto: u64, verifier: [u8; 8]) -> u64 {
        let (covered, later) = std::mem::take(&mut self.dirty)
            .into_iter()
            .partition::<Vec<Dirty>, _>(|dirty| dirty.order <= upto);
        self.dirty = later;
        let lost = covered.into_iter().filter(|dirty| dirty.verifier != verifier);
        let before = self.lost.len();
        self.lost.extend(lost.map(|dirty| dirty.range));
        self.lost[before..].iter().map(|range| range.len() as u64).sum()
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The objects of a client.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) objects: Vec<Object>,
    /// Acknowledged writes so far.
    pub(super) order: u64,
}

impl Model {
    pub(super) fn add(&mut self, kind: Kind) -> Id {
        self.objects.push(Object::new(kind));
        self.objects.len() - 1
    }

    pub(super) fn there(&self) -> impl Iterator<Item = (Id, &Object)> {
        self.objects.iter().enumerate().filter(|(_, object)| object.is_there())
    }

    /// Sorted names in a folder.
    pub(super) fn names_in(&self, folder: usize) -> Vec<String> {
        let names = self.there().flat_map(|(_, object)| &object.names);
        let mut names: Vec<String> =
            names.filter(|name| name.folder == folder).map(|name| name.text.clone()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Object {
        let mut file = Object::new(Kind::File);
        file.names.push(Name { folder: 0, text: "a".to_owned() });
        file
    }

    #[test]
    fn ranges_in_progress_keep_others_away() {
        let mut file = file();
        file.ranges.push(10..20);
        assert!(file.may_touch(&(0..10)) && file.may_touch(&(20..30)));
        assert!(!file.may_touch(&(19..20)) && !file.is_quiet());
        file.release(&(10..20));
        assert!(file.is_quiet());
    }

    #[test]
    fn a_commit_covers_what_came_before_and_finds_what_was_lost() {
        let mut file = file();
        let dirty = |start, order, v| Dirty { range: start..start + 5, verifier: [v; 8], order };
        file.write(0, &[1; 40]);
        file.dirty = vec![dirty(0, 1, 7), dirty(10, 2, 8), dirty(20, 3, 8)];
        assert_eq!(file.committed(2, [8; 8]), 5);
        assert_eq!(file.lost.first(), Some(&(0..5)));
        assert_eq!(file.dirty.len(), 1);
        file.truncate(3);
        assert_eq!((file.lost.first(), file.dirty.len()), (Some(&(0..3)), 0));
    }
}
