//! The archive of test 6: made in memory, and unpacked as tar does it.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tar::{Builder, EntryType, Header};

use super::failed::{Failed, same};
use super::generated;
use super::sizes::Sizes;
use super::step::{Step, dir_of};

/// Bytes that tar reads and writes at once, by default.
const BLOCK_BYTES: usize = 10_240;
/// A block of the format: each entry has a header of one, and is filled up to whole ones.
const TAR_BLOCK_BYTES: u64 = 512;
/// 1997-06-01, when nothing is to be newer than what is built.
const MODIFIED_S: u64 = 865_123_200;

/// An archive and what is in it.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) bytes: Vec<u8>,
    pub(super) dirs: Vec<String>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Files whose lengths lie between a tenth and twice the mean, in directories in turn.
    ///
    /// # Panics
    /// Never: it is written to memory.
    pub(super) fn generate(seed: u64, sizes: &Sizes) -> Self {
        let mut rng = generated::rng(seed, "archive");
        let entries = u64::from(sizes.archive_dirs + sizes.archive_files);
        let overhead = entries * TAR_BLOCK_BYTES + 2 * TAR_BLOCK_BYTES;
        let payload = sizes.archive_bytes.saturating_sub(overhead);
        // Filling up costs half a block on average.
        let mean = (payload / u64::from(sizes.archive_files)).saturating_sub(TAR_BLOCK_BYTES / 2);
        let mut left = payload;
        let dirs: Vec<String> =
            (0..sizes.archive_dirs).map(|number| format!("package/d{number:02}")).collect();
        let mut files = BTreeMap::new();
        let mut builder = Builder::new(Vec::new());
        for dir in &dirs {
            append(&mut builder, &format!("{dir}/"), EntryType::Directory, 0o755, &[]);
        }
        for number in 0..sizes.archive_files {
            let is_last = number + 1 == sizes.archive_files;
            let drawn = rng.u64(mean / 10..=(mean * 19 / 10).max(mean / 10));
            let len = if is_last { left } else { drawn.min(left) };
            left = left.saturating_sub(len.next_multiple_of(TAR_BLOCK_BYTES));
            let dir = &dirs[number as usize % dirs.len()];
            let name = format!("{dir}/f{number:03}");
            let data = generated::bytes(seed, &name, len);
            append(&mut builder, &name, EntryType::Regular, 0o644, &data);
            files.insert(name, data);
        }
        let bytes = builder.into_inner().expect("memory takes what is written");
        Self { bytes, dirs, files }
    }
}

fn append(builder: &mut Builder<Vec<u8>>, name: &str, kind: EntryType, mode: u32, data: &[u8]) {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(MODIFIED_S);
    header.set_size(data.len() as u64);
    builder.append_data(&mut header, name, data).expect("names are short, memory takes all");
}

/// Unpacks `archive` into `to`, which is there.
pub(super) fn unpack(step: &Step<'_>, archive: &Path, to: &Path) -> Result<(), Failed> {
    let file = File::open(archive).map_err(Failed::at("opening", archive))?;
    let mut unpacked = tar::Archive::new(BufReader::with_capacity(BLOCK_BYTES, file));
    let broken = || Failed::at("reading the archive", archive);
    let top = to.join("package");
    fs::create_dir(&top).map_err(Failed::at("making", &top))?;
    // The times of directories are set when nothing more is put into them.
    let mut dirs: Vec<(PathBuf, u64)> = Vec::new();
    for entry in unpacked.entries().map_err(broken())? {
        step.may_go_on()?;
        let mut entry = entry.map_err(broken())?;
        let path = to.join(entry.path().map_err(broken())?);
        let (mode, modified) = (entry.header().mode(), entry.header().mtime());
        let (mode, modified) = (mode.map_err(broken())?, modified.map_err(broken())?);
        if entry.header().entry_type().is_dir() {
            fs::create_dir(&path).map_err(Failed::at("making", &path))?;
            dirs.push((path, modified));
            continue;
        }
        write(&mut entry, &path, mode, modified).map_err(Failed::at("unpacking", &path))?;
    }
    for (dir, modified) in dirs {
        let opened = File::open(&dir).and_then(|dir| dir.set_times(times(modified)));
        opened.map_err(Failed::at("setting the times of", &dir))?;
    }
    Ok(())
}

fn write(from: &mut impl Read, path: &Path, mode: u32, modified: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut block = [0; BLOCK_BYTES];
    loop {
        let len = from.read(&mut block)?;
        if len == 0 {
            break;
        }
        file.write_all(&block[..len])?;
    }
    file.set_times(times(modified))?;
    file.set_permissions(Permissions::from_mode(mode))
}

fn times(modified: u64) -> FileTimes {
    FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(modified))
}

/// What was unpacked is what was packed.
pub(super) fn check(archive: &Archive, to: &Path) -> Result<(), Failed> {
    for dir in &archive.dirs {
        let path = to.join(dir);
        let expected = archive.files.keys().filter(|name| dir_of(name) == *dir).count();
        let found = fs::read_dir(&path).map_err(Failed::at("listing", &path))?.count();
        if found != expected {
            return Err(Failed::wrong(&path, format!("{found} files, and not {expected}")));
        }
    }
    for (name, data) in &archive.files {
        let path = to.join(name);
        let found = fs::read(&path).map_err(Failed::at("reading", &path))?;
        same(&path, &found, data)?;
        let modified = fs::metadata(&path).and_then(|found| found.modified());
        let modified = modified.map_err(Failed::at("looking at", &path))?;
        if modified != SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_S) {
            return Err(Failed::wrong(&path, "its time is not that of the archive"));
        }
    }
    Ok(())
}
