//! `nfskit serve`: an NFS v3 server on a directory or in memory.

use std::net::SocketAddr;
use std::path::PathBuf;

use net::clock::Clock;
use net::shape::profile::PROFILES;

use crate::args::{self, CommitMode, Verbosity};
use crate::exit::Failure;
use crate::output;
use crate::served::{self, Interrupts, Options};

/// Runs the command: until Ctrl-C or SIGTERM.
pub(crate) fn run(args: &args::Serve, verbosity: Verbosity) -> Result<(), Failure> {
    let link = args.link.unwrap_or(PROFILES[0]);
    let options = Options {
        listen: args.listen,
        export: args.export.clone(),
        read_only: args.ro,
        commit_mode: args.commit_mode,
        threads: args.threads,
        links: link.links(),
    };
    let workers = served::worker_threads().min(args.threads as usize);
    let served = net::runtime::block_on_threads(workers, async {
        let mut interrupts = Interrupts::catch()?;
        let clock = Clock::real();
        let started = if args.store == "mem:" {
            let store = served::memory(&clock, args.mem_size);
            served::start(store, &options, &clock)
        } else {
            let store = served::open(&PathBuf::from(&args.store), args.commit_mode)?;
            served::start(store, &options, &clock)
        };
        let address = started.map_err(|cause| {
            Failure::environment(
                format!("cannot listen on {}: {cause}", args.listen),
                "another port (--listen 127.0.0.1:0 takes a free one); see what listens with ss \
                  -tlnp",
            )
        })?;
        if verbosity > Verbosity::Quiet {
            output::print(&banner(args, &options, address))?;
        }
        interrupts.next().await;
        Ok(())
    });
    served.map_err(|cause| Failure::environment(cause, "raise the limit of open files"))?
}

/// What is served, how safe it is, and the exact commands to mount it.
fn banner(args: &args::Serve, options: &Options, address: SocketAddr) -> String {
    let port = address.port();
    let host = if address.ip().is_unspecified() {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    } else if address.is_ipv6() {
        format!("[{}]", address.ip())
    } else {
        address.ip().to_string()
    };
    let export = &options.export;
    let durability = match (args.store.as_str(), options.commit_mode) {
        ("mem:", _) => "memory: nothing survives this process",
        (_, CommitMode::Concurrent) => "stable: FILE_SYNC and COMMIT are answered after fsync",
        (_, CommitMode::Stall) => {
            "stable: FILE_SYNC and COMMIT are answered after fsync, and nothing else meanwhile"
        }
    };
    let user = served::this_user();
    let access = if options.read_only { ", read-only" } else { "" };
    let reach = if address.ip().is_loopback() {
        "this host only"
    } else {
        "every host that reaches the port: there is no list of clients"
    };
    let linux = format!("vers=3,proto=tcp,port={port},mountport={port},mountproto=tcp,nolock");
    let macos = format!("vers=3,tcp,port={port},mountport={port},nolocks");
    format!(
        "nfskit {version} serves {store} as {export} (NFS v3 over TCP{access})
  durability  {durability}
  identity    every caller acts as uid {uid}, gid {gid}
  clients     {reach}
  url         nfs://{host}{export}?nfsport={port}&mountport={port}
  Linux       mount -t nfs -o {linux} {host}:{export} /mnt
  macOS       mount -t nfs -o {macos} {host}:{export} /mnt
",
        version = env!("CARGO_PKG_VERSION"),
        store = args.store,
        uid = user.uid,
        gid = user.gid,
    )
}
