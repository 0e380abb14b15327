//! What fuzz targets run, as ordinary functions, so that tests can run the same.
//!
//! Each takes arbitrary bytes, and panics only when what it says does not hold.

use crate::basic::log;
use crate::basic::log::time::Reading;

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
