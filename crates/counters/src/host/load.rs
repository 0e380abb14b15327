//! `/proc/loadavg`: how many tasks ran, or waited for a processor, a disk or a mount.

use super::nothing;
use crate::fields::{Line, Word};
use crate::problem::Problem;

/// Means over one, five and fifteen minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub one: f64,
    pub five: f64,
    pub fifteen: f64,
    /// Running or ready at this moment.
    pub running: Option<u64>,
}

/// Whether a text is it: nothing but that line.
pub fn is_likely(text: &str) -> bool {
    text.lines().count() == 1 && text.contains('/') && read(text.as_bytes()).is_ok()
}

/// Reads the file's content.
///
/// # Errors
/// Its line has no three numbers.
pub fn read(text: &[u8]) -> Result<Load, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut line = Line::all(&text).next().ok_or_else(nothing)?;
    let mean = |word: Word<'_>| {
        let parsed: Option<f64> = word.text.parse().ok();
        let finite = parsed.filter(|value| value.is_finite() && *value >= 0.0);
        finite.ok_or_else(|| word.unexpected("a mean"))
    };
    let (one, five, fifteen) = (mean(line.word())?, mean(line.word())?, mean(line.word())?);
    let running = line.word().text.split_once('/').and_then(|(running, _)| running.parse().ok());
    Ok(Load { one, five, fifteen, running })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_means_and_who_runs_are_read() {
        let load = read(b"8.20 1.18 0.12 3/80 11206\n").unwrap();
        assert_eq!((load.one, load.fifteen, load.running), (8.2, 0.12, Some(3)));
        assert!(is_likely("0.1 0.2 0.3 1/2 3\n") && !is_likely("0.1 0.2 0.3\n1/2\n"));
        assert!(read(b"0.1 x 3").unwrap_err().to_string().contains("column 5: \"x\""));
        assert!(read(b"").is_err() && read(b"NaN 1 1").is_err());
    }
}
