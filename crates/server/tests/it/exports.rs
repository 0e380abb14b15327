//! Several exports, and clients that may use some of them.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use server::store::mem::{MemOptions, MemStore};
use server::types::Time;
use server::{
    Clients, Engine, EngineConfig, Export, Exported, Exports, Network, Peer, Rule, Transport,
};
use wire::Procedure;
use wire::mount::{self, DirPath, ExportReply, MntReply, MountStat3};
use wire::nfs3::{self, DirOp, FileHandle, NfsStat3, Procedure as P, Sattr3};
use wire::rpc::{AuthStat, CallHeader, OpaqueAuth, ReplyHeader};
use wire::xdr::{Decode, Encode};

use crate::malformed::golden_args;
use crate::world::{XID, credential, results, split};

const FRIEND: &str = "10.0.0.7:700";
const GUEST: &str = "10.9.0.7:700";
const STRANGER: &str = "192.168.0.1:700";

fn rule(network: &str, read_only: bool) -> Rule {
    let network: Network = network.parse().unwrap();
    Rule { clients: Clients::Of(vec![network]), read_only, ..Rule::default() }
}

/// `/data`: friends write, guests read; `/open`: for everyone; `/root`: from privileged ports.
fn engine() -> Engine<MemStore> {
    let exported = |(name, rules): (&str, Vec<Rule>)| {
        let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
        let export = Export { name: name.to_owned(), id: Export::id_of(name), rules };
        Exported { export, store: Arc::new(store) }
    };
    let friends = vec![rule("10.0.0.0/24", false), rule("10.0.0.0/8", true)];
    let privileged = Rule { privileged_port: true, ..Rule::default() };
    let exports =
        [("/data", friends), ("/open", vec![Rule::default()]), ("/root", vec![privileged])];
    let exports = Exports::new(exports.into_iter().map(exported).collect()).unwrap();
    Engine::new(exports, EngineConfig::default())
}

#[test]
fn on_this_host_whose_program_it_is_counts_and_not_its_port() {
    let engine = engine();
    let served = |port: u16, is_trusted: Option<bool>| {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let peer = Peer { is_trusted, ..Peer::at(address, Transport::Stream) };
        let args = DirPath { dirpath: b"/root" };
        let procedure = Procedure::Mount(mount::Procedure::Mnt);
        let reply: MntReply = call_from(&engine, peer, procedure, &args);
        reply.map(drop)
    };
    let refused = Err(MountStat3::Acces);
    assert_eq!(served(50_000, Some(true)), Ok(()), "root's, from any port");
    // Where a system lets everybody have them, a privileged port proves nothing.
    assert_eq!(served(700, Some(false)), refused);
    assert_eq!((served(700, None), served(50_000, None)), (Ok(()), refused));
}

fn call<R>(engine: &Engine<MemStore>, client: &str, procedure: Procedure, args: &impl Encode) -> R
where
    R: Decode<'static> + std::fmt::Debug,
{
    let address: SocketAddr = client.parse().unwrap();
    call_from(engine, Peer::at(address, Transport::Stream), procedure, args)
}

fn call_from<R>(
    engine: &Engine<MemStore>,
    peer: Peer,
    procedure: Procedure,
    args: &impl Encode,
) -> R
where
    R: Decode<'static> + std::fmt::Debug,
{
    let body = credential((0, 0), &[]);
    let mut record = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body)).to_bytes();
    args.encode(&mut record);
    let reply = engine.call(peer, Bytes::from(record)).now_or_never().unwrap().reply().unwrap();
    results(&reply)
}

fn mnt(engine: &Engine<MemStore>, client: &str, path: &str) -> Result<FileHandle, MountStat3> {
    let args = DirPath { dirpath: path.as_bytes() };
    let procedure = Procedure::Mount(mount::Procedure::Mnt);
    let reply: MntReply = call(engine, client, procedure, &args);
    reply.map(|ok| ok.fhandle)
}

fn mkdir(
    engine: &Engine<MemStore>,
    client: &str,
    dir: FileHandle,
    name: &[u8],
) -> Result<FileHandle, NfsStat3> {
    let args = nfs3::mkdir::Args { where_: DirOp { dir, name }, attributes: Sattr3::default() };
    let reply: nfs3::mkdir::Reply = call(engine, client, Procedure::Nfs3(P::Mkdir), &args);
    reply.map(|ok| ok.obj.unwrap()).map_err(|failure| failure.status)
}

fn getattr(engine: &Engine<MemStore>, client: &str, object: FileHandle) -> Result<(), NfsStat3> {
    let args = nfs3::getattr::Args { object };
    let reply: nfs3::getattr::Reply = call(engine, client, Procedure::Nfs3(P::Getattr), &args);
    reply.map(drop).map_err(|failure| failure.status)
}

#[test]
fn each_client_has_what_its_first_rule_says() {
    let engine = engine();
    let data = mnt(&engine, FRIEND, "/data").unwrap();
    assert_eq!(mnt(&engine, GUEST, "/data"), Ok(data));
    assert_eq!(mnt(&engine, STRANGER, "/data"), Err(MountStat3::Acces));
    let made = mkdir(&engine, FRIEND, data, b"d").unwrap();
    assert_eq!(mkdir(&engine, GUEST, data, b"e"), Err(NfsStat3::RoFs));
    assert_eq!(mkdir(&engine, STRANGER, data, b"e"), Err(NfsStat3::Acces));
    assert_eq!(getattr(&engine, GUEST, made), Ok(()));
    assert_eq!(getattr(&engine, STRANGER, made), Err(NfsStat3::Acces));
    let open = mnt(&engine, STRANGER, "/open").unwrap();
    mkdir(&engine, STRANGER, open, b"d").unwrap();
    assert_eq!(mnt(&engine, FRIEND, "/"), Err(MountStat3::NoEnt));
}

#[test]
fn ports_that_everyone_may_take_are_refused_where_that_was_configured() {
    let engine = engine();
    let root = mnt(&engine, "10.0.0.7:1023", "/root").unwrap();
    assert_eq!(mnt(&engine, "10.0.0.7:1024", "/root"), Err(MountStat3::Acces));
    assert_eq!(getattr(&engine, "10.0.0.7:1", root), Ok(()));
    assert_eq!(getattr(&engine, "10.0.0.7:50000", root), Err(NfsStat3::Perm));
}

#[test]
fn nothing_moves_from_one_export_to_another() {
    let engine = engine();
    let data = mnt(&engine, FRIEND, "/data").unwrap();
    let open = mnt(&engine, FRIEND, "/open").unwrap();
    mkdir(&engine, FRIEND, data, b"d").unwrap();
    let rename = |to_dir| {
        let from = DirOp { dir: data, name: b"d" };
        let args = nfs3::rename::Args { from, to: DirOp { dir: to_dir, name: b"d" } };
        let reply: nfs3::rename::Reply = call(&engine, FRIEND, Procedure::Nfs3(P::Rename), &args);
        reply.map(drop).map_err(|failure| failure.status)
    };
    assert_eq!(rename(open), Err(NfsStat3::XDev));
    let mut unknown = open.as_bytes().to_vec();
    unknown[1] ^= 0x55;
    assert_eq!(rename(FileHandle::new(&unknown).unwrap()), Err(NfsStat3::Stale));
    assert_eq!(rename(data), Ok(()));
}

#[test]
fn every_procedure_refuses_in_its_own_form() {
    let engine = engine();
    let root = mnt(&engine, FRIEND, "/data").unwrap();
    let mut gone = root.as_bytes().to_vec();
    gone[2] ^= 1;
    for (handle, status) in [(root.as_bytes(), NfsStat3::Acces), (&gone[..], NfsStat3::Stale)] {
        for (procedure, args) in golden_args(FileHandle::new(handle).unwrap()) {
            if !matches!(procedure, Procedure::Nfs3(named) if named != P::Null) {
                continue;
            }
            let body = credential((0, 0), &[]);
            let mut record = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body)).to_bytes();
            record.extend_from_slice(&args);
            let address: SocketAddr = STRANGER.parse().unwrap();
            let peer = Peer::at(address, Transport::Stream);
            let reply =
                engine.call(peer, Bytes::from(record)).now_or_never().unwrap().reply().unwrap();
            let (_, rest) = split(&reply);
            assert_eq!(rest[..4], status.code().to_be_bytes(), "{procedure}");
            assert_eq!(wire::fuzzing::round_trip_results(procedure, rest), Ok(()), "{procedure}");
        }
    }
}

#[test]
fn exports_are_listed_with_those_who_may() {
    let engine = engine();
    let procedure = Procedure::Mount(mount::Procedure::Export);
    let reply: ExportReply<'static> = call(&engine, STRANGER, procedure, &());
    let list: Vec<(&[u8], Vec<&[u8]>)> = reply
        .exports
        .iter()
        .map(|export| (export.dir, export.groups.iter().map(|group| group.name).collect()))
        .collect();
    let friends: Vec<&[u8]> = vec![b"10.0.0.0/24", b"10.0.0.0/8"];
    assert_eq!(list, [(&b"/data"[..], friends), (b"/open", vec![]), (b"/root", vec![])]);
}

#[test]
fn what_is_exported_can_be_replaced() {
    let engine = engine();
    let data = mnt(&engine, FRIEND, "/data").unwrap();
    let left: Vec<_> =
        engine.exports().iter().filter(|left| left.export.name != "/data").cloned().collect();
    engine.export(Exports::new(left).unwrap());
    assert_eq!(getattr(&engine, FRIEND, data), Err(NfsStat3::Stale));
    assert_eq!(mnt(&engine, FRIEND, "/data"), Err(MountStat3::NoEnt));
    assert!(mnt(&engine, FRIEND, "/open").is_ok());
}

/// Without an answer his mount would wait for minutes.
#[test]
fn whom_no_export_names_is_refused_at_once_and_learns_nothing() {
    let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
    let export = Export { name: "/data".to_owned(), id: 7, rules: vec![rule("10.0.0.0/8", false)] };
    let engine = Engine::new(Exports::one(export, store), EngineConfig::default());
    let address: SocketAddr = STRANGER.parse().unwrap();
    assert!(!engine.is_for(address.ip()));
    let answer = |procedure, args: &dyn Fn(&mut Vec<u8>)| {
        let body = credential((0, 0), &[]);
        let mut record = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body)).to_bytes();
        args(&mut record);
        let peer = Peer { is_proven: false, ..Peer::at(address, Transport::Datagram) };
        (engine.refuse(&peer, &record).reply(), record)
    };
    let refuse = |procedure, args: &dyn Fn(&mut Vec<u8>)| {
        let (reply, record) = answer(procedure, args);
        let reply = reply.unwrap();
        assert!(reply.wire_len() <= record.len(), "{procedure}: {}", reply.wire_len());
        reply
    };
    for path in [&b"/data"[..], b"/nowhere"] {
        let args = |out: &mut Vec<u8>| DirPath { dirpath: path }.encode(out);
        let mnt: MntReply = results(&refuse(Procedure::Mount(mount::Procedure::Mnt), &args));
        assert_eq!(mnt, Err(MountStat3::Acces));
        let mnt: mount::MntReply1 =
            results(&refuse(Procedure::Mount1(mount::Procedure::Mnt), &args));
        assert_eq!(mnt, Err(MountStat3::Acces));
    }
    // mount(8) calls these before it mounts.
    for null in [Procedure::Nfs3(P::Null), Procedure::Mount(mount::Procedure::Null)] {
        let () = results(&refuse(null, &|_| ()));
    }
    let root = |out: &mut Vec<u8>| engine.root().encode(out);
    let too_weak = ReplyHeader::auth_error(XID, AuthStat::TooWeak).to_bytes();
    for procedure in [
        Procedure::Mount(mount::Procedure::Export),
        Procedure::Mount(mount::Procedure::Dump),
        Procedure::Portmap(wire::portmap::Procedure::Dump),
    ] {
        assert_eq!(refuse(procedure, &root).to_vec(), too_weak, "{procedure}");
    }
    // Of a mount of when it was named: an error would cost its programs what they have written.
    assert!(answer(Procedure::Nfs3(P::Getattr), &root).0.is_none());
}
