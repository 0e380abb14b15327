//! The phases in their order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use client::error::{Error, Service};
use client::mount::steps::Steps;
use client::mount::{MOUNT_PORT, NFS_PORT, Ports};
use client::url::{Protocol, Target};
use doctor::reach::{Fault, Known, Phase, answering, causes};
use net::clock::Clock;
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

/// Walks the phases, and ends at the first that fails and is needed. `is_stopped` is asked between
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
        let has_failed = self.checked.failed().is_some();
        let why = match (ended, has_failed) {
            (_, true) => AFTER_A_FAILURE,
            (true, false) => "interrupted, or no time was left",
            (false, false) => "there was nothing to try it on",
        };
        for phase in Phase::ALL {
            if !self.checked.steps.iter().any(|step| step.phase == phase) {
                let why = match phase {
                    Phase::Write if !has_failed && !self.options.writes => "without --write",
                    _ if !has_failed && !self.options.has_path => "no export was given",
                    _ => why,
                };
                self.skip(phase, why);
            }
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

    pub(crate) fn done(&mut self, phase: Phase, since: Instant, what: impl Into<String>) {
        let ms = Some(self.clock.now().since(since).as_secs_f64() * 1e3);
        self.checked.steps.push(Step { phase, ms, outcome: Outcome::Done(what.into()) });
    }

    pub(crate) fn skip(&mut self, phase: Phase, why: impl Into<String>) {
        self.checked.steps.push(Step { phase, ms: None, outcome: Outcome::Skipped(why.into()) });
    }

    /// A phase that failed; the walk goes on only if a mount can do without it.
    pub(crate) fn failed(
        &mut self,
        phase: Phase,
        since: Instant,
        fault: Fault,
        what: impl Into<String>,
    ) -> Result<(), Ended> {
        self.failed_where(phase, since, fault, what, phase.is_optional())
    }

    /// The same of a call, by what it failed with.
    pub(crate) fn failed_call(
        &mut self,
        phase: Phase,
        since: Instant,
        error: &Error,
    ) -> Result<(), Ended> {
        self.failed(phase, since, fault::of(error), error.to_string())
    }

    fn failed_where(
        &mut self,
        phase: Phase,
        since: Instant,
        fault: Fault,
        what: impl Into<String>,
        is_optional: bool,
    ) -> Result<(), Ended> {
        let ms = Some(self.clock.now().since(since).as_secs_f64() * 1e3);
        let causes = causes(phase, fault, &self.known);
        let outcome = Outcome::Failed(Failed { what: what.into(), causes, is_optional });
        self.checked.steps.push(Step { phase, ms, outcome });
        // Whoever says no is there.
        let is_answer = !matches!(fault, Fault::Silent | Fault::Unresolved | Fault::Unreachable);
        self.known.is_alive |= is_answer;
        if is_optional { Ok(()) } else { Err(Ended) }
    }

    async fn name(&mut self) -> Result<SocketAddr, Ended> {
        let begin = self.clock.now();
        let found = tcp::resolve(self.clock, &self.target.host, NFS_PORT, self.options.limit).await;
        let found = found.map_err(|error| (fault::of_connect(&error), error.to_string()));
        let found = found.and_then(|all| {
            let none = || (Fault::Unresolved, format!("{} has no address", self.target.host));
            // As mounts choose: IPv4 first.
            let ipv4 = all.iter().find(|address| address.is_ipv4());
            ipv4.or_else(|| all.first()).map(|chosen| (*chosen, all.len())).ok_or_else(none)
        });
        match found {
            Ok((address, count)) => {
                let others = match count - 1 {
                    0 => String::new(),
                    others => format!(", and {others} more"),
                };
                self.done(Phase::Name, begin, format!("{}{others}", address.ip()));
                Ok(address)
            }
            Err((fault, what)) => {
                self.failed(Phase::Name, begin, fault, what)?;
                Err(Ended)
            }
        }
    }

    async fn route(&mut self, host: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        match way::find(host.ip()) {
            Ok(found) => {
                self.known.is_local = found.local == host.ip();
                self.checked.mtu_bytes = found.mtu_bytes;
                let mtu = match (found.mtu_bytes, host.ip()) {
                    (Some(mtu), IpAddr::V4(address)) => self.packets(address, mtu).await,
                    _ => String::new(),
                };
                self.done(Phase::Route, begin, format!("from {}{mtu}", found.local));
                Ok(())
            }
            Err(cause) => {
                let what = format!("no way to {}: {cause}", host.ip());
                self.failed(Phase::Route, begin, Fault::Unreachable, what)
            }
        }
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
            Ok(Passed::Bytes(bytes)) if bytes < mtu.min(u32::from(u16::MAX)) => {
                format!(
                    ", packets of {bytes} bytes pass, and none of {mtu}, as the kernel believes"
                )
            }
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
        match self.steps.registered(address, Service::Nfs, self.target.version).await {
            Ok(Some(port)) => {
                self.known.is_alive = true;
                self.done(Phase::Portmapper, begin, format!("NFS is on port {port}"));
                Ok(Some(port))
            }
            Ok(None) => {
                let what = format!("it knows no NFS version {}", self.target.version.number());
                self.failed(Phase::Portmapper, begin, Fault::NotRegistered, what)?;
                Ok(None)
            }
            Err(error) => {
                self.failed_call(Phase::Portmapper, begin, &error)?;
                Ok(None)
            }
        }
    }

    /// Several connections, one after the other: the kernel of the server answers them alone.
    async fn connect(&mut self, nfs: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        self.known.port = Some(nfs.port());
        if self.target.protocol == Protocol::Udp {
            self.skip(Phase::Connect, "UDP connects nothing");
            return Ok(());
        }
        let mut times = Vec::new();
        for _ in 0..CONNECTS {
            let (at, pool) = (self.clock.now(), Pool::new(RECORD_BYTES_MAX));
            let limit = self.options.limit;
            match tcp::connect(self.clock, nfs, limit, &pool, RECORD_BYTES_MAX).await {
                Ok(_connection) => times.push(self.clock.now().since(at)),
                Err(_) if !times.is_empty() => break,
                Err(cause) => {
                    let fault = fault::of_connect(&cause);
                    return self.failed(Phase::Connect, begin, fault, cause.to_string());
                }
            }
        }
        self.known.is_alive = true;
        self.checked.connect_ms = median_ms(times);
        let ms = self.checked.connect_ms.unwrap_or_default();
        self.done(Phase::Connect, begin, format!("TCP port {}, {ms:.3} ms (median)", nfs.port()));
        Ok(())
    }

    async fn null(&mut self, nfs: SocketAddr) -> Result<(), Ended> {
        let begin = self.clock.now();
        let (version, protocol) = (self.target.version, self.target.protocol);
        let ports = Ports { nfs, mount: nfs, protocol, version };
        let timed = self.nulls(&ports).await;
        match timed {
            Ok(times) => {
                self.checked.null_ms = median_ms(times);
                let ms = self.checked.null_ms.unwrap_or_default();
                let what = format!("version {}, {ms:.3} ms (median)", version.number());
                self.done(Phase::Null, begin, what);
                self.others(nfs).await;
                Ok(())
            }
            Err(error) => {
                let fault = fault::of(&error);
                if matches!(fault, Fault::NoProgram | Fault::NoVersion { .. }) {
                    self.others(nfs).await;
                }
                self.failed(Phase::Null, begin, fault, error.to_string())
            }
        }
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
        let version = self.target.version;
        let mut why = None;
        for port in self.mount_ports(host, nfs).await {
            let address = SocketAddr::new(host.ip(), port);
            match self.steps.null_of_mount(address, version).await {
                Ok(()) => {
                    self.known.port = Some(port);
                    self.done(Phase::MountProgram, begin, format!("port {port}"));
                    return Ok(address);
                }
                // The error of the first place means more than that the usual port is closed.
                Err(error) => drop(why.get_or_insert((port, error))),
            }
        }
        if let Some((port, error)) = why {
            self.known.port = Some(port);
            self.failed_call(Phase::MountProgram, begin, &error)?;
        }
        Err(Ended)
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
        match self.steps.exports(mount, self.target.version).await {
            Ok(exports) => {
                let shown = exports.iter().take(EXPORTS_SHOWN).map(|one| match one.groups.len() {
                    0 => one.path.clone(),
                    _ => format!("{} ({})", one.path, one.groups.join(" ")),
                });
                let mut what = shown.collect::<Vec<_>>().join(", ");
                match exports.len() {
                    0 => what.push_str("none that it shows"),
                    all if all > EXPORTS_SHOWN => what.push_str(&format!(" .. ({all} in all)")),
                    _ => {}
                }
                self.known.exports = Some(exports.into_iter().map(|one| one.path).collect());
                self.done(Phase::Exports, begin, what);
                Ok(())
            }
            Err(error) => self.failed_call(Phase::Exports, begin, &error),
        }
    }

    /// The longest part of the path that is an export, and the way inside of it.
    async fn permission(&mut self, ports: &Ports) -> Result<FileHandle, Ended> {
        let begin = self.clock.now();
        let path = self.target.path.as_slice();
        let mut export = path;
        let mut first = None;
        loop {
            let error = match self.steps.mnt(ports.mount, ports.version, export).await {
                Ok(root) => return self.inside(ports, root, export.len(), begin).await,
                Err(error) => error,
            };
            let may_be_inside = matches!(fault::of(&error), Fault::Absent | Fault::Denied);
            let error = first.get_or_insert(error);
            let slash = export.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            if !may_be_inside || export == b"/" {
                self.failed_call(Phase::Permission, begin, error)?;
                return Err(Ended);
            }
            export = if slash == 0 { b"/" } else { &export[..slash] };
        }
    }

    async fn inside(
        &mut self,
        ports: &Ports,
        mut root: FileHandle,
        export_len: usize,
        begin: Instant,
    ) -> Result<FileHandle, Ended> {
        let (export, below) = self.target.path.split_at(export_len);
        let names = below.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let found = async {
            let session = self.steps.session(ports).await?;
            for name in names {
                root = session.lookup(root, name).await?.object;
            }
            Ok(root)
        };
        let found: Result<FileHandle, Error> = found.await;
        match found {
            Ok(root) => {
                let what = format!("{} is exported to us", String::from_utf8_lossy(export));
                self.done(Phase::Permission, begin, what);
                Ok(root)
            }
            Err(error) => {
                self.known.inside_of = Some(String::from_utf8_lossy(export).into_owned());
                self.failed_call(Phase::Permission, begin, &error)?;
                Err(Ended)
            }
        }
    }
}

fn median_ms(mut times: Vec<Nanos>) -> Option<f64> {
    times.sort();
    times.get(times.len() / 2).map(|time| time.as_secs_f64() * 1e3)
}
