//! Close-to-open: what one client has written and closed, another sees that opens afterwards.
//!
//! Each seed is a world with a server and two clients behind links of their own. One client writes
//! sessions: it opens, cuts, replaces or makes anew a file, fills it with the number of the
//! session, and closes it. The other opens and reads at moments of its own, and keeps what it has
//! read as long as the version of the file is the same, as a kernel keeps its pages. A reader that
//! opens after session N was closed must see N, or what came after.

use std::sync::Arc;

use client::cache::attributes::Version;
use client::files::open::Mode;
use client::files::{Files, Options};
use client::session::Credential;
use load::study::Subject;
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use server::CommitMode;
use testkit::Site;
use wire::nfs3::{FileHandle, NfsStat3, NfsTime, Procedure, Sattr3, SetTime};

use cache::Mistake;
use cache::medium::Memory;
use testkit::outage::Outage;
use testkit::seeds::seeds;

use crate::proxy::killed::Killed;
use crate::proxy::{Origin, Proxy, cached, proxied};

/// In the gate: see [`seeds`].
const SEEDS: u64 = 2_000;
const SESSIONS: u8 = 5;
const NAME: &[u8] = b"shared";

/// A session of the writer's.
#[derive(Clone, Copy, Debug)]
struct Session {
    number: u8,
    bytes: usize,
    opened: Instant,
    /// None while it is open.
    closed: Option<Instant>,
}

type Sessions = Arc<Mutex<Vec<Session>>>;

#[test]
fn whoever_opens_sees_what_was_closed_before_even_seeds() {
    seeds_by(seeds(SEEDS).step_by(2), Way::Direct);
}

#[test]
fn whoever_opens_sees_what_was_closed_before_odd_seeds() {
    seeds_by(seeds(SEEDS).skip(1).step_by(2), Way::Direct);
}

/// By which way the two clients reach the files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// Both ask the server.
    Direct,
    /// Two proxies stand before the server; each client asks one of them, or the server.
    Proxies,
    /// The same, and each proxy keeps what it has read.
    Caches,
    /// The writer asks the server; the reader a proxy that keeps what it has read and is killed now
    /// and then, with this mistake.
    Killed(Option<Mistake>),
}

/// Gives how many reads were served by what proxies had cached when they were killed.
pub(crate) fn seeds_by(mut seeds: impl Iterator<Item = u64>, way: Way) -> u64 {
    let chosen: Option<u64> = std::env::var("NFSKIT_SEED").ok().map(|seed| seed.parse().unwrap());
    let mut hits_after_kills = 0;
    while let Some(seed) = chosen.or_else(|| seeds.next()) {
        let caught = std::panic::catch_unwind(|| run(seed, Options::default(), way));
        match caught {
            Ok(hits) => hits_after_kills += hits,
            Err(_) => panic!("seed {seed}: set NFSKIT_SEED={seed} to see it again"),
        }
        if chosen.is_some() {
            break;
        }
    }
    hits_after_kills
}

#[test]
fn without_close_to_open_it_does_not_hold() {
    let options = Options { close_to_open: false, ..Options::default() };
    let holds = |seed| std::panic::catch_unwind(|| run(seed, options, Way::Direct)).is_ok();
    assert!(!(0..50).all(holds), "the test sees nothing");
}

fn run(seed: u64, options: Options, way: Way) -> u64 {
    let world = World::new();
    let clock = world.clock();
    let mut random = fastrand::Rng::with_seed(seed);
    let latency = Nanos::from_micros(random.u64(5..2_000));
    let links = LinkPair::symmetric(Link { latency, ..Link::default() });
    let mut fork = fastrand::Rng::with_seed(!seed);
    let site = Arc::new(Site::in_memory(&clock, links, CommitMode::Concurrent));
    let done = world.run(async move {
        let sessions = Sessions::default();
        let mut proxies = Vec::new();
        let mut killed = None;
        match way {
            Way::Direct => {}
            Way::Proxies => {
                proxies = vec![proxied(&clock, &site).await, proxied(&clock, &site).await];
            }
            Way::Caches => {
                for _ in 0..2 {
                    let (memory, outage) = (Memory::default(), Outage::default());
                    proxies.push(cached(&clock, &site, &memory, &outage).await);
                }
            }
            Way::Killed(mistake) => killed = Some(Killed::new(&clock, &site, mistake).await),
        }
        let writer = session(&site, &proxies, &mut fork).await;
        let reader = match &killed {
            Some(killed) => killed.session().await,
            None => session(&site, &proxies, &mut fork).await,
        };
        let writer = Files::new(&clock, writer, options);
        let reader = Files::new(&clock, reader, options);
        let write = write(&clock, &writer, random.fork(), &sessions);
        let read = read((&clock, &reader), random.fork(), &sessions, killed.is_some());
        let work = async {
            futures_util::future::join(write, read).await;
        };
        match killed {
            Some(killed) => {
                killed.under(work, random).await;
                killed.hits_after_kills()
            }
            None => {
                work.await;
                0
            }
        }
    });
    done.unwrap()
}

/// A session with the server, or with one of the proxies.
async fn session(
    site: &Origin,
    proxies: &[Proxy],
    random: &mut fastrand::Rng,
) -> client::session::Session {
    match proxies.get(random.usize(..=proxies.len())) {
        Some(proxy) => proxy.connect().await.unwrap(),
        None => site.connect().await.unwrap(),
    }
}

fn me() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}

async fn pause(clock: &Clock, random: &mut fastrand::Rng) {
    // Mostly about as long as a call takes, now and then as long as attributes are good.
    let micros = if random.u8(..16) == 0 { random.u64(..40_000_000) } else { random.u64(..6_000) };
    clock.sleep(Nanos::from_micros(micros)).await;
}

async fn write(clock: &Clock, files: &Files, mut random: fastrand::Rng, sessions: &Sessions) {
    let (me, root) = (me(), files.root());
    for number in 1..=SESSIONS {
        pause(clock, &mut random).await;
        let bytes = random.usize(1..30_000);
        let opened = clock.now();
        sessions.lock().push(Session { number, bytes, opened, closed: None });
        let open = match random.u8(..4) {
            // In place, and cut to its length afterwards.
            0 => {
                let made = files.create(&me, root, NAME, Sattr3::default(), false).await.unwrap();
                let open = files.open_made(&me, made.handle);
                fill(&open, number, bytes, &mut random).await;
                let cut = Sattr3 { size: Some(bytes as u64), ..Sattr3::default() };
                files.setattr(&me, made.handle, cut).await.unwrap();
                open
            }
            // Made anew.
            1 => {
                match files.remove(&me, root, NAME).await {
                    Err(error) if error.status() == Some(NfsStat3::NoEnt) => {}
                    removed => removed.unwrap(),
                }
                let made = files.create(&me, root, NAME, Sattr3::default(), true).await.unwrap();
                let open = files.open_made(&me, made.handle);
                fill(&open, number, bytes, &mut random).await;
                open
            }
            // Written beside it, and renamed.
            2 => {
                let made = files.create(&me, root, b"new", Sattr3::default(), true).await.unwrap();
                let open = files.open_made(&me, made.handle);
                fill(&open, number, bytes, &mut random).await;
                open.flush().await.unwrap();
                files.rename(&me, (root, b"new"), (root, NAME)).await.unwrap();
                open
            }
            // Cut when it is opened.
            _ => {
                let empty = Sattr3 { size: Some(0), ..Sattr3::default() };
                let made = files.create(&me, root, NAME, empty, false).await.unwrap();
                let open = files.open_made(&me, made.handle);
                fill(&open, number, bytes, &mut random).await;
                open
            }
        };
        open.flush().await.unwrap();
        open.close().await;
        sessions.lock().last_mut().unwrap().closed = Some(clock.now());
    }
}

/// Writes all bytes of a session, in pieces, in any order.
async fn fill(
    open: &client::files::open::Open,
    number: u8,
    bytes: usize,
    random: &mut fastrand::Rng,
) {
    let piece = random.usize(1..=bytes.min(8_000));
    let mut offsets: Vec<usize> = (0..bytes).step_by(piece.max(bytes / 16)).collect();
    let piece = piece.max(bytes / 16);
    if random.bool() {
        random.shuffle(&mut offsets);
    }
    for at in offsets {
        let data = vec![number; piece.min(bytes - at)];
        open.write(at as u64, &data).await.unwrap();
    }
}

/// `forgets`: it often reads again what it has read of the same version.
async fn read(
    (clock, files): (&Clock, &Files),
    mut random: fastrand::Rng,
    sessions: &Sessions,
    forgets: bool,
) {
    const READ: Mode = Mode { read: true, write: false };
    let (me, root) = (me(), files.root());
    let mut pages = None;
    loop {
        pause(clock, &mut random).await;
        if forgets && random.bool() {
            pages = None;
        }
        let is_last = sessions.lock().iter().filter(|one| one.closed.is_some()).count()
            == usize::from(SESSIONS);
        let began = clock.now();
        // The name may be gone for a moment, or the handle: then it is looked up again.
        let mut seen = None;
        for _ in 0..3 {
            match look(files, &me, root, READ, &mut pages).await {
                Ok(data) => {
                    seen = Some(data);
                    break;
                }
                Err(NfsStat3::Stale) => {}
                Err(_) => break,
            }
        }
        check(&sessions.lock(), began, clock.now(), seen.as_deref());
        if is_last {
            break;
        }
    }
}

/// What was read, and of which version.
type Pages = Option<(FileHandle, Version, Vec<u8>)>;

async fn look(
    files: &Files,
    me: &Credential,
    root: FileHandle,
    mode: Mode,
    pages: &mut Pages,
) -> Result<Vec<u8>, NfsStat3> {
    let status = |error: client::error::Error| error.status().unwrap();
    let found = files.lookup(me, root, NAME).await.map_err(status)?;
    let open = files.open(me, found.handle, mode).await.map_err(status)?;
    let version = files.version(&found.handle).unwrap();
    if let Some((file, of, data)) = pages
        && (*file, *of) == (found.handle, version)
    {
        open.close().await;
        return Ok(data.clone());
    }
    let data = open.read(0, 1 << 20).await.map_err(status);
    open.close().await;
    let data = data?.to_vec();
    *pages = Some((found.handle, version, data.clone()));
    Ok(data)
}

/// What was seen between `began` and `ended` is what close-to-open promises.
fn check(sessions: &[Session], began: Instant, ended: Instant, seen: Option<&[u8]>) {
    let is_closed = |one: &&Session| one.closed.is_some_and(|closed| closed <= began);
    let last = sessions.iter().rfind(is_closed);
    let others = sessions
        .iter()
        .any(|one| one.opened <= ended && one.closed.is_none_or(|closed| closed > began));
    let Some(last) = last else { return };
    if others {
        // Somebody is writing: nothing older than the last that was closed.
        let oldest = seen.unwrap_or_default().iter().min();
        assert!(oldest.is_none_or(|&oldest| oldest == 0 || oldest >= last.number), "{last:?}");
        return;
    }
    let Some(seen) = seen else {
        // That a name is missing may be remembered as long as a directory's attributes are good.
        let known_for = began.since(last.opened);
        assert!(known_for <= Options::default().times.dir_max, "the name was not found: {last:?}");
        return;
    };
    let wrong = seen.iter().position(|&byte| byte != last.number);
    assert!(
        wrong.is_none() && seen.len() == last.bytes,
        "{last:?}: {} bytes seen, {wrong:?} is {:?}",
        seen.len(),
        wrong.map(|at| seen[at])
    );
}

/// Replies come late, or by another way than the next: who opens in between finds a state that no
/// reply has shown yet.
#[test]
fn a_change_of_ours_that_is_not_answered_is_nobody_elses() {
    let world = World::new();
    let clock = world.clock();
    let site = Site::in_memory(&clock, LinkPair::default(), CommitMode::Concurrent);
    let done = world.run(async move {
        let late = |procedure| match procedure {
            Procedure::Setattr => Nanos::from_millis(50),
            _ => Nanos::ZERO,
        };
        let session = site.connect().await.unwrap().over(site.rpc_late(late));
        let files = Files::new(&clock, session, Options::default());
        let me = me();
        let made = files.create(&me, files.root(), NAME, Sattr3::default(), false).await.unwrap();
        let before = files.version(&made.handle);
        let mtime = SetTime::ClientTime(NfsTime { seconds: 7, nseconds: 0 });
        let set = files.setattr(&me, made.handle, Sattr3 { mtime, ..Sattr3::default() });
        let opened = async {
            clock.sleep(Nanos::from_millis(10)).await;
            let mode = Mode { read: true, write: false };
            files.open(&me, made.handle, mode).await.unwrap().close().await;
        };
        let (set, ()) = futures_util::future::join(set, opened).await;
        set.unwrap();
        assert_eq!(files.version(&made.handle), before);
    });
    done.unwrap();
}
