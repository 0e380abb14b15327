//! MOUNT and portmap through the engine.

use server::{Endpoint, EngineConfig, Export};
use wire::Procedure;
use wire::mount::{self, DirPath, DumpReply, ExportReply, MntReply, MountStat3};
use wire::portmap::{self, Mapping, PROTOCOL_TCP, Port};
use wire::xdr::Void;

use crate::world::{World, mode};

fn exporting(name: &str) -> World {
    let export = Export { name: name.to_owned(), ..Export::default() };
    let config = EngineConfig {
        endpoints: vec![Endpoint::Tcp("127.0.0.1:2049".parse().unwrap())],
        ..EngineConfig::default()
    };
    World::exporting(export, config, |store| store)
}

fn mnt(world: &World, dirpath: &str) -> MntReply {
    let dirpath = dirpath.as_bytes();
    world.call(Procedure::Mount(mount::Procedure::Mnt), &DirPath { dirpath })
}

fn dump(world: &World) -> Vec<(String, String)> {
    let reply: DumpReply<'static> = world.call(Procedure::Mount(mount::Procedure::Dump), &());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let entry = |entry: &mount::MountEntry<'_>| (text(entry.hostname), text(entry.directory));
    reply.mounts.iter().map(entry).collect()
}

#[test]
fn the_export_and_directories_in_it_can_be_mounted() {
    let world = exporting("/export");
    let root = world.root();
    let dir = world.mkdir(root, b"d");
    let below = world.mkdir(dir, b"e");
    let handle = |path| mnt(&world, path).unwrap().fhandle;
    assert_eq!(handle("/export"), root);
    assert_eq!(handle("/export/"), root);
    assert_eq!(handle("/export/d"), dir);
    assert_eq!(handle("/export//d/./e/"), below);
    assert_eq!(mnt(&world, "/export").unwrap().auth_flavors, [1, 0]);
    assert_eq!(world.getattr(below).nlink, 2);
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let world = exporting("/export");
    let root = world.root();
    let dir = world.mkdir(root, b"d");
    world.create(root, b"f");
    world.symlink(root, b"s", b"d").unwrap();
    let refused = |path: &str| mnt(&world, path).unwrap_err();
    assert_eq!(refused("/"), MountStat3::NoEnt);
    assert_eq!(refused("/exports"), MountStat3::NoEnt);
    assert_eq!(refused("/export/x"), MountStat3::NoEnt);
    assert_eq!(refused("/export/f"), MountStat3::NotDir);
    assert_eq!(refused("/export/f/x"), MountStat3::NotDir);
    assert_eq!(refused("/export/s"), MountStat3::NotDir);
    assert_eq!(refused("/export/s/x"), MountStat3::NotDir);
    assert_eq!(refused("/export/d/.."), MountStat3::Acces);
    assert_eq!(refused(&format!("/export/{}", "a".repeat(256))), MountStat3::NameTooLong);
    world.setattr(dir, mode(0)).unwrap();
    assert_eq!(refused("/export/d/e"), MountStat3::Acces);
    assert_eq!(dump(&world), []);
}

#[test]
fn mounts_are_remembered_until_they_are_not() {
    let world = exporting("/");
    world.mkdir(world.root(), b"d");
    mnt(&world, "/").unwrap();
    mnt(&world, "/d").unwrap();
    mnt(&world, "/").unwrap();
    let entry = |directory: &str| ("10.0.0.7".to_owned(), directory.to_owned());
    assert_eq!(dump(&world), [entry("/d"), entry("/")]);
    let dirpath = b"/d";
    let () = world.call(Procedure::Mount(mount::Procedure::Umnt), &DirPath { dirpath });
    assert_eq!(dump(&world), [entry("/")]);
    assert_eq!(world.engine.mounts().len(), 1);
    let () = world.call(Procedure::Mount(mount::Procedure::Umntall), &());
    assert_eq!(dump(&world), []);
}

#[test]
fn the_export_is_listed_for_everyone() {
    let world = exporting("/export");
    let reply: ExportReply<'static> = world.call(Procedure::Mount(mount::Procedure::Export), &());
    assert_eq!(reply.exports.len(), 1);
    assert_eq!(reply.exports[0].dir, b"/export");
    assert!(reply.exports[0].groups.is_empty());
    let _: Void = world.call(Procedure::Mount(mount::Procedure::Null), &());
}

#[test]
fn the_portmapper_tells_where_the_programs_are() {
    let world = exporting("/");
    let mapping = Mapping { program: mount::PROGRAM, version: 3, protocol: PROTOCOL_TCP, port: 0 };
    let getport = Procedure::Portmap(portmap::Procedure::Getport);
    assert_eq!(world.call::<Port>(getport, &mapping), Port { port: 2049 });
}
