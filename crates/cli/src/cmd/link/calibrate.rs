//! `--calibrate`: requested against measured, as a table in Markdown.

use harness::exit::Failure;
use harness::output;
use net::clock::Clock;
use net::shape::calibration::{self, LATENCIES, RATES, bound};
use net::shape::profile::Profile;

pub(super) fn print() -> Result<(), Failure> {
    let failed =
        |cause: std::io::Error| Failure::resources(format!("cannot try out the links: {cause}"));
    let profile = Profile::named("lan-1g").unwrap_or_default();
    let own = net::runtime::block_on(calibration::measure(&Clock::real(), &profile));
    let own = own.and_then(|own| own).map_err(failed)?;
    output::print(&format!(
        "{own}\n\nHow much later than requested messages of 128 bytes left, at the median (and for \
         99 % of them).\n! where that is more than 5 us and 2 %.\n\n"
    ))?;
    let rates = RATES.map(|rate| format!(" {rate} messages/s |")).concat();
    output::print(&format!("| L |{rates}\n|---|{}\n", "---|".repeat(RATES.len())))?;
    for latency in LATENCIES {
        output::print(&format!("| {latency} |"))?;
        for rate in RATES {
            let cell = calibration::sweep(latency, rate).map_err(failed)?;
            let mark = if cell.error() > bound(latency) { " !" } else { "" };
            let tail = cell.p99.saturating_sub(latency);
            output::print(&format!(" {} ({tail}){mark} |", cell.error()))?;
        }
        output::print("\n")?;
    }
    Ok(())
}
