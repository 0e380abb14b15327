//! Who is given what is known of a directory's names: see [`crate::cache::searchers`].

use wire::nfs3::{FileHandle, NfsStat3, access};

use super::{Acting, Files};
use crate::error::Error;

impl Files {
    /// The server has let a caller find or change names of a directory, which may have changed the
    /// state by which its rights are remembered.
    pub(super) fn has_searched(&self, acting: &Acting, dir: &FileHandle) {
        let now = self.now();
        let mut state = self.inner.state.lock();
        state.searchers.requested(dir, acting.id);
        let is_alone = state.searchers.is_alone(dir, acting.id) == Some(true);
        if let Some(last) = state.attributes.last(dir).filter(|_| !is_alone) {
            state.rights.put(dir, acting.id, (last.ctime, now), access::LOOKUP, access::LOOKUP);
        }
    }

    /// Whether a right to search a directory is not needed, or was requested before. Who has
    /// requested what the local disk had before this mount is not known.
    pub(super) fn was_searched(&self, acting: &Acting, dir: &FileHandle) -> bool {
        let searchers = &mut self.inner.state.lock().searchers;
        self.disk().is_none() || searchers.is_alone(dir, acting.id).is_some()
    }

    /// The right to search a directory, as far as it need not be requested.
    pub(super) fn known_right(&self, acting: &Acting, dir: &FileHandle) -> Option<u32> {
        let now = self.now();
        let mut state = self.inner.state.lock();
        if state.searchers.is_alone(dir, acting.id) == Some(true) {
            return Some(access::LOOKUP);
        }
        let good = state.attributes.good(dir, now)?;
        state.rights.find(dir, acting.id, good.ctime, access::LOOKUP)
    }

    /// Whether a caller may be given what is known of a directory's names.
    pub(super) async fn may_search(&self, acting: &Acting, dir: FileHandle) -> Result<bool, Error> {
        let is_alone = self.inner.state.lock().searchers.is_alone(&dir, acting.id);
        let granted = match self.known_right(acting, &dir) {
            Some(granted) => granted,
            None => self.ask_access(acting, dir, access::LOOKUP, false).await?,
        };
        let may = granted & access::LOOKUP != 0;
        let searchers = &mut self.inner.state.lock().searchers;
        match is_alone {
            _ if !may => searchers.refused(&dir),
            None => searchers.requested(&dir, acting.id),
            Some(_) => {}
        }
        Ok(may)
    }

    /// The server has refused a caller a LOOKUP in a directory: it may not search that.
    pub(super) fn name_refused(&self, dir: &FileHandle, error: &Error) {
        if error.status() == Some(NfsStat3::Acces) {
            self.inner.state.lock().searchers.refused(dir);
        }
    }

    /// The answer to a call that needs more than that right. Where it is refused, an ACCESS shows
    /// whether that is missing, too.
    pub(super) async fn more_granted<T>(
        &self,
        acting: &Acting,
        dir: FileHandle,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        if answer.as_ref().is_err_and(|error| error.status() == Some(NfsStat3::Acces)) {
            self.may_search(acting, dir).await.ok();
        }
        answer
    }

    /// Whether there is a caller that may not search a directory of which others have names: who
    /// keeps names for all of them is not to keep these.
    pub fn refuses_some(&self, dir: &FileHandle) -> bool {
        self.inner.state.lock().searchers.refuses(dir)
    }
}
