//! A process of its own that locks a file as fcntl(2) does: such locks are a process's, so that
//! programs that are threads of one would all have what one has.
//!
//! Its input are lines: `lock`, `read AT`, `write AT NUMBER`, `unlock`; each is answered by a
//! number, or by `error` and errno. It ends with its input.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, fcntl_lock};

/// The argument by which a program that plays live contests becomes one; the file follows.
pub const RECORD_LOCKS: &str = "--record-locks";

/// See the module's head. Ends when it is dropped, and is waited for.
pub(super) struct Locker(Mutex<Process>); // guards question and answer

struct Process {
    child: Child,
    /// Always there until it is dropped.
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Locker {
    pub(super) fn start(program: &Path, file: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(RECORD_LOCKS).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (asks, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self(Mutex::new(Process { child, asks, answers: BufReader::new(answers) })))
    }

    pub(super) fn lock(&self) -> io::Result<()> {
        self.ask("lock").map(drop)
    }

    pub(super) fn unlock(&self) -> io::Result<()> {
        self.ask("unlock").map(drop)
    }

    pub(super) fn number_at(&self, at: u64) -> io::Result<u64> {
        self.ask(&format!("read {at}"))
    }

    pub(super) fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let number = data.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        self.ask(&format!("write {at} {}", u64::from_le_bytes(number))).map(drop)
    }

    fn ask(&self, what: &str) -> io::Result<u64> {
        let mut process = self.0.lock();
        let mut line = String::new();
        if let Some(asks) = &mut process.asks {
            writeln!(asks, "{what}")?;
            process.answers.read_line(&mut line)?;
        }
        match line.trim().split_once(' ') {
            Some(("error", errno)) => {
                Err(io::Error::from_raw_os_error(errno.parse().unwrap_or_default()))
            }
            _ => line.trim().parse().map_err(|_| io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        let process = self.0.get_mut();
        drop(process.asks.take());
        process.child.wait().ok();
    }
}

/// Is such a process, until its input ends.
///
/// # Errors
/// The file cannot be opened, or nobody listens.
pub fn serve(file: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(file)?;
    for line in io::stdin().lock().lines() {
        match obey(&file, &line?) {
            Ok(number) => println!("{number}"),
            Err(error) => println!("error {}", error.raw_os_error().unwrap_or_default()),
        }
    }
    Ok(())
}

fn obey(file: &File, line: &str) -> io::Result<u64> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    let mut words = line.split(' ');
    let verb = words.next().ok_or_else(wrong)?;
    let mut number = || words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong);
    match verb {
        "lock" => fcntl_lock(file, FlockOperation::LockExclusive)?,
        "unlock" => fcntl_lock(file, FlockOperation::Unlock)?,
        "read" => return number_at(file, number()?),
        "write" => {
            let at: u64 = number()?;
            file.write_all_at(&number()?.to_le_bytes(), at)?;
        }
        _ => return Err(wrong()),
    }
    Ok(0)
}

/// A number that is written at a place; 0 where nothing was.
pub(super) fn number_at(of: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    match of.read_exact_at(&mut bytes, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read.map(|()| u64::from_le_bytes(bytes)),
    }
}
