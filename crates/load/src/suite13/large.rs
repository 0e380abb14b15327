//! Tests 7 to 10: directories and files that are larger than what fits one call.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use super::failed::Failed;
use super::step::Step;

/// Bytes of a call.
pub(super) const CALL_BYTES: usize = 8192;

/// Test 7: the names, in the order in which they came, of every listing of every directory.
pub(super) fn list(step: &Step<'_>) -> Result<Vec<Vec<String>>, Failed> {
    let mut listings = Vec::new();
    for _ in 0..step.material.sizes.listings {
        for (dir, _) in step.material.listed() {
            step.may_go_on()?;
            let path = step.listed().join(dir);
            let entries = fs::read_dir(&path).map_err(Failed::at("listing", &path))?;
            let names = entries.map(|entry| {
                let entry = entry.map_err(Failed::at("listing", &path))?;
                Ok(entry.file_name().to_string_lossy().into_owned())
            });
            listings.push(names.collect::<Result<Vec<String>, Failed>>()?);
        }
    }
    Ok(listings)
}

pub(super) fn check_list(step: &Step<'_>, listings: &[Vec<String>]) -> Result<(), Failed> {
    let dirs: Vec<(String, Vec<String>)> = step.material.listed().collect();
    for (found, (dir, expected)) in listings.iter().zip(dirs.iter().cycle()) {
        let mut found = found.clone();
        found.sort_unstable();
        if found != *expected {
            let path = step.listed().join(dir);
            let what = format!("{} names, and not {}, or others", found.len(), expected.len());
            return Err(Failed::wrong(&path, what));
        }
    }
    Ok(())
}

/// Tests 8 and 9.
pub(super) fn read(step: &Step<'_>, path: &Path) -> Result<Vec<u8>, Failed> {
    let mut file = File::open(path).map_err(Failed::at("opening", path))?;
    let room = usize::try_from(step.material.sizes.big_bytes).unwrap_or(0);
    let mut content = vec![0; room + CALL_BYTES];
    let mut at = 0;
    loop {
        step.may_go_on()?;
        let end = (at + CALL_BYTES).min(content.len());
        let len = file.read(&mut content[at..end]).map_err(Failed::at("reading", path))?;
        at += len;
        // What is longer than it should be is found out when it is compared.
        if len == 0 || at == content.len() {
            content.truncate(at);
            return Ok(content);
        }
    }
}

/// Test 10.
pub(super) fn copy(step: &Step<'_>) -> Result<(), Failed> {
    let ([_, from], to) = (step.big(), step.copied());
    let mut source = File::open(&from).map_err(Failed::at("opening", &from))?;
    let made = OpenOptions::new().write(true).create(true).truncate(true).open(&to);
    let mut target = made.map_err(Failed::at("making", &to))?;
    let mut block = [0; CALL_BYTES];
    loop {
        step.may_go_on()?;
        let len = source.read(&mut block).map_err(Failed::at("reading", &from))?;
        if len == 0 {
            return Ok(());
        }
        target.write_all(&block[..len]).map_err(Failed::at("writing", &to))?;
    }
}
