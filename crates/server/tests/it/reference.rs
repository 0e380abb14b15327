//! Random operations on the engine and on the simplest file system we can think of: a map from
//! paths to what is there. Every operation must give the same status, and in the end the trees
//! must be the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use server::EngineConfig;
use server::store::Store;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{self, FType, FileHandle, NfsStat3, Procedure as P};

use crate::world::{World, mode, size, status};

pub(crate) type Path = Vec<u8>; // one letter per component; empty for the root

#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Dir,
    File(usize),
    Link(usize),
}

/// What is where. Files and links have numbers, so that they may have several names.
#[derive(Debug, Default)]
struct Model {
    things: BTreeMap<Path, Thing>,
    contents: Vec<Vec<u8>>,
    targets: Vec<Vec<u8>>,
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
    prop::collection::vec(prop::sample::select(b"abc".to_vec()), 1..4)
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
    fn find(&self, path: &[u8]) -> Result<&Thing, NfsStat3> {
        for len in 1..path.len() {
            match self.things.get(&path[..len]) {
                Some(Thing::Dir) => {}
                Some(_) => return Err(NfsStat3::NotDir),
                None => return Err(NfsStat3::NoEnt),
            }
        }
        self.things.get(path).ok_or(NfsStat3::NoEnt)
    }

    /// What is to have a name in it: found first, as by LOOKUP, and then looked at.
    fn parent(&self, path: &[u8]) -> Result<&Thing, NfsStat3> {
        match path.len() {
            1 => Ok(&Thing::Dir),
            len => self.find(&path[..len - 1]),
        }
    }

    /// The parent is there and a directory.
    fn check_parent(&self, path: &[u8]) -> Result<(), NfsStat3> {
        match self.parent(path)? {
            Thing::Dir => Ok(()),
            _ => Err(NfsStat3::NotDir),
        }
    }

    fn check_free(&self, path: &[u8]) -> Result<(), NfsStat3> {
        self.check_parent(path)?;
        match self.things.contains_key(path) {
            true => Err(NfsStat3::Exist),
            false => Ok(()),
        }
    }

    fn is_empty(&self, path: &[u8]) -> bool {
        !self.things.keys().any(|other| is_below(other, path))
    }

    fn contents(&mut self, path: &[u8]) -> Result<&mut Vec<u8>, NfsStat3> {
        match *self.find(path)? {
            Thing::File(number) => Ok(&mut self.contents[number]),
            _ => Err(NfsStat3::Inval),
        }
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Create(path, guarded) => match self.check_free(path) {
                Err(NfsStat3::Exist) if !guarded => match self.things[path] {
                    Thing::File(_) => {}
                    _ => return Err(NfsStat3::Exist),
                },
                Err(status) => return Err(status),
                Ok(()) => {
                    let file = Thing::File(self.contents.len());
                    self.contents.push(Vec::new());
                    self.things.insert(path.clone(), file);
                }
            },
            Op::Mkdir(path) => {
                self.check_free(path)?;
                self.things.insert(path.clone(), Thing::Dir);
            }
            Op::Symlink(path) => {
                self.check_free(path)?;
                self.things.insert(path.clone(), Thing::Link(self.targets.len()));
                self.targets.push(path.clone());
            }
            Op::Remove(path) => match self.find(path)? {
                Thing::Dir => return Err(NfsStat3::IsDir),
                _ => drop(self.things.remove(path)),
            },
            Op::Rmdir(path) => match self.find(path)? {
                Thing::Dir if !self.is_empty(path) => return Err(NfsStat3::NotEmpty),
                Thing::Dir => drop(self.things.remove(path)),
                _ => return Err(NfsStat3::NotDir),
            },
            Op::Rename(from, to) => self.rename(from, to)?,
            Op::Link(file, link) => {
                let thing = self.find(file)?.clone();
                self.check_parent(link)?;
                if thing == Thing::Dir {
                    return Err(NfsStat3::Inval);
                }
                self.check_free(link)?;
                self.things.insert(link.clone(), thing);
            }
            Op::Write(path, offset, data) => {
                let contents = self.contents(path)?;
                let start = usize::try_from(*offset).unwrap();
                if !data.is_empty() {
                    let len = contents.len().max(start + data.len());
                    contents.resize(len, 0);
                    contents[start..start + data.len()].copy_from_slice(data);
                }
            }
            Op::SetSize(path, size) => {
                let size = usize::try_from(*size).unwrap();
                self.contents(path)?.resize(size, 0);
            }
            Op::Read(path, offset, count) => {
                let contents = self.contents(path)?;
                let start = usize::try_from(*offset).unwrap().min(contents.len());
                let end = (start + *count as usize).min(contents.len());
                return Ok(contents[start..end].to_vec());
            }
        }
        Ok(Vec::new())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), NfsStat3> {
        self.parent(from)?;
        self.parent(to)?;
        self.check_parent(from)?;
        self.check_parent(to)?;
        let moved = self.find(from)?.clone();
        let target = self.things.get(to);
        let same_file = moved != Thing::Dir && target == Some(&moved);
        if from == to || same_file {
            return Ok(());
        }
        if moved == Thing::Dir && is_below(to, from) {
            return Err(NfsStat3::Inval);
        }
        match (&moved, target) {
            (Thing::Dir, Some(Thing::Dir)) if !self.is_empty(to) => {
                return Err(NfsStat3::NotEmpty);
            }
            (_, None) | (Thing::Dir, Some(Thing::Dir)) => {}
            (Thing::Dir, Some(_)) => return Err(NfsStat3::NotDir),
            (_, Some(Thing::Dir)) => return Err(NfsStat3::IsDir),
            (_, Some(_)) => {}
        }
        self.things.remove(to);
        let moving: Vec<Path> = self
            .things
            .keys()
            .filter(|path| *path == from || is_below(path, from))
            .cloned()
            .collect();
        for path in moving {
            let thing = self.things.remove(&path).unwrap();
            let new = [&to[..], &path[from.len()..]].concat();
            self.things.insert(new, thing);
        }
        Ok(())
    }
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.len() > dir.len() && path.starts_with(dir)
}

/// The same operations through the engine.
struct Real<'w, S> {
    world: &'w World<S>,
}

impl<S: Store> Real<'_, S> {
    fn find(&self, path: &[u8]) -> Result<FileHandle, NfsStat3> {
        path.chunks(1).try_fold(self.world.root(), |dir, name| {
            let found = self.world.lookup(dir, name);
            found.map(|ok| ok.object).map_err(|failure| failure.status)
        })
    }

    /// The parent of a path and its last name.
    fn split<'p>(&self, path: &'p [u8]) -> Result<(FileHandle, &'p [u8]), NfsStat3> {
        let (dir, name) = path.split_at(path.len() - 1);
        Ok((self.find(dir)?, name))
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
                status(world.symlink(dir, name, path))
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
    fn tree(&self, dir: FileHandle, path: &[u8], tree: &mut BTreeMap<Path, Seen>) {
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
            let path = [path, entry.name].concat();
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
                contents: self.contents[*number].clone(),
                names: u32::try_from(self.things.values().filter(|&t| t == thing).count()).unwrap(),
            },
            Thing::Link(number) => Seen::Link(self.targets[*number].clone()),
        };
        let things = self.things.iter();
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
    Real { world }.tree(world.root(), b"", &mut tree);
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
