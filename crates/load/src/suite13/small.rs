//! Tests 11 to 13: reads and writes of a few bytes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileExt;

use super::failed::{Failed, same};
use super::material::Material;
use super::step::Step;

/// Test 11: everything that was read, in order.
pub(super) fn read_random(step: &Step<'_>) -> Result<Vec<u8>, Failed> {
    let path = step.random();
    let file = File::open(&path).map_err(Failed::at("opening", &path))?;
    let reads = step.material.reads();
    let mut content = vec![0; reads.iter().map(|(_, len)| len).sum()];
    let mut rest = &mut content[..];
    for (offset, len) in reads {
        step.may_go_on()?;
        let (into, after) = rest.split_at_mut(len);
        file.read_exact_at(into, offset).map_err(Failed::at("reading", &path))?;
        rest = after;
    }
    Ok(content)
}

pub(super) fn check_random(step: &Step<'_>, content: &[u8]) -> Result<(), Failed> {
    let data = &step.material.random;
    let read = |(offset, len): (u64, usize)| {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        data.get(at..at + len).unwrap_or_default()
    };
    let expected: Vec<u8> = step.material.reads().into_iter().flat_map(read).copied().collect();
    same(&step.random(), content, &expected)
}

/// Test 12.
pub(super) fn append(step: &Step<'_>) -> Result<(), Failed> {
    let [path, _] = step.small();
    let made = OpenOptions::new().append(true).create(true).open(&path);
    let mut file = made.map_err(Failed::at("making", &path))?;
    for number in 1..=step.material.sizes.small_writes {
        step.may_go_on()?;
        file.write_all(number.to_string().as_bytes()).map_err(Failed::at("writing", &path))?;
    }
    Ok(())
}

/// Test 13: compares what it reads.
pub(super) fn append_and_read(step: &Step<'_>) -> Result<(), Failed> {
    let [_, path] = step.small();
    let made = OpenOptions::new().read(true).append(true).create(true).open(&path);
    let mut file = made.map_err(Failed::at("making", &path))?;
    let expected = Material::integers(step.material.sizes.small_rewrites);
    let mut content = Vec::with_capacity(expected.len() + 1);
    let mut written = 0;
    for number in 1..=step.material.sizes.small_rewrites {
        step.may_go_on()?;
        let text = number.to_string();
        file.write_all(text.as_bytes()).map_err(Failed::at("writing", &path))?;
        written += text.len();
        file.rewind().map_err(Failed::at("rewinding", &path))?;
        content.clear();
        file.read_to_end(&mut content).map_err(Failed::at("reading", &path))?;
        same(&path, &content, &expected[..written])?;
    }
    Ok(())
}

/// The file of test 12 or 13 has all integers.
pub(super) fn check(step: &Step<'_>, which: usize, count: u32) -> Result<(), Failed> {
    let path = &step.small()[which];
    let found = std::fs::read(path).map_err(Failed::at("reading", path))?;
    same(path, &found, &Material::integers(count))
}
