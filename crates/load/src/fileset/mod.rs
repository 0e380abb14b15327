//! The files that a mix of operations works on: made before it, changed by it, known all the time.
//!
//! - [`layout`]: how many of what, as SFS has it, scaled.
//! - `build`: makes them on a server.
//! - `names`: names that come and go.
//!
//! Files that are read and written never go away. Names that come and go are others, so that no
//! operation meets what another one has just removed: every call has the answer that is expected.

pub(crate) mod build;
mod label;
pub mod layout;
pub(crate) mod names;
mod touched;

use fastrand::Rng;
use wire::nfs3::FileHandle;

pub use build::{build, build_with_progress, cut_back};
pub use label::Label;
pub use layout::Layout;

use self::names::{Names, Taken};
use self::touched::Touched;

/// What SFS lets its files grow by while it runs, as a share.
const GROWTH_MAX: f64 = 0.1;

/// How often a file is looked for that is long enough for a fragment.
const WITHIN_TRIES: usize = 8;

/// The block of SFS: READs and WRITEs that are no fragments have this length.
pub const BLOCK_BYTES: u64 = 8 << 10;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct FileSet {
    root: FileHandle,
    dirs: Vec<FileHandle>,
    files: Vec<File>,
    /// The first so many of `files` are those that are touched; the layout lets so many be.
    accessed: usize,
    accessed_max: usize,
    /// Numbers of those that hold a whole block, in order.
    large: Vec<usize>,
    /// What a run has touched so far.
    touched: Touched,
    /// Files, links, symbolic links and pipes that come and go.
    entries: Names,
    /// Directories that do.
    subdirs: Names,
    symlinks: Vec<FileHandle>,
    bytes: u64,
    grown_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct File {
    handle: FileHandle,
    bytes: u64,
    /// As it was made.
    built_bytes: u64,
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Range {
    pub file: FileHandle,
    pub offset: u64,
    pub bytes: u32,
}

/// A name in a directory of the set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Name {
    pub dir: FileHandle,
    pub label: Label,
}

/// A name that an operation changes; from here until [`FileSet::settle`] no other one gets it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry {
    pub name: Name,
    /// As it is before: the answer is another one where that is not what the operation needs.
    pub is_there: bool,
    kind: Kind,
    number: u32,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Anything but a directory: made by CREATE, SYMLINK, MKNOD and LINK, moved by RENAME, removed
    /// by REMOVE.
    File,
    /// Made by MKDIR, removed by RMDIR.
    Dir,
}

impl Kind {
    fn label(self, number: u32) -> Label {
        match self {
            Self::File => Label::new(b"dir_ent.", number),
            Self::Dir => Label::new(b"dir_sub.", number),
        }
    }
}

fn file_label(number: usize) -> Label {
    // A set has at most FILES_MAX.
    Label::new(b"file_en.", u32::try_from(number).unwrap_or(u32::MAX))
}

impl FileSet {
    /// Bytes in its files as they were made.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Files, and how many of them are touched.
    pub fn files(&self) -> (usize, usize) {
        (self.files.len(), self.accessed)
    }

    /// The directory that all of it is in.
    pub fn root(&self) -> FileHandle {
        self.root
    }

    fn dir_of(&self, number: usize) -> FileHandle {
        self.dirs[number % self.dirs.len()]
    }

    /// From here on only this share of the files that the layout lets a run touch are touched, at
    /// least one: the working set of a run. Forgets which ones were touched before.
    pub fn narrow_to(&mut self, share: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let accessed = (self.accessed_max as f64 * share).ceil() as usize;
        self.accessed = accessed.clamp(1, self.accessed_max.max(1));
        self.touched.clear();
    }

    /// Files that have grown, with the lengths that they were made with; from here on they have
    /// those.
    fn take_grown(&mut self) -> Vec<(FileHandle, u64)> {
        self.grown_bytes = 0;
        let grown = self.files.iter_mut().filter(|file| file.bytes > file.built_bytes);
        grown
            .map(|file| {
                file.bytes = file.built_bytes;
                (file.handle, file.built_bytes)
            })
            .collect()
    }

    /// Different files that were touched since the set was made, or narrowed.
    pub fn touched_files(&self) -> usize {
        self.touched.count()
    }

    /// A file that is touched.
    pub fn file(&mut self, random: &mut Rng) -> FileHandle {
        let number = random.usize(..self.accessed);
        self.touched.touch(number);
        self.files[number].handle
    }

    pub fn dir(&self, random: &mut Rng) -> FileHandle {
        self.dir_of(random.usize(..self.accessed))
    }

    /// A symbolic link; a set without any has its files read, which is an error of the caller's.
    pub fn symlink(&mut self, random: &mut Rng) -> FileHandle {
        match self.symlinks.len() {
            0 => self.file(random),
            len => self.symlinks[random.usize(..len)],
        }
    }

    /// The name of a file, or one that never was.
    pub fn name(&mut self, is_there: bool, random: &mut Rng) -> Name {
        let number = random.usize(..self.accessed);
        if is_there {
            self.touched.touch(number);
        }
        let label = match is_there {
            true => file_label(number),
            false => Label::new(b"missing.", u32::try_from(number).unwrap_or(u32::MAX)),
        };
        Name { dir: self.dir_of(number), label }
    }

    /// Where to read so many bytes: within a file, at a block's beginning.
    pub fn to_read(&mut self, bytes: u32, random: &mut Rng) -> Range {
        self.within(bytes, random).1
    }

    /// Where to write so many bytes: at a file's end, which grows it, or within one, and then not
    /// more than there are.
    pub fn to_write(&mut self, bytes: u32, appends: bool, random: &mut Rng) -> Range {
        let may_grow =
            (self.grown_bytes + u64::from(bytes)) as f64 <= GROWTH_MAX * self.bytes as f64;
        if !(appends && may_grow) {
            // In a file that has so many, if a few tries find one.
            let mut tries = (0..WITHIN_TRIES).map(|_| random.usize(..self.accessed));
            let fitting = tries.find(|number| self.files[*number].bytes >= u64::from(bytes));
            let (number, range) = match fitting.filter(|_| u64::from(bytes) < BLOCK_BYTES) {
                Some(number) => {
                    (number, Range { file: self.files[number].handle, offset: 0, bytes })
                }
                None => self.within(bytes, random),
            };
            self.touched.touch(number);
            let there = self.files[number].bytes.saturating_sub(range.offset).max(1);
            return Range { bytes: u32::try_from(there).unwrap_or(bytes).min(bytes), ..range };
        }
        let number = random.usize(..self.accessed);
        self.touched.touch(number);
        let file = &mut self.files[number];
        let range = Range { file: file.handle, offset: file.bytes, bytes };
        file.bytes += u64::from(bytes);
        self.grown_bytes += u64::from(bytes);
        range
    }

    /// A whole block lies in a file that has one; what is less, in any.
    fn within(&mut self, bytes: u32, random: &mut Rng) -> (usize, Range) {
        let large = self.large.partition_point(|number| *number < self.accessed);
        let number = match large {
            len if len > 0 && u64::from(bytes) >= BLOCK_BYTES => self.large[random.usize(..len)],
            _ => random.usize(..self.accessed),
        };
        self.touched.touch(number);
        let file = self.files[number];
        let blocks = (file.bytes / BLOCK_BYTES).max(1);
        let offset = random.u64(..blocks) * BLOCK_BYTES;
        (number, Range { file: file.handle, offset, bytes })
    }

    /// A name to make. `None` while calls are about to change all of them.
    pub fn to_make(&mut self, kind: Kind, random: &mut Rng) -> Option<Entry> {
        let taken = self.names(kind).take_absent(random)?;
        Some(self.entry(kind, taken))
    }

    /// A name to remove. `None` as with [`FileSet::to_make`].
    pub fn to_remove(&mut self, kind: Kind, random: &mut Rng) -> Option<Entry> {
        let taken = self.names(kind).take_there(random)?;
        Some(self.entry(kind, taken))
    }

    /// What became of a name.
    pub fn settle(&mut self, entry: &Entry, is_there: bool) {
        self.names(entry.kind).settle(entry.number, is_there);
    }

    /// Operations that found no name in the state that they need: they made what was there, or
    /// removed what was not.
    pub fn hollow(&self) -> u64 {
        self.entries.hollow() + self.subdirs.hollow()
    }

    fn names(&mut self, kind: Kind) -> &mut Names {
        match kind {
            Kind::File => &mut self.entries,
            Kind::Dir => &mut self.subdirs,
        }
    }

    fn entry(&self, kind: Kind, taken: Taken) -> Entry {
        let Taken { number, is_there } = taken;
        let name = Name { dir: self.dir_of(number as usize), label: kind.label(number) };
        Entry { name, is_there, kind, number }
    }
}
