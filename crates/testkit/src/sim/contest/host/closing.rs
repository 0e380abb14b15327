//! What was written becomes stable, files are closed, and who hears of errors.

use bytes::Bytes;
use client::error::Error;
use wire::nfs3::FileHandle;

use super::unheard::Unheard;
use super::{Descriptor, Host, Kind, Opened, Unstable};
use crate::reference::register::Ticket;
use crate::sim::contest::refused::Refused;

impl Host {
    pub(in crate::sim::contest) async fn sync(&self, of: &Opened) -> Result<(), Refused> {
        match (&self.kind, &of.open) {
            (Kind::Calls { session, .. }, Descriptor::Calls(unstable)) => loop {
                let verifier = session.commit(of.file, 0, 0).await?.reply.verf;
                let written = std::mem::take(&mut *unstable.lock());
                if written.iter().all(|written| written.verifier == verifier) {
                    break;
                }
                // The server has lost some of it (RFC 1813, 3.3.21).
                for Unstable { at, data, .. } in written {
                    self.write(of, at, &data).await?;
                }
            },
            (_, Descriptor::Open { open, .. }) => self.heard(of, open.flush().await)?,
            (_, Descriptor::File(file)) => file.sync_all()?,
            _ => {}
        }
        Ok(())
    }

    pub(in crate::sim::contest) async fn close(&self, of: Opened) -> Result<(), Refused> {
        match &of.open {
            Descriptor::Calls(_) => self.sync(&of).await,
            Descriptor::Open { open, number, .. } => {
                let flushed = self.heard(&of, open.flush_at_close().await);
                if let Some(locks) = self.locks(&of) {
                    locks.release_open(&of.file, *number);
                }
                open.close().await;
                Ok(flushed?)
            }
            // std does not return what close(2) does; what it has lost shows in the end.
            Descriptor::File(file) => match &self.kind {
                Kind::Folder(folder) if folder.syncs => Ok(file.sync_all()?),
                _ => Ok(()),
            },
            Descriptor::Locker(_) => Ok(()),
        }
    }

    /// Whether a program can have written something here and not hear of it.
    pub(in crate::sim::contest) fn has_silence(&self) -> bool {
        matches!(self.kind, Kind::Files { .. })
    }

    /// A program begins to write what it will not hear of.
    pub(in crate::sim::contest) fn begin_unheard(&self, of: &Opened, tickets: Vec<(u32, Ticket)>) {
        if let (Kind::Files { silent, .. }, Descriptor::Open { number, .. }) =
            (&self.kind, &of.open)
        {
            silent.lock().insert(*number, Unheard { file: of.file, tickets, stable: None });
        }
    }

    /// Closes a file for a program that is interrupted meanwhile.
    pub(in crate::sim::contest) async fn close_interrupted(&self, of: Opened) {
        if let Descriptor::Open { open, .. } = &of.open
            && let Err(error) = open.flush_at_close().await
        {
            open.not_heard(error);
        }
        self.release(of).await;
    }

    /// Closes a file of which a program has a mapping, writes through that, and gives it up: the
    /// kernel writes back, and releases the file.
    pub(in crate::sim::contest) async fn close_mapped(
        &self,
        of: Opened,
        writes: &[(u64, Vec<u8>)],
    ) -> Result<(), Refused> {
        let Descriptor::Open { open, version, .. } = &of.open else { return Ok(()) };
        let closed = self.heard(&of, open.flush_at_close().await);
        for (at, data) in writes {
            if let Kind::Files { kernel, .. } = &self.kind {
                kernel.lock().wrote(&of.file, *version, *at, data);
            }
            if let Err(error) = open.write_back(*at, Bytes::copy_from_slice(data), Vec::new()).await
            {
                open.fail(error);
            }
        }
        open.settle().await;
        self.release(of).await;
        Ok(closed?)
    }

    async fn release(&self, of: Opened) {
        let Descriptor::Open { open, number, .. } = &of.open else { return };
        open.close().await;
        if let Kind::Files { silent, .. } = &self.kind
            && let Some(unheard) = silent.lock().get_mut(number)
        {
            unheard.stable = Some(self.clock.now());
        }
    }

    /// Whoever hears of an error of a file, hears of all that was written until then.
    pub(super) fn heard<T>(&self, of: &Opened, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.excuse(&of.file);
        }
        result
    }

    fn excuse(&self, of: &FileHandle) {
        if let Kind::Files { silent, .. } = &self.kind {
            silent.lock().retain(|_, unheard| unheard.file != *of);
        }
    }

    /// The end; gives an error that was not reported before, and what must be there because no
    /// error was reported.
    pub(in crate::sim::contest) async fn leave(&self) -> (Option<Error>, Vec<Unheard>) {
        let Kind::Files { files, silent, .. } = &self.kind else { return (None, Vec::new()) };
        let lost = files.now().shut_down().await;
        lost.iter().for_each(|loss| self.excuse(&loss.file));
        let silent = std::mem::take(&mut *silent.lock());
        (lost.into_iter().next().map(|loss| loss.error), silent.into_values().collect())
    }
}
