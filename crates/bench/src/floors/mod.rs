//! `nfskit bench stream`, `rtt`, `spray` and `storage`: what network and storage do without NFS.
//!
//! The work blocks, on a thread of its own, so that an interrupt is heard while it does.

pub mod args;
mod far;
mod rtt;
mod rtt_text;
mod spray;
mod storage;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use client::mount;
use client::url::{Protocol, Target, Version};
use harness::exit::Failure;
use harness::output::Bars;
use harness::signals::Interrupts;
use harness::target;
use harness::verbosity::Verbosity;
use load::error::Error as LoadError;
use load::floor::{Outcome, Progress};
use net::clock::Clock;
use net::error::ConnectError;
use net::floor::error::FloorError;
use net::floor::rpc::Service;
use net::shape::Shape;
use net::transport::tcp;
use perf::record::Run as Record;
use perf::units::Nanos;
use tokio::sync::oneshot;

use crate::floors::args::Far;

/// How long work in progress may take to stop.
const STOP_LIMIT: Nanos = Nanos::from_secs(3);
/// How long a name may take to be found.
const RESOLVE_LIMIT: Nanos = Nanos::from_secs(5);

/// Does `work` on a thread of its own, behind a bar called `name`. Interrupted, it stops, and gives
/// what it has; whatever it fails of then, the interrupt was before.
async fn on_a_thread<M: Send + 'static>(
    name: &'static str,
    verbosity: Verbosity,
    interrupts: &mut Interrupts,
    work: impl FnOnce(&AtomicBool, Progress<'_>) -> Outcome<M> + Send + 'static,
) -> Result<Outcome<M>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (answer, mut answered) = oneshot::channel();
    let work = move || {
        let mut bars = Bars::new(verbosity);
        let done = work(&stopped, &mut |share| bars.show(name, share));
        bars.clear();
        // Nobody waits any more when the program is interrupted.
        answer.send(done).ok();
    };
    let thread = std::thread::Builder::new().name("nfskit-bench".to_owned());
    thread.spawn(work).map_err(Failure::resources)?;
    tokio::select! {
        biased;
        () = interrupts.next() => {}
        done = &mut answered => return done.map_err(|_| Failure::interrupted()),
    }
    stop.store(true, Ordering::Relaxed);
    match Clock::real().within(STOP_LIMIT, answered).await {
        Ok(done) => {
            let Outcome { measured, failed } = done.map_err(|_| Failure::interrupted())?;
            Ok(Outcome { measured, failed: failed.map(|_| FloorError::Stopped.into()) })
        }
        Err(_) => Err(Failure::interrupted().and("what was in progress does not stop")),
    }
}

/// The first address of a host, one of IPv4 if there is any.
async fn resolve(clock: &Clock, far: &Far) -> Result<SocketAddr, Failure> {
    let unresolved = |cause| failure(FloorError::Connect(cause).into());
    let found = tcp::resolve(clock, &far.host, far.port, RESOLVE_LIMIT).await;
    let found = found.map_err(unresolved)?;
    let ipv4 = found.iter().find(|address| address.is_ipv4());
    ipv4.or_else(|| found.first()).copied().ok_or_else(|| {
        let cause = "it has no address".to_owned();
        unresolved(ConnectError::Resolve { host: far.host.clone(), cause })
    })
}

/// Where the NULL of a target's NFS is.
async fn null_service(clock: &Clock, target: &Target) -> Result<Service, Failure> {
    let options = target::options(target, Nanos::from_secs(20), Shape::default());
    let address = mount::find_nfs(clock, target, &options).await?;
    Ok(Service {
        address,
        program: wire::nfs3::PROGRAM,
        version: match target.version {
            Version::Two => wire::nfs2::VERSION,
            Version::Three => wire::nfs3::VERSION,
        },
        is_udp: target.protocol == Protocol::Udp,
    })
}

/// What went wrong, with advice that fits.
fn failure(error: LoadError) -> Failure {
    match error {
        LoadError::Floor(FloorError::Stopped) => Failure::interrupted(),
        error => Failure::from(error),
    }
}

/// The line of a report that measured no network.
const LOOPBACK: &str =
    "loopback    both ends are on this host: the kernel's part, and no network's";

fn warn_of_loopback(record: &mut Record, is_loopback: bool) {
    let what = "both ends are on this host: the kernel's part, and no network's";
    if is_loopback {
        record.warn("loopback", what, "a far end on the other host");
    }
}
