//! An emulated link, tried out before anything is measured through it.

use net::clock::Clock;
use net::shape::calibration::{self, Calibration};
use net::shape::profile::Profile;

use crate::exit::Failure;

/// Set to anything, links are not tried out: for tests, and whoever knows better.
pub const UNCALIBRATED: &str = "NFSKIT_UNCALIBRATED";

/// Whether links are used as they are.
pub fn is_untried() -> bool {
    std::env::var_os(UNCALIBRATED).is_some_and(|value| !value.is_empty())
}

/// What this machine makes of the link; none where nothing is emulated, or nothing is to be tried.
///
/// # Errors
/// It cannot: with what was measured.
pub async fn calibrate(clock: &Clock, profile: &Profile) -> Result<Option<Calibration>, Failure> {
    let is_emulated = profile.has_link() || !profile.overhead.is_none();
    if !is_emulated || is_untried() {
        return Ok(None);
    }
    let measured = calibration::measure(clock, profile).await.map_err(|cause| {
        Failure::environment(
            format!("no timers for an emulated link: {cause}"),
            "raise the limit of open files (ulimit -n)",
        )
    })?;
    measured.verdict().map_err(|cannot| {
        let advice = format!(
            "a quieter machine, one with more processors or with high-resolution timers, or a \
             link that is farther away; with {UNCALIBRATED}=1 in the environment links are not \
             tried out"
        );
        Failure::environment(cannot, advice)
    })?;
    Ok(Some(measured))
}
