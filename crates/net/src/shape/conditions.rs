//! What one direction of a link is like.
//!
//! These are numbers; [`super::lane`] decides by them. Whether the emulator can do them at all
//! says [`Conditions::impossible`], so that nothing impossible is requested silently.

use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};

/// Longest latency, pause, jitter or delay that can be requested: the moon and back, twice.
pub const DELAY_MAX: Nanos = Nanos::from_secs(10);

/// Most processor time for a message: three orders above what the papers measured and added. It
/// is spun, so that more would keep other connections of the thread from their timers.
pub const OVERHEAD_MAX: Nanos = Nanos::from_millis(100);

/// Slowest link, in picoseconds per byte: 1 kB/s.
pub const GAP_PER_BYTE_PS_MAX: u64 = 1_000_000_000;

/// Bytes held back in one direction of one connection: 100 ms of 10 Gbit/s.
pub const HELD_BYTES_MAX: u64 = 128 << 20;

/// Smallest packet that every IPv4 network carries whole (RFC 791, section 3.2).
pub const MTU_MIN: u16 = 68;

/// Smallest queue where packets are not cut: one datagram of UDP with its headers.
pub const QUEUE_BYTES_MIN: u64 = 64 << 10;

/// Partitions and stalls of one direction.
pub const OUTAGES_MAX: usize = 16;

/// Longest time that a schedule knows.
pub const SCHEDULE_MAX: Nanos = Nanos::from_secs(24 * 3600);

/// A share in parts per million.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Ppm(pub u32);

impl Ppm {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(1_000_000);

    /// `percent` in hundredths.
    pub const fn percent(percent: u32) -> Self {
        Self(percent * 10_000)
    }
}

/// By how much the latency differs from message to message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    #[default]
    None,
    /// Between nothing and this much is added, every value equally often.
    Uniform(Nanos),
    /// Added or taken away, with this standard deviation; never before the last byte has left.
    Normal(Nanos),
    /// Added, with this mean.
    Exponential(Nanos),
    /// Added: `scale` x ((1 - u)^(-1 / `shape`) - 1), a long tail that begins at nothing. Its mean
    /// is `scale` / (`shape` - 1).
    Pareto { scale: Nanos, shape: f64 },
}

/// Messages that others overtake.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reordering {
    pub share: Ppm,
    /// How much longer they take.
    pub by: Nanos,
}

/// What happens at set times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outage {
    pub kind: OutageKind,
    /// When it begins first, counted from when the conditions came into force.
    pub at: Nanos,
    pub span: Nanos,
    /// From one beginning to the next; once without it.
    pub every: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OutageKind {
    /// What leaves then is lost.
    Partition,
    /// Nothing leaves then; it waits in the queue.
    Stall,
}

impl Outage {
    /// When the outage ends that covers `now`, if one does.
    pub fn end(&self, begun: Instant, now: Instant) -> Option<Instant> {
        let first = begun + self.at;
        if now < first {
            return None;
        }
        let start = match self.every.map(Nanos::as_nanos) {
            None | Some(0) => first,
            Some(every) => {
                let rounds = now.since(first).as_nanos() / every;
                first + Nanos::from_nanos(rounds * every)
            }
        };
        let end = start + self.span;
        (now < end).then_some(end)
    }
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// L, g and G.
    pub link: Link,
    /// Bytes that wait for the link, as in a switch's buffer. What does not fit is lost (a
    /// datagram), or is not taken from its sender yet (a stream).
    pub queue_bytes_max: Option<u64>,
    pub lost: Ppm,
    pub duplicated: Ppm,
    pub reordered: Reordering,
    pub corrupted: Ppm,
    pub jitter: Jitter,
    pub schedule: Vec<Outage>,
    /// Largest packet. Without it every message is one packet, and headers cost nothing.
    pub mtu: Option<u16>,
}

impl From<Link> for Conditions {
    fn from(link: Link) -> Self {
        Self { link, ..Self::default() }
    }
}

/// Processor time that an endpoint spends on each message: o of LogGP. It is no part of a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Overhead {
    pub send: Nanos,
    pub receive: Nanos,
}

impl Overhead {
    pub const NONE: Self = Self { send: Nanos::ZERO, receive: Nanos::ZERO };

    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// What of it cannot be.
    pub fn impossible(&self) -> Option<Impossible> {
        let beyond = |key: &'static str, got: Nanos| {
            let possible = || format!("at most {OVERHEAD_MAX}, for it is spent spinning");
            (got > OVERHEAD_MAX).then(|| Impossible {
                key,
                got: got.to_string(),
                possible: possible(),
            })
        };
        beyond("o.send", self.send).or_else(|| beyond("o.receive", self.receive))
    }
}

/// A parameter that cannot be: which, what was requested, and what is possible.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Impossible {
    pub key: &'static str,
    pub got: String,
    pub possible: String,
}

impl Conditions {
    /// True when messages pass as if there were no link.
    pub fn is_transparent(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes that are on their way when the link is full; none where the rate is no limit.
    pub fn under_way_bytes(&self) -> Option<f64> {
        let link = &self.link;
        (link.gap_per_byte_ps > 0).then(|| link.bytes_per_sec() * link.latency.as_secs_f64())
    }

    /// The first parameter that cannot be.
    pub fn impossible(&self) -> Option<Impossible> {
        self.impossible_link()
            .or_else(|| self.impossible_shares())
            .or_else(|| self.impossible_packets())
            .or_else(|| self.impossible_schedule())
    }

    fn impossible_link(&self) -> Option<Impossible> {
        let link = &self.link;
        let delays = [("L", link.latency), ("g", link.gap), ("reorder", self.reordered.by)];
        let jitter = match self.jitter {
            Jitter::None => Nanos::ZERO,
            Jitter::Uniform(span) | Jitter::Normal(span) | Jitter::Exponential(span) => span,
            Jitter::Pareto { scale, .. } => scale,
        };
        let mut delays = delays.into_iter().chain([("jitter", jitter)]);
        if let Some((key, got)) = delays.find(|&(_, span)| span > DELAY_MAX) {
            return Some(impossible(key, got, format!("at most {DELAY_MAX}")));
        }
        if let Jitter::Pareto { shape, .. } = self.jitter
            && !(shape > 1.0 && shape <= 100.0)
        {
            let possible = "a shape above 1 (below, there is no mean) and up to 100";
            return Some(impossible("jitter", shape, possible));
        }
        if link.gap_per_byte_ps > GAP_PER_BYTE_PS_MAX {
            let rate = format!("{:.3} B/s", link.bytes_per_sec());
            return Some(impossible("G", rate, "at least 1 kB/s"));
        }
        if let Some(under_way) = self.under_way_bytes()
            && under_way > HELD_BYTES_MAX as f64
        {
            let got = format!("{} at {:.1} MB/s", link.latency, link.bytes_per_sec() * 1e-6);
            let held = HELD_BYTES_MAX >> 20;
            let possible = format!(
                "L x rate of at most {held} MiB, which is what is held under way; here it is {:.0}",
                under_way / f64::from(1 << 20)
            );
            return Some(impossible("L", got, possible));
        }
        None
    }

    fn impossible_shares(&self) -> Option<Impossible> {
        let shares = [
            ("loss", self.lost),
            ("duplicate", self.duplicated),
            ("reorder", self.reordered.share),
            ("corrupt", self.corrupted),
        ];
        let (key, share) = shares.into_iter().find(|&(_, share)| share > Ppm::ALL)?;
        Some(impossible(key, format!("{} %", f64::from(share.0) / 1e4), "0 to 100 %"))
    }

    fn impossible_packets(&self) -> Option<Impossible> {
        if let Some(mtu) = self.mtu
            && mtu < MTU_MIN
        {
            return Some(impossible("mtu", mtu, format!("{MTU_MIN} (RFC 791) to {}", u16::MAX)));
        }
        let queue = self.queue_bytes_max?;
        let (least, why) = match self.mtu {
            Some(mtu) => (u64::from(mtu), "one packet of the mtu"),
            None => (QUEUE_BYTES_MIN, "one datagram; with an mtu, one packet"),
        };
        if queue < least || queue > HELD_BYTES_MAX {
            let possible = format!("{least} ({why}) to {HELD_BYTES_MAX} bytes");
            return Some(impossible("queue", format!("{queue} bytes"), possible));
        }
        None
    }

    fn impossible_schedule(&self) -> Option<Impossible> {
        if self.schedule.len() > OUTAGES_MAX {
            let (got, most) = (self.schedule.len(), format!("at most {OUTAGES_MAX} together"));
            return Some(impossible("partition and stall", got, most));
        }
        for outage in &self.schedule {
            let key = match outage.kind {
                OutageKind::Partition => "partition",
                OutageKind::Stall => "stall",
            };
            let every = outage.every.unwrap_or(SCHEDULE_MAX);
            for span in [outage.at, outage.span, every] {
                if span > SCHEDULE_MAX {
                    return Some(impossible(key, span, "times of at most a day"));
                }
            }
            if outage.span == Nanos::ZERO {
                return Some(impossible(key, "for 0 s", "a length above 0"));
            }
            if outage.every.is_some() && outage.span >= every {
                let got = format!("{} of every {every}", outage.span);
                return Some(impossible(key, got, "a length below the time to the next"));
            }
        }
        None
    }
}

fn impossible(key: &'static str, got: impl ToString, possible: impl Into<String>) -> Impossible {
    Impossible { key, got: got.to_string(), possible: possible.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn an_outage_covers_its_time_and_comes_again() {
        let once = Outage { kind: OutageKind::Stall, at: SECOND, span: SECOND, every: None };
        let at = |millis: u64| Instant::EPOCH + Nanos::from_millis(millis);
        let end = |outage: &Outage, millis| outage.end(at(500), at(millis)).map(Instant::as_nanos);
        assert_eq!(end(&once, 1_499), None);
        assert_eq!(end(&once, 1_500), Some(2_500_000_000));
        assert_eq!(end(&once, 2_499), Some(2_500_000_000));
        assert_eq!(end(&once, 2_500), None);
        let often = Outage { every: Some(Nanos::from_secs(10)), ..once };
        assert_eq!(end(&often, 12_000), Some(12_500_000_000));
        assert_eq!(end(&often, 12_500), None);
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        let names = |conditions: Conditions| conditions.impossible().map(|found| found.key);
        let far = Link { latency: DELAY_MAX + SECOND, ..Link::default() };
        assert_eq!(names(far.into()), Some("L"));
        let fat = Link { latency: SECOND, gap: SECOND, gap_per_byte_ps: 800 };
        assert_eq!(names(fat.into()), Some("L"), "1.25 GB under way");
        let slow = Link { gap_per_byte_ps: GAP_PER_BYTE_PS_MAX + 1, ..Link::default() };
        assert_eq!(names(slow.into()), Some("G"));
        let none = Conditions::default();
        assert_eq!(names(Conditions { mtu: Some(67), ..none.clone() }), Some("mtu"));
        let queue = |bytes, mtu| Conditions { queue_bytes_max: Some(bytes), mtu, ..none.clone() };
        assert_eq!(names(queue(1499, Some(1500))), Some("queue"));
        assert_eq!(names(queue(1500, Some(1500))), None);
        assert_eq!(names(queue(QUEUE_BYTES_MIN - 1, None)), Some("queue"));
        assert_eq!(names(queue(HELD_BYTES_MAX + 1, None)), Some("queue"));
        assert_eq!(names(Conditions { lost: Ppm(1_000_001), ..none.clone() }), Some("loss"));
        assert_eq!(names(Conditions { lost: Ppm::ALL, ..none.clone() }), None);
        let jitter = Jitter::Pareto { scale: SECOND, shape: 1.0 };
        assert_eq!(names(Conditions { jitter, ..none.clone() }), Some("jitter"));
        let always =
            Outage { kind: OutageKind::Stall, at: SECOND, span: SECOND, every: Some(SECOND) };
        assert_eq!(names(Conditions { schedule: vec![always], ..none.clone() }), Some("stall"));
        assert_eq!(names(none), None);
    }
}
