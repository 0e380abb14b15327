//! Names that come and go, and which of them no call is about to change.
//!
//! A name that a call is about to change is in neither list until [`Names::settle`]. Where none is
//! in the state that an operation needs, there is a new one, up to [`NAMES_MAX`]; beyond that it
//! gets one in the wrong state, and its answer is that there is such a name already, or none. An
//! operation like that did less than its name says, and is counted.

use fastrand::Rng;

/// Names of one kind, at most: a server that allows 32,000 links to a file does not get more.
pub(super) const NAMES_MAX: u32 = 30_000;

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    there: Vec<u32>,
    absent: Vec<u32>,
    /// All that there ever were.
    count: u32,
    hollow: u64,
}

/// A name for an operation, and whether there is one now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Taken {
    pub(crate) number: u32,
    pub(crate) is_there: bool,
}

impl Names {
    /// So many names; those with an even number are there.
    pub(crate) fn new(count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(NAMES_MAX).min(NAMES_MAX);
        let (there, absent) = (0..count).partition(|number| number % 2 == 0);
        Self { there, absent, count, hollow: 0 }
    }

    /// One that is there, to be removed or renamed.
    pub(crate) fn take_there(&mut self, random: &mut Rng) -> Option<Taken> {
        if let Some(number) = draw(&mut self.there, random) {
            return Some(Taken { number, is_there: true });
        }
        self.hollow += 1;
        let number = draw(&mut self.absent, random).or_else(|| self.grow())?;
        Some(Taken { number, is_there: false })
    }

    /// One that is not there, to be made.
    pub(crate) fn take_absent(&mut self, random: &mut Rng) -> Option<Taken> {
        if let Some(number) = draw(&mut self.absent, random).or_else(|| self.grow()) {
            return Some(Taken { number, is_there: false });
        }
        self.hollow += 1;
        let number = draw(&mut self.there, random)?;
        Some(Taken { number, is_there: true })
    }

    /// What became of a name.
    pub(crate) fn settle(&mut self, number: u32, is_there: bool) {
        let list = if is_there { &mut self.there } else { &mut self.absent };
        list.push(number);
    }

    /// How many are there that no call is about to change.
    pub(crate) fn there(&self) -> usize {
        self.there.len()
    }

    /// Operations that found no name in the state that they need.
    pub(crate) fn hollow(&self) -> u64 {
        self.hollow
    }

    fn grow(&mut self) -> Option<u32> {
        let number = self.count;
        (number < NAMES_MAX).then(|| {
            self.count += 1;
            number
        })
    }
}

fn draw(list: &mut Vec<u32>, random: &mut Rng) -> Option<u32> {
    (!list.is_empty()).then(|| list.swap_remove(random.usize(..list.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_nobody_elses_until_it_is_settled() {
        let mut random = Rng::with_seed(1);
        let mut names = Names::new(4);
        let first = names.take_there(&mut random).unwrap();
        let second = names.take_there(&mut random).unwrap();
        assert!(first.is_there && second.is_there && first != second);
        names.settle(first.number, false);
        names.settle(second.number, true);
        assert_eq!(names.take_there(&mut random), Some(second));
        assert_eq!(names.hollow(), 0);
    }

    #[test]
    fn names_grow_up_to_a_number_and_then_an_operation_finds_the_wrong_state() {
        let mut random = Rng::with_seed(1);
        let mut names = Names::new(0);
        for number in 0..NAMES_MAX {
            assert_eq!(names.take_absent(&mut random), Some(Taken { number, is_there: false }));
        }
        assert_eq!(names.take_absent(&mut random), None, "all are busy");
        names.settle(17, true);
        assert_eq!(names.take_absent(&mut random), Some(Taken { number: 17, is_there: true }));
        names.settle(17, false);
        assert_eq!(names.take_there(&mut random), Some(Taken { number: 17, is_there: false }));
        assert_eq!(names.hollow(), 3);
        assert_eq!(names.take_there(&mut random), None);
    }
}
