//! A server that is about to begin, and its run until it ends.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;

use harness::descriptors::{self, Connections};
use harness::events::{self, Log};
use harness::exit::Failure;
use harness::register::{self, Registration};
use harness::served::{self, Memory, Options, Running};
use harness::signals::{Interrupts, Signal};
use harness::sockets::{Refused, Sockets};
use harness::verbosity::Verbosity;
use harness::{emulated, hints, output};
use net::clock::Clock;
use net::serve::{Drained, Limits};
use net::shape::Shape;
use net::shape::profile::Profile;
use perf::units::Nanos;
use server::store::Store;
use server::{Endpoint, Exports, Replies};

use super::banner::{self, Banner};
use super::watch;
use crate::args::Serve;

/// A server that is about to begin.
pub(super) struct Server<'a> {
    pub(super) args: &'a Serve,
    pub(super) verbosity: Verbosity,
    pub(super) clock: Clock,
    pub(super) interrupts: Interrupts,
    pub(super) sockets: Sockets,
    pub(super) replies: Replies,
    /// Descriptors that its stores keep open at most.
    pub(super) store_fds: usize,
}

impl Server<'_> {
    pub(super) async fn run<S: Store>(
        self,
        exports: Exports<S>,
        mut banner: Banner<'_>,
        mut reload: impl AsyncFnMut() -> Result<Exports<S>, String>,
        stopped: impl Future<Output = Failure>,
    ) -> Result<(), Failure> {
        let Self { args, verbosity, clock, mut interrupts, sockets, replies, store_fds } = self;
        let limited = interrupts.ends_within(end_limit(args));
        let link = args.link.clone().unwrap_or_default();
        emulate(&clock, &link, &mut banner).await?;
        let limits = limits(args, &link, store_fds, &mut banner);
        banner.listens(sockets.address);
        let open = banner::open_to_everybody(sockets.address, &exports);
        if !open.is_empty() {
            output::say(banner::warning(&open, sockets.address, args));
        }
        // Where it is taken, no client has been let in yet.
        let (measured, pages) = watch::bind(args)?.unzip();
        measured.into_iter().for_each(|address| banner.measures(address));
        let (log, writer) = Log::start(args.log_format, &clock).map_err(Failure::resources)?;
        let chatty = args.log_format == events::Format::Json || verbosity > Verbosity::Normal;
        let (address, endpoints) = (sockets.address, sockets.endpoints.clone());
        let memory = Memory { replies: Some(replies), metrics: watch::metrics(args, &log, &clock) };
        let links = Shape::new(link, clock.now());
        let running = served::start(sockets, exports, memory, options(args, links, limits), &clock);
        watch::begin(pages, &running, limits, &log, &clock);
        // The last that can fail, but for what takes it back.
        let registration = registration(args, &endpoints, &clock).await?;
        if chatty {
            log.started(&[address], &names(&running.engine.exports()), banner.versions());
        }
        let printed = match verbosity > Verbosity::Quiet {
            true => output::print(&banner.to_string()),
            false => Ok(()),
        };
        let reload = async || reloaded(&running, reload().await, &log, address);
        let (reason, failed) = match printed {
            Ok(()) => until_ended(&mut interrupts, reload, stopped).await,
            Err(failure) => ("the banner cannot be printed", Some(failure)),
        };
        if let Some(registration) = registration {
            registration.take_back(&clock).await;
        }
        let drained = interrupts.hurry(running.host.drain(args.grace)).await?;
        drop(limited);
        let Drained { calls_abandoned, connections_abandoned } = drained;
        if chatty || calls_abandoned > 0 {
            log.shutdown(reason, calls_abandoned, connections_abandoned);
        }
        writer.end(log);
        outcome(failed, calls_abandoned)
    }
}

/// Reloads at each SIGHUP until it is to end; gives why.
async fn until_ended(
    interrupts: &mut Interrupts,
    mut reload: impl AsyncFnMut(),
    stopped: impl Future<Output = Failure>,
) -> (&'static str, Option<Failure>) {
    const ASKED: (&str, Option<Failure>) = ("asked to end", None);
    let log_failed = |failure| ("the write log failed", Some(failure));
    let mut stopped = pin!(stopped);
    loop {
        let signal = tokio::select! {
            signal = interrupts.next_signal() => signal,
            failure = &mut stopped => return log_failed(failure),
        };
        if signal == Signal::End {
            return ASKED;
        }
        // It lasts for as long as a directory does not answer.
        tokio::select! {
            () = reload() => {}
            () = interrupts.next_end() => return ASKED,
            failure = &mut stopped => return log_failed(failure),
        }
    }
}

/// How long the end may take: rpcbind has its time before the calls in progress have theirs.
fn end_limit(args: &Serve) -> Nanos {
    args.grace + if args.register { register::LIMIT } else { Nanos::ZERO }
}

fn outcome(failed: Option<Failure>, calls_abandoned: u64) -> Result<(), Failure> {
    match (failed, calls_abandoned) {
        (Some(failure), _) => Err(failure),
        (None, 0) => Ok(()),
        (None, calls) => {
            let what = format!("{calls} calls were not answered within the grace period");
            Err(Failure::environment(what, "a longer one: --grace"))
        }
    }
}

/// The registration with rpcbind that was requested.
async fn registration(
    args: &Serve,
    endpoints: &[Endpoint],
    clock: &Clock,
) -> Result<Option<Registration>, Failure> {
    match args.register {
        true => Registration::make(clock, endpoints, args.versions).await.map(Some),
        false => Ok(None),
    }
}

fn options(args: &Serve, links: Shape, limits: Limits) -> Options {
    let Serve { commit_mode, threads, versions, .. } = *args;
    Options { commit_mode, threads, links, versions, limits }
}

/// Tries the link out, and writes how exact it is on the banner.
async fn emulate(clock: &Clock, link: &Profile, banner: &mut Banner<'_>) -> Result<(), Failure> {
    let emulator = emulated::calibrate(clock, link).await?;
    if emulator.as_ref().is_some_and(|emulator| !emulator.is_good()) {
        banner.warns("the link's delays are off by more than 5 us and 2 %".to_owned());
    }
    if emulator.is_none() && link.has_link() {
        banner.warns(format!("the link is not tried out ({})", emulated::UNCALIBRATED));
    }
    banner.emulates(emulator);
    Ok(())
}

/// Serves the exports of a file that was read again; where it cannot be, the old ones stay.
fn reloaded<S: Store>(
    running: &Running<S>,
    exports: Result<Exports<S>, String>,
    log: &Log,
    address: SocketAddr,
) {
    let exports = match exports {
        Ok(exports) => exports,
        Err(why) => return log.reload(Err(&why)),
    };
    running.engine.export(exports);
    running.host.deny(&served::service(&running.engine));
    let exports = running.engine.exports();
    log.reload(Ok(&names(&exports)));
    for name in banner::open_to_everybody(address, &exports) {
        log.open_to_everybody(name, address);
    }
}

pub(super) fn names<S>(exports: &Exports<S>) -> Vec<&str> {
    exports.iter().map(|exported| exported.export.name.as_str()).collect()
}

fn limits(args: &Serve, link: &Profile, store_fds: usize, banner: &mut Banner<'_>) -> Limits {
    // Beside its socket a timer of each direction.
    let each = if link.has_link() { 3 } else { 1 };
    let Connections { max, warning } = descriptors::connections(args.connections, each, store_fds);
    warning.into_iter().for_each(|warning| banner.warns(warning));
    Limits {
        connections_max: max,
        connections_per_host_max: max.min(args.connections_per_host as usize),
        bytes_in_flight_max: usize::try_from(args.in_flight).unwrap_or(usize::MAX),
        calls_per_connection_max: args.calls as usize,
        idle_max: args.idle,
        stall_max: args.stall,
    }
}

pub(super) fn bind(args: &Serve) -> Result<Sockets, Failure> {
    let mut sockets = Sockets::bind(args.listen, args.udp).map_err(cannot_listen)?;
    if args.portmap {
        sockets.add_portmapper().map_err(no_portmapper)?;
    }
    Ok(sockets)
}

fn no_portmapper(Refused { address, protocol, cause }: Refused) -> Failure {
    let advice = match cause.kind() {
        ErrorKind::PermissionDenied => "be root, whose port 111 is",
        _ => "end the rpcbind that runs, or register with it: --register",
    };
    let what = format!("cannot be the portmapper on {address} ({protocol}): {cause}");
    Failure::environment(what, advice)
}

fn cannot_listen(Refused { address, protocol, cause }: Refused) -> Failure {
    let is_udp = protocol == "UDP";
    let over = if is_udp { " over UDP" } else { "" };
    let advice = hints::listening(&cause, is_udp);
    Failure::environment(format!("cannot listen on {address}{over}: {cause}"), advice)
}
