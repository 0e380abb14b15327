//! The command line. Each argument is checked by itself; what takes the outside world is checked by
//! the commands.

pub(crate) mod cache;
pub(crate) mod doctor;
pub(crate) mod help;
pub(crate) mod log;
pub(crate) mod stat;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Parser, Subcommand, ValueEnum};
use harness::events::Format;
use harness::exports::options;
use harness::served::CommitMode;
use harness::values::{count, listen, size, time, versions};
use harness::verbosity::Verbosity;
use net::shape::profile::Profile;
use perf::units::Nanos;
use server::Versions;
use server::store::dir;
use server::store::dir::write_log::OnFailure;

/// Finds what slows NFS down, explains it with a model that predicts, and removes it.
#[derive(Debug, Parser)]
#[command(name = "nfskit", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Only errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// More about what is done, and what the command took of this machine.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

impl Args {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Doctor(doctor::Doctor),
    Study(study::server_study::args::Study),
    Probe(study::probe::args::Probe),
    Serve(Serve),
    Mount(crate::cmd::mount::Args),
    Link(Box<crate::cmd::link::Args>),
    Trace(Box<inspect::args::Trace>),
    Stat(stat::Stat),
    Top(stat::Top),
    /// Write logs of servers: what they hold, and bringing it to its place.
    #[command(subcommand)]
    Log(log::Log),
    /// Blocks of files that mounts keep on a local disk (`mount --cache`).
    #[command(subcommand)]
    Cache(cache::Cache),
    CrashTest(Box<bench::crash_test::CrashTest>),
    /// Runs one workload.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Reproduces the papers' results: paper, model and measurement side by side.
    #[command(subcommand)]
    Papers(bench::papers::Papers),
    /// Simulations and analytical models.
    #[command(subcommand)]
    Model(study::model::args::ModelCommand),
    #[command(hide = true)]
    Man(Man),
    #[command(hide = true)]
    Completions(Completions),
    #[command(hide = true)]
    Mounted(crate::cmd::mount::inside::Args),
}

/// Writes the manual pages, one for each command.
#[derive(Debug, Parser)]
pub(crate) struct Man {
    /// Where to: made if it is not there.
    #[arg(value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Prints the completions of a shell.
#[derive(Debug, Parser)]
pub(crate) struct Completions {
    pub(crate) shell: clap_complete::Shell,
}

/// A size, or 0 for nothing at all.
fn size_or_none(text: &str) -> Result<u64, String> {
    match text.trim() {
        "0" => Ok(0),
        text => size(text),
    }
}

const DEFAULT_LISTEN: &str = "127.0.0.1:2049";

/// Serves directories, memory, or another server's files over NFS. Prints the mount commands.
///
/// Either one store, or any number of exports. Access has the words of exports(5); SIGHUP reads the
/// file of exports again, SIGTERM ends after what is in progress.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "Examples:
  nfskit serve /srv/data                          on 127.0.0.1:2049
  nfskit serve mem: --listen 127.0.0.1:0          in memory, on a free port
  nfskit serve sim:hdd                            in memory, as slow as a disk
  nfskit serve nfs://filer/export                 a proxy for another server's export
  nfskit serve sim:hdd --write-log sim:nvram      and with an emulated write log
  nfskit serve /srv/data --write-log /var/lib/nfskit/data.wal
  nfskit serve --listen 0.0.0.0:2049 --export /srv/data=ro --export /home=client=10.0.0.0/8
  nfskit serve --listen [::]:2049 --exports /etc/nfskit/exports.toml

Export options, separated by commas: rw, ro, root_squash, no_root_squash, all_squash, anonuid=N,
anongid=N, secure, insecure, client=NETWORK|HOST (again for more), name=PATH, id=N. Several exports
of one name are rules: the first that names a client is the client's. Root is squashed to nobody
unless no_root_squash is given. Callers have a privileged port or, on this host, are programs of
root or of the user who runs the server, unless insecure is given.")]
#[command(group = ArgGroup::new("what").required(true).multiple(true)
    .args(["store", "export", "exports"]))]
pub(crate) struct Serve {
    /// A directory, `mem:`, `sim:DISK`, or an export of another server, for which this is a proxy
    /// then. sim: is memory behind an emulated disk, one of hdd, ssd-sata, nvme, nvram and none,
    /// with changes as in `sim:hdd,sync=0`, or by its numbers as in `sim:rate=46.55MB/s,seek=0`.
    #[arg(value_name = "DIR|mem:|sim:DISK|nfs://HOST/EXPORT")]
    pub(crate) store: Option<String>,
    /// Address and port; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN, value_parser = listen)]
    pub(crate) listen: SocketAddr,
    /// Serves over UDP, too, on the same port.
    #[arg(long)]
    pub(crate) udp: bool,
    /// Versions of NFS: 2, 3, or both.
    #[arg(long, value_name = "LIST", default_value = "2,3", value_parser = versions)]
    pub(crate) versions: Versions,
    /// Answers as the host's portmapper and rpcbind, on port 111.
    #[arg(long, conflicts_with = "register")]
    pub(crate) portmap: bool,
    /// Registers with the rpcbind that runs on this host.
    #[arg(long)]
    pub(crate) register: bool,
    /// A directory to export, with options; with one store, the name under which that is mounted.
    #[arg(long, value_name = "PATH[=OPTIONS]", value_parser = options::parse)]
    pub(crate) export: Vec<options::Export>,
    /// A TOML file of exports, which SIGHUP reads again.
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub(crate) exports: Option<PathBuf>,
    /// Refuses every change.
    #[arg(long)]
    pub(crate) ro: bool,
    /// Calls in service at once, like nfsd threads.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count(1..=65_536))]
    pub(crate) threads: u32,
    /// Connections at once; a new one replaces the one idle longest, or is refused if all are busy.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = count(1..=1_000_000))]
    pub(crate) connections: u32,
    /// Of these, those of one address; a new one replaces its own idle longest in the same way.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = count(1..=1_000_000))]
    pub(crate) connections_per_host: u32,
    /// Calls of one connection in progress; over it the connection is not read.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = count(1..=65_536))]
    pub(crate) calls: u32,
    /// Bytes of calls in progress, and of replies not yet taken, of all clients; over it they wait.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(crate) in_flight: u64,
    /// A connection without a call for so long is closed.
    #[arg(long, value_name = "TIME", default_value = "360s", value_parser = time)]
    pub(crate) idle: Nanos,
    /// The connection of a client that takes no byte of its replies for so long, or does not finish
    /// a call that it has begun, is closed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(crate) stall: Nanos,
    /// How long calls in progress may take when the server ends.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub(crate) grace: Nanos,
    /// Whether other calls are served while data is committed.
    #[arg(long, value_enum, default_value_t = CommitMode::Concurrent)]
    pub(crate) commit_mode: CommitMode,
    /// Of directories: whether changes of names and attributes are stable when they are answered
    /// [default: always].
    #[arg(long, value_enum)]
    pub(crate) metadata_sync: Option<MetadataSync>,
    /// Answers stable WRITEs of at most 256 KiB from this log, and brings them to their place
    /// within seconds; also SETATTRs and small COMMITs, if it is faster than DIR's disk. Made if it
    /// is not there. A file, or a block device that is blank. Several
    /// (the option again, each on a device of its own) share the work. It belongs to DIR, which is
    /// not served without it until the server has ended in order. For root, and where no program on
    /// this host writes to the same files. With sim:DISK an emulated one, such as sim:nvram.
    #[arg(long, value_name = "FILE|DEVICE|sim:DISK", conflicts_with = "exports")]
    pub(crate) write_log: Vec<PathBuf>,
    /// Size of a new log: 16M to 1G, all of it written once. A device is used whole, up to 1G.
    /// [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "write_log")]
    pub(crate) write_log_size: Option<u64>,
    /// When the write log cannot be written, its files are synced, and then: stop ends the server,
    /// with exit code 3; degrade goes on as without a log.
    #[arg(long, value_name = "HOW", value_enum, default_value = "stop", requires = "write_log")]
    pub(crate) log_failure: LogFailure,
    /// Whether the write log keeps the replies to calls that must not be executed twice, so that
    /// they are known after a loss of power: each change of a name then waits for a write of the
    /// log beside the sync of its directory.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "always", requires = "write_log")]
    pub(crate) log_replies: LogReplies,
    /// Where replies and handles are stored for the time after a restart [default: /var/lib/nfskit,
    /// or $XDG_STATE_HOME/nfskit; none with port 0 and mem:].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// How the origin of nfs://HOST/EXPORT is called, in the words of nfs(5): hard, soft, timeo=,
    /// retrans=, nconnect=, rsize=, wsize=, vers=2|3, proto=, port=, mountport=; and link=, an
    /// emulated link to it.
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    pub(crate) origin: String,
    /// Bytes that are read ahead of clients from the origin, at most; 0 reads nothing ahead
    /// [default: 64M].
    #[arg(long, value_name = "SIZE", value_parser = size_or_none)]
    pub(crate) read_ahead: Option<u64>,
    /// Answers changes of the origin's files from this log, made if it is not there, and brings
    /// them to the origin later; also after a crash, and when the origin was away. One such proxy
    /// for an export at a time. Conflicting changes there are detected, and both versions stay.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_back: Option<PathBuf>,
    /// Size of a new log: 16M to 1G, all of it written once. What is on its way is in
    /// memory, too.
    #[arg(
        long, value_name = "SIZE", default_value = "256M", value_parser = size,
        requires = "write_back"
    )]
    pub(crate) write_back_size: u64,
    /// Keeps blocks of the origin's files in this directory of a local disk, across restarts.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Bytes that the cache may take of the disk.
    #[arg(
        long, value_name = "SIZE", default_value = "10G", value_parser = size, requires = "cache"
    )]
    pub(crate) cache_size: u64,
    /// While the origin is away, cached data are still served, with the last known attributes.
    #[arg(long, requires = "cache")]
    pub(crate) offline_reads: bool,
    /// An emulated link in front of every client.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) link: Option<Profile>,
    /// Bytes that `mem:` and `sim:` may hold [default: 4G].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) mem_size: Option<u64>,
    /// Where /metrics, for Prometheus, and /healthz are answered over HTTP.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    pub(crate) metrics: Option<SocketAddr>,
    /// With --metrics: answers /files as well, which files are called most, by their names, for
    /// `nfskit top`. Whoever can reach the address reads them.
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_files: bool,
    /// Logs calls that take as long as this, or longer, until their reply is there.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) slow_log: Option<Nanos>,
    /// How log lines, which go to standard error, look.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) log_format: Format,
}

impl Serve {
    /// How long a new write log is made.
    pub(crate) fn new_log_bytes(&self) -> u64 {
        self.write_log_size.unwrap_or(64 << 20)
    }
}

/// What a server does whose write log cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFailure {
    Stop,
    Degrade,
}

impl From<LogFailure> for OnFailure {
    fn from(does: LogFailure) -> Self {
        match does {
            LogFailure::Stop => Self::Stop,
            LogFailure::Degrade => Self::Degrade,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogReplies {
    Always,
    /// What the state directory knows of them survives the process, and not a loss of power.
    Never,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum MetadataSync {
    /// As RFC 1813 section 4.8 wants it.
    Always,
    /// Whenever the file system gets to it: faster, and a crash can undo what was answered.
    Never,
}

impl From<MetadataSync> for dir::MetadataSync {
    fn from(syncs: MetadataSync) -> Self {
        match syncs {
            MetadataSync::Always => Self::Always,
            MetadataSync::Never => Self::Never,
        }
    }
}
