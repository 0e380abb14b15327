//! In which order things are measured that are compared.

/// What is measured in turn in step 4.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    Before,
    After,
    Between,
}

/// What the first leaves behind, the next finds: a cache that is warm, a device that is still busy.
/// In the reverse order every other time, each comes as often before another as behind it, and what
/// drifts evenly is the same under all.
pub(super) fn turns(application: usize) -> impl Iterator<Item = Turn> {
    let turns = [Turn::Before, Turn::After, Turn::Between];
    forth_and_back(turns.len(), application).map(move |at| turns[at])
}

/// The numbers below `count`, from the other end every other time.
pub(super) fn forth_and_back(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| if round.is_multiple_of(2) { at } else { count - 1 - at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Plan;

    #[test]
    fn each_comes_as_often_before_another_as_behind_it_and_drift_is_the_same_under_all() {
        for plan in [Plan::FULL, Plan::QUICK] {
            let order: Vec<Turn> = (0..plan.applications).flat_map(turns).collect();
            let places = |turn| {
                let places = order.iter().enumerate().filter(move |(_, one)| **one == turn);
                places.map(|(at, _)| at).sum::<usize>()
            };
            assert_eq!(places(Turn::Before), places(Turn::After));
            assert_eq!(places(Turn::Before), places(Turn::Between));
            let before = |one, other| {
                let rounds = order.chunks(3).map(|round| round.iter().position(|t| *t == one));
                let others = order.chunks(3).map(|round| round.iter().position(|t| *t == other));
                rounds.zip(others).filter(|(one, other)| one < other).count()
            };
            assert_eq!(before(Turn::Before, Turn::After), before(Turn::After, Turn::Before));
        }
        assert_eq!(forth_and_back(3, 1).collect::<Vec<_>>(), [2, 1, 0]);
    }
}
