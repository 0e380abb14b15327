//! Rates, shares and bytes, as people read them.

use harness::records::scaled;
use perf::units::Nanos;

#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub(super) fn rate(count: u64, span: Nanos) -> f64 {
    count as f64 / span.as_secs_f64().max(1e-9)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / (whole as f64).max(1.0) * 100.0
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64)
}
