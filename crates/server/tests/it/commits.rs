//! What waits for a commit: nothing in the concurrent mode, everything in the stalling one.
//! The futures are polled by hand.

use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;
use server::store::mem::{MemOptions, MemStore};
use server::{CommitMode, EngineConfig};
use wire::nfs3::{self, FileHandle, Procedure as P, StableHow};
use wire::rpc::Answer;
use wire::xdr::Encode;
use wire::{Procedure, mount};

use crate::held::Held;
use crate::world::{PEER, World, results, write_args};

type HeldWorld = World<Held<MemStore>>;
type Pending<'w> = Pin<Box<dyn Future<Output = Answer> + Send + 'w>>;

fn world(commit_mode: CommitMode, threads: usize) -> (HeldWorld, FileHandle) {
    let config = EngineConfig { commit_mode, threads, ..EngineConfig::default() };
    let world = World::wrapped(MemOptions::default(), config, Held::new);
    let file = world.create(world.root(), b"f");
    (world, file)
}

fn start<'w>(world: &'w HeldWorld, procedure: Procedure, args: &impl Encode) -> Pending<'w> {
    Box::pin(world.engine.call(PEER, world.record(procedure, args)))
}

fn commit(world: &HeldWorld, file: FileHandle) -> Pending<'_> {
    let args = nfs3::commit::Args { file, offset: 0, count: 0 };
    start(world, Procedure::Nfs3(P::Commit), &args)
}

fn stable_write(world: &HeldWorld, file: FileHandle, stable: StableHow) -> Pending<'_> {
    let args = write_args(file, 0, b"data", stable);
    start(world, Procedure::Nfs3(P::Write), &args)
}

/// Calls that commit nothing, NULL among them.
fn others(world: &HeldWorld, file: FileHandle) -> Vec<Pending<'_>> {
    let getattr = nfs3::getattr::Args { object: file };
    vec![
        start(world, Procedure::Nfs3(P::Null), &()),
        start(world, Procedure::Nfs3(P::Getattr), &getattr),
        stable_write(world, file, StableHow::Unstable),
        start(world, Procedure::Mount(mount::Procedure::Null), &()),
    ]
}

fn is_ready(pending: &mut Pending<'_>) -> bool {
    matches!(pending.as_mut().now_or_never(), Some(Answer::Reply(_)))
}

#[test]
fn others_go_on_while_data_is_committed() {
    let (world, file) = world(CommitMode::Concurrent, 64);
    let mut committing = [
        commit(&world, file),
        stable_write(&world, file, StableHow::DataSync),
        stable_write(&world, file, StableHow::FileSync),
    ];
    for commit in &mut committing {
        assert!(!is_ready(commit));
        for other in &mut others(&world, file) {
            assert!(is_ready(other));
        }
    }
    for commit in &mut committing {
        world.engine.store().release();
        assert!(is_ready(commit));
    }
}

#[test]
fn others_wait_while_data_is_committed() {
    for kind in 0..3 {
        let (world, file) = world(CommitMode::Stall, 64);
        let mut committing = match kind {
            0 => commit(&world, file),
            1 => stable_write(&world, file, StableHow::DataSync),
            _ => stable_write(&world, file, StableHow::FileSync),
        };
        assert!(!is_ready(&mut committing));
        let mut others = others(&world, file);
        for other in &mut others {
            assert!(!is_ready(other));
        }
        world.engine.store().release();
        assert!(is_ready(&mut committing));
        for other in &mut others {
            assert!(is_ready(other));
        }
    }
}

#[test]
fn commits_stall_one_another() {
    let (world, file) = world(CommitMode::Stall, 64);
    let (mut first, mut second) = (commit(&world, file), commit(&world, file));
    assert!(!is_ready(&mut first) && !is_ready(&mut second));
    world.engine.store().release();
    assert!(!is_ready(&mut second), "it has not even begun");
    assert!(is_ready(&mut first));
    assert!(!is_ready(&mut second));
    world.engine.store().release();
    assert!(is_ready(&mut second));
}

#[test]
fn with_one_thread_a_commit_is_in_everyones_way() {
    let (world, file) = world(CommitMode::Concurrent, 1);
    let mut committing = commit(&world, file);
    assert!(!is_ready(&mut committing));
    let mut others = others(&world, file);
    assert!(others.iter_mut().all(|other| !is_ready(other)));
    world.engine.store().release();
    assert!(is_ready(&mut committing));
    for mut other in others {
        assert!(is_ready(&mut other));
        drop(other); // its thread is free for the next
    }
}

#[test]
fn a_commit_whose_connection_is_gone_leaves_the_way_clear() {
    let (world, file) = world(CommitMode::Stall, 1);
    let mut committing = commit(&world, file);
    assert!(!is_ready(&mut committing));
    drop(committing);
    for mut other in others(&world, file) {
        assert!(is_ready(&mut other));
    }
}

#[test]
fn a_write_goes_to_the_store_from_where_it_was_received() {
    let (world, file) = world(CommitMode::Concurrent, 1);
    let args = write_args(file, 0, b"some data", StableHow::Unstable);
    let record = world.record(Procedure::Nfs3(P::Write), &args);
    let received = record.as_ptr_range();
    let reply = world.send(record).unwrap();
    let written: nfs3::write::Reply = results(&reply);
    assert_eq!(written.unwrap().count, 9);
    let store = world.engine.store();
    let written = store.written.lock().unwrap();
    let place = written[0].as_ptr_range();
    assert!(received.start < place.start && place.end <= received.end);
}
