//! Names that cannot be there: in a directory that we have made there are ours and no others, until
//! the server tells that somebody else has changed it.
//!
//! A program that fills a new directory looks for each name before it makes it, and a kernel does
//! not tell us which of the two it is about: one LOOKUP for each file that finds nothing.

use perf::units::{Instant, Nanos};
use wire::nfs3::FileHandle;

use super::{Acting, Files, Found, State};
use crate::cache::attributes::Version;

/// For how long after a reply with a directory's attributes a name is absent that is not
/// ours. Shorter than they are good: whoever looks for a name that another client has made looks
/// for the first time, and every other client of NFS would ask.
const ABSENT_FOR: Nanos = Nanos::from_secs(1);

/// File systems whose names were queried; of more, every name is requested.
const FILE_SYSTEMS_MAX: usize = 256;

/// Whether a name leads nowhere if none of the same bytes was made. Servers have directories that
/// they do not list (`.snapshot`), and take different bytes for one letter.
pub(super) fn is_listed(name: &[u8]) -> bool {
    name.is_ascii() && name.first() != Some(&b'.')
}

impl State {
    /// Whether a directory of this version has no such name, though nobody has looked it up.
    pub(super) fn is_absent(
        &mut self,
        (dir, version): (&FileHandle, Version),
        name: &[u8],
        now: Instant,
    ) -> bool {
        is_listed(name)
            && self.attributes.is_known_for(dir, ABSENT_FOR, now)
            && self.names.is_absent(dir, name, version)
    }
}

impl Files {
    /// For how long a name that was not found may be taken to be missing, by whomever: not at all
    /// where nobody has looked it up, or somebody may not.
    pub fn missing_for(&self, dir: &FileHandle, name: &[u8]) -> Nanos {
        let was_queried = {
            let mut state = self.inner.state.lock();
            let version = state.attributes.sure_version(dir);
            version.is_some_and(|version| {
                state.names.find(dir, name, version).is_some()
                    || state.catalogs.find(dir, name, version).is_some()
            })
        };
        if was_queried && !self.refuses_some(dir) { self.validity(dir) } else { Nanos::ZERO }
    }

    /// A directory has just been made.
    pub(super) fn begins_empty(&self, made: &Found, has_exact_names: bool) {
        let mut state = self.inner.state.lock();
        // Another client may have made something there before these attributes were returned.
        let is_new = made.attributes.atime == made.attributes.mtime;
        let is_known = state.attributes.version(&made.handle) == Some(made.version);
        if is_new && is_known && has_exact_names {
            state.names.is_empty(&made.handle, made.version);
        }
    }

    /// Whether names of other bytes are other names in the file system of a directory. It is
    /// queried once.
    pub(super) async fn has_exact_names(&self, acting: &Acting, dir: FileHandle) -> bool {
        let known = {
            let state = self.inner.state.lock();
            let fsid = state.attributes.last(&dir).map(|last| last.fsid);
            fsid.and_then(|fsid| state.exact_names.get(&fsid).copied())
        };
        if let Some(known) = known {
            return known;
        }
        let sent = self.now();
        let pathconf = self.heard((&dir, sent), acting.session.pathconf(dir).await);
        let is_exact = pathconf.is_ok_and(|pathconf| {
            self.note(&dir, pathconf.obj_attributes, sent);
            !pathconf.case_insensitive && pathconf.case_preserving && pathconf.no_trunc
        });
        let mut state = self.inner.state.lock();
        let Some(last) = state.attributes.last(&dir) else { return false };
        let has_room = state.exact_names.len() < FILE_SYSTEMS_MAX;
        if has_room {
            state.exact_names.insert(last.fsid, is_exact);
        }
        is_exact && has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_do_not_list_is_looked_up() {
        assert!(is_listed(b"a.txt") && is_listed(b"A"));
        assert!(!is_listed(b".snapshot") && !is_listed("\u{e9}".as_bytes()) && !is_listed(b"\xff"));
    }
}
