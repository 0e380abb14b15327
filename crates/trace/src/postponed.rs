//! Calls that a server put off: it answers that it has no answer yet (NFS3ERR_JUKEBOX of RFC 1813
//! section 2.6, NFS4ERR_DELAY and NFS4ERR_GRACE of RFC 8881 section 15.1), and the client is to
//! call again later. What looks like an idle client is one that waits for that.

use super::ids::FileId;
use super::spread::Spread;

/// Files of a client with a server that are put off: with one more the oldest is forgotten.
const FILES_MAX: usize = 256;
/// A file for which nobody calls again for so long was given up: twice the longest that Linux's
/// client waits.
const PATIENCE_NS: u64 = 30_000_000_000;

const JUKEBOX_OR_DELAY: u32 = 10_008;
const GRACE: u32 = 10_013;

/// Whether a status says: later.
pub(super) const fn is_later(status: Option<u32>) -> bool {
    matches!(status, Some(JUKEBOX_OR_DELAY | GRACE))
}

/// The files of a client with a server that were put off.
#[derive(Debug, Default)]
pub(super) struct Postponed {
    /// With when it was sent.
    files: Vec<(FileId, u64)>,
    /// From such a reply to the next call for the same file; one for each that was followed by one.
    pub(super) waits: Spread,
    /// Such replies.
    pub(super) replies: u64,
}

impl Postponed {
    /// A call for a file was put off.
    pub(super) fn put_off(&mut self, file: FileId, now: u64) {
        self.replies += 1;
        self.files.retain(|(other, _)| *other != file);
        if self.files.len() >= FILES_MAX {
            self.files.remove(0);
        }
        self.files.push((file, now));
    }

    /// A file was called for.
    pub(super) fn called(&mut self, file: FileId, now: u64) {
        let Some(place) = self.files.iter().position(|(other, _)| *other == file) else { return };
        let (_, since) = self.files.remove(place);
        self.waits.record(now.saturating_sub(since));
    }

    /// Until when a client that calls for nothing waits for a file.
    pub(super) fn until_ns(&self) -> u64 {
        self.files.last().map_or(0, |(_, since)| since.saturating_add(PATIENCE_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_put_off_are_bounded_and_waited_for_until_they_are_called_for() {
        let mut postponed = Postponed::default();
        (0..1_000).for_each(|file| postponed.put_off(FileId(file), 10));
        assert_eq!((postponed.files.len(), postponed.replies), (FILES_MAX, 1_000));
        assert_eq!(postponed.until_ns(), PATIENCE_NS + 10);
        (0..1_000).for_each(|file| postponed.called(FileId(file), 15));
        assert_eq!((postponed.until_ns(), postponed.waits.count()), (0, FILES_MAX as u64));
    }
}
