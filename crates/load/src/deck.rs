//! A deck of cards: what is drawn comes in exactly the stated shares, in a random order.
//!
//! Independent draws of 1,000 operations would have 1 % of them anywhere between 4 and 16 times. A
//! deck has it 10 times: two runs that are compared do the same work, and what differs between them
//! is what was changed.
//!
//! The deck has to be about as long as the run ([`Deck::of_run`]). A short one that is shuffled
//! anew whenever it is used up brings the same work every hundred calls, and so takes away what
//! makes queues long, several large calls by chance one after the other: at a load of 0.95, with
//! one call in ten that takes eleven times as long, a call would take 16 times its service instead
//! of 32. What is drawn of a deck that lasts for the run is as good as independent: each card
//! changes the odds of the next by one in all.

use fastrand::Rng;

/// Cards of the shares as they are stated, at most: a thousandth of a percent is the smallest.
const STATED_MAX: usize = 100_000;

/// Cards in one deck, at most; a run of more draws shuffles it anew. Busy times of a queue at a
/// load of 0.95 are some thousand calls long.
const CARDS_MAX: usize = 1 << 18;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Deck<T> {
    cards: Vec<T>,
    /// Cards that have not been drawn since the last shuffle: the first so many.
    left: usize,
}

impl<T: Copy> Deck<T> {
    /// A deck with so many of each card. `None` without any card, or with too many.
    pub fn new(shares: &[(T, u32)]) -> Option<Self> {
        Self::of_run(shares, 1)
    }

    /// As many of them as so many draws need, `CARDS_MAX` cards at most.
    pub fn of_run(shares: &[(T, u32)], draws: usize) -> Option<Self> {
        let count: usize = shares.iter().map(|(_, share)| *share as usize).sum();
        if count == 0 || count > STATED_MAX {
            return None;
        }
        let times = draws.div_ceil(count).clamp(1, CARDS_MAX / count);
        let of = |&(card, share): &(T, u32)| std::iter::repeat_n(card, times * share as usize);
        Some(Self { cards: shares.iter().flat_map(of).collect(), left: 0 })
    }

    /// The next card.
    pub fn draw(&mut self, random: &mut Rng) -> T {
        if self.left == 0 {
            self.left = self.cards.len();
        }
        let at = random.usize(..self.left);
        self.left -= 1;
        self.cards.swap(at, self.left);
        self.cards[self.left]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_has_the_stated_shares_in_an_order_of_the_seed() {
        let mut deck = Deck::new(&[('a', 7), ('b', 2), ('c', 1)]).unwrap();
        let mut random = Rng::with_seed(7);
        let drawn: Vec<char> = (0..40).map(|_| deck.draw(&mut random)).collect();
        for round in drawn.chunks(10) {
            let of = |card| round.iter().filter(|drawn| **drawn == card).count();
            assert_eq!([of('a'), of('b'), of('c')], [7, 2, 1]);
        }
        assert_ne!(drawn[..10], drawn[10..20]);
        let mut again = Deck::new(&[('a', 7), ('b', 2), ('c', 1)]).unwrap();
        let mut random = Rng::with_seed(7);
        assert!(drawn.iter().all(|card| *card == again.draw(&mut random)));
    }

    /// Mean time in a queue with exponential distances between arrivals, over the mean service.
    fn stretch(draws: usize, deck_of: usize, seed: u64) -> f64 {
        const LOAD: f64 = 0.95;
        let shares = [(1.0, 9), (11.0, 1)];
        let mean = 2.0;
        let mut deck = Deck::of_run(&shares, deck_of).unwrap();
        let mut random = Rng::with_seed(seed);
        let (mut work, mut total) = (0.0_f64, 0.0);
        for _ in 0..draws {
            let distance = -(1.0 - random.f64()).ln() * mean / LOAD;
            work = (work - distance).max(0.0) + deck.draw(&mut random);
            total += work;
        }
        total / draws as f64 / mean
    }

    #[test]
    fn queues_behind_a_deck_of_the_run_are_as_long_as_behind_independent_draws() {
        const DRAWS: usize = 200_000;
        let mean = |deck_of| (0..8).map(|seed| stretch(DRAWS, deck_of, seed)).sum::<f64>() / 8.0;
        // Pollaczek and Khinchine: 1 + load / (1 - load) (1 + c^2) / 2.
        let second = (9.0 + 121.0) / 10.0 / 2.0_f64.powi(2);
        let theory = 1.0 + 0.95 / 0.05 * second / 2.0;
        let of_run = mean(DRAWS);
        assert!((of_run / theory - 1.0).abs() < 0.12, "{of_run} is not {theory}");
        let short = mean(100);
        assert!(short < 0.6 * theory, "{short}");
    }

    #[test]
    fn no_deck_is_empty_or_without_bound() {
        assert!(Deck::<char>::new(&[]).is_none());
        assert!(Deck::new(&[('a', 0)]).is_none());
        assert!(Deck::new(&[('a', u32::MAX), ('b', u32::MAX)]).is_none());
    }
}
