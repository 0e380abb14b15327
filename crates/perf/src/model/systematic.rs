//! Whether what a fit leaves over is chance, or hangs together in the order of the load: then it
//! is the model that is off, however small its typical error, and its intervals, which take what
//! is left for chance, may be too narrow.
//!
//! Two questions, each by a permutation test (what is left over is dealt out anew to the loads, a
//! thousand times, always in the same way):
//!
//! - Are neighbours alike? The sum of products of neighbours, of the means at each load. A curve
//!   with two knees, or one that bends back, leaves a wave behind.
//! - Where loads were measured more than once: do they differ by more than their repetitions?
//!
//! A fit takes away some of what hangs together, so that both tests say *chance* more often than
//! they should, and not less often. With few points they see large patterns only.

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Systematic {
    /// Chance of a pattern as clear as this where there is none.
    pub chance: f64,
    /// The largest of the means at a load, of 1: how far the model is off there.
    pub worst: f64,
    /// Where that is.
    pub at: f64,
}

/// Dealings out.
const DRAWS: usize = 1_000;

/// A pattern that chance makes less often than this is one. Of two tests.
const CHANCE_MAX: f64 = 0.01;

/// Loads that have an order worth testing.
const LOADS_MIN: usize = 5;

impl Systematic {
    /// Of loads with their residuals, in any order. `None` where chance may be all.
    pub fn in_residuals(residuals: &[(f64, f64)]) -> Option<Self> {
        let mut sorted = residuals.to_vec();
        sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let groups: Vec<usize> = sorted.chunk_by(|(a, _), (b, _)| a == b).map(<[_]>::len).collect();
        if groups.len() < LOADS_MIN {
            return None;
        }
        let mut values: Vec<f64> = sorted.iter().map(|(_, residual)| *residual).collect();
        let is_repeated = groups.len() < values.len();
        let observed = [alike(&means(&values, &groups)), apart(&values, &groups)];
        let mut as_clear = [1_usize; 2];
        let mut random = fastrand::Rng::with_seed(1);
        let largest = means(&values, &groups);
        for _ in 0..DRAWS {
            random.shuffle(&mut values);
            let drawn = [alike(&means(&values, &groups)), apart(&values, &groups)];
            for ((count, drawn), observed) in as_clear.iter_mut().zip(drawn).zip(observed) {
                // Sums in another order differ in their last digits.
                *count += usize::from(drawn >= observed - 1e-12 * observed.abs());
            }
        }
        let chance = |count: usize| count as f64 / (DRAWS + 1) as f64;
        let of_repeated = if is_repeated { chance(as_clear[1]) } else { 1.0 };
        let least = chance(as_clear[0]).min(of_repeated);
        let places = sorted.chunk_by(|(a, _), (b, _)| a == b).map(|group| group[0].0);
        let (at, worst) =
            places.zip(largest).max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
        (least < CHANCE_MAX).then_some(Self { chance: least, worst: worst.exp_m1(), at })
    }
}

impl std::fmt::Display for Systematic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worst, at, .. } = self;
        write!(
            f,
            "the model is off in a pattern over the load, not by chance ({:+.0} % at {at}): \
             something is not in it, such as a second knee or a server that slows down; its \
             intervals may be too narrow, and it says nothing beyond what was measured",
            100.0 * worst
        )
    }
}

/// At each load.
fn means(values: &[f64], groups: &[usize]) -> Vec<f64> {
    let mut from = 0;
    let of = |&count: &usize| {
        let own = &values[from..from + count];
        from += count;
        own.iter().sum::<f64>() / count as f64
    };
    groups.iter().map(of).collect()
}

fn alike(means: &[f64]) -> f64 {
    means.windows(2).map(|pair| pair[0] * pair[1]).sum()
}

/// Squares of the means, each as often as it has values.
fn apart(values: &[f64], groups: &[usize]) -> f64 {
    let squares = means(values, groups).into_iter().zip(groups);
    squares.map(|(mean, &count)| count as f64 * mean * mean).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(random: &mut fastrand::Rng) -> f64 {
        0.05 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0)
    }

    #[test]
    fn chance_is_seldom_taken_for_a_pattern() {
        for repeats in [1, 5] {
            let found = (0..300).filter(|seed| {
                let mut random = fastrand::Rng::with_seed(*seed);
                let loads = (1..=10).flat_map(|load| std::iter::repeat_n(f64::from(load), repeats));
                let residuals: Vec<(f64, f64)> =
                    loads.map(|load| (load, noise(&mut random))).collect();
                Systematic::in_residuals(&residuals).is_some()
            });
            let found = found.count();
            assert!(found <= 12, "{repeats}: {found} of 300");
        }
    }

    #[test]
    fn a_wave_is_seen_through_noise_and_its_crest_is_named() {
        for repeats in [1, 5] {
            let seen = (0..50).filter(|seed| {
                let mut random = fastrand::Rng::with_seed(*seed);
                let loads = (1..=12).flat_map(|load| std::iter::repeat_n(f64::from(load), repeats));
                let wave = |load: f64| 0.15 * (load / 2.0).sin();
                let residuals: Vec<(f64, f64)> =
                    loads.map(|load| (load, wave(load) + noise(&mut random))).collect();
                Systematic::in_residuals(&residuals).is_some_and(|found| found.worst.abs() > 0.1)
            });
            let seen = seen.count();
            assert!(seen >= 45, "{repeats}: {seen} of 50");
        }
        assert_eq!(Systematic::in_residuals(&[(1.0, 0.5), (2.0, 0.5), (3.0, -0.5)]), None);
    }
}
