//! Random operations on the engine and on the reference file system. Every operation must give the
//! same status, and in the end the trees must be the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use server::EngineConfig;
use server::store::Store;
use testkit::reference::tree::{Change, How, Path, Thing, Tree, is_below, last, parent};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{self, FType, FileHandle, NfsStat3, Procedure as P};

use crate::world::{World, mode, size, status};

/// The reference's names, with the bytes of its files by their numbers.
#[derive(Debug, Default)]
struct Model {
    names: Tree,
    contents: BTreeMap<u32, Vec<u8>>,
    made: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Create(Path, bool),
    Mkdir(Path),
    Symlink(Path),
    Remove(Path),
    Rmdir(Path),
    Rename(Path, Path),
    Link(Path, Path),
    Write(Path, u64, Vec<u8>),
    SetSize(Path, u64),
    Read(Path, u64, u32),
}

fn path() -> impl Strategy<Value = Path> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4)
        .prop_map(|names| names.join("/"))
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, 65_530..65_545_u64]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let data = prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        3 => (path(), any::<bool>()).prop_map(|(path, guarded)| Op::Create(path, guarded)),
        3 => path().prop_map(Op::Mkdir),
        1 => path().prop_map(Op::Symlink),
        2 => path().prop_map(Op::Remove),
        1 => path().prop_map(Op::Rmdir),
        4 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
        2 => (path(), path()).prop_map(|(file, link)| Op::Link(file, link)),
        3 => (path(), offset(), data).prop_map(|(path, at, data)| Op::Write(path, at, data)),
        1 => (path(), offset()).prop_map(|(path, size)| Op::SetSize(path, size)),
        1 => (path(), offset(), 0..70_000_u32).prop_map(|(path, at, len)| Op::Read(path, at, len)),
    ]
}

pub(crate) type Outcome = Result<Vec<u8>, NfsStat3>;

impl Model {
    fn contents(&mut self, path: &str) -> Result<&mut Vec<u8>, NfsStat3> {
        match *self.names.find(path)? {
            Thing::File(number) => Ok(self.contents.entry(number).or_default()),
            _ => Err(NfsStat3::Inval),
        }
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        let change = match op.clone() {
            Op::Create(path, true) => Change::Create(path, How::Guarded),
            Op::Create(path, false) => Change::Create(path, How::Unchecked),
            Op::Mkdir(path) => Change::Mkdir(path),
            Op::Symlink(path) => Change::Symlink(path),
            Op::Remove(path) => Change::Remove(path),
            Op::Rmdir(path) => Change::Rmdir(path),
            Op::Rename(from, to) => Change::Rename(from, to),
            Op::Link(file, link) => Change::Link(file, link),
            Op::Write(path, offset, data) => return self.write(&path, offset, &data),
            Op::SetSize(path, size) => {
                self.contents(&path)?.resize(usize::try_from(size).unwrap(), 0);
                return Ok(Vec::new());
            }
            Op::Read(path, offset, count) => return self.read(&path, offset, count),
        };
        self.made += 1;
        let (outcome, names) = self.names.after(&change, self.made);
        self.names = names;
        outcome.map(|()| Vec::new())
    }

    fn write(&mut self, path: &str, offset: u64, data: &[u8]) -> Outcome {
        let contents = self.contents(path)?;
        let start = usize::try_from(offset).unwrap();
        if !data.is_empty() {
            let len = contents.len().max(start + data.len());
            contents.resize(len, 0);
            contents[start..start + data.len()].copy_from_slice(data);
        }
        Ok(Vec::new())
    }

    fn read(&mut self, path: &str, offset: u64, count: u32) -> Outcome {
        let contents = self.contents(path)?;
        let start = usize::try_from(offset).unwrap().min(contents.len());
        let end = (start + count as usize).min(contents.len());
        Ok(contents[start..end].to_vec())
    }
}

/// The same operations through the engine.
struct Real<'w, S> {
    world: &'w World<S>,
}

impl<S: Store> Real<'_, S> {
    fn find(&self, path: &str) -> Result<FileHandle, NfsStat3> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(self.world.root(), |dir, name| {
            let found = self.world.lookup(dir, name.as_bytes());
            found.map(|ok| ok.object).map_err(|failure| failure.status)
        })
    }

    /// The parent of a path and its last name.
    fn split<'p>(&self, path: &'p str) -> Result<(FileHandle, &'p [u8]), NfsStat3> {
        Ok((self.find(parent(path))?, last(path).as_bytes()))
    }

    fn apply(&self, op: &Op) -> Outcome {
        let world = self.world;
        let done = match op {
            Op::Create(path, guarded) => {
                let (dir, name) = self.split(path)?;
                let how = match guarded {
                    true => CreateHow::Guarded(mode(0o600)),
                    false => CreateHow::Unchecked(mode(0o600)),
                };
                status(world.create_how(dir, name, how))
            }
            Op::Mkdir(path) => {
                let (dir, name) = self.split(path)?;
                status(world.mkdir_reply(dir, name))
            }
            Op::Symlink(path) => {
                let (dir, name) = self.split(path)?;
                status(world.symlink(dir, name, path.as_bytes()))
            }
            Op::Remove(path) => {
                let (dir, name) = self.split(path)?;
                status(world.remove(dir, name))
            }
            Op::Rmdir(path) => {
                let (dir, name) = self.split(path)?;
                status(world.rmdir(dir, name))
            }
            Op::Rename(from, to) => {
                let (from, to) = (self.split(from)?, self.split(to)?);
                status(world.rename(from, to))
            }
            Op::Link(file, link) => {
                let file = self.find(file)?;
                let (dir, name) = self.split(link)?;
                status(world.link(file, dir, name))
            }
            Op::Write(path, offset, data) => status(world.write(self.find(path)?, *offset, data)),
            Op::SetSize(path, to) => status(world.setattr(self.find(path)?, size(*to))),
            Op::Read(path, offset, count) => {
                let read = world.read(self.find(path)?, *offset, *count);
                return read.map(|ok| ok.data.to_vec()).map_err(|failure| failure.status);
            }
        };
        done.map(|()| Vec::new())
    }

    /// Everything that can be found from the root, in the model's terms; files by fileid.
    fn tree(&self, dir: FileHandle, path: &str, tree: &mut BTreeMap<Path, Seen>) {
        let args = nfs3::readdirplus::Args {
            dir,
            cookie: 0,
            cookieverf: [0; 8],
            dircount: 1 << 20,
            maxcount: 1 << 20,
        };
        let reply: nfs3::readdirplus::Reply<'static> = self.world.nfs(P::Readdirplus, &args);
        for entry in reply.unwrap().entries {
            if entry.name.starts_with(b".") {
                continue;
            }
            let name = std::str::from_utf8(entry.name).unwrap();
            let path = [path, name].join(if path.is_empty() { "" } else { "/" });
            let handle = entry.name_handle.unwrap();
            assert_eq!(self.find(&path), Ok(handle));
            let attributes = entry.name_attributes.unwrap();
            let seen = match attributes.ftype {
                FType::Dir => {
                    self.tree(handle, &path, tree);
                    Seen::Dir
                }
                FType::Reg => {
                    let read = self.world.read(handle, 0, 1 << 20).unwrap();
                    assert!(read.eof && read.data.len() as u64 == attributes.size);
                    Seen::File { contents: read.data.to_vec(), names: attributes.nlink }
                }
                FType::Lnk => {
                    let args = nfs3::readlink::Args { symlink: handle };
                    let reply: nfs3::readlink::Reply<'static> = self.world.nfs(P::Readlink, &args);
                    Seen::Link(reply.unwrap().data.to_vec())
                }
                other => panic!("nobody made a {other}"),
            };
            tree.insert(path, seen);
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    Dir,
    File { contents: Vec<u8>, names: u32 },
    Link(Vec<u8>),
}

impl Model {
    fn tree(&self) -> BTreeMap<Path, Seen> {
        let seen = |thing: &Thing| match thing {
            Thing::Dir => Seen::Dir,
            Thing::File(number) => Seen::File {
                contents: self.contents.get(number).cloned().unwrap_or_default(),
                names: self.names.names_of(*number),
            },
            Thing::Link(_, target) => Seen::Link(target.clone().into_bytes()),
        };
        let things = self.names.things().iter();
        things.map(|(path, thing)| (path.clone(), seen(thing))).collect()
    }
}

/// The outcome of an operation through version 3.
pub(crate) fn apply<S: Store>(world: &World<S>, op: &Op) -> Outcome {
    Real { world }.apply(op)
}

/// Everything that can be found from the root.
pub(crate) fn tree<S: Store>(world: &World<S>) -> BTreeMap<Path, Seen> {
    let mut tree = BTreeMap::new();
    Real { world }.tree(world.root(), "", &mut tree);
    tree
}

/// Whether an operation may end either way. To put a file in place of a directory that it lies
/// in is EISDIR by POSIX; Linux notices the directory's position first and says ENOTEMPTY.
fn is_as_expected(op: &Op, found: &Outcome, expected: &Outcome) -> bool {
    let either = [&Err(NfsStat3::IsDir), &Err(NfsStat3::NotEmpty)];
    match op {
        Op::Rename(from, to) if is_below(from, to) && either.contains(&expected) => {
            either.contains(&found)
        }
        _ => found == expected,
    }
}

/// Runs the operations on both; the engine's tree must be like the model's at the end.
pub(crate) fn compare<S: Store>(world: &World<S>, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    for (number, op) in ops.iter().enumerate() {
        let (found, expected) = (apply(world, op), model.apply(op));
        prop_assert!(
            is_as_expected(op, &found, &expected),
            "{number}: {op:?}: {found:?}, not {expected:?}"
        );
    }
    prop_assert_eq!(tree(world), model.tree());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_engine_over_memory_is_like_a_map_of_paths(ops in prop::collection::vec(op(), 1..60)) {
        let world = World::new();
        compare(&world, &ops)?;
        world.audit();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_engine_over_a_directory_is_like_a_map_of_paths(
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let place = tempfile::tempdir().unwrap();
        compare(&World::over(place.path(), EngineConfig::default()), &ops)?;
    }
}
