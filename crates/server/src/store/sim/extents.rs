//! The ranges of a file that are dirty: written, and not on their way to the disk.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch, by where they begin.
#[derive(Debug, Default)]
pub(super) struct Extents {
    ends: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Extents {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn add(&mut self, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let (mut start, mut end) = (offset, offset.saturating_add(bytes));
        while let Some((&from, &to)) = self.ends.range(..=end).next_back() {
            if to < start {
                break;
            }
            self.ends.remove(&from);
            self.bytes -= to - from;
            start = start.min(from);
            end = end.max(to);
        }
        self.bytes += end - start;
        self.ends.insert(start, end);
    }

    /// Nothing behind `size` is dirty any more.
    pub(super) fn cut(&mut self, size: u64) {
        while let Some((&from, &to)) = self.ends.last_key_value() {
            if to <= size {
                break;
            }
            self.ends.remove(&from);
            self.bytes -= to - from;
            if from < size {
                self.ends.insert(from, size);
                self.bytes += size - from;
            }
        }
    }

    /// All of them, offset and bytes, in order; none is left.
    pub(super) fn take(&mut self) -> Vec<(u64, u64)> {
        self.bytes = 0;
        std::mem::take(&mut self.ends).into_iter().map(|(from, to)| (from, to - from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut extents = Extents::default();
        for (offset, bytes) in [(10, 10), (30, 10), (50, 10), (20, 10), (45, 3), (0, 0)] {
            extents.add(offset, bytes);
        }
        assert_eq!(extents.bytes(), 43);
        extents.add(35, 20);
        extents.cut(55);
        assert_eq!(extents.bytes(), 45);
        extents.cut(5);
        assert_eq!(extents.bytes(), 0);
        extents.add(1, 2);
        assert_eq!((extents.take(), extents.bytes()), (vec![(1, 2)], 0));
    }

    #[test]
    fn any_order_of_ranges_covers_the_same_bytes() {
        let mut random = 1_u64;
        for _ in 0..500 {
            let (mut extents, mut covered) = (Extents::default(), [false; 64]);
            for _ in 0..8 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (from, len) = ((random >> 33) % 50, (random >> 45) % 14);
                extents.add(from, len);
                for (at, covered) in (0..).zip(&mut covered) {
                    *covered |= (from..from + len).contains(&at);
                }
            }
            let count = covered.iter().filter(|is| **is).count() as u64;
            assert_eq!(extents.bytes(), count);
            let taken = extents.take();
            assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0), "{taken:?}");
        }
    }
}
