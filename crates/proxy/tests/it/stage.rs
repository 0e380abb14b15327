//! What is on the stage: an origin, a log that outlives proxies, and one proxy after the other.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use net::clock::world::World;
use net::clock::{Clock, Group};
use parking_lot::Mutex;
use perf::units::Nanos;
use proxy::write_back::{Aliases, Event, InMemory, Mistake, OpenError, Options, Owner, WriteBack};
use server::store::{ListFrom, Store};
use server::types::{Caller, FileKind, Handle, Status};

use crate::origin::Origin;

pub(crate) type Proxy = WriteBack<Origin>;

pub(crate) fn root() -> Caller {
    Caller { uid: 0, gid: 0, gids: Vec::new() }
}

pub(crate) struct Stage {
    pub(crate) clock: Clock,
    pub(crate) origin: Origin,
    pub(crate) log: InMemory,
    aliases: Arc<Aliases>,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    /// What is lost can be recorded nowhere.
    pub(crate) records_nothing: Arc<AtomicBool>,
    mistake: Option<Mistake>,
    note_within: Nanos,
    gather_within: Nanos,
    rest_within: Nanos,
    again_above: Option<u64>,
}

/// A life of the proxy.
pub(crate) struct Life {
    pub(crate) proxy: Proxy,
    group: Group,
}

impl Life {
    pub(crate) fn kill(self) {
        self.group.kill();
    }
}

impl Stage {
    pub(crate) fn new(clock: &Clock, seed: u64, mistake: Option<Mistake>) -> Self {
        Self {
            clock: clock.clone(),
            origin: Origin::new(clock, seed, Nanos::from_millis(10)),
            log: InMemory::new(clock, 16 << 20, Nanos::from_micros(100)),
            aliases: Arc::new(Aliases::in_memory()),
            events: Arc::default(),
            records_nothing: Arc::default(),
            mistake,
            // Shorter than what follows takes, and much longer.
            note_within: [Nanos::from_millis(10), Nanos::ZERO, Nanos::from_millis(200)]
                [usize::try_from(seed % 3).expect("it is small")],
            gather_within: [Nanos::from_millis(10), Nanos::ZERO, Nanos::from_millis(100)]
                [usize::try_from(seed / 3 % 3).expect("it is small")],
            rest_within: [Nanos::from_secs(5), Nanos::ZERO, Nanos::from_millis(100)]
                [usize::try_from(seed / 9 % 3).expect("it is small")],
            again_above: (seed % 5 == 1).then_some(0),
        }
    }

    /// The proxy's host has lost power before what the origin calls our files was synced.
    pub(crate) fn lose_aliases(&mut self) {
        self.aliases = Arc::new(Aliases::in_memory());
    }

    pub(crate) async fn begin(&self) -> Life {
        self.begin_as(None).await.unwrap()
    }

    pub(crate) async fn begin_as(&self, owner: Option<Owner>) -> Result<Life, OpenError> {
        let (clock, group) = self.clock.group();
        let log = self.log.open(&clock);
        let (events, nothing) = (Arc::clone(&self.events), Arc::clone(&self.records_nothing));
        let hear = move |event: &Event| {
            let is_lost = matches!(event, Event::NotMade { .. } | Event::SetAside { .. });
            if is_lost && nothing.load(Ordering::Relaxed) {
                return Err("it is full".to_owned());
            }
            events.lock().push(event.clone());
            Ok(())
        };
        let options = Options {
            hear: Arc::new(hear),
            mistake: self.mistake,
            note_within: self.note_within,
            gather_within: self.gather_within,
            rest_within: self.rest_within,
            again_above: self.again_above,
            owner,
            ..Options::default()
        };
        let aliases = Arc::clone(&self.aliases);
        let proxy = WriteBack::open(&clock, self.origin.clone(), aliases, log, options);
        Ok(Life { proxy: proxy.await?, group })
    }
}

/// Runs `play` in a world.
pub(crate) fn play<F: Future<Output = ()> + Send + 'static>(
    seed: u64,
    mistake: Option<Mistake>,
    play: impl FnOnce(Stage) -> F + Send + 'static,
) {
    let world = World::new();
    let clock = world.clock();
    world.run(async move { play(Stage::new(&clock, seed, mistake)).await }).unwrap();
}

/// A file with everything in it that is compared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) content: Vec<u8>,
}

/// All below the root, by path.
pub(crate) async fn tree<S: Store>(store: &S) -> BTreeMap<String, Seen> {
    let mut seen = BTreeMap::new();
    let mut dirs = vec![(String::new(), store.root())];
    while let Some((path, dir)) = dirs.pop() {
        for name in names(store, &dir).await {
            let path = format!("{path}/{name}");
            let found = store.lookup(&root(), &dir, name.as_bytes()).await.result.unwrap();
            let attr = store.attr(&root(), &found.handle).await.unwrap();
            let content = match attr.kind {
                FileKind::Regular => {
                    let read = store.read(&root(), &found.handle, 0, 1 << 20).await;
                    read.result.unwrap().data.to_vec()
                }
                FileKind::Symlink => {
                    store.read_link(&root(), &found.handle).await.result.unwrap().to_vec()
                }
                _ => Vec::new(),
            };
            if attr.kind == FileKind::Directory {
                dirs.push((path.clone(), found.handle));
            }
            let (kind, mode, links) = (attr.kind, attr.mode, attr.links);
            seen.insert(path, Seen { kind, mode, links, content });
        }
    }
    seen
}

/// The names in a directory, a page of some at a time.
pub(crate) async fn names<S: Store>(store: &S, dir: &Handle) -> Vec<String> {
    let (mut names, mut from_cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
    loop {
        let (mut left, mut last) = (3, from_cookie);
        let mut take = |entry: server::store::Entry<'_>| {
            if left == 0 {
                return false;
            }
            left -= 1;
            names.push(String::from_utf8(entry.name.to_vec()).unwrap());
            last = entry.cookie;
            true
        };
        let from = ListFrom { cookie: from_cookie, verifier, with_nodes: true, bytes: 4096 };
        let listed = match store.list(&root(), dir, from, &mut take).await.result {
            Ok(listed) => listed,
            // As clients do.
            Err(Status::BadCookie) => {
                (names, from_cookie, verifier) = (Vec::new(), 0, [0; 8]);
                continue;
            }
            Err(status) => panic!("{status:?}"),
        };
        (verifier, from_cookie) = (listed.verifier, last);
        if listed.eof {
            break;
        }
    }
    names.retain(|name| name != "." && name != "..");
    names.sort_unstable();
    names
}
