//! `cargo xtask stress`: the server is killed again and again while clients work on it.
//!
//! ```text
//!   this thread:  start ─ 2..3 s ─ kill -9 ─ start ─ 2..3 s ─ kill -9 ─ ... (one in 5: SIGTERM)
//!   each client:  8 calls outstanding; connection gone: connect, send all again as they were
//! ```
//!
//! A client has folders of its own and a model of them. Nothing it asks may fail, whatever the
//! server went through: no handle is stale, no byte that was acknowledged is lost, no call that
//! must be executed once is executed twice (RENAME would say NOENT, MKDIR EXIST), and each
//! process has another write verifier, at which the clients write again what was not committed.
//! In the end everything is compared, through the server and on disk.

mod answer;
mod choose;
mod client;
mod connection;
mod model;
mod operation;
mod options;
mod server;
mod tally;
mod verifiers;
mod verify;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::host::about;
use crate::host::{build, scratch};
use client::{Client, Shared};
use options::Options;
use server::Server;
use tally::Tally;
use verifiers::Verifiers;

/// A process lives so long, and up to half as long again.
const LIFE_MIN: Duration = Duration::from_secs(2);
/// One in so many ends is a SIGTERM: the drain must not lose anything either.
const SIGTERM_ONE_IN: u64 = 5;

/// The user that a server without privileges is.
const NOBODY: u32 = 65_534;

#[derive(Debug, Default)]
struct Ends {
    killed: u64,
    terminated: u64,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = crate::options::parse(words)?;
    let nfskit = build::release(root, "stress", "nfskit", "nfskit")?;
    let scratch = scratch::make("stress")?;
    prepare(scratch.path(), options.unprivileged).map_err(about(scratch.path()))?;
    let folder = scratch.path().join("served");
    let mut server = Server::new(&nfskit, &folder, scratch.path(), &options)?;
    server.start()?;
    println!("stress: seed {}, {} s, {options:?}", options.seed, options.duration().as_secs());
    let shared = Shared {
        address: server.address,
        generation: AtomicU64::new(1),
        stop: AtomicBool::new(false),
        verifiers: Verifiers::default(),
    };
    let mut ends = Ends::default();
    let (tally, trouble) = thread::scope(|scope| {
        let clients: Vec<_> = (0..options.clients)
            .map(|number| {
                let (shared, folder, options) = (&shared, &folder, &options);
                scope.spawn(move || work(shared, number, options, folder))
            })
            .collect();
        let mut trouble = harass(&mut server, &shared, &options, &mut ends).err();
        shared.stop.store(true, Ordering::SeqCst);
        let mut tally = Tally::default();
        for client in clients {
            let (counted, outcome) = client
                .join()
                .unwrap_or_else(|_| (Tally::default(), Err("a client panicked".to_owned())));
            tally.add(counted);
            trouble = trouble.or_else(|| outcome.err());
        }
        (tally, trouble)
    });
    let stopped = server.stop().err();
    println!(
        "\nstress: {} killed, {} ended by SIGTERM, {} verifiers seen, slowest start {} ms",
        ends.killed,
        ends.terminated,
        shared.verifiers.count(),
        server.slowest_start.as_millis()
    );
    println!("{tally}");
    match (trouble.or(stopped), tally.violations()) {
        (Some(trouble), _) => Err(format!("stress: {trouble}; seed {}", options.seed)),
        (None, 0) => Ok(()),
        (None, count) => Err(format!("stress: {count} violations; seed {}", options.seed)),
    }
}

/// One client from its first call to the comparison at the end.
fn work(
    shared: &Shared,
    number: u64,
    options: &Options,
    folder: &Path,
) -> (Tally, Result<(), String>) {
    let seed = options.seed.wrapping_mul(1_000).wrapping_add(number);
    let mut client = match Client::start(shared, number, seed) {
        Ok(client) => client,
        Err(message) => return (Tally::default(), Err(message)),
    };
    let outcome = client.run(options.outstanding.into()).and_then(|()| client.verify(folder));
    (client.tally, outcome)
}

/// Ends the server and starts it again until the time is over; then it stays.
fn harass(
    server: &mut Server,
    shared: &Shared,
    options: &Options,
    ends: &mut Ends,
) -> Result<(), String> {
    let began = Instant::now();
    let mut rng = fastrand::Rng::with_seed(options.seed);
    loop {
        let life = LIFE_MIN + LIFE_MIN.mul_f64(rng.f64() / 2.0);
        let left = options.duration().saturating_sub(began.elapsed());
        thread::sleep(life.min(left));
        if life >= left {
            return Ok(());
        }
        if rng.u64(..SIGTERM_ONE_IN) == 0 {
            server.stop()?;
            ends.terminated += 1;
        } else {
            server.kill()?;
            ends.killed += 1;
        }
        // Before the successor is there: see `Connection::open`.
        shared.generation.fetch_add(1, Ordering::SeqCst);
        server.start()?;
    }
}

/// Makes the server's folders, which belong to who serves.
fn prepare(scratch: &Path, unprivileged: bool) -> std::io::Result<()> {
    for folder in ["served", "state"].map(|name| scratch.join(name)) {
        std::fs::create_dir(&folder)?;
        if unprivileged {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY))?;
        }
    }
    // So that nobody gets to them.
    std::fs::set_permissions(scratch, Permissions::from_mode(0o755))
}
