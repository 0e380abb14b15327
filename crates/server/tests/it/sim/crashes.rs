//! After a crash at any moment everything that was acknowledged as stable is there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;
use server::store::sim::{LogSpec, SimOptions, SimStore, WriteBack};
use server::store::{Node, Store};
use server::types::{Stability, Status};

use super::{ROOT, Timeline, Work, commit, make, options, write};

const BLOCK_BYTES: u64 = 4096;

/// What one client knows of one of its files.
#[derive(Clone, Debug, Default)]
struct Known {
    node: Option<Node>,
    /// Whether the name is sure to be there, or sure to be gone; neither while a call is under way.
    sure: Option<bool>,
    /// For each block: what it may hold. The first is what it surely held last.
    blocks: BTreeMap<u64, Vec<u8>>,
}

type Book = Rc<RefCell<BTreeMap<Vec<u8>, Known>>>;

struct Client {
    store: Arc<SimStore>,
    book: Book,
    random: u64,
    id: u8,
}

impl Client {
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (self.random >> 33) % end
    }

    fn known<T>(&self, name: &[u8], look: impl FnOnce(&mut Known) -> T) -> T {
        look(self.book.borrow_mut().entry(name.to_vec()).or_default())
    }

    async fn run(mut self, steps: u64) {
        for _ in 0..steps {
            let name = vec![b'a' + self.id, b'0' + u8::try_from(self.below(3)).unwrap()];
            match self.below(10) {
                0 | 1 => self.create(&name).await,
                2 => self.remove(&name).await,
                3 | 4 => self.commit(&name).await,
                5 => self.write(&name, Stability::FileSync).await,
                6 => self.write(&name, Stability::DataSync).await,
                _ => self.write(&name, Stability::Unstable).await,
            }
        }
    }

    async fn create(&self, name: &[u8]) {
        let was = self.known(name, |known| known.node);
        self.known(name, |known| known.sure = known.sure.filter(|_| was.is_some()));
        let node = make(&self.store, name).await.unwrap();
        self.known(name, |known| {
            known.node = Some(node);
            known.sure = Some(true);
        });
    }

    async fn remove(&self, name: &[u8]) {
        if self.known(name, |known| known.node.take()).is_none() {
            return;
        }
        self.known(name, |known| known.sure = None);
        self.store.remove(&ROOT, &self.store.root(), name).await.result.unwrap();
        self.known(name, |known| {
            known.sure = Some(false);
            known.blocks.clear();
        });
    }

    async fn write(&mut self, name: &[u8], stability: Stability) {
        let Some(node) = self.known(name, |known| known.node) else {
            return;
        };
        let (block, value) = (self.below(4), u8::try_from(1 + self.below(255)).unwrap());
        self.known(name, |known| {
            known.blocks.entry(block).or_insert_with(|| vec![0]).push(value);
        });
        let data = vec![value; usize::try_from(BLOCK_BYTES).unwrap()];
        write(&self.store, &node, block * BLOCK_BYTES, &data, stability).await.unwrap();
        if stability != Stability::Unstable {
            self.stable(name, Some(block));
        }
    }

    async fn commit(&self, name: &[u8]) {
        let Some(node) = self.known(name, |known| known.node) else {
            return;
        };
        commit(&self.store, &node).await.unwrap();
        self.stable(name, None);
    }

    /// What was written last is stable.
    fn stable(&self, name: &[u8], only: Option<u64>) {
        self.known(name, |known| {
            let covered = |block: &u64| only.is_none_or(|only| only == *block);
            for values in known.blocks.iter_mut().filter(|(block, _)| covered(block)) {
                let last = *values.1.last().expect("it holds at least what was first");
                *values.1 = vec![last];
            }
        });
    }
}

/// Checks what a crash has left against what was promised.
fn check(timeline: &Timeline, before: &SimStore, after: &Arc<SimStore>, book: &Book) {
    assert_ne!(before.verifier(), after.verifier());
    assert_eq!((before.stats().divergences, after.audit()), (0, Ok(())));
    for (name, known) in book.borrow().clone() {
        let own = Arc::clone(after);
        let lookup_name = name.clone();
        let found = timeline
            .finish(async move { own.lookup(&ROOT, &own.root(), &lookup_name).await.result });
        match known.sure {
            Some(true) => assert!(found.is_ok(), "{name:?} was there"),
            Some(false) => assert_eq!(found.map(drop), Err(Status::NoEntry), "{name:?} was gone"),
            None => continue,
        }
        let Some(node) = known.node.filter(|_| known.sure == Some(true)) else {
            continue;
        };
        assert_eq!(found.unwrap().handle, node.handle, "the handle is still good");
        for (block, values) in known.blocks {
            let own = Arc::clone(after);
            let read = timeline.finish(async move {
                own.read(&ROOT, &node.handle, block * BLOCK_BYTES, 4096).await.result.unwrap().data
            });
            let mut found: Vec<u8> = read.to_vec();
            found.resize(4096, 0);
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "a block is not torn");
            assert!(values.contains(&found[0]), "{name:?} {block}: {} of {values:?}", found[0]);
        }
    }
}

fn crash_at(seed: u64, polls: u64, options: SimOptions) {
    let timeline = Timeline::default();
    let store = timeline.store(options);
    let book = Book::default();
    let clients = (0..4).map(|id| {
        let random = seed.wrapping_add(u64::from(id) << 40);
        let client = Client { store: Arc::clone(&store), book: Rc::clone(&book), random, id };
        Box::pin(client.run(30)) as Work
    });
    timeline.run(clients.collect(), polls);
    let mut after = Arc::new(store.crash(seed));
    check(&timeline, &store, &after, &book);
    // A crash right after a crash changes nothing, and then life goes on.
    after = Arc::new(after.crash(seed + 1));
    check(&timeline, &store, &after, &book);
    let own = Arc::clone(&after);
    timeline.finish(async move {
        let file = make(&own, b"new").await.unwrap();
        write(&own, &file, 0, b"data", Stability::FileSync).await.unwrap();
    });
    assert_eq!(after.stats().divergences, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn everything_acknowledged_as_stable_is_there_after_a_crash_at_any_poll(
        seed in any::<u64>(),
        polls in 0..900_u64,
        disk in prop::sample::select(vec!["hdd", "ssd-sata", "nvme", "none", "rate=1MB/s"]),
        early in any::<bool>(),
        dirty_blocks_max in 1..20_u64,
        log in prop::sample::select(vec![None, Some("nvram"), Some("nvme"), Some("hdd")]),
    ) {
        let write_back = match early {
            true => WriteBack::Early { bytes: 8192 },
            false => WriteBack::OnDemand,
        };
        let dirty_bytes_max = dirty_blocks_max * BLOCK_BYTES;
        let write_log = log.map(|disk| LogSpec::new(disk.parse().unwrap()));
        let options = SimOptions { write_back, dirty_bytes_max, write_log, ..options(disk) };
        crash_at(seed, polls, options);
    }
}

#[test]
fn unstable_data_are_lost_in_a_crash_and_not_before() {
    let timeline = Timeline::default();
    let store = timeline.store(options("hdd"));
    timeline.finish(async move {
        let file = make(&store, b"a").await.unwrap();
        write(&store, &file, 0, b"data", Stability::Unstable).await.unwrap();
        let read = store.read(&ROOT, &file.handle, 0, 10).await.result.unwrap();
        assert_eq!(read.data, &b"data"[..]);
        let after = store.crash(1);
        assert_eq!(after.attr(&ROOT, &file.handle).await.unwrap().size, 0);
        // Attributes of what survives are what they were.
        let (old, new) =
            (store.attr(&ROOT, &store.root()).await, after.attr(&ROOT, &after.root()).await);
        assert_eq!(old, new);
    });
}
