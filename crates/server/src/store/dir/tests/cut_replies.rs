//! Replies after power cuts of a real file system: the last calls before a cut have been answered
//! and no frame says so any more, so that it is looked for on the disk what they have done.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use perf::units::Nanos;
use rustix::time::{ClockId, clock_gettime};
use wire::Procedure;
use wire::nfs3::{self, DirOp, FileHandle, Procedure as P, Sattr3};
use wire::rpc::{AuthSys, CallHeader, Gids, OpaqueAuth};
use wire::xdr::Encode;

use super::cuts::{Has, Machine};
use super::*;
use crate::export::{Export, Rule, Squash};
use crate::{Engine, EngineConfig, Exported, Exports, Peer, Replies, Times, Transport};

const CUTS: u32 = 4;

/// Calls at the same time, each with a name of its own.
const TOGETHER: usize = 8;

/// A call as it came, and what it was answered.
type Answered = (Bytes, Vec<u8>);

/// A server process that has the log alone to remember by.
pub(super) fn engine(store: &Arc<DirStore>) -> Engine<DirStore> {
    let day = || {
        let now = clock_gettime(ClockId::Realtime);
        Time { secs: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap() }
    };
    let passing = move || Instant::EPOCH + Nanos::from_secs(day().secs.unsigned_abs());
    let times = Times { of_day: Arc::new(day), passing: Arc::new(passing) };
    let rule = Rule { squash: Squash::None, ..Rule::default() };
    let export = Export { id: 1, ..Export::ruled(rule) };
    let exports = Exports::new(vec![Exported { export, store: Arc::clone(store) }]).unwrap();
    Engine::new(exports, EngineConfig::default()).remembering(Replies::in_memory(1000, times))
}

pub(super) async fn send(engine: &Engine<DirStore>, call: &Bytes) -> Vec<u8> {
    let peer = Peer::at("10.0.0.7:700".parse().unwrap(), Transport::Stream);
    let reply = engine.call(peer, call.clone()).await.reply().unwrap();
    [&reply.head[..], &reply.payload].concat()
}

pub(super) fn record(xid: u32, procedure: P, args: &dyn Encode) -> Bytes {
    let gids = Gids::new(&[]).unwrap();
    let body = AuthSys { stamp: 1, machine_name: b"client", uid: 0, gid: 0, gids }.to_bytes();
    let header = CallHeader::new(xid, Procedure::Nfs3(procedure), OpaqueAuth::sys(&body));
    Bytes::from([header.to_bytes(), args.to_bytes()].concat())
}

/// Changes a name that is there or not: what comes next for each of the few.
fn call(xid: u32, dir: FileHandle, number: usize, turn: usize) -> Bytes {
    let (name, moved) = (format!("name-{number}"), format!("moved-{number}"));
    let at = |name| DirOp { dir, name };
    match turn % 4 {
        0 => {
            let attributes = Sattr3 { mode: Some(0o700), ..Sattr3::default() };
            let args = nfs3::mkdir::Args { where_: at(name.as_bytes()), attributes };
            record(xid, P::Mkdir, &args)
        }
        1 => {
            let (from, to) = (at(name.as_bytes()), at(moved.as_bytes()));
            record(xid, P::Rename, &nfs3::rename::Args { from, to })
        }
        2 => record(xid, P::Rmdir, &nfs3::rmdir::Args { object: at(moved.as_bytes()) }),
        _ => {
            let attributes = Sattr3 { mode: Some(0o711), ..Sattr3::default() };
            record(
                xid,
                P::Setattr,
                &nfs3::setattr::Args { object: dir, new_attributes: attributes, guard: None },
            )
        }
    }
}

#[test]
fn what_was_answered_before_a_power_cut_is_answered_again_after_it() {
    if !kernel_handles_work() || !is_privileged() {
        not_tested("power cuts: this process may not mount");
        return;
    }
    let Some(mut machine) = Machine::new(Has::FastLog) else { return };
    let (mut all, mut xid) = (Vec::<Answered>::new(), 1);
    let mut turns = [0; TOGETHER];
    for cut in 0..CUTS {
        let engine = engine(&machine.at);
        let names = machine.names();
        for (call, answered) in &all {
            assert_eq!(block_on(send(&engine, call)), *answered, "after {cut} cuts");
        }
        assert_eq!(machine.names(), names, "nothing was done again");
        for _ in 0..3 + cut {
            let calls = turns.iter_mut().enumerate().map(|(number, turn)| {
                xid += 1;
                *turn += 1;
                call(xid, engine.root(), number, *turn - 1)
            });
            let calls: Vec<_> = calls.collect();
            let replies = block_on(join_all(calls.iter().map(|call| send(&engine, call))));
            assert!(replies.iter().all(|reply| reply[24..28] == [0; 4]), "NFS3_OK");
            all.extend(calls.into_iter().zip(replies));
        }
        drop(engine);
        machine = machine.cut();
    }
}

/// A file of that content, all of it stable, on a machine whose disk is the faster one.
fn with_file(name: &str, content: &'static [u8]) -> Option<(Machine, Handle)> {
    if !kernel_handles_work() || !is_privileged() {
        not_tested("power cuts: this process may not mount");
        return None;
    }
    let machine = Machine::new(Has::SlowLog)?;
    let how = CreateHow::Guarded(mode(0o644));
    let made = block_on(machine.at.create(&ME, &machine.at.root(), name.as_bytes(), how));
    let file = made.result.unwrap().handle;
    machine.write(&file, 0, content, Stability::FileSync);
    Some((machine, file))
}

/// The power is cut after the reply has come to the log, and before anything has come to the disk;
/// then the call comes again.
fn cut_between(machine: Machine, call: impl Fn(FileHandle) -> Bytes) -> Machine {
    let before = engine(&machine.at);
    let call = call(before.root());
    machine.cut_off("disk.image");
    machine.fails.store(true, Ordering::SeqCst);
    block_on(send(&before, &call));
    machine.cut_off("log");
    drop(before);
    let machine = machine.comes_back();
    let reply = block_on(send(&engine(&machine.at), &call));
    assert_eq!(reply[24..28], [0; 4], "NFS3_OK");
    machine
}

#[test]
fn what_a_replay_does_to_an_inode_is_not_taken_for_an_open_call() {
    let Some((machine, file)) = with_file("secret", b"old") else { return };
    machine.write(&file, 0, b"new", Stability::FileSync);
    let machine = cut_between(machine, |_| {
        let new_attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
        let object = crate::handle::wrap(1, &file);
        record(9, P::Setattr, &nfs3::setattr::Args { object, new_attributes, guard: None })
    });
    assert_eq!(machine.at.recovered().unwrap().records, 1);
    assert_eq!(fs::read(machine.path("secret")).unwrap(), b"new");
    assert_eq!(fs::metadata(machine.path("secret")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn that_a_name_was_there_is_not_taken_for_an_open_create_that_cuts_its_file() {
    let Some((machine, _)) = with_file("list", b"a long list") else { return };
    let machine = cut_between(machine, |dir| {
        let attributes = Sattr3 { size: Some(0), ..Sattr3::default() };
        let how = nfs3::create::CreateHow::Unchecked(attributes);
        record(9, P::Create, &nfs3::create::Args { where_: DirOp { dir, name: b"list" }, how })
    });
    assert_eq!(fs::read(machine.path("list")).unwrap(), b"");
}
