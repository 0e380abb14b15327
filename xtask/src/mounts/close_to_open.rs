//! Close-to-open consistency: what is written and closed through one mount is what whoever opens
//! the file afterwards through another reads, whatever both remember.
//!
//! Two folders are two mounts of one directory. A seed decides who changes which file how, and who
//! looks at what. Every open is compared with the files as they are:
//!
//! - Its content and its size must be those of the file that was opened, always: that is the
//!   promise.
//! - The name must lead to the file that has it, or to what it led to when this side last saw it: a
//!   name is remembered for a while, here as in Linux. Such cases are counted. A file that no name
//!   has any more must not be opened.
//!
//! Files are distinguished by their inode numbers. Runs as a program of its own, because a mount
//! that does not answer can not be waited for otherwise.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use fastrand::Rng;

/// Names that are played with: few, so that most of them are remembered by both sides.
const NAMES: usize = 6;
const BYTES_MAX: usize = 40_000;
/// Steps that a failure shows.
const SHOWN: usize = 12;
/// ESTALE.
const STALE: i32 = 116;

/// An inode number, or that there is no file.
type Target = Option<u64>;

struct Play {
    mounts: [PathBuf; 2],
    names: [Target; NAMES],
    /// Content of the files that have a name.
    files: HashMap<u64, Vec<u8>>,
    /// For each side, what a name led to since that side last saw the truth.
    remembered: [[Vec<Target>; NAMES]; 2],
    /// Files that a side keeps open over what the other does.
    held: [Option<(u64, File)>; 2],
    remembered_names_used: u32,
    log: Vec<String>,
}

/// Why a step did not do what it should.
type Fault = String;

/// Plays `steps` steps in the two folders; a sentence about the outcome.
pub(super) fn run(first: &Path, second: &Path, seed: u64, steps: u32) -> Result<String, Fault> {
    let mut play = Play {
        mounts: [first.to_owned(), second.to_owned()],
        names: [None; NAMES],
        files: HashMap::new(),
        remembered: Default::default(),
        held: [None, None],
        remembered_names_used: 0,
        log: Vec::new(),
    };
    let mut rng = Rng::with_seed(seed);
    for step in 0..steps {
        if let Err(why) = play.step(&mut rng) {
            return Err(format!("seed {seed}, step {step}: {why}; before: {}", play.story()));
        }
    }
    let used = play.remembered_names_used;
    Ok(format!("{steps} steps, seed {seed}, {used} names were remembered ones"))
}

impl Play {
    fn step(&mut self, rng: &mut Rng) -> Result<(), Fault> {
        let (side, name) = (rng.usize(..2), rng.usize(..NAMES));
        let sort = rng.u8(..100);
        let what = match sort {
            0..40 => "looks at",
            40..52 => "writes anew",
            52..62 => "writes as many bytes to",
            62..70 => "overwrites a part of",
            70..77 => "appends to",
            77..83 => "truncates",
            83..87 => "grows by truncation",
            87..90 => "renames another to",
            90..93 => "removes",
            93..96 => "makes anew by rename",
            _ => "keeps open",
        };
        self.log.push(format!("{} {what} file{name}", who(side)));
        match sort {
            0..40 => return self.look(side, name),
            40..52 => self.create(side, name, rng)?,
            52..87 => self.change(side, name, sort, rng)?,
            87..90 => self.rename(side, rng.usize(..NAMES), name)?,
            90..93 => self.remove(side, name)?,
            93..96 => self.replace(side, name, rng)?,
            _ => self.hold(side, name)?,
        }
        // The other side, at once: what it remembers is as old as it can be wrong.
        if rng.u8(..4) == 0 {
            return Ok(());
        }
        self.log.push(format!("{} looks at file{name}", who(1 - side)));
        self.look(1 - side, name)
    }

    /// The newest steps that had to do with the file of the newest one.
    fn story(&self) -> String {
        let mut words = self.log.last().map(|step| step.split(' ')).into_iter().flatten();
        let file = words.find(|word| word.starts_with("file")).unwrap_or_default();
        let steps = self.log.iter().filter(|step| step.contains(file));
        let steps: Vec<&str> = steps.map(String::as_str).collect();
        steps[steps.len().saturating_sub(SHOWN)..].join("; ")
    }

    /// Adds to the report of the newest step.
    fn note(&mut self, what: impl Display) {
        if let Some(step) = self.log.last_mut() {
            write!(step, " {what}").ok();
        }
    }

    /// Opens, reads and compares.
    fn look(&mut self, side: usize, name: usize) -> Result<(), Fault> {
        let how = OpenOptions::new().read(true).clone();
        let Some((inode, mut file)) = self.open(side, name, &how)? else { return Ok(()) };
        let failed = |error: io::Error| format!("{} cannot read file{name}: {error}", who(side));
        let size = file.metadata().map_err(failed)?.len();
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        let expected = &self.files[&inode];
        if size != expected.len() as u64 || content.len() != expected.len() {
            return Err(format!(
                "{} finds file{name} with a size of {size} and {} bytes, not {}; the other {:?}",
                who(side),
                content.len(),
                expected.len(),
                fs::read(self.path(1 - side, name)).map(|content| content.len())
            ));
        }
        match content.iter().zip(expected).position(|(got, expected)| got != expected) {
            Some(at) => Err(format!("{} reads old bytes of file{name} from {at} on", who(side))),
            None => Ok(()),
        }
    }

    /// Opens what is there, and gives which file that is; `None` when the name leads nowhere, and
    /// may do so.
    fn open(
        &mut self,
        side: usize,
        name: usize,
        how: &OpenOptions,
    ) -> Result<Option<(u64, File)>, Fault> {
        let opened = match how.open(self.path(side, name)) {
            Ok(file) => {
                let inode = file.metadata().map_err(|error| error.to_string())?.ino();
                Some((inode, file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(format!("{} cannot open file{name}: {error}", who(side)));
            }
        };
        let target = opened.as_ref().map(|(inode, _)| *inode);
        self.note(format_args!("({target:?})"));
        self.resolved(side, name, target)?;
        Ok(opened)
    }

    /// A side has found that a name leads to `target`.
    fn resolved(&mut self, side: usize, name: usize, target: Target) -> Result<(), Fault> {
        if target == self.names[name] {
            self.remembered[side][name].clear();
            return Ok(());
        }
        let lives = target.is_none_or(|inode| self.files.contains_key(&inode));
        if lives && self.remembered[side][name].contains(&target) {
            self.remembered_names_used += 1;
            return Ok(());
        }
        Err(match (target, self.names[name]) {
            (None, _) => format!("{} does not find file{name}", who(side)),
            (Some(_), None) => format!("{} opens file{name}, which is removed", who(side)),
            (Some(_), Some(_)) => format!("{} opens another file as file{name}", who(side)),
        })
    }

    /// A side has made a name lead elsewhere: it knows that, the other side may remember.
    fn leads(&mut self, side: usize, name: usize, target: Target) {
        let before = std::mem::replace(&mut self.names[name], target);
        self.remembered[side][name].clear();
        self.remembered[1 - side][name].push(before);
        if let Some(inode) = before
            && !self.names.contains(&before)
        {
            self.files.remove(&inode);
        }
    }

    /// A new content, in a new file or in the one that the name leads to.
    fn create(&mut self, side: usize, name: usize, rng: &mut Rng) -> Result<(), Fault> {
        let failed = |error: io::Error| format!("{} cannot make file{name}: {error}", who(side));
        let data = some_bytes(rng, BYTES_MAX);
        let mut file = File::create(self.path(side, name)).map_err(failed)?;
        let inode = file.metadata().map_err(failed)?.ino();
        file.write_all(&data).map_err(failed)?;
        self.note(format_args!("({inode}, {} bytes)", data.len()));
        if self.names[name].is_none() && !self.files.contains_key(&inode) {
            self.leads(side, name, Some(inode));
        } else {
            self.resolved(side, name, Some(inode))?;
        }
        self.files.insert(inode, data);
        Ok(())
    }

    /// Changes the content of a file in place.
    fn change(&mut self, side: usize, name: usize, sort: u8, rng: &mut Rng) -> Result<(), Fault> {
        let mut how = OpenOptions::new();
        how.write(true).append((70..77).contains(&sort));
        let Some((inode, mut file)) = self.open(side, name, &how)? else { return Ok(()) };
        let Some(content) = self.files.get_mut(&inode) else { return Ok(()) };
        let done = match sort {
            52..62 => {
                // Neither size nor name shows that anything happened.
                *content = bytes(rng, content.len());
                file.write_all(content)
            }
            62..70 => {
                let (at, data) = (rng.usize(..=content.len()), some_bytes(rng, 5_000));
                content.resize(content.len().max(at + data.len()), 0);
                content[at..at + data.len()].copy_from_slice(&data);
                file.write_all_at(&data, at as u64)
            }
            70..77 => {
                let data = some_bytes(rng, 5_000);
                content.extend_from_slice(&data);
                file.write_all(&data)
            }
            _ => {
                let grown = content.len() + rng.usize(..5_000);
                let size = if sort < 83 { rng.usize(..=content.len()) } else { grown };
                content.resize(size, 0);
                file.set_len(size as u64)
            }
        };
        let size = content.len();
        self.note(format_args!("(now {size} bytes)"));
        done.map_err(|error| format!("{} cannot write file{name}: {error}", who(side)))
    }

    fn rename(&mut self, side: usize, from: usize, to: usize) -> Result<(), Fault> {
        if from == to {
            return Ok(());
        }
        self.note(format_args!("from file{from}"));
        self.let_go(side);
        match fs::rename(self.path(side, from), self.path(side, to)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.absent(side, from),
            Err(error) => Err(format!("{} cannot rename file{from}: {error}", who(side))),
            Ok(()) => {
                // The server renames what it finds; this side may believe that it was another.
                let believed = std::mem::take(&mut self.remembered[side][from]);
                let target = self.names[from];
                self.leads(side, to, target);
                self.leads(side, from, None);
                self.remembered[side][to] = believed;
                Ok(())
            }
        }
    }

    fn remove(&mut self, side: usize, name: usize) -> Result<(), Fault> {
        self.let_go(side);
        match fs::remove_file(self.path(side, name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.absent(side, name),
            Err(error) => Err(format!("{} cannot remove file{name}: {error}", who(side))),
            Ok(()) => {
                self.leads(side, name, None);
                Ok(())
            }
        }
    }

    /// As editors save: a new file takes the name.
    fn replace(&mut self, side: usize, name: usize, rng: &mut Rng) -> Result<(), Fault> {
        self.let_go(side);
        let failed = |error: io::Error| format!("{} cannot replace file{name}: {error}", who(side));
        let new = self.mounts[side].join(format!("new-{side}"));
        let data = some_bytes(rng, BYTES_MAX);
        fs::write(&new, &data).map_err(failed)?;
        let inode = fs::metadata(&new).map_err(failed)?.ino();
        fs::rename(new, self.path(side, name)).map_err(failed)?;
        self.leads(side, name, Some(inode));
        self.files.insert(inode, data);
        Ok(())
    }

    /// Keeps a file open, which is not closed when the other side changes it; then looks at what
    /// was cached before, which only has to be readable.
    fn hold(&mut self, side: usize, name: usize) -> Result<(), Fault> {
        if let Some((_, mut old)) = self.held[side].take() {
            let read = old.seek(SeekFrom::Start(0)).and_then(|_| old.read_to_end(&mut Vec::new()));
            match read {
                // The other side removed it: a server without state knows it no more.
                Err(error) if error.raw_os_error() == Some(STALE) => {}
                Err(error) => {
                    return Err(format!("{} cannot read what it keeps: {error}", who(side)));
                }
                Ok(_) => {}
            }
        }
        let how = OpenOptions::new().read(true).clone();
        self.held[side] = self.open(side, name, &how)?;
        Ok(())
    }

    /// What is open when its name goes would live on under another (silly rename), and be found by
    /// the other side, which remembers it: as in Linux, and nothing that could be decided here.
    fn let_go(&mut self, side: usize) {
        self.held[side] = None;
    }

    /// A name was not found.
    fn absent(&mut self, side: usize, name: usize) -> Result<(), Fault> {
        self.resolved(side, name, None)
    }

    fn path(&self, side: usize, name: usize) -> PathBuf {
        self.mounts[side].join(format!("file{name}"))
    }
}

fn who(side: usize) -> &'static str {
    ["A", "B"][side]
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
    fn one_folder_is_consistent_with_itself_and_remembers_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for seed in 0..3 {
            let played = run(folder.path(), folder.path(), seed, 600).unwrap();
            assert!(played.ends_with(" 0 names were remembered ones"), "{played}");
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
