//! What fuzz targets run, as ordinary functions, so that tests can run the same.
//!
//! Each takes arbitrary bytes, and panics only when what it says does not hold.

use crate::basic::log;
use crate::basic::log::time::Reading;
use crate::mix::listing;
use crate::mix::table::rounded;

/// A log of the Connectathon suite, or anything else: each line is in one place at most, in their
/// order, times are finite, and both readings of one are in their order.
pub fn connectathon_log(bytes: &[u8]) {
    let log = log::read(bytes);
    let problems = log.problems.iter().map(|problem| problem.line);
    let results = log.runs.iter().flat_map(|run| &run.tests).flat_map(|test| &test.results);
    for mut lines in [problems.collect::<Vec<_>>(), results.clone().map(|r| r.line).collect()] {
        assert!(lines.is_sorted() && lines.iter().all(|line| (1..=log.lines).contains(line)));
        let all = lines.len();
        lines.dedup();
        assert_eq!(all, lines.len());
    }
    for time in results.filter_map(|result| result.time) {
        assert!(time.hundredths_s.is_finite() && time.decimal_s.is_finite());
        assert!(time.hundredths_s <= time.decimal_s);
        assert_eq!(time.seconds().is_none(), time.reading == Reading::Ambiguous);
        assert!(time.from_rate_s.is_none_or(f64::is_finite));
    }
}

/// A mix in a file, or anything else: what is read sums to a hundred, and can be dealt.
pub fn mix_listing(text: &[u8]) {
    match listing::read(text, None) {
        Ok(shares) => {
            let sum: f64 = shares.iter().map(|(_, share)| share).sum();
            assert!((sum - 100.0).abs() < 1.0, "{sum}");
            let parts = rounded(&shares);
            assert!(parts.iter().map(|(_, part)| part).sum::<u32>() <= 10_000);
            assert!(!parts.is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_that_were_seeds_are_replayed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/mix_listing");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(seeds.len() >= 2);
        for seed in seeds {
            let text = std::fs::read(seed.unwrap().path()).unwrap();
            // Whole, and as far as a file may have been written.
            for end in 0..=text.len() {
                mix_listing(&text[..end]);
            }
        }
    }
}
