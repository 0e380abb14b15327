//! Errors of files: which descriptor gets one, and when it is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::nfs3::FileHandle;

use super::engine::Engine;
use super::file::{File, Heard, State, Teller};
use crate::error::Error;

impl Engine {
    /// Reports an earlier error that was not reported yet.
    pub(super) fn tell_anybody(&self, handle: FileHandle) -> Result<(), Error> {
        self.known(handle).map_or(Ok(()), |file| file.state.lock().tell_anybody())
    }

    /// Reports an earlier error to a descriptor.
    pub(super) fn tell(&self, handle: FileHandle, heard: &Heard, by: Teller) -> Result<(), Error> {
        self.known(handle).map_or(Ok(()), |file| file.state.lock().tell(heard, by))
    }

    /// For a descriptor that is opened now: an error that was not reported yet concerns it, too.
    pub(super) fn opened(&self, handle: FileHandle) -> Heard {
        let is_new = |state: &State| state.failed.as_ref().is_some_and(|one| !one.is_reported);
        match self.look(handle, is_new) {
            Some(true) => Heard::until(0),
            _ => Heard::until(self.errors.load(Ordering::Acquire)),
        }
    }

    /// Whether bytes of a file were given up since it was last read.
    pub(super) fn take_given_up(&self, handle: FileHandle) -> bool {
        let take = |file: Arc<File>| std::mem::take(&mut file.state.lock().has_given_up);
        self.known(handle).is_some_and(take)
    }

    /// The number of an error that has come now.
    pub(super) fn error_number(&self) -> u64 {
        self.errors.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Nobody has the file open any more: an error that was reported is dropped.
    pub(super) fn closed(&self, handle: FileHandle) {
        if let Some(file) = self.known(handle) {
            file.state.lock().failed.take_if(|failed| failed.is_reported);
        }
    }

    /// The report of an error did not reach its descriptor. Meanwhile all may have closed the
    /// file: then it counts as not reported.
    pub(super) fn not_heard(&self, handle: FileHandle, heard: &Heard, error: Error) {
        let number = self.error_number();
        self.file(handle).state.lock().not_heard(heard, error, number);
        self.work.notify_one();
    }

    /// An error of a file, which was not reported yet.
    pub(super) fn fail(&self, handle: FileHandle, error: Error) {
        self.file(handle).state.lock().fail(error, self.error_number());
        self.work.notify_one();
    }
}
