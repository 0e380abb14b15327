//! The seconds in a log, and the two ways to read some of them.
//!
//! The suite prints whole seconds, a point, and hundredths *without* a zero before
//! them, in a field of two places (`%ld.%-2ld`): `0.5 ` is 0.05 s and `1.7 ` is 1.07 s, while
//! programs that print decimals mean 0.5 s and 1.7 s. So one digit behind the point can be read
//! twice, and what decides is, in this order:
//!
//! 1. bytes a second, where they are printed: bytes over them are the seconds;
//! 2. the blank that the suite fills its field with: `0.5  seconds` has two;
//! 3. another line of the same run that was decided so: one program printed both.
//!
//! What is left has both readings, and is marked. Two digits, or a 0, can be read in one way. The
//! suite cuts what is below a hundredth.

use crate::basic::lines::Work;

/// The suite prints rates as a C `int`; larger ones come out below zero.
const PRINTED_RATE_MAX: u64 = i32::MAX as u64;

/// Bytes a second, as printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rate {
    Exactly(u64),
    /// No time had passed, or the rate did not fit where it was stored.
    Above(u64),
}

/// A time, as it can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// As the suite means it: hundredths, and as decimals. The same, unless there is one digit.
    pub hundredths_s: f64,
    pub decimal_s: f64,
    pub reading: Reading,
    /// From the bytes and bytes a second: not cut to hundredths.
    pub from_rate_s: Option<f64>,
}

/// Why a time is read as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reading {
    /// There is one way to read it.
    Plain,
    /// Bytes a second tell.
    Rate {
        is_hundredths: bool,
    },
    /// The suite's blank tells: hundredths.
    Blank,
    /// Another line of the run tells.
    Run {
        is_hundredths: bool,
    },
    Ambiguous,
}

impl Reading {
    /// A word for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rate { .. } => "rate",
            Self::Blank => "blank",
            Self::Run { .. } => "run",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// What was found out of one digit behind the point.
    pub(super) const fn is_hundredths(self) -> Option<bool> {
        match self {
            Self::Plain | Self::Ambiguous => None,
            Self::Rate { is_hundredths } | Self::Run { is_hundredths } => Some(is_hundredths),
            Self::Blank => Some(true),
        }
    }
}

impl Time {
    /// The one reading, if there is one.
    pub fn seconds(&self) -> Option<f64> {
        match self.reading {
            Reading::Plain => Some(self.decimal_s),
            reading => match reading.is_hundredths()? {
                true => Some(self.hundredths_s),
                false => Some(self.decimal_s),
            },
        }
    }
}

/// What follows the words: ` in S.H  seconds (N bytes/sec)`, or nothing.
pub(super) fn times(
    work: Work,
    numbers: &[u64; 3],
    rest: &str,
) -> Result<(Option<Time>, Option<Rate>), &'static str> {
    let rest = rest.trim_end();
    if rest.is_empty() {
        return Ok((None, None));
    }
    let rest = rest.strip_prefix(" in ").ok_or("something follows that is no time")?;
    let (printed, after) = rest.split_once("seconds").ok_or("a time without seconds")?;
    let rate = match after.trim() {
        "" => None,
        after => Some(rate(after).ok_or("bytes a second that are none")?),
    };
    let blanks = printed.len() - printed.trim_end_matches(' ').len();
    let time = time(printed.trim(), blanks, work.bytes(numbers), rate)?;
    Ok((Some(time), rate))
}

/// `(N bytes/sec)` or `(> N bytes/sec)`. A number below zero is one that the suite's integer could
/// not hold.
fn rate(text: &str) -> Option<Rate> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?.trim_end();
    let inner = inner.strip_suffix("bytes/sec")?.trim();
    match inner.strip_prefix('>') {
        Some(number) => number.trim().parse().ok().map(Rate::Above),
        None if inner.starts_with('-') => {
            inner.parse::<i64>().ok().map(|_| Rate::Above(PRINTED_RATE_MAX))
        }
        None => inner.parse().ok().map(Rate::Exactly),
    }
}

fn time(
    printed: &str,
    blanks: usize,
    bytes: Option<u64>,
    rate: Option<Rate>,
) -> Result<Time, &'static str> {
    const NO_TIME: &str = "a time that is none";
    let (whole, fraction) = printed.split_once('.').ok_or(NO_TIME)?;
    let is_number = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(whole, 12) || !is_number(fraction, 9) {
        return Err(NO_TIME);
    }
    let decimal_s: f64 = printed.parse().map_err(|_| NO_TIME)?;
    let from_rate_s = match (bytes, rate) {
        (Some(bytes), Some(Rate::Exactly(rate))) if rate > 0 => Some(bytes as f64 / rate as f64),
        _ => None,
    };
    let plain = Time { hundredths_s: decimal_s, decimal_s, reading: Reading::Plain, from_rate_s };
    if fraction.len() > 1 || fraction == "0" {
        return Ok(plain);
    }
    let whole: f64 = whole.parse().map_err(|_| NO_TIME)?;
    let hundredths: f64 = fraction.parse().map_err(|_| NO_TIME)?;
    let hundredths_s = whole + hundredths / 100.0;
    let reading = match from_rate_s.and_then(|seconds| nearer(seconds, hundredths_s, decimal_s)) {
        Some(is_hundredths) => Reading::Rate { is_hundredths },
        None if blanks > 1 => Reading::Blank,
        None => Reading::Ambiguous,
    };
    Ok(Time { hundredths_s, reading, ..plain })
}

/// Which of both readings these seconds mean: the suite cuts at hundredths, others round at tenths.
/// `None` when they are neither.
fn nearer(seconds: f64, hundredths_s: f64, decimal_s: f64) -> Option<bool> {
    // The rate was cut to an integer, too.
    let slack = 1e-6 + seconds * 1e-6;
    let as_hundredths = (-slack..0.01 + slack).contains(&(seconds - hundredths_s));
    let as_decimal = (seconds - decimal_s).abs() <= 0.1 + slack;
    match (as_hundredths, as_decimal) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}
