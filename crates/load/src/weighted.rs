//! A draw among things that have weights, each independent of those before ([`crate::deck`] has
//! exact shares).

use fastrand::Rng;

/// The index of one of them, as often as its weight says; none where all weigh nothing.
pub(crate) fn weighted(rng: &mut Rng, weights: impl Iterator<Item = u32> + Clone) -> Option<usize> {
    let mut left = rng.u32(0..weights.clone().sum::<u32>().max(1));
    for (index, weight) in weights.enumerate() {
        match left.checked_sub(weight) {
            Some(less) => left = less,
            None => return Some(index),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_drawn_as_often_as_it_weighs() {
        let mut rng = Rng::with_seed(1);
        let mut drawn = [0; 3];
        for _ in 0..10_000 {
            drawn[weighted(&mut rng, [3, 0, 1].into_iter()).unwrap()] += 1;
        }
        assert!((7_300..7_700).contains(&drawn[0]) && drawn[1] == 0, "{drawn:?}");
        assert_eq!(weighted(&mut rng, [0, 0].into_iter()), None);
        assert_eq!(weighted(&mut rng, std::iter::empty()), None);
    }
}
