//! A deck of cards: what is drawn comes in exactly the stated shares, in a random order.
//!
//! Independent draws of 1,000 operations would have 1 % of them anywhere between 4 and 16 times. A
//! deck that is shuffled anew when it is used up has it 10 times: two runs that are compared do
//! the same work, and what differs between them is what was changed.

use fastrand::Rng;

/// Cards in one deck, at most: a thousandth of a percent is the smallest share.
const CARDS_MAX: usize = 100_000;

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
        let count: usize = shares.iter().map(|(_, share)| *share as usize).sum();
        if count == 0 || count > CARDS_MAX {
            return None;
        }
        let of = |&(card, share): &(T, u32)| std::iter::repeat_n(card, share as usize);
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

    #[test]
    fn no_deck_is_empty_or_without_bound() {
        assert!(Deck::<char>::new(&[]).is_none());
        assert!(Deck::new(&[('a', 0)]).is_none());
        assert!(Deck::new(&[('a', u32::MAX), ('b', u32::MAX)]).is_none());
    }
}
