//! Tests 1 to 4: the phases of the Andrew benchmark that work on a hierarchy of source files.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::failed::{Failed, same};
use super::program::count;
use super::step::Step;

/// How often tests 3 and 4 go through the hierarchy.
const PASSES: u32 = 2;

/// Test 1.
pub(super) fn make_dirs(step: &Step<'_>) -> Result<(), Failed> {
    let tree = step.tree();
    fs::create_dir(&tree).map_err(Failed::at("making", &tree))?;
    make_below(step, &tree)
}

/// The directories of the hierarchy, but for its top.
pub(super) fn make_below(step: &Step<'_>, top: &Path) -> Result<(), Failed> {
    for dir in &step.material.program.dirs {
        step.may_go_on()?;
        let path = top.join(dir);
        fs::create_dir(&path).map_err(Failed::at("making", &path))?;
    }
    Ok(())
}

pub(super) fn check_dirs(step: &Step<'_>) -> Result<(), Failed> {
    for dir in &step.material.program.dirs {
        let path = step.tree().join(dir);
        let found = fs::metadata(&path).map_err(Failed::at("looking at", &path))?;
        if !found.is_dir() {
            return Err(Failed::wrong(&path, "is no directory"));
        }
    }
    Ok(())
}

/// Test 2.
pub(super) fn copy_files(step: &Step<'_>) -> Result<(), Failed> {
    let mut content = Vec::new();
    for (name, _) in &step.material.program.files {
        step.may_go_on()?;
        let (from, to) = (step.sources().join(name), step.tree().join(name));
        content.clear();
        let read = File::open(&from).and_then(|mut file| file.read_to_end(&mut content));
        read.map_err(Failed::at("reading", &from))?;
        put(&to, &content)?;
    }
    Ok(())
}

/// Writes a new file in one call.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<(), Failed> {
    let made = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    let written = made.and_then(|mut file| file.write_all(content));
    written.map_err(Failed::at("writing", path))
}

pub(super) fn check_files(step: &Step<'_>) -> Result<(), Failed> {
    for (name, content) in &step.material.program.files {
        let path = step.tree().join(name);
        let found = fs::read(&path).map_err(Failed::at("reading", &path))?;
        same(&path, &found, content)?;
    }
    Ok(())
}

/// Files and their bytes, of all passes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counted {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) needles: u64,
}

/// Test 3.
pub(super) fn stat(step: &Step<'_>) -> Result<Counted, Failed> {
    walk(step, |path, counted| {
        let found = fs::symlink_metadata(path).map_err(Failed::at("looking at", path))?;
        counted.bytes += found.len();
        Ok(())
    })
}

/// Test 4.
pub(super) fn read(step: &Step<'_>) -> Result<Counted, Failed> {
    let mut content = Vec::new();
    walk(step, |path, counted| {
        content.clear();
        let read = File::open(path).and_then(|mut file| file.read_to_end(&mut content));
        counted.bytes += read.map_err(Failed::at("reading", path))? as u64;
        counted.needles += count(&content);
        Ok(())
    })
}

/// Every file of the hierarchy, twice; whether something is a directory its entry tells.
fn walk(
    step: &Step<'_>,
    mut look: impl FnMut(&Path, &mut Counted) -> Result<(), Failed>,
) -> Result<Counted, Failed> {
    let mut counted = Counted::default();
    for _ in 0..PASSES {
        let mut dirs: Vec<PathBuf> = vec![step.tree()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir).map_err(Failed::at("listing", &dir))? {
                step.may_go_on()?;
                let entry = entry.map_err(Failed::at("listing", &dir))?;
                let kind = entry.file_type().map_err(Failed::at("looking at", &entry.path()))?;
                if kind.is_dir() {
                    dirs.push(entry.path());
                } else {
                    look(&entry.path(), &mut counted)?;
                    counted.files += 1;
                }
            }
        }
    }
    Ok(counted)
}

/// What was counted is what there is.
pub(super) fn check_counted(
    step: &Step<'_>,
    counted: Counted,
    is_searched: bool,
) -> Result<(), Failed> {
    let program = &step.material.program;
    let passes = u64::from(PASSES);
    let bytes: u64 = program.files.iter().map(|(_, content)| content.len() as u64).sum();
    let expected = Counted {
        files: passes * program.files.len() as u64,
        bytes: passes * bytes,
        needles: if is_searched { passes * program.needles } else { 0 },
    };
    match counted == expected {
        true => Ok(()),
        false => Err(Failed::wrong(&step.tree(), format!("{counted:?}, and not {expected:?}"))),
    }
}
