//! How to write behind, and who hears of replies.

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, StableHow, WccData};

use super::policy::PolicyName;

/// How to write behind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    pub policy: PolicyName,
    /// Most bytes of a WRITE.
    pub wsize: u32,
    /// Bound of the bytes that the server does not hold for good.
    pub dirty_bytes_max: u64,
    /// What WRITEs ask for.
    pub stable: StableHow,
    /// Exactly so many calls outstanding instead of what the policy says.
    pub outstanding: Option<u32>,
    /// Most calls outstanding when the policy searches for their number.
    pub outstanding_max: u32,
    /// Time the stages.
    pub timing: bool,
    /// How long a WRITE or COMMIT waits for a server that asks for a retry later; then it has
    /// failed. None: as long as it takes.
    pub put_off_max: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: PolicyName::default(),
            wsize: 1 << 20,
            dirty_bytes_max: 256 << 20,
            stable: StableHow::Unstable,
            outstanding: None,
            outstanding_max: 1024,
            timing: false,
            put_off_max: None,
        }
    }
}

/// Takes what replies say of files.
pub trait Observer: Send + Sync {
    /// A WRITE that was sent at `sent` has been answered. Called before whoever waits for it goes
    /// on, and before the file is no longer dirty.
    fn wrote(&self, file: &FileHandle, wcc: &WccData, sent: Instant);

    /// A COMMIT, likewise.
    fn committed(&self, file: &FileHandle, wcc: &WccData, sent: Instant);

    /// A WRITE whose answer was reported has left these bytes in the file.
    fn written(&self, file: &FileHandle, offset: u64, data: Bytes) {
        let _ = (file, offset, data);
    }

    /// Whether a WRITE or COMMIT was carried out nobody knows.
    fn failed(&self, file: &FileHandle) {
        let _ = file;
    }

    /// All that was written to the file is stable, or was given up.
    fn is_clean(&self, file: &FileHandle) {
        let _ = file;
    }
}

/// Nobody.
impl Observer for () {
    fn wrote(&self, _: &FileHandle, _: &WccData, _: Instant) {}
    fn committed(&self, _: &FileHandle, _: &WccData, _: Instant) {}
}
