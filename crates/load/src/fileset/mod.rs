//! The files that a mix of operations works on: made before it, changed by it, known all the time.
//!
//! - [`layout`]: how many of what, as SFS has it, scaled.
//! - `build`: makes them on a server.
//!
//! Files that are read and written never go away. Names that come and go are others, so that no
//! operation meets what another one has just removed: every call has the answer that is expected.

mod build;
pub mod layout;
mod touched;

use fastrand::Rng;
use wire::nfs3::FileHandle;

pub use build::build;
pub use layout::Layout;

use self::touched::Touched;

/// What SFS lets its files grow by while it runs, as a share.
const GROWTH_MAX: f64 = 0.1;

/// The block of SFS: READs and WRITEs that are no fragments have this length.
pub const BLOCK_BYTES: u64 = 8 << 10;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct FileSet {
    root: FileHandle,
    dirs: Vec<FileHandle>,
    files: Vec<File>,
    /// The first so many of `files` are those that are touched.
    accessed: usize,
    /// Numbers of those that hold a whole block, in order.
    large: Vec<usize>,
    /// What a run has touched so far.
    touched: Touched,
    entries: Vec<Entry>,
    symlinks: Vec<FileHandle>,
    bytes: u64,
    grown_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct File {
    handle: FileHandle,
    bytes: u64,
}

/// A name that comes and goes.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    is_there: bool,
    /// A call is about to change it.
    is_busy: bool,
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Range {
    pub file: FileHandle,
    pub offset: u64,
    pub bytes: u32,
}

/// A name in a directory of the set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Name {
    pub dir: FileHandle,
    pub name: String,
}

fn file_name(number: usize) -> String {
    format!("file_en.{number:05}")
}

fn entry_name(number: usize) -> String {
    format!("dir_ent.{number:05}")
}

fn symlink_name(number: usize) -> String {
    format!("symlink.{number:05}")
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

    /// From here on only the first so many files are touched, at least one: the working set of a
    /// run. Forgets which ones were touched before.
    pub fn narrow(&mut self, accessed: usize) {
        self.accessed = accessed.clamp(1, self.files.len().max(1));
        self.touched.clear();
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

    /// A symbolic link; a set without any has its files asked, which is an error of the caller's.
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
        let name = if is_there { file_name(number) } else { format!("missing.{number:05}") };
        Name { dir: self.dir_of(number), name }
    }

    /// Where to read so many bytes: within a file, at a block's beginning.
    pub fn to_read(&mut self, bytes: u32, random: &mut Rng) -> Range {
        self.within(bytes, random).1
    }

    /// Where to write so many bytes: at a file's end, which grows it, or within one.
    pub fn to_write(&mut self, bytes: u32, appends: bool, random: &mut Rng) -> Range {
        let may_grow =
            (self.grown_bytes + u64::from(bytes)) as f64 <= GROWTH_MAX * self.bytes as f64;
        if !(appends && may_grow) {
            return self.within(bytes, random).1;
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

    /// A name to make or to remove, with its number; from here until [`FileSet::settle`] no other
    /// call gets it. If all names are in the wrong state, one of them all the same: then CREATE
    /// finds a file and REMOVE finds none. `None` while calls are about to change all of them.
    pub fn entry(&mut self, to_be_there: bool, random: &mut Rng) -> Option<(usize, Name)> {
        let begin = random.usize(..self.entries.len().max(1));
        let around = (begin..self.entries.len()).chain(0..begin);
        let free: Vec<usize> = around.filter(|at| !self.entries[*at].is_busy).collect();
        let fitting = free.iter().find(|at| self.entries[**at].is_there != to_be_there);
        let number = *fitting.or_else(|| free.first())?;
        self.entries[number].is_busy = true;
        Some((number, Name { dir: self.dir_of(number), name: entry_name(number) }))
    }

    /// What became of a name.
    pub fn settle(&mut self, number: usize, is_there: bool) {
        if let Some(entry) = self.entries.get_mut(number) {
            *entry = Entry { is_there, is_busy: false };
        }
    }
}
