//! Which files of a set a run has touched: a bit for each, and how many are set.

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    bits: Vec<u64>,
    count: usize,
}

impl Touched {
    /// File `number` was touched.
    pub(super) fn touch(&mut self, number: usize) {
        let (word, bit) = (number / 64, 1_u64 << (number % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.count += usize::from(self.bits[word] & bit == 0);
        self.bits[word] |= bit;
    }

    /// How many different ones were.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Nothing was, from here on.
    pub(super) fn clear(&mut self) {
        self.bits.fill(0);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_counts_once() {
        let mut touched = Touched::default();
        for number in [0, 63, 64, 64, 0, 1_000] {
            touched.touch(number);
        }
        assert_eq!(touched.count(), 4);
        touched.clear();
        touched.touch(64);
        assert_eq!(touched.count(), 1);
    }
}
