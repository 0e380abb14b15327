//! What logs lie on.

use std::io;

/// Files or devices of a fixed length, or simulated ones.
pub trait Medium {
    /// Fills `into` from the place `at` of a log.
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// The only log, in memory, for tests and fuzzing.
impl Medium for [u8] {
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..into.len()));
        let from = from.filter(|_| log == 0);
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Several of them.
impl Medium for [Vec<u8>] {
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.get(log).ok_or(io::ErrorKind::UnexpectedEof)?.read(0, at, into)
    }
}
