//! Who is given what is known of a directory's names: see [`crate::cache::searchers`].

use wire::nfs3::{FileHandle, access};

use super::{Acting, Files};
use crate::error::Error;

impl Files {
    /// The server has let a caller find or change names of a directory, which may have changed the
    /// state by which its rights are remembered.
    pub(super) fn has_searched(&self, acting: &Acting, dir: &FileHandle) {
        let mut state = self.inner.state.lock();
        state.searchers.requested(dir, acting.id);
        let is_alone = state.searchers.is_alone(dir, acting.id) == Some(true);
        if let Some(last) = state.attributes.last(dir).filter(|_| !is_alone) {
            state.rights.put(dir, acting.id, last.ctime, access::LOOKUP, access::LOOKUP);
        }
    }

    /// Whether a caller may be given what is known of a directory's names. Who has requested what
    /// the local disk had before this mount is not known: whoever comes first is taken for that.
    pub(super) async fn may_search(&self, acting: &Acting, dir: FileHandle) -> Result<bool, Error> {
        let now = self.now();
        let known = {
            let mut state = self.inner.state.lock();
            match state.searchers.is_alone(&dir, acting.id) {
                Some(true) => return Ok(true),
                None if self.disk().is_some() => {
                    state.searchers.requested(&dir, acting.id);
                    return Ok(true);
                }
                Some(false) | None => {}
            }
            let good = state.attributes.good(&dir, now);
            good.and_then(|good| state.rights.find(&dir, acting.id, good.ctime, access::LOOKUP))
        };
        let granted = match known {
            Some(granted) => granted,
            None => self.ask_access(acting, dir, access::LOOKUP, false).await?,
        };
        let may = granted & access::LOOKUP != 0;
        if !may {
            self.inner.state.lock().searchers.refused(&dir);
        }
        Ok(may)
    }

    /// Whether there is a caller that may not search a directory of which others have names: who
    /// keeps names for all of them is not to keep these.
    pub fn refuses_some(&self, dir: &FileHandle) -> bool {
        self.inner.state.lock().searchers.refuses(dir)
    }
}
