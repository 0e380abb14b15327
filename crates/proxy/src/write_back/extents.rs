//! The bytes of a file that are in the log and not at the origin yet: what is read is this, over
//! what the origin has.

use std::collections::BTreeMap;

use bytes::Bytes;

#[derive(Clone, Debug)]
struct Piece {
    data: Bytes,
    /// The record that it is of.
    number: u64,
}

/// Pieces that do not overlap, by their offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    pieces: BTreeMap<u64, Piece>,
}

impl Extents {
    /// Newer bytes over what was here.
    pub(crate) fn put(&mut self, offset: u64, data: Bytes, number: u64) {
        if data.is_empty() {
            return;
        }
        self.clear(offset, offset + data.len() as u64);
        self.pieces.insert(offset, Piece { data, number });
    }

    /// The file ends here.
    pub(crate) fn cut(&mut self, size: u64) {
        self.clear(size, u64::MAX);
    }

    fn clear(&mut self, from: u64, to: u64) {
        let before = self.pieces.range(..from).next_back().map(|(at, _)| *at);
        let first = before.unwrap_or(from).min(from);
        let touched: Vec<u64> = self.pieces.range(first..to).map(|(at, _)| *at).collect();
        for at in touched {
            let Some(Piece { data, number }) = self.pieces.remove(&at) else { continue };
            let end = at + data.len() as u64;
            if at < from {
                let left = place(from.min(end) - at);
                self.pieces.insert(at, Piece { data: data.slice(..left), number });
            }
            if end > to && to > at {
                self.pieces.insert(to, Piece { data: data.slice(place(to - at)..), number });
            } else if end > to {
                self.pieces.insert(at, Piece { data, number });
            }
        }
    }

    /// The bytes of this record are at the origin.
    pub(crate) fn forget(&mut self, number: u64) {
        self.pieces.retain(|_, piece| piece.number != number);
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// All of them, by their offset.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u64, &Bytes)> {
        self.pieces.iter().map(|(at, piece)| (*at, &piece.data))
    }

    /// Puts what is known of the bytes from `offset` on over those in `into`.
    pub(crate) fn over(&self, offset: u64, into: &mut [u8]) {
        let end = offset.saturating_add(into.len() as u64);
        let before = self.pieces.range(..=offset).next_back().map_or(offset, |(at, _)| *at);
        for (&at, Piece { data, .. }) in self.pieces.range(before..end) {
            let (from, to) = (at.max(offset), (at + data.len() as u64).min(end));
            if from < to {
                let source = &data[place(from - at)..place(to - at)];
                into[place(from - offset)..place(to - offset)].copy_from_slice(source);
            }
        }
    }

    /// The first byte from here on that is known.
    pub(crate) fn next(&self, offset: u64) -> Option<u64> {
        let before = self.pieces.range(..=offset).next_back().map_or(offset, |(at, _)| *at);
        let mut from_here = self.pieces.range(before..);
        let ends_later = |(at, piece): &(&u64, &Piece)| **at + piece.data.len() as u64 > offset;
        from_here.find(ends_later).map(|(at, _)| offset.max(*at))
    }

    /// Whether all of these bytes are known.
    pub(crate) fn covers(&self, offset: u64, end: u64) -> bool {
        let mut next = offset;
        let before = self.pieces.range(..=offset).next_back().map_or(offset, |(at, _)| *at);
        for (&at, piece) in self.pieces.range(before..end) {
            if at > next {
                break;
            }
            next = next.max(at + piece.data.len() as u64);
        }
        next >= end
    }
}

/// A place within a piece, which is in memory.
fn place(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a piece is in memory")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEN: usize = 64;

    proptest! {
        /// As an array of bytes would have it, each with the record that wrote it.
        #[test]
        fn pieces_are_what_an_array_would_be(
            steps in proptest::collection::vec((0u8..4, 0usize..LEN, 0usize..20), 1..40),
        ) {
            let mut extents = Extents::default();
            let mut model = [None::<(u8, u64)>; 2 * LEN];
            for (number, (what, at, len)) in (1u64..).zip(steps) {
                let fill = u8::try_from(number).unwrap();
                match what {
                    0 => {
                        extents.cut(at as u64);
                        model[at..].fill(None);
                    }
                    1 => {
                        let gone = at as u64 % number;
                        extents.forget(gone);
                        model.iter_mut().for_each(|byte| *byte = byte.filter(|of| of.1 != gone));
                    }
                    _ => {
                        extents.put(at as u64, Bytes::from(vec![fill; len]), number);
                        model[at..at + len].fill(Some((fill, number)));
                    }
                }
                let mut seen = [0xff; 2 * LEN];
                extents.over(0, &mut seen);
                let expected = model.map(|byte| byte.map_or(0xff, |(fill, _)| fill));
                prop_assert_eq!(seen, expected);
                let next = (at..model.len()).find(|at| model[*at].is_some());
                prop_assert_eq!(extents.next(at as u64), next.map(|next| next as u64));
                for (from, to) in [(0, LEN), (at, at + len), (at / 2, at)] {
                    let all = model[from..to].iter().all(Option::is_some);
                    prop_assert_eq!(extents.covers(from as u64, to as u64), all);
                    let mut part = vec![0xff; to - from];
                    extents.over(from as u64, &mut part);
                    prop_assert_eq!(&part[..], &expected[from..to]);
                }
                prop_assert_eq!(extents.is_empty(), model.iter().all(Option::is_none));
            }
        }
    }
}
