//! Close-to-open consistency: what is written and closed through one mount is what whoever opens
//! the file afterwards through another reads, whatever both remember.
//!
//! Two folders are two mounts of one directory. A seed decides who changes which file how, and who
//! looks at what; every look is compared with what was written last. Runs as a program of its own,
//! because a mount that does not answer can not be waited for otherwise.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fastrand::Rng;

/// Files that are played with: few, so that most of them are remembered by both sides.
const FILES: usize = 6;
const BYTES_MAX: usize = 40_000;
/// Steps that a failure shows.
const SHOWN: usize = 12;

/// One file, as it should be: its content, or nothing when it is not there.
type Model = [Option<Vec<u8>>; FILES];

struct Play {
    mounts: [PathBuf; 2],
    model: Model,
    log: Vec<String>,
    /// Files that a side keeps open over what the other does.
    held: [Option<(usize, File)>; 2],
}

/// Plays `steps` steps in the two folders; a sentence about the outcome.
pub(super) fn run(first: &Path, second: &Path, seed: u64, steps: u32) -> Result<String, String> {
    let model = std::array::from_fn(|_| None);
    let mounts = [first.to_owned(), second.to_owned()];
    let mut play = Play { mounts, model, log: Vec::new(), held: [None, None] };
    let mut rng = Rng::with_seed(seed);
    for step in 0..steps {
        play.step(&mut rng).map_err(|why| {
            let from = play.log.len().saturating_sub(SHOWN);
            format!("seed {seed}, step {step}: {why}; before: {}", play.log[from..].join("; "))
        })?;
    }
    Ok(format!("{steps} steps, seed {seed}"))
}

impl Play {
    fn step(&mut self, rng: &mut Rng) -> Result<(), String> {
        let (side, file) = (rng.usize(..2), rng.usize(..FILES));
        let sort = rng.u8(..100);
        let what = match sort {
            0..40 => "looks",
            40..52 => "writes anew",
            52..60 => "writes as many bytes",
            60..68 => "overwrites a part",
            68..75 => "appends",
            75..82 => "truncates",
            82..87 => "grows by truncation",
            87..91 => "renames over",
            91..94 => "removes",
            94..97 => "makes anew by rename",
            _ => "keeps open",
        };
        self.log.push(format!("{} {what} {}", ["A", "B"][side], name(file)));
        let done = match sort {
            0..40 => return self.look(side, file),
            40..52 => self.write(side, file, rng, None),
            52..60 => {
                let size = self.model[file].as_ref().map(Vec::len);
                self.write(side, file, rng, size)
            }
            60..68 => self.overwrite(side, file, rng),
            68..75 => self.append(side, file, rng),
            75..82 => self.truncate(side, file, rng, false),
            82..87 => self.truncate(side, file, rng, true),
            87..91 => self.rename_over(side, file, rng.usize(..FILES)),
            91..94 => self.remove(side, file),
            94..97 => self.replace(side, file, rng),
            _ => self.hold(side, file),
        };
        done.map_err(|error| format!("failed: {error}"))?;
        // The other side, at once: what it remembers is as old as it can be wrong.
        if rng.u8(..4) > 0 { self.look(1 - side, file) } else { Ok(()) }
    }

    /// Opens, reads and compares; the size that stat(2) gives of the open file, too.
    fn look(&mut self, side: usize, file: usize) -> Result<(), String> {
        let who = ["A", "B"][side];
        let opened = File::open(self.path(side, file));
        let (mut got, expected) = match (opened, &self.model[file]) {
            (Ok(got), Some(expected)) => (got, expected),
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            (Ok(_), None) => return Err(format!("{who} opens {}, which is removed", name(file))),
            (Err(error), _) => return Err(format!("{who} cannot open {}: {error}", name(file))),
        };
        let size = got.metadata().map_err(|error| error.to_string())?.len();
        let mut content = Vec::new();
        got.read_to_end(&mut content).map_err(|error| format!("{who} cannot read: {error}"))?;
        if size != expected.len() as u64 || content.len() != expected.len() {
            return Err(format!(
                "{who} finds {} with a size of {size} and {} bytes, not {}",
                name(file),
                content.len(),
                expected.len()
            ));
        }
        match content.iter().zip(expected).position(|(got, expected)| got != expected) {
            Some(at) => Err(format!("{who} reads old bytes of {} from {at} on", name(file))),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        side: usize,
        file: usize,
        rng: &mut Rng,
        size: Option<usize>,
    ) -> io::Result<()> {
        let data = match size {
            Some(count) => bytes(rng, count),
            None => some_bytes(rng, BYTES_MAX),
        };
        let path = self.path(side, file);
        let mut to = match size {
            // In place: neither the size nor the name tells that anything happened.
            Some(_) if self.model[file].is_some() => OpenOptions::new().write(true).open(path)?,
            _ => File::create(path)?,
        };
        to.write_all(&data)?;
        self.model[file] = Some(data);
        Ok(())
    }

    fn overwrite(&mut self, side: usize, file: usize, rng: &mut Rng) -> io::Result<()> {
        let Some(content) = &mut self.model[file] else { return Ok(()) };
        let at = rng.usize(..=content.len());
        let data = some_bytes(rng, 5_000);
        content.resize(content.len().max(at + data.len()), 0);
        content[at..at + data.len()].copy_from_slice(&data);
        let path = self.path(side, file);
        OpenOptions::new().write(true).open(path)?.write_all_at(&data, at as u64)
    }

    fn append(&mut self, side: usize, file: usize, rng: &mut Rng) -> io::Result<()> {
        let Some(content) = &mut self.model[file] else { return Ok(()) };
        let data = some_bytes(rng, 5_000);
        content.extend_from_slice(&data);
        OpenOptions::new().append(true).open(self.path(side, file))?.write_all(&data)
    }

    fn truncate(&mut self, side: usize, file: usize, rng: &mut Rng, grows: bool) -> io::Result<()> {
        let Some(content) = &mut self.model[file] else { return Ok(()) };
        let size = match grows {
            true => content.len() + rng.usize(..5_000),
            false => rng.usize(..=content.len()),
        };
        content.resize(size, 0);
        OpenOptions::new().write(true).open(self.path(side, file))?.set_len(size as u64)
    }

    fn rename_over(&mut self, side: usize, from: usize, to: usize) -> io::Result<()> {
        if from == to || self.model[from].is_none() {
            return Ok(());
        }
        self.model[to] = self.model[from].take();
        fs::rename(self.path(side, from), self.path(side, to))
    }

    fn remove(&mut self, side: usize, file: usize) -> io::Result<()> {
        match self.model[file].take() {
            Some(_) => fs::remove_file(self.path(side, file)),
            None => Ok(()),
        }
    }

    /// As editors save: a new file takes the name.
    fn replace(&mut self, side: usize, file: usize, rng: &mut Rng) -> io::Result<()> {
        let data = some_bytes(rng, BYTES_MAX);
        let new = self.mounts[side].join("new");
        fs::write(&new, &data)?;
        fs::rename(new, self.path(side, file))?;
        self.model[file] = Some(data);
        Ok(())
    }

    /// Keeps a file open, which is not closed when the other side changes it; then looks at what
    /// was kept before, which only has to be readable.
    fn hold(&mut self, side: usize, file: usize) -> io::Result<()> {
        if let Some((_, mut old)) = self.held[side].take() {
            old.seek(SeekFrom::Start(0))?;
            match old.read_to_end(&mut Vec::new()) {
                // The other side removed it: a server without state knows it no more.
                Err(error) if error.raw_os_error() == Some(STALE) => {}
                read => drop(read?),
            }
        }
        if self.model[file].is_some() {
            self.held[side] = Some((file, File::open(self.path(side, file))?));
        }
        Ok(())
    }

    fn path(&self, side: usize, file: usize) -> PathBuf {
        self.mounts[side].join(name(file))
    }
}

/// ESTALE.
const STALE: i32 = 116;

fn name(file: usize) -> String {
    format!("file{file}")
}

fn bytes(rng: &mut Rng, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rng.fill(&mut bytes);
    bytes
}

fn some_bytes(rng: &mut Rng, below: usize) -> Vec<u8> {
    let count = rng.usize(..below);
    bytes(rng, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_folder_is_consistent_with_itself() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..3 {
            run(folder.path(), folder.path(), seed, 400).unwrap();
            for entry in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }

    #[test]
    fn two_folders_that_do_not_see_each_other_are_caught() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let caught = run(first.path(), second.path(), 1, 400).unwrap_err();
        assert!(caught.starts_with("seed 1, step "), "{caught}");
    }
}
