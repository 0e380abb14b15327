//! `serve nfs://origin/export`: a proxy, whose store is another server's export.

use cache::{Cache, Limits};
use client::error::Error;
use client::mount::{self, Mounted};
use client::session::{Credential, Session};
use client::url::Target;
use harness::exit::Failure;
use harness::mounts::settings::{self, Settings};
use harness::output;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use net::call::{Event, Events};
use net::clock::Clock;
use net::shape::Shape;
use proxy::{Handles, Remote};
use server::types::Caller;
use server::{Export, Exports};

use super::banner::Banner;
use super::stores::Kind;
use super::{Server, bad_exports, bind, named, open_state, replies};
use crate::exports::resolve;
use crate::reached::{self, Role};
use crate::state::State;
use crate::{args, disk, write_back};

/// Options of the origin's mount that mean something to a proxy.
const WORDS: &[&str] = &[
    "hard",
    "soft",
    "timeo",
    "retrans",
    "nconnect",
    "rsize",
    "wsize",
    "port",
    "mountport",
    "proto",
    "tcp",
    "udp",
    "vers",
    "nfsvers",
];

/// What is of an origin belongs to one.
pub(super) fn check(args: &args::Serve, kind: Kind) -> Result<(), Failure> {
    let options = [
        (!args.origin.is_empty(), "--origin"),
        (args.cache.is_some(), "--cache"),
        (args.write_back.is_some(), "--write-back"),
    ];
    let Some((_, given)) = options.into_iter().find(|(is_given, _)| *is_given) else {
        return Ok(());
    };
    match matches!(kind, Kind::Origin) {
        true => Ok(()),
        false => Err(Failure::usage(
            format!("{given} is of the store nfs://HOST/EXPORT"),
            format!("such a store, or no {given}"),
        )),
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

pub(super) async fn serve(
    args: &args::Serve,
    clock: Clock,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let store = args.store.as_deref().unwrap_or_default();
    let settings = settings(args, store)?;
    let interrupts = Interrupts::catch()?;
    // Before our own port is open: a proxy of itself finds that nobody listens.
    let reached = reach(&clock, &settings).await?;
    let sockets = bind(args)?;
    let mut banner = Banner::new(args, Kind::Origin);
    let state = match open_state(args, &sockets) {
        Ok(state) => state,
        Err(why) => {
            banner.warns(format!("nothing is kept for the time after a restart: {why}"));
            None
        }
    };
    let everyone = everyone(&settings.target);
    let handles = handles(&settings.target, state.as_ref(), &mut banner)?;
    let origin = Origin {
        spoken: spoken(&settings, &reached),
        handles_last: handles.survive_restart(),
        everyone,
    };
    let options = proxy::Options {
        machine_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        everyone: origin.everyone.clone(),
        read_ahead_bytes_max: args.read_ahead,
        cache: cached(args, &settings.target, &reached.session)?,
        offline_reads: args.offline_reads,
    };
    let caller = options.everyone.clone();
    let remote = Remote::open(&clock, reached.session, handles, options).await?;
    let spec = named(args, store)?;
    let rule = resolve::rule(&clock, &spec.rule, None).await.map_err(bad_exports)?;
    let id = spec.id.unwrap_or_else(|| Export::id_of(&spec.name));
    let export = Export { name: spec.name.clone(), id, rules: vec![rule] };
    let replies = replies(args, &clock, state.as_ref(), &mut banner);
    banner.serves(&[spec], None);
    banner.proxies(origin);
    let no_file = || format!("{store} has no file of exports");
    let Some(log) = &args.write_back else {
        let server = Server { args, verbosity, clock, interrupts, sockets, replies };
        let (exports, reload) = (Exports::one(export, remote), async || Err(no_file()));
        return server.run(exports, banner, reload, std::future::pending()).await;
    };
    let place = write_back::Place { log, bytes: args.write_back_size, state: state.as_ref() };
    let opened = write_back::open(&clock, remote, &settings, &place, caller).await?;
    banner.writes_back(opened.said);
    let server = Server { args, verbosity, clock, interrupts, sockets, replies };
    let kept = opened.store;
    let (exports, reload) = (Exports::one(export, kept.clone()), async || Err(no_file()));
    let ended = server.run(exports, banner, reload, std::future::pending()).await;
    write_back::end(&kept, log, args.grace).await;
    ended
}

/// The origin, as the command line has it.
fn settings(args: &args::Serve, store: &str) -> Result<Settings, Failure> {
    settings_of(store, &args.origin)
}

/// The origin by its name, with options of nfs(5).
pub(crate) fn settings_of(store: &str, options: &str) -> Result<Settings, Failure> {
    let wrong = |why: String| Failure::usage(why, "nfskit serve --help");
    let mut settings = Settings::of(store).map_err(|why| {
        let (what, form) = why.split_once('\n').unwrap_or((why.as_str(), "nfskit serve --help"));
        Failure::usage(what, form.trim())
    })?;
    for word in settings::split(options) {
        let key = word.split('=').next().unwrap_or_default();
        if !WORDS.contains(&key) {
            let known = WORDS.join(", ");
            return Err(wrong(format!(
                "--origin {word:?} means nothing to a proxy; known: {known}"
            )));
        }
        settings.word(&word).map_err(|why| wrong(format!("--origin {why}")))?;
    }
    Ok(settings)
}

/// Mounts the origin's export.
pub(crate) async fn reach(clock: &Clock, settings: &Settings) -> Result<Mounted, Failure> {
    let target = &settings.target;
    let mut options =
        harness::target::options(target, mount::Options::REPLY_LIMIT, Shape::default());
    let events = events(settings);
    let mut mounted = reached::mounted(clock, settings, &mut options, events, Role::Origin).await?;
    let words = |error: &Error| format!("the origin's reply makes no sense: {error}");
    let complaints = reached::complaints(words, |text| output::say(text));
    mounted.session = mounted.session.complaining(complaints);
    Ok(mounted)
}

/// Who everyone is at the origin, if the URL says so.
pub(crate) fn everyone(target: &Target) -> Option<Caller> {
    let own = harness::target::options(target, mount::Options::REPLY_LIMIT, Shape::default());
    let Credential { uid, gid, .. } = own.credential;
    let is_named = target.uid.is_some() || target.gid.is_some();
    is_named.then(|| Caller { uid, gid, gids: Vec::new() })
}

fn handles(
    target: &Target,
    state: Option<&State>,
    banner: &mut Banner<'_>,
) -> Result<Handles, Failure> {
    let origin = origin_name(target);
    let kept = Handles::open(&origin, state.map(State::path));
    match (kept, state) {
        (Ok(handles), _) => Ok(handles),
        (Err(why), Some(_)) => {
            banner.warns(format!("handles are forgotten at a restart: {why}"));
            Handles::open(&origin, None).map_err(no_key)
        }
        (Err(why), None) => Err(no_key(why)),
    }
}

/// Which origin it is, in handles and logs.
pub(crate) fn origin_name(target: &Target) -> String {
    let port = target.nfs_port.map_or_else(String::new, |port| port.to_string());
    format!("{}:{port}:{}", target.host, target.path_text())
}

/// The cache on a local disk that was requested.
fn cached(
    args: &args::Serve,
    target: &Target,
    session: &Session,
) -> Result<Option<Cache>, Failure> {
    let Some(dir) = &args.cache else { return Ok(None) };
    let limits = Limits { bytes_max: args.cache_size, ..Limits::default() };
    disk::open(dir, target, session, limits, |text| output::say(text))
}

pub(crate) fn no_key(why: proxy::HandlesError) -> Failure {
    Failure::environment(why, "a system with getrandom(2)")
}

/// What is spoken with the origin, from where, and how long it is waited for.
fn spoken(settings: &Settings, reached: &Mounted) -> String {
    let target = &settings.target;
    let patience = match settings.soft {
        true => "soft: calls that it does not answer in time fail",
        false => "hard: its clients wait for it",
    };
    let port = match rustix::process::geteuid().is_root() {
        true => "from privileged ports",
        false => {
            "from ports that an origin with `secure` refuses, unless it runs here as this user"
        }
    };
    format!(
        "NFS v{} over {} at {}; {patience}\n              called {port}",
        target.version.number(),
        target.protocol.name().to_uppercase(),
        reached.ports.nfs,
    )
}

/// What is said of an origin that goes away and comes back.
fn events(settings: &Settings) -> Events {
    let host = settings.target.host.clone();
    let so = if settings.soft { "calls fail" } else { "still trying" };
    Events::new(move |event| match event {
        Event::NotResponding => output::say(format_args!("origin {host} not responding, {so}")),
        Event::Responding => output::say(format_args!("origin {host} OK")),
        Event::Disconnected { cause } => output::say(format_args!(
            "connection to the origin {host} lost ({cause}), connecting again"
        )),
        Event::Reconnected => output::say(format_args!("connected to the origin {host} again")),
    })
}
