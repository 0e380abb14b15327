//! The same random operations through version 2 and version 3, each on a store of its own: the same
//! statuses, and in the end the same tree.

use proptest::prelude::*;
use testkit::reference::tree::{last, parent};
use wire::nfs2::{FHandle, NfsStat2};
use wire::nfs3::NfsStat3;

use crate::reference::{self, Op, op};
use crate::world::World;

use super::world::{Calls, World2, mode, size};

type Outcome = Result<Vec<u8>, NfsStat2>;

fn find(world: &dyn Calls, path: &str) -> Result<FHandle, NfsStat2> {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    names.try_fold(world.root(), |dir, name| world.lookup(dir, name.as_bytes()))
}

/// The parent of a path and its last name.
fn split<'p>(world: &dyn Calls, path: &'p str) -> Result<(FHandle, &'p [u8]), NfsStat2> {
    Ok((find(world, parent(path))?, last(path).as_bytes()))
}

fn apply(world: &dyn Calls, op: &Op) -> Outcome {
    let done = match op {
        Op::Create(path, _) => {
            let (dir, name) = split(world, path)?;
            world.create_with(dir, name, mode(0o600)).map(drop)
        }
        Op::Mkdir(path) => {
            let (dir, name) = split(world, path)?;
            world.mkdir_reply(dir, name).map(drop)
        }
        Op::Symlink(path) => {
            let (dir, name) = split(world, path)?;
            world.symlink(dir, name, path.as_bytes())
        }
        Op::Remove(path) => {
            let (dir, name) = split(world, path)?;
            world.remove(dir, name)
        }
        Op::Rmdir(path) => {
            let (dir, name) = split(world, path)?;
            world.rmdir(dir, name)
        }
        Op::Rename(from, to) => {
            let (from, to) = (split(world, from)?, split(world, to)?);
            world.rename(from, to)
        }
        Op::Link(file, link) => {
            let file = find(world, file)?;
            let (dir, name) = split(world, link)?;
            world.link(file, dir, name)
        }
        Op::Write(path, offset, data) => {
            let offset = u32::try_from(*offset).unwrap();
            world.write(find(world, path)?, offset, data).map(drop)
        }
        Op::SetSize(path, to) => {
            world.setattr(find(world, path)?, size(u32::try_from(*to).unwrap())).map(drop)
        }
        Op::Read(path, offset, count) => {
            let offset = u32::try_from(*offset).unwrap();
            return world.read(find(world, path)?, offset, *count).map(|ok| ok.data.to_vec());
        }
    };
    done.map(|()| Vec::new())
}

/// Version 2 has no guarded CREATE, reads 8 KiB, and says ISDIR to who wants bytes of a directory.
fn is_like(op: &Op, two: &Outcome, three: &reference::Outcome) -> bool {
    match (two, three) {
        (Ok(two), Ok(three)) => *two == three[..three.len().min(8192)],
        (Err(two), Err(three)) => {
            let same = two.code() == three.code();
            same || (*two, *three) == (NfsStat2::IsDir, NfsStat3::Inval)
        }
        (Ok(_), Err(NfsStat3::Exist)) => matches!(op, Op::Create(_, true)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_versions_do_the_same(ops in prop::collection::vec(op(), 1..60)) {
        let (two, three) = (World2::new(), World::new());
        for op in &ops {
            let found = (apply(&two, op), reference::apply(&three, op));
            prop_assert!(is_like(op, &found.0, &found.1), "{op:?}: {found:?}");
        }
        prop_assert_eq!(reference::tree(&two.world), reference::tree(&three));
        two.world.audit();
    }
}
