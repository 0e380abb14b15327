//! Mounts with a cache, killed while it is filled and while files are written, alone or with their
//! machine. The origin stays, and others change files there meanwhile.
//!
//! `scripts/mount.py` works in the guest, and compares what it reads. What it has closed it notes
//! on this side, where it is looked for at the origin after each kill.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::machine::Machine;
use super::origin::Origin;

use crate::host::about;

/// Files of others, and the longest: some twenty blocks of the cache in all.
const STATIC_FILES: usize = 40;
const STATIC_BYTES_MAX: usize = 600_000;
/// Of them are changed between two lives.
const CHANGED: usize = 6;
const LINE: usize = 64;
/// Everything is read once, beside compilers.
const LOOKED_WITHIN: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);

/// A version of a file, and how long it is.
type Version = (u64, usize);

/// See the module's head.
#[derive(Debug)]
pub(super) struct Play<'a> {
    job: &'a Path,
    origin: &'a Origin,
    rng: fastrand::Rng,
    versions: BTreeMap<String, Version>,
    life: u32,
    /// A mistake, for tests of tests: the guest gets a list of versions that are not there.
    is_lying: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) closed: usize,
    pub(super) lost: Vec<String>,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        job: &'a Path,
        origin: &'a Origin,
        seed: u64,
        is_lying: bool,
    ) -> Result<Self, String> {
        let rng = fastrand::Rng::with_seed(seed);
        let mut play = Self { job, origin, rng, versions: BTreeMap::new(), life: 0, is_lying };
        for folder in ["static", "own"] {
            let folder = origin.export().join(folder);
            fs::create_dir(&folder).map_err(about(&folder))?;
        }
        for number in 0..STATIC_FILES {
            play.change(&format!("static/{number}"))?;
        }
        play.publish()?;
        Ok(play)
    }

    /// Kills it so often, each time after it has seen everything and worked for a while.
    pub(super) fn rounds(
        &mut self,
        machine: &mut Machine,
        rounds: u32,
        load: Duration,
    ) -> Result<Found, String> {
        let mut found = Found::default();
        for _ in 0..rounds {
            self.looked(machine)?;
            let most = u64::try_from(load.as_millis()).unwrap_or(u64::MAX);
            thread::sleep(Duration::from_millis(self.rng.u64(most / 20..=most)));
            machine.end_server()?;
            found.closed = self.look(&mut found.lost)?;
            for _ in 0..CHANGED {
                let number = self.rng.usize(0..STATIC_FILES);
                self.change(&format!("static/{number}"))?;
            }
            self.life += 1;
            self.publish()?;
            machine.begin_server()?;
        }
        self.looked(machine)?;
        found.closed = self.look(&mut found.lost)?;
        Ok(found)
    }

    /// Somebody else writes a file at the origin: in place, or a new one of the same name.
    fn change(&mut self, name: &str) -> Result<(), String> {
        let version = self.versions.get(name).map_or(0, |(version, _)| version + 1);
        let size = self.rng.usize(1..=STATIC_BYTES_MAX);
        let path = self.origin.export().join(name);
        self.versions.insert(name.to_owned(), (version, size));
        if self.is_lying && version > 0 {
            return Ok(());
        }
        let bytes = content(name, version, size);
        let written = match self.rng.bool() {
            true => fs::write(&path, bytes),
            false => {
                let draft = path.with_extension("draft");
                fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &path))
            }
        };
        written.map_err(about(&path))
    }

    /// The guest reads which versions there are in its next life.
    fn publish(&self) -> Result<(), String> {
        let mut text = String::new();
        for (name, (version, size)) in &self.versions {
            writeln!(text, "{name} {version} {size}").map_err(|error| error.to_string())?;
        }
        let put = |file: &str, text: &str| {
            let path = self.job.join(file);
            fs::write(&path, text).map_err(about(&path))
        };
        put(&format!("versions.{}", self.life), &text)?;
        put("life", &format!("{}\n", self.life))
    }

    /// Waits until the guest has read everything in this life.
    fn looked(&self, machine: &mut Machine) -> Result<(), String> {
        let (file, until) =
            (self.job.join(format!("looked.{}", self.life)), Instant::now() + LOOKED_WITHIN);
        while !file.exists() {
            if Instant::now() >= until || machine.has_died() {
                return Err(machine.with_console("the guest has not read everything"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// What the guest has seen that is wrong, and what it has closed that is not at the origin; how
    /// many files it has closed.
    fn look(&self, lost: &mut Vec<String>) -> Result<usize, String> {
        let wrong = self.job.join("wrong");
        if let Ok(text) = fs::read_to_string(&wrong) {
            lost.extend(text.lines().map(str::to_owned));
            fs::remove_file(&wrong).map_err(about(&wrong))?;
        }
        // The last line of a guest that is dead may be torn.
        let acks = fs::read_to_string(self.job.join("acks")).unwrap_or_default();
        let rows = acks.split_inclusive('\n').filter_map(acknowledged);
        let newest: BTreeMap<String, Version> = rows.collect();
        for (name, (version, size)) in &newest {
            let seen = fs::read(self.origin.export().join(name)).unwrap_or_default();
            let is_it = seen == content(name, *version, *size);
            // The next was made, and nobody has heard of it.
            if !is_it && seen != content(name, version + 1, seen.len()) || seen.is_empty() {
                lost.push(format!(
                    "{name}: version {version} was closed, and is not at the origin"
                ));
            }
        }
        Ok(acks.lines().count())
    }
}

fn acknowledged(line: &str) -> Option<(String, Version)> {
    let mut words = line.strip_suffix('\n')?.split(' ');
    let name = words.next()?.to_owned();
    Some((name, (words.next()?.parse().ok()?, words.next()?.parse().ok()?)))
}

/// Lines that say whose they are, as `scripts/mount.py` has them.
fn content(name: &str, version: u64, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + LINE);
    for index in 0..size.div_ceil(LINE) {
        let text = format!("{name} {version} {index}");
        bytes.extend(format!("{text:<width$}\n", width = LINE - 1).into_bytes());
    }
    bytes.truncate(size);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_say_whose_they_are() {
        let bytes = content("own/7", 3, 130);
        assert_eq!(bytes.len(), 130);
        assert!(bytes.starts_with(b"own/7 3 0 ") && bytes[64..].starts_with(b"own/7 3 1 "));
        assert_ne!(bytes, content("own/7", 4, 130));
        assert!(bytes.starts_with(&content("own/7", 3, 70)));
    }

    #[test]
    fn a_line_that_is_torn_is_no_acknowledgement() {
        assert_eq!(acknowledged("own/7 3 130\n"), Some(("own/7".to_owned(), (3, 130))));
        assert_eq!(acknowledged("own/7 3 13"), None);
        assert_eq!(acknowledged("own/7\n"), None);
    }
}
