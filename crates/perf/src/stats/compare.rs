//! Two samples beside each other: whether they differ (Mann and Whitney), and by how much.

use super::{Estimate, Interval, Sample, normal_tail, student_t_975};

/// What two samples say about each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    pub verdict: Verdict,
    /// Chance of ranks at least this uneven if both came from one distribution, both sides.
    pub p_value: f64,
    /// Mann and Whitney's U of the first sample: pairs in which its value is the larger one, a
    /// tie counting half.
    pub u: f64,
    /// How much the second median is above the first, as a share of the first.
    pub change: f64,
}

/// The second sample against the first, with 95 % confidence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The second sample's values are larger.
    Larger,
    /// The second sample's values are smaller.
    Smaller,
    /// The difference, if any, is within the noise.
    CannotTell,
}

/// Mann-Whitney test of `second` against `first`: normal approximation with corrections for ties
/// and continuity, good from about eight values each; below four each it can never tell.
pub fn compare(first: &Sample, second: &Sample) -> Comparison {
    let (n1, n2) = (first.n() as f64, second.n() as f64);
    let (rank_sum, ties) = ranks(first, second);
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;

    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    let distance = ((u - n1 * n2 / 2.0).abs() - 0.5).max(0.0);
    let p_value = if variance > 0.0 {
        (2.0 * normal_tail(distance / variance.sqrt())).min(1.0)
    } else {
        1.0 // all values are the same
    };
    let verdict = match u < n1 * n2 / 2.0 {
        _ if p_value > 0.05 => Verdict::CannotTell,
        true => Verdict::Larger,
        false => Verdict::Smaller,
    };
    Comparison { verdict, p_value, u, change: second.median() / first.median() - 1.0 }
}

/// How many times the second sample's typical value is the first's: the ratio of their geometric
/// means, with the interval of Welch's t on the logarithms. It takes unequal spreads and few
/// repetitions, two each at least; with one there is no interval, and so nothing is decided.
/// `None` where a value is not above 0, for which there is no ratio.
pub fn ratio(first: &Sample, second: &Sample) -> Option<Estimate> {
    let of = |sample: &Sample| {
        let is_positive = sample.min() > 0.0;
        let logarithms: Vec<f64> = sample.sorted.iter().map(|value| value.ln()).collect();
        is_positive.then(|| Sample::new(logarithms).ok()).flatten()
    };
    let (first, second) = (of(first)?, of(second)?);
    let difference = second.mean() - first.mean();
    // Variances of the means, each with its freedom.
    let of = |sample: &Sample| {
        let variance = sample.standard_deviation()?.powi(2) / sample.n() as f64;
        Some((variance, sample.n() - 1))
    };
    let half = of(&first).zip(of(&second)).and_then(|((a, n_a), (b, n_b))| {
        let squares = a.powi(2) / n_a as f64 + b.powi(2) / n_b as f64;
        let freedom = if squares > 0.0 { (a + b).powi(2) / squares } else { (n_a + n_b) as f64 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1 to n_a + n_b"
        )]
        let t = student_t_975(freedom as usize)?;
        Some(t * (a + b).sqrt())
    });
    Some(Estimate {
        value: difference.exp(),
        ci95: half
            .map(|half| Interval { lo: (difference - half).exp(), hi: (difference + half).exp() }),
    })
}

/// Sum of the first sample's ranks among all values (ties share their mean rank), and the sum of
/// t^3 - t over all groups of t tied values.
fn ranks(first: &Sample, second: &Sample) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> = Vec::with_capacity(first.n() + second.n());
    all.extend(first.sorted.iter().map(|&v| (v, true)));
    all.extend(second.sorted.iter().map(|&v| (v, false)));
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

    let (mut below, mut rank_sum, mut ties) = (0.0, 0.0, 0.0);
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let t = group.len() as f64;
        let of_first = group.iter().filter(|(_, is_first)| *is_first).count() as f64;
        rank_sum += of_first * (below + (t + 1.0) / 2.0);
        ties += t.powi(3) - t;
        below += t;
    }
    (rank_sum, ties)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::tests::{Uniform, close, sample};

    #[test]
    fn a_ratio_by_hand() {
        // Logarithms to base 2: 0, 2 and 2, 4. Means 1 and 3, variances 2 and 2, of the means 1
        // and 1: standard error sqrt(2), freedom (1 + 1)^2 / (1 + 1) = 2, t 4.303.
        let ratio = ratio(&sample([1.0, 4.0]), &sample([4.0, 16.0])).unwrap();
        close(ratio.value, 4.0, 1e-9);
        let ci = ratio.ci95.unwrap();
        close(ci.hi, 4.0 * (4.303 * 2f64.sqrt()).exp2(), 1e-6);
        close(ci.lo, 4.0 / (4.303 * 2f64.sqrt()).exp2(), 1e-6);
        let same = super::ratio(&sample([3.0, 3.0]), &sample([6.0, 6.0, 6.0])).unwrap();
        close(same.value, 2.0, 1e-9);
        let ci = same.ci95.unwrap();
        assert!((ci.hi - ci.lo).abs() < 1e-9, "{ci:?}");
    }

    #[test]
    fn what_has_no_repetition_or_no_ratio_has_no_interval_or_none() {
        let ratio = |a: &[f64], b: &[f64]| ratio(&sample(a.to_vec()), &sample(b.to_vec()));
        let once = ratio(&[2.0], &[3.0, 3.1]).unwrap();
        assert_eq!(once.ci95, None);
        assert!(once.value > 1.5);
        assert_eq!(ratio(&[0.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(ratio(&[-1.0, 1.0], &[1.0, 1.0]), None);
    }

    #[test]
    fn a_ratio_s_interval_covers_the_truth_as_often_as_it_promises() {
        let mut uniform = Uniform(3);
        let mut covered = 0;
        for _ in 0..400 {
            let mut drawn = |n: usize, times: f64| {
                sample((0..n).map(|_| times * (1.0 + 0.2 * uniform.next())).collect::<Vec<_>>())
            };
            let (first, second) = (drawn(5, 1.0), drawn(4, 1.3));
            let ci = ratio(&first, &second).unwrap().ci95.unwrap();
            covered += usize::from(ci.contains(1.3));
        }
        // 380 expected; 367 is three standard deviations below.
        assert!(covered >= 367, "{covered} of 400");
    }

    #[test]
    fn mann_and_whitneys_own_counting() {
        // U counts pairs: of the 16 pairs, the first is larger in 2.
        let (a, b) = (sample([1.0, 2.0, 3.0, 6.0]), sample([4.0, 5.0, 7.0, 8.0]));
        let c = compare(&a, &b);
        assert_eq!(c.u, 2.0);
        // |2 - 8| - 0.5 = 5.5; variance 16 * 9 / 12 = 12; z 1.5877; two tails 0.1124.
        close(c.p_value, 0.1124, 5e-4);
        assert_eq!(c.verdict, Verdict::CannotTell);
        close(c.change, 6.0 / 2.5 - 1.0, 1e-12);
    }

    #[test]
    fn ties_share_their_rank_and_shrink_the_variance() {
        // Ranks of the first: 1, 2.5, 4 => sum 7.5, U 1.5. Ties: one group of two, t^3 - t = 6.
        let c = compare(&sample([1.0, 2.0, 3.0]), &sample([2.0, 4.0, 5.0]));
        assert_eq!(c.u, 1.5);
        let z = (3.0 - 0.5) / (9.0f64 / 12.0 * (7.0 - 6.0 / 30.0)).sqrt();
        close(c.p_value, 2.0 * normal_tail(z), 1e-12);
        let same = compare(&sample([5.0; 9]), &sample([5.0; 9]));
        assert_eq!((same.p_value, same.verdict), (1.0, Verdict::CannotTell));
    }

    #[test]
    fn a_clear_difference_is_reported_in_both_directions() {
        let low = sample((0..20).map(f64::from));
        let high = sample((0..20).map(|i| f64::from(i) + 15.0));
        assert_eq!(compare(&low, &high).verdict, Verdict::Larger);
        assert_eq!(compare(&high, &low).verdict, Verdict::Smaller);
    }
}
