//! Replies in the write log: a call that comes again after a loss of power gets what it was
//! answered, if the disk has what it did, and is executed if not.
//!
//! The loss of power is played: the server is killed, what the disk is not to have is taken back,
//! and the next one sees another boot of the machine.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};
use server::store::dir::write_log::WriteLog;
use server::store::dir::{DirOptions, DirStore, HandleChoice};
use server::types::Time;
use server::{Engine, EngineConfig, Export, Exports, Replies, Rule, Squash, Times};
use wire::nfs2;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{self, DirOp, FileHandle, NfsStat3, Procedure as P, Sattr3, StableHow};
use wire::record::Message;
use wire::xdr::from_bytes;

use crate::nfs2::replies as version2;
use crate::replies::{calls, peer, record, status};
use crate::world::{mode, split, write_args};

const CLIENT: &str = "10.0.0.7:700";
const RECONNECTED: &str = "10.0.0.7:1001";

struct Place {
    place: tempfile::TempDir,
    keeps_replies: bool,
}

struct Server {
    engine: Engine<DirStore>,
    runtime: tokio::runtime::Runtime,
}

impl Place {
    /// None, loudly, where a log cannot be.
    fn new() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("dir")).unwrap();
        let it = Self { place, keeps_replies: true };
        match DirStore::open(it.path(""), &it.options(0)) {
            Ok(_) => Some(it),
            Err(error) => {
                eprintln!("NOT TESTED: replies in a write log: {error}");
                None
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("dir").join(name)
    }

    fn options(&self, boot: u8) -> DirOptions {
        let log = WriteLog::new(vec![self.place.path().join("log")], 16 << 20);
        let keeps_replies = self.keeps_replies;
        DirOptions {
            handles: HandleChoice::Kernel,
            write_log: Some(WriteLog { boot: Some([boot; 16]), keeps_replies, ..log }),
            ..DirOptions::default()
        }
    }

    /// A server process, which knows nothing of another but what the log has.
    fn boot(&self, boot: u8) -> Server {
        let store = DirStore::open(self.path(""), &self.options(boot)).unwrap();
        let rule = Rule { squash: Squash::None, ..Rule::default() };
        let day = || {
            let now = clock_gettime(ClockId::Realtime);
            Time { secs: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap() }
        };
        let passing = move || Instant::EPOCH + Nanos::from_secs(day().secs.unsigned_abs());
        let times = Times { of_day: Arc::new(day), passing: Arc::new(passing) };
        let exports = Exports::one(Export { id: 1, ..Export::ruled(rule) }, store);
        let engine = Engine::new(exports, EngineConfig::default());
        let engine = engine.remembering(Replies::in_memory(1000, times));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Server { engine, runtime }
    }
}

impl Server {
    fn send(&self, client: &str, record: &Bytes) -> Message {
        let answer = self.runtime.block_on(self.engine.call(peer(client), record.clone()));
        answer.reply().unwrap()
    }

    /// The same call again, from another port.
    fn again(&self, record: &Bytes) -> Message {
        self.send(RECONNECTED, record)
    }

    fn made(&self, xid: u32, name: &[u8]) -> (Bytes, FileHandle) {
        let where_ = DirOp { dir: self.engine.root(), name };
        let args = nfs3::create::Args { where_, how: CreateHow::Guarded(mode(0o644)) };
        let call = record(xid, 0, P::Create, &args);
        let reply = self.send(CLIENT, &call);
        let made: nfs3::create::Reply = from_bytes(split(&reply).1).unwrap();
        (call, made.unwrap().obj.unwrap())
    }
}

/// As it goes over the network.
fn whole(message: &Message) -> Vec<u8> {
    [&message.head[..], &message.payload].concat()
}

#[test]
fn what_was_answered_is_answered_again_after_a_loss_of_power() {
    let Some(place) = Place::new() else { return };
    let server = place.boot(1);
    let (create, file) = server.made(1000, b"f");
    let data = write_args(file, 0, b"some data", StableHow::FileSync);
    let first = record(1001, 0, P::Write, &data);
    let exclusive = CreateHow::Exclusive(*b"verifier");
    let where_ = DirOp { dir: server.engine.root(), name: b"exclusive" };
    let exclusive = nfs3::create::Args { where_, how: exclusive };
    let object = file;
    let new_attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
    let setattr = nfs3::setattr::Args { object, new_attributes, guard: None };
    let others = [
        // The first WRITE makes the file's own sync, and is not in the log.
        first.clone(),
        record(1002, 0, P::Write, &data),
        record(1003, 0, P::Create, &exclusive),
        record(1004, 0, P::Setattr, &setattr),
    ];
    let of_version_3 = calls(server.engine.root(), file).into_iter().map(|(call, _)| call);
    let all: Vec<_> = of_version_3.chain(others).collect();
    let replies: Vec<_> = all.iter().map(|call| server.send(CLIENT, call)).collect();
    assert!(replies.iter().all(|reply| status(reply) == 0));
    let made = server.again(&create);
    drop(server);
    for (boot, cut) in [(2, "after the calls"), (3, "after the next start"), (3, "killed")] {
        let server = place.boot(boot);
        assert_eq!(whole(&server.again(&create)), whole(&made), "{cut}");
        for (call, reply) in all.iter().zip(&replies).filter(|(call, _)| **call != first) {
            assert_eq!(whole(&server.again(call)), whole(reply), "{cut}");
        }
        // Another call is not taken for it.
        let (name, other) = (format!("{cut}-{boot}"), 2000);
        assert!(fs::metadata(place.path(&name)).is_err());
        server.made(other, name.as_bytes());
    }
}

#[test]
fn version_2_too() {
    let Some(place) = Place::new() else { return };
    let server = place.boot(1);
    let root = version2::root_of(|call| server.send(CLIENT, call));
    let file = version2::made_file(|call| server.send(CLIENT, call), root);
    let mut all: Vec<_> = version2::calls(root, file).into_iter().map(|(call, _)| call).collect();
    let setattr = nfs2::Sattr2 { mode: Some(0o600), ..nfs2::Sattr2::default() };
    let setattr = nfs2::setattr::Args { file, attributes: setattr };
    let write = nfs2::write::Args { file, beginoffset: 0, offset: 0, totalcount: 0, data: b"data" };
    let nfs2 = wire::Procedure::Nfs2;
    all.push(version2::record(30, nfs2(nfs2::Procedure::Setattr), &setattr));
    all.push(version2::record(31, nfs2(nfs2::Procedure::Write), &write));
    let replies: Vec<_> = all.iter().map(|call| server.send(CLIENT, call)).collect();
    assert!(replies.iter().all(|reply| status(reply) == 0));
    drop(server);
    let server = place.boot(2);
    for (call, reply) in all.iter().zip(&replies) {
        assert_eq!(whole(&server.again(call)), whole(reply));
    }
}

/// The newest reply may be in the log without what it answers: its name was still on its way to
/// the disk.
#[test]
fn a_call_whose_change_the_disk_does_not_have_is_executed() {
    let Some(place) = Place::new() else { return };
    let server = place.boot(1);
    let (decided, _) = server.made(1, b"decided");
    let (open, _) = server.made(2, b"open");
    drop(server);
    fs::remove_file(place.path("decided")).unwrap();
    fs::remove_file(place.path("open")).unwrap();
    let server = place.boot(2);
    assert_eq!((status(&server.again(&decided)), status(&server.again(&open))), (0, 0));
    // That it was stable was known when the second was recorded: somebody has removed it since.
    assert!(fs::metadata(place.path("decided")).is_err());
    assert!(fs::metadata(place.path("open")).is_ok());
    // The same of what was removed and is there again.
    let remove = nfs3::remove::Args { object: DirOp { dir: server.engine.root(), name: b"open" } };
    let remove = record(3, 0, P::Remove, &remove);
    fs::hard_link(place.path("open"), place.path("saved")).unwrap();
    assert_eq!(status(&server.send(CLIENT, &remove)), 0);
    drop(server);
    fs::rename(place.path("saved"), place.path("open")).unwrap();
    let server = place.boot(3);
    assert_eq!(status(&server.again(&remove)), 0);
    assert!(fs::metadata(place.path("open")).is_err());
    // Another file of that name was made after the removal, which is not done again.
    server.made(4, b"open");
    assert_eq!(status(&server.again(&remove)), 0);
    assert!(fs::metadata(place.path("open")).is_ok());
}

#[test]
fn a_log_that_is_to_keep_no_replies_has_none() {
    let Some(mut place) = Place::new() else { return };
    place.keeps_replies = false;
    let (create, _) = place.boot(1).made(1, b"f");
    assert_eq!(status(&place.boot(2).again(&create)), NfsStat3::Exist.code());
}
