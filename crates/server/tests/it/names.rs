//! LOOKUP, CREATE, MKDIR, SYMLINK, READLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK.

use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::{DeviceData, MknodData};
use wire::nfs3::{
    self, DirOp, FType, NfsStat3, NfsTime, Procedure as P, Sattr3, SetTime, Specdata, WccData,
};

use server::EngineConfig;
use server::store::mem::MemOptions;

use crate::world::{START_SECS, World, mode, size, status};

#[test]
fn what_was_made_is_found() {
    let world = World::new();
    let root = world.root();
    let made = world
        .watched(
            root,
            || world.create_how(root, b"f", CreateHow::Guarded(mode(0o640))),
            |reply| reply.unwrap().dir_wcc,
        )
        .unwrap();
    let attributes = made.obj_attributes.unwrap();
    assert_eq!(attributes.ftype, FType::Reg);
    assert_eq!((attributes.mode, attributes.nlink), (0o640, 1));
    assert_eq!((attributes.uid, attributes.gid), (1000, 100));
    assert_eq!((attributes.size, attributes.used), (0, 0));
    let start = NfsTime { seconds: START_SECS + 1, nseconds: 0 };
    assert_eq!((attributes.mtime, attributes.ctime), (start, start));

    let found = world.lookup(root, b"f").unwrap();
    assert_eq!(Some(found.object), made.obj);
    assert_eq!(found.obj_attributes, Some(attributes));
    assert_eq!(found.dir_attributes, Some(world.getattr(root)));
    assert_eq!(world.getattr(found.object), attributes);
}

#[test]
fn what_is_missing_is_stated_with_the_directorys_attributes() {
    let world = World::new();
    let root = world.root();
    let failure = world.lookup(root, b"f").unwrap_err();
    assert_eq!(failure.status, NfsStat3::NoEnt);
    assert_eq!(failure.detail, Some(world.getattr(root)));
    let file = world.create(root, b"f");
    let failure = world.lookup(file, b"x").unwrap_err();
    assert_eq!(failure.status, NfsStat3::NotDir);
    assert_eq!(failure.detail, Some(world.getattr(file)));
}

#[test]
fn dots_lead_to_the_directory_and_its_parent_and_never_above_the_root() {
    let world = World::new();
    let root = world.root();
    let dir = world.mkdir(root, b"d");
    let below = world.mkdir(dir, b"e");
    let found = |dir, name: &[u8]| world.lookup(dir, name).unwrap().object;
    assert_eq!(found(below, b"."), below);
    assert_eq!(found(below, b".."), dir);
    assert_eq!(found(dir, b".."), root);
    assert_eq!(found(root, b".."), root);
}

#[test]
fn unchecked_create_takes_what_is_there_and_guarded_does_not() {
    let world = World::new();
    let root = world.root();
    let file = world.create(root, b"f");
    world.write(file, 0, b"contents").unwrap();
    let again = world.create_how(root, b"f", CreateHow::Unchecked(mode(0)));
    let again = again.unwrap();
    assert_eq!(again.obj, Some(file));
    assert_eq!(again.obj_attributes.unwrap().size, 8);
    let cut = world.create_how(root, b"f", CreateHow::Unchecked(size(0)));
    assert_eq!(cut.unwrap().obj_attributes.unwrap().size, 0);
    let failure = world.watched(
        root,
        || world.create_how(root, b"f", CreateHow::Guarded(mode(0o644))),
        |reply| reply.unwrap_err().detail,
    );
    assert_eq!(status(failure), Err(NfsStat3::Exist));
    world.mkdir(root, b"d");
    let over = world.create_how(root, b"d", CreateHow::Unchecked(mode(0)));
    assert_eq!(status(over), Err(NfsStat3::Exist));
}

#[test]
fn an_exclusive_create_may_be_repeated_but_not_by_another() {
    let world = World::new();
    let root = world.root();
    let exclusive = |verifier| world.create_how(root, b"f", CreateHow::Exclusive(verifier));
    let first = exclusive([1; 8]).unwrap();
    world.write(first.obj.unwrap(), 0, b"x").unwrap();
    assert_eq!(exclusive([1; 8]).unwrap().obj, first.obj);
    assert_eq!(status(exclusive([2; 8])), Err(NfsStat3::Exist));
    // A file that was not made exclusively has no verifier to match.
    world.create(root, b"g");
    let other = world.create_how(root, b"g", CreateHow::Exclusive([0; 8]));
    assert_eq!(status(other), Err(NfsStat3::Exist));
}

#[test]
fn directories_count_their_names() {
    let world = World::new();
    let root = world.root();
    let links = |handle| world.getattr(handle).nlink;
    assert_eq!(links(root), 2);
    let dir = world.mkdir(root, b"d");
    world.mkdir(dir, b"e");
    assert_eq!((links(root), links(dir)), (3, 3));
    let failure =
        world.watched(root, || world.mkdir_reply(root, b"d"), |reply| reply.unwrap_err().detail);
    assert_eq!(status(failure), Err(NfsStat3::Exist));
    let failure =
        world.watched(root, || world.rmdir(root, b"d"), |reply| reply.unwrap_err().detail);
    assert_eq!(status(failure), Err(NfsStat3::NotEmpty));
    world.rmdir(dir, b"e").unwrap();
    let removed = world.watched(root, || world.rmdir(root, b"d"), |reply| reply.unwrap().dir_wcc);
    assert_eq!(status(removed), Ok(()));
    assert_eq!(links(root), 2);
    assert_eq!(world.getattr_status(dir), Err(NfsStat3::Stale));
    let in_removed = world.create_how(dir, b"f", CreateHow::Guarded(mode(0)));
    let failure = in_removed.unwrap_err();
    assert_eq!(failure.status, NfsStat3::Stale);
    assert_eq!(failure.detail, WccData::default());
    world.audit();
}

#[test]
fn symbolic_links_keep_what_they_are_given() {
    let world = World::new();
    let root = world.root();
    let made = world
        .watched(
            root,
            || world.symlink(root, b"s", b"../any where"),
            |reply| reply.unwrap().dir_wcc,
        )
        .unwrap();
    let attributes = made.obj_attributes.unwrap();
    assert_eq!(attributes.ftype, FType::Lnk);
    assert_eq!((attributes.mode, attributes.size), (0o777, 12));
    let readlink = |symlink| -> nfs3::readlink::Reply<'static> {
        world.nfs(P::Readlink, &nfs3::readlink::Args { symlink })
    };
    let read = readlink(made.obj.unwrap()).unwrap();
    assert_eq!(read.data, b"../any where");
    assert_eq!(read.symlink_attributes, Some(attributes));
    let failure = readlink(root).unwrap_err();
    assert_eq!(failure.status, NfsStat3::Inval);
    assert_eq!(failure.detail, Some(world.getattr(root)));
    let empty = world.symlink(root, b"t", b"");
    assert_eq!(status(empty), Err(NfsStat3::Inval));
    let long = world.symlink(root, b"t", &[b'a'; 4096]);
    assert_eq!(status(long), Err(NfsStat3::NameTooLong));
}

#[test]
fn special_files_are_made_devices_by_root_alone() {
    let user = World::new();
    let mknod = |world: &World, name: &[u8], what| -> nfs3::mknod::Reply {
        let dir = world.root();
        let where_ = DirOp { dir, name };
        world.nfs(P::Mknod, &nfs3::mknod::Args { where_, what })
    };
    let device = MknodData::Blk(DeviceData {
        dev_attributes: mode(0o600),
        spec: Specdata { specdata1: 8, specdata2: 1 },
    });
    let made = user.watched(
        user.root(),
        || mknod(&user, b"p", MknodData::Fifo(mode(0o622))),
        |reply| reply.unwrap().dir_wcc,
    );
    let attributes = made.unwrap().obj_attributes.unwrap();
    assert_eq!((attributes.ftype, attributes.mode), (FType::Fifo, 0o622));
    let socket = mknod(&user, b"s", MknodData::Sock(mode(0o600))).unwrap();
    assert_eq!(socket.obj_attributes.unwrap().ftype, FType::Sock);
    let refused =
        user.watched(user.root(), || mknod(&user, b"b", device), |reply| reply.unwrap_err().detail);
    assert_eq!(status(refused), Err(NfsStat3::Perm));
    assert_eq!(status(mknod(&user, b"r", MknodData::Reg)), Err(NfsStat3::BadType));

    let root = World::new().with_user(0, 0);
    let made = mknod(&root, b"b", device).unwrap();
    let attributes = made.obj_attributes.unwrap();
    assert_eq!(attributes.ftype, FType::Blk);
    assert_eq!((attributes.rdev.specdata1, attributes.rdev.specdata2), (8, 1));
}

#[test]
fn a_removed_file_is_stale() {
    let world = World::new();
    let root = world.root();
    let file = world.create(root, b"f");
    let removed = world.watched(root, || world.remove(root, b"f"), |reply| reply.unwrap().dir_wcc);
    assert_eq!(status(removed), Ok(()));
    assert_eq!(world.getattr_status(file), Err(NfsStat3::Stale));
    assert_eq!(status(world.write(file, 0, b"x")), Err(NfsStat3::Stale));
    assert_eq!(status(world.read(file, 0, 1)), Err(NfsStat3::Stale));
    let missing =
        world.watched(root, || world.remove(root, b"f"), |reply| reply.unwrap_err().detail);
    assert_eq!(status(missing), Err(NfsStat3::NoEnt));
    world.mkdir(root, b"d");
    assert_eq!(status(world.remove(root, b"d")), Err(NfsStat3::IsDir));
    world.create(root, b"g");
    assert_eq!(status(world.rmdir(root, b"g")), Err(NfsStat3::NotDir));
    world.audit();
}

#[test]
fn a_file_lives_as_long_as_it_has_a_name() {
    let world = World::new();
    let root = world.root();
    let file = world.create(root, b"f");
    let linked = world
        .watched(root, || world.link(file, root, b"g"), |reply| reply.unwrap().linkdir_wcc)
        .unwrap();
    assert_eq!(linked.file_attributes, Some(world.getattr(file)));
    assert_eq!(world.getattr(file).nlink, 2);
    world.remove(root, b"f").unwrap();
    assert_eq!(world.getattr(file).nlink, 1);
    assert_eq!(world.lookup(root, b"g").unwrap().object, file);
    world.remove(root, b"g").unwrap();
    assert_eq!(world.getattr_status(file), Err(NfsStat3::Stale));
}

#[test]
fn links_are_refused_with_what_is_known() {
    let world = World::new();
    let root = world.root();
    let file = world.create(root, b"f");
    let dir = world.mkdir(root, b"d");
    let failure = world.link(file, root, b"d").unwrap_err();
    assert_eq!(failure.status, NfsStat3::Exist);
    assert_eq!(failure.detail.file_attributes, Some(world.getattr(file)));
    assert_eq!(failure.detail.linkdir_wcc.after, Some(world.getattr(root)));
    let to_directory = world.link(dir, root, b"e");
    assert_eq!(status(to_directory), Err(NfsStat3::Inval));
    assert_eq!(status(world.link(file, file, b"x")), Err(NfsStat3::NotDir));
    let dots = world.link(file, root, b"..").unwrap_err();
    assert_eq!(dots.status, NfsStat3::Exist);
    assert_eq!(dots.detail.file_attributes, Some(world.getattr(file)));
    assert_eq!(dots.detail.linkdir_wcc.after, Some(world.getattr(root)));
}

#[test]
fn a_rename_moves_and_replaces() {
    let world = World::new();
    let root = world.root();
    let (from, to) = (world.mkdir(root, b"a"), world.mkdir(root, b"b"));
    let file = world.create(from, b"f");
    let other = world.create(to, b"g");
    let from_before = world.getattr(from);
    let renamed = world
        .watched(to, || world.rename((from, b"f"), (to, b"g")), |reply| reply.unwrap().todir_wcc)
        .unwrap();
    assert_eq!(renamed.fromdir_wcc.before, Some((&from_before).into()));
    assert_eq!(renamed.fromdir_wcc.after, Some(world.getattr(from)));
    assert_eq!(world.lookup(to, b"g").unwrap().object, file);
    assert_eq!(world.getattr_status(other), Err(NfsStat3::Stale));
    let failure = world.rename((from, b"f"), (to, b"g")).unwrap_err();
    assert_eq!(failure.status, NfsStat3::NoEnt);
    assert_eq!(failure.detail.fromdir_wcc.after, Some(world.getattr(from)));
    assert_eq!(failure.detail.todir_wcc.after, Some(world.getattr(to)));
    world.audit();
}

#[test]
fn directories_move_with_their_parent_and_replace_only_empty_ones() {
    let world = World::new();
    let root = world.root();
    let (a, b) = (world.mkdir(root, b"a"), world.mkdir(root, b"b"));
    let moved = world.mkdir(a, b"m");
    let full = world.mkdir(b, b"full");
    let file = world.create(full, b"f");
    let rename = |from, to| status(world.rename(from, to));
    assert_eq!(rename((a, b"m"), (b, b"full")), Err(NfsStat3::NotEmpty));
    assert_eq!(rename((a, b"m"), (full, b"f")), Err(NfsStat3::NotDir));
    assert_eq!(rename((full, b"f"), (a, b"m")), Err(NfsStat3::IsDir));
    world.remove(full, b"f").unwrap();
    assert_eq!(world.getattr_status(file), Err(NfsStat3::Stale));
    assert_eq!(rename((a, b"m"), (b, b"full")), Ok(()));
    assert_eq!(world.lookup(moved, b"..").unwrap().object, b);
    assert_eq!(world.getattr_status(full), Err(NfsStat3::Stale));
    assert_eq!((world.getattr(a).nlink, world.getattr(b).nlink), (2, 3));
    world.audit();
}

#[test]
fn a_directory_does_not_go_into_itself() {
    let world = World::new();
    let root = world.root();
    let a = world.mkdir(root, b"a");
    let b = world.mkdir(a, b"b");
    let c = world.mkdir(b, b"c");
    for (dir, name) in [(a, b"x"), (b, b"x"), (c, b"x"), (a, b"b")] {
        let renamed = world.rename((root, b"a"), (dir, name));
        assert_eq!(status(renamed), Err(NfsStat3::Inval));
    }
    let dots = world.rename((a, b".."), (root, b"x"));
    assert_eq!(status(dots), Err(NfsStat3::Inval));
    world.audit();
}

#[test]
fn two_names_of_one_file_are_left_alone_by_a_rename() {
    let world = World::new();
    let root = world.root();
    let file = world.create(root, b"f");
    world.link(file, root, b"g").unwrap();
    world.rename((root, b"f"), (root, b"g")).unwrap();
    world.rename((root, b"f"), (root, b"f")).unwrap();
    assert_eq!(world.lookup(root, b"f").unwrap().object, file);
    assert_eq!(world.lookup(root, b"g").unwrap().object, file);
    assert_eq!(world.getattr(file).nlink, 2);
}

#[test]
fn names_that_cannot_be_are_refused_with_attributes() {
    let world = World::new();
    let root = world.root();
    let after = world.getattr(root);
    let create = |name: &[u8]| {
        let failure = world.create_how(root, name, CreateHow::Guarded(mode(0)));
        let failure = failure.unwrap_err();
        assert_eq!(failure.detail.after, Some(after));
        failure.status
    };
    assert_eq!(create(b""), NfsStat3::Acces);
    assert_eq!(create(b"a/b"), NfsStat3::Acces);
    assert_eq!(create(b"a\0"), NfsStat3::Acces);
    assert_eq!(create(&[b'a'; 256]), NfsStat3::NameTooLong);
    assert_eq!(create(b"."), NfsStat3::Exist);
    let rmdir = |name: &[u8]| world.rmdir(root, name).unwrap_err().status;
    assert_eq!((rmdir(b"."), rmdir(b"..")), (NfsStat3::Inval, NfsStat3::Exist));
    assert_eq!(status(world.remove(root, b".")), Err(NfsStat3::Acces));
    let longest = [b'a'; 255];
    let file = world.create(root, &longest);
    assert_eq!(world.lookup(root, &longest).unwrap().object, file);
}

#[test]
fn times_that_are_none_are_refused() {
    let world = World::new();
    let root = world.root();
    let attributes = Sattr3 {
        mtime: SetTime::ClientTime(NfsTime { seconds: 1, nseconds: 1_000_000_000 }),
        ..Sattr3::default()
    };
    let made = world.create_how(root, b"f", CreateHow::Unchecked(attributes));
    assert_eq!(status(made), Err(NfsStat3::Inval));
    let set = world.setattr(root, attributes).unwrap_err();
    assert_eq!(set.status, NfsStat3::Inval);
    assert_eq!(set.detail.after, Some(world.getattr(root)));
}

#[test]
fn a_full_store_takes_no_more_files_and_names() {
    let options = MemOptions { files_max: 3, bytes_max: 500, ..MemOptions::default() };
    let world = World::with(options, EngineConfig::default());
    let root = world.root();
    let file = world.create(root, b"a");
    world.create(root, b"b");
    let third = world.watched(
        root,
        || world.create_how(root, b"c", CreateHow::Guarded(mode(0))),
        |reply| reply.unwrap_err().detail,
    );
    assert_eq!(status(third), Err(NfsStat3::NoSpc));
    world.remove(root, b"b").unwrap();
    world.create(root, b"c");
    let long = world.link(file, root, &[b'x'; 200]);
    assert_eq!(status(long), Err(NfsStat3::NoSpc));
    let longer = world.rename((root, b"a"), (root, &[b'x'; 255]));
    assert_eq!(status(longer), Err(NfsStat3::NoSpc));
    world.rename((root, b"a"), (root, b"d")).unwrap();
    world.audit();
}
