//! Opening a small file by reading it: one READ in place of the ACCESS and the READ that follows.
//!
//! An open asks the server two things: whether the caller may read, and whether the file is still
//! what it was. The reply to a READ of the whole file answers both, and has what the program is
//! going to ask for. It is used where it says no less than an ACCESS:
//!
//! - **Who may.** The READ is the caller's own, and the server refuses it as it would any. But
//!   servers let an owner read whatever the mode says, since programs may do so that have had the
//!   file open before, and give a file to whoever may run it (RFC 1813 section 3.3.6). So what is
//!   opened in this way has a mode that lets its owner read and nobody run it: of such a file a
//!   READ that is answered shows the right to read, whoever the caller is at the server.
//! - **What it is.** The attributes of the reply count as those of an open: whatever was written
//!   elsewhere and closed before shows in them. The data may be older than the attributes, as
//!   others may write between the two. So the data are used only if the attributes are those that
//!   were known before the READ was sent, and are dropped with everything else that is known of
//!   this state.
//!
//! A server that answers READs from a cache of its own has to know which of them is an open: it
//! asks for [`OPENING_READ_BYTES`] from the start, however small the file is.
//!
//! Anything else is an open as it always was. Bounded: so many bytes of an open file, within what
//! may be held for readers.

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FType, Fattr3, FileHandle, NfsStat3, access};

use super::attributes::Opened;
use super::open::Open;
use super::{Acting, Files};
use crate::cache::attributes::Version;
use crate::cache::state::token;
use crate::error::Error;
use crate::read_ahead::budget::Permit;
use crate::session::Credential;

/// What a READ asks for that opens a file, and no other READ of ours does (64 KiB is a guess: what
/// they take longer than an ACCESS is little, should nobody want the data). Larger files are not
/// opened in this way.
pub const OPENING_READ_BYTES: u32 = (64 << 10) - 1;

/// All of a file, as it was read when it was opened.
#[derive(Debug)]
pub(super) struct First {
    data: Bytes,
    /// What it is of, and when it was requested.
    of: (Option<Version>, u64),
    sent: Instant,
    /// Bytes that no reader has taken.
    left: u64,
    _permit: Permit,
}

/// What is known of a file that is about to be read.
struct Before {
    known: Fattr3,
    version: Version,
}

impl Before {
    fn is_whole(&self, data: &Bytes) -> bool {
        data.len() as u64 == self.known.size
    }
}

impl First {
    /// Bytes from `offset` of a file in this state, unless they were requested before `oldest`; and
    /// whether nothing is left.
    pub(super) fn read(
        &mut self,
        of: (Option<Version>, u64),
        oldest: Instant,
        (offset, count): (u64, u32),
    ) -> Option<(Bytes, bool)> {
        if self.of != of || self.sent < oldest {
            return None;
        }
        let from = usize::try_from(offset).ok().filter(|from| *from < self.data.len())?;
        let end = from.saturating_add(count as usize).min(self.data.len());
        self.left = self.left.saturating_sub((end - from) as u64);
        Some((self.data.slice(from..end), self.left == 0))
    }
}

/// Whether whoever gets data of such a file may read it.
fn shows_rights(attributes: &Fattr3) -> bool {
    attributes.ftype == FType::Reg && attributes.mode & 0o400 != 0 && attributes.mode & 0o111 == 0
}

impl Files {
    /// Opens a file to read by reading it. None where ACCESS has to be called for the rights,
    /// and nothing is known of them.
    pub(super) async fn open_by_read(
        &self,
        (who, acting): (&Credential, &Acting),
        file: FileHandle,
    ) -> Result<Option<Open>, Error> {
        let Some((before, permit)) = self.may_be_read(acting, &file) else { return Ok(None) };
        let cached = self.cached_first(&file, &before).await;
        if cached.is_some() {
            return self
                .open_read_before((who, acting), file, before, (cached, permit))
                .await
                .map(Some);
        }
        let (sent, state) = (self.now(), self.storable(&file));
        let reply = acting.session.read(file, 0, OPENING_READ_BYTES).await;
        let reply = match self.heard((&file, sent), reply) {
            Ok(reply) => reply,
            Err(error) => match error.status() {
                // By another procedure it may be another answer; these two are not.
                Some(status) if !matches!(status, NfsStat3::Acces | NfsStat3::Stale) => {
                    return Ok(None);
                }
                _ => return Err(error),
            },
        };
        let is_changing = || self.inner.state.lock().attributes.is_changing(&file);
        let attributes = reply.file_attributes.filter(shows_rights);
        let Some(attributes) = attributes.filter(|_| !is_changing()) else {
            self.note(&file, reply.file_attributes, sent);
            return Ok(None);
        };
        let opened = Opened { attributes: &attributes, sent, is_open: true };
        self.may(acting, &file, opened, (access::READ, access::READ));
        let open = self.open_made(who, file);
        if token(&attributes) != token(&before.known) || !before.is_whole(&reply.data) {
            return Ok(Some(open));
        }
        if let Some(state) = state {
            self.store(&file, &state, 0, &reply.data);
        }
        open.has_first(before.version, (reply.data, sent), permit);
        Ok(Some(open))
    }

    /// What is known of a file that can be opened by reading it, and room for its data.
    fn may_be_read(&self, acting: &Acting, file: &FileHandle) -> Option<(Before, Permit)> {
        let options = &self.inner.options;
        let is_reused = options.close_to_open && options.times.reg_min > Nanos::ZERO;
        if !is_reused || self.is_dirty(file) {
            return None;
        }
        let before = {
            let state = self.inner.state.lock();
            let known = state.attributes.sure(file)?;
            Before { known, version: state.attributes.version(file)? }
        };
        let size = before.known.size;
        let fits = acting.session.sizes_now().read_bytes_max >= OPENING_READ_BYTES;
        let is_small = fits && 0 < size && size <= u64::from(OPENING_READ_BYTES);
        if !is_small || !shows_rights(&before.known) {
            return None;
        }
        self.room(size).map(|permit| (before, permit))
    }

    /// All of the file from the local disk: it needs no READ.
    async fn cached_first(&self, file: &FileHandle, before: &Before) -> Option<Bytes> {
        let (disk, key) = self.disk().zip(crate::cache::state::key(file))?;
        let data = disk.read(&key, &token(&before.known), 0, OPENING_READ_BYTES).await.ok()?;
        before.is_whole(&data).then_some(data)
    }

    /// Opens a file of which the local disk has all, if it is what it was.
    async fn open_read_before(
        &self,
        (who, acting): (&Credential, &Acting),
        file: FileHandle,
        before: Before,
        (cached, permit): (Option<Bytes>, Permit),
    ) -> Result<Open, Error> {
        let sent = self.now();
        let granted = self.ask_access(acting, file, access::READ, true).await?;
        if granted != access::READ {
            return Err(self.known_status("ACCESS", NfsStat3::Acces));
        }
        let open = self.open_made(who, file);
        if let Some(data) = cached {
            open.has_first(before.version, (data, sent), permit);
        }
        Ok(open)
    }
}

impl Open {
    /// All of the file was read when it was opened, if it still is of this version.
    fn has_first(&self, version: Version, (data, sent): (Bytes, Instant), permit: Permit) {
        let (files, file) = (self.files(), self.file());
        let is_same = files.inner.state.lock().attributes.sure_version(&file) == Some(version);
        if is_same && !files.is_dirty(&file) {
            let (of, left) = ((Some(version), self.changes()), data.len() as u64);
            self.reading().lock().first = Some(First { data, of, sent, left, _permit: permit });
            self.is_read();
        }
    }

    /// Bytes that were read when the file was opened.
    pub(super) fn read_first(
        &self,
        of: (Option<Version>, u64),
        oldest: Instant,
        range: (u64, u32),
    ) -> Option<Bytes> {
        let mut reading = self.reading().lock();
        let first = reading.first.as_mut()?;
        let read = first.read(of, oldest, range);
        if read.as_ref().is_none_or(|(_, is_last)| *is_last) {
            reading.first = None;
        }
        read.map(|(data, _)| data)
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::NfsTime;

    use super::*;

    #[test]
    fn only_of_files_that_nobody_may_run_a_read_shows_the_right_to_read() {
        let of = |mode| Fattr3 { mode, ..Fattr3::of_file(1, NfsTime::default()) };
        assert!(shows_rights(&of(0o644)) && shows_rights(&of(0o400)) && shows_rights(&of(0o640)));
        assert!(!shows_rights(&of(0o200)), "servers give an owner what his mode does not");
        assert!(!shows_rights(&of(0o044)));
        assert!(!shows_rights(&of(0o711)), "and whoever may run a file what he may not read");
        assert!(
            !shows_rights(&of(0o755)),
            "nor of a list of rights behind the mode is anything known"
        );
        assert!(!shows_rights(&Fattr3 { ftype: FType::Fifo, ..of(0o644) }));
    }
}
