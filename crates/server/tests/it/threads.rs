//! Several threads on one engine: what they do to the same few files is serialized somehow, and
//! the store's books balance afterwards.

use std::thread;

use server::EngineConfig;
use server::store::mem::MemOptions;
use wire::nfs3::NfsStat3;
use wire::nfs3::create::CreateHow;

use crate::world::{World, mode, size};

const THREADS: usize = 4;
const ROUNDS: usize = 300;

/// Each thread goes through the same names at its own pace; any answer is fine that a file
/// system may give to someone who is not alone.
fn work(world: &World, thread: usize) {
    let root = world.root();
    for round in 0..ROUNDS {
        let name = [b'a' + u8::try_from((thread + round) % 5).unwrap()];
        let other = [b'a' + u8::try_from((thread * 3 + round) % 5).unwrap()];
        let how = CreateHow::Unchecked(mode(0o666));
        if let Ok(made) = world.create_how(root, &name, how) {
            let file = made.obj.unwrap();
            let data = vec![u8::try_from(thread).unwrap(); 3000 + 40 * round];
            for status in [
                world.write(file, 60_000, &data).err().map(|f| f.status),
                world.read(file, 50_000, 30_000).err().map(|f| f.status),
                world.setattr(file, size(100)).err().map(|f| f.status),
                world.link(file, root, &other).err().map(|f| f.status),
            ] {
                let fine = [None, Some(NfsStat3::Stale), Some(NfsStat3::Exist)];
                assert!(fine.contains(&status), "{status:?}");
            }
        }
        let _ = world.rename((root, &name), (root, &other));
        let _ = world.remove(root, &other);
        let _ = world.mkdir_reply(root, &other);
        let _ = world.rmdir(root, &other);
        assert!(crate::listing::names(world, root).is_ok());
    }
}

#[test]
fn the_books_balance_after_several_threads() {
    let options = MemOptions { bytes_max: 1 << 24, ..MemOptions::default() };
    let world = World::with(options, EngineConfig::default());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = &world;
            scope.spawn(move || work(world, thread));
        }
    });
    world.audit();
}
