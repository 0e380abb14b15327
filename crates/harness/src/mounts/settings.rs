//! What a mount is to be: from its source, and words as fstab(5) and nfs(5) have them.

use std::net::SocketAddr;
use std::path::PathBuf;

use client::cache::attributes::Times;
use client::url::{Protocol, Target, Version};
use client::write_behind::PolicyName;
use fuse::KernelCache;
use fuse::session::Flags;
use net::call;
use net::shape::profile::Profile;
use perf::units::Nanos;

/// How long writing back may take at the end.
const GRACE: Nanos = Nanos::from_secs(60);

/// Bytes of WRITEs that wait in this process for room below `dirty_max`: as many as that, within
/// these. What is closed or removed over a slow link waits for as many: half a second at a gigabit,
/// five at a tenth of it. With less than the least, reads would wait for single WRITEs.
const WAITING_BYTES: (u64, u64) = (4 << 20, 64 << 20);

/// One WRITE; with less the kernel stands still.
const KERNEL_DIRTY_LEAST: u64 = 1 << 20;

const DISK_BYTES_LEAST: u64 = 1 << 20;

/// The longest that attributes may be good: guess.
const SECONDS_MAX: Nanos = Nanos::from_secs(86_400);

/// What timeo= may be: a tenth of a second to an hour.
const TIMEO_MIN: Nanos = Nanos::from_millis(100);
const TIMEO_MAX: Nanos = Nanos::from_secs(3_600);

/// Everything that was requested.
#[derive(Clone, Debug)]
pub struct Settings {
    pub target: Target,
    pub flags: Flags,
    pub nonempty: bool,
    /// Another set of flags for what is mounted there.
    pub remount: bool,
    pub policy: PolicyName,
    pub dirty_max: Option<u64>,
    /// None: as the policy wants it.
    pub cache: Option<KernelCache>,
    /// None: as many as may wait ([`Settings::waiting_bytes_max`]).
    pub kernel_dirty_max: Option<KernelDirty>,
    pub times: Times,
    pub close_to_open: bool,
    pub sync: bool,
    pub soft: bool,
    pub timeo: Option<Nanos>,
    pub retrans: Option<u32>,
    pub nconnect: u32,
    pub rsize: Option<u32>,
    pub wsize: Option<u32>,
    pub link: Profile,
    pub metrics: Option<SocketAddr>,
    pub grace: Nanos,
    /// Where blocks of files are cached on a local disk.
    pub disk: Option<PathBuf>,
    pub disk_bytes_max: Option<u64>,
    pub disk_files_max: Option<u64>,
}

/// Bytes of written data that the kernel may hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KernelDirty {
    AtMost(u64),
    /// As many as the system lets it hold.
    AnyNumber,
}

/// Words that mean something to mount(8) and its callers, or are what we do anyway.
const TAKEN: &[&str] = &[
    "defaults",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "async",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "default_permissions",
    "silent",
    "ac",
    "cto",
    "nolock",
    "local_lock=all",
    "local_lock=posix",
    "local_lock=flock",
    "noacl",
    "nordirplus",
    "rdirplus",
    "intr",
    "nointr",
    "fg",
    "nosharecache",
    "sec=sys",
];

/// What these begin with: comments, and what mount(8) finds of us in its table when it remounts.
const TAKEN_BEGINNINGS: &[&str] = &["x-", "X-", "comment=", "user_id=", "group_id="];

/// Words that do something here.
const KNOWN: &str = "ro, rw, suid, nosuid, dev, nodev, noexec, noatime, sync, dirsync, remount, \
    hard, soft, timeo=, retrans=, nconnect=, rsize=, wsize=, actimeo=, acregmin=, acregmax=, \
    acdirmin=, acdirmax=, \
    noac, nocto, port=, mountport=, proto=, tcp, udp, vers=, uid=, gid=, write_policy=, \
    dirty_max=, kernel_cache=, kernel_dirty_max=, cache=, cache_size=, cache_files=, link=, \
    metrics=, grace=, allow_other, nonempty";

/// The words of a list, which commas separate.
pub fn split(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty())
}

impl Settings {
    /// Of a source, with the usual defaults.
    pub fn of(source: &str) -> Result<Self, String> {
        let target = crate::values::target(source)?;
        Ok(Self {
            target,
            flags: Flags { source: source.to_owned(), ..Flags::default() },
            nonempty: false,
            remount: false,
            policy: PolicyName::default(),
            dirty_max: None,
            cache: None,
            kernel_dirty_max: None,
            times: Times::default(),
            close_to_open: true,
            sync: false,
            soft: false,
            timeo: None,
            retrans: None,
            nconnect: 1,
            rsize: None,
            wsize: None,
            link: Profile::none(),
            metrics: None,
            grace: GRACE,
            disk: None,
            disk_bytes_max: None,
            disk_files_max: None,
        })
    }

    /// How long the server may put a call off (NFS3ERR_JUKEBOX): a soft mount waits as long as for
    /// a reply, a hard one as long as it takes.
    pub fn put_off_max(&self) -> Option<Nanos> {
        let defaults = match self.target.protocol {
            Protocol::Tcp => call::Options::stream(),
            Protocol::Udp => call::Options::datagrams(),
        };
        let timeo = self.timeo.unwrap_or(defaults.timeo);
        let retrans = self.retrans.unwrap_or(defaults.retrans);
        let options = call::Options { timeo, retrans, ..defaults };
        self.soft.then(|| options.major_timeout())
    }

    /// What the kernel is to keep of files.
    pub fn kernel_cache(&self) -> KernelCache {
        self.cache.unwrap_or(match self.policy {
            _ if self.sync => KernelCache::Writethrough,
            PolicyName::Adaptive => KernelCache::Writeback,
            _ => KernelCache::Writethrough,
        })
    }

    /// Bytes of WRITEs that may wait in this process, beside those that `dirty_max` counts.
    pub fn waiting_bytes_max(&self) -> u64 {
        let (least, most) = WAITING_BYTES;
        self.dirty_max.map_or(most, |bytes| bytes.clamp(least, most))
    }

    /// Bytes of written data that the kernel may hold, all of which may come to wait here.
    pub fn kernel_dirty_max(&self) -> Option<u64> {
        match self.kernel_dirty_max {
            None => Some(self.waiting_bytes_max()),
            Some(KernelDirty::AtMost(bytes)) => Some(bytes),
            Some(KernelDirty::AnyNumber) => None,
        }
    }

    /// What the words come to together.
    ///
    /// # Errors
    /// One of them has no meaning without another.
    pub fn check(&self) -> Result<(), String> {
        let has_bounds = self.disk_bytes_max.is_some() || self.disk_files_max.is_some();
        match has_bounds && self.disk.is_none() {
            true => {
                Err("cache_size= and cache_files= bound a cache: cache=DIR is missing".to_owned())
            }
            false => Ok(()),
        }
    }

    /// Takes one word in.
    pub fn word(&mut self, word: &str) -> Result<(), String> {
        let is_taken = TAKEN_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
        if is_taken || TAKEN.contains(&word) {
            return Ok(());
        }
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        match (key, value) {
            ("ro", None) => self.flags.read_only = true,
            ("rw", None) => self.flags.read_only = false,
            ("suid", None) => self.flags.suid = true,
            ("nosuid", None) => self.flags.suid = false,
            ("dev", None) => self.flags.dev = true,
            ("nodev", None) => self.flags.dev = false,
            ("exec", None) => self.flags.no_exec = false,
            ("noexec", None) => self.flags.no_exec = true,
            ("atime", None) => self.flags.no_atime = false,
            ("noatime", None) => self.flags.no_atime = true,
            ("remount", None) => self.remount = true,
            ("dirsync", None) => self.flags.dir_sync = true,
            ("sync", None) => self.sync = true,
            ("hard", None) => self.soft = false,
            ("soft", None) => self.soft = true,
            ("nocto", None) => self.close_to_open = false,
            ("noac", None) => {
                self.times = Times::all(Nanos::ZERO);
                self.sync = true;
            }
            ("tcp", None) => self.target.protocol = Protocol::Tcp,
            ("udp", None) => self.target.protocol = Protocol::Udp,
            ("allow_other", None) => self.flags.allow_other = true,
            ("nonempty", None) => self.nonempty = true,
            (_, Some(value)) => return self.valued(key, value, word),
            _ => return Err(unknown(word)),
        }
        Ok(())
    }

    fn valued(&mut self, key: &str, value: &str, word: &str) -> Result<(), String> {
        let in_word = |why: String| format!("{word:?}: {why}");
        match key {
            "actimeo" => self.times = Times::all(seconds(value).map_err(in_word)?),
            "acregmin" => self.times.reg_min = seconds(value).map_err(in_word)?,
            "acregmax" => self.times.reg_max = seconds(value).map_err(in_word)?,
            "acdirmin" => self.times.dir_min = seconds(value).map_err(in_word)?,
            "acdirmax" => self.times.dir_max = seconds(value).map_err(in_word)?,
            "timeo" => {
                self.timeo = Some(tenths(value).map_err(in_word)?);
            }
            "retrans" => self.retrans = Some(number(value, 0, 1000).map_err(in_word)?),
            "nconnect" => self.nconnect = number(value, 1, 16).map_err(in_word)?,
            "rsize" => self.rsize = Some(transfer(value).map_err(in_word)?),
            "wsize" => self.wsize = Some(transfer(value).map_err(in_word)?),
            "port" => self.target.nfs_port = Some(port(value).map_err(in_word)?),
            "mountport" => self.target.mount_port = Some(port(value).map_err(in_word)?),
            "uid" => self.target.uid = Some(number(value, 0, u32::MAX).map_err(in_word)?),
            "gid" => self.target.gid = Some(number(value, 0, u32::MAX).map_err(in_word)?),
            "proto" => match value {
                "tcp" => self.target.protocol = Protocol::Tcp,
                "udp" => self.target.protocol = Protocol::Udp,
                _ => return Err(in_word("tcp and udp are supported".to_owned())),
            },
            "vers" | "nfsvers" => match value {
                "3" => self.target.version = Version::Three,
                "2" => self.target.version = Version::Two,
                _ => return Err(in_word("versions 3 and 2 are supported".to_owned())),
            },
            "write_policy" => {
                self.policy = value.parse().map_err(|error| in_word(format!("{error}")))?;
            }
            "kernel_cache" => {
                self.cache = Some(match value {
                    "writeback" => KernelCache::Writeback,
                    "writethrough" => KernelCache::Writethrough,
                    "none" => KernelCache::None,
                    _ => {
                        return Err(in_word("there are writeback, writethrough, none".to_owned()));
                    }
                });
            }
            "kernel_dirty_max" => {
                self.kernel_dirty_max = Some(kernel_dirty(value).map_err(in_word)?);
            }
            "dirty_max" => self.dirty_max = Some(crate::values::size(value).map_err(in_word)?),
            "cache" if value.is_empty() => return Err(in_word("a directory is wanted".to_owned())),
            "cache" => self.disk = Some(PathBuf::from(value)),
            "cache_size" => self.disk_bytes_max = Some(disk_bytes(value).map_err(in_word)?),
            "cache_files" => {
                self.disk_files_max = Some(number(value, 1, 100_000_000).map_err(in_word)?.into());
            }
            "grace" => self.grace = crate::values::time(value).map_err(in_word)?,
            "metrics" => self.metrics = Some(crate::values::listen(value).map_err(in_word)?),
            "link" => {
                self.link = value.parse().map_err(|error| in_word(format!("{error}")))?;
            }
            _ => return Err(unknown(word)),
        }
        Ok(())
    }
}

fn unknown(word: &str) -> String {
    format!("unknown option {word:?}; known are {KNOWN}, and the others of mount(8)")
}

fn number(value: &str, low: u32, high: u32) -> Result<u32, String> {
    match value.parse() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("a number between {low} and {high} is wanted")),
    }
}

/// How long attributes are good: a time, of which nfs(5) has whole seconds.
pub fn seconds(value: &str) -> Result<Nanos, String> {
    let time = crate::values::time_or_zero(value)?;
    if time <= SECONDS_MAX { Ok(time) } else { Err(format!("{value:?} is longer than a day")) }
}

/// How long a reply is waited for: tenths of a second, as nfs(5) has it, or a time with its unit.
pub fn tenths(value: &str) -> Result<Nanos, String> {
    let is_bare = value.bytes().all(|byte| byte.is_ascii_digit());
    let time = match value.parse::<u32>() {
        Ok(tenths) if is_bare => Nanos::from_millis(u64::from(tenths) * 100),
        _ => {
            crate::values::time(value).map_err(|why| format!("{why}; timeo alone is in tenths"))?
        }
    };
    match (TIMEO_MIN..=TIMEO_MAX).contains(&time) {
        true => Ok(time),
        false => Err("a time between 1 and 36000 tenths of a second is wanted".to_owned()),
    }
}

/// How much the kernel may hold of written data: a size, or `none` for no bound of ours.
pub fn kernel_dirty(value: &str) -> Result<KernelDirty, String> {
    match value {
        "none" => Ok(KernelDirty::AnyNumber),
        size => match crate::values::size(size)? {
            bytes if bytes >= KERNEL_DIRTY_LEAST => Ok(KernelDirty::AtMost(bytes)),
            _ => Err("a size of 1M at least is wanted, or none".to_owned()),
        },
    }
}

/// Less would have no room for the header and a block of one segment, and what it is cleaned to.
fn disk_bytes(value: &str) -> Result<u64, String> {
    match crate::values::size(value)? {
        bytes if bytes >= DISK_BYTES_LEAST => Ok(bytes),
        _ => Err("a size of 1M at least is wanted".to_owned()),
    }
}

fn port(value: &str) -> Result<u16, String> {
    value.parse().ok().filter(|port| *port > 0).ok_or_else(|| "a port is wanted".to_owned())
}

pub fn transfer(value: &str) -> Result<u32, String> {
    match u32::try_from(crate::values::size(value)?) {
        Ok(bytes @ 512..) => Ok(bytes),
        _ => Err("a size from 512 to 4G is wanted".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &str) -> Result<Settings, String> {
        let mut settings = Settings::of("nfs://server/export")?;
        split(words).try_for_each(|word| settings.word(&word))?;
        settings.check()?;
        Ok(settings)
    }

    #[test]
    fn a_source_is_a_url_or_what_mount_has_always_taken() {
        let target = |source| Settings::of(source).unwrap().target;
        let plain = target("server:/export/a b");
        assert_eq!((plain.host.as_str(), plain.path.as_slice()), ("server", &b"/export/a b"[..]));
        assert_eq!(target("[::1]:/x").host, "::1");
        assert_eq!(target("server:/").path, b"/");
        assert_eq!(target("server:/x/").path, b"/x");
        assert_eq!(target("nfs://server/export").path, b"/export");
        for wrong in ["server", "/export", ":/export", "http://server/x", "a b:/x"] {
            assert!(Settings::of(wrong).unwrap_err().contains("HOST:/EXPORT"), "{wrong}");
        }
    }

    #[test]
    fn words_of_fstab_are_taken() {
        let given = settings(
            "defaults,_netdev,noauto,x-systemd.automount,rw,ro,soft,timeo=50,retrans=4,noatime,\
             acregmin=0,acdirmax=5,port=2050,proto=udp,vers=3,wsize=32768",
        )
        .unwrap();
        assert!(given.flags.read_only && given.flags.no_atime && given.soft);
        assert_eq!(given.timeo, Some(Nanos::from_secs(5)));
        assert_eq!((given.retrans, given.wsize), (Some(4), Some(32_768)));
        assert_eq!(given.times.reg_min, Nanos::ZERO);
        assert_eq!(given.times.dir_max, Nanos::from_secs(5));
        assert_eq!((given.target.nfs_port, given.target.protocol), (Some(2050), Protocol::Udp));
    }

    #[test]
    fn times_and_sizes_are_written_as_everywhere() {
        let spelled =
            settings("timeo=1.5s,acregmin=0.1ms,acdirmax=1m,wsize=1.5M,grace=90").unwrap();
        assert_eq!(
            (spelled.timeo, spelled.grace),
            (Some(Nanos::from_millis(1500)), Nanos::from_secs(90))
        );
        assert_eq!(spelled.times.reg_min, Nanos::from_micros(100));
        assert_eq!((spelled.times.dir_max, spelled.wsize), (Nanos::from_secs(60), Some(3 << 19)));
    }

    #[test]
    fn the_last_of_two_opposite_words_decides() {
        let flags = |words| settings(words).unwrap().flags;
        assert!(!flags("").suid && !flags("").dev && flags("suid,dev").suid);
        assert_eq!(flags("suid,dev,nosuid,nodev"), flags(""));
        assert_eq!(flags("noexec,exec,noatime,atime,ro,rw"), flags(""));
        // As mount(8) asks for it, with what stands in its table.
        let words =
            "rw,nosuid,relatime,user_id=0,group_id=0,default_permissions,allow_other,remount";
        assert!(settings(words).unwrap().remount);
    }

    #[test]
    fn the_policies_of_the_papers_see_every_write() {
        let cache = |words| settings(words).unwrap().kernel_cache();
        assert_eq!(cache(""), KernelCache::Writeback);
        assert_eq!(cache("write_policy=hashed"), KernelCache::Writethrough);
        assert_eq!(cache("write_policy=hashed,kernel_cache=none"), KernelCache::None);
        assert_eq!(cache("noac"), KernelCache::Writethrough);
    }

    #[test]
    fn what_the_kernel_may_hold_is_bounded_unless_that_is_not_wanted() {
        let most = |words| settings(words).unwrap().kernel_dirty_max();
        assert_eq!(most(""), Some(64 << 20));
        assert_eq!(most("kernel_dirty_max=1M"), Some(1 << 20));
        assert_eq!(most("kernel_dirty_max=none"), None);
    }

    #[test]
    fn no_more_waits_beside_dirty_max_than_it_lets_wait() {
        let of = |words| settings(words).unwrap();
        let both = |words| (of(words).waiting_bytes_max(), of(words).kernel_dirty_max());
        assert_eq!(both("dirty_max=8M"), (8 << 20, Some(8 << 20)));
        assert_eq!(both("dirty_max=1M"), (4 << 20, Some(4 << 20)), "reads wait for these");
        assert_eq!(both("dirty_max=1G"), (64 << 20, Some(64 << 20)));
        let requested = both("dirty_max=8M,kernel_dirty_max=32M");
        assert_eq!(requested, (8 << 20, Some(32 << 20)));
        assert_eq!(both("dirty_max=8M,kernel_dirty_max=none"), (8 << 20, None));
    }

    #[test]
    fn what_is_unknown_or_wrong_is_named() {
        for (words, part) in [
            ("frobnicate", "unknown option \"frobnicate\"; known are ro"),
            ("ro=1", "unknown option"),
            ("timeo", "unknown option \"timeo\""),
            ("timeo=0", "between 1 and 36000"),
            ("timeo=2h", "between 1 and 36000"),
            ("timeo=x", "not a time"),
            ("acregmin=2d", "not a time"),
            ("acregmin=25h", "longer than a day"),
            ("wsize=0.1K", "from 512 to 4G"),
            ("nconnect=17", "between 1 and 16"),
            ("vers=4.1", "versions 3 and 2"),
            ("proto=rdma", "tcp and udp"),
            ("write_policy=fast", "linux-2.4.4"),
            ("kernel_cache=all", "writethrough"),
            ("dirty_max=x", "powers of 1024"),
            ("kernel_dirty_max=x", "powers of 1024"),
            ("kernel_dirty_max=64K", "1M at least"),
            ("cache=", "a directory"),
            ("cache_files=0", "between 1 and 100000000"),
            ("cache_size=x", "powers of 1024"),
            ("cache=d,cache_size=1k", "1M at least"),
            ("cache_size=1G", "cache=DIR is missing"),
            ("cache_files=7,ro", "cache=DIR is missing"),
            ("link=fast", "lan-1g"),
            ("port=0", "a port"),
            ("lock", "unknown option"),
        ] {
            let why = settings(words).unwrap_err();
            assert!(why.contains(part), "{words}: {why}");
        }
    }
}
