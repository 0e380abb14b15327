//! What values of options look like: one reader of each kind, for every command. Times, sizes and
//! rates are those of `perf::words`.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use client::url::{FORM, Target};
use perf::units::Nanos;
use perf::words;
use server::Versions;

/// A whole number within a range.
pub fn count(range: RangeInclusive<u32>) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| within(text, &range, "whole number")
}

/// The same of 64 bits.
pub fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| within(text, &range, "whole number")
}

/// A share of 1.
pub fn share(text: &str) -> Result<f64, String> {
    within(text, &(0.0..=1.0), "share")
}

fn within<T: Display + FromStr + PartialOrd>(
    text: &str,
    range: &RangeInclusive<T>,
    what: &str,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (low, high) = (range.start(), range.end());
    number.ok_or_else(|| format!("{text:?} is no {what} from {low} to {high}"))
}

/// A time above zero.
pub fn time(text: &str) -> Result<Nanos, String> {
    match time_or_zero(text)? {
        Nanos::ZERO => Err(format!("{text:?}: it has to be above 0: {}", words::TIME_FORM)),
        time => Ok(time),
    }
}

/// A time, or none.
pub fn time_or_zero(text: &str) -> Result<Nanos, String> {
    words::time(text)
}

/// Bytes, at least one.
pub fn size(text: &str) -> Result<u64, String> {
    match words::size(text)? {
        0 => Err(format!("{text:?}: it has to be above 0: {}", words::SIZE_FORM)),
        bytes => Ok(bytes),
    }
}

/// Bytes in each second: a size, or a rate in bits or bytes with its unit.
pub fn byte_rate(text: &str) -> Result<u64, String> {
    let bytes = match text.ends_with("/s") {
        true => words::rate(text).map(|bits_per_sec| bits_per_sec / 8),
        false => size(text),
    };
    let bytes = bytes.map_err(|why| format!("{why}; or a rate such as 12.5MB/s or 100Mbit/s"))?;
    if bytes > 0 { Ok(bytes) } else { Err(format!("{text:?} is less than a byte a second")) }
}

/// A number of operations, calls or the like in each second, within a range.
pub fn positive(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| within(text, &range, "number")
}

pub fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error| format!("{error}\n  the form is {FORM}"))
}

/// Reads a value and keeps its words: the error has the option's name.
pub fn read<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone,
) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| parse(text).map(|_| text.to_owned())
}

pub fn versions(text: &str) -> Result<Versions, String> {
    let mut versions = Versions { nfs2: false, nfs3: false };
    for word in text.split(',') {
        match word.trim() {
            "2" => versions.nfs2 = true,
            "3" => versions.nfs3 = true,
            _ => return Err(format!("{text:?} is no list of versions: 2, 3 or 2,3")),
        }
    }
    Ok(versions)
}

pub fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not ADDRESS:PORT, such as 127.0.0.1:2049, 0.0.0.0:0 or [::1]:2049")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_above_zero_is() {
        assert_eq!(time("90"), Ok(Nanos::from_secs(90)));
        assert_eq!(time_or_zero("0"), Ok(Nanos::ZERO));
        for zero in ["0", "0s", "0.0ms", "0.1ns"] {
            assert!(time(zero).unwrap_err().contains("above 0: a number and ns"), "{zero}");
        }
        assert_eq!(size("1.5M"), Ok(3 << 19));
        assert!(size("0K").unwrap_err().contains("above 0: bytes, or"));
        assert_eq!(positive(1.0..=30.0)("2.5"), Ok(2.5));
        for wrong in ["0", "nan", "31", "", "-1", "inf"] {
            assert!(positive(1.0..=30.0)(wrong).unwrap_err().contains("from 1 to 30"), "{wrong}");
        }
    }

    #[test]
    fn a_count_is_a_whole_number_and_what_it_may_be_is_named() {
        assert_eq!(count(1..=4096)("4096"), Ok(4096));
        for wrong in ["0", "4097", "1.5", "NaN", "-1", "", "99999999999999999999"] {
            let why = count(1..=4096)(wrong).unwrap_err();
            assert_eq!(why, format!("{wrong:?} is no whole number from 1 to 4096"));
        }
    }

    #[test]
    fn bytes_a_second_are_a_size_or_a_rate() {
        assert_eq!(byte_rate("1M"), Ok(1 << 20));
        assert_eq!(byte_rate("12.5MB/s"), Ok(12_500_000));
        assert_eq!(byte_rate("100Mbit/s"), Ok(12_500_000));
        for wrong in ["0", "fast", "1/s", "0.0001kbit/s"] {
            assert!(byte_rate(wrong).is_err(), "{wrong}");
        }
    }
}
