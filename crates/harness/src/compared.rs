//! Which of two is faster, in a sentence that a test has chosen.
//!
//! What was repeated is compared by the ratio of its typical values with its interval of 95 %
//! ([`perf::stats::ratio`]): where 1 lies in that, or where nothing was repeated, the two cannot be
//! distinguished.

pub use perf::record::Better;
use perf::stats::{Estimate, Interval, Sample, ratio};

/// What is repeated, for a sentence on how to have more of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repeated {
    /// The record of a run.
    Records,
    /// What a command does once and again (`--repeats`).
    Runs,
}

/// One of two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Which {
    First,
    Second,
}

/// What two samples say about each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// How many times as fast the second is.
    pub times: Estimate,
}

impl Compared {
    /// `None` where there is no ratio.
    pub fn of(first: &Sample, second: &Sample, better: Better) -> Option<Self> {
        Some(Self::of_ratio(ratio(first, second)?, better))
    }

    /// The same, of a ratio of the second to the first.
    pub fn of_ratio(ratio: Estimate, better: Better) -> Self {
        Self {
            times: match better {
                Better::Larger => ratio,
                Better::Smaller => inverse(&ratio),
            },
        }
    }

    /// The faster one, if the numbers show it.
    pub fn faster(&self) -> Option<Which> {
        let ci = self.times.ci95?;
        match (ci.lo > 1.0, ci.hi < 1.0) {
            (true, _) => Some(Which::Second),
            (_, true) => Some(Which::First),
            _ => None,
        }
    }

    /// Of two of these names.
    pub fn sentence(&self, first: &str, second: &str) -> String {
        self.sentence_of(Repeated::Runs, first, second)
    }

    /// The same, where these are repeated.
    pub fn sentence_of(&self, repeated: Repeated, first: &str, second: &str) -> String {
        match (self.faster(), self.times.ci95) {
            (which, Some(ci)) if is_wide(&ci) => {
                let least = ci.lo.max(1.0 / ci.hi);
                match which {
                    Some(Which::First) => format!("{first} is faster, at least {least:.2} times"),
                    Some(Which::Second) => format!("{second} is faster, at least {least:.2} times"),
                    None => format!(
                        "{first} and {second} cannot be distinguished: {}",
                        repeated.differ_too_much()
                    ),
                }
            }
            (Some(Which::First), _) => {
                format!("{first} is faster {}", amount(&inverse(&self.times)))
            }
            (Some(Which::Second), _) => format!("{second} is faster {}", amount(&self.times)),
            (None, Some(ci)) => format!(
                "{first} and {second} cannot be distinguished: {second} is {:.2} to {:.2} times as \
                 fast (95 %)",
                ci.lo, ci.hi
            ),
            (None, None) => {
                format!("{first} and {second} cannot be distinguished: {}", repeated.are_single())
            }
        }
    }
}

impl Repeated {
    const fn differ_too_much(self) -> &'static str {
        match self {
            Self::Records => "the records of one differ too much among themselves; more of each",
            Self::Runs => "the runs of one differ too much among themselves; more --repeats",
        }
    }

    const fn are_single(self) -> &'static str {
        match self {
            Self::Records => "one record has no interval; several of each, taken in turn, have one",
            Self::Runs => "there is one run, which has no interval; --repeats 5 has one",
        }
    }
}

/// A, B, C, ...: how places are called beside each other.
pub fn letter(number: usize) -> String {
    match u8::try_from(number) {
        Ok(number @ 0..26) => char::from(b'A' + number).to_string(),
        _ => (number + 1).to_string(),
    }
}

/// An interval of a ratio that says next to nothing, and is not printed.
pub fn is_wide(ci: &Interval) -> bool {
    const WIDE: f64 = 10.0;
    ci.hi > WIDE * ci.lo
}

fn inverse(ratio: &Estimate) -> Estimate {
    let ci95 = ratio.ci95.map(|mut ci| {
        (ci.lo, ci.hi) = (1.0 / ci.hi, 1.0 / ci.lo);
        ci
    });
    Estimate { value: 1.0 / ratio.value, ci95 }
}

/// `by 12.3 % (8.1 to 16.7 %)`, and from twice as fast on `2.41 times (2.20 to 2.65)`.
fn amount(times: &Estimate) -> String {
    let percent = |times: f64| 100.0 * (times - 1.0);
    match times.ci95 {
        Some(ci) if times.value < 2.0 => format!(
            "by {:.1} % ({:.1} to {:.1} %)",
            percent(times.value),
            percent(ci.lo),
            percent(ci.hi)
        ),
        Some(ci) => format!("{:.2} times ({:.2} to {:.2})", times.value, ci.lo, ci.hi),
        None => format!("{:.2} times", times.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence_of(first: &[f64], second: &[f64], better: Better) -> String {
        let sample = |values: &[f64]| Sample::new(values.to_vec()).unwrap();
        let compared = Compared::of(&sample(first), &sample(second), better).unwrap();
        compared.sentence("A", "B")
    }

    #[test]
    fn the_data_decide_who_is_faster() {
        let (slow, fast) = ([100.0, 101.0, 99.0], [110.0, 111.0, 109.0]);
        assert!(sentence_of(&slow, &fast, Better::Larger).starts_with("B is faster by 10.0 % (7."));
        assert!(sentence_of(&fast, &slow, Better::Larger).starts_with("A is faster by 10.0 % (7."));
        assert!(
            sentence_of(&slow, &fast, Better::Smaller).starts_with("A is faster by 10.0 % (7.")
        );
        assert!(
            sentence_of(&fast, &slow, Better::Smaller).starts_with("B is faster by 10.0 % (7.")
        );
        let twice = [300.0, 301.0, 302.0];
        assert!(
            sentence_of(&slow, &twice, Better::Larger).starts_with("B is faster 3.01 times (2.")
        );
    }

    #[test]
    fn what_lies_within_the_spread_cannot_be_decided() {
        let noisy = [80.0, 100.0, 125.0];
        let sentence_for = sentence_of(&noisy, &[90.0, 105.0, 130.0], Better::Larger);
        assert!(
            sentence_for.starts_with("A and B cannot be distinguished: B is 0."),
            "{sentence_for}"
        );
        // Two runs that differ tenfold have an interval of many powers of ten.
        let wild = sentence_of(&[10.0, 100.0], &[50.0, 400.0], Better::Larger);
        assert!(wild.contains("differ too much among themselves"), "{wild}");
        let far = sentence_of(&[1.0, 1.2, 0.9], &[900.0, 2_000.0, 400.0], Better::Larger);
        assert!(far.starts_with("B is faster, at least "), "{far}");
        let once = sentence_of(&[100.0], &[900.0], Better::Larger);
        assert!(once.contains("cannot be distinguished: there is one run"), "{once}");
    }

    #[test]
    fn what_is_repeated_is_what_there_has_to_be_more_of() {
        let sample = |values: &[f64]| Sample::new(values.to_vec()).unwrap();
        let sentence = |first: &[f64], second: &[f64]| {
            let compared = Compared::of(&sample(first), &sample(second), Better::Larger).unwrap();
            compared.sentence_of(Repeated::Records, "A", "B")
        };
        for sentence in [sentence(&[100.0], &[900.0]), sentence(&[10.0, 100.0], &[50.0, 400.0])] {
            assert!(sentence.contains("record") && sentence.contains("of each"), "{sentence}");
            assert!(!sentence.contains("--repeats"), "{sentence}");
        }
    }
}
