//! How times, sizes and rates are written, wherever they are requested: in options, topologies,
//! emulated links, disks, and changes to predict. One reader of each. And how things are counted.

use std::fmt;

use crate::units::Nanos;

/// `1 file`, `2 files`: of words whose plural has an s.
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let s = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// A field of the kernel's tables, such as mountinfo: blanks, line ends and backslashes stand there
/// as `\` and three octal digits.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let (byte, left) = match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), after)
            }
            _ => (*first, after),
        };
        plain.push(byte);
        rest = left;
    }
    plain
}

/// What a time is, for messages and help.
pub const TIME_FORM: &str = "a number and ns, us, ms, s, m (minutes) or h, or seconds without a \
                             unit, such as 0.1ms, 1.5s, 1m or 90";

/// What a size is.
pub const SIZE_FORM: &str = "bytes, or a number and K, M, G or T (powers of 1024) or kB, MB, GB or \
                             TB (powers of 1000), such as 4096, 1.5M or 1MB";

/// The longest time: some 31 years, far within 64 bits of nanoseconds.
const NANOS_MAX: f64 = 1e18;

/// The longest time in picoseconds: some 11 days.
const PICOS_MAX: f64 = 1e18;

/// Picoseconds that a byte takes at 1 bit/s.
const BYTE_AT_1_BIT_PS: u64 = 8_000_000_000_000;

/// Digits, perhaps with a point, and the unit behind them. Without signs and exponents nothing is
/// negative, infinite or no number.
fn parts(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits, unit.trim_start())
}

/// A number with its unit, in the unit whose factor is 1. Fails with `form`: what is wanted.
pub fn scaled(text: &str, units: &[(&str, f64)], form: &str) -> Result<f64, String> {
    let wrong = || match text.starts_with('-') {
        true => format!("cannot be negative; {form} is wanted"),
        false => format!("{form} is wanted"),
    };
    let (digits, unit) = parts(text);
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if number == 0.0 && unit.is_empty() {
        return Ok(0.0);
    }
    let (_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    Ok(number * scale)
}

/// To the nearest whole number; negative and NaN become zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and what is too large is refused by who knows the limit"
)]
pub fn rounded(number: f64) -> u64 {
    number.round() as u64
}

/// Nanoseconds of each unit of time.
const TIMES: [(&str, f64); 8] = [
    ("ps", 1e-3),
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
];

/// A time; without a unit it is seconds. Zero is one.
pub fn time(text: &str) -> Result<Nanos, String> {
    let nanos = nanos(text)?;
    within(text, nanos, NANOS_MAX, "31 years").map(Nanos::from_nanos)
}

/// The same in picoseconds, for what a byte takes.
pub fn picos(text: &str) -> Result<u64, String> {
    let picos = nanos(text)? * 1e3;
    within(text, picos, PICOS_MAX, "11 days")
}

fn nanos(text: &str) -> Result<f64, String> {
    let (_, unit) = parts(text);
    let units: &[_] = if unit.is_empty() { &[("", 1e9)] } else { &TIMES };
    scaled(text, units, "").map_err(|_| format!("{text:?} is not a time: {TIME_FORM}"))
}

fn within(text: &str, number: f64, max: f64, longest: &str) -> Result<u64, String> {
    match number <= max {
        true => Ok(rounded(number)),
        false => Err(format!("{text:?} is too long; the longest time is {longest}")),
    }
}

/// A time that has its unit, but for 0: where seconds are rarely meant, as for the latency of a
/// link. What is too long is refused by who knows the limit. Fails with what is wanted instead.
pub fn time_with_unit(text: &str) -> Result<Nanos, String> {
    const FORM: &str = "a time with ns, us, ms, s, m or h, such as 0.5ms";
    let nanos = scaled(text, &TIMES, FORM)?;
    Ok(Nanos::from_nanos(rounded(nanos)))
}

/// Bytes. Zero is a size here.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: {SIZE_FORM}");
    let (digits, unit) = parts(text);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let too_large = || format!("{text:?} is too large; the largest size is 16777215T");
    if digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.is_empty() {
        let number: u64 = digits.parse().map_err(|_| too_large())?;
        return number.checked_mul(scale).ok_or_else(too_large);
    }
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if scale == 1 && number.fract() != 0.0 {
        return Err(format!("{text:?} is not a whole number of bytes, and has no K, M, G or T"));
    }
    let bytes = number * scale as f64;
    // 2^64, which is no u64.
    if bytes < 18_446_744_073_709_551_616.0 { Ok(rounded(bytes)) } else { Err(too_large()) }
}

/// Bits per second. Fails with what is wanted instead.
pub fn rate(text: &str) -> Result<u64, String> {
    const BITS: [(&str, f64); 14] = [
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("KB/s", 8e3),
        ("MB/s", 8e6),
        ("GB/s", 8e9),
        ("KiB/s", 8.0 * 1024.0),
        ("MiB/s", 8.0 * 1_048_576.0),
        ("GiB/s", 8.0 * 1_073_741_824.0),
    ];
    let lower = text.to_ascii_lowercase();
    let short = lower.ends_with(['k', 'm', 'g']).then_some(lower);
    let form = "a rate such as 100m, 1g (bits), 100Mbit/s or 1.25MB/s";
    let bits = rounded(scaled(short.as_deref().unwrap_or(text), &BITS, form)?);
    match bits {
        0 => Err("nothing would ever arrive; a rate above 0 is wanted".to_owned()),
        1..=BYTE_AT_1_BIT_PS => Ok(bits),
        _ => Err("at most 8000g is possible, 1 ps for a byte; none is no limit".to_owned()),
    }
}

/// Picoseconds for each byte at so many bits per second.
pub fn gap_per_byte_ps(bits_per_sec: u64) -> u64 {
    BYTE_AT_1_BIT_PS / bits_per_sec.max(1)
}

/// G in picoseconds for each byte: of a rate, a time for a byte, or `none`. Fails with what is
/// wanted instead.
pub fn gap_per_byte(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(0);
    }
    let per_byte = text.strip_suffix("/B").unwrap_or(text);
    // Of a byte, not minutes and hours: 100m is a rate.
    let times: Vec<_> = TIMES[..6].iter().map(|(unit, nanos)| (*unit, nanos * 1e3)).collect();
    match scaled(per_byte, &times, "") {
        Ok(ps) if ps > 0.0 => Ok(rounded(ps).max(1)),
        _ => rate(text)
            .map(gap_per_byte_ps)
            .map_err(|why| format!("{why}; or a time for each byte, such as 8ns; or none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_seconds() {
        let nanos = |text: &str| time(text).map(Nanos::as_nanos);
        for (text, expected) in [
            ("0.1ms", 100_000),
            ("1.5s", 1_500_000_000),
            ("1m", 60_000_000_000),
            ("90", 90_000_000_000),
            ("1.5", 1_500_000_000),
            ("20us", 20_000),
            ("20 us", 20_000),
            ("20\u{b5}s", 20_000),
            ("2h", 7_200_000_000_000),
            ("3ns", 3),
            ("0", 0),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
        for wrong in ["", "s", "-1s", "1e9", "1.2.3s", "nan", "inf", "1x", "1S", "\u{b5}", "1 s s"]
        {
            assert!(nanos(wrong).unwrap_err().contains("is not a time: a number"), "{wrong}");
        }
        assert!(nanos("99999999999s").unwrap_err().contains("31 years"));
        assert_eq!(picos("0.4ns"), Ok(400));
        assert_eq!(picos("0.4ps"), Ok(0));
        assert!(picos("1000001").unwrap_err().contains("11 days"));
        assert!(time_with_unit("5").is_err() && time_with_unit("5ms").is_ok());
        assert_eq!(time_with_unit("0"), Ok(Nanos::ZERO));
    }

    #[test]
    fn a_size_is_bytes_or_has_a_unit() {
        for (text, expected) in [
            ("1.5M", 1_572_864),
            ("1MB", 1_000_000),
            ("1mb", 1_000_000),
            ("1MiB", 1 << 20),
            ("8K", 8 << 10),
            ("8 k", 8 << 10),
            ("0.5G", 1 << 29),
            ("2kB", 2_000),
            ("3T", 3 << 40),
            ("4096", 4096),
            ("4096B", 4096),
            ("0", 0),
            ("9007199254740993", 9_007_199_254_740_993),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for wrong in ["", "K", "-1", "1X", "1.2.3M", "1e3", "nan", "\u{b5}", "1MM"] {
            assert!(size(wrong).unwrap_err().contains("powers of 1024"), "{wrong}");
        }
        assert!(size("1.5").unwrap_err().contains("whole number of bytes"));
        for large in ["18446744073709551616", "16777216T", "99999999.5T"] {
            assert!(size(large).unwrap_err().contains("too large"), "{large}");
        }
    }

    #[test]
    fn a_rate_is_stated_in_bits_in_bytes_or_as_a_time_for_each_byte() {
        for text in ["1g", "1G", "1000m", "1Gbit/s", "1 Gbit/s", "125MB/s", "8ns", "8ns/B", "8 ns"]
        {
            assert_eq!(gap_per_byte(text), Ok(8_000), "{text}");
        }
        assert_eq!(gap_per_byte("none"), Ok(0));
        for text in ["", "0", "1", "-1g", "1 furlong", "NaN", "1e9"] {
            assert!(gap_per_byte(text).unwrap_err().contains("is wanted"), "{text}");
        }
    }

    #[test]
    fn escapes_of_the_kernels_tables_are_undone_and_halves_stay() {
        for (field, plain) in [
            (r"a\040b\134", r"a b\"),
            (r"\04", r"\04"),
            (r"\9", r"\9"),
            (r"\777", r"\777"),
            (r"\999x", r"\999x"),
            (r"a\134\", r"a\\"),
            ("040", "040"),
        ] {
            assert_eq!(unescaped(field.as_bytes()), plain.as_bytes(), "{field}");
        }
    }
}
