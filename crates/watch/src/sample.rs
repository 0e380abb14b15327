//! What was read at one time, and the rates between two such times.

use counters::client::Client;
use counters::host::clock::Clock;
use counters::mountstats::Mount;
use counters::pools::Pool;
use counters::rates::client::ClientRates;
use counters::rates::mounts::MountsRates;
use counters::rates::server::ServerRates;
use counters::rates::{client, mounts, server};
use counters::server::Server;
use serde::Serialize;

/// The counters of one host at one time; what is not there is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    pub mounts: Option<Vec<Mount>>,
    pub client: Option<Client>,
    pub server: Option<Server>,
    pub pools: Vec<Pool>,
    pub clock: Clock,
}

/// What came between two samples, or since the beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounts: Option<MountsRates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientRates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerRates>,
}

impl Sample {
    pub fn is_empty(&self) -> bool {
        self.mounts.is_none()
            && self.client.is_none()
            && self.server.is_none()
            && self.pools.is_empty()
    }

    /// Whether a server has run here since the machine started: its module is there, and threads or
    /// calls are.
    pub fn has_server(&self) -> bool {
        self.server.as_ref().is_some_and(|server| {
            server.threads.as_ref().is_some_and(|threads| threads.threads > 0)
                || server.rpc.is_some_and(|rpc| rpc.calls > 0)
        })
    }

    /// What came since `before`, `elapsed_s` ago; without it since the beginning.
    pub fn rates(&self, before: Option<(&Self, f64)>) -> Rates {
        let of_mounts = |now: &Vec<Mount>| {
            let older = before.and_then(|(before, ago)| Some((before.mounts.as_deref()?, ago)));
            mounts::rates(now, older)
        };
        let of_client = |now| {
            let older = before.and_then(|(before, ago)| Some((before.client.as_ref()?, ago)));
            client::rates(now, older, self.clock.up_s)
        };
        let of_server = |now| {
            let sample = |server, pools| server::Sample { server, pools };
            let older = before.and_then(|(before, ago)| {
                Some((sample(before.server.as_ref()?, before.pools.as_slice()), ago))
            });
            server::rates(sample(now, &self.pools), older, self.clock.up_s)
        };
        Rates {
            mounts: self.mounts.as_ref().map(of_mounts),
            client: self.client.as_ref().map(of_client),
            server: self.server.as_ref().filter(|_| self.has_server()).map(of_server),
        }
    }

    /// How long after `before` this one was taken, as the counters themselves tell it: by the time
    /// the machine is up, else by the ages of mounts, which are whole seconds. None where the
    /// machine was started in between: nothing counts on from there.
    pub fn seconds_after(&self, before: &Self) -> Option<f64> {
        let is_later = |seconds: &f64| *seconds > 0.0;
        if self.clock.is_after_a_start(&before.clock) {
            return None;
        }
        let up = self.clock.up_s.zip(before.clock.up_s).map(|(now, before)| now - before);
        up.or_else(|| self.aged_s(before)).filter(is_later)
    }

    /// The median, since a mount that was made anew is no clock.
    fn aged_s(&self, before: &Self) -> Option<f64> {
        let (now, before) = (self.mounts.as_ref()?, before.mounts.as_ref()?);
        let same = |mount: &Mount| {
            let is_it = |one: &&Mount| (&one.device, &one.point) == (&mount.device, &mount.point);
            before.iter().find(is_it)
        };
        let ages =
            now.iter().filter_map(|mount| Some(mount.age_s? as f64 - same(mount)?.age_s? as f64));
        let mut ages: Vec<f64> = ages.collect();
        ages.sort_by(f64::total_cmp);
        ages.get(ages.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, age_s: u64) -> Mount {
        Mount { point: point.to_owned(), age_s: Some(age_s), ..Mount::default() }
    }

    fn sample(ages: &[u64], up_s: Option<f64>) -> Sample {
        let mounts = ages.iter().zip(["/a", "/b", "/c"]).map(|(age, point)| mount(point, *age));
        let clock = Clock { up_s, booted_s: None };
        Sample { mounts: Some(mounts.collect()), clock, ..Sample::default() }
    }

    #[test]
    fn the_time_between_saved_samples_is_in_them() {
        let (first, second) = (sample(&[5, 9, 100], None), sample(&[15, 2, 110], None));
        assert_eq!(second.seconds_after(&first), Some(10.0));
        assert_eq!(first.seconds_after(&second), None, "in the wrong order");
        let first = sample(&[5], Some(50.0));
        assert_eq!(sample(&[15], Some(60.5)).seconds_after(&first), Some(10.5));
        let restarted = sample(&[15], Some(20.0));
        assert_eq!(restarted.seconds_after(&first), None, "mounted after the machine's start");
        assert_eq!(Sample::default().seconds_after(&first), None);
    }

    #[test]
    fn a_module_that_was_loaded_and_serves_nobody_is_no_server() {
        let server = counters::server::read(b"rc 0 0 0\nth 0 0\nrpc 0 0 0 0 0\n").unwrap();
        let mut sample = Sample { server: Some(server), ..Sample::default() };
        assert!(sample.rates(None).server.is_none());
        sample.server = Some(counters::server::read(b"th 8 0\nrpc 0 0 0 0 0\n").unwrap());
        assert!(sample.rates(None).server.is_some());
    }
}
