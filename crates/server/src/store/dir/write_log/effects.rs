//! What calls leave in the file system by which it is seen whether they were executed.

use std::os::fd::{AsFd, OwnedFd};

use log::reply::{Effect, FileId};
use log::{Key, Stamp};
use rustix::io::Errno;

use super::keys::find;
use super::times::stamp;
use crate::store::dir::beneath::Component;
use crate::store::dir::stat::Stat;
use crate::types::Attr;

/// How files are distinguished in what a recovery looks for.
pub(in crate::store::dir) fn file_id(attr: &Attr) -> FileId {
    FileId { inode: attr.fileid, born: attr.made.map(stamp) }
}

/// Whether the file system has what a call did. Since then others may have changed inodes: later
/// times show nothing.
pub(super) fn shows(
    root: &OwnedFd,
    key: &Key,
    effect: &Effect<'_>,
    others_since: Option<Stamp>,
) -> bool {
    let of = match find(root, key) {
        Ok(of) => of,
        // With its directory the name is gone, too.
        Err(Errno::STALE) => return matches!(effect, Effect::Unnamed { .. }),
        Err(_) => return false,
    };
    let named = |name| {
        let name = Component::new(name).map_err(|_| Errno::INVAL)?;
        Ok::<_, Errno>(file_id(&Stat::named(of.as_fd(), name)?.attr()))
    };
    match *effect {
        Effect::Logged => true,
        Effect::Changed { changed } => Stat::of(&of).is_ok_and(|stat| {
            Effect::is_shown_by(changed, stamp(stat.attr().changed), others_since)
        }),
        Effect::Named { name, file } => named(name) == Ok(file),
        Effect::Unnamed { name, file } => match named(name) {
            Ok(other) => other != file,
            Err(errno) => errno == Errno::NOENT,
        },
    }
}
