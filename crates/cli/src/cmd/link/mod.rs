//! `nfskit link`: a relay between any NFS clients and a server, over an emulated link.

mod args;
mod banner;
mod calibrate;
mod control;
mod target;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use harness::descriptors::{self, Connections};
use harness::emulated;
use harness::events::Log;
use harness::exit::Failure;
use harness::hints;
use harness::output;
use harness::relay::stats::Statistics;
use harness::relay::{metrics, record};
use harness::signals::{Interrupts, Signal};
use harness::sockets::{Refused, Sockets};
use harness::verbosity::Verbosity;
use inspect::relayed::{Capture, Captured};
use net::clock::Clock;
use net::relay::{self, Callers, Event, Limits, Relay, Tap, Unfit};
use net::shape::Shape;
use net::shape::calibration::Calibration;
use net::shape::conditions::Conditions;
use net::shape::profile::{Profile, ProfileError};
use net::transport::udp::Udp;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

pub(crate) use self::args::Args;
use self::banner::{Banner, Leg};
use self::control::{Knobs, Words};
use self::target::{Place, Target};

/// How long the server may take to take a connection.
const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);

/// Descriptors of a connection: both of its sides, and a timer of each direction. As many sources
/// of datagrams have a socket each.
const FDS_EACH: usize = 5;

/// How a link is written.
const FORM: &str = "a link is none, a name such as lan-1g or wan-80ms, LATENCY/RATE or FILE.toml, \
                    with changes behind it: lan-1g,loss=1%,o=50us";

/// Runs the command: until Ctrl-C or SIGTERM.
pub(crate) fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    if let Some(path) = &args.set {
        return control::say(path, &args.profile);
    }
    if args.calibrate {
        return calibrate::print();
    }
    let words = match args.profile.as_slice() {
        [] => Words::default(),
        words => Words::parse(&words.join(",")),
    };
    let profile = possible(&words, args.held).map_err(|why| Failure::usage(why, FORM))?;
    let relayed = match args.threads {
        1 => net::runtime::block_on(relay(args, words, profile, verbosity)),
        threads => {
            net::runtime::block_on_threads(threads as usize, relay(args, words, profile, verbosity))
        }
    };
    relayed.map_err(Failure::resources)?
}

/// The link that was requested, if a relay can be it.
fn possible(words: &Words, held_bytes_max: u64) -> Result<Profile, String> {
    let text = words.text();
    let profile: Profile = text.parse().map_err(|error: ProfileError| error.to_string())?;
    if !profile.overhead.is_none() {
        return Err(format!(
            "the link {text:?} has an overhead o: that is processor time, which a relay cannot \
             spend for others. It is spent in an endpoint: nfskit serve --link, nfskit bench \
             --link"
        ));
    }
    fits(&profile, held_bytes_max)?;
    Ok(profile)
}

/// Refuses a link whose rate one connection could not have, because it may not hold what is under
/// way then.
fn fits(profile: &Profile, held_bytes_max: u64) -> Result<(), String> {
    const MIB: f64 = (1 << 20) as f64;
    let both = [&profile.there, &profile.back].map(Conditions::under_way_bytes);
    let most = both.into_iter().flatten().fold(0.0, f64::max);
    // Who holds much leaves as much to others.
    let own = held_bytes_max as f64 / 2.0;
    if most <= own {
        return Ok(());
    }
    Err(format!(
        "the link {:?} has {:.1} MiB under way in one direction (L x rate), and a connection may \
         hold {:.1} MiB, half of --held: --held {:.0}M or more, a shorter L or a lower rate",
        profile.name,
        most / MIB,
        own / MIB,
        (most * 2.0 / MIB).ceil()
    ))
}

/// From now on the link is like this.
fn apply(relay: &Relay, profile: Profile, now: Instant) {
    relay.shape().replace(profile, now);
}

fn no_server() -> Failure {
    Failure::usage("there is no server to relay to", "--to HOST or --to HOST:PORT")
}

async fn relay(
    args: &Args,
    words: Words,
    profile: Profile,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let target = args.to.as_ref().ok_or_else(no_server)?;
    output::check([&args.json, &args.pcap], [])?;
    let (legs, sockets) = legs(args, target, &clock).await?;
    let calibration = match args.uncalibrated {
        true => None,
        false => emulated::calibrate(&clock, &profile).await?,
    };
    let (log, writer) = Log::start(args.log_format, &clock).map_err(Failure::resources)?;
    // Taken away at the end, so that the log's writer can end.
    let log = Arc::new(Mutex::new(Some(log)));
    let captured = args.pcap.as_ref().map(|path| capture(path, &log, &clock)).transpose()?;
    let (capture, tap) = captured.unzip();
    let shape = Shape::new(profile.clone(), clock.now());
    let Connections { max, warning } = descriptors::connections(args.connections, FDS_EACH, 0);
    let relay = Relay::new(&clock, shape, limits(args, max), events(&log, verbosity), tap);
    begin(&relay, args, &legs, sockets, &clock);
    let knobs = Knobs::new(&relay, &clock, words, args.held);
    let mut banner = Banner {
        legs: &legs,
        profile: profile.to_string(),
        udp: args.udp,
        export: target.export(),
        version: target.version(),
        metrics: args.metrics.map(|listen| metrics::serve(listen, &relay, &clock)).transpose()?,
        notes: notes(args, calibration, &knobs, &clock)?,
    };
    banner.notes.extend(warning.map(|warning| ("warning", warning)));
    announce(&banner, args, verbosity)?;
    let mut statistics = Statistics::begin(&relay, &clock, args.stats, verbosity);
    while interrupts.next_signal().await == Signal::Hangup {
        let reloaded = knobs.reload();
        if let Some(log) = &*log.lock() {
            log.link_changed(reloaded.as_deref().map_err(String::as_str));
        }
    }
    let drained = interrupts.hurry(drained(&relay, args)).await;
    statistics.end();
    drained?;
    let captured = capture.map(Capture::end);
    if let Some(log) = log.lock().take() {
        writer.end(log);
    }
    let counts = relay.counts();
    if verbosity > Verbosity::Quiet && !prints_record(args) {
        let frames = captured.as_ref().map_or_else(String::new, captured_frames);
        output::print(&(statistics.summary(&counts) + &frames))?;
    }
    let server = legs.first().map(|leg| leg.server.to_string());
    output::write_to(&args.json, || record::json(&counts, server, &profile, &statistics))?;
    match (&args.pcap, captured) {
        (Some(path), Some(captured)) if captured.is_cut => Err(cut(path)),
        _ => Ok(()),
    }
}

fn captured_frames(Captured { frames, missed, .. }: &Captured) -> String {
    format!("  {frames} frames captured; {missed} messages missed\n")
}

async fn drained(relay: &Relay, args: &Args) -> net::serve::Drained {
    relay.drain(args.grace).await;
    net::serve::Drained::default()
}

/// The banner, on standard error where standard output is for the record.
fn announce(banner: &Banner<'_>, args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    match (verbosity, prints_record(args)) {
        (Verbosity::Quiet, _) => Ok(()),
        (_, false) => output::print(&banner.to_string()),
        (_, true) => {
            output::complain(banner);
            Ok(())
        }
    }
}

/// Whether standard output is for the record alone.
fn prints_record(args: &Args) -> bool {
    args.json.as_deref() == Some("-".as_ref())
}

/// Accepts clients, with a warning of every leg that the whole network reaches.
fn begin(relay: &Relay, args: &Args, legs: &[Leg], sockets: Vec<Sockets>, clock: &Clock) {
    let callers = if args.insecure { Callers::Everybody } else { Callers::Vouched };
    for (leg, sockets) in legs.iter().zip(sockets) {
        listen(relay, sockets, leg.server, callers, clock);
    }
    let own = relay.clone();
    clock.spawn(async move { own.give_memory_back().await });
    legs.iter().filter_map(open_to_everybody).for_each(output::say);
}

/// A warning that everybody on the network reaches the server through this.
fn open_to_everybody(leg: &Leg) -> Option<String> {
    let Leg { service, listen, server } = leg;
    (!listen.ip().is_loopback()).then(|| {
        format!(
            "warning: {server} ({service}) is open to every host that reaches {listen}: a relay \
             has no list of clients, and the server sees this host alone\n   \
             try: --listen 127.0.0.1:{}, or a packet filter",
            listen.port()
        )
    })
}

/// A capture that is shorter than the run.
fn cut(path: &Path) -> Failure {
    Failure::environment(
        format!("the capture {} ended before the relay did", path.display()),
        "free space there, or another place, with --pcap; the log has the reason",
    )
}

fn limits(args: &Args, connections_max: usize) -> Limits {
    let limits = Limits::default();
    Limits {
        unproven_times_max: if args.insecure { usize::MAX } else { limits.unproven_times_max },
        connections_max,
        connections_per_host_max: connections_max.min(args.connections_per_host as usize),
        sessions_max: connections_max,
        bytes_max: usize::try_from(args.held).unwrap_or(usize::MAX),
        connect_max: CONNECT_LIMIT,
        idle_max: args.idle,
        stall_max: args.stall,
        ..limits
    }
}

/// What happens goes to the log, as long as there is one.
fn events(log: &Arc<Mutex<Option<Log>>>, verbosity: Verbosity) -> relay::Events {
    let (log, verbose) = (Arc::clone(log), verbosity > Verbosity::Normal);
    Arc::new(move |event: Event| {
        if let Some(log) = &*log.lock() {
            log.relay(&event, verbose);
        }
    })
}

/// What else is printed when it begins; from now on it can be controlled.
fn notes(
    args: &Args,
    calibration: Option<Calibration>,
    knobs: &Knobs,
    clock: &Clock,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut notes = Vec::new();
    if let Some(calibration) = calibration {
        notes.push(("emulator", calibration.to_string()));
    }
    if let Some(path) = &args.control {
        knobs.listen(path, clock)?;
        notes.push(("control", path.display().to_string()));
    }
    Ok(notes)
}

/// Begins to capture; when the file cannot be written any more, that is reported.
fn capture(
    path: &Path,
    log: &Arc<Mutex<Option<Log>>>,
    clock: &Clock,
) -> Result<(Capture, Tap), Failure> {
    let (log, name) = (Arc::clone(log), path.display().to_string());
    let failed = move |cause: &io::Error| {
        if let Some(log) = &*log.lock() {
            log.capture_ended(&name, cause);
        }
    };
    Capture::start(path, clock, failed).map_err(|cause| output::cannot_write(path, &cause))
}

/// Finds the server and binds what clients come to.
async fn legs(
    args: &Args,
    target: &Target,
    clock: &Clock,
) -> Result<(Vec<Leg>, Vec<Sockets>), Failure> {
    let first = Sockets::bind(args.listen, args.udp).map_err(cannot_listen)?;
    let places = target.places(clock).await?;
    let mut sockets = vec![first];
    if places.len() > 1 {
        let free = SocketAddr::new(args.listen.ip(), 0);
        let listen = args.listen_mount.unwrap_or(free);
        sockets.push(Sockets::bind(listen, args.udp).map_err(cannot_listen)?);
    }
    let listeners: Vec<_> = sockets.iter().flat_map(|sockets| &sockets.listeners).collect();
    let mut legs = Vec::new();
    for (Place { service, addresses }, own) in places.iter().zip(&sockets) {
        let server = relay::reach(clock, addresses, CONNECT_LIMIT, &listeners).await;
        legs.push(Leg { service, listen: own.address, server: server.map_err(unfit)? });
    }
    Ok((legs, sockets))
}

/// A server that cannot be relayed to.
fn unfit(unfit: Unfit) -> Failure {
    match unfit {
        Unfit::Connect(cause) => target::unreachable(&cause),
        Unfit::Itself { .. } => Failure::environment(
            format!("cannot relay to the relay: {unfit}"),
            "the server's own address and port in --to",
        ),
    }
}

fn listen(relay: &Relay, sockets: Sockets, server: SocketAddr, callers: Callers, clock: &Clock) {
    for listener in sockets.listeners {
        let relay = relay.clone();
        clock.spawn(async move { relay.listen(listener, server, callers).await });
    }
    for socket in sockets.datagrams {
        let relay = relay.clone();
        clock.spawn(async move {
            let dial = |client| match callers.vouch(client, None) {
                true => Udp::connect(server),
                false => Udp::connect_unprivileged(server),
            };
            relay.listen_datagrams(socket, server, dial).await;
        });
    }
}

fn cannot_listen(Refused { address, protocol, cause }: Refused) -> Failure {
    let advice = hints::listening(&cause, protocol == "UDP");
    Failure::environment(format!("cannot listen on {address} ({protocol}): {cause}"), advice)
}
