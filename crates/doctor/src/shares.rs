//! Where the time goes: of all time that calls spent, the shares of client, network, server and
//! storage; and how much of the time the application left the mount alone.
//!
//! ```text
//!  made       sent                     reply        end
//!    |- queue --|- network | server | storage -|- rest -|
//!      client                                    client
//! ```
//!
//! The network is the round trip of TCP for each call, and no more than the whole of its time; the
//! storage what calls that must be stable take beyond the cheapest call, or beyond the round trip
//! where no call is known that does little. Both are differences of means, and given only where
//! their parts are known. Of the round trip a least and a most are known ([`floor`]): what is
//! between them is the network's or not, and a part of its own.

use super::finding::Layer;
use super::floor::{self, Floor};
use super::stable;
use super::subject::Mounted;

/// See the module's head. The shares of calls add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Of the time that calls spent; of parts that cannot be distinguished their sum.
    pub of_calls: Vec<(Where, f64)>,
    /// Mean time of a call, of which these are shares.
    pub call_ms: f64,
    /// Of the time that passed, at least: no call was under way.
    pub application: Option<f64>,
}

impl Shares {
    /// Some of what cannot be distinguished may belong to this part.
    pub fn is_least(&self, place: Where) -> bool {
        let has = |one: Where| self.of_calls.iter().any(|(place, _)| *place == one);
        let is_one = |all: &[Layer]| all.iter().any(|layer| place == Where::Layer(*layer));
        let (network, server) = (Layer::Network, Layer::Server);
        has(Where::Layer(Layer::NetworkOrServer)) && is_one(&[network, server])
            || has(Where::NetworkServerOrStorage) && is_one(&[network, server, Layer::Storage])
    }
}

/// A part of a call's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Where {
    Layer(Layer),
    /// They cannot be distinguished.
    NetworkServerOrStorage,
}

impl Where {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Layer(layer) => layer.name(),
            Self::NetworkServerOrStorage => "network, server or storage",
        }
    }
}

/// None without calls.
pub fn of(mount: &Mounted<'_>) -> Option<Shares> {
    let total = mount.total();
    let means = total.means()?;
    let all = total.execute_ms.max(total.rtt_ms);
    if all <= 0.0 {
        return None;
    }
    let calls = total.rtt_ms / means.rtt_ms.max(f64::MIN_POSITIVE);
    let client = (Where::Layer(Layer::Client), (all - total.rtt_ms).max(0.0));
    let beyond = match floor::of(mount) {
        Some(floor) => beyond(&Calls::of(mount, total.rtt_ms, calls), floor, all),
        None => blindly(mount, total.rtt_ms),
    };
    let of_calls = [client].into_iter().chain(beyond);
    let of_calls = of_calls.map(|(place, ms)| (place, ms / all)).collect();
    let application = mount.busy().map(|busy| (1.0 - busy).max(0.0));
    let call_ms = means.execute_ms.max(means.rtt_ms);
    Some(Shares { of_calls, call_ms, application })
}

/// Where calls spent their time beyond the client, ms.
type Parts = Vec<(Where, f64)>;

/// Without a round trip.
fn blindly(mount: &Mounted<'_>, all_ms: f64) -> Parts {
    let stable = stable::calls(mount);
    let cheap = floor::cheapest_call_ms(mount).or_else(|| (stable.calls == 0).then_some(0.0));
    let Some(cheap) = cheap else { return vec![(Where::NetworkServerOrStorage, all_ms)] };
    let storage = (stable.rtt_ms - cheap * stable.calls as f64).clamp(0.0, all_ms);
    let or_server = Where::Layer(Layer::NetworkOrServer);
    vec![(or_server, all_ms - storage), (Where::Layer(Layer::Storage), storage)]
}

/// Calls that must be stable, and others.
struct Calls {
    all_ms: f64,
    count: f64,
    stable_ms: f64,
    stable_count: f64,
    /// What one takes that does little.
    cheap_ms: Option<f64>,
}

impl Calls {
    fn of(mount: &Mounted<'_>, all_ms: f64, count: f64) -> Self {
        let stable = stable::calls(mount);
        let (stable_ms, stable_count) = (stable.rtt_ms, stable.calls as f64);
        let cheap_ms = floor::cheapest_call_ms(mount);
        Self { all_ms, count, stable_ms, stable_count, cheap_ms }
    }

    /// Network, server and storage, where the network takes so much of a call.
    fn parts(&self, network_ms: f64) -> [f64; 3] {
        let network = (network_ms * self.count).min(self.all_ms);
        let cheap_ms = self.cheap_ms.unwrap_or(network_ms).max(network_ms);
        let storage =
            (self.stable_ms - cheap_ms * self.stable_count).clamp(0.0, self.all_ms - network);
        [network, self.all_ms - network - storage, storage]
    }
}

/// With the bounds of the round trip; a difference between them that is small is none.
fn beyond(calls: &Calls, floor: Floor, all_ms: f64) -> Parts {
    /// Of all time; a guess.
    const SMALL: f64 = 0.1;
    let [network, server, storage] = calls.parts(floor.ms);
    let [most, server_least, storage_least] = calls.parts(floor.most_ms);
    let of = Where::Layer;
    let parts = |server, storage| {
        vec![
            (of(Layer::Network), network),
            (of(Layer::Server), server),
            (of(Layer::Storage), storage),
        ]
    };
    let doubt = most - network;
    if doubt < SMALL * all_ms {
        return parts(server, storage);
    }
    let may_be_storage = storage - storage_least > SMALL * doubt;
    let place = match may_be_storage {
        true => Where::NetworkServerOrStorage,
        false => of(Layer::NetworkOrServer),
    };
    let mut all = parts(server_least, storage_least);
    all.push((place, doubt));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, mount, one};

    const CALLS: [&str; 2] =
        ["GETATTR: 1000 1000 0 0 0 100 400 600 0", "COMMIT: 100 100 0 0 0 0 1440 1440 0"];

    fn share(shares: &Shares, place: Where) -> f64 {
        shares.of_calls.iter().find(|(one, _)| *one == place).map_or(f64::NAN, |(_, share)| *share)
    }

    #[test]
    fn the_shares_add_up_and_each_is_where_it_belongs() {
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.2/1 minrtt:0.1\n";
        let stats = mount("rw,addr=10.0.0.1", &CALLS);
        let evidence = files(&[("proc/self/mountstats", &stats), ("ss.txt", ss)]);
        let shares = of(&Mounted::all(&evidence)[0]).unwrap();
        let sum: f64 = shares.of_calls.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{shares:?}");
        // 2,040 ms: 200 in the client, 110 on the way, 1,400 for the disk.
        assert!((share(&shares, Where::Layer(Layer::Client)) - 200.0 / 2040.0).abs() < 1e-9);
        assert!((share(&shares, Where::Layer(Layer::Network)) - 110.0 / 2040.0).abs() < 1e-9);
        assert!((share(&shares, Where::Layer(Layer::Storage)) - 1400.0 / 2040.0).abs() < 1e-9);
        assert_eq!(shares.application, None, "one sample says nothing of that");
    }

    #[test]
    fn storage_is_what_is_beyond_the_round_trip_where_no_call_is_cheap() {
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.2/1 minrtt:0.2\n";
        let calls =
            ["WRITE: 1000 1000 0 65000000 0 0 1000 1000 0", "COMMIT: 100 100 0 0 0 0 9000 9000 0"];
        let stats = mount("rw,addr=10.0.0.1", &calls);
        let with = files(&[("proc/self/mountstats", &*stats), ("ss.txt", ss)]);
        let shares = of(&Mounted::all(&with)[0]).unwrap();
        let storage = share(&shares, Where::Layer(Layer::Storage));
        assert!((storage - 8_980.0 / 10_000.0).abs() < 1e-9, "{shares:?}");
        let shares = of(&Mounted::all(&one(&stats))[0]).unwrap();
        assert_eq!(share(&shares, Where::NetworkServerOrStorage), 1.0, "{shares:?}");
        let reads = mount("rw,addr=10.0.0.1", &calls[..1]);
        let shares = of(&Mounted::all(&one(&reads))[0]).unwrap();
        assert_eq!(share(&shares, Where::Layer(Layer::Storage)), 0.0, "nothing was made stable");
    }

    #[test]
    fn the_storage_is_waited_for_by_writes_that_are_stable_when_they_are_answered() {
        let storage = |options: &str, bytes: u32| {
            let write = format!("WRITE: 1000 1000 0 {bytes} 0 0 10000 10000 0");
            let stats = mount(options, &["GETATTR: 1000 1000 0 0 0 0 200 200 0", &write]);
            share(&of(&Mounted::all(&one(&stats))[0]).unwrap(), Where::Layer(Layer::Storage))
        };
        // 200 of 10,200 ms are of the GETATTRs, and as much of the WRITEs.
        for (options, bytes) in [("rw", 4_200_000), ("rw,sync", 65_000_000)] {
            let all = storage(options, bytes);
            assert!((all - 9_800.0 / 10_200.0).abs() < 1e-9, "{options}: {all}");
        }
        assert_eq!(storage("rw", 65_000_000), 0.0, "a cache of the server takes these");
    }

    #[test]
    fn without_a_floor_network_and_server_are_one() {
        let evidence = one(&mount("rw", &CALLS));
        let shares = of(&Mounted::all(&evidence)[0]).unwrap();
        assert!(share(&shares, Where::Layer(Layer::NetworkOrServer)) > 0.2);
        assert_eq!(of(&Mounted::all(&one(&mount("rw", &[])))[0]), None);
    }

    #[test]
    fn what_the_network_may_have_taken_is_of_nobody_else() {
        let parts = |calls: &[&str], smoothed: &str| {
            let ss =
                format!("ESTAB 0 0 10.0.0.2:7 10.0.0.1:2049\n\t rtt:{smoothed}/1 minrtt:0.1\n");
            let stats = mount("rw,addr=10.0.0.1", calls);
            let evidence = files(&[("proc/self/mountstats", &stats), ("ss.txt", &ss)]);
            of(&Mounted::all(&evidence)[0]).unwrap()
        };
        let (storage, undecided) = (Where::Layer(Layer::Storage), Where::NetworkServerOrStorage);
        let commits = ["COMMIT: 1000 1000 0 0 0 0 10000 10000 0"];
        let delayed = parts(&commits, "9.9");
        assert!((share(&delayed, undecided) - 0.98).abs() < 1e-9, "{delayed:?}");
        assert!((share(&delayed, storage) - 0.01).abs() < 1e-9, "{delayed:?}");
        let half = parts(&commits, "5.1");
        assert!((share(&half, storage) - 0.49).abs() < 1e-9, "{half:?}");
        let slow_disk = parts(&commits, "0.3");
        assert!(share(&slow_disk, storage) > 0.96, "{slow_disk:?}");
        assert!(share(&slow_disk, undecided).is_nan(), "{slow_disk:?}");
        // Calls that do little show what the network takes at most.
        let light = ["GETATTR: 100 100 0 0 0 0 30 30 0", commits[0]];
        assert!(share(&parts(&light, "9.9"), storage) > 0.96);
        let lights = parts(&["GETATTR: 100 100 0 0 0 0 1000 1000 0"], "9.9");
        let or_server = share(&lights, Where::Layer(Layer::NetworkOrServer));
        assert!((or_server - 0.98).abs() < 1e-9, "{lights:?}");
    }
}
