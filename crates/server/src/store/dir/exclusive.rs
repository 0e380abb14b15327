//! Exclusive CREATE: its verifier, and the rights that a default ACL withholds, lie in the times of
//! the file, which every file system has and which survive a restart. The client sets the real ones
//! when it has its answer, and the mode with them.
//!
//! For the kernel that SETATTR is a chmod, which overrules the ACL that decided when the file was
//! made. So the file's access time says which rights the ACL withholds, and the SETATTR that gives
//! the file its mode goes without them. Where times are whole seconds, nothing is noted.

use super::stat::Stat;
use crate::types::{MODE_UNSTATED, SetAttr, SetTime, Time};

/// Parts of a second that say "withheld", the rights counted on from there. Any number will do.
const WITHHELD_NANOS: u32 = 717_000_000;
const RIGHTS: u32 = 0o777;

/// Of a file that is made with this verifier, in a directory whose default ACL withholds these
/// rights. It is its maker's alone until the client says more.
pub(super) fn attrs(verifier: [u8; 8], withheld: u32) -> SetAttr {
    let (modified, mut accessed) = times(verifier);
    if withheld & RIGHTS != 0 {
        accessed.nanos = WITHHELD_NANOS + (withheld & RIGHTS);
    }
    SetAttr {
        mode: Some(MODE_UNSTATED),
        modified: SetTime::To(modified),
        accessed: SetTime::To(accessed),
        ..SetAttr::default()
    }
}

pub(super) fn is_made_with(stat: &Stat, verifier: [u8; 8]) -> bool {
    let attr = stat.attr();
    let (modified, accessed) = times(verifier);
    attr.modified == modified && attr.accessed.secs == accessed.secs && attr.size == 0
}

/// What a SETATTR of a file sets: of its first mode after an exclusive CREATE, without what the
/// default ACL withheld. A later one is a chmod, and gives what it names.
pub(super) fn settled(before: &Stat, changes: &SetAttr) -> SetAttr {
    match (changes.mode, withheld(before)) {
        (Some(mode), withheld @ 1..) => SetAttr {
            mode: Some(mode & !withheld),
            accessed: match changes.accessed {
                SetTime::Keep => SetTime::ToServer,
                given => given,
            },
            ..*changes
        },
        _ => *changes,
    }
}

/// The rights noted in a file that has no mode yet. No file is taken for one that was read since it
/// was made: its access time lies behind that. Nor one whose other time a client has set, as who
/// copies a file does before it sets the mode: that is the verifier's, or of a later write.
fn withheld(stat: &Stat) -> u32 {
    let attr = stat.attr();
    let is_read = |made| made <= attr.accessed && attr.accessed <= attr.changed;
    let is_as_made = attr.size == 0 && attr.modified.nanos == 0;
    let is_written =
        attr.modified == attr.changed || attr.made.is_some_and(|made| made <= attr.modified);
    let noted = attr.accessed.nanos.wrapping_sub(WITHHELD_NANOS);
    let has_no_mode = attr.mode & !MODE_UNSTATED == 0 && (is_as_made || is_written);
    match has_no_mode && noted <= RIGHTS && !attr.made.is_some_and(is_read) {
        true => noted,
        false => 0,
    }
}

/// As in the kernel's server one bit of each half is lost to file systems with signed 32-bit
/// seconds.
fn times(verifier: [u8; 8]) -> (Time, Time) {
    let [a, b, c, d, e, f, g, h] = verifier;
    let time =
        |half: [u8; 4]| Time { secs: i64::from(u32::from_be_bytes(half) & 0x7fff_ffff), nanos: 0 };
    (time([a, b, c, d]), time([e, f, g, h]))
}
