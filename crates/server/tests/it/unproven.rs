//! Datagrams whose sender may not be who it says: replies are bounded by what came.

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
use wire::nfs3::{self, DirOp, FileHandle, Procedure as P, Sattr3, StableHow};
use wire::portmap::Procedure as Pmap;
use wire::rpc::{CallHeader, OpaqueAuth};
use wire::xdr::{Decode, Encode};
use wire::{mount, nfs2};

use crate::world::{XID, credential, results};

const CLIENT: &str = "10.0.0.7:700";

/// An export for everyone, or for some, with a directory of many files, one of them large.
struct Scene {
    engine: Engine<MemStore>,
    dir: FileHandle,
    file: FileHandle,
    link: FileHandle,
}

impl Scene {
    fn new(clients: Clients) -> Self {
        let exported = |number: u32| Exported {
            export: Export {
                name: format!("/data/number/{number}"),
                id: number,
                rules: vec![Rule { clients: clients.clone(), ..Rule::default() }],
            },
            store: Arc::new(MemStore::new(MemOptions::default(), Arc::new(Time::default))),
        };
        let exports = Exports::new((0..50).map(exported).collect()).unwrap();
        let dir = exports.first().root();
        let mut scene = Self {
            engine: Engine::new(exports, EngineConfig::default()),
            dir,
            file: dir,
            link: dir,
        };
        for number in 0..100 {
            let name = format!("a file with a name that is not short, and a number: {number}");
            let where_ = DirOp { dir, name: name.as_bytes() };
            let how = nfs3::create::CreateHow::Unchecked(Sattr3::default());
            let created: nfs3::create::Reply =
                scene.prepare(P::Create, &nfs3::create::Args { where_, how });
            scene.file = created.unwrap().obj.unwrap();
        }
        let data = [7; 100_000];
        let (file, stable) = (scene.file, StableHow::Unstable);
        let args = nfs3::write::Args { file, offset: 0, count: 100_000, stable, data: &data };
        let written: nfs3::write::Reply = scene.prepare(P::Write, &args);
        written.unwrap();
        let symlink = nfs3::symlink::Args {
            where_: DirOp { dir, name: b"link" },
            symlink_attributes: Sattr3::default(),
            symlink_data: &[b'x'; 4000],
        };
        let linked: nfs3::symlink::Reply = scene.prepare(P::Symlink, &symlink);
        scene.link = linked.unwrap().obj.unwrap();
        for number in 0..50 {
            let path = format!("/data/number/{number}");
            let args = mount::DirPath { dirpath: path.as_bytes() };
            scene.ask(stream(), Procedure::Mount(mount::Procedure::Mnt), &args);
        }
        scene
    }

    fn prepare<R: Decode<'static> + std::fmt::Debug>(&self, procedure: P, args: &impl Encode) -> R {
        let (_, reply) = self.ask(stream(), Procedure::Nfs3(procedure), args);
        results(&reply)
    }

    /// The bytes of a call, and its reply.
    fn ask(
        &self,
        peer: Peer,
        procedure: Procedure,
        args: &impl Encode,
    ) -> (usize, wire::record::Message) {
        let body = credential((0, 0), &[]);
        let mut record = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body)).to_bytes();
        args.encode(&mut record);
        let bytes = record.len();
        let answer = self.engine.call(peer, Bytes::from(record)).now_or_never().unwrap();
        (bytes, answer.reply().unwrap())
    }

    /// Calls that could be answered with much more than they are: how much each is, and gets.
    fn amplified(&self, client: &str, is_proven: bool) -> Vec<(Procedure, usize, usize)> {
        let address: SocketAddr = client.parse().unwrap();
        let peer = Peer { is_proven, ..Peer::at(address, Transport::Datagram) };
        let (dir, file) = (self.dir, self.file);
        let cookieverf = [0; 8];
        let mut seen = Vec::new();
        let mut see = |procedure, (sent, reply): (usize, wire::record::Message)| {
            seen.push((procedure, sent, reply.wire_len()));
        };
        let nfs = Procedure::Nfs3;
        let read = nfs3::read::Args { file, offset: 0, count: 32 << 10 };
        see(nfs(P::Read), self.ask(peer, nfs(P::Read), &read));
        let list = nfs3::readdir::Args { dir, cookie: 0, cookieverf, count: 32 << 10 };
        see(nfs(P::Readdir), self.ask(peer, nfs(P::Readdir), &list));
        let (dircount, maxcount) = (32 << 10, 32 << 10);
        let list = nfs3::readdirplus::Args { dir, cookie: 0, cookieverf, dircount, maxcount };
        see(nfs(P::Readdirplus), self.ask(peer, nfs(P::Readdirplus), &list));
        let link = nfs3::readlink::Args { symlink: self.link };
        see(nfs(P::Readlink), self.ask(peer, nfs(P::Readlink), &link));
        for procedure in [mount::Procedure::Dump, mount::Procedure::Export] {
            let procedure = Procedure::Mount(procedure);
            see(procedure, self.ask(peer, procedure, &()));
        }
        let dump = Procedure::Portmap(Pmap::Dump);
        see(dump, self.ask(peer, dump, &()));
        // And what a client needs to begin with.
        let null = Procedure::Nfs2(nfs2::Procedure::Null);
        see(null, self.ask(peer, null, &()));
        let mnt = Procedure::Mount(mount::Procedure::Mnt);
        see(mnt, self.ask(peer, mnt, &mount::DirPath { dirpath: b"/data/number/1" }));
        for procedure in [P::Getattr, P::Fsinfo, P::Pathconf, P::Fsstat] {
            let args = nfs3::getattr::Args { object: dir };
            see(nfs(procedure), self.ask(peer, nfs(procedure), &args));
        }
        seen
    }
}

fn stream() -> Peer {
    Peer::at(CLIENT.parse().unwrap(), Transport::Stream)
}

#[test]
fn who_may_not_be_who_it_says_gets_at_most_three_times_what_it_sent() {
    let network: Network = "0.0.0.0/0".parse().unwrap();
    for clients in [Clients::Everyone, Clients::Of(vec![network])] {
        for (procedure, sent, got) in Scene::new(clients).amplified(CLIENT, false) {
            assert!(got <= 3 * sent, "{procedure}: {got} bytes for {sent}");
        }
    }
    let scene = Scene::new(Clients::Everyone);
    let seen = scene.amplified(CLIENT, true);
    let large = seen.iter().filter(|(_, sent, got)| *got > 3 * sent).count();
    assert!(large >= 6, "they are answered in full otherwise: {seen:?}");
}

#[test]
fn a_client_that_an_export_names_is_served_in_full_by_its_handles() {
    let network: Network = "10.0.0.0/24".parse().unwrap();
    let scene = Scene::new(Clients::Of(vec![network]));
    is_served_in_full_by_its_handles(&scene.amplified(CLIENT, false));
}

/// A relay on this host carries what others ask, who may not be who they say.
#[test]
fn a_program_of_this_host_is_served_in_full_by_its_handles() {
    let scene = Scene::new(Clients::Everyone);
    for client in ["127.0.0.1:700", "[::1]:700"] {
        is_served_in_full_by_its_handles(&scene.amplified(client, false));
    }
}

#[track_caller]
fn is_served_in_full_by_its_handles(seen: &[(Procedure, usize, usize)]) {
    let of_handles = |(procedure, ..): &(Procedure, usize, usize)| {
        matches!(procedure, Procedure::Nfs3(P::Read | P::Readdir | P::Readdirplus | P::Readlink))
    };
    let (full, bounded): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| of_handles(seen));
    assert!(full.iter().all(|(_, sent, got)| *got > 3 * sent), "{full:?}");
    // Lists are for whoever asks: they are bounded all the same.
    assert!(bounded.iter().all(|(_, sent, got)| *got <= 3 * sent), "{bounded:?}");
}

#[test]
fn short_reads_lead_to_the_end_of_a_file_all_the_same() {
    let scene = Scene::new(Clients::Everyone);
    let peer = Peer { is_proven: false, ..Peer::at(CLIENT.parse().unwrap(), Transport::Datagram) };
    let (mut offset, mut calls) = (99_000, 0);
    loop {
        let args = nfs3::read::Args { file: scene.file, offset, count: 4096 };
        let (_, reply) = scene.ask(peer, Procedure::Nfs3(P::Read), &args);
        let data = reply.payload.len() as u64;
        assert!(data > 0 && reply.payload.iter().all(|&byte| byte == 7));
        (offset, calls) = (offset + data, calls + 1);
        if offset == 100_000 {
            break;
        }
    }
    assert!((2..20).contains(&calls), "{calls}");
}
