//! What `nfskit link` takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use harness::events;
use harness::values::{count, listen, size, time};
use perf::units::Nanos;

use super::target::{self, Target};

/// Relays between any NFS clients and a server, over an emulated link.
///
/// Clients reach the server through the address that it prints, with the latency, rate and
/// impairments of PROFILE in each direction. Every RPC message gets its own time. Each client host
/// has a link of its own, as on a switch, and its connections share it.
///
/// SIGHUP reads a profile that is a file again; SIGINT and SIGTERM end it after what is on its way,
/// with a summary; a second one ends it at once.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit link --to nfs-server wan-10ms                  its NFS and MOUNT, 5 ms away
  nfskit link --to 10.0.0.5:2049 --listen 0.0.0.0:2049 lan-1g
  nfskit link --to nfs-server --udp lan-100m --pcap link.pcap --stats
  nfskit link --to nfs-server none --control /run/link.sock
  nfskit link --set /run/link.sock 5ms/1g               while it runs; `show` prints the link

The overhead o of LogGP is processor time and cannot be added from outside: spend it in an endpoint,
with the --link of nfskit serve or nfskit bench.")]
pub(crate) struct Args {
    /// The link: a name, LATENCY/RATE or a list of parameters, as for --link elsewhere; with --set,
    /// the change for a relay that runs.
    #[arg(value_name = "PROFILE")]
    pub(super) profile: Vec<String>,
    /// Address and port for clients; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = listen)]
    pub(super) listen: SocketAddr,
    /// The same for MOUNT, where the server has it on a port of its own [default: a free one].
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    pub(super) listen_mount: Option<SocketAddr>,
    /// The server: HOST:PORT for one port; HOST, HOST:/EXPORT or a URL for those of NFS and MOUNT,
    /// which its portmapper knows.
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    #[arg(required_unless_present_any = ["set", "calibrate"])]
    pub(super) to: Option<Target>,
    /// Relays UDP, too, on the same ports.
    #[arg(long)]
    pub(super) udp: bool,
    /// Relays for everybody as for itself, and any number of bytes to any source of datagrams.
    /// Without it, calls go from a privileged port only if they came from one or, on this host,
    /// from a program of root or of this user; and calls to a server on this host go only from
    /// those.
    #[arg(long)]
    pub(super) insecure: bool,
    /// Takes changes while it runs, one a line, from a Unix socket at PATH.
    #[arg(long, value_name = "PATH", conflicts_with = "set")]
    pub(super) control: Option<PathBuf>,
    /// Sends PROFILE to the running relay whose --control is PATH, prints its answer, and ends.
    #[arg(long, value_name = "PATH", conflicts_with = "to", requires = "profile")]
    pub(super) set: Option<PathBuf>,
    /// Measures how exactly this machine delays messages, prints requested against measured, and
    /// ends.
    #[arg(long, conflicts_with_all = ["to", "set", "profile"])]
    pub(super) calibrate: bool,
    /// Begins without measuring whether this machine can delay messages as requested.
    #[arg(long)]
    pub(super) uncalibrated: bool,
    /// Prints a line of statistics a second, also where there is no terminal.
    #[arg(long)]
    pub(super) stats: bool,
    /// Writes a record of what was relayed to FILE at the end, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(super) json: Option<PathBuf>,
    /// Captures what comes and what leaves in FILE, for tshark and others.
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Where /metrics, for Prometheus, and /healthz are answered over HTTP.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    pub(super) metrics: Option<SocketAddr>,
    /// Connections at once; a new one replaces the one idle longest. UDP: sources.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = count(1..=1_000_000))]
    pub(super) connections: u32,
    /// Connections at once from one address.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = count(1..=1_000_000))]
    pub(super) connections_per_host: u32,
    /// Bytes that all connections may hold together; over it they are not read, and datagrams are
    /// dropped.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(super) held: u64,
    /// A connection on which nothing passes for so long is closed.
    #[arg(long, value_name = "TIME", default_value = "1800s", value_parser = time)]
    pub(super) idle: Nanos,
    /// A connection whose peer takes no byte for so long, or does not finish a message that it has
    /// begun, is closed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(super) stall: Nanos,
    /// How long messages on their way may take when the relay ends.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(super) grace: Nanos,
    /// Threads that relay. One is the most exact.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=64))]
    pub(super) threads: u32,
    /// How log lines, which go to standard error, look.
    #[arg(long, value_enum, default_value_t = events::Format::Text)]
    pub(super) log_format: events::Format,
}
