//! Files of a host, by their paths below its root.
//!
//! What is read of a live host is a list of paths, so that nothing else is: no mount is touched
//! ([`live`] never names a path below one), and a server that does not answer holds up nothing.

mod archive;
mod exported;
mod exports;
mod mask;
mod saved;
mod servers;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use counters::host::tasks;
use counters::socket::Connection;

pub use archive::pack;
pub use exported::{Exported, exported};
pub use exports::{Client, Export, exports};
pub use mask::masked;
pub use saved::{ENTRIES_MAX, saved};
pub use servers::{SERVERS, program, servers};

/// Bytes of one file that are read; of a longer one, its beginning.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Texts by their paths below a root, and what was left out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Files {
    texts: BTreeMap<String, Vec<u8>>,
    pub notes: Vec<Note>,
}

/// Something that was passed over, and why.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Note {
    pub path: String,
    pub why: String,
}

impl Files {
    pub fn put(&mut self, path: impl Into<String>, text: impl Into<Vec<u8>>) {
        self.texts.insert(path.into(), text.into());
    }

    /// The same, unless there is one of this path.
    fn put_once(&mut self, path: String, text: Vec<u8>) {
        self.texts.entry(path).or_insert(text);
    }

    pub fn text(&self, path: &str) -> Option<&[u8]> {
        self.texts.get(path).map(Vec::as_slice)
    }

    /// All of them, in the order of their paths.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_slice()))
    }

    /// Takes out those whose content is so.
    pub fn take(&mut self, is_one: impl Fn(&[u8]) -> bool) -> Vec<(String, Vec<u8>)> {
        let all = std::mem::take(&mut self.texts).into_iter();
        let (taken, left): (Vec<_>, Vec<_>) = all.partition(|(_, text)| is_one(text));
        self.texts = left.into_iter().collect();
        taken
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub fn note(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.notes.push(Note { path: path.into(), why: why.into() });
    }

    /// The same files in a folder of this name.
    #[must_use]
    pub fn below(self, folder: &str) -> Self {
        let inside = |(path, text): (String, Vec<u8>)| (format!("{folder}/{path}"), text);
        Self { texts: self.texts.into_iter().map(inside).collect(), notes: self.notes }
    }

    /// Two samples, as they are saved: each in its folder.
    #[must_use]
    pub fn samples(first: Self, last: Self) -> Self {
        let mut both = first.below("1");
        both.join(last.below("2"));
        both
    }

    pub fn join(&mut self, other: Self) {
        self.texts.extend(other.texts);
        self.notes.extend(other.notes);
    }
}

/// Where connections are stored, in the form of `ss -tino`.
pub const CONNECTIONS: &str = "ss.txt";

/// Where it is stored how full the exported file systems are, in the form of df.
pub const SPACES: &str = "df.txt";

/// Where tasks that wait are stored, in the form of ps.
pub const WAITS: &str = "ps.txt";

/// What counts: read twice, for rates.
pub const COUNTERS: [&str; 20] = [
    "proc/uptime",
    "proc/self/mountstats",
    "proc/net/rpc/nfs",
    "proc/net/rpc/nfsd",
    "proc/fs/nfsd/pool_stats",
    "proc/fs/nfsd/threads",
    "proc/net/snmp",
    "proc/net/snmp6",
    "proc/net/netstat",
    "proc/net/dev",
    "proc/net/softnet_stat",
    "proc/net/sockstat",
    "proc/meminfo",
    "proc/vmstat",
    "proc/diskstats",
    "proc/stat",
    "proc/loadavg",
    "proc/pressure/cpu",
    "proc/pressure/io",
    "proc/pressure/memory",
];

/// What is configured: read once, at the end.
pub const SETTINGS: [&str; 66] = [
    "proc/self/mountinfo",
    "proc/fs/nfsd/max_block_size",
    "proc/fs/nfsd/max_connections",
    "proc/fs/nfsd/nfsv4gracetime",
    "proc/fs/nfsd/nfsv4leasetime",
    "proc/fs/nfsd/pool_threads",
    "proc/fs/nfsd/portlist",
    "proc/fs/nfsd/reply_cache_stats",
    "proc/fs/nfsd/versions",
    "proc/sys/fs/nfs/idmap_cache_timeout",
    "proc/sys/fs/nfs/nfs_callback_tcpport",
    "proc/sys/fs/nfs/nfs_congestion_kb",
    "proc/sys/fs/nfs/nfs_mountpoint_timeout",
    "proc/sys/fs/nfs/nlm_grace_period",
    "proc/sys/fs/nfs/nlm_timeout",
    "proc/sys/fs/leases-enable",
    "proc/sys/kernel/osrelease",
    "proc/sys/net/core/default_qdisc",
    "proc/sys/net/core/netdev_budget",
    "proc/sys/net/core/netdev_budget_usecs",
    "proc/sys/net/core/netdev_max_backlog",
    "proc/sys/net/core/rmem_default",
    "proc/sys/net/core/rmem_max",
    "proc/sys/net/core/somaxconn",
    "proc/sys/net/core/wmem_default",
    "proc/sys/net/core/wmem_max",
    "proc/sys/net/ipv4/ipfrag_high_thresh",
    "proc/sys/net/ipv4/ipfrag_time",
    "proc/sys/net/ipv4/tcp_congestion_control",
    "proc/sys/net/ipv4/tcp_ecn",
    "proc/sys/net/ipv4/tcp_keepalive_intvl",
    "proc/sys/net/ipv4/tcp_keepalive_probes",
    "proc/sys/net/ipv4/tcp_keepalive_time",
    "proc/sys/net/ipv4/tcp_max_syn_backlog",
    "proc/sys/net/ipv4/tcp_mem",
    "proc/sys/net/ipv4/tcp_moderate_rcvbuf",
    "proc/sys/net/ipv4/tcp_mtu_probing",
    "proc/sys/net/ipv4/tcp_no_metrics_save",
    "proc/sys/net/ipv4/tcp_retries2",
    "proc/sys/net/ipv4/tcp_rmem",
    "proc/sys/net/ipv4/tcp_sack",
    "proc/sys/net/ipv4/tcp_slow_start_after_idle",
    "proc/sys/net/ipv4/tcp_syn_retries",
    "proc/sys/net/ipv4/tcp_timestamps",
    "proc/sys/net/ipv4/tcp_window_scaling",
    "proc/sys/net/ipv4/tcp_wmem",
    "proc/sys/sunrpc/max_resvport",
    "proc/sys/sunrpc/min_resvport",
    "proc/sys/sunrpc/tcp_fin_timeout",
    "proc/sys/sunrpc/tcp_max_slot_table_entries",
    "proc/sys/sunrpc/tcp_slot_table_entries",
    "proc/sys/sunrpc/udp_slot_table_entries",
    "proc/sys/vm/dirty_background_bytes",
    "proc/sys/vm/dirty_background_ratio",
    "proc/sys/vm/dirty_bytes",
    "proc/sys/vm/dirty_expire_centisecs",
    "proc/sys/vm/dirty_ratio",
    "proc/sys/vm/dirty_writeback_centisecs",
    "proc/sys/vm/min_free_kbytes",
    "proc/sys/vm/swappiness",
    "proc/sys/vm/vfs_cache_pressure",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/module/nfs/parameters/max_session_slots",
    "etc/exports",
    "etc/fstab",
    "etc/nfs.conf",
];

/// Folders of settings whose names are not known before.
const DEVICES: &str = "sys/class/net/";
const BACKINGS: &str = "sys/class/bdi/";
const OF_DEVICE: [&str; 4] = ["speed", "duplex", "mtu", "operstate"];
/// What the kernel counts of a device beyond `/proc/net/dev`.
const OF_STATISTICS: [&str; 12] = [
    "collisions",
    "rx_crc_errors",
    "rx_dropped",
    "rx_errors",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_length_errors",
    "rx_missed_errors",
    "rx_over_errors",
    "tx_carrier_errors",
    "tx_dropped",
    "tx_errors",
];
const OF_BACKING: [&str; 3] = ["read_ahead_kb", "max_ratio", "min_ratio"];

/// Whether a path below a root is that of a setting.
pub fn is_setting(path: &str) -> bool {
    let below = |folder: &str| path.strip_prefix(folder)?.split_once('/').map(|(_, name)| name);
    SETTINGS.contains(&path)
        || below(DEVICES).is_some_and(is_of_device)
        || below(BACKINGS).is_some_and(|name| OF_BACKING.contains(&name))
}

fn is_of_device(name: &str) -> bool {
    match name.strip_prefix("statistics/") {
        Some(name) => OF_STATISTICS.contains(&name),
        None => OF_DEVICE.contains(&name),
    }
}

/// Whether a path ends with one that is known, wherever its root lies.
pub fn is_known(path: &str) -> bool {
    in_root(path).is_some()
}

/// The root of a known path, and the path below it.
fn in_root(path: &str) -> Option<(&str, &str)> {
    let tails = path.char_indices().filter(|(_, one)| *one == '/').map(|(at, _)| at + 1);
    let outputs = [CONNECTIONS, SERVERS, SPACES, WAITS];
    let is_one =
        |tail: &str| COUNTERS.contains(&tail) || outputs.contains(&tail) || is_setting(tail);
    [0].into_iter().chain(tails).map(|at| path.split_at(at)).find(|(_, tail)| is_one(tail))
}

/// What may be taken of files that nobody knows by their names: outputs that somebody has saved are
/// short.
#[derive(Debug, Default)]
struct Allowance {
    bytes: u64,
}

impl Allowance {
    const FILE_MAX: u64 = 1 << 20;
    const BYTES_MAX: u64 = 64 << 20;

    fn takes(&mut self, path: &str, len: u64) -> bool {
        if is_known(path) {
            return len <= FILE_BYTES_MAX;
        }
        let takes = len <= Self::FILE_MAX && self.bytes + len <= Self::BYTES_MAX;
        self.bytes += if takes { len } else { 0 };
        takes
    }
}

/// The settings of a live host. Of files that have more in them than NFS, only its lines are taken.
pub fn live_settings(root: &Path) -> Files {
    let mut files = live(root, &SETTINGS);
    for (path, is_wanted) in OF_MANY {
        if let Some(text) = files.text(path) {
            let wanted = lines(&String::from_utf8_lossy(text), is_wanted);
            files.put(path, wanted);
        }
    }
    let backings = backings(files.text("proc/self/mountinfo").unwrap_or_default());
    let of_backings =
        backings.iter().flat_map(|name| OF_BACKING.map(|what| format!("{BACKINGS}{name}/{what}")));
    for path in of_devices(root).chain(of_backings) {
        // A device without a link has no speed: reading it is an error.
        if let Ok(text) = read(&root.join(&path)) {
            files.put(path, text);
        }
    }
    files
}

/// Settings and statistics of network devices.
fn of_devices(root: &Path) -> impl Iterator<Item = String> {
    let devices = std::fs::read_dir(root.join(DEVICES)).into_iter().flatten().flatten();
    let devices = devices.filter_map(|entry| entry.file_name().into_string().ok());
    devices.take(DEVICES_MAX).flat_map(|name| {
        let statistics = OF_STATISTICS.map(|what| format!("{DEVICES}{name}/statistics/{what}"));
        let settings = OF_DEVICE.map(|what| format!("{DEVICES}{name}/{what}"));
        settings.into_iter().chain(statistics)
    })
}

/// Network devices, at most.
const DEVICES_MAX: usize = 256;

/// What mountinfo says of mounts of `nfskit mount`.
pub const OURS: &str = " - fuse.nfskit ";

type IsWanted = fn(&str) -> bool;

/// Lines that are taken of files that have more in them.
const OF_MANY: [(&str, IsWanted); 2] = [
    ("proc/self/mountinfo", |line| {
        [" - nfs ", " - nfs4 ", OURS].iter().any(|kind| line.contains(kind))
    }),
    ("etc/fstab", |line| {
        line.split_whitespace().nth(2).is_some_and(|kind| kind.starts_with("nfs"))
    }),
];

/// `0:45` of each mount, the name of what it is read ahead by.
fn backings(mountinfo: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(mountinfo);
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    let is_number = |name: &&str| name.split(':').all(|part| part.parse::<u32>().is_ok());
    let found: BTreeSet<&str> = names.filter(is_number).collect();
    found.into_iter().map(str::to_owned).collect()
}

/// The connections of NFS among answers of sock_diag(7), for [`CONNECTIONS`]. Others do not
/// matter.
pub fn connections(answers: &[Vec<u8>]) -> String {
    let all = answers.iter().filter_map(|answer| Connection::of_diag(answer));
    let is_of_nfs =
        |one: &Connection| [&one.local, &one.peer].iter().any(|end| end.ends_with(":2049"));
    all.filter(is_of_nfs).map(|one| one.text()).collect()
}

/// Of tasks' `stat` and `wchan`, those that wait and cannot be interrupted, for [`WAITS`].
pub fn waits(tasks: impl Iterator<Item = (String, String)>) -> String {
    let lines = tasks.filter_map(|(stat, place)| tasks::line(&stat, &place));
    lines.fold(tasks::HEAD.to_owned(), |text, line| text + &line)
}

/// The files of a live host that are on a list; what is not there is no part of it, and what may
/// not be read is noted.
pub fn live(root: &Path, paths: &[&str]) -> Files {
    let mut files = Files::default();
    for path in paths {
        match read(&root.join(path)) {
            Ok(text) if path.ends_with("/mountstats") => files.put(*path, nfs_only(&text)),
            Ok(text) => files.put(*path, text),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => files.note(*path, cause.to_string()),
        }
    }
    files
}

/// The NFS mounts of mountstats, and /proc, which every host has: other mounts do not
/// matter.
fn nfs_only(mountstats: &[u8]) -> String {
    let mut is_wanted = false;
    lines(&String::from_utf8_lossy(mountstats), |line| {
        if line.contains(" with fstype ") {
            let is_nfs = line.contains(" with fstype nfs") && line.contains(" statvers=");
            is_wanted = is_nfs || line.ends_with(" with fstype proc");
        }
        is_wanted
    })
}

fn lines(text: &str, mut is_wanted: impl FnMut(&str) -> bool) -> String {
    text.lines().filter(|line| is_wanted(line)).flat_map(|line| [line, "\n"]).collect()
}

/// The beginning of a file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    beginning(File::open(path)?)
}

fn beginning(file: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_mountstats_only_nfs_is_taken() {
        let text = b"device proc mounted on /proc with fstype proc\n\
            device /dev/sda mounted on /secret with fstype ext4\n\
            device s:/e mounted on /mnt with fstype nfs statvers=1.1\n\tage:\t7\n\
            device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n";
        let wanted = nfs_only(text);
        assert_eq!(wanted.lines().count(), 3, "{wanted}");
        assert!(!wanted.contains("secret") && wanted.contains("age:\t7"), "{wanted}");
    }

    #[test]
    fn what_is_not_there_is_left_out_and_what_may_not_be_read_is_reported() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/uptime")).unwrap();
        std::fs::write(root.path().join("proc/stat"), "cpu 1\n").unwrap();
        let files = live(root.path(), &COUNTERS);
        assert_eq!(files.text("proc/stat"), Some(&b"cpu 1\n"[..]));
        assert_eq!(files.all().count(), 1);
        assert_eq!(files.notes.len(), 1);
        assert_eq!(files.notes[0].path, "proc/uptime");
        assert!(
            is_setting("sys/class/net/eth0/mtu")
                && is_setting("sys/class/bdi/0:45/read_ahead_kb")
                && is_setting("sys/class/net/eth0/statistics/rx_crc_errors")
        );
        assert!(!is_setting("sys/class/net/eth0/address") && !is_setting("etc/passwd"));
        assert_eq!(files.below("1").text("1/proc/stat"), Some(&b"cpu 1\n"[..]));
    }
}
