//! Opens whose look-up has requested what they need: a cache on a disk, whose names are confirmed.

use cache::medium::Memory;
use cache::{Cache, Geometry, Limits};

use super::*;

fn served_with_a_disk(test: impl FnOnce(&Kernel, &Scene) + Send + 'static) {
    let (geometry, limits) = (Geometry::of_reads_of(1 << 16), Limits::default());
    let disk = Cache::in_memory(Memory::default(), geometry, limits);
    let how = (files::Options::default(), KernelCache::Writeback, LinkPair::default());
    served_on(Some(disk), notifications, how, 1 << 20, test);
}

/// A file with a second name, of a kind that is not found by listing.
fn made(kernel: &Kernel, scene: &Scene) {
    kernel.release(kernel.create());
    scene.runtime.block_on(async {
        let (who, files, root) = (own(), &scene.files, scene.files.root());
        let found = files.lookup(&who, root, b"file").await.unwrap();
        files.link(&who, found.handle, root, b".file").await.unwrap();
    });
}

/// The attributes of the file are to be confirmed: a name of it is gone.
fn expire(scene: &Scene) {
    scene.runtime.block_on(async {
        let (who, files, root) = (own(), &scene.files, scene.files.root());
        let found = files.lookup(&who, root, b".file").await.unwrap();
        files.link(&who, found.handle, root, b"link").await.unwrap();
        files.remove(&who, root, b"link").await.unwrap();
        files.getattr(&who, root).await.unwrap();
    });
}

/// The node of the file, and for how many seconds the kernel may use its name.
fn look_up(kernel: &Kernel) -> (u64, u64) {
    kernel.ask(LOOKUP, 1, b".file\0");
    let (code, entry) = kernel.ended(7);
    assert_eq!(code, 0);
    (u64_at(&entry, 0), u64_at(&entry, 16))
}

fn open(kernel: &Kernel, node: u64) -> i32 {
    kernel.ask(OPEN, node, &parts(&[0]));
    let (code, opened) = kernel.ended(7);
    if code == 0 {
        kernel.release((node, u64_at(&opened, 0)));
    }
    code
}

#[test]
fn an_open_needs_no_more_calls_than_the_look_up_that_it_began_with() {
    served_with_a_disk(|kernel, scene| {
        made(kernel, scene);
        expire(scene);
        let before = calls(scene);
        let (node, name_valid) = look_up(kernel);
        assert_eq!((name_valid, calls(scene)), (0, before + 1), "the next use begins with another");
        assert_eq!((open(kernel, node), calls(scene)), (0, before + 1));
        assert_eq!((open(kernel, node), calls(scene)), (0, before + 2), "by a descriptor");
        // stat(2) and open(2).
        expire(scene);
        let before = calls(scene);
        look_up(kernel);
        let (node, name_valid) = look_up(kernel);
        assert!(name_valid > 0 && calls(scene) == before + 1, "its attributes are good");
        assert_eq!((open(kernel, node), calls(scene)), (0, before + 2));
    });
}

#[test]
fn an_open_sees_what_was_closed_elsewhere_after_a_stat_of_the_name() {
    served_with_a_disk(|kernel, scene| {
        made(kernel, scene);
        expire(scene);
        let (node, _) = look_up(kernel);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        assert_eq!(look_up(kernel).0, node, "its attributes are good");
        assert_eq!(open(kernel, node), Errno::STALE.raw_os_error());
        let (node, _) = look_up(kernel);
        assert_eq!(open(kernel, node), 0);
        let size = scene.system.nodes.lock().find(node).map(|node| node.size);
        assert_eq!(size, Some(6));
    });
}
