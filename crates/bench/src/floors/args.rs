//! The arguments of the benches that measure without NFS: network and storage by themselves.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Parser, ValueEnum};
use client::url::Target;
use harness::values::{byte_rate, count, listen, size, target, time, time_or_zero};
use net::floor::protocol;
use net::floor::{DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MIN, spray};
use perf::units::Nanos;

/// Throughput of the network alone, over TCP and UDP, between this process and a far end.
///
/// The far end is `nfskit bench stream --server` on the other host. The sender's rate and the
/// receiver's are reported separately, and for lost datagrams the kernels' counters.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench stream --server --listen 0.0.0.0:20490   on the one host
  nfskit bench stream --to server                       on the other
  nfskit bench stream --to server --proto udp --size 1472,8K --rate 100M")]
#[command(group = ArgGroup::new("side").required(true).args(["server", "to"]))]
pub struct Stream {
    /// Is the far end, of `stream`, `rtt` and `spray`, until interrupted.
    #[arg(long)]
    pub(crate) server: bool,
    /// With --server: address and port, for TCP and UDP; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:20490")]
    #[arg(value_parser = listen, requires = "server")]
    pub(crate) listen: SocketAddr,
    /// The far end; port 20490 unless given.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = far)]
    pub(crate) to: Option<Far>,
    /// What to stream over.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "tcp,udp")]
    #[arg(conflicts_with = "server")]
    pub(crate) proto: Vec<Proto>,
    /// Bytes of a message, or a list [default: 8K,64K,1M over TCP; 1472,8K,32K over UDP].
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    #[arg(conflicts_with = "server")]
    pub(crate) size: Vec<u64>,
    /// Length of each run: --time or --bytes, whichever comes first.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    #[arg(conflicts_with = "server")]
    pub(crate) time: Nanos,
    /// Bytes of each run: --time or --bytes, whichever comes first.
    #[arg(long, value_name = "SIZE", default_value = "64G", value_parser = size)]
    #[arg(conflicts_with = "server")]
    pub(crate) bytes: u64,
    /// Runs of each size.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(1..=1000))]
    #[arg(conflicts_with = "server")]
    pub(crate) repeats: u32,
    /// Bytes to send in each second [default: as fast as they go].
    #[arg(long, value_name = "RATE", value_parser = byte_rate, conflicts_with = "server")]
    pub(crate) rate: Option<u64>,
    /// Writes the run record to FILE, or to standard output with `-`; a list of them for several
    /// sizes.
    #[arg(long, value_name = "-|FILE", conflicts_with = "server")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Proto {
    Tcp,
    Udp,
}

/// Response times of the network alone, by size: UDP, TCP and NULL calls; and whole transfers.
///
/// With --to a far end (`nfskit bench stream --server`) echoes messages, answers NULL, and sends a
/// sentinel when a transfer is complete. With --target any NFS server answers NULL.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench rtt --to server
  nfskit bench rtt --to server --target nfs://server/export?proto=udp
  nfskit bench rtt --target nfs://server/export --size 40 --rate 1000 --trials 60000")]
#[command(group = ArgGroup::new("peer").required(true).multiple(true).args(["to", "target"]))]
pub struct Rtt {
    /// The far end; port 20490 unless given.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = far)]
    pub(crate) to: Option<Far>,
    /// An NFS server whose NULL is called; again for more.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Vec<Target>,
    /// Bytes of a message, or a list.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    #[arg(default_value = "64,548,972,1472,8K,32K")]
    pub(crate) size: Vec<u64>,
    /// Messages of each size: --trials or --row-time, whichever comes first.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = count(1..=10_000_000))]
    pub(crate) trials: u32,
    /// Time for each size: --trials or --row-time, whichever comes first.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(crate) row_time: Nanos,
    /// Messages in each second; times count from when each was due [default: each after the one
    /// before].
    #[arg(long, value_name = "N", value_parser = count(1..=10_000_000))]
    pub(crate) rate: Option<u32>,
    /// Messages without a reply by then count as lost.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Lengths of the transfers that a sentinel answers.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    #[arg(default_value = "1M,32M", requires = "to")]
    pub(crate) transfer: Vec<u64>,
    /// No transfers.
    #[arg(long)]
    pub(crate) no_transfer: bool,
    /// Bytes of a transfer's messages.
    #[arg(long, value_name = "SIZE", default_value = "1472", value_parser = size)]
    #[arg(requires = "to")]
    pub(crate) packet: u64,
    /// Bytes of transfers over UDP in each second [default: as fast as they go].
    #[arg(long, value_name = "RATE", value_parser = byte_rate, requires = "to")]
    pub(crate) transfer_rate: Option<u64>,
    /// Transfers of each length.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(1..=1000))]
    #[arg(requires = "to")]
    pub(crate) repeats: u32,
    /// Writes the time of every message as CSV to FILE, or to standard output with `-`.
    #[arg(long, alias = "latencies", value_name = "-|FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Sends calls at a rate, whether they are answered or not, and counts those that are lost.
///
/// With --to they are SPRAY calls, which a spray program (100012) counts and does not answer: that
/// of a far end (`nfskit bench stream --server`), or with --rpcbind that of the host. With --target
/// they are NULL calls to any NFS server: lost is what has no reply in time.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench spray --to server -l 2048 -c 100 -d 2
  nfskit bench spray --to oldhost --rpcbind
  nfskit bench spray --target nfs://server/export?proto=udp -c 10000 --rate 20000")]
#[command(group = ArgGroup::new("peer").required(true).args(["to", "target"]))]
pub struct Spray {
    /// The far end; port 20490 unless given.
    #[arg(long, value_name = "HOST[:PORT]", value_parser = far)]
    pub(crate) to: Option<Far>,
    /// Asks the host's portmapper for the port of its spray program.
    #[arg(long, conflicts_with = "target")]
    pub(crate) rpcbind: bool,
    /// An NFS server whose NULL is called.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// Bytes of a packet, with those of its headers, as spray(8) counts them [default: the
    /// smallest: 86, or 82 for NULL].
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    pub(crate) length: Option<u64>,
    /// Calls [default: as many as make 100,000 bytes].
    #[arg(short, long, value_name = "N", value_parser = count(1..=spray::CALLS_MAX))]
    pub(crate) count: Option<u32>,
    /// Time between a call and the next; a number without a unit is microseconds, as for spray(8).
    #[arg(short, long, value_name = "USECS|TIME", value_parser = delay, conflicts_with = "rate")]
    pub(crate) delay: Option<Nanos>,
    /// Calls in each second; response times count from when each was due.
    #[arg(long, value_name = "N", value_parser = count(1..=10_000_000))]
    pub(crate) rate: Option<u32>,
    /// Runs.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(1..=1000))]
    pub(crate) repeats: u32,
    /// What has no reply by then is lost.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What a local directory can do: the ceiling of an NFS server on it.
///
/// A fresh file is written sequentially and synced, read from memory, dropped from memory and read
/// again; then pages are appended to another, each with an fdatasync.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench storage --dir /srv/data
  nfskit bench storage --dir /srv/data --size 4G --call 64K --json storage.json
  nfskit bench storage --dir /srv/data --drop-caches    as root: the caches of the whole system")]
pub struct Storage {
    /// The directory, on any file system.
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: PathBuf,
    /// Length of the file.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub(crate) size: u64,
    /// Bytes of a read or write.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    pub(crate) call: u64,
    /// Appends of 4 KiB, each with fdatasync: --appends or --append-time, whichever comes first.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = count(1..=10_000_000))]
    pub(crate) appends: u32,
    /// Time for the appends: --appends or --append-time, whichever comes first.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub(crate) append_time: Nanos,
    /// Runs, each with fresh files.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(1..=1000))]
    pub(crate) repeats: u32,
    /// Drops the caches of the whole system before the second read, not the file's alone.
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A host and a port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Far {
    pub(crate) host: String,
    pub(crate) port: u16,
}

fn far(text: &str) -> Result<Far, String> {
    let form = || format!("{text:?} is not HOST[:PORT], such as server, 10.0.0.1:20490 or [::1]");
    let (host, port) = match text.rsplit_once(':') {
        // The last colon of an address of IPv6 without a port is not that of a port.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_bracketed = host.starts_with('[') == host.ends_with(']');
    let is_host = !host.is_empty() && is_bracketed && !host.contains(['/', '@', ' ']);
    let port = port.map_or(Ok(protocol::PORT), |port| port.parse().map_err(|_| form()))?;
    match is_host && port > 0 {
        true => Ok(Far { host: host.to_owned(), port }),
        false => Err(form()),
    }
}

/// As spray(8) has it, in microseconds; zero is none.
fn delay(text: &str) -> Result<Nanos, String> {
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_bare && !text.is_empty() {
        time_or_zero(&format!("{text}us"))
    } else {
        time_or_zero(text)
    }
}

/// Sizes of messages as the sockets have them; a size out of range is refused with the range.
pub(crate) fn message_sizes(sizes: &[u64], is_udp: bool) -> Result<Vec<usize>, String> {
    let most = if is_udp { DATAGRAM_BYTES_MAX } else { protocol::MESSAGE_BYTES_MAX };
    let range = MESSAGE_BYTES_MIN..=most;
    let sizes = sizes.iter().map(|&size| {
        let bytes = usize::try_from(size).ok().filter(|bytes| range.contains(bytes));
        bytes.ok_or_else(|| {
            let over = if is_udp { "UDP" } else { "TCP" };
            format!(
                "a message of {size} bytes: over {over} they have {MESSAGE_BYTES_MIN} to {most}"
            )
        })
    });
    sizes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_end_is_a_host_and_perhaps_a_port() {
        let read = |text: &str| far(text).map(|far| (far.host, far.port)).unwrap();
        assert_eq!(read("server"), ("server".to_owned(), 20_490));
        assert_eq!(read("10.0.0.1:99"), ("10.0.0.1".to_owned(), 99));
        assert_eq!(read("[::1]:99"), ("[::1]".to_owned(), 99));
        assert_eq!(read("fe80::1"), ("fe80::1".to_owned(), 20_490));
        for wrong in ["", ":99", "server:", "server:0", "server:99999", "[::1", "nfs://server/x"] {
            assert!(far(wrong).unwrap_err().contains("HOST[:PORT]"), "{wrong}");
        }
    }

    #[test]
    fn a_delay_is_in_microseconds_unless_it_says_so() {
        assert_eq!(delay("2"), Ok(Nanos::from_micros(2)));
        assert_eq!(delay("1.5"), Ok(Nanos::from_nanos(1_500)));
        assert_eq!(delay("2ms"), Ok(Nanos::from_millis(2)));
        assert_eq!(delay("1m"), Ok(Nanos::from_secs(60)));
        assert_eq!(delay("0"), Ok(Nanos::ZERO));
        assert!(delay("fast").is_err());
    }

    #[test]
    fn sizes_out_of_range_are_reported_with_the_range() {
        assert_eq!(message_sizes(&[40, 65_507], true), Ok(vec![40, 65_507]));
        for wrong in [39, 65_508, u64::MAX] {
            assert!(message_sizes(&[wrong], true).unwrap_err().contains("40 to 65507"));
        }
        assert!(message_sizes(&[16 << 20], false).is_ok());
    }
}
