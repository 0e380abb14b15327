//! What operations of a directory store cost: nanoseconds each, best of five rounds.
//!
//! `cargo run --release -p nfskit-server --example dir_costs -- DIRECTORY`

#![expect(
    clippy::disallowed_methods,
    reason = "a stopwatch around whole runs needs no virtual time"
)]

use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use bytes::Bytes;
use server::store::dir::{DirOptions, DirStore, HandleChoice, MetadataSync};
use server::store::{ListFrom, Store};
use server::types::{Caller, CreateHow, SetAttr, Stability, Status};

static ME: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

fn main() -> Result<(), Box<dyn Error>> {
    let Some(place) = std::env::args().nth(1) else {
        return Err("usage: dir_costs DIRECTORY".into());
    };
    let place = tempfile::tempdir_in(place)?;
    for handles in [HandleChoice::Kernel, HandleChoice::Table] {
        let options = DirOptions { handles, ..DirOptions::default() };
        match measure(place.path(), &options) {
            Ok(()) => {}
            Err(error) => println!("{handles:?}: {error}"),
        }
    }
    Ok(())
}

fn measure(place: &Path, options: &DirOptions) -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir_in(place)?;
    let store = DirStore::open(place.path(), options)?;
    println!("{:?}, metadata synced", store.handles_in_use());
    operations(&store, 1).map_err(|status| format!("{status:?}"))?;
    let options = DirOptions { metadata_sync: MetadataSync::Never, ..options.clone() };
    let place = tempfile::tempdir_in(place.path())?;
    let store = DirStore::open(place.path(), &options)?;
    println!("{:?}, metadata not synced", store.handles_in_use());
    operations(&store, 100).map_err(|status| format!("{status:?}"))?;
    Ok(())
}

fn operations(store: &DirStore, changes: u64) -> Result<(), Status> {
    let root = store.root();
    let how = CreateHow::Guarded(SetAttr::default());
    let file = block_on(store.create(&ME, &root, b"file", how)).result?.handle;
    let data = Bytes::from(vec![7; 8192]);
    let write = |offset, stability| {
        block_on(store.write(&ME, &file, offset, data.clone(), stability)).result
    };
    write(0, Stability::Unstable)?;
    each("attr", 20_000, |_| block_on(store.attr(&ME, &file)).map(drop))?;
    each("lookup", 20_000, |_| block_on(store.lookup(&ME, &root, b"file")).result.map(drop))?;
    each("read 8 KiB, warm", 20_000, |_| {
        block_on(store.read(&ME, &file, 0, 8192)).result.map(drop)
    })?;
    each("write 8 KiB, overwrite", 20_000, |_| write(0, Stability::Unstable).map(drop))?;
    each("write 8 KiB, sequential", 2_000, |index| {
        write(index * 8192, Stability::Unstable).map(drop)
    })?;
    each("write 8 KiB, FILE_SYNC", 50, |index| write(index * 8192, Stability::FileSync).map(drop))?;
    // Distinct names, and no removals between: ext4 is slow to use the inodes of removed files.
    let name = |index| format!("entry-{index}");
    let mut made = 0;
    each("create", 10 * changes, |_| {
        made += 1;
        block_on(store.create(&ME, &root, name(made).as_bytes(), how)).result.map(drop)
    })?;
    let from = |with_nodes| ListFrom { cookie: 0, verifier: [0; 8], with_nodes, bytes: 1 << 16 };
    for (what, with_nodes) in [("list, per entry", false), ("list with nodes, per entry", true)] {
        let mut entries = 0;
        let started = Instant::now();
        block_on(store.list(&ME, &root, from(with_nodes), &mut |_| {
            entries += 1;
            true
        }))
        .result?;
        println!("{what:28} {:>10} ns", started.elapsed().as_nanos() / entries);
    }
    each("remove", 2 * changes, |_| {
        made -= 1;
        block_on(store.remove(&ME, &root, name(made + 1).as_bytes())).result
    })?;
    together(store, &file)
}

/// Eight callers who write one file synchronously, so that syncs are shared.
fn together(store: &DirStore, file: &server::types::Handle) -> Result<(), Status> {
    let started = Instant::now();
    thread::scope(|scope| {
        #[expect(clippy::needless_collect, reason = "all start before the first is waited for")]
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                scope.spawn(move || {
                    (0..25).try_for_each(|index| {
                        let data = Bytes::from(vec![1; 8192]);
                        let offset = (caller * 25 + index) * 8192;
                        let write = store.write(&ME, file, offset, data, Stability::FileSync);
                        block_on(write).result.map(drop)
                    })
                })
            })
            .collect();
        callers.into_iter().try_for_each(|caller| caller.join().unwrap_or(Err(Status::ServerFault)))
    })?;
    println!("{:28} {:>10} ns", "FILE_SYNC by 8 callers", started.elapsed().as_nanos() / 200);
    Ok(())
}

fn each(
    what: &str,
    count: u64,
    mut operation: impl FnMut(u64) -> Result<(), Status>,
) -> Result<(), Status> {
    let mut best = u128::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        (0..count).try_for_each(&mut operation)?;
        best = best.min(started.elapsed().as_nanos() / u128::from(count));
    }
    println!("{what:28} {best:>10} ns");
    Ok(())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
