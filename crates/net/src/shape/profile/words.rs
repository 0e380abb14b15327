//! What values look like: times, rates, shares and so on, each with the sentence for what is none.

use perf::units::Nanos;

use crate::shape::conditions::{Jitter, Outage, OutageKind, Ppm, Reordering};

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

fn scaled(text: &str, units: &[(&str, f64)], form: &str) -> Result<f64, String> {
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and what is too large is refused by who knows the limit"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

pub(super) fn time(text: &str) -> Result<Nanos, String> {
    let nanos = scaled(text, &TIMES, "a time with ns, us, ms or s, such as 0.5ms")?;
    Ok(Nanos::from_nanos(rounded(nanos)))
}

/// Bits per second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
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

pub(super) fn gap_per_byte_ps(bits_per_sec: u64) -> u64 {
    BYTE_AT_1_BIT_PS / bits_per_sec.max(1)
}

/// G: a rate, a time per byte, or `none`.
pub(super) fn gap_per_byte(text: &str) -> Result<u64, String> {
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

pub(super) fn share(text: &str) -> Result<Ppm, String> {
    let form = "a share with % or ppm, such as 0.5%";
    let ppm = rounded(scaled(text, &[("%", 1e4), ("ppm", 1.0)], form)?);
    Ok(Ppm(u32::try_from(ppm).unwrap_or(u32::MAX)))
}

/// Bytes, with K, M or G for powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let units = [("", 1.0), ("B", 1.0), ("K", 1024.0), ("M", 1_048_576.0), ("G", 1_073_741_824.0)];
    let form = "a size, with K, M or G for powers of 1024, or none";
    scaled(&upper, &units, form).map(rounded)
}

pub(super) fn number(text: &str, low: u64, high: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("a whole number between {low} and {high} is wanted")),
    }
}

pub(super) fn or_none<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text == "none" { Ok(None) } else { read(text).map(Some) }
}

pub(super) fn jitter(text: &str) -> Result<Jitter, String> {
    let form = || {
        "none, TIME, uniform:TIME, normal:TIME, exponential:TIME or pareto:TIME:SHAPE is wanted"
            .to_owned()
    };
    let within = |text| time(text).map_err(|_| form());
    let mut parts = text.split(':');
    let jitter = match (parts.next(), parts.next(), parts.next()) {
        (Some("none"), None, None) => Jitter::None,
        (Some(span), None, None) => Jitter::Uniform(within(span)?),
        (Some("uniform"), Some(span), None) => Jitter::Uniform(within(span)?),
        (Some("normal"), Some(span), None) => Jitter::Normal(within(span)?),
        (Some("exponential"), Some(span), None) => Jitter::Exponential(within(span)?),
        (Some("pareto"), Some(span), Some(shape)) => {
            let shape = shape.parse().ok().filter(|shape: &f64| shape.is_finite());
            Jitter::Pareto { scale: within(span)?, shape: shape.ok_or_else(form)? }
        }
        _ => return Err(form()),
    };
    let is_none = matches!(
        jitter,
        Jitter::Uniform(Nanos::ZERO)
            | Jitter::Normal(Nanos::ZERO)
            | Jitter::Exponential(Nanos::ZERO)
    );
    if parts.next().is_some() {
        return Err(form());
    }
    Ok(if is_none { Jitter::None } else { jitter })
}

/// `SHARE:TIME`.
pub(super) fn reordering(text: &str) -> Result<Reordering, String> {
    if text == "none" {
        return Ok(Reordering::default());
    }
    let form = "SHARE:TIME is wanted, such as 1%:2ms: how many, and how much later they come";
    let (part, by) = text.split_once(':').ok_or(form)?;
    let reordered = Reordering { share: share(part)?, by: time(by)? };
    match reordered {
        Reordering { share: Ppm::NONE, .. } => Ok(Reordering::default()),
        Reordering { by: Nanos::ZERO, .. } => Err(form.to_owned()),
        reordered => Ok(reordered),
    }
}

/// `AT:FOR`, or `AT:FOR:EVERY`.
pub(super) fn outage(kind: OutageKind, text: &str) -> Result<Outage, String> {
    let form = "AT:FOR or AT:FOR:EVERY is wanted, such as 10s:500ms:60s, or none";
    let times: Vec<_> = text.split(':').collect();
    let (at, span, every) = match times[..] {
        [at, span] => (at, span, None),
        [at, span, every] => (at, span, Some(every)),
        _ => return Err(form.to_owned()),
    };
    let within = |text| time(text).map_err(|why| format!("{why}: {form}"));
    let every = every.map(within).transpose()?;
    Ok(Outage { kind, at: within(at)?, span: within(span)?, every })
}
