//! The arguments of `nfskit model cycle`, `interim`, `network` and `sensitivity`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use harness::values::{count, positive, share, size};
use world::simulate::values::Span;

use super::estimate::Known;

/// The transaction cycle of one call, under the given conditions.
///
/// Always: one call after the other, as many as are outstanding, and a loopback. With --daemons, a
/// server with so many; with --raid, striped disks; with --hop, servers that export what they have
/// mounted from another; with --mtu, datagrams in fragments that may get lost, and what
/// retransmissions cost. docs/models.md, sections 2, 3 and 13, has the formulas and their sources.
#[derive(Debug, Parser)]
#[command(after_help = "Examples, of the thesis (tables 9.2 and 9.4):
  nfskit model cycle --round-trip 192.68us --ser 8.192us --op 61.87us --block 175.98us
  nfskit model cycle --round-trip 192.68us --ser 8.192us --op 61.87us --block 175.98us \\
      --outstanding 8 --daemons 1 --raid 5 --disks 4 --mtu 1500 --loss 0.001 --timeout 700ms
  nfskit model cycle --round-trip 192.68us --ser 8.192us --op 61.87us --block 175.98us \\
      --hop 175.39us,8.192us,61.87us --hop 200us,8us,60us,32K,4")]
pub struct Cycle {
    /// 2 T_prop: a network round trip without data.
    #[arg(long, value_name = "TIME")]
    pub(crate) round_trip: Span,
    /// T_ser: what each KiB of a call takes on the way.
    #[arg(long, value_name = "TIME")]
    pub(crate) ser: Span,
    /// T_op: what the server takes for a call without its data.
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) op: Span,
    /// T_B: what the disk takes for the data of a call.
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) block: Span,
    /// Size of a call.
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = size)]
    pub(crate) size: u64,
    /// Calls outstanding.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count(1..=65_536))]
    pub(crate) outstanding: u32,
    /// A server with so many daemons, each of which keeps its call until the disk has it.
    #[arg(long, value_name = "N", value_parser = count(1..=65_536))]
    pub(crate) daemons: Option<u32>,
    /// Striped disks, of which each alone takes --block.
    #[arg(long, value_name = "LEVEL", requires = "disks")]
    pub(crate) raid: Option<RaidLevel>,
    /// Disks of --raid.
    #[arg(long, value_name = "N", requires = "raid", value_parser = count(1..=10_000))]
    pub(crate) disks: Option<u32>,
    /// What lies on a disk of --raid before the next begins.
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    #[arg(requires = "raid")]
    pub(crate) unit: u64,
    /// What --raid makes durable in one sync [default: a call].
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "raid")]
    pub(crate) sync_size: Option<u64>,
    /// A further server behind the first: 2 T_prop, T_ser and T_op, and if they differ the size of
    /// its calls and how many are outstanding. Again for a third.
    #[arg(long, value_name = "PROP,SER,OP[,SIZE[,N]]", value_parser = hop)]
    pub(crate) hop: Vec<Hop>,
    /// Datagrams, in fragments of so many bytes.
    #[arg(long, value_name = "BYTES", value_parser = count(68..=65_535))]
    pub(crate) mtu: Option<u32>,
    /// Share of fragments that are lost, of 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    #[arg(requires = "mtu")]
    pub(crate) loss: f64,
    /// Time until the first retransmission; it doubles with each.
    #[arg(long, value_name = "TIME", default_value = "700ms", requires = "mtu")]
    pub(crate) timeout: Span,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum RaidLevel {
    #[value(name = "0")]
    Zero,
    #[value(name = "5")]
    Five,
    #[value(name = "10")]
    Ten,
}

/// A server behind another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    pub(crate) round_trip: Span,
    pub(crate) ser: Span,
    pub(crate) op: Span,
    pub(crate) size: Option<u64>,
    pub(crate) outstanding: Option<u32>,
}

fn hop(text: &str) -> Result<Hop, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let (&[round_trip, ser, op], further) = parts.split_first_chunk().ok_or_else(|| {
        format!("{text:?} is no hop: 2 T_prop, T_ser and T_op, as in 200us,8us,60us")
    })?;
    let outstanding = |text: &str| {
        let number: Option<u32> = text.parse().ok().filter(|number| (1..=65_536).contains(number));
        number.ok_or_else(|| format!("{text:?} is no number of 1 to 65536"))
    };
    if further.len() > 2 {
        return Err(format!("{text:?} has more than size and calls outstanding after its times"));
    }
    Ok(Hop {
        round_trip: round_trip.parse()?,
        ser: ser.parse()?,
        op: op.parse()?,
        size: further.first().map(|text| size(text)).transpose()?,
        outstanding: further.get(1).map(|text| outstanding(text)).transpose()?,
    })
}

/// Fits the interim model, in which each packet costs a fixed time and one for its bytes, and says
/// which measurement refutes it.
///
/// It is that of the thesis's chapter 5, which its chapters 6 and 8 refute. Two points always
/// confirm it: give three or more, of which the last ones are not fitted but predicted.
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  nfskit model interim mtu.txt

Measurements, with their units in the first line:
  mtu_bytes  mbit_per_s
  256        128.6
  576        156.86
  1000       166.67
  1500       220.753

These are the thesis's own, and the last refutes it: the model has 174 Mbit/s there.")]
pub struct Interim {
    /// The measurements: a file of two columns.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How many of the first rows are fitted; the others are predicted [default: all but the last].
    #[arg(long, value_name = "N", value_parser = count(2..=10_000))]
    pub(crate) fit: Option<u32>,
    /// Percent by which a measurement may differ from the model before it refutes it.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = count(1..=1000))]
    pub(crate) tolerance: u32,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Solves a closed network of queues by mean value analysis, exactly and approximately.
///
/// Several classes of callers, think times, queues, centers with several servers, delays. One class
/// has asymptotic bounds, too.
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  nfskit model network network.toml

A network; a center has a demand (visits times service time) for each class, in their order:
  [[class]]
  name = \"editors\"
  callers = 20
  think = \"5ms\"
  [[class]]
  name = \"backup\"
  callers = 2
  [[center]]
  name = \"cpu\"
  servers = 2               # 1 by default
  demand = [\"200us\", \"500us\"]
  [[center]]
  name = \"network\"
  delay = true              # without a queue
  demand = [\"400us\", \"400us\"]")]
pub struct Network {
    /// Classes and centers: a TOML file.
    #[arg(value_name = "NETWORK.toml")]
    pub(crate) file: PathBuf,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Says how sensitive a server that was measured is to latency, overhead and bandwidth.
///
/// From any fitted model: d(base)/dL, the saturation over an o that is added to each message, and
/// the bandwidth below which the data of the mix fill the link.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit model sensitivity f840.txt --cpus 2 --disks 76 --mtu 3584
  nfskit model sensitivity probe.json --reads 0 --writes 100")]
pub struct Sensitivity {
    /// What was measured, as `model fit` and `model whatif` take it.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which of several servers or connections in the file: a part of its name.
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    #[command(flatten)]
    pub(crate) known: Known,
    /// READs, of 100 operations; the paper's by default.
    #[arg(long, value_name = "PERCENT", default_value_t = 14, value_parser = count(0..=100))]
    pub(crate) reads: u32,
    /// WRITEs, of 100 operations; the paper's by default.
    #[arg(long, value_name = "PERCENT", default_value_t = 7, value_parser = count(0..=100))]
    pub(crate) writes: u32,
    /// Data of a READ or a WRITE [default: that of a probe's calls, or 8K]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) data: Option<u64>,
    /// Packets of so many bytes, each of which costs an o; without it, whole messages do.
    #[arg(long, value_name = "BYTES", value_parser = count(68..=65_535))]
    pub(crate) mtu: Option<u32>,
    /// Packets are segments of a stream, and not fragments of datagrams.
    #[arg(long, requires = "mtu")]
    pub(crate) tcp: bool,
    /// Calls a second, for the threshold of the bandwidth [default: the saturation].
    #[arg(long, value_name = "N", value_parser = positive(1e-9..=1e12))]
    pub(crate) rate: Option<f64>,
    /// Round trips of an operation, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = positive(1e-9..=1e12))]
    pub(crate) round_trips: f64,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
