//! Retransmissions: what must not be executed twice is not, on this connection or another, before
//! the process ends or after.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use perf::units::{Instant, Nanos};
use server::store::mem::{MemOptions, MemStore};
use server::types::Time;
use server::{Engine, EngineConfig, Export, Exports, Peer, Replies, TimeOfDay, Times, Transport};
use wire::Procedure;
use wire::nfs3::StableHow;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{self, DirOp, FileHandle, NfsStat3, NfsTime, Procedure as P, Sattr3, SetTime};
use wire::record::Message;
use wire::rpc::{Answer, CallHeader, OpaqueAuth};
use wire::xdr::Encode;

use crate::held::{End, Held};
use crate::world::{XID, credential, mode, split, write_args};

const CLIENT: &str = "10.0.0.7:700";
const RECONNECTED: &str = "10.0.0.7:1001";
const OTHER: &str = "10.0.0.8:700";

/// A clock that ticks with every look at it, which files and the reply cache share.
fn clock() -> (TimeOfDay, Arc<AtomicI64>) {
    let seconds = Arc::new(AtomicI64::new(1_700_000_000));
    let ticks = Arc::clone(&seconds);
    (Arc::new(move || Time { secs: ticks.fetch_add(1, Ordering::Relaxed), nanos: 0 }), seconds)
}

pub(crate) struct Host {
    time: TimeOfDay,
    seconds: Arc<AtomicI64>,
    exports: Exports<Held<MemStore>>,
}

impl Host {
    pub(crate) fn new() -> Self {
        let (time, seconds) = clock();
        let store = MemStore::new(MemOptions::default(), Arc::clone(&time));
        Self { time, seconds, exports: Exports::one(Export::default(), Held::new(store)) }
    }

    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    /// A server process on the same files, which remembers in `file` if that is given.
    pub(crate) fn boot(&self, file: Option<&Path>) -> Engine<Held<MemStore>> {
        // Time passes as the day does.
        let time = Arc::clone(&self.time);
        let passing = move || Instant::EPOCH + Nanos::from_secs(time().secs.unsigned_abs());
        let times = Times { of_day: Arc::clone(&self.time), passing: Arc::new(passing) };
        let replies = match file {
            Some(file) => Replies::persistent_in(file, 64, 1000, times).unwrap(),
            None => Replies::in_memory(1000, times),
        };
        let exports = Exports::new(self.exports.iter().cloned().collect()).unwrap();
        Engine::new(exports, EngineConfig::default()).remembering(replies)
    }
}

pub(crate) fn record(xid: u32, uid: u32, procedure: P, args: &impl Encode) -> Bytes {
    let body = credential((uid, 0), &[]);
    let procedure = Procedure::Nfs3(procedure);
    let mut record = CallHeader::new(xid, procedure, OpaqueAuth::sys(&body)).to_bytes();
    args.encode(&mut record);
    Bytes::from(record)
}

pub(crate) fn peer(client: &str) -> Peer {
    let address: SocketAddr = client.parse().unwrap();
    Peer::at(address, Transport::Stream)
}

pub(crate) fn send(engine: &Engine<Held<MemStore>>, client: &str, record: &Bytes) -> Message {
    engine.call(peer(client), record.clone()).now_or_never().unwrap().reply().unwrap()
}

pub(crate) fn status(reply: &Message) -> u32 {
    let (_, results) = split(reply);
    u32::from_be_bytes(*results.first_chunk().unwrap())
}

/// Calls that a second execution answers otherwise, in an order in which each can be done, with
/// its reply.
pub(crate) fn calls(root: FileHandle, file: FileHandle) -> Vec<(Bytes, NfsStat3)> {
    let at = |name| DirOp { dir: root, name };
    let mkdir = nfs3::mkdir::Args { where_: at(b"d"), attributes: mode(0o755) };
    let create = nfs3::create::Args { where_: at(b"g"), how: CreateHow::Guarded(mode(0o644)) };
    let symlink = nfs3::symlink::Args {
        where_: at(b"s"),
        symlink_attributes: Sattr3::default(),
        symlink_data: b"target",
    };
    let fifo = nfs3::mknod::MknodData::Fifo(mode(0o600));
    let mknod = nfs3::mknod::Args { where_: at(b"p"), what: fifo };
    let link = nfs3::link::Args { file, link: at(b"l") };
    let rename = nfs3::rename::Args { from: at(b"l"), to: at(b"m") };
    let remove = nfs3::remove::Args { object: at(b"m") };
    let rmdir = nfs3::rmdir::Args { object: at(b"d") };
    let call = |xid, procedure, args: &dyn Encode| record(xid, 0, procedure, &Raw(args.to_bytes()));
    vec![
        (call(1, P::Mkdir, &mkdir), NfsStat3::Exist),
        (call(2, P::Create, &create), NfsStat3::Exist),
        (call(3, P::Symlink, &symlink), NfsStat3::Exist),
        (call(4, P::Mknod, &mknod), NfsStat3::Exist),
        (call(5, P::Link, &link), NfsStat3::Exist),
        (call(6, P::Rename, &rename), NfsStat3::NoEnt),
        (call(7, P::Remove, &remove), NfsStat3::NoEnt),
        (call(8, P::Rmdir, &rmdir), NfsStat3::NoEnt),
    ]
}

/// Bytes that are encoded already.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

fn made_file(engine: &Engine<Held<MemStore>>) -> FileHandle {
    let root = engine.root();
    let where_ = DirOp { dir: root, name: b"f" };
    let args = nfs3::create::Args { where_, how: CreateHow::Guarded(mode(0o644)) };
    let reply = send(engine, CLIENT, &record(1000, 0, P::Create, &args));
    let made: nfs3::create::Reply = wire::xdr::from_bytes(split(&reply).1).unwrap();
    made.unwrap().obj.unwrap()
}

#[test]
fn the_recorded_bytes_are_sent_again_whatever_the_port() {
    let engine = Host::new().boot(None);
    let file = made_file(&engine);
    for (call, twice) in calls(engine.root(), file) {
        let first = send(&engine, CLIENT, &call);
        assert_eq!(status(&first), 0);
        assert_eq!(send(&engine, CLIENT, &call), first);
        assert_eq!(send(&engine, RECONNECTED, &call), first);
        assert_eq!(status(&send(&engine, OTHER, &call)), twice.code(), "another client's call");
    }
}

#[test]
fn another_call_with_the_same_xid_is_another_call() {
    let engine = Host::new().boot(None);
    let root = engine.root();
    let mkdir = |name, uid| {
        let where_ = DirOp { dir: root, name };
        let args = nfs3::mkdir::Args { where_, attributes: mode(0o777) };
        status(&send(&engine, CLIENT, &record(XID, uid, P::Mkdir, &args)))
    };
    assert_eq!((mkdir(b"a", 0), mkdir(b"b", 0)), (0, 0));
    assert_eq!(mkdir(b"a", 5), NfsStat3::Exist.code(), "of another user");
    assert_eq!(mkdir(b"a", 0), 0);
    let symlink = |end| {
        let where_ = DirOp { dir: root, name: b"link" };
        let (symlink_data, symlink_attributes) = ([&[b'a'; 3000][..], end].concat(), mode(0o777));
        let args = nfs3::symlink::Args { where_, symlink_attributes, symlink_data: &symlink_data };
        status(&send(&engine, CLIENT, &record(XID, 0, P::Symlink, &args)))
    };
    assert_eq!((symlink(b"1"), symlink(b"2")), (0, NfsStat3::Exist.code()), "of a long path");
}

#[test]
fn what_is_in_progress_is_not_begun_again() {
    let engine = Host::new().boot(None);
    let file = made_file(&engine);
    let write = record(2, 0, P::Write, &write_args(file, 0, b"data", StableHow::FileSync));
    let mut first = Box::pin(engine.call(peer(CLIENT), write.clone()));
    assert!(first.as_mut().now_or_never().is_none(), "it waits for its sync");
    let again = engine.call(peer(RECONNECTED), write.clone()).now_or_never();
    assert_eq!(again, Some(Answer::Nothing));
    engine.store().release();
    let reply = first.now_or_never().unwrap();
    let later = engine.call(peer(RECONNECTED), write).now_or_never().unwrap();
    assert_eq!(later, reply);
}

#[test]
fn what_makes_no_sense_is_not_remembered() {
    let engine = Host::new().boot(None);
    let garbage = record(1, 0, P::Mkdir, &Raw(vec![0xff; 12]));
    let first = send(&engine, CLIENT, &garbage);
    assert_eq!(send(&engine, CLIENT, &garbage), first);
    let where_ = DirOp { dir: engine.root(), name: b"a" };
    let args = nfs3::mkdir::Args { where_, attributes: mode(0o755) };
    assert_eq!(status(&send(&engine, CLIENT, &record(1, 0, P::Mkdir, &args))), 0);
}

#[test]
fn after_the_death_of_the_process_what_was_answered_is_answered_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let engine = host.boot(Some(&path));
    let calls = calls(engine.root(), made_file(&engine));
    let replies: Vec<Message> = calls.iter().map(|(call, _)| send(&engine, CLIENT, call)).collect();
    std::mem::forget(engine); // killed: nothing is tidied up
    let engine = host.boot(Some(&path));
    for ((call, twice), reply) in calls.iter().zip(&replies) {
        assert_eq!(send(&engine, RECONNECTED, call), *reply);
        let stranger = status(&send(&engine, OTHER, call));
        assert!(stranger == twice.code() || stranger == 0);
    }
}

/// Its clients wait for as long as it takes, and send the same XIDs then.
#[test]
fn after_an_outage_of_hours_what_was_answered_is_answered_again() {
    const MINUTE: i64 = 60;
    for (outage, is_known) in [(20, true), (23 * 60, true), (25 * 60, false)] {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("replies");
        let host = Host::new();
        let engine = host.boot(Some(&path));
        let (call, twice) = calls(engine.root(), made_file(&engine)).swap_remove(0);
        assert_eq!(status(&send(&engine, CLIENT, &call)), 0);
        host.pass(outage * MINUTE);
        let again = host.boot(Some(&path));
        let expected = if is_known { 0 } else { twice.code() };
        assert_eq!(status(&send(&again, CLIENT, &call)), expected, "{outage} minutes");
    }
}

#[test]
fn what_was_old_when_its_process_ended_is_forgotten() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let engine = host.boot(Some(&path));
    let (call, twice) = calls(engine.root(), made_file(&engine)).swap_remove(0);
    assert_eq!(status(&send(&engine, CLIENT, &call)), 0);
    host.pass(1000);
    let where_ = DirOp { dir: engine.root(), name: b"newer" };
    let newer = record(2000, 0, P::Mkdir, &nfs3::mkdir::Args { where_, attributes: mode(0o755) });
    assert_eq!(status(&send(&engine, CLIENT, &newer)), 0);
    let again = host.boot(Some(&path));
    assert_eq!(status(&send(&again, CLIENT, &newer)), 0);
    assert_eq!(status(&send(&again, CLIENT, &call)), twice.code());
}

/// An XID that comes back after a quarter of an hour is another call's.
#[test]
fn what_is_old_is_executed_again_by_the_same_process() {
    let host = Host::new();
    let engine = host.boot(None);
    let (call, twice) = calls(engine.root(), made_file(&engine)).swap_remove(0);
    assert_eq!(status(&send(&engine, CLIENT, &call)), 0);
    assert_eq!(status(&send(&engine, CLIENT, &call)), 0);
    host.pass(1000);
    assert_eq!(status(&send(&engine, CLIENT, &call)), twice.code());
}

/// A process that comes to a certain point of a call and dies there.
pub(crate) fn die(host: &Host, path: &Path, call: &Bytes, end: End) {
    let engine = host.boot(Some(path));
    *engine.store().names_end.lock().unwrap() = Some(end);
    assert_eq!(engine.call(peer(CLIENT), call.clone()).now_or_never(), None);
    *engine.store().names_end.lock().unwrap() = None;
    std::mem::forget(engine);
}

#[test]
fn what_was_executed_and_not_answered_is_found_by_its_traces() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let file = made_file(&host.boot(None));
    let root = host.exports.first().root();
    for (call, _) in calls(root, file) {
        die(&host, &path, &call, End::AfterWork);
        let again = host.boot(Some(&path));
        let found = send(&again, RECONNECTED, &call);
        assert_eq!(status(&found), 0);
        let unknown = [0; 8];
        assert!(split(&found).1.ends_with(&unknown), "others may have changed the directory since");
        assert_eq!(send(&again, CLIENT, &call), found);
    }
}

/// The process died between making the file and marking it with its verifier.
#[test]
fn an_exclusive_create_that_was_half_done_is_found() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let where_ = DirOp { dir: host.exports.first().root(), name: b"x" };
    let create = |xid, how| record(xid, 0, P::Create, &nfs3::create::Args { where_, how });
    let exclusive = create(1, CreateHow::Exclusive([7; 8]));
    die(&host, &path, &exclusive, End::BeforeWork);
    let made = create(2, CreateHow::Guarded(mode(0o600)));
    assert_eq!(status(&send(&host.boot(None), CLIENT, &made)), 0);
    let again = host.boot(Some(&path));
    assert_eq!(status(&send(&again, RECONNECTED, &exclusive)), 0);
    let other = create(3, CreateHow::Exclusive([8; 8]));
    assert_eq!(status(&send(&again, CLIENT, &other)), NfsStat3::Exist.code());
}

/// The process died between making the file and giving it its attributes.
#[test]
fn a_create_of_what_may_be_there_that_was_half_done_is_finished() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let create = |xid, name, attributes| {
        let where_ = DirOp { dir: host.exports.first().root(), name };
        let how = CreateHow::Unchecked(attributes);
        record(xid, 0, P::Create, &nfs3::create::Args { where_, how })
    };
    let made = |reply: &Message| {
        let made: nfs3::create::Reply = wire::xdr::from_bytes(split(reply).1).unwrap();
        made.unwrap().obj_attributes.unwrap()
    };
    let long_ago = NfsTime { seconds: 5, nseconds: 0 };
    let mtime = SetTime::ClientTime(long_ago);
    let wanted = Sattr3 { uid: Some(7), gid: Some(8), mtime, ..mode(0o640) };
    // Somebody else's, of before, stays as it is.
    let old = made(&send(&host.boot(None), OTHER, &create(9, b"old", mode(0o600))));
    for (name, is_ours) in [(b"new", true), (b"old", false)] {
        let call = create(1, name, wanted);
        die(&host, &path, &call, End::BeforeWork);
        if is_ours {
            send(&host.boot(None), CLIENT, &create(2, name, mode(0o600)));
        }
        let again = host.boot(Some(&path));
        let reply = send(&again, RECONNECTED, &call);
        let attr = made(&reply);
        let attributes = (attr.mode, attr.uid, attr.gid, attr.mtime == long_ago);
        match is_ours {
            true => assert_eq!(attributes, (0o640, 7, 8, true)),
            false => assert_eq!(attributes, (old.mode, old.uid, old.gid, false)),
        }
        assert_eq!(send(&again, CLIENT, &call), reply);
    }
}

#[test]
fn what_was_not_executed_is_executed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let file = made_file(&host.boot(None));
    for (call, twice) in calls(host.exports.first().root(), file) {
        die(&host, &path, &call, End::BeforeWork);
        let again = host.boot(Some(&path));
        assert_eq!(status(&send(&again, RECONNECTED, &call)), 0);
        assert_eq!(status(&send(&again, OTHER, &call)), twice.code());
    }
}

#[test]
fn a_connection_that_breaks_leaves_the_same_doubt() {
    let host = Host::new();
    let file = made_file(&host.boot(None));
    let engine = host.boot(None);
    for (call, _) in calls(engine.root(), file) {
        *engine.store().names_end.lock().unwrap() = Some(End::AfterWork);
        assert_eq!(engine.call(peer(CLIENT), call.clone()).now_or_never(), None);
        *engine.store().names_end.lock().unwrap() = None;
        assert_eq!(status(&send(&engine, RECONNECTED, &call)), 0);
    }
}

#[test]
fn a_failure_without_traces_stays_a_failure() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let mkdir = |name| {
        let where_ = DirOp { dir: host.exports.first().root(), name };
        let args = nfs3::mkdir::Args { where_, attributes: mode(0o755) };
        record(1, 0, P::Mkdir, &args)
    };
    // Somebody has the lock from before.
    assert_eq!(status(&send(&host.boot(None), OTHER, &mkdir(b"lock"))), 0);
    (host.time)();
    die(&host, &path, &mkdir(b"lock"), End::BeforeWork);
    let again = host.boot(Some(&path));
    assert_eq!(status(&send(&again, CLIENT, &mkdir(b"lock"))), NfsStat3::Exist.code());
    // Somebody takes it after the restart.
    die(&host, &path, &mkdir(b"later"), End::BeforeWork);
    let again = host.boot(Some(&path));
    assert_eq!(status(&send(&again, OTHER, &mkdir(b"later"))), 0);
    assert_eq!(status(&send(&again, CLIENT, &mkdir(b"later"))), NfsStat3::Exist.code());
}
