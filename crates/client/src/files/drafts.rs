//! What we write ourselves, for the local disk: held until it is known which state of the file it
//! has come to, and then stored under that.
//!
//! ```text
//!   WRITE answered ──► parts in memory ──more than 8 MiB──► whole blocks on the disk, a draft
//!                         │ all is stable, all changes were ours          │
//!                         └──────────► Cache::changed ◄───────────────────┘
//! ```
//!
//! - **All changes were ours**: each reply tells the state before and after, and each state before
//!   is one that we knew or made ([`crate::cache::ours`]). A server that does not tell, a WRITE of
//!   which nobody knows whether it was done, a cut beside it: nothing is stored, and what the disk
//!   had of the file is of another state.
//! - **A change that follows would show**: the server has been seen to tell changes apart that
//!   follow each other, or the tick of its clock is over.
//!
//! Bounded, see the constants: what is more is not stored.

use std::collections::{BTreeMap, HashMap};

use bytes::{Bytes, BytesMut};
use cache::{Part, Time, Token};
use wire::nfs3::FileHandle;

use super::options::Mistake;

/// Bytes of a file, and of all, that wait in memory; of more, whole blocks go to the disk.
pub(super) const FILE_BYTES_MAX: usize = 8 << 20;

const BYTES_MAX: usize = 64 << 20;

/// Files that are being written, and pieces of one.
pub(super) const FILES_MAX: usize = 4096;

pub(super) const PIECES_MAX: usize = 4096;

/// What is smaller is copied: it may be a piece of a large buffer.
const COPIED_BYTES: usize = 64 << 10;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    pub(super) files: HashMap<FileHandle, Draft>,
    pub(super) bytes: usize,
    pub(super) number: u64,
    pub(super) mistake: Option<Mistake>,
}

#[derive(Debug)]
pub(super) struct Draft {
    /// The state that was known before, as long as the disk may have blocks of it.
    pub(super) from: Option<Token>,
    /// What stands for the state that the file will have.
    pub(super) draft: Token,
    /// What is in memory: none overlaps another.
    pub(super) parts: BTreeMap<u64, Bytes>,
    pub(super) bytes: usize,
    /// What went to the disk: ends by beginnings, none touches another.
    pub(super) spilled: BTreeMap<u64, u64>,
    is_spoiled: bool,
    pub(super) is_clean: bool,
}

/// What the disk is to store of a file.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Finished {
    pub(super) from: Token,
    pub(super) parts: Vec<Part>,
}

impl Drafts {
    pub(super) fn new(mistake: Option<Mistake>) -> Self {
        Self { mistake, ..Self::default() }
    }

    /// A WRITE of the file was answered. Gives whether it is the first one.
    pub(super) fn begin(&mut self, file: &FileHandle, from: Option<Token>, wall: Time) -> bool {
        if let Some(draft) = self.files.get_mut(file) {
            draft.is_clean = false;
            return false;
        }
        if self.files.len() >= FILES_MAX {
            self.files.retain(|_, draft| !draft.is_spoiled);
        }
        if self.files.len() < FILES_MAX {
            self.number += 1;
            self.files.insert(*file, Draft::new(from, Token::draft(wall, self.number)));
        }
        true
    }

    /// What is known of the file does not say what stands in it.
    pub(super) fn spoil(&mut self, file: &FileHandle) {
        if let Some(draft) = self.files.get_mut(file) {
            self.bytes -= draft.bytes;
            *draft = Draft { is_spoiled: true, ..Draft::new(None, draft.draft) };
        }
    }

    /// A WRITE has left these bytes. Gives what is to go to the disk of them, and as what.
    pub(super) fn written(
        &mut self,
        file: &FileHandle,
        (offset, data): (u64, Bytes),
        block_bytes: u64,
    ) -> Option<(Token, Vec<(u64, Bytes)>)> {
        let draft = self.files.get_mut(file).filter(|draft| !draft.is_spoiled)?;
        let before = draft.bytes;
        let is_stored = draft.put(offset, data);
        self.bytes = self.bytes + draft.bytes - before;
        let is_large = draft.bytes > FILE_BYTES_MAX || self.bytes > BYTES_MAX;
        let mut spilled = None;
        if is_stored && is_large {
            let before = draft.bytes;
            let blocks = draft.spill(block_bytes);
            self.bytes -= before - draft.bytes;
            spilled = Some((draft.draft, blocks));
        }
        let is_too_much = draft.parts.len() > PIECES_MAX
            || draft.spilled.len() > PIECES_MAX
            || draft.bytes > FILE_BYTES_MAX
            || is_large && self.bytes > BYTES_MAX;
        if !is_stored || is_too_much {
            self.spoil(file);
        }
        spilled
    }

    pub(super) fn is_clean(&mut self, file: &FileHandle) {
        if let Some(draft) = self.files.get_mut(file) {
            draft.is_clean = true;
        }
    }

    /// Ends it, if all is stable. None also of a file of which it is not known what stands in it.
    pub(super) fn finish(&mut self, file: &FileHandle, block_bytes: u64) -> Option<Finished> {
        if !self.files.get(file)?.is_clean {
            return None;
        }
        let draft = self.files.remove(file)?;
        self.bytes -= draft.bytes;
        let from = draft.from.unwrap_or(draft.draft);
        (!draft.is_spoiled).then(|| Finished { from, parts: joined(draft.parts, block_bytes) })
    }
}

impl Draft {
    pub(super) fn new(from: Option<Token>, draft: Token) -> Self {
        Self {
            from,
            draft,
            parts: BTreeMap::new(),
            bytes: 0,
            spilled: BTreeMap::new(),
            is_spoiled: false,
            is_clean: false,
        }
    }

    /// False: what stands there is not known any more. What went to the disk cannot be changed: it
    /// need not be there yet.
    pub(super) fn put(&mut self, offset: u64, data: Bytes) -> bool {
        let end = offset.saturating_add(data.len() as u64);
        let before_end = self.spilled.range(..end).next_back();
        if before_end.is_some_and(|(_, spilled_end)| *spilled_end > offset) {
            return false;
        }
        if data.is_empty() {
            return true;
        }
        self.make_way(offset, end);
        self.keep(offset, data);
        true
    }

    /// Leaves nothing of this range.
    fn make_way(&mut self, from: u64, to: u64) {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        while let Some((&at, data)) = self.parts.range(..to).next_back()
            && at + data.len() as u64 > from
        {
            let data = data.clone();
            self.parts.remove(&at);
            self.bytes -= data.len();
            let mut keep = |at: u64, rest: Bytes| {
                if !rest.is_empty() {
                    self.bytes += rest.len();
                    self.parts.insert(at, rest);
                }
            };
            let end = at + data.len() as u64;
            keep(to, data.slice(place(end.min(to) - at)..));
            keep(at, data.slice(..place(from.saturating_sub(at))));
        }
    }

    /// Takes the whole blocks out.
    fn spill(&mut self, block_bytes: u64) -> Vec<(u64, Bytes)> {
        self.from = None;
        let parts = joined(std::mem::take(&mut self.parts), block_bytes);
        self.bytes = 0;
        let mut blocks = Vec::new();
        for Part { offset, data, .. } in parts {
            let Some(mut data) = data else { continue };
            let end = offset + data.len() as u64;
            let first = offset.next_multiple_of(block_bytes);
            let last = (end / block_bytes * block_bytes).max(first);
            if last == first || first >= end {
                self.keep(offset, data);
                continue;
            }
            let place = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
            let rest = data.split_off(place(last));
            let whole = data.split_off(place(first));
            self.keep(offset, data);
            self.keep(last, rest);
            self.spilled(first, last);
            blocks.push((first, whole));
        }
        blocks
    }

    pub(super) fn keep(&mut self, at: u64, data: Bytes) {
        if !data.is_empty() {
            let data = if data.len() < COPIED_BYTES { Bytes::copy_from_slice(&data) } else { data };
            self.bytes += data.len();
            self.parts.insert(at, data);
        }
    }

    fn spilled(&mut self, mut from: u64, mut to: u64) {
        if let Some((&before, &end)) = self.spilled.range(..=from).next_back()
            && end == from
        {
            self.spilled.remove(&before);
            from = before;
        }
        if let Some(end) = self.spilled.remove(&to) {
            to = end;
        }
        self.spilled.insert(from, to);
    }
}

/// Pieces that follow each other, as one where a block would be cut.
fn joined(parts: BTreeMap<u64, Bytes>, block_bytes: u64) -> Vec<Part> {
    let mut runs: Vec<(u64, Vec<Bytes>, u64)> = Vec::new();
    for (at, data) in parts {
        let end = at + data.len() as u64;
        match runs.last_mut().filter(|(_, _, last)| *last == at && at % block_bytes != 0) {
            Some((_, pieces, last)) => {
                pieces.push(data);
                *last = end;
            }
            None => runs.push((at, vec![data], end)),
        }
    }
    let part = |(offset, mut pieces, end): (u64, Vec<Bytes>, u64)| {
        let bytes = end - offset;
        let data = match pieces.len() {
            1 => pieces.swap_remove(0),
            _ => {
                let mut whole = BytesMut::with_capacity(usize::try_from(bytes).unwrap_or(0));
                pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        };
        Part { offset, bytes, data: Some(data) }
    };
    runs.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    fn file() -> FileHandle {
        FileHandle::new(&[1]).unwrap()
    }

    fn state(second: i64) -> Token {
        let time = Time { seconds: second, nanos: 0 };
        Token { size: 0, mtime: time, ctime: time, fileid: 1, change: 0 }
    }

    fn begun() -> Drafts {
        let mut drafts = Drafts::default();
        assert!(drafts.begin(&file(), Some(state(1)), Time::default()));
        assert!(!drafts.begin(&file(), Some(state(2)), Time::default()));
        drafts
    }

    fn write(drafts: &mut Drafts, at: u64, data: &[u8]) -> Vec<(u64, usize)> {
        let data = (at, Bytes::copy_from_slice(data));
        let spilled = drafts.written(&file(), data, BLOCK);
        let blocks = spilled.map(|(_, blocks)| blocks).unwrap_or_default();
        blocks.iter().map(|(at, data)| (*at, data.len())).collect()
    }

    type Left = (Token, Vec<(u64, Vec<u8>)>);

    fn finished(drafts: &mut Drafts) -> Option<Left> {
        drafts.is_clean(&file());
        let Finished { from, parts } = drafts.finish(&file(), BLOCK)?;
        assert_eq!(drafts.bytes, 0);
        let part = |part: Part| (part.offset, part.data.unwrap().to_vec());
        Some((from, parts.into_iter().map(part).collect()))
    }

    #[test]
    fn what_was_written_last_counts() {
        let mut drafts = begun();
        write(&mut drafts, 10, b"abcdef");
        write(&mut drafts, 12, b"XY");
        write(&mut drafts, 16, b"ghi");
        write(&mut drafts, 8, b"000");
        write(&mut drafts, 100, b"far");
        assert_eq!(drafts.finish(&file(), BLOCK), None, "not all is stable");
        let parts = vec![(8, b"000bXYefghi".to_vec()), (100, b"far".to_vec())];
        assert_eq!(finished(&mut drafts), Some((state(1), parts)));
        assert_eq!(finished(&mut drafts), None, "once");
    }

    #[test]
    fn pieces_are_joined_where_a_block_would_be_cut_and_nowhere_else() {
        let mut drafts = begun();
        for (at, len) in [(0, 4096), (4096, 100), (4196, 3996), (8192, 10)] {
            write(&mut drafts, at, &vec![1; len]);
        }
        let parts = finished(&mut drafts).unwrap().1;
        let sizes: Vec<_> = parts.iter().map(|(at, data)| (*at, data.len())).collect();
        assert_eq!(sizes, [(0, 4096), (4096, 4096), (8192, 10)]);
    }

    #[test]
    fn what_is_much_goes_to_the_disk_and_its_edges_stay() {
        let mut drafts = begun();
        let piece = vec![3; 1 << 20];
        let mut spilled = Vec::new();
        for at in (0..20).map(|number| 100 + number * (1 << 20)) {
            spilled.extend(write(&mut drafts, at, &piece));
        }
        assert!(drafts.bytes <= FILE_BYTES_MAX);
        assert_eq!(spilled[0], (4096, (9 << 20) - 4096));
        let (from, parts) = finished(&mut drafts).unwrap();
        assert!(from.is_draft(), "of the state of before nothing is carried over");
        assert_eq!(parts[0], (100, vec![3; 3996]));
        let total: usize = parts.iter().map(|(_, data)| data.len()).sum();
        assert_eq!(total + spilled.iter().map(|(_, len)| len).sum::<usize>(), 20 << 20);
    }

    #[test]
    fn what_is_on_its_way_to_the_disk_is_not_changed() {
        let mut drafts = begun();
        write(&mut drafts, 0, &vec![3; FILE_BYTES_MAX + 1]);
        write(&mut drafts, 5000, b"x");
        assert_eq!(finished(&mut drafts), None);
        let mut drafts = begun();
        write(&mut drafts, 0, &vec![3; FILE_BYTES_MAX + 1]);
        write(&mut drafts, FILE_BYTES_MAX as u64, b"yz");
        assert_eq!(finished(&mut drafts).unwrap().1, [(FILE_BYTES_MAX as u64, b"yz".to_vec())]);
    }

    #[test]
    fn what_is_in_doubt_and_what_is_too_much_is_not_stored() {
        let mut drafts = begun();
        write(&mut drafts, 0, b"abc");
        drafts.spoil(&file());
        write(&mut drafts, 0, b"abc");
        assert_eq!((finished(&mut drafts), drafts.bytes), (None, 0));
        let mut drafts = begun();
        (0..2 * PIECES_MAX as u64).for_each(|at| drop(write(&mut drafts, 2 * at, b"a")));
        assert_eq!(finished(&mut drafts), None);
        let mut drafts = Drafts::default();
        for number in 0..2 * FILES_MAX as u64 {
            let file = FileHandle::new(&number.to_le_bytes()).unwrap();
            drafts.begin(&file, None, Time::default());
        }
        assert_eq!(drafts.files.len(), FILES_MAX);
    }
}
