//! The phases in their order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use client::error::{Error, Service};
use client::mount::steps::{Exported, Steps};
use client::mount::{MOUNT_PORT, NFS_PORT, Ports};
use client::url::{Protocol, Target};
use doctor::reach::{Fault, Known, Phase, answering, causes};
use net::clock::Clock;
use net::error::ConnectError;
use net::path_mtu::{self, Passed};
use net::transport::RECORD_BYTES_MAX;
use net::transport::buffer::Pool;
use net::transport::tcp;
use net::way;
use perf::units::{Instant, Nanos};
use wire::nfs3::FileHandle;
use wire::portmap;

use crate::{AFTER_A_FAILURE, Checked, Failed, Options, Other, Outcome, Step, TOTAL_MAX, fault};

/// Connections and NULLs that are timed.
const CONNECTS: usize = 5;
const NULLS: usize = 20;

/// For a way that is tried besides: versions, UDP.
const OTHER_LIMIT: Nanos = Nanos::from_secs(1);

/// For the first echo: a host that answers none is no slower to check.
const ECHO_LIMIT: Nanos = Nanos::from_secs(1);

/// Exports that are named.
const EXPORTS_SHOWN: usize = 8;

/// Walks the phases, and ends at the first that fails and is needed. `is_stopped` is called between
/// phases.
pub async fn walk(
    clock: &Clock,
    target: &Target,
    options: &Options,
    is_stopped: impl Fn() -> bool,
) -> Checked {
    let mut walk = Walk::new(clock, target, options);
    walk.all(&is_stopped).await;
    let begun = walk.begun;
    let mut checked = walk.checked;
    checked.answering = answering(checked.connect_ms, checked.null_ms);
    checked.first = checked.to_look_at();
    checked.seconds = clock.now().since(begun).as_secs_f64();
    checked
}

/// The phase failed, and no mount can do without it; or nobody wants to know any more.
pub(crate) struct Ended;

pub(crate) struct Walk<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a Options,
    pub(crate) steps: Steps<'a>,
    pub(crate) known: Known,
    pub(crate) checked: Checked,
    begun: Instant,
}

impl<'a> Walk<'a> {
    fn new(clock: &'a Clock, target: &'a Target, options: &'a Options) -> Self {
        let path = String::from_utf8_lossy(&target.path).into_owned();
        let checked = Checked::of(format!("{}:{path}", target.host));
        let known = Known {
            host: target.host.clone(),
            is_privileged: options.is_privileged,
            path,
            ..Known::default()
        };
        let steps = Steps { clock, options: &options.mount, protocol: target.protocol };
        Self { clock, target, options, steps, known, checked, begun: clock.now() }
    }

    async fn all(&mut self, is_stopped: &impl Fn() -> bool) {
        let ended = self.in_order(is_stopped).await.is_err();
        for phase in Phase::ALL {
            if !self.checked.steps.iter().any(|step| step.phase == phase) {
                self.skip(phase, self.why_left(phase, ended));
            }
        }
    }

    /// Why a phase was not tried.
    fn why_left(&self, phase: Phase, ended: bool) -> &'static str {
        if self.checked.failed().is_some() {
            return AFTER_A_FAILURE;
        }
        match phase {
            Phase::Write if !self.options.writes => "without --write",
            _ if !self.options.has_path => "no export was given",
            _ if ended => "interrupted, or no time was left",
            _ => "there was nothing to try it on",
        }
    }

    async fn in_order(&mut self, is_stopped: &impl Fn() -> bool) -> Result<(), Ended> {
        let host = self.name().await?;
        self.route(host).await?;
        self.go_on(is_stopped)?;
        let registered = self.portmapper(host).await?;
        let nfs =
            SocketAddr::new(host.ip(), self.target.nfs_port.or(registered).unwrap_or(NFS_PORT));
        self.go_on(is_stopped)?;
        self.connect(nfs).await?;
        self.go_on(is_stopped)?;
        self.null(nfs).await?;
        self.go_on(is_stopped)?;
        let mount = self.mount_program(host, nfs).await?;
        self.go_on(is_stopped)?;
        self.exports(mount).await?;
        if !self.options.has_path {
            return Ok(());
        }
        self.go_on(is_stopped)?;
        let (version, protocol) = (self.target.version, self.target.protocol);
        let ports = Ports { nfs, mount, protocol, version };
        let root = self.permission(&ports).await?;
        self.go_on(is_stopped)?;
        self.files(&ports, root, is_stopped).await
    }

    /// Whether there is time, and somebody who waits.
    pub(crate) fn go_on(&self, is_stopped: &impl Fn() -> bool) -> Result<(), Ended> {
        let is_late = self.clock.now().since(self.begun) > TOTAL_MAX;
        if is_late || is_stopped() { Err(Ended) } else { Ok(()) }
    }

    /// A phase that began at `since`, however it went.
    fn ended(&mut self, phase: Phase, since: Instant, outcome: Outcome) {
        let ms = Some(self.clock.now().since(since).as_secs_f64() * 1e3);
        self.checked.steps.push(Step { phase, ms, outcome });
    }

    fn done(&mut self, phase: Phase, since: Instant, what: impl Into<String>) {
        self.ended(phase, since, Outcome::Done(what.into()));
    }

    pub(crate) fn skip(&mut self, phase: Phase, why: impl Into<String>) {
        self.checked.steps.push(Step { phase, ms: None, outcome: Outcome::Skipped(why.into()) });
    }

    /// What came of a phase; the walk goes on without it only if a mount can do that.
    pub(crate) fn settle<T>(
        &mut self,
        phase: Phase,
        since: Instant,
        tried: Result<(T, String), Wrong>,
    ) -> Result<Option<T>, Ended> {
        match tried {
            Ok((found, what)) => {
                self.done(phase, since, what);
                Ok(Some(found))
            }
            Err(wrong) => self.failed(phase, since, wrong).map(|()| None),
        }
    }

    fn failed(&mut self, phase: Phase, since: Instant, wrong: Wrong) -> Result<(), Ended> {
        let Wrong { fault, what } = wrong;
        let (causes, is_optional) = (causes(phase, fault, &self.known), phase.is_optional());
        self.ended(phase, since, Outcome::Failed(Failed { what, causes, is_optional }));
        self.known.is_alive |= is_answer(fault);
        if is_optional { Ok(()) } else { Err(Ended) }
    }

    async fn name(&mut self) -> Result<SocketAddr, Ended> {
        let begin = self.clock.now();
        let host = &self.target.host;
        let found = tcp::resolve(self.clock, host, NFS_PORT, self.options.limit).await;
        let found = found.map_err(|error| Wrong::of_connect(&error));
        let found = found.and_then(|all| chosen(&all).ok_or_else(|| Wrong::unresolved(host)));
        self.settle(Phase::Name, begin, found)?.ok_or(Ended)
    }

    async fn route(&mut self, host: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        let found = match way::find(host.ip()) {
            Ok(found) => {
                self.known.is_local = found.local == host.ip();
                self.checked.mtu_bytes = found.mtu_bytes;
                let mtu = match (found.mtu_bytes, host.ip()) {
                    (Some(mtu), IpAddr::V4(address)) => self.packets(address, mtu).await,
                    _ => String::new(),
                };
                Ok(((), format!("from {}{mtu}", found.local)))
            }
            Err(cause) => {
                let what = format!("no way to {}: {cause}", host.ip());
                Err(Wrong { fault: Fault::Unreachable, what })
            }
        };
        self.settle(Phase::Route, begin, found).map(drop)
    }

    /// What passes, beside what the kernel believes.
    async fn packets(&mut self, host: Ipv4Addr, mtu: u32) -> String {
        let limit = self.options.limit.min(ECHO_LIMIT);
        let passed = path_mtu::largest(self.clock, host, mtu, limit).await;
        if let Ok(Passed::Bytes(bytes)) = passed {
            self.checked.passed_bytes = Some(bytes);
            self.known.is_alive = true;
        }
        match passed {
            // No packet has more than 65,535 bytes, whatever a loopback's MTU is.
            Ok(Passed::Bytes(bytes)) if bytes < mtu.min(u32::from(u16::MAX)) => format!(
                ", packets of {bytes} bytes pass, and none of {mtu}, as the kernel believes"
            ),
            Ok(Passed::Bytes(bytes)) => format!(", packets of {bytes} bytes pass"),
            Ok(Passed::Silence) => {
                format!(", packets of up to {mtu} bytes by the kernel (no echo came)")
            }
            Err(_) => format!(", packets of up to {mtu} bytes by the kernel (echoes are root's)"),
        }
    }

    async fn portmapper(&mut self, host: SocketAddr) -> Result<Option<u16>, Ended> {
        if self.target.nfs_port.is_some() && self.target.mount_port.is_some() {
            self.skip(Phase::Portmapper, "the target has both ports");
            return Ok(None);
        }
        let begin = self.clock.now();
        let address = SocketAddr::new(host.ip(), portmap::PORT);
        self.known.port = Some(portmap::PORT);
        let registered = self.steps.registered(address, Service::Nfs, self.target.version).await;
        let found = match registered {
            Ok(Some(port)) => {
                self.known.is_alive = true;
                Ok((port, format!("NFS is on port {port}")))
            }
            Ok(None) => {
                let what = format!("it knows no NFS version {}", self.target.version.number());
                Err(Wrong { fault: Fault::NotRegistered, what })
            }
            Err(error) => Err(Wrong::of(&error)),
        };
        self.settle(Phase::Portmapper, begin, found)
    }

    /// Several connections, one after the other: the kernel of the server answers them alone.
    async fn connect(&mut self, nfs: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        self.known.port = Some(nfs.port());
        if self.target.protocol == Protocol::Udp {
            self.skip(Phase::Connect, "UDP connects nothing");
            return Ok(());
        }
        let connected = self.connects(nfs).await.map(|times| {
            self.known.is_alive = true;
            self.checked.connect_ms = median_ms(times);
            let ms = self.checked.connect_ms.unwrap_or_default();
            ((), format!("TCP port {}, {ms:.3} ms (median)", nfs.port()))
        });
        self.settle(Phase::Connect, begin, connected).map(drop)
    }

    /// The times of some connections, at least of one.
    async fn connects(&self, nfs: SocketAddr) -> Result<Vec<Nanos>, Wrong> {
        let mut times = Vec::new();
        for _ in 0..CONNECTS {
            let (at, pool) = (self.clock.now(), Pool::new(RECORD_BYTES_MAX));
            let limit = self.options.limit;
            match tcp::connect(self.clock, nfs, limit, &pool, RECORD_BYTES_MAX).await {
                Ok(_connection) => times.push(self.clock.now().since(at)),
                Err(_) if !times.is_empty() => break,
                Err(cause) => return Err(Wrong::of_connect(&cause)),
            }
        }
        Ok(times)
    }

    async fn null(&mut self, nfs: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        let (version, protocol) = (self.target.version, self.target.protocol);
        let ports = Ports { nfs, mount: nfs, protocol, version };
        let timed = self.nulls(&ports).await.map(|times| {
            self.checked.null_ms = median_ms(times);
            let ms = self.checked.null_ms.unwrap_or_default();
            ((), format!("version {}, {ms:.3} ms (median)", version.number()))
        });
        let timed = timed.map_err(|error| Wrong::of(&error));
        if timed.as_ref().is_err_and(Wrong::is_of_version) {
            self.others(nfs).await;
        }
        self.settle(Phase::Null, begin, timed)?;
        self.others(nfs).await;
        Ok(())
    }

    async fn nulls(&self, ports: &Ports) -> Result<Vec<Nanos>, Error> {
        let session = self.steps.session(ports).await?;
        let mut times = Vec::new();
        for _ in 0..NULLS {
            times.push(session.null().await?.response_time());
        }
        Ok(times)
    }

    /// Versions and transports that a mount could fall back to.
    async fn others(&mut self, nfs: SocketAddr) {
        let options = client::mount::Options {
            connect_limit: OTHER_LIMIT,
            reply_limit: OTHER_LIMIT,
            ..self.options.mount.clone()
        };
        let own = (self.target.version.number(), self.target.protocol);
        let ways = [(2, Protocol::Tcp), (3, Protocol::Tcp), (4, Protocol::Tcp), (3, Protocol::Udp)];
        for (version, protocol) in ways.into_iter().filter(|way| *way != own) {
            let steps = Steps { clock: self.clock, options: &options, protocol };
            let answer = steps.null_of_nfs(nfs, version).await;
            if answer.is_ok() && protocol == Protocol::Tcp {
                self.known.versions.push(version);
            }
            let what = format!("version {version} over {}", protocol.name().to_uppercase());
            let why = answer.as_ref().err().map(ToString::to_string);
            self.checked.others.push(Other { what, answers: answer.is_ok(), why });
        }
    }

    async fn mount_program(
        &mut self,
        host: SocketAddr,
        nfs: SocketAddr,
    ) -> Result<SocketAddr, Ended> {
        let begin = self.clock.now();
        let found = self.mount_at(host, nfs).await;
        let found = found.map(|address| (address, format!("port {}", address.port())));
        self.settle(Phase::MountProgram, begin, found)?.ok_or(Ended)
    }

    async fn mount_at(&mut self, host: SocketAddr, nfs: SocketAddr) -> Result<SocketAddr, Wrong> {
        let mut why = None;
        for port in self.mount_ports(host, nfs).await {
            let address = SocketAddr::new(host.ip(), port);
            match self.steps.null_of_mount(address, self.target.version).await {
                Ok(()) => {
                    self.known.port = Some(port);
                    return Ok(address);
                }
                // The error of the first place means more than that the usual port is closed.
                Err(error) => drop(why.get_or_insert_with(|| (port, Wrong::of(&error)))),
            }
        }
        let (port, wrong) = why.expect("there is a port at least");
        self.known.port = Some(port);
        Err(wrong)
    }

    /// Where MOUNT may be: as given, else as registered, else where NFS is, else its usual port.
    async fn mount_ports(&mut self, host: SocketAddr, nfs: SocketAddr) -> Vec<u16> {
        let version = self.target.version;
        let portmapper = SocketAddr::new(host.ip(), portmap::PORT);
        let has_portmapper = self.checked.steps.iter().any(|step| {
            step.phase == Phase::Portmapper && matches!(step.outcome, Outcome::Done(_))
        });
        let registered = match (self.target.mount_port, has_portmapper) {
            (None, true) => self.steps.registered(portmapper, Service::Mount, version).await,
            _ => Ok(None),
        };
        match (self.target.mount_port, registered.ok().flatten()) {
            (Some(port), _) | (None, Some(port)) => vec![port],
            (None, None) => vec![nfs.port(), MOUNT_PORT],
        }
    }

    async fn exports(&mut self, mount: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        let exports = self.steps.exports(mount, self.target.version).await;
        let listed = exports.map_err(|error| Wrong::of(&error)).map(|exports| {
            let text = listed(&exports);
            self.known.exports = Some(exports.into_iter().map(|one| one.path).collect());
            ((), text)
        });
        self.settle(Phase::Exports, begin, listed).map(drop)
    }

    async fn permission(&mut self, ports: &Ports) -> Result<FileHandle, Ended> {
        let begin = self.clock.now();
        let found = match self.export(ports).await {
            Ok((root, export_len)) => self.inside(ports, root, export_len).await,
            Err(wrong) => Err(wrong),
        };
        self.settle(Phase::Permission, begin, found)?.ok_or(Ended)
    }

    /// The root and the length of the longest part of the path that is an export.
    async fn export(&self, ports: &Ports) -> Result<(FileHandle, usize), Wrong> {
        let mut export = self.target.path.as_slice();
        let mut first = None;
        loop {
            let error = match self.steps.mnt(ports.mount, ports.version, export).await {
                Ok(root) => return Ok((root, export.len())),
                Err(error) => error,
            };
            let may_be_inside = matches!(fault::of(&error), Fault::Absent | Fault::Denied);
            let error = first.get_or_insert(error);
            let slash = export.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            if !may_be_inside || export == b"/" {
                return Err(Wrong::of(error));
            }
            export = if slash == 0 { b"/" } else { &export[..slash] };
        }
    }

    /// The way from an export to the directory inside of it.
    async fn inside(
        &mut self,
        ports: &Ports,
        root: FileHandle,
        export_len: usize,
    ) -> Result<(FileHandle, String), Wrong> {
        let (export, below) = self.target.path.split_at(export_len);
        let export = String::from_utf8_lossy(export);
        match self.lookups(ports, root, below).await {
            Ok(root) => Ok((root, format!("{export} is exported to us"))),
            Err(error) => {
                self.known.inside_of = Some(export.into_owned());
                Err(Wrong::of(&error))
            }
        }
    }

    async fn lookups(
        &self,
        ports: &Ports,
        mut dir: FileHandle,
        path: &[u8],
    ) -> Result<FileHandle, Error> {
        let session = self.steps.session(ports).await?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            dir = session.lookup(dir, name).await?.object;
        }
        Ok(dir)
    }
}

/// What a phase failed with.
pub(crate) struct Wrong {
    pub(crate) fault: Fault,
    pub(crate) what: String,
}

impl Wrong {
    pub(crate) fn of(error: &Error) -> Self {
        Self { fault: fault::of(error), what: error.to_string() }
    }

    fn of_connect(error: &ConnectError) -> Self {
        Self { fault: fault::of_connect(error), what: error.to_string() }
    }

    fn unresolved(host: &str) -> Self {
        Self { fault: Fault::Unresolved, what: format!("{host} has no address") }
    }

    /// The server answers, and has another version or program.
    fn is_of_version(&self) -> bool {
        matches!(self.fault, Fault::NoProgram | Fault::NoVersion { .. })
    }
}

/// Whoever says no is there.
fn is_answer(fault: Fault) -> bool {
    !matches!(fault, Fault::Silent | Fault::Unresolved | Fault::Unreachable)
}

/// The address that mounts choose, IPv4 first, and what there is.
fn chosen(all: &[SocketAddr]) -> Option<(SocketAddr, String)> {
    let chosen = all.iter().find(|address| address.is_ipv4()).or_else(|| all.first())?;
    let others = match all.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    Some((*chosen, format!("{}{others}", chosen.ip())))
}

/// The exports, and to whom each is exported.
fn listed(exports: &[Exported]) -> String {
    let each = exports.iter().take(EXPORTS_SHOWN).map(|one| match one.groups.len() {
        0 => one.path.clone(),
        _ => format!("{} ({})", one.path, one.groups.join(" ")),
    });
    let each = each.collect::<Vec<_>>().join(", ");
    match exports.len() {
        0 => "none that it shows".to_owned(),
        all if all > EXPORTS_SHOWN => format!("{each} .. ({all} in all)"),
        _ => each,
    }
}

fn median_ms(mut times: Vec<Nanos>) -> Option<f64> {
    times.sort();
    times.get(times.len() / 2).map(|time| time.as_secs_f64() * 1e3)
}
