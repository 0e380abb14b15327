//! READDIR: sizes, 32-bit cookies of whatever the store has, changes in between.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use server::EngineConfig;
use server::store::mem::{MemOptions, MemStore};
use wire::nfs2::{FHandle, NfsStat2};
use wire::xdr::Encode;

use crate::held::Held;
use crate::world::World;

use super::world::{Calls, World2, mode, over_both};

/// All names but the dots, in parts of at most `count` bytes, in the order of the listing.
fn names(world: &dyn Calls, dir: FHandle, count: u32) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let mut cookie = 0;
    loop {
        let part = world.readdir(dir, cookie, count).unwrap();
        names.extend(part.entries.iter().map(|entry| entry.name.to_vec()));
        if part.eof {
            break;
        }
        cookie = part.entries.last().unwrap().cookie;
    }
    names.retain(|name| name != b"." && name != b"..");
    names
}

#[test]
fn a_listing_has_dots_names_and_fileids() {
    over_both(|world| {
        let root = world.root();
        let dir = world.mkdir(root, b"d");
        let file = world.create(dir, b"f");
        let listed = world.readdir(dir, 0, 4096).unwrap();
        let fileid = |handle| world.getattr(handle).unwrap().fileid;
        let found: BTreeMap<_, _> = listed.entries.iter().map(|e| (e.name, e.fileid)).collect();
        let expected: [(&[u8], u32); 3] =
            [(b".", fileid(dir)), (b"..", fileid(root)), (b"f", fileid(file))];
        assert_eq!(found, BTreeMap::from(expected));
        assert!(listed.eof);
    });
}

/// Lists with ever larger counts: a reply never exceeds its count, and the next entry would have.
#[test]
fn counts_are_respected_and_used() {
    over_both(|world| {
        let root = world.root();
        for len in [1, 2, 3, 4, 5, 50, 255] {
            world.create(root, &vec![b'n'; len]);
        }
        let mut entries_before = 0;
        let mut sizes = BTreeMap::new();
        for count in 0..800_u32 {
            match world.readdir(root, 0, count) {
                Ok(ok) => {
                    let size = ok.to_bytes().len();
                    assert!(size <= count as usize, "{size} of {count}");
                    assert!(ok.entries.len() >= entries_before);
                    entries_before = ok.entries.len();
                    sizes.entry(ok.entries.len()).or_insert((count, size));
                }
                Err(status) => {
                    assert_eq!(status, NfsStat2::Inval);
                    assert_eq!(entries_before, 0, "INVAL at {count} after success");
                }
            }
        }
        assert_eq!(sizes.len(), 9);
        for (count, size) in sizes.values() {
            assert_eq!(*count as usize, *size);
        }
    });
}

#[test]
fn a_reply_has_8_kib_at_the_most_and_all_of_a_large_directory_comes() {
    over_both(|world| {
        let root = world.root();
        let all: BTreeSet<Vec<u8>> =
            (0..700).map(|at| format!("a-file-{at:05}").into_bytes()).collect();
        for name in &all {
            world.create(root, name);
        }
        let part = world.readdir(root, 0, u32::MAX).unwrap();
        assert!(part.to_bytes().len() <= 8192 && !part.eof);
        for count in [100, 512, 8192] {
            let found = names(world, root, count);
            assert_eq!(found.len(), all.len());
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all);
        }
    });
}

#[test]
fn cookies_that_were_never_given_out_are_refused() {
    let world = World2::new();
    let world: &dyn Calls = &world;
    let root = world.root();
    world.create(root, b"f");
    let last = world.readdir(root, 0, 4096).unwrap().entries.last().unwrap().cookie;
    let end = world.readdir(root, last, 4096).unwrap();
    assert!(end.entries.is_empty() && end.eof);
    for never in [last + 1, 0x7fff_ffff, 0x8000_0000, 0xbfff_ffff, 0xc000_0000, u32::MAX] {
        assert_eq!(world.readdir(root, never, 4096), Err(NfsStat2::Inval), "{never:#x}");
    }
    assert_eq!(world.remove(root, b"f"), Ok(()));
}

#[test]
fn any_cookie_ends_in_an_answer() {
    over_both(|world| {
        let dir = world.mkdir(world.root(), b"d");
        world.create(dir, b"f");
        for bits in 0..32 {
            for cookie in [1 << bits, u32::MAX << bits] {
                let listed = world.readdir(dir, cookie, 4096);
                assert!(listed.is_ok() || listed == Err(NfsStat2::Inval), "{cookie:#x}");
            }
        }
    });
}

/// A world whose store has its cookies multiplied by a power of two.
fn shifted(shift: u32) -> World2<Held<MemStore>> {
    let hold = |store| {
        let mut held = Held::new(store);
        held.cookie_shift = shift;
        held
    };
    let world = World::wrapped(MemOptions::default(), EngineConfig::default(), hold);
    World2::of(world).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Create(u8),
    Remove(u8),
}

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..20_u8;
    prop_oneof![name().prop_map(Change::Create), name().prop_map(Change::Remove)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever the size of the store's cookies, names that are there from before the first part
    /// until after the last are seen exactly once.
    #[test]
    fn a_listing_survives_changes_and_large_cookies(
        before in prop::collection::vec(change(), 0..30),
        between in prop::collection::vec(change(), 0..30),
        count in 40..200_u32,
        shift in prop::sample::select(vec![0, 28, 30, 31, 32, 33, 40, 50]),
    ) {
        let world = shifted(shift);
        let world: &dyn Calls = &world;
        let root = world.root();
        let name = |number: u8| format!("name{number}").into_bytes();
        let mut there = BTreeSet::new();
        let mut apply = |change| match change {
            Change::Create(number) => {
                world.create_with(root, &name(number), mode(0o644)).unwrap();
                there.insert(name(number));
                there.clone()
            }
            Change::Remove(number) => {
                let _ = world.remove(root, &name(number));
                there.remove(&name(number));
                there.clone()
            }
        };
        let mut always = before.into_iter().map(&mut apply).last().unwrap_or_default();
        let mut between = between.into_iter();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut cookie = 0;
        loop {
            let part = world.readdir(root, cookie, count).unwrap();
            seen.extend(part.entries.iter().map(|entry| entry.name.to_vec()));
            if part.eof {
                break;
            }
            cookie = part.entries.last().unwrap().cookie;
            if let Some(change) = between.next() {
                let now = apply(change);
                always = always.intersection(&now).cloned().collect();
            }
        }
        for name in &always {
            let times = seen.iter().filter(|found| *found == name).count();
            prop_assert_eq!(times, 1, "{}", String::from_utf8_lossy(name));
        }
    }
}
