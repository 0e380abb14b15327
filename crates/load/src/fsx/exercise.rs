//! The run: chance picks a step, the file and the model take it, and both are compared.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use net::clock::Clock;

use super::fault::Fault;
use super::model::{self, Model};
use super::operation::{Operation, choose};
use super::options::{FILE_BYTES_MAX, Options};
use super::{Failed, Tally, mapped};
use crate::error::Error;
use crate::scratch;

/// Operations that are remembered to be shown, and of them the newest that are shown in any case.
const SHOWN_MAX: usize = 4_000;
const SHOWN: usize = 24;

/// Exercises a new file called after `name` in `dir`, until the options or `stop` end it. Blocks.
///
/// # Errors
/// The file cannot be made. What goes wrong later is the inner error.
pub fn run(
    clock: &Clock,
    dir: &Path,
    name: &str,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Result<Tally, Box<Failed>>, Error> {
    let options = Options {
        file_bytes_max: options.file_bytes_max.clamp(1, FILE_BYTES_MAX),
        call_bytes_max: options.call_bytes_max.max(1),
        ..options.clone()
    };
    let stem = format!("{}{name}", scratch::PREFIX);
    let paths = ["a", "b"].map(|end| dir.join(format!("{stem}-{end}")));
    let file = open(OpenOptions::new().create_new(true), &paths[0])
        .map_err(|cause| Error::Local { doing: "making a file", path: paths[0].clone(), cause })?;
    let mut exercise = Exercise {
        file: Some(file),
        paths,
        renamed: false,
        model: Model::default(),
        options,
        tally: Tally::default(),
        log: VecDeque::new(),
    };
    let outcome = exercise.all(clock, stop);
    Ok(match outcome {
        Ok(()) => {
            exercise.file = None;
            std::fs::remove_file(exercise.path()).ok();
            Ok(exercise.tally)
        }
        Err(what) => Err(Box::new(exercise.failed(what))),
    })
}

fn open(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    how.read(true).write(true).open(path)
}

struct Exercise {
    /// Always there but within a step that opens it again.
    file: Option<File>,
    paths: [PathBuf; 2],
    /// The file has the second of its names.
    renamed: bool,
    model: Model,
    options: Options,
    tally: Tally,
    /// The newest operations with their numbers; at most [`SHOWN_MAX`].
    log: VecDeque<(u64, Operation)>,
}

impl From<io::Error> for Fault {
    fn from(cause: io::Error) -> Self {
        Self::System { cause }
    }
}

impl Exercise {
    fn all(&mut self, clock: &Clock, stop: &AtomicBool) -> Result<(), Fault> {
        let mut rng = Rng::with_seed(self.options.seed);
        let mut number = 0;
        let options = self.options.clone();
        while !is_over(&options, number, clock, stop) {
            number += 1;
            let operation = choose(&mut rng, self.model.size(), &options);
            self.keep(number, operation);
            self.step(number, operation)?;
            self.check_size()?;
            self.tally.operations = number;
        }
        self.keep(number + 1, Operation::Verify);
        self.step(number + 1, Operation::Verify)
    }

    fn keep(&mut self, number: u64, operation: Operation) {
        if self.log.len() == SHOWN_MAX {
            self.log.pop_front();
        }
        self.log.push_back((number, operation));
    }

    fn step(&mut self, number: u64, operation: Operation) -> Result<(), Fault> {
        let data = |len| model::data(self.options.seed, number, len);
        match operation {
            Operation::Read { offset, len } => self.read(offset, u64::from(len))?,
            Operation::MapRead { offset, len } => {
                let got = mapped::read(self.file()?, offset, len)?;
                self.model.check(offset, u64::from(len), &got)?;
                self.tally.bytes_read += u64::from(len);
            }
            Operation::Write { offset, len } => {
                let data = data(len);
                self.file()?.write_all_at(&data, offset)?;
                self.wrote(offset, &data);
            }
            Operation::MapWrite { offset, len, synced } => {
                let data = data(len);
                mapped::write(self.file()?, offset, &data, synced)?;
                self.wrote(offset, &data);
            }
            Operation::Append { offset, len } => {
                let data = data(len);
                let mut end = OpenOptions::new().append(true).open(self.path())?;
                end.write_all(&data)?;
                self.wrote(offset, &data);
            }
            Operation::Truncate { size } => {
                self.file()?.set_len(size)?;
                self.model.truncate(size);
            }
            Operation::Fsync => self.file()?.sync_all()?,
            Operation::Reopen => {
                self.file = None;
                self.file = Some(open(&mut OpenOptions::new(), self.path())?);
            }
            Operation::Rename => {
                let [first, second] = &self.paths;
                let (from, to) = if self.renamed { (second, first) } else { (first, second) };
                std::fs::rename(from, to)?;
                self.renamed = !self.renamed;
            }
            Operation::Verify => self.read(0, self.model.size())?,
        }
        Ok(())
    }

    /// Reads and compares `len` bytes within the file.
    fn read(&mut self, offset: u64, len: u64) -> Result<(), Fault> {
        let mut buffer = vec![0; usize::try_from(len.min(1 << 20)).unwrap_or(0)];
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let want = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            let mut filled = 0;
            // A file system may give less than requested, but nothing only at the end.
            while filled < want {
                match self.file()?.read_at(&mut buffer[filled..want], at + filled as u64)? {
                    0 => break,
                    count => filled += count,
                }
            }
            self.model.check(at, want as u64, &buffer[..filled])?;
            at += want as u64;
        }
        self.tally.bytes_read += len;
        Ok(())
    }

    fn wrote(&mut self, offset: u64, data: &[u8]) {
        self.model.write(offset, data);
        self.tally.bytes_written += data.len() as u64;
    }

    fn check_size(&self) -> Result<(), Fault> {
        let (got, expected) = (self.file()?.metadata()?.len(), self.model.size());
        if got == expected { Ok(()) } else { Err(Fault::Size { expected, got }) }
    }

    fn file(&self) -> Result<&File, Fault> {
        let closed = || io::Error::other("the file could not be opened again");
        Ok(self.file.as_ref().ok_or_else(closed)?)
    }

    fn path(&self) -> &Path {
        &self.paths[usize::from(self.renamed)]
    }

    fn failed(self, what: Fault) -> Failed {
        let place = match &what {
            Fault::Content { offset, .. } | Fault::Short { offset, .. } => Some(*offset),
            Fault::Size { .. } | Fault::System { .. } => None,
        };
        let line = |(number, operation): &(u64, Operation)| format!("#{number} {operation}");
        let last_writer = place.and_then(|place| {
            let mut before = self.log.iter().rev();
            before.find(|(_, operation)| operation.writes_at(place)).map(line)
        });
        let operation = self.log.back().map_or(0, |(number, _)| *number);
        let log = self.log.iter().skip(self.log.len().saturating_sub(SHOWN)).map(line).collect();
        let file = self.path().to_owned();
        Failed { what, operation, seed: self.options.seed, log, last_writer, file }
    }
}

fn is_over(options: &Options, number: u64, clock: &Clock, stop: &AtomicBool) -> bool {
    number >= options.operations_max
        || options.until.is_some_and(|until| clock.now() >= until)
        || stop.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seed: u64) -> Options {
        Options {
            seed,
            operations_max: 1_500,
            until: None,
            file_bytes_max: 100_000,
            call_bytes_max: 20_000,
            mapped: true,
        }
    }

    #[test]
    fn a_file_system_that_is_right_passes_and_is_left_clean() {
        let dir = tempfile::tempdir().unwrap();
        for seed in 0..4 {
            let options = options(seed);
            let stop = AtomicBool::new(false);
            let run = run(&Clock::real(), dir.path(), "test", &options, &stop).unwrap();
            let tally = run.unwrap_or_else(|failed| panic!("{failed:?}"));
            assert_eq!(tally.operations, 1_500);
            assert!(tally.bytes_read > 1 << 20 && tally.bytes_written > 1 << 20, "{tally:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_same_seed_does_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let run = || run(&Clock::real(), dir.path(), "test", &options(9), &stop).unwrap().unwrap();
        assert_eq!(run(), run());
    }

    #[test]
    fn a_byte_that_another_changes_is_found_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = open(OpenOptions::new().create_new(true), &path).unwrap();
        let mut exercise = Exercise {
            file: Some(file),
            paths: [path.clone(), dir.path().join("other")],
            renamed: false,
            model: Model::default(),
            options: options(1),
            tally: Tally::default(),
            log: VecDeque::new(),
        };
        let write = Operation::Write { offset: 100, len: 5_000 };
        exercise.keep(1, write);
        exercise.step(1, write).unwrap();
        let other = OpenOptions::new().write(true).open(&path).unwrap();
        let right = model::data(1, 1, 5_000)[4_000];
        other.write_all_at(&[!right], 4_100).unwrap();
        exercise.keep(2, Operation::Verify);
        let fault = exercise.step(2, Operation::Verify).unwrap_err();
        let failed = exercise.failed(fault);
        assert!(
            matches!(failed.what, Fault::Content { offset: 4_100, wrong: 1, .. }),
            "{failed:?}"
        );
        assert_eq!(failed.last_writer.as_deref(), Some("#1 write 100..5100 (5000 bytes)"));
        assert_eq!((failed.operation, failed.log.len()), (2, 2));
    }

    #[test]
    fn a_size_that_another_changes_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = open(OpenOptions::new().create_new(true), &path).unwrap();
        file.set_len(3).unwrap();
        let exercise = Exercise {
            file: Some(file),
            paths: [path.clone(), path],
            renamed: false,
            model: Model::default(),
            options: options(1),
            tally: Tally::default(),
            log: VecDeque::new(),
        };
        let size = exercise.check_size().unwrap_err();
        assert!(matches!(size, Fault::Size { expected: 0, got: 3 }));
    }
}
