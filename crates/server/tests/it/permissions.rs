//! Who may do what, through ACCESS and through the procedures themselves.

use std::sync::Arc;

use server::types::Caller;
use server::{Rule, Squash};
use wire::nfs3::access::{DELETE, EXECUTE, EXTEND, LOOKUP, MODIFY, READ};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{self, FileHandle, NfsStat3, Procedure as P, Sattr3};

use crate::world::{World, mode, size, status};

const ALL: u32 = READ | LOOKUP | MODIFY | EXTEND | DELETE | EXECUTE;

fn access(world: &World, object: FileHandle) -> u32 {
    let args = nfs3::access::Args { object, access: ALL };
    let reply: nfs3::access::Reply = world.nfs(P::Access, &args);
    let ok = reply.unwrap();
    assert_eq!(ok.obj_attributes, Some(world.getattr(object)));
    ok.access
}

#[test]
fn access_and_enforcement_agree_for_every_mode() {
    let mut world = World::new();
    let root = world.root();
    let dir = world.mkdir(root, b"d");
    let file = world.create(dir, b"f");
    for bits in 0..8 {
        for (uid, shift) in [(1000, 6), (2000, 3), (3000, 0)] {
            world.ids = (1000, 100);
            world.setattr(file, mode(bits << shift)).unwrap();
            world.setattr(dir, mode(bits << shift)).unwrap();
            world.ids = (uid, if uid == 2000 { 100 } else { 200 });

            let may = access(&world, file);
            if may & READ != 0 {
                assert_eq!(status(world.read(file, 0, 1)), Ok(()));
            }
            if may & MODIFY != 0 {
                assert_eq!(status(world.write(file, 0, b"x")), Ok(()));
            } else if uid != 1000 {
                assert_eq!(status(world.write(file, 0, b"x")), Err(NfsStat3::Acces));
                assert_eq!(status(world.setattr(file, size(0))), Err(NfsStat3::Acces));
            }

            let may = access(&world, dir);
            let looked = status(world.lookup(dir, b"f"));
            assert_eq!(looked.is_ok(), may & LOOKUP != 0, "{bits:o} of {uid}");
            let made = status(world.create_how(dir, b"g", CreateHow::Guarded(mode(0))));
            assert_eq!(made.is_ok(), may & EXTEND != 0, "{bits:o} of {uid}");
            let removed = status(world.remove(dir, b"g"));
            assert_eq!(removed.is_ok(), may & DELETE != 0, "{bits:o} of {uid}");
            let listed = crate::listing::names(&world, dir);
            assert_eq!(listed.is_ok(), may & READ != 0, "{bits:o} of {uid}");
        }
    }
}

#[test]
fn supplementary_groups_count() {
    let mut world = World::new();
    let file = world.create(world.root(), b"f");
    world.setattr(file, mode(0o640)).unwrap();
    world.ids = (2000, 200);
    assert_eq!(access(&world, file), 0);
    world.gids = vec![7, 100];
    assert_eq!(access(&world, file), READ);
}

#[test]
fn root_may_all_unless_squashed() {
    let mut world = World::new();
    let file = world.create(world.root(), b"f");
    world.setattr(file, mode(0)).unwrap();
    world.ids = (0, 0);
    assert_eq!(access(&world, file), READ | MODIFY | EXTEND);
    world.write(file, 0, b"x").unwrap();
    let give = Sattr3 { uid: Some(5), gid: Some(6), ..Sattr3::default() };
    world.setattr(file, give).unwrap();
    let attributes = world.getattr(file);
    assert_eq!((attributes.uid, attributes.gid), (5, 6));
}

#[test]
fn squashed_callers_are_the_anonymous_one() {
    let anonymous = Arc::new(Caller { uid: 77, gid: 88, gids: Vec::new() });
    let with = |squash| {
        World::ruled(Rule { squash, anonymous: Arc::clone(&anonymous), ..Rule::default() })
    };
    let owner = |world: &World| {
        let file = world.create(world.root(), b"f");
        let attributes = world.getattr(file);
        (attributes.uid, attributes.gid)
    };
    assert_eq!(owner(&with(Squash::All)), (77, 88));
    assert_eq!(owner(&with(Squash::Root).with_user(0, 0)), (77, 88));
    assert_eq!(owner(&with(Squash::Root)), (1000, 100));
    assert_eq!(owner(&with(Squash::None).with_user(0, 0)), (0, 0));
}

/// macOS names owner and group with whatever it makes, and Solaris the group.
#[test]
fn who_is_not_root_may_name_an_owner_and_gives_nothing_away() {
    let mut world = World::new();
    world.gids = vec![300];
    let made = |world: &World, name: &[u8], uid, gid| {
        let given = Sattr3 { uid: Some(uid), gid: Some(gid), ..mode(0o640) };
        let how = CreateHow::Guarded(given);
        let made = world.create_how(world.root(), name, how).unwrap().obj.unwrap();
        (world.getattr(made).uid, world.getattr(made).gid)
    };
    assert_eq!(made(&world, b"a", 1000, 0), (1000, 100));
    assert_eq!(made(&world, b"b", 0, 300), (1000, 300));
    world.ids = (0, 0);
    assert_eq!(made(&world, b"c", 7, 8), (7, 8));
}

#[test]
fn a_sticky_directory_protects_what_others_put_there() {
    let mut world = World::new();
    let root = world.root();
    let dir = world.mkdir(root, b"tmp");
    world.setattr(dir, mode(0o1777)).unwrap();
    world.ids = (2000, 200);
    world.create(dir, b"theirs");
    world.ids = (3000, 300);
    let mine = world.create(dir, b"mine");
    let denied = Err(NfsStat3::Perm);
    assert_eq!(status(world.remove(dir, b"theirs")), denied);
    let over = world.rename((dir, b"mine"), (dir, b"theirs"));
    assert_eq!(status(over), denied);
    let away = world.rename((dir, b"theirs"), (dir, b"x"));
    assert_eq!(status(away), denied);
    world.rename((dir, b"mine"), (dir, b"y")).unwrap();
    assert_eq!(world.lookup(dir, b"y").unwrap().object, mine);
    world.ids = (1000, 100);
    world.remove(dir, b"theirs").unwrap();
}

#[test]
fn files_of_a_set_gid_directory_have_its_group() {
    let mut world = World::new().with_user(0, 0);
    let dir = world.mkdir(world.root(), b"d");
    let shared = Sattr3 { gid: Some(555), mode: Some(0o2777), ..Sattr3::default() };
    world.setattr(dir, shared).unwrap();
    world.ids = (1000, 100);
    let file = world.create(dir, b"f");
    assert_eq!((world.getattr(file).gid, world.getattr(file).mode), (555, 0o644));
    let below = world.mkdir(dir, b"e");
    assert_eq!((world.getattr(below).gid, world.getattr(below).mode), (555, 0o2755));
}

#[test]
fn a_directory_one_may_not_write_does_not_move_elsewhere() {
    let mut world = World::new();
    let root = world.root();
    let (a, b) = (world.mkdir(root, b"a"), world.mkdir(root, b"b"));
    world.setattr(a, mode(0o777)).unwrap();
    world.setattr(b, mode(0o777)).unwrap();
    world.mkdir(a, b"m");
    world.ids = (2000, 200);
    let moved = world.rename((a, b"m"), (b, b"m"));
    assert_eq!(status(moved), Err(NfsStat3::Acces));
    world.rename((a, b"m"), (a, b"n")).unwrap();
}
