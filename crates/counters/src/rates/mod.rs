//! What came between two samples of a host's counters: per second, per call, and as shares.
//!
//! - [`mounts`]: of `/proc/self/mountstats`, each mount with its operations, transports and caches.
//! - [`client`]: of `/proc/net/rpc/nfs`, all mounts together.
//! - [`server`]: of `/proc/net/rpc/nfsd` and `/proc/fs/nfsd/pool_stats`.
//!
//! A single sample counts from the beginning: of the mount, or of the machine. So does what has
//! begun anew between two samples. What cannot be decided is none: a mean without calls, a rate
//! without a span, a time that a kernel has turned back.
//!
//! The meaning of mountstats' numbers is that of nfsiostat, except for the backlog, which that
//! divides by the interval a second time.

pub mod client;
pub mod mounts;
pub mod server;

use serde::{Serialize, Serializer};

use super::grown;
use super::procedures::{Procedures, Version};
use super::rpc::Net;

/// Since when something was counted, and how long that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    pub since: Since,
    /// `None` where that is not known, or is nothing.
    pub seconds: Option<f64>,
}

/// See [`Span`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    /// The mount was made, or the machine started.
    Beginning,
    /// The sample before.
    Sample,
}

impl Span {
    /// From the beginning, which was so long ago.
    pub fn beginning(seconds: Option<f64>) -> Self {
        Self { since: Since::Beginning, seconds: seconds.filter(is_positive) }
    }

    /// From the sample before, which was so long ago.
    pub fn sample(seconds: f64) -> Self {
        Self { since: Since::Sample, seconds: Some(seconds).filter(is_positive) }
    }

    /// How many of these there were in a second.
    pub fn per_s(&self, count: u64) -> Option<f64> {
        self.seconds.map(|seconds| count as f64 / seconds)
    }
}

fn is_positive(seconds: &f64) -> bool {
    seconds.is_finite() && *seconds > 0.0
}

/// A part of a whole; none of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Calls of one procedure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcedureRates {
    #[serde(serialize_with = "number")]
    pub version: Version,
    pub name: &'static str,
    pub calls: u64,
    pub calls_per_s: Option<f64>,
}

fn number<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(version.number())
}

/// What came from, or went to, the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NetRates {
    pub packets: u64,
    pub udp: u64,
    pub tcp: u64,
    pub tcp_connections: u64,
}

/// Counters of one sample, less those of the sample before if that counted the same.
#[derive(Debug)]
struct Less<'a, T>(&'a T, Option<&'a T>);

// Derived, these would ask the same of what is counted.
impl<T> Clone for Less<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Less<'_, T> {}

impl<'a, T> Less<'a, T> {
    /// The growth of one counter.
    fn of(&self, counter: impl Fn(&T) -> u64) -> u64 {
        let now = counter(self.0);
        match self.1 {
            Some(before) => grown(now, counter(before)).unwrap_or(now),
            None => now,
        }
    }

    /// Of one that this kernel may not have.
    fn maybe(&self, counter: impl Fn(&T) -> Option<u64>) -> Option<u64> {
        let now = counter(self.0)?;
        let before = self.1.and_then(counter);
        Some(before.and_then(|before| grown(now, before)).unwrap_or(now))
    }

    /// Of a sum that kernels turn back now and then: it is not known then.
    fn sum(&self, counter: impl Fn(&T) -> u64) -> Option<u64> {
        grown(counter(self.0), self.1.map_or(0, counter))
    }

    /// A part that this kernel may not have.
    fn part<U>(&self, part: impl Fn(&'a T) -> Option<&'a U>) -> Option<Less<'a, U>> {
        Some(Less(part(self.0)?, self.1.and_then(part)))
    }
}

/// Whether counters of one file, each now and before, have begun anew: one fell further than a wrap
/// goes, or several fell and none rose.
fn began_anew(counters: &[(u64, u64)]) -> bool {
    let is_no_wrap = |(now, before): &(u64, u64)| grown(*now, *before).is_none();
    let count = |is_so: fn(&(u64, u64)) -> bool| counters.iter().filter(|one| is_so(one)).count();
    let (fell, rose) = (count(|(now, before)| now < before), count(|(now, before)| now > before));
    counters.iter().any(is_no_wrap) || (fell > 1 && rose == 0)
}

/// A part of a file now and before, counter by counter.
fn paired<T, const N: usize>(
    now: Option<&T>,
    before: Option<&T>,
    counters: impl Fn(&T) -> [u64; N],
) -> Vec<(u64, u64)> {
    let both = now.zip(before).map(|(now, before)| (counters(now), counters(before)));
    both.into_iter().flat_map(|(now, before)| now.into_iter().zip(before)).collect()
}

/// The same of a list.
fn listed(now: Option<&Vec<u64>>, before: Option<&Vec<u64>>) -> Vec<(u64, u64)> {
    let both = now.zip(before).into_iter();
    both.flat_map(|(now, before)| now.iter().copied().zip(before.iter().copied())).collect()
}

/// The calls of a version, procedure by procedure, where both know it.
fn of_version((now, before): (&Option<Procedures>, &Option<Procedures>)) -> Vec<(u64, u64)> {
    listed(now.as_ref().map(|of| &of.calls), before.as_ref().map(|of| &of.calls))
}

fn of_net(net: &Net) -> [u64; 4] {
    [net.packets, net.udp, net.tcp, net.tcp_connections]
}

fn net_rates(net: Less<'_, Net>) -> NetRates {
    NetRates {
        packets: net.of(|net| net.packets),
        udp: net.of(|net| net.udp),
        tcp: net.of(|net| net.tcp),
        tcp_connections: net.of(|net| net.tcp_connections),
    }
}

/// Each procedure that has a name.
fn procedure_rates<'a>(
    of: Less<'a, Procedures>,
    span: &'a Span,
) -> impl Iterator<Item = ProcedureRates> + 'a {
    let names = of.0.version.names().iter().enumerate();
    names.filter_map(move |(at, name)| {
        let calls = of.maybe(|of| of.calls.get(at).copied())?;
        let (version, calls_per_s) = (of.0.version, span.per_s(calls));
        Some(ProcedureRates { version, name, calls, calls_per_s })
    })
}

#[cfg(test)]
mod tests;
