//! The files that every server serves, and their handles.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wire::nfs3::FileHandle;

use super::client::connection;
use super::client::jobs::pattern;
use super::client::pipeline::Pipeline;
use super::client::session::Session;
use super::servers::{Name, Peer};

/// Files that GETATTR, ACCESS and LOOKUP go round; more than a client asks about at once.
const FILES: usize = 1000;
/// Entries of the directory that is listed.
pub(crate) const ENTRIES: u64 = 10_000;
/// The file that is read; it fits in any page cache.
pub(crate) const BIG_BYTES: u64 = 256 << 20;
const CHUNK_BYTES: usize = 1 << 20;

const FILES_DIR: &str = "files";
const MANY_DIR: &str = "many";
const BIG: &str = "big";

/// Makes the tree on disk, before any server looks at it.
pub(crate) fn make(export: &Path) -> io::Result<()> {
    fs::create_dir_all(export.join(FILES_DIR))?;
    for name in file_names() {
        fs::write(export.join(FILES_DIR).join(name), pattern(0, 1024))?;
    }
    fs::create_dir_all(export.join(MANY_DIR))?;
    for number in 0..ENTRIES {
        fs::write(export.join(MANY_DIR).join(format!("entry-{number:05}")), b"")?;
    }
    let mut big = fs::File::create(export.join(BIG))?;
    for offset in (0..BIG_BYTES).step_by(CHUNK_BYTES) {
        io::Write::write_all(&mut big, &pattern(offset, CHUNK_BYTES))?;
    }
    big.sync_all()?;
    for name in Name::ALL.into_iter().filter(|&name| name != Name::OursLog) {
        fs::create_dir_all(work_dir(export, name))?;
    }
    fs::create_dir_all(logged_dir(export))?;
    rustix::fs::sync();
    Ok(())
}

/// Where a server changes files: each in a folder of its own, as all of them run at once.
pub(crate) fn work_dir(export: &Path, name: Name) -> PathBuf {
    match name {
        Name::OursLog => logged_dir(export),
        _ => export.to_owned(),
    }
    .join(work_dir_name(name))
}

/// What the server with a write log has: a directory beside that of all others.
pub(crate) fn logged_dir(export: &Path) -> PathBuf {
    export.with_file_name("logged")
}

fn work_dir_name(name: Name) -> String {
    format!("work-{}", name.label())
}

/// Brings the large file into the page cache.
pub(crate) fn warm(export: &Path) -> io::Result<()> {
    io::copy(&mut fs::File::open(export.join(BIG))?, &mut io::sink()).map(drop)
}

fn file_names() -> impl Iterator<Item = String> {
    (0..FILES).map(|number| format!("file-{number:04}"))
}

/// A mounted server, and what is used of it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) session: Session,
    pub(crate) pipeline: Pipeline,
    pub(crate) files_dir: FileHandle,
    pub(crate) files: Vec<(String, FileHandle)>,
    /// Not where the tree is made by calls.
    pub(crate) many: Option<FileHandle>,
    pub(crate) big: FileHandle,
    pub(crate) work: FileHandle,
}

impl Site {
    /// Mounts; `sequence` is different for each connection of a run.
    pub(crate) fn open(peer: &Peer, sequence: u32) -> Result<Self, String> {
        let mut session = Session::mount(peer.address)?;
        let root = session.root;
        if matches!(peer.name, Name::OursMemory | Name::OursLog) {
            make_by_calls(&mut session, peer.name)?;
        }
        let many = match peer.name {
            Name::OursMemory | Name::OursLog => None,
            _ => Some(session.lookup(root, MANY_DIR)?),
        };
        let files_dir = session.lookup(root, FILES_DIR)?;
        let mut files = Vec::new();
        for name in file_names() {
            let handle = session.lookup(files_dir, &name)?;
            files.push((name, handle));
        }
        let big = session.lookup(root, BIG)?;
        let work = session.lookup(root, &work_dir_name(peer.name))?;
        let pipeline = Pipeline::new(connection::open(peer.address.nfs_port)?, sequence);
        Ok(Self { session, pipeline, files_dir, files, many, big, work })
    }
}

/// The same tree, without the large directory; the large file is empty but in memory.
fn make_by_calls(session: &mut Session, name: Name) -> Result<(), String> {
    let root = session.root;
    if session.lookup(root, FILES_DIR).is_ok() {
        return Ok(());
    }
    let dir = session.mkdir(root, FILES_DIR)?;
    for name in file_names() {
        session.create(dir, &name)?;
    }
    session.mkdir(root, &work_dir_name(name))?;
    let big = session.create(root, BIG)?;
    if name != Name::OursMemory {
        return Ok(());
    }
    for offset in (0..BIG_BYTES).step_by(CHUNK_BYTES) {
        session.write(big, offset, &pattern(offset, CHUNK_BYTES))?;
    }
    session.commit(big).map(drop)
}
