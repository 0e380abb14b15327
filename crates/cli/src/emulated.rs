//! An emulated link, tried out before anything is measured through it.

use net::clock::Clock;
use net::shape::calibration::{self, Calibration};
use net::shape::profile::Profile;

use crate::exit::Failure;

/// What this machine makes of the link; none where nothing is emulated.
///
/// # Errors
/// It cannot: with what was measured.
pub(crate) async fn calibrate(
    clock: &Clock,
    profile: &Profile,
) -> Result<Option<Calibration>, Failure> {
    if !profile.has_link() {
        return Ok(None);
    }
    let measured = calibration::measure(clock, profile).await.map_err(|cause| {
        Failure::environment(
            format!("no timers for an emulated link: {cause}"),
            "raise the limit of open files (ulimit -n)",
        )
    })?;
    measured.verdict().map_err(|cannot| {
        let advice = "a quieter machine, one with more processors or with high-resolution timers, \
                      or a link that is farther away";
        Failure::environment(cannot, advice)
    })?;
    Ok(Some(measured))
}
