//! What the times of an inode say of what its disk had when the power went.
//!
//! Inodes are written whole: one that was changed after a record has what the record set, and
//! perhaps what a program has set since. Its change time shows that, unless it may be from after
//! the power went: by a replay that was interrupted, by programs since the boot (a relabelling), or
//! by the mount. A mount of ext4 ends truncations that were under way. One of btrfs replays names
//! from the log of its fsyncs, and each file that loses a name by that gets the time of the mount,
//! on an inode as old as it was. That may have been a mount of an earlier boot, in which no server
//! was started: there only a time before the newest record is believed.
//!
//! The modification time is left then, which no name moves. A file whose bytes were written after
//! a record is not cut by it. (A client's clock that is ahead can have set such a time, too: what
//! is newest by it stands, because bytes that are cut off are gone.) All else is set again: it was
//! answered, and nothing says that a program has set other attributes.

use log::Stamp;
use log::replay::Needed;

const NEVER: Stamp = Stamp { seconds: i64::MIN, nanos: 0 };

/// From when on times say nothing.
pub(super) struct Evidence {
    /// An earlier replay may have changed inodes, and their bytes.
    pub(super) replays_since: Option<Stamp>,
    /// Programs may have changed inodes since this boot. If they have bytes, these stand.
    pub(super) began: Option<Stamp>,
    /// A mount may have set change times.
    pub(super) mounted_since: Option<Stamp>,
}

/// When an inode was changed, as its disk had it; never, where that is not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Known {
    pub(super) inode: Stamp,
    /// Not before the inode.
    pub(super) bytes: Stamp,
}

impl Evidence {
    /// From when on change times say nothing.
    pub(super) fn changes_since(&self) -> Option<Stamp> {
        [self.replays_since, self.began, self.mounted_since].into_iter().flatten().min()
    }

    /// Of an inode with these times: when it was changed, and when its bytes were, if it has some.
    pub(super) fn of(&self, changed: Stamp, written: Option<Stamp>, needed: &Needed) -> Known {
        let is_before = |time, since: Option<Stamp>| since.is_none_or(|since| time < since);
        if is_before(changed, self.changes_since()) {
            return Known { inode: changed, bytes: changed };
        }
        // The last record's own time says nothing of what came after it.
        let others = written.filter(|&written| written != needed.modified);
        let bytes = others.filter(|&written| is_before(written, self.replays_since));
        Known { inode: NEVER, bytes: bytes.unwrap_or(NEVER) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Stamp {
        Stamp { seconds, nanos: 0 }
    }

    fn evidence(since: [Option<i64>; 3]) -> Evidence {
        let [replays_since, began, mounted_since] = since.map(|since| since.map(at));
        Evidence { replays_since, began, mounted_since }
    }

    /// Of an inode with a change and a modification time, whose last record was answered at 10.
    fn known(since: [Option<i64>; 3], changed: i64, written: i64) -> [Stamp; 2] {
        let needed = Needed { changed: at(10), modified: at(10), ..Needed::default() };
        let known = evidence(since).of(at(changed), Some(at(written)), &needed);
        [known.inode, known.bytes]
    }

    #[test]
    fn a_change_time_is_believed_that_only_the_disk_can_have_had() {
        assert_eq!(known([None; 3], 12, 7), [at(12); 2]);
        assert_eq!(known([Some(20), None, None], 12, 7), [at(12); 2]);
        assert_eq!(known([None, Some(20), None], 12, 7), [at(12); 2]);
        assert_eq!(known([None, Some(20), Some(11)], 10, 7), [at(10); 2]);
    }

    #[test]
    fn a_change_time_since_the_boot_or_a_mount_says_nothing_and_bytes_have_their_own() {
        let (replay, boot) = ([Some(20), None, None], [None, Some(20), None]);
        for (since, changed) in [(replay, 20), (boot, 20), ([None, Some(20), Some(11)], 12)] {
            assert_eq!(known(since, changed, 7), [NEVER, at(7)]);
            assert_eq!(known(since, changed, 12), [NEVER, at(12)], "a program's");
            assert_eq!(known(since, changed, 10), [NEVER; 2], "the record's");
        }
        assert_eq!(known(replay, 21, 21), [NEVER; 2], "perhaps the replay's");
        assert_eq!(known(boot, 21, 21), [NEVER, at(21)], "a program's, after the boot");
        let of_dir = evidence(boot).of(at(21), None, &Needed::default());
        assert_eq!(of_dir, Known { inode: NEVER, bytes: NEVER });
    }
}
