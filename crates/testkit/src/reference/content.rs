//! The bytes of one file: those that are stable, and those that are not yet.
//!
//! What was written and is not known to be stable stands in a list, in order. While the server
//! stands, the file is what is stable with the list written over it. After a crash each byte of the
//! list may be what it was before (each for itself: a part of what was on its way may have got
//! through), until it is written again or a COMMIT shows the verifier that its WRITE had shown.

use std::ops::Range;

use wire::nfs3::StableHow;

/// A verifier, as replies to WRITE and COMMIT carry it.
pub type Verifier = [u8; 8];

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Content {
    stable: Vec<u8>,
    pending: Vec<Pending>,
    /// A change of size is in doubt: nothing is stated until it is set again.
    is_wild: bool,
    /// Only the bytes count, and what is behind the end is zero: a part of a larger file.
    is_part: bool,
}

/// Bytes that are not known to be stable.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Pending {
    range: Range<usize>,
    value: u8,
    /// None when the WRITE failed: it may have been done or not.
    by: Option<Written>,
}

/// How a WRITE was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Written {
    pub verifier: Verifier,
    /// How often the server had lost something when it was called.
    pub losses: u64,
}

impl Content {
    /// `bytes` bytes of a larger file.
    pub fn part(bytes: usize) -> Self {
        Self { stable: vec![0; bytes], is_part: true, ..Self::default() }
    }

    /// A WRITE was answered.
    pub fn wrote(&mut self, range: Range<usize>, value: u8, stable: StableHow, by: Written) {
        if range.is_empty() {
            return;
        }
        match stable {
            StableHow::Unstable => self.pending.push(Pending { range, value, by: Some(by) }),
            _ => self.settle(range, value),
        }
    }

    /// A WRITE failed, or its client vanished.
    pub fn doubted(&mut self, range: Range<usize>, value: u8) {
        self.pending.push(Pending { range, value, by: None });
    }

    /// What is not stable may be there or not: its writer has gone, or got an error.
    pub fn doubt_all(&mut self) {
        self.pending.iter_mut().for_each(|pending| pending.by = None);
    }

    /// A change of size failed, or its client vanished: what lay behind may be gone, and whatever
    /// is behind the end then is zero.
    pub fn resize_doubted(&mut self, bytes: usize) {
        let ends = self.pending.iter().map(|pending| pending.range.end);
        let end = ends.max().unwrap_or(0).max(self.stable.len());
        if bytes < end {
            self.doubted(bytes..end, 0);
        }
        self.is_wild = true;
    }

    /// A COMMIT of everything showed this verifier: what showed the same is stable.
    pub fn committed(&mut self, verifier: Verifier) {
        while let Some(at) = self
            .pending
            .iter()
            .position(|pending| pending.by.is_some_and(|by| by.verifier == verifier))
        {
            let later = self.pending.split_off(at + 1);
            if let Some(Pending { range, value, .. }) = self.pending.pop() {
                self.settle(range, value);
            }
            self.pending.extend(later);
        }
    }

    /// Everything is stable, as the client says that keeps what it wrote.
    pub fn flushed(&mut self) {
        for Pending { range, value, by } in std::mem::take(&mut self.pending) {
            match by {
                Some(_) => self.settle(range, value),
                None => self.pending.push(Pending { range, value, by }),
            }
        }
    }

    /// The size was set, and is stable.
    pub fn resized(&mut self, bytes: usize) {
        self.stable.resize(bytes, 0);
        self.pending.retain_mut(|pending| {
            pending.range.end = pending.range.end.min(bytes);
            !pending.range.is_empty()
        });
        self.is_wild = false;
    }

    /// What has to be written again after a COMMIT has shown `verifier`, in order.
    pub fn lost(&self, verifier: Verifier) -> Vec<(Range<usize>, u8)> {
        let mut lost = Vec::new();
        for (at, pending) in self.pending.iter().enumerate() {
            if pending.by.is_some_and(|by| by.verifier == verifier) {
                continue;
            }
            let later = self.pending[at + 1..].iter().map(|later| &later.range);
            let rest = later.fold(vec![pending.range.clone()], |rest, gone| {
                rest.iter().flat_map(|range| without(range, gone)).collect()
            });
            lost.extend(rest.into_iter().map(|range| (range, pending.value)));
        }
        lost
    }

    /// Those bytes are known, stable, and nothing that was written before can come back.
    fn settle(&mut self, range: Range<usize>, value: u8) {
        let pending = std::mem::take(&mut self.pending);
        for pending in pending {
            for rest in without(&pending.range, &range) {
                self.pending.push(Pending { range: rest, ..pending.clone() });
            }
        }
        if self.stable.len() < range.end {
            self.stable.resize(range.end, 0);
        }
        self.stable[range].fill(value);
    }

    /// What the size may be, when the server has lost something `losses` times.
    pub fn sizes(&self, losses: u64) -> std::ops::RangeInclusive<usize> {
        if self.is_wild || self.is_part {
            return 0..=usize::MAX;
        }
        let ends = |sure_only: bool| {
            let of = self.pending.iter().filter(move |one| !sure_only || one.is_sure(losses));
            of.map(|pending| pending.range.end).max().unwrap_or(0).max(self.stable.len())
        };
        ends(true)..=ends(false)
    }

    /// Whether `got` is what a read of `count` bytes at `at` may give.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, at: usize, count: usize, got: &[u8], losses: u64) -> Result<(), String> {
        if self.is_wild {
            return Ok(());
        }
        let sizes = self.sizes(losses);
        let end = at + got.len();
        if got.len() > count || (end > *sizes.end() && !got.is_empty()) {
            return Err(format!("{} bytes at {at} of a file of {sizes:?}", got.len()));
        }
        if got.len() < count && end.max(at) < *sizes.start() && at < *sizes.start() {
            return Err(format!("only {} of {count} bytes at {at} of {sizes:?}", got.len()));
        }
        let padding = if self.is_part { count - got.len() } else { 0 };
        let bytes = got.iter().copied().chain(std::iter::repeat_n(0, padding));
        for (place, byte) in (at..).zip(bytes) {
            let may_be = self.may_be(place, losses);
            if !may_be.contains(&byte) {
                let wrong = got[place.min(end) - at..].iter();
                let like = wrong.take_while(|other| **other == byte).count();
                return Err(format!("byte {place} and {like} in a row are {byte}, not {may_be:?}"));
            }
        }
        Ok(())
    }

    /// What a byte may be.
    fn may_be(&self, place: usize, losses: u64) -> Vec<u8> {
        let mut may_be = Vec::new();
        for pending in self.pending.iter().rev().filter(|one| one.range.contains(&place)) {
            may_be.push(pending.value);
            if pending.is_sure(losses) {
                return may_be;
            }
        }
        may_be.push(self.stable.get(place).copied().unwrap_or(0));
        may_be
    }

    /// Whether all of it is stable.
    pub fn is_settled(&self) -> bool {
        self.pending.is_empty() && !self.is_wild
    }
}

impl Pending {
    fn is_sure(&self, losses: u64) -> bool {
        self.by.is_some_and(|by| by.losses == losses)
    }
}

/// What is left of a range without another.
fn without(range: &Range<usize>, gone: &Range<usize>) -> Vec<Range<usize>> {
    let before = range.start..range.end.min(gone.start);
    let after = range.start.max(gone.end)..range.end;
    [before, after].into_iter().filter(|rest| rest.start < rest.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: Verifier = [1; 8];
    const V2: Verifier = [2; 8];

    fn by(verifier: Verifier, losses: u64) -> Written {
        Written { verifier, losses }
    }

    fn holds(content: &Content, got: &[u8], losses: u64) -> bool {
        content.check(0, 100, got, losses).is_ok()
    }

    #[test]
    fn what_is_unstable_is_there_until_a_crash_and_may_be_there_afterwards() {
        let mut content = Content::default();
        content.wrote(0..4, 7, StableHow::FileSync, by(V1, 0));
        content.wrote(2..6, 8, StableHow::Unstable, by(V1, 0));
        assert!(holds(&content, &[7, 7, 8, 8, 8, 8], 0));
        assert!(!holds(&content, &[7, 7, 7, 7], 0));
        for left in [&[7, 7, 7, 7][..], &[7, 7, 8, 7], &[7, 7, 7, 7, 0, 8], &[7, 7, 8, 8, 8, 8]] {
            assert!(holds(&content, left, 1), "{left:?}");
        }
        for wrong in [&[7, 7, 9, 7][..], &[7, 8, 7, 7], &[7, 7, 7], &[7, 7, 7, 7, 0, 8, 0]] {
            assert!(!holds(&content, wrong, 1), "{wrong:?}");
        }
    }

    #[test]
    fn a_commit_settles_what_showed_its_verifier_and_nothing_else() {
        let mut content = Content::default();
        content.wrote(0..4, 7, StableHow::Unstable, by(V1, 0));
        content.wrote(2..6, 8, StableHow::Unstable, by(V2, 1));
        assert_eq!(content.lost(V2), [(0..2, 7)], "what was written over is not sent again");
        content.committed(V2);
        assert!(holds(&content, &[0, 7, 8, 8, 8, 8], 2));
        assert!(!holds(&content, &[7, 7, 8, 8], 2));
        content.wrote(0..2, 7, StableHow::Unstable, by(V2, 1));
        content.committed(V2);
        assert!(content.is_settled());
        assert!(holds(&content, &[7, 7, 8, 8, 8, 8], 9));
        content.resized(3);
        assert!(holds(&content, &[7, 7, 8], 9));
    }

    #[test]
    fn what_failed_may_be_there_or_not_until_it_is_written_over() {
        let mut content = Content::default();
        content.wrote(0..4, 7, StableHow::FileSync, by(V1, 0));
        content.doubted(0..2, 9);
        assert!(holds(&content, &[9, 7, 7, 7], 0) && holds(&content, &[7, 7, 7, 7], 0));
        content.flushed();
        assert!(holds(&content, &[7, 9, 7, 7], 0), "a flush says nothing of it");
        content.wrote(0..2, 3, StableHow::FileSync, by(V1, 0));
        assert!(!holds(&content, &[9, 3, 7, 7], 0));
    }

    #[test]
    fn what_a_failed_cut_may_have_taken_is_in_doubt_when_the_size_is_set_again() {
        let mut content = Content::default();
        content.wrote(0..4, 7, StableHow::FileSync, by(V1, 0));
        content.resize_doubted(2);
        content.wrote(3..4, 8, StableHow::FileSync, by(V1, 0));
        content.resized(5);
        for left in [&[7, 7, 7, 8, 0][..], &[7, 7, 0, 8, 0]] {
            assert!(holds(&content, left, 0), "{left:?}");
        }
        for wrong in [&[7, 0, 0, 8, 0][..], &[7, 7, 0, 0, 0], &[7, 7, 7, 8], &[7, 7, 0, 8, 7]] {
            assert!(!holds(&content, wrong, 0), "{wrong:?}");
        }
    }
}
