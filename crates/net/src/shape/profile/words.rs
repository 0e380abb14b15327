//! What values look like: times, rates, shares and so on, each with the sentence for what is none.

use perf::units::Nanos;
pub(super) use perf::words::{gap_per_byte, gap_per_byte_ps, rate, time_with_unit as time};
use perf::words::{rounded, scaled};

use crate::shape::conditions::{Jitter, Outage, OutageKind, Ppm, Reordering};

pub(super) fn share(text: &str) -> Result<Ppm, String> {
    let form = "a share with % or ppm, such as 0.5%";
    let ppm = rounded(scaled(text, &[("%", 1e4), ("ppm", 1.0)], form)?);
    Ok(Ppm(u32::try_from(ppm).unwrap_or(u32::MAX)))
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    perf::words::size(text).map_err(|why| format!("{why}; or none"))
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
