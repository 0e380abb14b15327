//! READDIR and READDIRPLUS: sizes, cookies, and changes in between.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use wire::nfs3::{self, FileHandle, NfsStat3, Procedure as P};
use wire::xdr::Encode;

use crate::world::{World, status};

fn readdir(
    world: &World,
    dir: FileHandle,
    (cookie, cookieverf): (u64, [u8; 8]),
    count: u32,
) -> nfs3::readdir::Reply<'static> {
    let args = nfs3::readdir::Args { dir, cookie, cookieverf, count };
    world.nfs(P::Readdir, &args)
}

fn readdirplus(
    world: &World,
    dir: FileHandle,
    (cookie, cookieverf): (u64, [u8; 8]),
    (dircount, maxcount): (u32, u32),
) -> nfs3::readdirplus::Reply<'static> {
    let args = nfs3::readdirplus::Args { dir, cookie, cookieverf, dircount, maxcount };
    world.nfs(P::Readdirplus, &args)
}

const START: (u64, [u8; 8]) = (0, [0; 8]);

/// All names but the dots, in one listing.
pub(crate) fn names(world: &World, dir: FileHandle) -> Result<BTreeSet<Vec<u8>>, NfsStat3> {
    let reply = readdir(world, dir, START, 1 << 20);
    let listed = reply.map_err(|failure| failure.status)?;
    assert!(listed.eof);
    let names = listed.entries.iter().map(|entry| entry.name.to_vec());
    Ok(names.filter(|name| name != b"." && name != b"..").collect())
}

#[test]
fn a_listing_has_dots_names_and_attributes() {
    let world = World::new();
    let root = world.root();
    let dir = world.mkdir(root, b"d");
    let file = world.create(dir, b"f");
    let listed = readdir(&world, dir, START, 4096).unwrap();
    let fileid = |handle| world.getattr(handle).fileid;
    let found: Vec<_> = listed.entries.iter().map(|e| (e.name, e.fileid)).collect();
    let expected: [(&[u8], u64); 3] =
        [(b".", fileid(dir)), (b"..", fileid(root)), (b"f", fileid(file))];
    assert_eq!(found, expected);
    assert!(listed.eof);
    assert_eq!(listed.dir_attributes, Some(world.getattr(dir)));

    let listed = readdirplus(&world, dir, START, (4096, 4096)).unwrap();
    for (entry, handle) in listed.entries.iter().zip([dir, root, file]) {
        assert_eq!(entry.name_handle, Some(handle));
        assert_eq!(entry.name_attributes, Some(world.getattr(handle)));
    }
    assert_eq!(listed.entries.len(), 3);
}

#[test]
fn failures_say_what_is_known() {
    let world = World::new();
    let file = world.create(world.root(), b"f");
    let failure = readdir(&world, file, START, 4096).unwrap_err();
    assert_eq!(failure.status, NfsStat3::NotDir);
    assert_eq!(failure.detail, Some(world.getattr(file)));
    let failure = readdirplus(&world, file, START, (4096, 4096)).unwrap_err();
    assert_eq!(failure.status, NfsStat3::NotDir);
    assert_eq!(failure.detail, Some(world.getattr(file)));
}

/// Lists with ever larger counts: a reply never exceeds its count, and the next entry would have.
#[test]
fn counts_are_respected_and_used() {
    let world = World::new();
    let root = world.root();
    for len in [1, 2, 3, 4, 5, 50, 255] {
        world.create(root, &vec![b'n'; len]);
    }
    let mut entries_before = 0;
    let mut sizes = BTreeMap::new();
    for count in 0..1200_u32 {
        match readdir(&world, root, START, count) {
            Ok(ok) => {
                let size = ok.to_bytes().len();
                assert!(size <= count as usize, "{size} of {count}");
                assert!(ok.entries.len() >= entries_before);
                entries_before = ok.entries.len();
                sizes.entry(ok.entries.len()).or_insert((count, size));
            }
            Err(failure) => {
                assert_eq!(failure.status, NfsStat3::TooSmall);
                assert_eq!(failure.detail, Some(world.getattr(root)));
                assert_eq!(entries_before, 0, "TOOSMALL at {count} after success");
            }
        }
    }
    // A number of entries appears as soon as the count reaches its size exactly.
    assert_eq!(sizes.len(), 9);
    for (count, size) in sizes.values() {
        assert_eq!(*count as usize, *size);
    }
}

#[test]
fn both_counts_of_readdirplus_are_respected_and_used() {
    let world = World::new();
    let root = world.root();
    for len in [1, 2, 3, 4, 5, 50] {
        world.create(root, &vec![b'n'; len]);
    }
    let mut sizes = BTreeMap::new();
    for maxcount in 0..2500_u32 {
        match readdirplus(&world, root, START, (4096, maxcount)) {
            Ok(ok) => {
                let size = ok.to_bytes().len();
                assert!(size <= maxcount as usize, "{size} of {maxcount}");
                sizes.entry(ok.entries.len()).or_insert((maxcount, size));
            }
            Err(failure) => assert_eq!(failure.status, NfsStat3::TooSmall),
        }
    }
    assert_eq!(sizes.len(), 8);
    for (count, size) in sizes.values() {
        assert_eq!(*count as usize, *size);
    }
    // An entry without attributes and handle has 24 bytes and its name.
    let with = |dircount| readdirplus(&world, root, START, (dircount, 4096));
    assert_eq!(with(0).unwrap().entries.len(), 1, "a client without a hint");
    assert_eq!(with(28).unwrap().entries.len(), 1);
    assert_eq!(with(55).unwrap().entries.len(), 1);
    assert_eq!(with(56).unwrap().entries.len(), 2);
}

#[test]
fn cookies_need_their_verifier_and_must_have_been_given_out() {
    let world = World::new();
    let root = world.root();
    world.create(root, b"f");
    let all = readdir(&world, root, START, 4096).unwrap();
    let last = all.entries.last().unwrap().cookie;
    let end = readdir(&world, root, (last, all.cookieverf), 4096).unwrap();
    assert!(end.entries.is_empty() && end.eof);
    let mut other = all.cookieverf;
    other[0] ^= 1;
    let bad = Err(NfsStat3::BadCookie);
    assert_eq!(status(readdir(&world, root, (last, other), 4096)), bad);
    let never = (last + 1, all.cookieverf);
    assert_eq!(status(readdir(&world, root, never, 4096)), bad);
    assert_eq!(status(readdirplus(&world, root, never, (4096, 4096))), bad);
    // At the beginning the verifier means nothing.
    assert_eq!(status(readdir(&world, root, (0, other), 4096)), Ok(()));
}

#[derive(Clone, Debug)]
enum Change {
    Create(u8),
    Remove(u8),
    Rename(u8, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..20_u8;
    prop_oneof![
        name().prop_map(Change::Create),
        name().prop_map(Change::Remove),
        (name(), name()).prop_map(|(from, to)| Change::Rename(from, to)),
    ]
}

fn name_of(number: u8) -> Vec<u8> {
    format!("name{number}").into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Names come in small parts, with changes between them. Those that are there from before
    /// the first part until after the last are seen exactly once; those that never are, never.
    #[test]
    fn a_listing_survives_changes(
        before in prop::collection::vec(change(), 0..30),
        between in prop::collection::vec(prop::collection::vec(change(), 0..4), 0..20),
        count in 140..300_u32,
    ) {
        let world = World::new();
        let root = world.root();
        let apply = |change: &Change| match *change {
            Change::Create(name) => drop(world.create_how(
                root,
                &name_of(name),
                nfs3::create::CreateHow::Guarded(crate::world::mode(0)),
            )),
            Change::Remove(name) => drop(world.remove(root, &name_of(name))),
            Change::Rename(from, to) => {
                let (from, to) = (name_of(from), name_of(to));
                let _ = world.rename((root, &from), (root, &to));
            }
        };
        before.iter().for_each(apply);

        let there = || names(&world, root).unwrap();
        let mut always = there();
        let mut ever = there();
        let mut touched = BTreeSet::new();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut changes = between.iter();
        let mut place = START;
        loop {
            let part = readdir(&world, root, place, count).unwrap();
            seen.extend(part.entries.iter().map(|entry| entry.name.to_vec()));
            if part.eof {
                break;
            }
            place = (part.entries.last().unwrap().cookie, part.cookieverf);
            for change in changes.next().into_iter().flatten() {
                apply(change);
                ever.extend(there());
                always = always.intersection(&there()).cloned().collect();
                if let Change::Rename(from, to) = change {
                    touched.extend([name_of(*from), name_of(*to)]);
                }
            }
        }
        // A name that a rename gave to another file is not the entry it was.
        for name in always.difference(&touched) {
            let times = seen.iter().filter(|found| *found == name).count();
            prop_assert_eq!(times, 1, "{}", String::from_utf8_lossy(name));
        }
        for name in seen.iter().filter(|name| name.starts_with(b"name")) {
            prop_assert!(ever.contains(name));
        }
    }
}
