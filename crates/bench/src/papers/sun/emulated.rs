//! The same in a world: memory behind an emulated disk, without a write log and with one on another
//! emulated disk. Virtual time, and so the same in every run.
//!
//! The emulated disk has data on it and no inodes: what the guide counted of those, and of indirect
//! blocks, is not there without a log either.

use harness::apart::apart;
use harness::exit::Failure;
use load::scratch::Scratch;
use net::shape::profile::Profile as Link;
use perf::model::disk::Profile;
use perf::units::Nanos;
use server::store::sim::{LogSpec, SimOptions};
use world::{ClientSpec, Costs, ServerSpec, World};

use super::disk::{self, Requests};
use super::found::{Pair, Side};
use super::measured::{self, Place};

/// A network of the guide's time is 10 Mbit/s; this one is none of what is measured.
const LATENCY: Nanos = Nanos::from_micros(50);
const BITS_PER_S: u64 = 1_000_000_000;
/// The server's, for a call: guess.
const COST: Nanos = Nanos::from_micros(20);

/// Both servers.
pub(super) async fn pair(disk: Profile, log: Profile, time: Nanos) -> Result<Pair, Failure> {
    apart(move || {
        let without = side(disk, None, time)?;
        let with = side(disk, Some(LogSpec::new(log)), time)?;
        Ok::<_, Failure>(Pair { without, with })
    })
    .await?
}

fn side(disk: Profile, write_log: Option<LogSpec>, time: Nanos) -> Result<Side, Failure> {
    let played = World::new(1).run(move |stage| async move {
        let store = SimOptions { disk, write_log, crashes: false, ..SimOptions::default() };
        let costs = Costs::per_call(COST);
        let server = stage.server(ServerSpec { store, costs, ..ServerSpec::default() });
        let link = Link::of("sun", LATENCY, BITS_PER_S);
        let session = stage.client(ClientSpec::behind(link)).mount(&server).await?;
        let scratch = Scratch::create(&session, "sun").await?;
        let count = || {
            let stats = server.stats();
            let log = write_log.map(|_| Requests::of(&stats.log_disk));
            Ok(disk::Pair { files: Some(Requests::of(&stats.disk)), log })
        };
        let place = Place { clock: stage.clock(), session: &session, scratch: &scratch };
        measured::side(place, time, &count).await
    });
    played.map_err(|stuck| Failure::environment(stuck, "nfskit papers sun, as it is"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_reaches_does_not_depend_on_how_long_it_is_measured() {
        // 8.6 ms a WRITE: a queue would take any rate for a while.
        let curve = |secs| {
            let side = side("hdd".parse().unwrap(), None, Nanos::from_secs(secs)).unwrap();
            side.curve.into_iter().map(|point| (point.rate, point.is_reached)).collect::<Vec<_>>()
        };
        let reached = [(50.0, true), (100.0, true), (200.0, false)];
        for secs in [1, 2, 8] {
            assert_eq!(curve(secs), reached, "{secs} s");
        }
    }
}
