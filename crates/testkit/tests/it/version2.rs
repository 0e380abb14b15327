//! The client's NFS version 2 against our server, in a world and over sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use client::error::Error;
use client::files::open::Mode;
use client::files::{self, Files};
use client::mount::{self, Options};
use client::session::{Credential, Session};
use client::url::{Protocol, Target as Url, Version};
use net::call::Target;
use net::clock::Clock;
use net::clock::world::World;
use net::serve::{Host, Limits};
use net::transport::udp::Udp;
use net::transport::{RECORD_BYTES_MAX, tcp};
use perf::units::Nanos;
use server::store::mem::MemStore;
use server::{CommitMode, Engine, EngineConfig, Export, Exports, Transport};
use testkit::Site;
use wire::mount::{DirPath, MntReply1};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FType, FileHandle, NfsStat3, NfsTime, Sattr3, SetTime, StableHow, access, mknod};
use wire::rpc::OpaqueAuth;
use wire::xdr::{Encode, from_bytes};
use world::server::{everyone_is_root, service};

fn credential() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}

/// A session of version 2 with a server on an empty memory store.
async fn session(clock: &Clock) -> Session {
    session_with(&Site::in_memory(clock, Default::default(), CommitMode::Concurrent)).await
}

async fn session_with(site: &Site<MemStore>) -> Session {
    let rpc = site.rpc();
    let mnt = Target { program: wire::mount::PROGRAM, version: 1, procedure: 1 };
    let args = DirPath { dirpath: b"/" };
    let encode = |out: &mut Vec<u8>| args.encode(out);
    let answer = rpc.call(mnt, OpaqueAuth::NONE, encode, Bytes::new()).await.unwrap();
    let root = from_bytes::<MntReply1>(&answer.results()).unwrap().unwrap().directory;
    let root = FileHandle::new(root.as_bytes()).unwrap();
    let server = SocketAddr::from(([127, 1, 0, 1], 2049));
    Session::open_version(rpc, server, &credential(), root, Version::Two).await.unwrap()
}

fn status(result: Result<impl std::fmt::Debug, Error>) -> Option<NfsStat3> {
    result.unwrap_err().status()
}

fn in_world<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Clock) -> F) {
    let world = World::new();
    world.run(test(world.clock())).unwrap();
}

#[test]
fn files_are_written_in_pieces_of_8_kib_and_read_back() {
    in_world(|clock| async move {
        let session = session(&clock).await;
        assert_eq!(session.sizes().write_bytes_max, 8192);
        let root = session.root();
        let how = CreateHow::Unchecked(Sattr3::of_mode(0o640));
        let file = session.create(root, b"file", how).await.unwrap().obj.unwrap();
        let data: Bytes = (0..20_000).map(|n: u32| n.to_le_bytes()[0]).collect();
        let mut at = 0;
        while at < data.len() {
            let rest = data.slice(at..);
            let written = session.write(file, at as u64, rest, StableHow::Unstable).await.unwrap();
            assert_eq!(written.reply.committed, StableHow::FileSync);
            let committed = session.commit(file, 0, 0).await.unwrap();
            assert_eq!(committed.reply.verf, written.reply.verf);
            at += written.reply.count as usize;
        }
        let mut read = Vec::new();
        loop {
            let part = session.read(file, read.len() as u64, 1 << 20).await.unwrap();
            read.extend_from_slice(&part.data);
            if part.eof {
                break;
            }
            assert_eq!(part.data.len(), 8192);
        }
        assert_eq!(read, data);
        let found = session.lookup(root, b"file").await.unwrap();
        assert_eq!(found.object, file);
        let attributes = found.obj_attributes.unwrap();
        assert_eq!(
            (attributes.size, attributes.mode, attributes.ftype),
            (20_000, 0o640, FType::Reg)
        );
        let statfs = session.fsstat(root).await.unwrap();
        assert!(statfs.tbytes >= statfs.abytes);
    });
}

/// Version 2 has no attributes of directories, so that names are soon forgotten, and what RENAME,
/// LINK and REMOVE do to the file that they lead to is not replied either. So its version may be
/// another afterwards: somebody else may have changed it, too.
#[test]
fn our_own_changes_of_names_show_under_all_names_of_a_file() {
    in_world(|clock| async move {
        let session = session(&clock).await;
        let files = Files::new(&clock, session, files::Options::default());
        let (who, root) = (credential(), files.root());
        let made = files.create(&who, root, b"a", Sattr3::of_mode(0o644), true).await.unwrap();
        let second = Nanos::from_secs(1);
        let agree = async |step: &str, names: &[&[u8]]| {
            clock.sleep(second).await;
            for name in names {
                let found = files.lookup(&who, root, name).await.unwrap();
                let links = usize::try_from(found.attributes.nlink).unwrap();
                assert_eq!((found.handle, links), (made.handle, names.len()), "{step}");
            }
            // Now nobody knows where a name leads.
            let other = clock.now().as_nanos().to_string();
            files.mkdir(&who, root, other.as_bytes(), Sattr3::of_mode(0o755)).await.unwrap();
            files.getattr(&who, root).await.unwrap();
        };
        for round in 0..3 {
            files.rename(&who, (root, b"a"), (root, b"b")).await.unwrap();
            agree("renamed", &[b"b"]).await;
            files.link(&who, made.handle, root, b"c").await.unwrap();
            agree("linked", &[b"b", b"c"]).await;
            files.rename(&who, (root, b"c"), (root, b"d")).await.unwrap();
            files.rename(&who, (root, b"b"), (root, b"a")).await.unwrap();
            agree("both renamed", &[b"a", b"d"]).await;
            let mode = Sattr3::of_mode(0o600 + round);
            files.setattr(&who, made.handle, mode).await.unwrap();
            files.rename(&who, (root, b"a"), (root, b"e")).await.unwrap();
            agree("mode and name", &[b"e", b"d"]).await;
            files.remove(&who, root, b"e").await.unwrap();
            agree("removed", &[b"d"]).await;
            files.rename(&who, (root, b"d"), (root, b"a")).await.unwrap();
        }
    });
}

#[test]
fn what_does_not_fit_into_32_bits_is_reported_without_asking() {
    in_world(|clock| async move {
        let session = session(&clock).await;
        let how = CreateHow::Unchecked(Sattr3::default());
        let file = session.create(session.root(), b"f", how).await.unwrap().obj.unwrap();
        let sends = session.rpc().counters().transport.sends;
        let byte = || Bytes::from_static(b"x");
        for offset in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let written = session.write(file, offset, byte(), StableHow::FileSync).await;
            assert_eq!(status(written), Some(NfsStat3::FBig));
        }
        let size = Sattr3 { size: Some(1 << 32), ..Sattr3::default() };
        assert_eq!(status(session.setattr(file, size, None).await), Some(NfsStat3::FBig));
        let beyond = session.read(file, 1 << 32, 10).await.unwrap();
        assert!(beyond.eof && beyond.data.is_empty());
        assert_eq!(session.rpc().counters().transport.sends, sends);
        let strange = FileHandle::new(b"short").unwrap();
        assert_eq!(status(session.getattr(strange).await), Some(NfsStat3::BadHandle));
    });
}

#[test]
fn names_are_made_changed_and_listed() {
    in_world(|clock| async move {
        let session = session(&clock).await;
        let root = session.root();
        let made = session.mkdir(root, b"dir", Sattr3::default()).await.unwrap();
        let dir = made.obj.unwrap();
        assert_eq!(made.obj_attributes.unwrap().ftype, FType::Dir);
        let new = CreateHow::Exclusive([1; 8]);
        let file = session.create(dir, b"a", new).await.unwrap().obj.unwrap();
        assert_eq!(status(session.create(dir, b"a", new).await), Some(NfsStat3::Exist));
        session.link(file, dir, b"b").await.unwrap();
        let link = session.symlink(dir, b"c", Sattr3::default(), b"to/there").await.unwrap();
        assert_eq!(link.obj, None);
        let link = session.lookup(dir, b"c").await.unwrap().object;
        assert_eq!(session.readlink(link).await.unwrap().0, b"to/there");
        session.rename((dir, b"b"), (root, b"moved")).await.unwrap();
        session.mknod(dir, b"pipe", mknod::MknodData::Fifo(Sattr3::default())).await.unwrap();
        let pipe = session.lookup(dir, b"pipe").await.unwrap().obj_attributes.unwrap();
        assert_eq!(pipe.ftype, FType::Fifo);
        for number in 0..500 {
            let name = format!("file {number} with a name that fills a listing");
            session.create(dir, name.as_bytes(), new).await.unwrap();
        }
        let mut names = Vec::new();
        let mut cookie = 0;
        loop {
            let page = session.readdirplus(dir, cookie, [0; 8], 4096, 65_536).await.unwrap();
            cookie = page.entries.last().map_or(cookie, |entry| entry.cookie);
            names.extend(page.entries.into_iter().map(|entry| entry.name));
            if page.eof {
                break;
            }
        }
        names.sort();
        names.dedup();
        assert_eq!(names.iter().filter(|name| name.starts_with(b"file")).count(), 500);
        assert_eq!(status(session.rmdir(root, b"dir").await), Some(NfsStat3::NotEmpty));
        session.remove(dir, b"a").await.unwrap();
        assert_eq!(status(session.lookup(dir, b"a").await), Some(NfsStat3::NoEnt));
        assert_eq!(session.getattr(file).await.unwrap().nlink, 1);
        session.remove(root, b"moved").await.unwrap();
        assert_eq!(status(session.getattr(file).await), Some(NfsStat3::Stale));
    });
}

#[test]
fn attributes_are_set_and_guarded() {
    in_world(|clock| async move {
        let session = session(&clock).await;
        let how = CreateHow::Unchecked(Sattr3::default());
        let file = session.create(session.root(), b"f", how).await.unwrap().obj.unwrap();
        clock.sleep(Nanos::from_secs(5)).await;
        let mtime = SetTime::ClientTime(NfsTime { seconds: 1_000, nseconds: 7_000 });
        let (mode, size) = (Some(0o400), Some(77));
        let set = Sattr3 { mode, size, mtime, ..Sattr3::default() };
        let after = session.setattr(file, set, None).await.unwrap().after.unwrap();
        assert_eq!((after.mode, after.size), (0o400, 77));
        assert_eq!(after.mtime, NfsTime { seconds: 1_000, nseconds: 7_000 });
        let guard = NfsTime { seconds: 1, nseconds: 1 };
        assert_eq!(status(session.setattr(file, set, Some(guard)).await), Some(NfsStat3::NotSync));
        session.setattr(file, set, Some(after.ctime)).await.unwrap();
        clock.sleep(Nanos::from_secs(5)).await;
        let (atime, mtime) = (SetTime::ServerTime, SetTime::ServerTime);
        let touch = Sattr3 { atime, mtime, ..Sattr3::default() };
        let after = session.setattr(file, touch, None).await.unwrap().after.unwrap();
        assert_eq!(u64::from(after.mtime.seconds), clock.since_1970().as_secs());
        let other = Credential { uid: 1, gid: 1, ..credential() };
        let allowed = session.acting_as(&other).access(file, 0x3f).await.unwrap().access;
        assert_eq!(allowed, 0);
        let root = session.access(file, access::READ | access::EXECUTE).await.unwrap();
        assert_eq!(root.access, access::READ);
    });
}

#[test]
fn a_file_system_is_used_as_over_version_3() {
    in_world(|clock| async move {
        let session = session(&clock).await;
        let (root, who) = (session.root(), credential());
        let files = Files::new(&clock, session, files::Options::default());
        let dir = files.mkdir(&who, root, b"dir", Sattr3::default()).await.unwrap().handle;
        let attributes = Sattr3::of_mode(0o640);
        let sends = || files.session().rpc().counters().transport.sends;
        let before = sends();
        let made = files.create(&who, dir, b"file", attributes, true).await.unwrap();
        assert_eq!(made.attributes.mode, 0o640);
        // A LOOKUP and a CREATE: a SETATTR of the mode would give what a default ACL withholds.
        assert_eq!(sends() - before, 2);
        let again = files.create(&who, dir, b"file", attributes, true).await;
        assert_eq!(status(again), Some(NfsStat3::Exist));
        let made = made.handle;
        let data: Vec<u8> = (0..200_000).map(|n: u32| (n % 251).to_le_bytes()[0]).collect();
        let open = files.open_made(&who, made);
        open.write(0, &data).await.unwrap();
        open.flush().await.unwrap();
        open.close().await;
        files.rename(&who, (dir, b"file"), (root, b"moved")).await.unwrap();
        files.symlink(&who, dir, b"link", Sattr3::default(), b"../moved").await.unwrap();
        files.link(&who, made, dir, b"hard").await.unwrap();
        let found = files.lookup(&who, root, b"moved").await.unwrap();
        assert_eq!((found.handle, found.attributes.size), (made, 200_000));
        let open = files.open(&who, made, Mode { read: true, ..Mode::default() }).await.unwrap();
        let mut read = Vec::new();
        while read.len() < data.len() {
            let part = open.read(read.len() as u64, 65_536).await.unwrap();
            assert!(!part.is_empty());
            read.extend_from_slice(&part);
        }
        assert!(read == data);
        // Its name goes while it is open.
        files.remove(&who, root, b"moved").await.unwrap();
        assert_eq!(open.read(0, 100).await.unwrap(), data[..100]);
        open.close().await;
        let page = files.listing(&who, dir).page(0).await.unwrap();
        let mut names: Vec<_> = page.entries.into_iter().map(|entry| entry.name).collect();
        names.retain(|name| name != b"." && name != b"..");
        names.sort();
        assert_eq!(names, [b"hard".to_vec(), b"link".to_vec()]);
        assert!(files.statfs(&who).await.is_ok());
        assert!(files.shut_down().await.is_empty());
    });
}

/// A reply of version 2 has no attributes of before.
#[test]
fn a_setattr_hides_nothing_that_another_client_has_written_before() {
    let touch = Sattr3 { mtime: SetTime::ServerTime, ..Sattr3::default() };
    for (set, written) in [(Sattr3::of_mode(0o640), "new"), (touch, "longer")] {
        in_world(|clock| async move {
            let site = Site::in_memory(&clock, Default::default(), CommitMode::Concurrent);
            let open =
                async || Files::new(&clock, session_with(&site).await, files::Options::default());
            let (ours, theirs, who) = (open().await, open().await, credential());
            let made = ours.create(&who, ours.root(), b"file", Sattr3::default(), true).await;
            let file = made.unwrap().handle;
            let write = async |files: &Files, data: &str| {
                clock.sleep(Nanos::from_millis(10)).await;
                let open = files.open_made(&who, file);
                open.write(0, data.as_bytes()).await.unwrap();
                open.flush().await.unwrap();
                open.close().await;
            };
            let version_read = async || {
                let open = ours.open(&who, file, Mode { read: true, ..Mode::default() }).await;
                open.unwrap().close().await;
                ours.version(&file)
            };
            write(&ours, "old").await;
            let before = version_read().await;
            ours.setattr(&who, file, set).await.unwrap();
            assert_eq!(version_read().await, before, "nobody else was there");
            theirs.lookup(&who, theirs.root(), b"file").await.unwrap();
            write(&theirs, written).await;
            ours.setattr(&who, file, set).await.unwrap();
            assert_ne!(version_read().await, before, "{written}");
        });
    }
}

/// An engine on a memory store behind real sockets, TCP and UDP of the same number.
fn serve(clock: &Clock) -> SocketAddr {
    let listener = tcp::Listener::bind(([127, 0, 0, 1], 0).into(), RECORD_BYTES_MAX).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = Udp::bind(address).unwrap();
    let exports = Exports::one(Export::ruled(everyone_is_root()), testkit::memory_store(clock));
    let engine = Arc::new(Engine::new(exports, EngineConfig::default()));
    let host = Host::new(clock, Limits::default());
    let streams = service(&engine, Transport::Stream);
    let datagrams = service(&engine, Transport::Datagram);
    let own = host.clone();
    clock.spawn(async move { own.listen_datagrams(socket, datagrams).await });
    let own = clock.clone();
    clock.spawn(async move {
        while let Ok(connection) = listener.accept().await {
            let (host, service) = (host.clone(), streams.clone());
            own.spawn(async move { host.connection(connection, service).await.unwrap_or(()) });
        }
    });
    address
}

#[test]
fn versions_2_and_3_are_mounted_over_tcp_and_udp() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        let port = serve(&clock).port();
        for (version, protocol) in [(2, "tcp"), (2, "udp"), (3, "tcp"), (3, "udp")] {
            let query = format!("version={version}&proto={protocol}&mountport={port}");
            let url: Url = format!("nfs://127.0.0.1:{port}/?{query}").parse().unwrap();
            let options = Options::persistent(credential());
            let mounted = mount::mount(&clock, &url, &options).await.unwrap();
            assert_eq!(mounted.ports.protocol == Protocol::Udp, protocol == "udp");
            let session = mounted.session;
            let name = format!("{version}-{protocol}");
            let how = CreateHow::Unchecked(Sattr3::default());
            let made = session.create(session.root(), name.as_bytes(), how).await.unwrap();
            let file = made.obj.unwrap();
            let data = Bytes::from(vec![7; 8192]);
            let writes =
                (0..32).map(|n| session.write(file, n * 8192, data.clone(), StableHow::Unstable));
            let written = futures_util::future::join_all(writes).await;
            assert!(written.iter().all(Result::is_ok));
            session.commit(file, 0, 0).await.unwrap();
            assert_eq!(session.getattr(file).await.unwrap().size, 32 * 8192);
            let write = if version == 2 { 8 } else { 7 };
            let counted = session.rpc().counters().procedures[write];
            assert_eq!((counted.ops, counted.errors), (32, 0));
            assert!(counted.bytes_sent > 32 * 8192);
        }
    })
    .unwrap();
}
