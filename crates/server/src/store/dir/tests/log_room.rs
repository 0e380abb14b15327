//! WRITEs and replies for a write log that has no room: files take long to be synced.

use std::os::fd::BorrowedFd;

use parking_lot::{Condvar, Mutex};
use rustix::fs::FileType;
use wire::nfs3::create::{Args, CreateHow};
use wire::nfs3::{DirOp, FileHandle, Procedure as P, Sattr3};

use super::cut_replies::{engine, record, send};
use super::logged::{Logged, SIZE as LOG_BYTES, logged};
use super::*;

/// Closed, it lets nothing but directories through.
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn close(&self) {
        *self.is_open.lock() = false;
    }

    fn pass(&self) {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
    }
}

/// A store whose files are synced as far as the gate is open.
fn gated() -> Option<(Logged, Arc<Gate>)> {
    let gate = Arc::new(Gate { is_open: Mutex::new(true), opened: Condvar::new() });
    let at_gate = Arc::clone(&gate);
    let call = Box::new(move |fd: BorrowedFd<'_>, _| {
        if FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode).is_file() {
            at_gate.pass();
        }
        Ok(())
    });
    let mut at = logged()?;
    // The log is free before it is opened again.
    at.at.store = elsewhere(&at.at.place);
    at.at.store = DirStore::open_with(&at.at.path(""), &at.at.options, call).unwrap();
    Some((at, gate))
}

/// A store that stands for nothing.
fn elsewhere(place: &tempfile::TempDir) -> DirStore {
    let options = DirOptions { handles: HandleChoice::Table, ..DirOptions::default() };
    DirStore::open(place.path().join("outside"), &options).unwrap()
}

fn reading(store: &DirStore, name: &str) -> f64 {
    let readings = store.tree.log.as_ref().unwrap().readings();
    readings.iter().find(|reading| reading.name == name).map_or(0.0, |reading| reading.value)
}

/// As far as data go, and not so far that they are to be synced in their file.
fn fill(at: &Logged, file: &Handle) {
    static PIECE: [u8; 200 << 10] = [9; 200 << 10];
    let (used, size) = ("nfskit_log_used_bytes", "nfskit_log_size_bytes");
    for index in 0.. {
        if reading(&at.at.store, used) * 16.0 > reading(&at.at.store, size) * 8.0 {
            return;
        }
        at.write(file, index * PIECE.len() as u64, &PIECE, Stability::FileSync).unwrap();
    }
}

fn create(xid: u32, dir: FileHandle) -> Bytes {
    let name = format!("name-{xid}");
    let how = CreateHow::Guarded(Sattr3 { mode: Some(0o600), ..Sattr3::default() });
    record(xid, P::Create, &Args { where_: DirOp { dir, name: name.as_bytes() }, how })
}

#[test]
fn writes_that_find_a_log_full_wait_for_room_and_not_for_a_sync_of_their_own() {
    static PIECE: [u8; 200 << 10] = [9; 200 << 10];
    let Some((at, gate)) = gated() else { return };
    let file = at.file("file", b"old");
    let held_back = || reading(&at.at.store, "nfskit_log_held_back_total");
    let refused = || reading(&at.at.store, "nfskit_log_refused_total");
    let write = |index: u64| {
        at.write(&file, index * PIECE.len() as u64, &PIECE, Stability::FileSync).unwrap();
    };
    gate.close();
    thread::scope(|scope| {
        let writer = scope.spawn(|| (0..2 * LOG_BYTES / PIECE.len() as u64).for_each(write));
        while held_back() + refused() == 0.0 {
            thread::yield_now();
        }
        gate.open();
        writer.join().unwrap();
    });
    assert!(held_back() > 0.0);
    assert_eq!(refused(), 0.0);
}

#[test]
fn a_reply_that_finds_no_room_waits_for_some() {
    let Some((at, gate)) = gated() else { return };
    let file = at.file("file", b"old");
    gate.close();
    fill(&at, &file);
    let Fixture { store, place, options } = at.at;
    let store = Arc::new(store);
    let server = engine(&store);
    let calls: Vec<Bytes> = (0..700).map(|xid| create(xid, server.root())).collect();
    let waited = || reading(&store, "nfskit_log_replies_waited_total") > 0.0;
    let replies: Vec<_> = thread::scope(|scope| {
        let all = || calls.iter().map(|call| block_on(send(&server, call))).collect();
        let replies = scope.spawn(all);
        while !waited() && !replies.is_finished() {
            thread::yield_now();
        }
        gate.open();
        replies.join().unwrap()
    });
    assert!(waited());
    drop((server, store));
    let at = Logged { at: Fixture { store: elsewhere(&place), options, place }, ..at };
    let (at, _) = at.again(2, |_| {});
    let server = engine(&Arc::new(at.at.store));
    for (call, reply) in calls.iter().zip(&replies) {
        assert_eq!(block_on(send(&server, call)), *reply);
    }
}
