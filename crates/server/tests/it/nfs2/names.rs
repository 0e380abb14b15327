//! LOOKUP, CREATE, MKDIR, SYMLINK, READLINK, REMOVE, RMDIR, RENAME, LINK.

use std::fs;
use std::io::ErrorKind;

use server::EngineConfig;
use server::store::dir::DirStore;
use wire::nfs2::{FType, NfsStat2, RDEV_FIFO, Sattr2, mode_type};

use crate::world::World;

use super::world::{Calls, World2, mode, over_both, size};

#[test]
fn what_was_made_is_found_and_removed() {
    over_both(|world| {
        let root = world.root();
        let made = world.create_with(root, b"f", mode(mode_type::REG | 0o640)).unwrap();
        assert_eq!(made.attributes.ftype, FType::Reg);
        assert_eq!((made.attributes.mode, made.attributes.nlink), (0o100_640, 1));
        assert_eq!((made.attributes.size, made.attributes.blocks), (0, 0));
        assert_eq!(world.lookup(root, b"f"), Ok(made.file));
        assert_eq!(world.getattr(made.file), Ok(made.attributes));

        let dir = world.mkdir_reply(root, b"d").unwrap();
        assert_eq!(dir.attributes.ftype, FType::Dir);
        assert_eq!(dir.attributes.mode, 0o040_755);
        // btrfs does not count the names of directories.
        assert!([1, 2].contains(&dir.attributes.nlink), "{dir:?}");
        assert_eq!(world.lookup(dir.file, b".."), Ok(root));
        assert_eq!(world.lookup(dir.file, b"."), Ok(dir.file));
        assert_eq!(world.lookup(root, b".."), Ok(root), "nothing is above the root");

        assert_eq!(world.symlink(dir.file, b"s", b"../f"), Ok(()));
        let link = world.lookup(dir.file, b"s").unwrap();
        assert_eq!(world.readlink(link), Ok(&b"../f"[..]));
        assert_eq!(world.getattr(link).unwrap().ftype, FType::Lnk);

        assert_eq!(world.link(made.file, dir.file, b"g"), Ok(()));
        assert_eq!(world.getattr(made.file).unwrap().nlink, 2);
        assert_eq!(world.rename((dir.file, b"g"), (root, b"h")), Ok(()));
        assert_eq!(world.lookup(root, b"h"), Ok(made.file));

        assert_eq!(world.rmdir(root, b"d"), Err(NfsStat2::NotEmpty));
        assert_eq!(world.remove(dir.file, b"s"), Ok(()));
        assert_eq!(world.rmdir(root, b"d"), Ok(()));
        assert_eq!(world.remove(root, b"f"), Ok(()));
        assert_eq!(world.remove(root, b"h"), Ok(()));
        assert_eq!(world.getattr(made.file), Err(NfsStat2::Stale));
        assert_eq!(world.getattr(dir.file), Err(NfsStat2::Stale));
    });
}

#[test]
fn what_cannot_be_done_is_named() {
    over_both(|world| {
        let root = world.root();
        let file = world.create(root, b"f");
        let dir = world.mkdir(root, b"d");
        assert_eq!(world.lookup(root, b"x"), Err(NfsStat2::NoEnt));
        assert_eq!(world.lookup(file, b"x"), Err(NfsStat2::NotDir));
        assert_eq!(world.mkdir_reply(root, b"f"), Err(NfsStat2::Exist));
        assert_eq!(world.symlink(root, b"f", b"t"), Err(NfsStat2::Exist));
        assert_eq!(world.create_with(root, b"d", mode(0)), Err(NfsStat2::Exist));
        assert_eq!(world.link(file, root, b"d"), Err(NfsStat2::Exist));
        assert_eq!(world.remove(root, b"x"), Err(NfsStat2::NoEnt));
        assert_eq!(world.remove(root, b"d"), Err(NfsStat2::IsDir));
        assert_eq!(world.rmdir(root, b"f"), Err(NfsStat2::NotDir));
        assert_eq!(world.rename((root, b"x"), (root, b"y")), Err(NfsStat2::NoEnt));
        assert_eq!(world.rename((root, b"d"), (dir, b"e")), Err(NfsStat2::Inval));
        assert_eq!(world.rename((root, b"f"), (root, b"d")), Err(NfsStat2::IsDir));
        assert_eq!(world.readlink(file), Err(NfsStat2::Inval));
        assert_eq!(world.readlink(dir), Err(NfsStat2::Inval));
    });
}

/// Each procedure that takes a name, with this one.
fn with_name(world: &dyn Calls, name: &[u8]) -> [Result<(), NfsStat2>; 9] {
    let root = world.root();
    let file = world.lookup(root, b"f").unwrap();
    [
        world.lookup(root, name).map(drop),
        world.create_with(root, name, mode(0o644)).map(drop),
        world.mkdir_reply(root, name).map(drop),
        world.symlink(root, name, b"t"),
        world.link(file, root, name),
        world.remove(root, name),
        world.rmdir(root, name),
        world.rename((root, name), (root, b"to")),
        world.rename((root, b"f"), (root, name)),
    ]
}

#[test]
fn names_that_cannot_be_are_refused() {
    over_both(|world| {
        world.create(world.root(), b"f");
        for name in [&b""[..], b"a/b", b"/", b"a\0b", b"\0"] {
            assert_eq!(with_name(world, name), [Err(NfsStat2::Acces); 9]);
        }
        for len in [256, 4096] {
            let name = vec![b'n'; len];
            assert_eq!(with_name(world, &name), [Err(NfsStat2::NameTooLong); 9]);
        }
        let (exist, inval) = (Some(NfsStat2::Exist), Some(NfsStat2::Inval));
        let acces = Some(NfsStat2::Acces);
        let status = |name| with_name(world, name).map(Result::err);
        let made = [exist; 4];
        let front = [&[None][..], &made, &[acces]].concat();
        assert_eq!(status(b"."), [&front[..], &[inval, inval, inval]].concat()[..]);
        assert_eq!(status(b".."), [&front[..], &[exist, inval, inval]].concat()[..]);
        let longest = [b'n'; 255];
        world.create(world.root(), &longest);
        assert_eq!(world.remove(world.root(), &longest), Ok(()));
    });
}

#[test]
fn a_create_over_a_file_sets_its_size_and_nothing_else() {
    over_both(|world| {
        let root = world.root();
        let file = world.create(root, b"f");
        world.write(file, 0, b"contents").unwrap();
        let before = world.getattr(file).unwrap();
        let again = world.create_with(root, b"f", mode(0o777)).unwrap();
        assert_eq!((again.file, again.attributes.size), (file, 8));
        assert_eq!(again.attributes.mode, before.mode);
        let cut = Sattr2 { size: Some(3), ..mode(0o777) };
        let cut = world.create_with(root, b"f", cut).unwrap();
        assert_eq!((cut.file, cut.attributes.size, cut.attributes.mode), (file, 3, before.mode));
        assert_eq!(world.read(file, 0, 100).unwrap().data, b"con");
        let new = world.create_with(root, b"g", size(5)).unwrap();
        assert_eq!(new.attributes.size, 5);
    });
}

#[test]
fn a_create_makes_pipes_and_sockets_by_the_type_in_the_mode() {
    over_both(|world| {
        let root = world.root();
        let made = |name: &[u8], kind, size| {
            let attributes = Sattr2 { size, ..mode(kind | 0o600) };
            world.create_with(root, name, attributes).map(|made| made.attributes)
        };
        let pipe = made(b"p", mode_type::FIFO, None).unwrap();
        assert_eq!((pipe.ftype, pipe.mode, pipe.rdev), (FType::Chr, 0o010_600, RDEV_FIFO));
        let pipe = made(b"q", mode_type::CHR, None).unwrap();
        assert_eq!((pipe.ftype, pipe.mode, pipe.rdev), (FType::Chr, 0o010_600, RDEV_FIFO));
        let socket = made(b"s", mode_type::SOCK, Some(9)).unwrap();
        assert_eq!((socket.ftype, socket.mode, socket.rdev), (FType::Non, 0o140_600, 0));
        assert_eq!(made(b"p", mode_type::FIFO, None), Err(NfsStat2::Exist));
        assert_eq!(made(b"d", mode_type::DIR, None), Err(NfsStat2::Inval));
        assert_eq!(made(b"l", mode_type::LNK, None), Err(NfsStat2::Inval));
    });
}

#[test]
fn a_create_makes_devices_whose_number_is_the_size() {
    let mut world = World2::new();
    world.world.ids = (0, 0);
    let world: &dyn Calls = &world;
    for (name, kind, ftype) in
        [(b"c", mode_type::CHR, FType::Chr), (b"b", mode_type::BLK, FType::Blk)]
    {
        let attributes = Sattr2 { size: Some(0x0801), ..mode(kind | 0o600) };
        let made = world.create_with(world.root(), name, attributes).unwrap().attributes;
        assert_eq!((made.ftype, made.mode), (ftype, kind | 0o600));
        assert_eq!((made.rdev, made.size), (0x0801, 0));
    }
}

#[test]
fn paths_of_links_are_as_long_as_the_protocol_has_them() {
    over_both(|world| {
        let root = world.root();
        let path = [b'p'; 1025];
        // XFS takes one byte less.
        let made = world.symlink(root, b"s", &path[..1024]);
        let len = if made == Err(NfsStat2::NameTooLong) { 1023 } else { 1024 };
        assert_eq!(made.or_else(|_| world.symlink(root, b"s", &path[..len])), Ok(()));
        let link = world.lookup(root, b"s").unwrap();
        assert_eq!(world.readlink(link).map(<[u8]>::len), Ok(len));
        assert_eq!(world.symlink(root, b"t", &path), Err(NfsStat2::NameTooLong));
        assert_eq!(world.symlink(root, b"t", b""), Err(NfsStat2::Inval));
        assert_eq!(world.symlink(root, b"t", b"a\0b"), Err(NfsStat2::Inval));
    });
}

#[test]
fn a_longer_path_that_others_made_is_not_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::os::unix::fs::symlink("p".repeat(1500), dir.path().join("s"));
    if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidFilename) {
        // XFS: nobody can make such a link.
        return;
    }
    made.unwrap();
    fs::write(dir.path().join("f"), b"contents").unwrap();
    let world = World::<DirStore>::over(dir.path(), EngineConfig::default());
    let world = World2::of(world).unwrap();
    let world: &dyn Calls = &world;
    let link = world.lookup(world.root(), b"s").unwrap();
    assert_eq!(world.readlink(link), Err(NfsStat2::NameTooLong));
    let file = world.lookup(world.root(), b"f").unwrap();
    assert_eq!(world.read(file, 0, 100).unwrap().data, b"contents");
}
