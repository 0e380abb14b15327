//! What a directory store does under load: sixteen callers at once on a runtime of two threads,
//! as behind a server. Operations a second and processor time of each, best of five rounds.
//!
//! `cargo run --release -p nfskit-server --example dir_load -- DIRECTORY [WHAT]`

#![expect(
    clippy::disallowed_methods,
    reason = "a stopwatch around whole runs, and tasks, need no virtual time"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use server::store::Store;
use server::store::dir::{DirOptions, DirStore, Identity, MetadataSync};
use server::store::{ListFrom, Node};
use server::types::{Access, Caller, CreateHow, Handle, SetAttr, Stability, Status};

const CALLERS: u64 = 16;
const KIB: u64 = 1024;
const LIST_ENTRIES: u64 = 10_000;

static ME: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

struct Bench {
    store: DirStore,
    root: Handle,
    /// One for each caller.
    files: Vec<Handle>,
    block: Bytes,
    large: Bytes,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let Some(place) = args.next() else {
        return Err("usage: dir_load DIRECTORY [WHAT]".into());
    };
    let wanted = args.next().unwrap_or_default();
    let place = tempfile::tempdir_in(place)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    let synced = runtime.block_on(Bench::new(place.path(), MetadataSync::Always))?;
    let synced = Arc::new(synced);
    println!("{:34} {:>12} {:>12}", "", "ops/s", "CPU ns/op");
    let run = |what: &str, operations: u64, each: fn(Arc<Bench>, u64, u64) -> Step| {
        if what.contains(&wanted) {
            runtime.block_on(measure(&synced, what, operations, each));
        }
    };
    run("attr x16", 200_000, |at, caller, _| {
        Box::pin(async move { at.store.attr(&ME, at.file(caller)).await.map(drop) })
    });
    run("lookup x16", 100_000, |at, _, _| {
        Box::pin(async move { at.store.lookup(&ME, &at.root, b"file-3").await.result.map(drop) })
    });
    run("access x16", 100_000, |at, caller, _| {
        let wanted = Access(0x3f);
        Box::pin(
            async move { at.store.access(&ME, at.file(caller), wanted).await.result.map(drop) },
        )
    });
    run("read 64 KiB x16", 20_000, |at, caller, _| {
        let count = 64 << 10;
        Box::pin(
            async move { at.store.read(&ME, at.file(caller), 0, count).await.result.map(drop) },
        )
    });
    run("write 64 KiB x16, unstable", 10_000, |at, caller, index| {
        Box::pin(async move {
            let (file, data) = (at.file(caller), at.large.clone());
            let offset = index % 64 * 64 * KIB;
            let write = at.store.write(&ME, file, offset, data, Stability::Unstable);
            write.await.result.map(drop)
        })
    });
    run("FILE_SYNC 4 KiB x16, one file", 20_000, |at, caller, index| {
        Box::pin(async move {
            let offset = (index % 64 * CALLERS + caller) * 4 * KIB;
            let (file, data) = (at.file(0), at.block.clone());
            let write = at.store.write(&ME, file, offset, data, Stability::FileSync);
            write.await.result.map(drop)
        })
    });
    run("FILE_SYNC 4 KiB x16, 16 files", 20_000, |at, caller, index| {
        Box::pin(async move {
            let (file, data) = (at.file(caller), at.block.clone());
            let offset = index % 1024 * 4 * KIB;
            let write = at.store.write(&ME, file, offset, data, Stability::FileSync);
            write.await.result.map(drop)
        })
    });
    run("CREATE+REMOVE x16", 10_240, |at, caller, index| {
        Box::pin(async move {
            let name = format!("new-{caller}");
            match index % 2 {
                0 => at.create(name.as_bytes()).await.map(drop),
                _ => at.store.remove(&ME, &at.root, name.as_bytes()).await.result,
            }
        })
    });
    if "list".contains(&wanted) {
        std::fs::create_dir(place.path().join("listed"))?;
        for index in 0..LIST_ENTRIES {
            std::fs::write(place.path().join(format!("listed/entry-{index}")), "")?;
        }
    }
    run("list with nodes, 10,000 entries", 16 * 2, |at, _, _| {
        Box::pin(async move {
            let listed = at.store.lookup(&ME, &at.root, b"listed").await.result?.handle;
            let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 1 << 16 };
            at.list(&listed, from).await
        })
    });
    Ok(())
}

type Step = std::pin::Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>;

impl Bench {
    async fn new(
        place: &std::path::Path,
        metadata_sync: MetadataSync,
    ) -> Result<Self, Box<dyn Error>> {
        let store = DirStore::open(
            place,
            &DirOptions { identity: Identity::Best, metadata_sync, ..DirOptions::default() },
        )?;
        let root = store.root();
        let block = Bytes::from(vec![7; 4 << 10]);
        let large = Bytes::from(vec![7; 64 << 10]);
        let mut this = Self { store, root, files: Vec::new(), block, large };
        let failed = |status| format!("{status:?}");
        for caller in 0..CALLERS {
            let name = format!("file-{caller}");
            let file = this.create(name.as_bytes()).await.map_err(failed)?.handle;
            for part in 0..64 {
                let (at, data) = (part * 64 * KIB, this.large.clone());
                let write = this.store.write(&ME, &file, at, data, Stability::Unstable);
                write.await.result.map_err(failed)?;
            }
            let _ = this.store.commit(&ME, &file, 0, 0).await.result.map_err(failed)?;
            this.files.push(file);
        }
        Ok(this)
    }

    fn file(&self, caller: u64) -> &Handle {
        &self.files[usize::try_from(caller).unwrap_or(0)]
    }

    async fn create(&self, name: &[u8]) -> Result<Node, Status> {
        let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        self.store.create(&ME, &self.root, name, how).await.result
    }

    /// All entries, in replies of some 300 as a client gets them.
    async fn list(&self, dir: &Handle, mut from: ListFrom) -> Result<(), Status> {
        loop {
            let mut left = 300;
            let mut last = from.cookie;
            let mut sink = |entry: server::store::Entry<'_>| {
                left -= 1;
                if left > 0 {
                    last = entry.cookie;
                }
                left > 0
            };
            let listed = self.store.list(&ME, dir, from, &mut sink).await.result?;
            if listed.eof {
                return Ok(());
            }
            from = ListFrom { cookie: last, verifier: listed.verifier, ..from };
        }
    }
}

async fn measure(
    at: &Arc<Bench>,
    what: &str,
    operations: u64,
    each: fn(Arc<Bench>, u64, u64) -> Step,
) {
    let mut best = (0.0, u128::MAX);
    for _ in 0..5 {
        let (started, cpu) = (Instant::now(), cpu_time());
        let mut tasks = Vec::new();
        let runtime = tokio::runtime::Handle::current();
        for caller in 0..CALLERS {
            let at = Arc::clone(at);
            tasks.push(runtime.spawn(async move {
                for index in 0..operations / CALLERS {
                    if let Err(status) = each(Arc::clone(&at), caller, index).await {
                        println!("{status:?}");
                        return;
                    }
                }
            }));
        }
        for task in tasks {
            let _ = task.await;
        }
        let (took, cpu) = (started.elapsed(), cpu_time().saturating_sub(cpu));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let rate = operations as f64 / took.as_secs_f64();
        let each = cpu.as_nanos() / u128::from(operations);
        best = (f64::max(best.0, rate), best.1.min(each));
    }
    let (mut rate, mut each) = best;
    if what.starts_with("list") {
        rate *= 10_000.0;
        each /= u128::from(LIST_ENTRIES);
    }
    println!("{what:34} {rate:>12.0} {each:>12}");
}

/// Of all threads of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
