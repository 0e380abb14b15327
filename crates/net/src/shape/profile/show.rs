//! A link in words.

use std::fmt;

use perf::units::Nanos;
use perf::words::counted;

use super::Profile;
use crate::shape::conditions::{Conditions, Jitter, OutageKind, Overhead, Ppm};

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.has_link() && self.overhead.is_none() {
            return f.write_str("none (bare loopback or the network as it is)");
        }
        write!(f, "{} (emulated: ", self.name)?;
        if self.there == self.back {
            write!(f, "{}", Words { conditions: &self.there, one_way: " one way" })?;
        } else {
            let (there, back) = (&self.there, &self.back);
            write!(f, "there {}", Words { conditions: there, one_way: "" })?;
            write!(f, "; back {}", Words { conditions: back, one_way: "" })?;
        }
        let Overhead { send, receive } = self.overhead;
        if !self.overhead.is_none() {
            write!(f, ", o {send} to send and {receive} to receive")?;
        }
        f.write_str(")")
    }
}

struct Words<'c> {
    conditions: &'c Conditions,
    one_way: &'static str,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { conditions, one_way } = self;
        write!(f, "L {}{one_way}", conditions.link.latency)?;
        match conditions.link.gap_per_byte_ps {
            0 => {}
            ps => write!(f, ", {}", rate(8e12 / ps as f64))?,
        }
        if conditions.link.gap > Nanos::ZERO {
            write!(f, ", g {}", conditions.link.gap)?;
        }
        match conditions.jitter {
            Jitter::None => {}
            Jitter::Uniform(span) => write!(f, ", jitter up to {span}")?,
            Jitter::Normal(span) => write!(f, ", jitter normal with deviation {span}")?,
            Jitter::Exponential(span) => write!(f, ", jitter exponential with mean {span}")?,
            Jitter::Pareto { scale, shape } => {
                write!(f, ", jitter Pareto with scale {scale} and shape {shape}")?;
            }
        }
        for (share, what) in [
            (conditions.lost, "lost"),
            (conditions.duplicated, "twice"),
            (conditions.reordered.share, "overtaken"),
            (conditions.corrupted, "damaged"),
        ] {
            if share > Ppm::NONE {
                write!(f, ", {} % {what}", f64::from(share.0) / 1e4)?;
            }
        }
        if let Some(bytes) = conditions.queue_bytes_max {
            write!(f, ", queue of {} KiB", bytes >> 10)?;
        }
        if let Some(mtu) = conditions.mtu {
            write!(f, ", MTU {mtu}")?;
        }
        for (kind, what) in [(OutageKind::Partition, "partition"), (OutageKind::Stall, "stall")] {
            let count = conditions.schedule.iter().filter(|outage| outage.kind == kind).count();
            if count > 0 {
                write!(f, ", {} on a schedule", counted(count as u64, what))?;
            }
        }
        Ok(())
    }
}

/// In the unit in which it is a small number.
fn rate(bits_per_sec: f64) -> String {
    let (number, unit) = match bits_per_sec {
        bits if bits >= 1e9 => (bits * 1e-9, "Gbit/s"),
        bits if bits >= 1e6 => (bits * 1e-6, "Mbit/s"),
        bits => (bits * 1e-3, "kbit/s"),
    };
    let rounded = (number * 100.0).round() / 100.0;
    format!("{rounded} {unit}")
}
