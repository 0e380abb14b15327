//! `nfskit serve`: an NFS server on directories, in memory, or on another server's files.

mod banner;
mod directories;
mod exported;
mod identity;
mod logged;
mod persistent;
mod proxied;
mod running;
mod stores;
mod watch;

use std::sync::Arc;

use harness::exit::Failure;
use harness::signals::{self, Interrupts};
use harness::state::State;
use harness::verbosity::Verbosity;
use harness::{recovery, served};
use net::clock::Clock;
use perf::units::Nanos;
use server::store::Store;
use server::store::dir::write_log::WriteLog;
use server::store::dir::{DirOptions, DirStore};
use server::{Exports, Replies};
use world::machine::times;

use self::banner::Banner;
use self::directories::{Directories, acts_as};
use self::exported::{export, named};
use self::logged::{
    above_memory, check_write_log, emulated_log, named_in_vain, other_sizes, stopped,
};
use self::persistent::{REPLIES_MAX, outside, replies, state_or_warning};
use self::running::{Server, bind};
use self::stores::Kind;
use crate::args::{LogReplies, MetadataSync, Serve};

/// Descriptors that all stores together keep open at most.
const STORE_FDS_MAX: usize = 16 << 10;
/// The root of a store, and where the kernel lists its mount and its process; some more with a log.
const STORE_OWN_FDS: usize = 4;
/// Of a store in memory, unless given.
const MEMORY_BYTES: u64 = 4 << 30;

/// Runs the command: until Ctrl-C or SIGTERM.
pub(crate) fn run(args: &Serve, verbosity: Verbosity) -> Result<(), Failure> {
    let _held = signals::leave_to_their_thread();
    let calls_max = args.threads as usize;
    let workers = served::worker_threads().min(calls_max);
    let served = net::runtime::serve_on_threads(workers, calls_max, async {
        let kind = Kind::named(args.store.as_deref())?;
        check_write_log(args, kind)?;
        proxied::check(args, kind)?;
        let clock = Clock::real();
        let memory_bytes_max = args.mem_size.unwrap_or(MEMORY_BYTES);
        match kind {
            Kind::Directories => serve_directories(args, clock, verbosity).await,
            Kind::Origin => proxied::serve(args, clock, verbosity).await,
            Kind::Memory => {
                let store = served::memory(&clock, memory_bytes_max);
                serve_passing(args, kind, store, clock, verbosity).await
            }
            Kind::Emulated(disk) => {
                let log = emulated_log(args)?;
                let store = served::emulated(&clock, memory_bytes_max, disk, log, args.commit_mode);
                serve_passing(args, kind, store, clock, verbosity).await
            }
        }
    });
    served.map_err(Failure::resources)?
}

/// A store of which nothing is left when this ends.
async fn serve_passing<S: Store>(
    args: &Serve,
    kind: Kind,
    store: S,
    clock: Clock,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let interrupts = Interrupts::catch()?;
    let sockets = bind(args)?;
    let name = args.store.as_deref().unwrap_or_default();
    let spec = named(args, name)?;
    let exports = Exports::one(export(&clock, &spec).await?, store);
    let replies = Replies::in_memory(REPLIES_MAX, times(&clock));
    let server = Server { args, verbosity, clock, interrupts, sockets, replies, store_fds: 0 };
    let mut banner = Banner::new(args, kind);
    banner.serves(&[spec], None);
    let reload = async || Err(format!("{name} has no file of exports"));
    server.run(exports, banner, reload, std::future::pending()).await
}

async fn serve_directories(
    args: &Serve,
    clock: Clock,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    // Modes are the clients' business.
    rustix::process::umask(rustix::fs::Mode::empty());
    let mut interrupts = Interrupts::catch()?;
    // Nothing is in progress yet that an end would have to wait for.
    let starting = interrupts.ends_within(Nanos::ZERO);
    let sockets = bind(args)?;
    let mut banner = Banner::new(args, Kind::Directories);
    let state = state_or_warning(args, &sockets, &mut banner);
    let specs = interrupts.or_end(directories::named(args)).await?;
    let state = outside(state, &specs, &mut banner);
    let replies = replies(args, &clock, state.as_ref(), &mut banner);
    let options = dir_options(args, state.as_ref());
    let directories = Directories::new(args, &clock, state, options);
    let exports = interrupts.or_end(directories.open(specs.clone())).await?;
    let first = &exports.first().store;
    banner.serves(&specs, acts_as(first).as_ref());
    banner.looks_at_directories();
    banner.looks_at_handles(&exports);
    banner.recovers(first);
    let of_logs = other_sizes(args, first).into_iter().chain(above_memory(first));
    of_logs.for_each(|warning| banner.warns(warning));
    specs.iter().filter_map(named_in_vain).for_each(|warning| banner.warns(warning));
    // Only a log has to be ended: another store goes when no export has it any more.
    let logged = (!args.write_log.is_empty()).then(|| Arc::clone(first));
    let store_fds = store_fds(specs.len());
    let server =
        Server { args, verbosity, clock: clock.clone(), interrupts, sockets, replies, store_fds };
    let reload = async || directories.open_again().await;
    let stopped = stopped(args.log_failure, logged.as_deref());
    drop(starting);
    let served = server.run(exports, banner, reload, stopped).await;
    let ended = match &logged {
        Some(store) if may_end_log(&served, store) => store.end_log().await,
        _ => Ok(()),
    };
    let ended = ended.map_err(|why| {
        Failure::environment(why, "start it again with the same --write-log, which tries again")
    });
    served.and(ended)
}

/// Also a start that failed gives the directory back without its log; not who is to end at once,
/// and not a log that cannot be written.
fn may_end_log(served: &Result<(), Failure>, store: &DirStore) -> bool {
    match served {
        Ok(()) => true,
        Err(failure) => !failure.is_interrupted() && !store.has_log_failed(),
    }
}

/// How directories are served.
fn dir_options(args: &Serve, state: Option<&State>) -> DirOptions {
    let metadata_sync = args.metadata_sync.unwrap_or(MetadataSync::Always).into();
    let state_dir = state.map(|state| state.path().to_owned());
    let write_log = (!args.write_log.is_empty()).then(|| write_log(args));
    let usual = served::dir_options(args.commit_mode);
    DirOptions { metadata_sync, state_dir, write_log, ..usual }
}

fn write_log(args: &Serve) -> WriteLog {
    let on_failure = args.log_failure.into();
    let keeps_replies = args.log_replies == LogReplies::Always;
    let progress = Some(recovery::progress as fn(_));
    let new = WriteLog::new(args.write_log.clone(), args.new_log_bytes());
    WriteLog { on_failure, keeps_replies, progress, ..new }
}

/// Files that all stores together have open.
fn all_open_files_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let half = limit.map_or(usize::MAX, |fds| usize::try_from(fds / 2).unwrap_or(usize::MAX));
    half.min(STORE_FDS_MAX)
}

/// These, and what each store has open for itself.
fn store_fds(stores: usize) -> usize {
    all_open_files_max() + stores * STORE_OWN_FDS
}
