//! Asked against measured: the delays of emulated links over loopback TCP, as a table in Markdown.
//!
//! ```text
//! cargo run --release -p nfskit-net --example calibrate
//! ```

use std::io;

use net::clock::Clock;
use net::shape::calibration::{self, LATENCIES, RATES};
use net::shape::profile::Profile;

fn main() -> io::Result<()> {
    let profile = Profile::named("lan-1g").unwrap_or_default();
    let own =
        net::runtime::block_on(async { calibration::measure(&Clock::real(), &profile).await })??;
    println!("{own}\n");
    print!("| L asked |");
    RATES.iter().for_each(|rate| print!(" {rate}/s |"));
    println!("\n|---|{}", "---|".repeat(RATES.len()));
    for latency in LATENCIES {
        print!("| {latency} |");
        for rate in RATES {
            let cell = calibration::sweep(latency, rate)?;
            let late = |delay: perf::units::Nanos| delay.saturating_sub(latency);
            print!(" +{} (+{}) |", late(cell.median), late(cell.p99));
        }
        println!();
    }
    Ok(())
}
