//! LogGP put in and read back in a world, where there is no noise: what is found is what was put
//! in.

use client::error::Error;
use load::recover::{Emulator, Injected, Parameter, Point, Reached, Repeats, point};
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use net::shape::conditions::Overhead;
use net::shape::profile::Profile;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::Site;

/// What the path has by itself: a round trip of 40 us, and 10 Gbit/s.
const BARE: Link =
    Link { latency: Nanos::from_micros(20), gap: Nanos::from_micros(8), gap_per_byte_ps: 800 };

/// And what either end spends on a message: 12 us for a call are more than its 8 KiB take.
const SPENT: Nanos = Nanos::from_micros(6);

struct Bench(Site<MemStore>);

impl Emulator for Bench {
    async fn reach(&self, injected: &Injected) -> Result<Reached, Error> {
        let Injected { link, overhead: spent } =
            Injected { link: BARE, overhead: SPENT }.and(injected);
        let profile = Profile {
            overhead: Overhead { send: spent, receive: spent },
            ..Profile::symmetric("put in", link)
        };
        let session = self.0.session(self.0.rpc_busy(&profile)).await?;
        Ok(Reached { dir: session.root(), session })
    }

    fn busy_ends(&self) -> u32 {
        2
    }
}

fn recovered(parameter: Parameter, amount: f64) -> Point {
    let world = World::new();
    let clock: Clock = world.clock();
    let run = async move {
        let site = Site::in_memory(&clock, LinkPair::default(), CommitMode::Concurrent);
        let repeats = Repeats { least: 1, most: 1, time: Nanos::ZERO };
        let injected = parameter.injected(amount);
        point(&clock, &Bench(site), Injected::default(), injected, repeats).await.unwrap()
    };
    world.run(run).unwrap()
}

#[track_caller]
fn assert_near(got: f64, want: f64, within: f64, point: &Point) {
    assert!((got - want).abs() <= within, "{got} is not {want}: {point:?}");
}

/// Microseconds, or nanoseconds per byte: nothing rounds here but the link, to a nanosecond a
/// message.
const EXACT: f64 = 0.001;

#[test]
fn latency_is_read_back_over_the_papers_range_and_the_others_stay() {
    for latency in [10.0, 150.0, 1_000.0, 40_000.0] {
        let point = recovered(Parameter::Latency, latency);
        let found = &point.recovered;
        assert_near(found.latency_us.value, latency, EXACT, &point);
        assert_near(found.gap_per_byte_ns.value, 0.0, EXACT, &point);
        if let Some(overhead) = found.overhead_us {
            // A burst's calls wait for its first, the longer the way is.
            assert_near(overhead.value, 0.0, 0.0006 * latency, &point);
        }
        assert_eq!(found.gap_us.is_some(), latency < 40_000.0, "{point:?}");
    }
}

#[test]
fn gap_per_byte_is_read_back_over_the_papers_range_and_the_others_stay() {
    for bytes_per_sec in [26e6, 10e6, 5e6, 1.25e6] {
        let gap_per_byte = 1e9 / bytes_per_sec;
        let point = recovered(Parameter::GapPerByte, gap_per_byte);
        let found = &point.recovered;
        assert_near(found.gap_per_byte_ns.value, gap_per_byte, EXACT, &point);
        assert_near(found.latency_us.value, 0.0, EXACT, &point);
        assert_eq!((found.overhead_us, found.gap_us), (None, None), "{point:?}");
    }
}

#[test]
fn overhead_is_read_back_over_the_papers_range_and_the_others_stay() {
    for overhead in [25.0, 50.0, 100.0, 500.0] {
        let point = recovered(Parameter::Overhead, overhead);
        let found = &point.recovered;
        assert_near(found.overhead_us.unwrap().value, overhead, EXACT, &point);
        assert_near(found.latency_us.value, 0.0, EXACT, &point);
        assert_near(found.gap_per_byte_ns.value, 0.0, EXACT, &point);
    }
}

#[test]
fn the_gap_is_read_back_and_is_not_taken_for_anything_else() {
    for gap in [50.0, 100.0, 250.0, 500.0] {
        let point = recovered(Parameter::Gap, gap);
        let found = &point.recovered;
        // A burst ends with the last call's way through the server, over all of its calls.
        assert_near(found.gap_us.unwrap().value, gap, 0.1, &point);
        assert_near(found.latency_us.value, 0.0, EXACT, &point);
        assert_near(found.overhead_us.unwrap().value, 0.0, EXACT, &point);
        assert_near(found.gap_per_byte_ns.value, 0.0, EXACT, &point);
    }
}
