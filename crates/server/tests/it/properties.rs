//! FSSTAT, FSINFO, PATHCONF.

use server::EngineConfig;
use server::store::mem::MemOptions;
use wire::nfs3::fsinfo::{FSF_CANSETTIME, FSF_HOMOGENEOUS, FSF_LINK, FSF_SYMLINK};
use wire::nfs3::{self, FileHandle, NfsStat3, Procedure as P};

use crate::world::{World, status};

#[test]
fn fsstat_counts_what_is_there() {
    let options = MemOptions { bytes_max: 1 << 20, files_max: 100, ..MemOptions::default() };
    let world = World::with(options, EngineConfig::default());
    let fsroot = world.root();
    let fsstat = || -> nfs3::fsstat::Reply { world.nfs(P::Fsstat, &nfs3::fsstat::Args { fsroot }) };
    let before = fsstat().unwrap();
    assert_eq!((before.tbytes, before.fbytes), (1 << 20, 1 << 20));
    assert_eq!((before.tfiles, before.ffiles), (100, 99));
    assert_eq!(before.obj_attributes, Some(world.getattr(fsroot)));
    let file = world.create(fsroot, b"f");
    let named = fsstat().unwrap();
    world.write(file, 0, &[0; 5000]).unwrap();
    let after = fsstat().unwrap();
    assert_eq!(named.fbytes - after.fbytes, 8192);
    assert_eq!((after.ffiles, after.afiles), (98, 98));
    assert_eq!(after.abytes, after.fbytes);
}

#[test]
fn fsinfo_offers_what_is_configured() {
    let config = EngineConfig { transfer_bytes_max: 256 * 1024, ..EngineConfig::default() };
    let world = World::with(MemOptions::default(), config);
    let fsroot = world.root();
    let reply: nfs3::fsinfo::Reply = world.nfs(P::Fsinfo, &nfs3::fsinfo::Args { fsroot });
    let info = reply.unwrap();
    let transfer = (info.rtmax, info.rtpref, info.wtmax, info.wtpref);
    assert_eq!(transfer, (1 << 18, 1 << 18, 1 << 18, 1 << 18));
    assert_eq!((info.rtmult, info.wtmult, info.dtpref), (4096, 4096, 1 << 16));
    assert_eq!(info.maxfilesize, i64::MAX.cast_unsigned());
    assert_eq!((info.time_delta.seconds, info.time_delta.nseconds), (0, 1));
    let all = FSF_LINK | FSF_SYMLINK | FSF_HOMOGENEOUS | FSF_CANSETTIME;
    assert_eq!(info.properties, all);
    assert_eq!(info.obj_attributes, Some(world.getattr(fsroot)));
}

#[test]
fn pathconf_tells_the_limits() {
    let world = World::new();
    let object = world.root();
    let reply: nfs3::pathconf::Reply = world.nfs(P::Pathconf, &nfs3::pathconf::Args { object });
    let conf = reply.unwrap();
    assert_eq!((conf.linkmax, conf.name_max), (65_000, 255));
    assert!(conf.no_trunc && conf.chown_restricted && conf.case_preserving);
    assert!(!conf.case_insensitive);
}

#[test]
fn nothing_is_stated_about_files_that_are_gone() {
    let world = World::new();
    let root = world.root();
    let gone = world.create(root, b"f");
    world.remove(root, b"f").unwrap();
    let all = |handle: FileHandle| {
        let fsroot = handle;
        let object = handle;
        let stat: nfs3::fsstat::Reply = world.nfs(P::Fsstat, &nfs3::fsstat::Args { fsroot });
        let info: nfs3::fsinfo::Reply = world.nfs(P::Fsinfo, &nfs3::fsinfo::Args { fsroot });
        let conf: nfs3::pathconf::Reply = world.nfs(P::Pathconf, &nfs3::pathconf::Args { object });
        [status(stat), status(info), status(conf)]
    };
    assert_eq!(all(gone), [Err(NfsStat3::Stale); 3]);
    let bad = FileHandle::new(b"?").unwrap();
    assert_eq!(all(bad), [Err(NfsStat3::BadHandle); 3]);
}
