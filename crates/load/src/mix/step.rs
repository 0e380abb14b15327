//! What comes next: an operation, and on which file. Decisions only; `perform.rs` makes the calls.
//!
//! Every operation is one call. SFS thinks in requests of up to 17 calls; here the calls of the
//! wire have its lengths (a READ is a whole block 149 times and a fragment of 1 to 7 KiB 15 times,
//! a WRITE as often the one as the other), but do not come in its bursts.

use fastrand::Rng;
use wire::nfs3::FileHandle;

use super::operation::Operation;
use super::table::Mix;
use crate::deck::Deck;
use crate::fileset::{BLOCK_BYTES, Entry, FileSet, Kind, Name, Range};

/// LOOKUPs of 100 that look for what is not there (SFS 3.0).
const MISSING: u32 = 35;

/// WRITEs of 100 that append (SFS 3.0).
const APPENDS: u32 = 70;

/// Whole blocks and fragments on the wire (SFS 3.0, from the lengths of its requests).
const READ_LENGTHS: (u32, u32) = (149, 15);
const WRITE_LENGTHS: (u32, u32) = (100, 100);

/// One call to make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    Null,
    Getattr(FileHandle),
    Setattr(FileHandle),
    Lookup { of: Name, is_there: bool },
    Access(FileHandle),
    Readlink(FileHandle),
    Read(Range),
    Write { to: Range, is_stable: bool },
    Create(Entry),
    Mkdir(Entry),
    Symlink(Entry),
    Mknod(Entry),
    Remove(Entry),
    Rmdir(Entry),
    Rename { from: Entry, to: Entry },
    Link { file: FileHandle, to: Entry },
    Readdir(FileHandle),
    Readdirplus(FileHandle),
    Fsstat(FileHandle),
    Fsinfo(FileHandle),
    Pathconf(FileHandle),
    Commit(FileHandle),
}

impl Step {
    /// Gives back the names that it has taken; `is_done` unless its answer was unexpected.
    pub fn settle(&self, files: &mut FileSet, is_done: bool) {
        match self {
            Self::Create(entry)
            | Self::Mkdir(entry)
            | Self::Symlink(entry)
            | Self::Mknod(entry)
            | Self::Link { to: entry, .. } => files.settle(entry, is_done || entry.is_there),
            Self::Remove(entry) | Self::Rmdir(entry) => {
                files.settle(entry, !is_done && entry.is_there);
            }
            Self::Rename { from, to } => {
                let is_moved = is_done && from.is_there;
                files.settle(from, !is_moved && from.is_there);
                files.settle(to, is_moved || to.is_there);
            }
            _ => {}
        }
    }
}

/// Deals out steps: the same for the same seed, whatever the answers, as long as they come in the
/// same order.
#[derive(Clone, Debug)]
pub struct Dealer {
    operations: Deck<Operation>,
    missing: Deck<bool>,
    appends: Deck<bool>,
    reads: Deck<u32>,
    writes: Deck<u32>,
    is_stable: bool,
    /// What the next COMMIT is for.
    written: Option<FileHandle>,
    random: Rng,
}

impl Dealer {
    /// For a run of about so many operations. `None` for a mix without any.
    pub fn new(mix: &Mix, seed: u64, operations: usize) -> Option<Self> {
        Some(Self {
            operations: Deck::of_run(mix.shares, operations)?,
            missing: Deck::of_run(&[(true, MISSING), (false, 100 - MISSING)], operations)?,
            appends: Deck::of_run(&[(true, APPENDS), (false, 100 - APPENDS)], operations)?,
            reads: lengths(READ_LENGTHS, operations)?,
            writes: lengths(WRITE_LENGTHS, operations)?,
            is_stable: !mix.commits(),
            written: None,
            random: Rng::with_seed(seed),
        })
    }

    /// For what else has to be random in the same run.
    pub fn random(&mut self) -> &mut Rng {
        &mut self.random
    }

    /// The next step on `files`, and the operation that it is.
    pub fn next(&mut self, files: &mut FileSet) -> (Operation, Step) {
        let operation = self.operations.draw(&mut self.random);
        (operation, self.step(operation, files))
    }

    fn step(&mut self, operation: Operation, files: &mut FileSet) -> Step {
        let random = &mut self.random;
        match operation {
            Operation::Null => Step::Null,
            Operation::Getattr => Step::Getattr(files.file(random)),
            Operation::Setattr => Step::Setattr(files.file(random)),
            Operation::Lookup => {
                let is_there = !self.missing.draw(random);
                Step::Lookup { of: files.name(is_there, random), is_there }
            }
            Operation::Access => Step::Access(files.file(random)),
            Operation::Readlink => Step::Readlink(files.symlink(random)),
            Operation::Read => Step::Read(files.to_read(self.reads.draw(random), random)),
            Operation::Write => {
                let (bytes, appends) = (self.writes.draw(random), self.appends.draw(random));
                let to = files.to_write(bytes, appends, random);
                self.written = Some(to.file);
                Step::Write { to, is_stable: self.is_stable }
            }
            Operation::Create => made(Kind::File, files, random, Step::Create),
            Operation::Mkdir => made(Kind::Dir, files, random, Step::Mkdir),
            Operation::Symlink => made(Kind::File, files, random, Step::Symlink),
            Operation::Mknod => made(Kind::File, files, random, Step::Mknod),
            Operation::Remove => removed(Kind::File, files, random, Step::Remove),
            Operation::Rmdir => removed(Kind::Dir, files, random, Step::Rmdir),
            Operation::Rename => match files.to_remove(Kind::File, random) {
                Some(from) => match files.to_make(Kind::File, random) {
                    Some(to) => Step::Rename { from, to },
                    None => {
                        files.settle(&from, from.is_there);
                        Step::Getattr(files.file(random))
                    }
                },
                None => Step::Getattr(files.file(random)),
            },
            Operation::Link => {
                let file = files.file(random);
                made(Kind::File, files, random, |to| Step::Link { file, to })
            }
            Operation::Readdir => Step::Readdir(files.dir(random)),
            Operation::Readdirplus => Step::Readdirplus(files.dir(random)),
            Operation::Fsstat => Step::Fsstat(files.root()),
            Operation::Fsinfo => Step::Fsinfo(files.root()),
            Operation::Pathconf => Step::Pathconf(files.root()),
            Operation::Commit => Step::Commit(self.written.unwrap_or_else(|| files.file(random))),
        }
    }
}

/// A step that makes a name. While calls are about to change all names there is none, and a GETATTR
/// keeps the rate.
fn made(
    kind: Kind,
    files: &mut FileSet,
    random: &mut Rng,
    step: impl FnOnce(Entry) -> Step,
) -> Step {
    match files.to_make(kind, random) {
        Some(entry) => step(entry),
        None => Step::Getattr(files.file(random)),
    }
}

/// A step that removes a name, likewise.
fn removed(
    kind: Kind,
    files: &mut FileSet,
    random: &mut Rng,
    step: impl FnOnce(Entry) -> Step,
) -> Step {
    match files.to_remove(kind, random) {
        Some(entry) => step(entry),
        None => Step::Getattr(files.file(random)),
    }
}

/// So many whole blocks, and so many fragments of 1 to 7 KiB, each length as often.
fn lengths((blocks, fragments): (u32, u32), draws: usize) -> Option<Deck<u32>> {
    let block = u32::try_from(BLOCK_BYTES).unwrap_or(u32::MAX);
    let mut shares = vec![(block, 7 * blocks)];
    shares.extend((1..=7).map(|kib| (kib << 10, fragments)));
    Deck::of_run(&shares, draws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_on_the_wire_have_the_shares_of_the_benchmark() {
        let mut reads = lengths(READ_LENGTHS, 1).unwrap();
        let mut random = Rng::with_seed(3);
        let drawn: Vec<u32> = (0..164 * 7).map(|_| reads.draw(&mut random)).collect();
        let of = |bytes: u32| drawn.iter().filter(|drawn| **drawn == bytes).count();
        assert_eq!((of(8192), of(1024), of(7168)), (149 * 7, 15, 15));
    }
}
