//! What a server says when it begins: what is served to whom, how safe it is, and the exact
//! commands to mount it.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::url::Version;
use harness::exports::{Client, RuleSpec, Spec};
use harness::mountable::Mountable;
use harness::served::{self, CommitMode};
use harness::{records, recovery};
use net::shape::calibration::Calibration;
use perf::model::write_log::LogDevice;
use server::store::dir::DirStore;
use server::store::dir::write_log::{self, Latencies};
use server::types::Caller;
use server::{Exports, Squash};

use super::identity;
use super::stores::Kind;
use crate::args::{MetadataSync, Serve};

/// Exports listed; of more, the number is given.
const EXPORTS_MAX: usize = 20;

const SLOW_LOG: &str = "a write of the log takes no less than a sync of the directory's disk: only \
    writes to many files at once can gain by it; a faster device would serve all";

const FLEETING: &str = "good until this process ends or the kernel forgets the file: its file \
                        system, such as FUSE, does not number files for good";

const IN_MEMORY: &str = "on a tmpfs, or on what stands on one, or an overlay mounted volatile: \
                         nothing survives the machine's end";

#[derive(Debug)]
pub(super) struct Banner<'a> {
    args: &'a Serve,
    kind: Kind,
    specs: Vec<Spec>,
    everyone: Option<Caller>,
    /// Exports of which nothing survives the machine's end.
    in_memory: Vec<String>,
    /// Exports whose handles last no longer than the process, because of their file systems.
    fleeting: Vec<String>,
    origin: Option<Origin>,
    address: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    emulator: Option<Calibration>,
    recovered: Option<(String, Vec<(PathBuf, Latencies)>)>,
    write_back: Option<String>,
    warnings: Vec<String>,
}

impl<'a> Banner<'a> {
    pub(super) fn new(args: &'a Serve, kind: Kind) -> Self {
        Self {
            args,
            kind,
            specs: Vec::new(),
            everyone: None,
            in_memory: Vec::new(),
            fleeting: Vec::new(),
            origin: None,
            address: None,
            metrics: None,
            emulator: None,
            recovered: None,
            write_back: None,
            warnings: Vec::new(),
        }
    }

    /// What is exported, and as whom everyone acts if not as himself.
    pub(super) fn serves(&mut self, specs: &[Spec], everyone: Option<&Caller>) {
        self.specs = specs.to_vec();
        self.everyone = everyone.cloned();
        // Who may not act as root does so for nobody.
        let as_root = identity::anonymous_root(specs).filter(|_| everyone.is_none());
        as_root.into_iter().for_each(|warning| self.warns(warning));
    }

    /// Where the directories lie.
    pub(super) fn looks_at_directories(&mut self) {
        let in_memory = self.specs.iter().filter(|spec| write_log::is_in_memory(&spec.path));
        self.in_memory = in_memory.map(|spec| spec.name.clone()).collect();
    }

    /// Which of their file systems number files for a while only.
    pub(super) fn looks_at_handles(&mut self, exports: &Exports<DirStore>) {
        let fleeting = exports.iter().filter(|exported| !exported.store.has_lasting_identities());
        self.fleeting = fleeting.map(|exported| exported.export.name.clone()).collect();
    }

    /// Whose files they are, if another server's.
    pub(super) fn proxies(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    /// The log that answers changes, in a sentence.
    pub(super) fn writes_back(&mut self, log: String) {
        self.write_back = Some(log);
    }

    /// What its write log held, and what its device takes.
    pub(super) fn recovers(&mut self, store: &DirStore) {
        let latencies = store.log_latencies();
        let dir = self.specs.first().map_or_else(|| Path::new(""), |spec| &spec.path);
        let done = store.recovered().map(|recovered| recovery::summary(recovered, dir));
        let logs = store.logs().iter().zip(latencies);
        let each = logs.map(|((path, _), latencies)| (path.clone(), *latencies)).collect();
        self.recovered = done.map(|done| (done, each));
        if latencies.iter().any(Latencies::is_log_slow) {
            self.warns(SLOW_LOG.to_owned());
        }
    }

    pub(super) fn listens(&mut self, address: SocketAddr) {
        self.address = Some(address);
    }

    pub(super) fn measures(&mut self, address: SocketAddr) {
        self.metrics = Some(address);
    }

    /// How well the link is emulated.
    pub(super) fn emulates(&mut self, emulator: Option<Calibration>) {
        self.emulator = emulator;
    }

    pub(super) fn warns(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    pub(super) fn versions(&self) -> &'static str {
        match (self.args.versions.nfs2, self.args.versions.nfs3) {
            (true, true) => "NFS v2 and v3",
            (true, false) => "NFS v2",
            (false, _) => "NFS v3",
        }
    }

    fn durability(&self) -> String {
        if self.write_back.is_some() {
            return "stable in the log, and at the origin later".to_owned();
        }
        if self.origin.is_some() {
            return "the origin's: FILE_SYNC and COMMIT are answered when it has".to_owned();
        }
        if let Some(what) = self.kind.memory() {
            return format!("{what}: nothing survives this process");
        }
        let data = match self.args.commit_mode {
            CommitMode::Concurrent => "",
            CommitMode::Stall => ", and nothing else meanwhile",
        };
        let names = match self.args.metadata_sync {
            None | Some(MetadataSync::Always) => "",
            Some(MetadataSync::Never) => "; NOT names and attributes (--metadata-sync never)",
        };
        let stable = format!("stable: FILE_SYNC and COMMIT are answered after fsync{data}{names}");
        match self.in_memory.len() {
            0 => stable,
            lost if lost == self.specs.len() => format!("memory: {IN_MEMORY}"),
            _ => format!("{stable}; NOT {}: {IN_MEMORY}", listed(&self.in_memory)),
        }
    }

    /// Exports whose handles do not last, and why.
    fn handles(&self) -> Option<String> {
        (!self.fleeting.is_empty())
            .then(|| format!("those of {} are {FLEETING}", listed(&self.fleeting)))
    }

    /// The device of a log that is emulated as well.
    fn emulated_log(&self) -> Option<LogDevice> {
        let log = self.args.write_log.first().filter(|_| self.kind.memory().is_some())?;
        log.to_string_lossy().parse().ok()
    }

    /// The directory that has blocks of an origin's files.
    fn cache(&self) -> Option<String> {
        let dir = self.args.cache.as_ref()?.display();
        let size = records::bytes(self.args.cache_size);
        let offline = match self.args.offline_reads {
            true => "; served, too, while the origin is away",
            false => "",
        };
        Some(format!("{dir}, {size} at most{offline}"))
    }

    fn identity(&self) -> String {
        if let Some(Origin { everyone: Some(Caller { uid, gid, .. }), .. }) = &self.origin {
            return format!("every caller acts as uid {uid}, gid {gid} at the origin");
        }
        match &self.everyone {
            Some(Caller { uid, gid, .. }) => {
                let why = "this process may not act as others";
                format!("every caller acts as uid {uid}, gid {gid}: {why}")
            }
            None => identity::of_callers(&self.specs),
        }
    }

    fn reach(&self, address: SocketAddr) -> String {
        let listed = self.specs.iter().all(|spec| !spec.rule.is_open());
        match (address.ip().is_loopback(), listed) {
            (true, _) if self.specs.iter().any(|spec| !spec.rule.secure) => {
                "this host only, where insecure all of its users".to_owned()
            }
            (true, _) => match served::this_user().uid {
                0 => "this host only, programs of root (others: insecure)".to_owned(),
                uid => format!("this host only, programs of uid {uid} and root (others: insecure)"),
            },
            (false, true) => "those of the lists above".to_owned(),
            (false, false) => {
                "every host that reaches the port, where no clients are listed".to_owned()
            }
        }
    }
}

/// The exports between which and everybody nothing stands but the network, first those where root
/// of every host is root.
pub(super) fn open_to_everybody<S>(address: SocketAddr, exports: &Exports<S>) -> Vec<&str> {
    let all = exports.iter().map(|exported| &exported.export);
    let mut open: Vec<_> =
        all.filter(|export| export.is_open() && !address.ip().is_loopback()).collect();
    open.sort_by_key(|export| export.rules.iter().all(|rule| rule.squash != Squash::None));
    open.into_iter().map(|export| export.name.as_str()).collect()
}

/// The warning at the start.
pub(super) fn warning(names: &[&str], address: SocketAddr, args: &Serve) -> String {
    let are = if names.len() == 1 { "is" } else { "are" };
    format!(
        "warning: {} {are} open to every host that reaches {address}: no clients are listed, or \
         all are\n  try: {}, or --listen 127.0.0.1:{}",
        listed(names),
        with_clients(args),
        address.port()
    )
}

/// How an export gets a list of clients, and nothing else about it changes.
fn with_clients(args: &Serve) -> String {
    match (&args.store, args.export.as_slice(), &args.exports) {
        (Some(_), [], _) => "--export /=client=10.0.0.0/8".to_owned(),
        (_, [], Some(file)) => format!("clients = [\"10.0.0.0/8\"] for it in {}", file.display()),
        (_, _, None) => "add client=10.0.0.0/8 to its --export".to_owned(),
        (_, _, Some(file)) => format!(
            "add client=10.0.0.0/8 to its --export, or clients = [\"10.0.0.0/8\"] in {}",
            file.display()
        ),
    }
}

/// The rule in the words of exports(5), without a list of clients where there is none.
fn rule(spec: &Spec) -> String {
    let rule = &spec.rule;
    let access = if rule.read_only { "read-only" } else { "read-write" };
    let secure = if rule.secure { "secure" } else { "insecure" };
    let clients = match rule.clients.is_empty() {
        true => String::new(),
        false => format!("; clients: {}", clients(&rule.clients)),
    };
    format!("{access}, {}, {secure}{clients}", squash(rule))
}

fn squash(rule: &RuleSpec) -> String {
    let nobody = format!("{}:{}", rule.anonymous_uid, rule.anonymous_gid);
    match rule.squash {
        Squash::None => "no_root_squash".to_owned(),
        Squash::Root => format!("root_squash to {nobody}"),
        Squash::All => format!("all_squash to {nobody}"),
    }
}

fn clients(clients: &[Client]) -> String {
    let name = |client: &Client| match client {
        Client::Network(network) => network.to_string(),
        Client::Host(host) => host.clone(),
    };
    clients.iter().map(name).collect::<Vec<String>>().join(" ")
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(address), Some(first)) = (self.address, self.specs.first()) else {
            return Ok(());
        };
        let version = env!("CARGO_PKG_VERSION");
        let over = if self.args.udp { "TCP and UDP" } else { "TCP" };
        writeln!(f, "nfskit {version} serves {} over {over} on {address}", self.versions())?;
        self.exports(f)?;
        self.origin(f)?;
        line(f, "durability", Some(self.durability()))?;
        line(f, "write-back", self.write_back.as_ref())?;
        self.write_log(f)?;
        line(f, "handles", self.handles())?;
        line(f, "identity", Some(self.identity()))?;
        line(f, "clients", Some(self.reach(address)))?;
        line(f, "metrics", self.metrics.map(|metrics| format!("http://{metrics}/metrics")))?;
        line(f, "link", self.args.link.as_ref())?;
        line(f, "emulator", self.emulator.as_ref())?;
        self.warnings.iter().try_for_each(|warning| line(f, "warning", Some(warning)))?;
        let mountable = Mountable {
            listen: address,
            mount_port: address.port(),
            export: &first.name,
            version: if self.args.versions.nfs3 { Version::Three } else { Version::Two },
        };
        line(f, "url", Some(mountable.url()))?;
        line(f, "Linux", Some(mountable.linux("tcp")))?;
        line(f, "macOS", Some(mountable.macos(first.rule.secure)))?;
        line(f, "by FUSE", Some(mountable.by_fuse()))
    }
}

/// A head and its text; nothing without a text.
fn line(f: &mut fmt::Formatter<'_>, head: &str, text: Option<impl fmt::Display>) -> fmt::Result {
    text.map_or(Ok(()), |text| writeln!(f, "  {head:<11} {text}"))
}

impl Banner<'_> {
    fn exports(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for spec in self.specs.iter().take(EXPORTS_MAX) {
            let text = format!("{} = {} ({})", spec.name, spec.path.display(), rule(spec));
            line(f, "export", Some(text))?;
        }
        let more = self.specs.len().checked_sub(EXPORTS_MAX).filter(|more| *more > 0);
        line(f, "", more.map(|more| format!("and {more} more")))
    }

    fn origin(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Origin { spoken, handles_last, .. }) = &self.origin else { return Ok(()) };
        line(f, "origin", Some(spoken))?;
        line(f, "cache", self.cache())?;
        line(f, "", (!handles_last).then_some("handles are good until this process ends"))
    }

    /// The write log: what was replayed from it, and its latencies.
    fn write_log(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((done, latencies)) = &self.recovered {
            self.recovered_log(f, done, latencies)?;
        }
        let Some(device) = self.emulated_log() else { return Ok(()) };
        let LogDevice { write_us, both_us, us_per_kib, .. } = device;
        let long_us = write_us + 64.0 * us_per_kib;
        line(f, "write log", Some(format!("{}: {FROM} it", self.logs())))?;
        line(f, "", Some(latencies_of([write_us, both_us, long_us], device.at_a_time())))
    }

    fn recovered_log(
        &self,
        f: &mut fmt::Formatter<'_>,
        done: &str,
        latencies: &[(PathBuf, Latencies)],
    ) -> fmt::Result {
        let it = if self.args.write_log.len() == 1 { "it" } else { "them" };
        line(f, "write log", Some(format!("{}: {FROM} {it}; {done}", self.logs())))?;
        latencies.iter().try_for_each(|(log, one)| match latencies.len() {
            1 => line(f, "", Some(timed(one))),
            _ => line(f, "", Some(format!("{}: {}", log.display(), timed(one)))),
        })
    }

    fn logs(&self) -> String {
        let logs = self.args.write_log.iter().map(|log| log.display().to_string());
        logs.collect::<Vec<_>>().join(" and ")
    }
}

const FROM: &str = "stable WRITEs are answered from";

/// What syncs of 4 KiB took.
fn timed(latencies: &Latencies) -> String {
    let us = |took: Duration| took.as_secs_f64() * 1e6;
    let Latencies { log, log_side_by_side, log_long, directory, .. } = *latencies;
    let at_a_time = u32::try_from(latencies.frames_at_a_time()).unwrap_or(1);
    let text = latencies_of([log, log_side_by_side, log_long].map(us), at_a_time);
    match directory.is_zero() {
        true => text,
        false => format!("{text}; a sync in the directory {:.0} us", us(directory)),
    }
}

fn latencies_of([log_us, both_us, long_us]: [f64; 3], at_a_time: u32) -> String {
    let at_a_time = if at_a_time == 1 { "one at a time" } else { "two at a time" };
    format!(
        "a write of it takes {log_us:.0} us, each of two {both_us:.0} us, one of 68 KiB \
         {long_us:.0} us: {at_a_time}"
    )
}

/// Names, and of more than a line has room for their number.
fn listed(names: &[impl AsRef<str>]) -> String {
    const LISTED_MAX: usize = 3;
    let first = names.iter().take(LISTED_MAX).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What is known of an origin, for the banner.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) spoken: String,
    pub(super) handles_last: bool,
    /// Everyone acts as this caller there.
    pub(super) everyone: Option<Caller>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_proxy_names_its_cache() {
        let line = |options: &str| {
            let words = "serve nfs://filer/x --cache /var/cache/x --cache-size 2G";
            let args = Serve::parse_from(format!("{words}{options}").split(' '));
            Banner::new(&args, Kind::Origin).cache()
        };
        assert_eq!(line("").as_deref(), Some("/var/cache/x, 2 GiB at most"));
        assert!(line(" --offline-reads").unwrap().ends_with("while the origin is away"));
        let without = Serve::parse_from(["serve", "/srv"]);
        assert_eq!(Banner::new(&without, Kind::Directories).cache(), None);
    }
}
