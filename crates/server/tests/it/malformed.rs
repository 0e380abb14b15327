//! Calls that are wrong in every way we could think of: an error, never a panic.

use bytes::Bytes;
use proptest::prelude::*;
use server::fuzzing::{engine, engine_survives};
use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{self, DirOp, FileHandle, Procedure as P, Sattr3, StableHow};
use wire::portmap::{Mapping, PROTOCOL_TCP};
use wire::rpc::{AcceptStatus, CallHeader, OpaqueAuth, ReplyHeader};
use wire::rpcbind::{self, Rpcb};
use wire::xdr::{Encode, Void};
use wire::{Procedure, mount, portmap};

use crate::world::{World, XID, credential, mode, split, write_args};

/// Arguments of every procedure, naming `handle`.
pub(crate) fn golden_args(handle: FileHandle) -> Vec<(Procedure, Vec<u8>)> {
    let dir = handle;
    let where_ = DirOp { dir, name: b"new" };
    let what = DirOp { dir, name: b"f" };
    let nfs = |procedure, args: &dyn Encode| (Procedure::Nfs3(procedure), args.to_bytes());
    let mut all = vec![
        nfs(P::Null, &()),
        nfs(P::Getattr, &nfs3::getattr::Args { object: handle }),
        nfs(
            P::Setattr,
            &nfs3::setattr::Args {
                object: handle,
                new_attributes: Sattr3 { mode: Some(0o700), uid: Some(1000), ..Sattr3::default() },
                guard: None,
            },
        ),
        nfs(P::Lookup, &nfs3::lookup::Args { what }),
        nfs(P::Access, &nfs3::access::Args { object: handle, access: 0x3f }),
        nfs(P::Readlink, &nfs3::readlink::Args { symlink: handle }),
        nfs(P::Read, &nfs3::read::Args { file: handle, offset: 0, count: 100 }),
        nfs(P::Write, &write_args(handle, 0, b"hello", StableHow::FileSync)),
        nfs(P::Create, &nfs3::create::Args { where_, how: CreateHow::Guarded(mode(0o644)) }),
        nfs(P::Mkdir, &nfs3::mkdir::Args { where_, attributes: mode(0o755) }),
        nfs(
            P::Symlink,
            &nfs3::symlink::Args {
                where_,
                symlink_attributes: Sattr3::default(),
                symlink_data: b"target",
            },
        ),
        nfs(P::Mknod, &nfs3::mknod::Args { where_, what: MknodData::Fifo(mode(0o600)) }),
        nfs(P::Remove, &nfs3::remove::Args { object: what }),
        nfs(P::Rmdir, &nfs3::rmdir::Args { object: what }),
    ];
    all.extend([
        nfs(P::Rename, &nfs3::rename::Args { from: what, to: where_ }),
        nfs(P::Link, &nfs3::link::Args { file: handle, link: where_ }),
        nfs(P::Readdir, &nfs3::readdir::Args { dir, cookie: 0, cookieverf: [0; 8], count: 4096 }),
        nfs(
            P::Readdirplus,
            &nfs3::readdirplus::Args {
                dir,
                cookie: 0,
                cookieverf: [0; 8],
                dircount: 4096,
                maxcount: 4096,
            },
        ),
        nfs(P::Fsstat, &nfs3::fsstat::Args { fsroot: handle }),
        nfs(P::Fsinfo, &nfs3::fsinfo::Args { fsroot: handle }),
        nfs(P::Pathconf, &nfs3::pathconf::Args { object: handle }),
        nfs(P::Commit, &nfs3::commit::Args { file: handle, offset: 0, count: 0 }),
    ]);
    all.extend(other_args());
    all
}

/// Arguments of MOUNT's and the portmapper's procedures.
fn other_args() -> Vec<(Procedure, Vec<u8>)> {
    let path = mount::DirPath { dirpath: b"/d" }.to_bytes();
    let mapping = Mapping { program: 100_003, version: 3, protocol: PROTOCOL_TCP, port: 0 };
    let mount = mount::Procedure::ALL.iter().flat_map(|&procedure| {
        use mount::Procedure as M;
        let args = match procedure {
            M::Mnt | M::Umnt => path.clone(),
            M::Null | M::Dump | M::Umntall | M::Export => Void::to_bytes(&()),
        };
        [(Procedure::Mount1(procedure), args.clone()), (Procedure::Mount(procedure), args)]
    });
    let portmap = portmap::Procedure::ALL.iter().filter_map(|&procedure| {
        use portmap::Procedure as M;
        let args = match procedure {
            M::Set | M::Unset | M::Getport => mapping.to_bytes(),
            M::Null | M::Dump => Void::to_bytes(&()),
            M::Callit => return None,
        };
        Some((Procedure::Portmap(procedure), args))
    });
    mount.chain(portmap).chain(rpcbind_args()).collect()
}

/// Arguments of what rpcbind serves where there is no clock.
fn rpcbind_args() -> Vec<(Procedure, Vec<u8>)> {
    use rpcbind::Procedure as R;
    let calls =
        Rpcb { program: 100_003, version: 2, netid: b"tcp", addr: b"::1.0.111", owner: b"" };
    let uaddr = rpcbind::Uaddr { uaddr: b"10.0.0.7.8.1" };
    let netbuf = rpcbind::Netbuf { maxlen: 16, buf: &[2, 0, 8, 1, 10, 0, 0, 7] };
    let mut all = Vec::new();
    for &procedure in rpcbind::Procedure::ALL {
        let args = match procedure {
            R::Null | R::Dump => Void::to_bytes(&()),
            R::Set | R::Unset | R::Getaddr | R::Getversaddr => calls.to_bytes(),
            R::Uaddr2taddr => uaddr.to_bytes(),
            R::Taddr2uaddr => netbuf.to_bytes(),
            _ => continue,
        };
        if procedure.is_in_version_3() {
            all.push((Procedure::Rpcbind3(procedure), args.clone()));
        }
        all.push((Procedure::Rpcbind4(procedure), args));
    }
    all
}

/// Whole records of the same calls.
fn golden_records(handle: FileHandle) -> Vec<(Procedure, Vec<u8>)> {
    let body = credential((1000, 100), &[4]);
    golden_args(handle)
        .into_iter()
        .map(|(procedure, args)| {
            let header = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body));
            (procedure, [header.to_bytes(), args].concat())
        })
        .collect()
}

fn header_of(world: &World, record: &[u8]) -> ReplyHeader<'static> {
    let reply = world.send(Bytes::copy_from_slice(record));
    split(&reply.expect("the header is whole")).0
}

#[test]
fn every_procedure_is_in_the_table() {
    let world = World::new();
    let records = golden_records(world.root());
    let procedures = nfs3::Procedure::ALL.len() + 2 * mount::Procedure::ALL.len() + 5 + 7 + 8;
    assert_eq!(records.len(), procedures);
    for (procedure, record) in records {
        let header = header_of(&world, &record);
        assert_eq!(header, ReplyHeader::success(XID), "{procedure}");
    }
}

#[test]
fn arguments_cut_off_anywhere_or_too_long_are_garbage() {
    let world = World::new();
    let garbage = ReplyHeader::accepted(XID, AcceptStatus::GarbageArgs);
    for (procedure, args) in golden_args(world.root()) {
        let record = world.record(procedure, &());
        let cut = (0..args.len()).map(|len| [&record[..], &args[..len]].concat());
        let long = [&record[..], &args, &[0; 4]].concat();
        for wrong in cut.chain([long]) {
            assert_eq!(header_of(&world, &wrong), garbage, "{procedure}");
        }
    }
    assert_eq!(crate::listing::names(&world, world.root()).unwrap().len(), 0);
}

/// Each word of each call in turn is replaced by a number that is wrong in most places.
#[test]
fn no_word_may_be_anything() {
    let root = engine().root();
    for (_, record) in golden_records(root) {
        for at in (0..record.len()).step_by(4) {
            for word in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fffc, 0xffff_ffff_u32] {
                let mut wrong = record.clone();
                wrong[at..at + 4].copy_from_slice(&word.to_be_bytes());
                engine_survives(&wrong);
            }
        }
    }
}

#[test]
fn a_write_that_announces_more_than_it_brings_is_garbage() {
    let world = World::new();
    let file = world.create(world.root(), b"f");
    let args = write_args(file, 0, b"hello", StableHow::Unstable).to_bytes();
    let record = world.record(Procedure::Nfs3(P::Write), &());
    for len in [9_u32, 0x7fff_ffff, u32::MAX] {
        let mut wrong = [&record[..], &args].concat();
        let at = wrong.len() - 12; // the length word before 5 bytes and their padding
        wrong[at..at + 4].copy_from_slice(&len.to_be_bytes());
        let garbage = ReplyHeader::accepted(XID, AcceptStatus::GarbageArgs);
        assert_eq!(header_of(&world, &wrong), garbage);
    }
    assert_eq!(world.getattr(file).size, 0);
}

/// Handles of the fuzzing engine: root, directory, file, symbolic link, none.
fn handles() -> Vec<FileHandle> {
    let root = engine().root();
    let with_id = |id: u8| {
        let mut bytes = root.as_bytes().to_vec();
        bytes[12] = id;
        FileHandle::new(&bytes).unwrap()
    };
    (1..=5).map(with_id).collect()
}

#[derive(Clone, Debug)]
struct Spoilt {
    call: usize,
    handle: usize,
    /// Places and bytes to put there.
    bytes: Vec<(usize, u8)>,
    len: usize,
}

fn spoilt() -> impl Strategy<Value = Spoilt> {
    let bytes = prop::collection::vec((any::<usize>(), any::<u8>()), 0..4);
    let len = prop_oneof![4 => Just(usize::MAX), 1 => 0..400_usize];
    (any::<usize>(), any::<usize>(), bytes, len).prop_map(|(call, handle, bytes, len)| Spoilt {
        call,
        handle,
        bytes,
        len,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Sequences of calls on real files, some bytes of which are changed.
    #[test]
    fn spoilt_calls_do_no_harm(calls in prop::collection::vec(spoilt(), 1..20)) {
        let handles = handles();
        let mut input = Vec::new();
        for spoilt in calls {
            let records = golden_records(handles[spoilt.handle % handles.len()]);
            let (_, mut record) = records[spoilt.call % records.len()].clone();
            for (at, byte) in spoilt.bytes {
                let at = at % record.len();
                record[at] = byte;
            }
            record.truncate(spoilt.len);
            input.extend(u16::try_from(record.len()).unwrap().to_be_bytes());
            input.extend(record);
        }
        engine_survives(&input);
    }
}
