//! What `nfskit mount` takes. Every option is also a word of `-o`, as fstab(5) writes it; both
//! ways lead through `super::settings`.

use std::path::PathBuf;

use clap::Parser;
use harness::mounts::settings::{kernel_dirty, seconds, tenths, transfer};
use harness::values::{listen, read, size, time};

/// Mounts an NFS file system, until Ctrl-C or SIGTERM, or until somebody unmounts it.
///
/// Any program can use it then. The kernel's FUSE carries its calls here; root mounts for
/// everybody, others (with fusermount3) for themselves.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit mount nfs://server/export /mnt
  nfskit mount server:/export /mnt -o ro,actimeo=60
  nfskit mount nfs://server/export /mnt --write-policy linux-2.4.4 --link lan-1g
  nfskit mount nfs://server/export /mnt --cache /var/cache/nfskit --cache-size 100G
  mount -t nfskit nfs://server/export /mnt        with mount.nfskit in /sbin

Words of -o, separated by commas: those of mount(8) (ro, nosuid, noexec, noatime, _netdev, ...),
those of nfs(5) (hard, soft, timeo=, retrans=, nconnect=, rsize=, wsize=, acregmin=, acregmax=,
acdirmin=, acdirmax=, actimeo=, noac, nocto, sync, port=, mountport=, proto=, vers=), and
uid=, gid=, write_policy=, dirty_max=, kernel_cache=, kernel_dirty_max=, cache=, cache_size=,
cache_files=, link=, metrics=, grace=, allow_other, nonempty.")]
pub(crate) struct Args {
    /// `nfs://HOST[:PORT]/EXPORT[?...]`, or `HOST:/EXPORT`.
    #[arg(value_name = "URL")]
    pub(super) source: String,
    /// An empty directory.
    #[arg(value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// The write-behind policy: linux-2.4.4, no-flush, hashed, unlocked or adaptive [default:
    /// adaptive].
    #[arg(long, value_name = "NAME")]
    write_policy: Option<String>,
    /// Bytes that may be written and not yet be on the server's disk.
    #[arg(long, value_name = "SIZE", value_parser = read(size))]
    dirty_max: Option<String>,
    /// How the kernel caches files: writeback, writethrough or none [default: writeback; with
    /// --sync, --noac and the policies of the papers writethrough, so that they see every write].
    #[arg(long, value_name = "NAME")]
    kernel_cache: Option<String>,
    /// Bytes of written data that the kernel may hold, behind which reads and closes wait; none for
    /// as many as the system lets it hold [default: as dirty_max, 64M at most]. For root.
    #[arg(long, value_name = "SIZE|none", value_parser = read(kernel_dirty))]
    kernel_dirty_max: Option<String>,
    /// Keeps blocks of files in this directory of a local disk, also over restarts. It is made if
    /// it is not there, is for its owner alone, and may serve other mounts as well.
    #[arg(long, value_name = "DIR")]
    cache: Option<String>,
    /// Bytes that the cache of this export may take of the disk [default: 10G].
    #[arg(long, value_name = "SIZE", value_parser = read(size), requires = "cache")]
    cache_size: Option<String>,
    /// Local files that it may have: one for each 256 blocks of a file [default: 1000000].
    #[arg(long, value_name = "N", requires = "cache")]
    cache_files: Option<String>,
    /// Sets acregmin, acregmax, acdirmin and acdirmax.
    #[arg(long, value_name = "TIME", value_parser = read(seconds))]
    actimeo: Option<String>,
    /// Of files, at least [default: 3s].
    #[arg(long, value_name = "TIME", value_parser = read(seconds))]
    acregmin: Option<String>,
    /// Of files, at most [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = read(seconds))]
    acregmax: Option<String>,
    /// Of directories, at least [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = read(seconds))]
    acdirmin: Option<String>,
    /// Of directories, at most [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = read(seconds))]
    acdirmax: Option<String>,
    /// Attributes are always fetched, and writes are synchronous.
    #[arg(long)]
    noac: bool,
    /// Opening a file does not check whether it has changed on the server.
    #[arg(long)]
    nocto: bool,
    /// A write returns when its data are on the server's disk.
    #[arg(long)]
    sync: bool,
    /// Read only.
    #[arg(long)]
    ro: bool,
    /// A server that does not answer is waited for, as long as it takes: the default.
    #[arg(long, conflicts_with = "soft")]
    hard: bool,
    /// A server that does not answer is an I/O error, after timeo and retrans.
    #[arg(long)]
    soft: bool,
    /// Tenths of a second until a call is retransmitted [default: 600 over TCP, 11 over UDP].
    #[arg(long, value_name = "TENTHS|TIME", value_parser = read(tenths))]
    timeo: Option<String>,
    /// Retransmissions before the server counts as not responding [default: 2; UDP: 3].
    #[arg(long, value_name = "N")]
    retrans: Option<String>,
    /// Connections, 1 to 16 [default: 1].
    #[arg(long, value_name = "N")]
    nconnect: Option<String>,
    /// Bytes of a READ, at most [default: what the server offers].
    #[arg(long, value_name = "SIZE", value_parser = read(transfer))]
    rsize: Option<String>,
    /// Bytes of a WRITE, at most [default: what the server offers].
    #[arg(long, value_name = "SIZE", value_parser = read(transfer))]
    wsize: Option<String>,
    /// An emulated link to the server.
    #[arg(long, value_name = "PROFILE")]
    link: Option<String>,
    /// Where /metrics, for Prometheus, and /healthz are answered over HTTP.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = read(listen))]
    metrics: Option<String>,
    /// How long writing back may take when it is unmounted [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = read(time))]
    grace: Option<String>,
    /// Lets other users use the mount, which is the default for root.
    #[arg(long)]
    allow_other: bool,
    /// Stays where it was started: the default.
    #[arg(long, conflicts_with = "background")]
    pub(super) foreground: bool,
    /// Returns when it is mounted; what it has to say then goes to the system's log.
    #[arg(long)]
    pub(super) background: bool,
    /// Words as in fstab, separated by commas.
    #[arg(short = 'o', value_name = "WORDS")]
    words: Vec<String>,
    /// The process that stays, of one that returns.
    #[arg(long, hide = true)]
    pub(super) detached: bool,
}

impl Args {
    /// Everything that was requested, as words; what was given by name is last, and decides.
    pub(super) fn words(&self) -> Vec<String> {
        let listed = self.words.iter().flat_map(|list| harness::mounts::settings::split(list));
        let valued = self.valued().into_iter();
        let valued = valued.filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
        let plain = self.plain().into_iter().filter(|(_, given)| *given);
        listed.chain(valued).chain(plain.map(|(word, _)| word.to_owned())).collect()
    }

    fn valued(&self) -> [(&'static str, &Option<String>); 20] {
        [
            ("write_policy", &self.write_policy),
            ("dirty_max", &self.dirty_max),
            ("kernel_cache", &self.kernel_cache),
            ("kernel_dirty_max", &self.kernel_dirty_max),
            ("cache", &self.cache),
            ("cache_size", &self.cache_size),
            ("cache_files", &self.cache_files),
            ("actimeo", &self.actimeo),
            ("acregmin", &self.acregmin),
            ("acregmax", &self.acregmax),
            ("acdirmin", &self.acdirmin),
            ("acdirmax", &self.acdirmax),
            ("timeo", &self.timeo),
            ("retrans", &self.retrans),
            ("nconnect", &self.nconnect),
            ("rsize", &self.rsize),
            ("wsize", &self.wsize),
            ("link", &self.link),
            ("metrics", &self.metrics),
            ("grace", &self.grace),
        ]
    }

    fn plain(&self) -> [(&'static str, bool); 7] {
        [
            ("noac", self.noac),
            ("nocto", self.nocto),
            ("sync", self.sync),
            ("ro", self.ro),
            ("hard", self.hard),
            ("soft", self.soft),
            ("allow_other", self.allow_other),
        ]
    }
}
