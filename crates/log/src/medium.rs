//! What a log lies on.

use std::io;

/// A file or a device of a fixed length, or a simulated one.
pub trait Medium {
    /// Fills `into` from `at`.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A log in memory, for tests and fuzzing.
impl Medium for [u8] {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
