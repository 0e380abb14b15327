//! `serve nfs://origin/export`: a proxy, whose store is another server's export.

use cache::{Cache, Limits};
use client::mount::Mounted;
use client::session::Session;
use client::url::Target;
use harness::exit::Failure;
use harness::mounts::disk;
use harness::mounts::settings::Settings;
use harness::output;
use harness::signals::Interrupts;
use harness::state::State;
use harness::verbosity::Verbosity;
use harness::{origin, unused, write_back};
use net::clock::Clock;
use proxy::{Handles, Remote};
use server::Exports;
use server::types::Caller;

use super::banner::{Banner, Origin};
use super::exported::{export, named};
use super::persistent::{needed_state, replies, state_or_warning};
use super::running::{Server, bind};
use super::stores::Kind;
use crate::args::Serve;

/// What is of an origin belongs to one, and what is of another kind of store to that.
pub(super) fn check(args: &Serve, kind: Kind) -> Result<(), Failure> {
    let in_memory = [(args.mem_size.is_some(), "--mem-size")];
    let of_directories = [(args.metadata_sync.is_some(), "--metadata-sync")];
    let of_origins = [
        (args.read_ahead.is_some(), "--read-ahead"),
        (!args.origin.is_empty(), "--origin"),
        (args.cache.is_some(), "--cache"),
        (args.write_back.is_some(), "--write-back"),
    ];
    if !matches!(kind, Kind::Memory | Kind::Emulated(_)) {
        unused::refuse(in_memory, "the stores mem: and sim:")?;
    }
    if !matches!(kind, Kind::Directories) {
        unused::refuse(of_directories, "directories")?;
    }
    if !matches!(kind, Kind::Origin) {
        unused::refuse(of_origins, "the store nfs://HOST/EXPORT")?;
    }
    Ok(())
}

/// Files of its own that a cache has open at most.
const CACHE_FDS: usize = 256;

/// Unless given.
const READ_AHEAD_BYTES: u64 = 64 << 20;

pub(super) async fn serve(args: &Serve, clock: Clock, verbosity: Verbosity) -> Result<(), Failure> {
    let store = args.store.as_deref().unwrap_or_default();
    let settings = origin::settings(store, &args.origin)?;
    let spec = named(args, store)?;
    if args.write_back.is_some() && spec.rule.read_only {
        let what = "--write-back of an export that is read-only: it would have nothing to write";
        return Err(Failure::usage(what, "an export that is read-write, or no --write-back"));
    }
    let mut interrupts = Interrupts::catch()?;
    // Before our own port is open: a proxy of itself finds that nobody listens.
    let reached = interrupts.or(origin::mounted(&clock, &settings)).await?;
    let sockets = bind(args)?;
    let mut banner = Banner::new(args, Kind::Origin);
    let state = match args.write_back {
        Some(_) => needed_state(args, &sockets)?,
        None => state_or_warning(args, &sockets, &mut banner),
    };
    let everyone = origin::everyone(&settings.target);
    let handles = handles(&settings.target, state.as_ref(), &mut banner)?;
    let origin = Origin {
        spoken: spoken(&settings, &reached),
        handles_last: handles.survive_restart(),
        everyone,
    };
    let caller = origin.everyone.clone();
    let cache = cached(args, &settings.target, &reached.session)?;
    let options = options(args, caller.clone(), cache);
    let remote = Remote::open(&clock, reached.session, handles, options);
    let remote = interrupts.or(async { remote.await.map_err(Failure::from) }).await?;
    let export = export(&clock, &spec).await?;
    let replies = replies(args, &clock, state.as_ref(), &mut banner);
    banner.serves(&[spec], None);
    banner.proxies(origin);
    let no_file = || format!("{store} has no file of exports");
    let store_fds = args.cache.as_ref().map_or(0, |_| CACHE_FDS);
    let server = |interrupts| {
        let clock = clock.clone();
        Server { args, verbosity, clock, interrupts, sockets, replies, store_fds }
    };
    let Some(log) = &args.write_back else {
        let (exports, reload) = (Exports::one(export, remote), async || Err(no_file()));
        return server(interrupts).run(exports, banner, reload, std::future::pending()).await;
    };
    let place = write_back::Place { log, bytes: args.write_back_size, state: state.as_ref() };
    // An origin that stalls keeps nobody from ending: the log keeps what it holds.
    let opened = write_back::open(&clock, remote, &settings, &place, caller);
    let opened = interrupts.or(opened).await?;
    banner.writes_back(opened.summary);
    let (exports, reload) = (Exports::one(export, opened.store.clone()), async || Err(no_file()));
    let ended = server(interrupts).run(exports, banner, reload, std::future::pending()).await;
    write_back::end(&opened.store, log, args.grace).await;
    ended
}

fn options(args: &Serve, everyone: Option<Caller>, cache: Option<Cache>) -> proxy::Options {
    let machine_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let Serve { read_ahead, offline_reads, .. } = *args;
    let read_ahead_bytes_max = read_ahead.unwrap_or(READ_AHEAD_BYTES);
    proxy::Options { machine_name, everyone, read_ahead_bytes_max, cache, offline_reads }
}

fn handles(
    target: &Target,
    state: Option<&State>,
    banner: &mut Banner<'_>,
) -> Result<Handles, Failure> {
    let origin = origin::name(target);
    match (Handles::open(&origin, state.map(State::path)), state) {
        (Ok(handles), _) => Ok(handles),
        (Err(why), Some(_)) => {
            banner.warns(format!("handles are forgotten at a restart: {why}"));
            Handles::open(&origin, None).map_err(origin::no_key)
        }
        (Err(why), None) => Err(origin::no_key(why)),
    }
}

/// The cache on a local disk that was requested.
fn cached(args: &Serve, target: &Target, session: &Session) -> Result<Option<Cache>, Failure> {
    let Some(dir) = &args.cache else { return Ok(None) };
    let limits = Limits { bytes_max: args.cache_size, ..Limits::default() };
    disk::open(dir, target, session, limits, |text| output::say(text))
}

/// What is spoken with the origin, from where, and how long it is waited for.
fn spoken(settings: &Settings, reached: &Mounted) -> String {
    let Target { version, protocol, .. } = &settings.target;
    let (version, protocol) = (version.number(), protocol.name().to_uppercase());
    let patience = match settings.soft {
        true => "soft: calls that are not answered in time fail",
        false => "hard: clients wait for it",
    };
    let (at, port) = (reached.ports.nfs, own_port());
    format!("NFS v{version} over {protocol} at {at}; {patience}\n              called {port}")
}

/// From where an origin is called.
fn own_port() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "from privileged ports",
        false => {
            "from ports that an origin with `secure` refuses, unless it runs here as this user"
        }
    }
}
