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
//! storage what calls that must be stable take beyond the cheapest call. Both are differences of
//! means, and given only where their parts are known.

use super::finding::Layer;
use super::floor;
use super::subject::Mounted;

/// See the module's head. The shares of calls add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Of the time that calls spent; where the network is not known, `None` stands for it and the
    /// server together.
    pub of_calls: Vec<(Where, f64)>,
    /// Mean time of a call, of which these are shares.
    pub call_ms: f64,
    /// Of the time that passed, at least: no call was under way.
    pub application: Option<f64>,
}

/// A part of a call's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Where {
    Layer(Layer),
    /// They cannot be distinguished.
    NetworkOrServer,
}

impl Where {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Layer(layer) => layer.name(),
            Self::NetworkOrServer => "network or server",
        }
    }
}

const STABLE: [&str; 10] = [
    "COMMIT", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "SETATTR",
];

/// None without calls.
pub fn of(mount: &Mounted<'_>) -> Option<Shares> {
    let total = mount.total();
    let means = total.means()?;
    let all = total.execute_ms.max(total.rtt_ms);
    if all <= 0.0 {
        return None;
    }
    let calls = total.rtt_ms / means.rtt_ms.max(f64::MIN_POSITIVE);
    let floor = floor::of(mount).map(|floor| floor.ms);
    let network = floor.map(|floor| (floor * calls).min(total.rtt_ms));
    let storage = floor::cheapest_call_ms(mount).map_or(0.0, |cheap| {
        let stable = mount.group(&STABLE);
        (stable.rtt_ms - cheap * stable.calls as f64).max(0.0)
    });
    let rest = total.rtt_ms - network.unwrap_or(0.0);
    let storage = storage.min(rest);
    let client = (all - total.rtt_ms).max(0.0);
    let layer = |layer, ms: f64| (Where::Layer(layer), ms / all);
    let way = match network {
        Some(network) => {
            vec![layer(Layer::Network, network), layer(Layer::Server, rest - storage)]
        }
        None => vec![(Where::NetworkOrServer, (rest - storage) / all)],
    };
    let (client, storage) = ([layer(Layer::Client, client)], [layer(Layer::Storage, storage)]);
    let of_calls = client.into_iter().chain(way).chain(storage).collect();
    let in_system = mount.rates.total.in_system_mean.filter(|_| !mount.is_lifetime());
    let application = in_system.map(|busy| (1.0 - busy).max(0.0));
    let call_ms = means.execute_ms.max(means.rtt_ms);
    Some(Shares { of_calls, call_ms, application })
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
    fn without_a_floor_network_and_server_are_one() {
        let evidence = one(&mount("rw", &CALLS));
        let shares = of(&Mounted::all(&evidence)[0]).unwrap();
        assert!(share(&shares, Where::NetworkOrServer) > 0.2);
        assert_eq!(of(&Mounted::all(&one(&mount("rw", &[])))[0]), None);
    }
}
