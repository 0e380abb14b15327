//! What attributes say of a file's state, as a cache on a disk has it ([`cache::settle`]).

use cache::{Key, Time, Token};
use perf::units::Instant;
use wire::nfs3::{Fattr3, FileHandle, NfsTime};

/// The state that a file's data are of.
pub fn token(attributes: &Fattr3) -> Token {
    let Fattr3 { size, mtime, ctime, fileid, .. } = *attributes;
    Token { size, mtime: time_of(mtime), ctime: time_of(ctime), fileid, change: 0 }
}

pub fn time_of(time: NfsTime) -> Time {
    Time { seconds: i64::from(time.seconds), nanos: time.nseconds }
}

/// Of a clock that only goes forward.
pub fn steady_ns(now: Instant) -> u64 {
    now.since(Instant::EPOCH).as_nanos()
}

/// What time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) now: Instant,
    pub(crate) wall: Time,
}

/// The file, as a cache on a disk knows it.
pub(crate) fn key(file: &FileHandle) -> Option<Key> {
    Key::new(file.as_bytes())
}
