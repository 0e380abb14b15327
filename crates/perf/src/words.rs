//! What times and rates look like in words, wherever they are asked for: of an emulated link, and
//! of a change that a model is asked about.

use crate::units::Nanos;

/// Picoseconds that a byte takes at 1 bit/s.
const BYTE_AT_1_BIT_PS: u64 = 8_000_000_000_000;

/// A decimal number, and the unit behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    // Without signs and exponents nothing is negative, infinite or no number.
    let number = digits.parse().ok()?;
    Some((number, unit.trim_start()))
}

/// A number with its unit, in the unit whose factor is 1. Fails with `form`: what is wanted.
pub fn scaled(text: &str, units: &[(&str, f64)], form: &str) -> Result<f64, String> {
    let wrong = || match text.starts_with('-') {
        true => format!("cannot be negative; {form} is wanted"),
        false => format!("{form} is wanted"),
    };
    let (number, unit) = split(text).ok_or_else(wrong)?;
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

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A time with its unit; 0 needs none. Fails with what is wanted instead.
pub fn time(text: &str) -> Result<Nanos, String> {
    let nanos = scaled(text, &TIMES, "a time with ns, us, ms or s, such as 0.5ms")?;
    Ok(Nanos::from_nanos(rounded(nanos)))
}

/// Bits per second. Fails with what is wanted instead.
pub fn rate(text: &str) -> Result<u64, String> {
    const BITS: [(&str, f64); 10] = [
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("MB/s", 8e6),
        ("GB/s", 8e9),
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
    let times = TIMES.map(|(unit, nanos)| (unit, nanos * 1e3));
    let times = [("ps", 1.0)].into_iter().chain(times).collect::<Vec<_>>();
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
    fn a_rate_is_said_in_bits_in_bytes_or_as_a_time_for_each_byte() {
        for text in ["1g", "1G", "1000m", "1Gbit/s", "1 Gbit/s", "125MB/s", "8ns", "8ns/B", "8 ns"]
        {
            assert_eq!(gap_per_byte(text), Ok(8_000), "{text}");
        }
        assert_eq!(gap_per_byte("none"), Ok(0));
        for text in ["", "0", "1", "-1g", "1 furlong", "NaN", "1e9"] {
            assert!(gap_per_byte(text).unwrap_err().contains("is wanted"), "{text}");
        }
    }
}
