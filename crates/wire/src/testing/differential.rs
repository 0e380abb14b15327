//! Our bytes are those of another implementation, the crate `nfs3_types`, for random values of
//! every message of NFS version 3 and the lists of MOUNT and the portmapper.

use nfs3_types::nfs3 as theirs;
use nfs3_types::xdr_codec::{List as TheirList, Opaque, Pack, Unpack, Void};
use proptest::prelude::*;
use theirs::{Nfs3Option, Nfs3Result};

use crate::nfs3::*;
use crate::xdr::{Encode, List};
use crate::{mount, portmap};

use super::{Entropy, Sample};

fn packed(theirs: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::new();
    theirs.pack(&mut bytes).unwrap();
    bytes
}

/// Compares a random value with what `convert` makes of it.
#[track_caller]
fn compare<'a, T: Encode + Sample<'a>, U: Pack>(
    entropy: &mut Entropy<'a>,
    convert: impl Fn(T) -> U,
) {
    let ours = T::sample(entropy);
    let bytes = ours.to_bytes();
    assert_eq!(bytes, packed(&convert(ours)));
}

/// Compares both sides of a reply.
#[track_caller]
fn compare_reply<'a, T, D, U, V>(
    entropy: &mut Entropy<'a>,
    convert: impl Fn(T) -> U,
    convert_detail: impl Fn(D) -> V,
) where
    T: Encode + Sample<'a>,
    D: Encode + Sample<'a>,
    U: Pack,
    V: Pack,
{
    let ok = T::sample(entropy);
    let bytes = [0u32.to_bytes(), ok.to_bytes()].concat(); // after the status NFS3_OK
    assert_eq!(bytes, packed(&Nfs3Result::<U, V>::Ok(convert(ok))));
    let status = *entropy.choose(NfsStat3::LISTED);
    let detail = D::sample(entropy);
    let failure = Failure { status, detail };
    let bytes = failure.to_bytes();
    let detail = convert_detail(failure.detail);
    let theirs = Nfs3Result::<U, V>::Err((by_code(status.code()), detail));
    assert_eq!(bytes, packed(&theirs));
}

/// Their value of an enumeration with this number.
fn by_code<T: Unpack>(code: u32) -> T {
    T::unpack(&mut &code.to_be_bytes()[..]).unwrap().0
}

fn opaque(bytes: &[u8]) -> Opaque<'static> {
    Opaque::owned(bytes.to_vec())
}

fn option<T, U: Pack + Unpack>(ours: Option<T>, convert: impl Fn(T) -> U) -> Nfs3Option<U> {
    ours.map_or(Nfs3Option::None, |value| Nfs3Option::Some(convert(value)))
}

fn list<T, U>(ours: List<T>, convert: impl Fn(T) -> U) -> TheirList<U> {
    TheirList(ours.into_iter().map(convert).collect())
}

fn fh(ours: FileHandle) -> theirs::nfs_fh3 {
    let data = opaque(ours.as_bytes());
    theirs::nfs_fh3 { data }
}

fn time(ours: NfsTime) -> theirs::nfstime3 {
    theirs::nfstime3 { seconds: ours.seconds, nseconds: ours.nseconds }
}

fn spec(ours: Specdata) -> theirs::specdata3 {
    theirs::specdata3 { specdata1: ours.specdata1, specdata2: ours.specdata2 }
}

fn fattr(ours: Fattr3) -> theirs::fattr3 {
    theirs::fattr3 {
        type_: by_code(ours.ftype.code()),
        mode: ours.mode,
        nlink: ours.nlink,
        uid: ours.uid,
        gid: ours.gid,
        size: ours.size,
        used: ours.used,
        rdev: spec(ours.rdev),
        fsid: ours.fsid,
        fileid: ours.fileid,
        atime: time(ours.atime),
        mtime: time(ours.mtime),
        ctime: time(ours.ctime),
    }
}

fn attr(ours: PostOpAttr) -> theirs::post_op_attr {
    option(ours, fattr)
}

fn wcc(ours: WccData) -> theirs::wcc_data {
    theirs::wcc_data {
        before: option(ours.before, |before| theirs::wcc_attr {
            size: before.size,
            mtime: time(before.mtime),
            ctime: time(before.ctime),
        }),
        after: attr(ours.after),
    }
}

fn sattr(ours: Sattr3) -> theirs::sattr3 {
    theirs::sattr3 {
        mode: option(ours.mode, |mode| mode),
        uid: option(ours.uid, |uid| uid),
        gid: option(ours.gid, |gid| gid),
        size: option(ours.size, |size| size),
        atime: match ours.atime {
            SetTime::DontChange => theirs::set_atime::DONT_CHANGE,
            SetTime::ServerTime => theirs::set_atime::SET_TO_SERVER_TIME,
            SetTime::ClientTime(at) => theirs::set_atime::SET_TO_CLIENT_TIME(time(at)),
        },
        mtime: match ours.mtime {
            SetTime::DontChange => theirs::set_mtime::DONT_CHANGE,
            SetTime::ServerTime => theirs::set_mtime::SET_TO_SERVER_TIME,
            SetTime::ClientTime(at) => theirs::set_mtime::SET_TO_CLIENT_TIME(time(at)),
        },
    }
}

fn dir_op(ours: DirOp<'_>) -> theirs::diropargs3<'static> {
    theirs::diropargs3 { dir: fh(ours.dir), name: theirs::filename3(opaque(ours.name)) }
}

/// What CREATE, MKDIR, SYMLINK and MKNOD return: the same bytes under four names.
fn new_object(ours: NewObject) -> theirs::CREATE3resok {
    theirs::CREATE3resok {
        obj: option(ours.obj, fh),
        obj_attributes: attr(ours.obj_attributes),
        dir_wcc: wcc(ours.dir_wcc),
    }
}

fn device(ours: mknod::DeviceData) -> theirs::devicedata3 {
    theirs::devicedata3 { dev_attributes: sattr(ours.dev_attributes), spec: spec(ours.spec) }
}

proptest! {
    #[test]
    fn arguments_about_files(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
        let entropy = &mut Entropy::new(&bytes);
        compare(entropy, |a: getattr::Args| theirs::GETATTR3args { object: fh(a.object) });
        compare(entropy, |a: setattr::Args| theirs::SETATTR3args {
            object: fh(a.object),
            new_attributes: sattr(a.new_attributes),
            guard: option(a.guard, time),
        });
        compare(entropy, |a: access::Args| theirs::ACCESS3args {
            object: fh(a.object),
            access: a.access,
        });
        compare(entropy, |a: readlink::Args| theirs::READLINK3args { symlink: fh(a.symlink) });
        compare(entropy, |a: read::Args| theirs::READ3args {
            file: fh(a.file),
            offset: a.offset,
            count: a.count,
        });
        compare(entropy, |a: write::Args<'_>| theirs::WRITE3args {
            file: fh(a.file),
            offset: a.offset,
            count: a.count,
            stable: by_code(a.stable.code()),
            data: opaque(a.data),
        });
        compare(entropy, |a: commit::Args| theirs::COMMIT3args {
            file: fh(a.file),
            offset: a.offset,
            count: a.count,
        });
    }

    #[test]
    fn arguments_about_directories(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
        let entropy = &mut Entropy::new(&bytes);
        compare(entropy, |a: lookup::Args<'_>| theirs::LOOKUP3args { what: dir_op(a.what) });
        compare(entropy, |a: create::Args<'_>| theirs::CREATE3args {
            where_: dir_op(a.where_),
            how: match a.how {
                create::CreateHow::Unchecked(new) => theirs::createhow3::UNCHECKED(sattr(new)),
                create::CreateHow::Guarded(new) => theirs::createhow3::GUARDED(sattr(new)),
                create::CreateHow::Exclusive(verf) => {
                    theirs::createhow3::EXCLUSIVE(theirs::createverf3(verf))
                }
            },
        });
        compare(entropy, |a: mkdir::Args<'_>| theirs::MKDIR3args {
            where_: dir_op(a.where_),
            attributes: sattr(a.attributes),
        });
        compare(entropy, |a: symlink::Args<'_>| theirs::SYMLINK3args {
            where_: dir_op(a.where_),
            symlink: theirs::symlinkdata3 {
                symlink_attributes: sattr(a.symlink_attributes),
                symlink_data: theirs::nfspath3(opaque(a.symlink_data)),
            },
        });
        compare(entropy, |a: remove::Args<'_>| theirs::REMOVE3args { object: dir_op(a.object) });
        compare(entropy, |a: rmdir::Args<'_>| theirs::RMDIR3args { object: dir_op(a.object) });
        compare(entropy, |a: rename::Args<'_>| theirs::RENAME3args {
            from: dir_op(a.from),
            to: dir_op(a.to),
        });
        compare(entropy, |a: link::Args<'_>| theirs::LINK3args {
            file: fh(a.file),
            link: dir_op(a.link),
        });
        compare(entropy, |a: readdir::Args| theirs::READDIR3args {
            dir: fh(a.dir),
            cookie: a.cookie,
            cookieverf: theirs::cookieverf3(a.cookieverf),
            count: a.count,
        });
        compare(entropy, |a: readdirplus::Args| theirs::READDIRPLUS3args {
            dir: fh(a.dir),
            cookie: a.cookie,
            cookieverf: theirs::cookieverf3(a.cookieverf),
            dircount: a.dircount,
            maxcount: a.maxcount,
        });
    }

    #[test]
    fn arguments_of_mknod(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use mknod::MknodData as M;
        let args = mknod::Args::sample(&mut Entropy::new(&bytes));
        let what = match args.what {
            M::Chr(data) => theirs::mknoddata3::NF3CHR(device(data)),
            M::Blk(data) => theirs::mknoddata3::NF3BLK(device(data)),
            M::Sock(new) => theirs::mknoddata3::NF3SOCK(sattr(new)),
            M::Fifo(new) => theirs::mknoddata3::NF3FIFO(sattr(new)),
            M::Reg | M::Dir | M::Lnk => return Ok(()), // nfs3_types cannot encode these
        };
        let where_ = dir_op(args.where_);
        assert_eq!(args.to_bytes(), packed(&theirs::MKNOD3args { where_, what }));
    }

    #[test]
    fn arguments_about_file_systems(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let entropy = &mut Entropy::new(&bytes);
        compare(entropy, |a: fsstat::Args| theirs::FSSTAT3args { fsroot: fh(a.fsroot) });
        compare(entropy, |a: fsinfo::Args| theirs::FSINFO3args { fsroot: fh(a.fsroot) });
        compare(entropy, |a: pathconf::Args| theirs::PATHCONF3args { object: fh(a.object) });
    }

    #[test]
    fn replies_about_files(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let entropy = &mut Entropy::new(&bytes);
        compare_reply(
            entropy,
            |r: getattr::ReplyOk| theirs::GETATTR3resok {
                obj_attributes: fattr(r.obj_attributes),
            },
            |(): ()| Void,
        );
        compare_reply(
            entropy,
            |r: setattr::ReplyOk| theirs::SETATTR3resok { obj_wcc: wcc(r.obj_wcc) },
            |d| theirs::SETATTR3resfail { obj_wcc: wcc(d) },
        );
        compare_reply(
            entropy,
            |r: access::ReplyOk| theirs::ACCESS3resok {
                obj_attributes: attr(r.obj_attributes),
                access: r.access,
            },
            |d| theirs::ACCESS3resfail { obj_attributes: attr(d) },
        );
        compare_reply(
            entropy,
            |r: readlink::ReplyOk<'_>| theirs::READLINK3resok {
                symlink_attributes: attr(r.symlink_attributes),
                data: theirs::nfspath3(opaque(r.data)),
            },
            |d| theirs::READLINK3resfail { symlink_attributes: attr(d) },
        );
        compare_reply(
            entropy,
            |r: read::ReplyOk<'_>| theirs::READ3resok {
                file_attributes: attr(r.file_attributes),
                count: r.count,
                eof: r.eof,
                data: opaque(r.data),
            },
            |d| theirs::READ3resfail { file_attributes: attr(d) },
        );
        compare_reply(
            entropy,
            |r: write::ReplyOk| theirs::WRITE3resok {
                file_wcc: wcc(r.file_wcc),
                count: r.count,
                committed: by_code(r.committed.code()),
                verf: theirs::writeverf3(r.verf),
            },
            |d| theirs::WRITE3resfail { file_wcc: wcc(d) },
        );
        compare_reply(
            entropy,
            |r: commit::ReplyOk| theirs::COMMIT3resok {
                file_wcc: wcc(r.file_wcc),
                verf: theirs::writeverf3(r.verf),
            },
            |d| theirs::COMMIT3resfail { file_wcc: wcc(d) },
        );
    }

    #[test]
    fn replies_about_directories(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let entropy = &mut Entropy::new(&bytes);
        compare_reply(
            entropy,
            |r: lookup::ReplyOk| theirs::LOOKUP3resok {
                object: fh(r.object),
                obj_attributes: attr(r.obj_attributes),
                dir_attributes: attr(r.dir_attributes),
            },
            |d| theirs::LOOKUP3resfail { dir_attributes: attr(d) },
        );
        compare_reply(entropy, new_object, |d| theirs::CREATE3resfail { dir_wcc: wcc(d) });
        compare_reply(
            entropy,
            |r: remove::ReplyOk| theirs::REMOVE3resok { dir_wcc: wcc(r.dir_wcc) },
            |d| theirs::REMOVE3resfail { dir_wcc: wcc(d) },
        );
        compare_reply(
            entropy,
            |r: rmdir::ReplyOk| theirs::RMDIR3resok { dir_wcc: wcc(r.dir_wcc) },
            |d| theirs::RMDIR3resfail { dir_wcc: wcc(d) },
        );
        compare_reply(
            entropy,
            |r: rename::ReplyOk| theirs::RENAME3resok {
                fromdir_wcc: wcc(r.fromdir_wcc),
                todir_wcc: wcc(r.todir_wcc),
            },
            |d: rename::ReplyOk| theirs::RENAME3resfail {
                fromdir_wcc: wcc(d.fromdir_wcc),
                todir_wcc: wcc(d.todir_wcc),
            },
        );
        compare_reply(
            entropy,
            |r: link::ReplyOk| theirs::LINK3resok {
                file_attributes: attr(r.file_attributes),
                linkdir_wcc: wcc(r.linkdir_wcc),
            },
            |d: link::ReplyOk| theirs::LINK3resfail {
                file_attributes: attr(d.file_attributes),
                linkdir_wcc: wcc(d.linkdir_wcc),
            },
        );
    }

    #[test]
    fn directory_listings(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let entropy = &mut Entropy::new(&bytes);
        compare_reply(
            entropy,
            |r: readdir::ReplyOk<'_>| theirs::READDIR3resok {
                dir_attributes: attr(r.dir_attributes),
                cookieverf: theirs::cookieverf3(r.cookieverf),
                reply: theirs::dirlist3 {
                    entries: list(r.entries, |entry| theirs::entry3 {
                        fileid: entry.fileid,
                        name: theirs::filename3(opaque(entry.name)),
                        cookie: entry.cookie,
                    }),
                    eof: r.eof,
                },
            },
            |d| theirs::READDIR3resfail { dir_attributes: attr(d) },
        );
        compare_reply(
            entropy,
            |r: readdirplus::ReplyOk<'_>| theirs::READDIRPLUS3resok {
                dir_attributes: attr(r.dir_attributes),
                cookieverf: theirs::cookieverf3(r.cookieverf),
                reply: theirs::dirlistplus3 {
                    entries: list(r.entries, |entry| theirs::entryplus3 {
                        fileid: entry.fileid,
                        name: theirs::filename3(opaque(entry.name)),
                        cookie: entry.cookie,
                        name_attributes: attr(entry.name_attributes),
                        name_handle: option(entry.name_handle, fh),
                    }),
                    eof: r.eof,
                },
            },
            |d| theirs::READDIRPLUS3resfail { dir_attributes: attr(d) },
        );
    }

    #[test]
    fn replies_about_file_systems(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let entropy = &mut Entropy::new(&bytes);
        compare_reply(
            entropy,
            |r: fsstat::ReplyOk| theirs::FSSTAT3resok {
                obj_attributes: attr(r.obj_attributes),
                tbytes: r.tbytes,
                fbytes: r.fbytes,
                abytes: r.abytes,
                tfiles: r.tfiles,
                ffiles: r.ffiles,
                afiles: r.afiles,
                invarsec: r.invarsec,
            },
            |d| theirs::FSSTAT3resfail { obj_attributes: attr(d) },
        );
        compare_reply(
            entropy,
            |r: fsinfo::ReplyOk| theirs::FSINFO3resok {
                obj_attributes: attr(r.obj_attributes),
                rtmax: r.rtmax,
                rtpref: r.rtpref,
                rtmult: r.rtmult,
                wtmax: r.wtmax,
                wtpref: r.wtpref,
                wtmult: r.wtmult,
                dtpref: r.dtpref,
                maxfilesize: r.maxfilesize,
                time_delta: time(r.time_delta),
                properties: r.properties,
            },
            |d| theirs::FSINFO3resfail { obj_attributes: attr(d) },
        );
        compare_reply(
            entropy,
            |r: pathconf::ReplyOk| theirs::PATHCONF3resok {
                obj_attributes: attr(r.obj_attributes),
                linkmax: r.linkmax,
                name_max: r.name_max,
                no_trunc: r.no_trunc,
                chown_restricted: r.chown_restricted,
                case_insensitive: r.case_insensitive,
                case_preserving: r.case_preserving,
            },
            |d| theirs::PATHCONF3resfail { obj_attributes: attr(d) },
        );
    }

    #[test]
    fn mount_and_portmap_messages(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        use nfs3_types::mount as their_mount;
        use nfs3_types::portmap as their_portmap;
        let entropy = &mut Entropy::new(&bytes);
        let path = |bytes: &[u8]| their_mount::dirpath(opaque(bytes));
        let name = |bytes: &[u8]| their_mount::name(opaque(bytes));
        compare(entropy, |a: mount::DirPath<'_>| path(a.dirpath));
        compare(entropy, |r: mount::MntOk| their_mount::mountres3_ok {
            fhandle: their_mount::fhandle3(opaque(r.fhandle.as_bytes())),
            auth_flavors: r.auth_flavors,
        });
        compare(entropy, |r: mount::DumpReply<'_>| {
            list(r.mounts, |entry| their_mount::mountbody {
                ml_hostname: name(entry.hostname),
                ml_directory: path(entry.directory),
            })
        });
        compare(entropy, |r: mount::ExportReply<'_>| {
            list(r.exports, |export| their_mount::export_node {
                ex_dir: path(export.dir),
                ex_groups: list(export.groups, |group| name(group.name)),
            })
        });
        compare(entropy, |r: portmap::DumpReply| {
            list(r.mappings, |mapping| their_portmap::mapping {
                prog: mapping.program,
                vers: mapping.version,
                prot: mapping.protocol,
                port: mapping.port,
            })
        });
        compare(entropy, |a: portmap::CallitArgs<'_>| their_portmap::call_args {
            prog: a.program,
            vers: a.version,
            proc: a.procedure,
            args: opaque(a.args),
        });
    }
}
