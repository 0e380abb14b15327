//! What stands in a copy's directory before its first test.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::andrew::{make_below, put};
use super::failed::Failed;
use super::material::Material;
use super::step::Step;

/// Makes `dir`, and in it the sources, the archive, the directories to be listed and the files to
/// be read.
///
/// # Errors
/// As the system says.
pub fn prepare(material: &Material, dir: &Path, stop: &AtomicBool) -> Result<(), Failed> {
    let step = Step { dir, material, stop };
    let make = |path: &Path| fs::create_dir(path).map_err(Failed::at("making", path));
    make(dir)?;
    make(&step.sources())?;
    make_below(&step, &step.sources())?;
    for (name, content) in &material.program.files {
        step.may_go_on()?;
        put(&step.sources().join(name), content)?;
    }
    make(&step.unpacked())?;
    put(&step.archive(), &material.archive.bytes)?;
    make(&step.listed())?;
    for (name, files) in material.listed() {
        let path = step.listed().join(name);
        make(&path)?;
        for file in files {
            step.may_go_on()?;
            put(&path.join(file), b"")?;
        }
    }
    for (path, content) in step.big().iter().zip(&material.big) {
        put(path, content)?;
    }
    put(&step.random(), &material.random)
}

/// Bytes that one copy takes at most, with some for what a file system adds to each file.
pub fn room_bytes(material: &Material) -> u64 {
    /// Of an object, and of a file that is not whole blocks.
    const EACH: u64 = 8192;
    let sizes = material.sizes();
    let sources: usize = material.program.files.iter().map(|(_, content)| content.len()).sum();
    let objects = u64::from(sizes.files() + sizes.archive_files + sizes.archive_dirs)
        + u64::from(sizes.listed_dirs) * u64::from(sizes.listed_files)
        + u64::from(2 * sizes.dirs);
    // Sources and their copies, archive and what it has, two big files and a copy.
    2 * sources as u64
        + 2 * sizes.archive_bytes
        + 3 * sizes.big_bytes
        + sizes.random_bytes
        + 3 * EACH * objects
}
