//! What of the paper's findings is seen here: of each, a sentence that all repetitions have chosen.

use client::write_behind::PolicyName;
use harness::compared::{Better, Compared, Which};
use harness::records::sample;
use load::latencies::{SLOW, SPIKES_OF_A_RHYTHM, STANDS_OUT, Summary};
use perf::stats::{Estimate, Sample};
use perf::units::Nanos;
use report::policies::{Finding, Seen};

use super::measured::{Measured, Outcome, Scene, Speed};

/// What differs from the paper's by more is of another size.
const ANOTHER_SIZE: f64 = 2.0;
/// A mean that slow calls make larger by less is not made of them.
const WEIGHS: f64 = 1.2;
/// A slope of so much less than another's is flat beside it.
const FLAT: f64 = 0.1;

/// The paper's: calls between spikes, what they do to the mean, and by how much calls are slower
/// with the faster server.
const PERIOD_CALLS: f64 = 85.0;
const INFLATION: f64 = 3.5;
const INVERSION: f64 = 149.0 / 113.0;

/// The findings of the measurement.
pub(super) fn findings(outcome: &Outcome) -> Vec<Finding> {
    let of = |policy, scene| outcome.of(policy, scene, Speed::Fast);
    let mut findings = Vec::new();
    if let Some(linux) = of(PolicyName::Linux244, Scene::Spikes) {
        findings.extend(rhythm(&summaries(linux, Nanos::ZERO)));
        findings.extend(weight(&summaries(linux, SLOW)));
    }
    if let Some(growing) = of(PolicyName::NoFlush, Scene::Growth) {
        findings.extend(without_rhythm(&summaries(growing, SLOW)));
        let flat = of(PolicyName::Hashed, Scene::Growth);
        let slope = |measured: &Measured| measured.summary()?.slope_us_per_1000;
        findings.extend(flat.map(|flat| growth(slope(growing), slope(flat))));
    }
    let jitter = |policy| of(policy, Scene::Jitter);
    if let (Some(held), Some(released)) = (jitter(PolicyName::Hashed), jitter(PolicyName::Unlocked))
    {
        findings.extend(spread(held, released));
    }
    findings.extend(inversion(outcome));
    findings
}

/// Of every repetition, without its first call, as the paper has it.
fn summaries(measured: &Measured, slow: Nanos) -> Vec<Summary> {
    measured.runs.iter().filter_map(|run| Summary::of(run.calls.get(1..)?, slow)).collect()
}

fn found(seen: Seen, text: String) -> Finding {
    Finding { seen, text }
}

/// Whether a value has the paper's size.
fn sized(value: f64, paper: f64) -> Seen {
    let times = (value / paper).max(paper / value);
    if times <= ANOTHER_SIZE { Seen::AsThere } else { Seen::OfAnotherSize }
}

/// `12.3 (11.0 to 14.2)`: the median and the range.
fn spanned(sample: &Sample) -> String {
    match sample.max() - sample.min() < 0.05 {
        true => format!("{:.1}", sample.median()),
        false => format!("{:.1} ({:.1} to {:.1})", sample.median(), sample.min(), sample.max()),
    }
}

/// Are there spikes, and do they come in a rhythm? Of summaries whose slow calls are all that stand
/// out: with a fast network a flush takes less than 1 ms, and is a spike all the same.
fn rhythm(runs: &[Summary]) -> Option<Finding> {
    let spikes = sample(runs.iter().map(|run| run.spikes as f64))?;
    let periods: Vec<f64> =
        runs.iter().filter_map(|run| Some(run.period.as_ref()?.calls)).collect();
    let paper = "paper: about every 85; 192 requests of a page are 96 calls of 8 KiB";
    let (rhythmic, all) = (periods.len(), runs.len());
    if let Some(period) = sample(periods).filter(|_| 2 * rhythmic > all) {
        let seen = sized(period.median(), PERIOD_CALLS);
        let calls = spanned(&period);
        let text = format!(
            "linux-2.4.4 has a spike every {calls} calls, in {rhythmic} of {all} runs ({paper})"
        );
        return Some(found(seen, text));
    }
    let (seen, text) = spikes_alone(spikes.median());
    Some(found(seen, format!("{text} ({paper})")))
}

/// What so many spikes show that come in no rhythm.
fn spikes_alone(spikes: f64) -> (Seen, String) {
    match spikes {
        0.0 => (Seen::Not, "linux-2.4.4 has no call that stands out".to_owned()),
        few if few < SPIKES_OF_A_RHYTHM as f64 => (
            Seen::Unknown,
            format!(
                "linux-2.4.4 has {few:.0} spikes of {STANDS_OUT} times the median or more; whether \
                 they come in a rhythm shows from {SPIKES_OF_A_RHYTHM} on"
            ),
        ),
        many => {
            (Seen::Not, format!("linux-2.4.4 has {many:.0} spikes, and no rhythm in most runs"))
        }
    }
}

/// What do slow calls do to the mean?
fn weight(runs: &[Summary]) -> Option<Finding> {
    let times = sample(runs.iter().map(|run| run.inflation().unwrap_or(f64::NAN)));
    let Some(times) = times else {
        let text = "nearly all calls of linux-2.4.4 take over 1 ms: there is no mean without slow \
                    ones to compare with (paper: 3.5 times)";
        return Some(found(Seen::Unknown, text.to_owned()));
    };
    let seen = match (times.min() > WEIGHS, times.max() > WEIGHS) {
        (true, _) => sized(times.median(), INFLATION),
        (false, true) => Seen::Unknown,
        (false, false) => Seen::Not,
    };
    let times = spanned(&times);
    Some(found(
        seen,
        format!("with its calls over 1 ms its mean is {times} times that without (paper: 3.5)"),
    ))
}

/// Without limits there is nothing to flush for.
fn without_rhythm(runs: &[Summary]) -> Option<Finding> {
    let slow = sample(runs.iter().map(|run| run.slow_calls as f64))?;
    let rhythmic = runs.iter().filter(|run| run.period.is_some()).count();
    let (seen, text) = match (rhythmic, 2 * rhythmic > runs.len()) {
        (0, _) => (Seen::AsThere, "and no rhythm in them".to_owned()),
        (_, true) => {
            (Seen::Not, format!("and a rhythm in them in {rhythmic} of {} runs", runs.len()))
        }
        (_, false) => (
            Seen::Unknown,
            format!(
                "and a rhythm in them in {rhythmic} of {} runs, none in the others",
                runs.len()
            ),
        ),
    };
    let calls = runs.first().map_or(0, |run| run.calls);
    Some(found(
        seen,
        format!(
            "no-flush has {:.0} calls over 1 ms of {calls}, {text} (paper: no flushes, no rhythm)",
            slow.median()
        ),
    ))
}

/// Does the list that is scanned slow calls down, and does the hash table not?
fn growth(growing: Option<Estimate>, flat: Option<Estimate>) -> Finding {
    let paper = "(paper: figure 3 grows, figure 4 is flat)";
    let of = |slope: Option<Estimate>| slope.and_then(|slope| Some((slope.value, slope.ci95?)));
    let (Some((grows, ci)), Some((stays, flat))) = (of(growing), of(flat)) else {
        let text = format!("the files are too short to tell whether calls slow down {paper}");
        return found(Seen::Unknown, text);
    };
    let seen = match () {
        () if ci.hi <= 0.0 => Seen::Not,
        () if ci.lo <= 0.0 => Seen::Unknown,
        () if flat.contains(0.0) || stays <= FLAT * grows => Seen::AsThere,
        () if flat.hi < ci.lo => Seen::OfAnotherSize,
        () if flat.lo > ci.hi => Seen::Not,
        () => Seen::Unknown,
    };
    let text = format!(
        "in 1,000 calls no-flush changes by {grows:+.2} us a call (95 %: {:+.2} to {:+.2}), hashed \
         by {stays:+.2} ({:+.2} to {:+.2}) {paper}",
        ci.lo, ci.hi, flat.lo, flat.hi
    );
    found(seen, text)
}

/// The first of two is what the paper found to be larger.
fn larger_first(first: &Sample, second: &Sample) -> Option<(Seen, Compared)> {
    let compared = Compared::of(first, second, Better::Smaller)?;
    let seen = match compared.faster() {
        Some(Which::Second) => Seen::AsThere,
        Some(Which::First) => Seen::Not,
        None => Seen::Unknown,
    };
    Some((seen, compared))
}

/// Does releasing the lock lower the spread?
fn spread(held: &Measured, released: &Measured) -> Option<Finding> {
    let spreads = |measured: &Measured| sample(measured.spreads_us());
    let means = |measured: &Measured| sample(measured.usual_means_us());
    let (before, after) = (spreads(held)?, spreads(released)?);
    let (seen, _) = larger_first(&before, &after)?;
    let (mean_before, mean_after) = (means(held)?, means(released)?);
    Some(found(
        seen,
        format!(
            "with the lock released the spread (standard deviation of calls up to 1 ms) goes from \
             {} to {} us, their mean from {} to {} (paper: 149 to 127)",
            spanned(&before),
            spanned(&after),
            spanned(&mean_before),
            spanned(&mean_after)
        ),
    ))
}

/// Is the writer faster with the slower server?
fn inversion(outcome: &Outcome) -> Option<Finding> {
    let means = |policy, speed| sample(outcome.of(policy, Scene::Jitter, speed)?.usual_means_us());
    let of = |policy| Some((means(policy, Speed::Fast)?, means(policy, Speed::Slow)?));
    let ((fast, slow), (free_fast, free_slow)) =
        (of(PolicyName::Hashed)?, of(PolicyName::Unlocked)?);
    let (seen, compared) = larger_first(&fast, &slow)?;
    let seen = match seen {
        Seen::AsThere => sized(compared.times.value, INVERSION),
        seen => seen,
    };
    Some(found(
        seen,
        format!(
            "with the faster server calls up to 1 ms take {} us on average, with the slow one {} \
             (paper: 149 and 113); with the lock released {} and {} (paper: 127 and 105)",
            spanned(&fast),
            spanned(&slow),
            spanned(&free_fast),
            spanned(&free_slow)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use perf::stats::Interval;

    use super::*;

    /// `spikes` calls of `spike_us` among `calls` of 10 us: in a rhythm, or bunched.
    fn run(calls: usize, every: Option<usize>, spike_us: u64) -> Vec<Nanos> {
        let of = |n: usize| match every {
            Some(every) if n % every == every - 1 => Nanos::from_micros(spike_us),
            _ => Nanos::from_micros(10 + n as u64 % 3),
        };
        (0..calls).map(of).collect()
    }

    fn summaries(calls: &[Nanos], slow: Nanos) -> Vec<Summary> {
        vec![Summary::of(calls, slow).unwrap(); 3]
    }

    fn seen(finding: Option<Finding>) -> Seen {
        finding.unwrap().seen
    }

    #[test]
    fn spikes_that_a_plot_shows_are_never_not_seen() {
        let of = |calls: &[Nanos]| rhythm(&summaries(calls, Nanos::ZERO));
        let as_there = of(&run(5_000, Some(90), 20_000)).unwrap();
        assert_eq!(as_there.seen, Seen::AsThere, "{as_there:?}");
        assert!(as_there.text.contains("every 90.0 calls"), "{as_there:?}");
        // Under 1 ms, and yet forty times the others.
        assert_eq!(seen(of(&run(5_000, Some(90), 400))), Seen::AsThere);
        assert_eq!(seen(of(&run(20_000, Some(400), 20_000))), Seen::OfAnotherSize);
        // A short file with five spikes: too few for a rhythm.
        let few = of(&run(512, Some(96), 20_000)).unwrap();
        assert_eq!(few.seen, Seen::Unknown, "{few:?}");
        assert!(few.text.contains("has 5 spikes"), "{few:?}");
        assert_eq!(seen(of(&run(5_000, None, 0))), Seen::Not);
    }

    #[test]
    fn forty_times_is_not_the_paper_s_three_and_a_half() {
        let of = |every, us| weight(&summaries(&run(5_000, every, us), SLOW));
        assert_eq!(seen(of(Some(100), 2_500)), Seen::AsThere);
        let forty = of(Some(100), 40_000).unwrap();
        assert_eq!(forty.seen, Seen::OfAnotherSize, "{forty:?}");
        assert!(forty.text.contains("(paper: 3.5)"), "{forty:?}");
        assert_eq!(seen(of(None, 0)), Seen::Not);
        let all_slow = weight(&summaries(&[Nanos::from_millis(2); 100], SLOW));
        assert_eq!(seen(all_slow), Seen::Unknown);
    }

    #[test]
    fn a_rhythm_without_limits_is_not_what_the_paper_found() {
        let of = |every| without_rhythm(&summaries(&run(5_000, every, 20_000), SLOW));
        assert_eq!(seen(of(None)), Seen::AsThere);
        assert_eq!(seen(of(Some(90))), Seen::Not);
    }

    #[test]
    fn growth_is_seen_when_one_grows_and_the_other_does_not() {
        let slope = |value, lo, hi| Some(Estimate { value, ci95: Some(Interval { lo, hi }) });
        let of = |a, b| growth(a, b).seen;
        let (grows, stays) = (slope(5.0, 4.0, 6.0), slope(0.0, -0.1, 0.1));
        assert_eq!(of(grows, stays), Seen::AsThere);
        assert_eq!(of(stays, stays), Seen::Unknown);
        assert_eq!(of(slope(-2.0, -3.0, -1.0), stays), Seen::Not);
        assert_eq!(of(grows, slope(2.0, 1.5, 2.5)), Seen::OfAnotherSize);
        assert_eq!(of(grows, slope(9.0, 8.0, 10.0)), Seen::Not);
        assert_eq!(of(grows, slope(5.0, 4.5, 5.5)), Seen::Unknown);
        assert_eq!(of(None, stays), Seen::Unknown);
    }

    #[test]
    fn which_of_two_is_larger_a_test_decides() {
        let sample = |values: &[f64]| Sample::new(values.to_vec()).unwrap();
        let (high, low) = (sample(&[20.0, 21.0, 19.5]), sample(&[10.0, 10.5, 9.8]));
        assert_eq!(larger_first(&high, &low).unwrap().0, Seen::AsThere);
        assert_eq!(larger_first(&low, &high).unwrap().0, Seen::Not);
        assert_eq!(larger_first(&low, &low).unwrap().0, Seen::Unknown);
        let once = sample(&[5.0]);
        assert_eq!(larger_first(&high, &once).unwrap().0, Seen::Unknown);
    }
}
