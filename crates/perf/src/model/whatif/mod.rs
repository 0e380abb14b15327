//! "What if": changes in words, applied to a fitted model.
//!
//! ```text
//! L=5ms  L+1ms  o+50us  G=100Mbit/s  G=1g
//! disks=8  disk=4ms  disks-each  cache=64G  cpus=4  cpu x0.5
//! clients x10  clients=64  outstanding=32  outstanding x4  wsize=1M  threads=1
//! write-log=sim:nvram  write-log=95us,both=130us,rate=1.2GB/s  write-log=nvme
//! ```
//!
//! A change sets (`=`), adds (`+`) or multiplies (`x`). Which model understands which change is in
//! [`of_server`] (a file server inferred from a curve), [`of_path`] (one client's transfer, as the
//! probes find it), [`of_sweep`] and [`of_trace`]. One that a model does not contain is refused: no
//! answer is better than "no effect".
//!
//! Times and rates are written as those of an emulated link ([`crate::words`]); sizes have powers
//! of 1,024 (K, M, G, T), rates powers of 1,000.

pub mod believed;
pub mod of_path;
pub mod of_server;
pub mod of_sweep;
pub mod of_trace;
pub mod replay;

use std::str::FromStr;

use thiserror::Error;

use super::error::{ModelError, within};
use super::write_log::{LogDevice, LogDeviceError};
use crate::units::Nanos;
use crate::words;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub what: What,
    pub how: How,
    /// In us, bytes, us per KiB (G) or a number.
    pub value: f64,
    /// Of a write log that is set, all that is known of its device; the value is its `write_us`.
    pub log: Option<LogDevice>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    Set,
    Add,
    Times,
}

/// What changes: the name in words, and what kind of value it takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum What {
    /// L, one way, us.
    Latency,
    /// o, for each message at one end, us.
    Overhead,
    /// G, us per KiB; printed as a rate.
    Gap,
    /// Service time of the processor, us.
    Cpu,
    Cpus,
    /// Service time of a disk, us.
    Disk,
    Disks,
    /// Bytes of memory and NVRAM.
    Cache,
    /// Callers.
    Clients,
    /// Calls outstanding of one client.
    Outstanding,
    /// Size of a call, bytes.
    CallSize,
    /// Daemons of the server.
    Threads,
    /// A stable log: the time of a write of its device, us.
    WriteLog,
}

const NAMES: [(&str, What); 16] = [
    ("L", What::Latency),
    ("latency", What::Latency),
    ("o", What::Overhead),
    ("overhead", What::Overhead),
    ("G", What::Gap),
    ("bandwidth", What::Gap),
    ("cpu", What::Cpu),
    ("cpus", What::Cpus),
    ("disk", What::Disk),
    ("disks", What::Disks),
    ("cache", What::Cache),
    ("clients", What::Clients),
    ("outstanding", What::Outstanding),
    ("wsize", What::CallSize),
    ("threads", What::Threads),
    ("write-log", What::WriteLog),
];

/// Sync of an NVMe device with a protected cache, us: a guess between 10 and 100, which is what
/// such devices are sold with. Measure your own and say `write-log=40us`.
pub const NVME_SYNC_US: f64 = 30.0;

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WhatIfError {
    #[error(
        "{text:?} is no change: a name, then =, + or x, then a value, as in \"L=5ms\", \
         \"disks=8\", \"outstanding x4\"; names: {}",
        names()
    )]
    Text { text: String },
    #[error("{text:?}: {value:?} is no {kind}")]
    Value { text: String, value: String, kind: &'static str },
    #[error("write-log={0}")]
    Log(#[from] LogDeviceError),
    #[error("a change of {what} like this has no answer here: {why}")]
    Foreign { what: What, why: &'static str },
    #[error("after the change: {0}")]
    Impossible(#[from] ModelError),
    #[error("{0}")]
    Beyond(&'static str),
}

impl What {
    fn name(self) -> &'static str {
        let name = NAMES.iter().find(|(_, what)| *what == self).map(|(name, _)| *name);
        name.unwrap_or_default()
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

impl Change {
    /// The new value of something that was `before`.
    pub fn of(&self, before: f64) -> f64 {
        match self.how {
            How::Set => self.value,
            How::Add => before + self.value,
            How::Times => before * self.value,
        }
    }

    /// The same for something that is counted; rounded, and at least 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 saturates, and what is too many is refused where it is used"
    )]
    pub fn of_count(&self, before: u32) -> u32 {
        self.of(f64::from(before)).round() as u32
    }

    /// The same, where it has to be from 1 to `most`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 saturates"
    )]
    fn of_count_up_to(&self, before: u32, most: u32) -> Result<u32, ModelError> {
        if self.how == How::Set && self.value.fract() != 0.0 {
            return Err(ModelError::NotWhole { what: self.what.name(), got: self.value });
        }
        let count = self.of(f64::from(before)).round() as u64;
        within(self.what.name(), count, 1, most.into())?;
        Ok(count as u32)
    }
}

impl FromStr for Change {
    type Err = WhatIfError;

    fn from_str(text: &str) -> Result<Self, WhatIfError> {
        let no_change = || WhatIfError::Text { text: text.chars().take(60).collect() };
        let text = text.trim();
        let end = text
            .find(|c: char| !(c.is_ascii_alphabetic() || c == '-'))
            .filter(|&end| end > 0)
            .ok_or_else(no_change)?;
        // A multiplication needs a space before its x, as "clients x10": "ox2" would be a name.
        let (name, rest) = (&text[..end], text[end..].trim_start());
        let what = NAMES.iter().find(|(known, _)| *known == name).ok_or_else(no_change)?.1;
        let how = match rest.chars().next() {
            Some('=') => How::Set,
            Some('+') => How::Add,
            Some('x') => How::Times,
            _ => return Err(no_change()),
        };
        let value_text = rest[1..].trim();
        let kind = kind(what, how);
        let log = matches!(kind, Kind::Log).then(|| value_text.parse::<LogDevice>()).transpose()?;
        let read = log.map(|log| log.write_us).or_else(|| kind.read(value_text));
        let value = read.filter(|value| value.is_finite() && *value >= 0.0);
        let value = value.ok_or_else(|| WhatIfError::Value {
            text: text.chars().take(60).collect(),
            value: value_text.chars().take(60).collect(),
            kind: kind.name(),
        })?;
        Ok(Self { what, how, value, log })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Time,
    Size,
    Rate,
    Number,
    Log,
}

fn kind(what: What, how: How) -> Kind {
    match what {
        _ if how == How::Times => Kind::Number,
        What::Latency | What::Overhead | What::Cpu | What::Disk => Kind::Time,
        What::Gap => Kind::Rate,
        What::Cache | What::CallSize => Kind::Size,
        What::WriteLog if how == How::Set => Kind::Log,
        What::WriteLog => Kind::Time,
        What::Cpus | What::Disks | What::Clients | What::Outstanding | What::Threads => {
            Kind::Number
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Time => "time with a unit (us, ms, s, m)",
            Self::Size => "size (4096, 64K, 1.5M, 1MB)",
            Self::Rate => "rate of a link (1g, 100m, 100Mbit/s, 1.25MB/s, 8ns for a byte, none)",
            Self::Number => "number",
            Self::Log => "log device (sim:nvram, or what serve --write-log prints of one)",
        }
    }

    fn read(self, text: &str) -> Option<f64> {
        match (self, text) {
            (Self::Log, _) => text.parse().ok().map(|log: LogDevice| log.write_us),
            (Self::Time, _) => words::time_with_unit(text).ok().map(Nanos::as_micros_f64),
            (Self::Rate, _) => words::gap_per_byte(text).ok().map(us_per_kib),
            (Self::Size, _) => words::size(text).ok().map(|bytes| bytes as f64),
            (Self::Number, _) => words::scaled(text, &[("", 1.0)], "").ok(),
        }
    }
}

fn us_per_kib(gap_per_byte_ps: u64) -> f64 {
    gap_per_byte_ps as f64 * 1024.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_takes_the_words_that_a_link_takes() {
        let us_per_kib = |text: &str| text.parse::<Change>().unwrap().value;
        for text in ["G=100m", "G=100Mbit/s", "G=100 Mbit/s", "G=12.5MB/s", "bandwidth=80ns/B"] {
            assert!((us_per_kib(text) - 81.92).abs() < 1e-9, "{text}");
        }
        assert!((us_per_kib("G=1g") - 8.192).abs() < 1e-9);
        assert_eq!(us_per_kib("G=none"), 0.0);
    }

    #[test]
    fn changes_are_read_as_they_are_stated() {
        let read = |text: &str| {
            let change: Change = text.parse().unwrap();
            (change.what, change.how, change.value)
        };
        assert_eq!(read("L=5ms"), (What::Latency, How::Set, 5_000.0));
        assert_eq!(read("L +1 ms"), (What::Latency, How::Add, 1_000.0));
        assert_eq!(read("disks=8"), (What::Disks, How::Set, 8.0));
        assert_eq!(read("cache=64G"), (What::Cache, How::Set, 64.0 * 1_073_741_824.0));
        assert_eq!(read("wsize=1M"), (What::CallSize, How::Set, 1_048_576.0));
        assert_eq!(read("outstanding=32"), (What::Outstanding, How::Set, 32.0));
        assert_eq!(read("clients x10"), (What::Clients, How::Times, 10.0));
        assert_eq!(read("cpu x0.5"), (What::Cpu, How::Times, 0.5));
        assert_eq!(read("write-log=nvme"), (What::WriteLog, How::Set, NVME_SYNC_US));
        assert_eq!(read("write-log=0.2ms"), (What::WriteLog, How::Set, 200.0));
        let (what, how, us_per_kib) = read("G=100Mbit/s");
        assert_eq!((what, how), (What::Gap, How::Set));
        assert!((us_per_kib - 81.92).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_change_is_refused_with_the_reason() {
        let error = |text: &str| text.parse::<Change>().unwrap_err().to_string();
        assert!(error("").contains("is no change"));
        assert!(error("speed=2").contains("names: L, latency"));
        assert!(error("L").contains("is no change"));
        assert!(error("L-1ms").contains("is no change"));
        assert!(error("L=5").contains("time with a unit"));
        assert!(error("L=five ms").contains("time with a unit"));
        assert!(error("cache=64X").contains("size"));
        assert!(error("disks=-8").contains("\"-8\" is no number"));
        assert!(error("G=100").contains("rate of a link"));
        assert!(error("G=0Mbit/s").contains("rate of a link"));
        assert!(error("clients xNaN").contains("number"));
        assert!(error("disks=\u{e9}").contains("number"));
    }
}
