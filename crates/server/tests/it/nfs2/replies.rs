//! Retransmissions in version 2.

use bytes::Bytes;
use server::Engine;
use server::store::mem::MemStore;
use wire::Procedure;
use wire::mount::{self, DirPath, MntReply1};
use wire::nfs2::{self, DirOp, DirOpRes, FHandle, NfsStat2, Procedure as P, Sattr2, mode_type};
use wire::record::Message;
use wire::rpc::{CallHeader, OpaqueAuth};
use wire::xdr::{Encode, from_bytes};

use crate::held::{End, Held};
use crate::replies::{Host, die, peer, send, status};
use crate::world::{credential, split};

use super::world::mode;

const CLIENT: &str = "10.0.0.7:700";
const RECONNECTED: &str = "10.0.0.7:1001";
const OTHER: &str = "10.0.0.8:700";

pub(crate) fn record(xid: u32, procedure: Procedure, args: &dyn Encode) -> Bytes {
    let body = credential((0, 0), &[]);
    let header = CallHeader::new(xid, procedure, OpaqueAuth::sys(&body)).to_bytes();
    Bytes::from([header, args.to_bytes()].concat())
}

pub(crate) fn root_of(send: impl Fn(&Bytes) -> Message) -> FHandle {
    let mnt = Procedure::Mount1(mount::Procedure::Mnt);
    let reply = send(&record(1, mnt, &DirPath { dirpath: b"/" }));
    from_bytes::<MntReply1>(split(&reply).1).unwrap().unwrap().directory
}

pub(crate) fn made_file(send: impl Fn(&Bytes) -> Message, root: FHandle) -> FHandle {
    let where_ = DirOp { dir: root, name: b"f" };
    let create = nfs2::create::Args { where_, attributes: mode(0o644) };
    let reply = send(&record(2, Procedure::Nfs2(P::Create), &create));
    from_bytes::<DirOpRes>(split(&reply).1).unwrap().unwrap().file
}

fn by(engine: &Engine<Held<MemStore>>) -> impl Fn(&Bytes) -> Message {
    |call| send(engine, CLIENT, call)
}

/// Calls that a second execution answers otherwise, in an order in which each can be done, with
/// its reply.
pub(crate) fn calls(root: FHandle, file: FHandle) -> Vec<(Bytes, NfsStat2)> {
    let at = |name| DirOp { dir: root, name };
    let attributes = Sattr2::default();
    let mkdir = nfs2::mkdir::Args { where_: at(b"d"), attributes };
    let symlink = nfs2::symlink::Args { from: at(b"s"), to: b"target", attributes };
    let pipe = mode(mode_type::FIFO | 0o600);
    let pipe = nfs2::create::Args { where_: at(b"p"), attributes: pipe };
    let link = nfs2::link::Args { from: file, to: at(b"l") };
    let rename = nfs2::rename::Args { from: at(b"l"), to: at(b"m") };
    let remove = nfs2::remove::Args { what: at(b"m") };
    let rmdir = nfs2::rmdir::Args { what: at(b"d") };
    let call = |xid, procedure, args: &dyn Encode| record(xid, Procedure::Nfs2(procedure), args);
    vec![
        (call(11, P::Mkdir, &mkdir), NfsStat2::Exist),
        (call(12, P::Symlink, &symlink), NfsStat2::Exist),
        (call(13, P::Create, &pipe), NfsStat2::Exist),
        (call(14, P::Link, &link), NfsStat2::Exist),
        (call(15, P::Rename, &rename), NfsStat2::NoEnt),
        (call(16, P::Remove, &remove), NfsStat2::NoEnt),
        (call(17, P::Rmdir, &rmdir), NfsStat2::NoEnt),
    ]
}

#[test]
fn the_recorded_bytes_are_sent_again() {
    let engine = Host::new().boot(None);
    let root = root_of(by(&engine));
    for (call, twice) in calls(root, made_file(by(&engine), root)) {
        let first = send(&engine, CLIENT, &call);
        assert_eq!(status(&first), 0);
        assert_eq!(send(&engine, RECONNECTED, &call), first);
        assert_eq!(status(&send(&engine, OTHER, &call)), twice.code(), "another client's call");
    }
}

#[test]
fn a_create_that_comes_again_does_not_cut_off_what_was_written_since() {
    let engine = Host::new().boot(None);
    let root = root_of(by(&engine));
    let file = made_file(by(&engine), root);
    let where_ = DirOp { dir: root, name: b"f" };
    let attributes = Sattr2 { size: Some(0), ..Sattr2::default() };
    let args = nfs2::create::Args { where_, attributes };
    let create = record(21, Procedure::Nfs2(P::Create), &args);
    let first = send(&engine, CLIENT, &create);
    let write = nfs2::write::Args { file, beginoffset: 0, offset: 0, totalcount: 0, data: b"data" };
    let write = record(22, Procedure::Nfs2(P::Write), &write);
    engine.store().release();
    let written = futures_util::FutureExt::now_or_never(engine.call(peer(CLIENT), write));
    assert_eq!(status(&written.unwrap().reply().unwrap()), 0);
    assert_eq!(send(&engine, RECONNECTED, &create), first);
    let getattr = nfs2::getattr::Args { file };
    let reply = send(&engine, CLIENT, &record(23, Procedure::Nfs2(P::Getattr), &getattr));
    assert_eq!(from_bytes::<nfs2::AttrStat>(split(&reply).1).unwrap().unwrap().size, 4);
}

#[test]
fn what_was_executed_and_not_answered_is_found_by_its_traces() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let engine = host.boot(None);
    let root = root_of(by(&engine));
    for (call, _) in calls(root, made_file(by(&engine), root)) {
        die(&host, &path, &call, End::AfterWork);
        let again = host.boot(Some(&path));
        let found = send(&again, RECONNECTED, &call);
        assert_eq!(status(&found), 0);
        assert_eq!(send(&again, CLIENT, &call), found);
    }
}

#[test]
fn what_was_not_executed_is_executed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let engine = host.boot(None);
    let root = root_of(by(&engine));
    for (call, twice) in calls(root, made_file(by(&engine), root)) {
        die(&host, &path, &call, End::BeforeWork);
        let again = host.boot(Some(&path));
        assert_eq!(status(&send(&again, RECONNECTED, &call)), 0);
        assert_eq!(status(&send(&again, OTHER, &call)), twice.code());
    }
}

/// The process died between making them and giving them their attributes.
#[test]
fn what_was_made_without_its_attributes_gets_them() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("replies");
    let host = Host::new();
    let root = root_of(by(&host.boot(None)));
    for procedure in [P::Create, P::Mkdir] {
        let make = |xid, attributes| {
            let where_ = DirOp { dir: root, name: procedure.name().as_bytes() };
            // The two have the same arguments.
            let args = nfs2::create::Args { where_, attributes };
            record(xid, Procedure::Nfs2(procedure), &args)
        };
        let call = make(1, Sattr2 { uid: Some(7), gid: Some(8), ..mode(0o640) });
        die(&host, &path, &call, End::BeforeWork);
        send(&host.boot(None), CLIENT, &make(2, mode(0o700)));
        let reply = send(&host.boot(Some(&path)), RECONNECTED, &call);
        let made = from_bytes::<DirOpRes>(split(&reply).1).unwrap().unwrap().attributes;
        assert_eq!((made.mode & 0o7777, made.uid, made.gid), (0o640, 7, 8), "{procedure:?}");
    }
}
