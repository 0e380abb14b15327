//! READ, WRITE and COMMIT: bytes between a client and the origin, whose transfers may be smaller; a
//! READ is answered from the local disk where that has it.

use bytes::Bytes;
use cache::{Cause, Key};
use client::cache::state::token;
use client::error::Error;
use client::ops::ReadOk;
use client::session::Session;
use server::durable::Committed;
use server::store::{Changed, Extent, Looked, Written};
use server::types::{Stability, Status, Wcc};
use wire::nfs3::{Fattr3, FileHandle, StableHow, access};

use crate::ahead::Read;
use crate::disk::Disk;
use crate::fate::Kind;
use crate::neutral;
use crate::remote::Remote;
use crate::whole::read_whole;

impl Remote {
    pub(crate) async fn read_bytes(&self, read: &Read<'_>) -> Looked<Extent> {
        if let Some(disk) = &self.disk
            && let Some(got) = self.read_disk(disk, read).await
        {
            let attr = neutral::post_op(got.file_attributes);
            return Looked { attr, result: Ok(Extent { data: got.data, eof: got.eof }) };
        }
        if !read.opens()
            && let Some((got, was_ahead)) = self.ahead.read(read).await
        {
            let ReadOk { file_attributes, eof, data } = got;
            if was_ahead {
                self.counts.read_ahead(data.len());
            }
            self.has_read(read.caller, &read.file, file_attributes.as_ref());
            let attr = neutral::post_op(file_attributes);
            return Looked { attr, result: Ok(Extent { data, eof }) };
        }
        let begun = read.opens().then(|| self.clock.now());
        match self.read_origin(read).await {
            Ok(ReadOk { file_attributes, eof, data }) => {
                if let Some(returned) = &file_attributes {
                    self.learn(&read.file, returned, begun);
                }
                self.has_read(read.caller, &read.file, file_attributes.as_ref());
                self.ahead.answered(read, file_attributes.as_ref());
                let attr = neutral::post_op(file_attributes);
                Looked { attr, result: Ok(Extent { data, eof }) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    /// Reads from the origin; with a disk, the blocks around it, which it keeps.
    async fn read_origin(&self, read: &Read<'_>) -> Result<ReadOk, Error> {
        let &Read { session, file, offset, count, .. } = read;
        let Some(disk) = &self.disk else {
            return read_whole(session, file, offset, count).await;
        };
        // What opens a file stays what it is: before the origin may stand another proxy.
        let (begin, around) = match read.opens() {
            true => (offset, count),
            false => disk.around(offset, count),
        };
        let state = disk.state(&file);
        let mut got = read_whole(session, file, begin, around).await?;
        disk.keep(&file, state, begin, &got);
        let from = usize::try_from(offset - begin).unwrap_or(usize::MAX).min(got.data.len());
        let to = from.saturating_add(count as usize).min(got.data.len());
        got.eof &= to == got.data.len();
        got.data = got.data.slice(from..to);
        Ok(got)
    }

    /// The bytes, if the disk has all of them and the caller may read them.
    pub(crate) async fn read_disk(&self, disk: &Disk, read: &Read<'_>) -> Option<ReadOk> {
        let Read { caller, file, .. } = read;
        if read.opens() {
            return self.open_disk(disk, read).await;
        }
        let attributes = match disk.known.readable(file, caller) {
            Some(attributes) => attributes,
            None => self.ask_readable(disk, read).await?,
        };
        self.read_cached(disk, read, attributes).await
    }

    /// The same of a READ that opens the file: if the disk has all of it, an ACCESS in place of the
    /// READ tells whether it is what it was.
    async fn open_disk(&self, disk: &Disk, read: &Read<'_>) -> Option<ReadOk> {
        let last = disk.known.last(&read.file)?;
        let cached = self.read_cached(disk, read, last).await?;
        let attributes = self.ask_readable(disk, read).await?;
        let is_same = token(&attributes) == token(&last);
        is_same.then_some(ReadOk { file_attributes: Some(attributes), ..cached })
    }

    /// What the disk has of a file in this state.
    async fn read_cached(
        &self,
        disk: &Disk,
        read: &Read<'_>,
        attributes: Fattr3,
    ) -> Option<ReadOk> {
        let Read { file, offset, count, .. } = read;
        let size = attributes.size;
        if *offset >= size {
            let (file_attributes, data) = (Some(attributes), Bytes::new());
            return Some(ReadOk { file_attributes, eof: true, data });
        }
        let state = token(&attributes);
        let key = Key::new(file.as_bytes())?;
        let data = disk.cache.read(&key, &state, *offset, *count).await.ok()?;
        // Another state may have been reported meanwhile.
        if disk.known.last(file).as_ref().map(token) != Some(state) {
            disk.cache.missed(&key, state.fileid, Cause::Unsure);
            return None;
        }
        let eof = offset.saturating_add(data.len() as u64) >= size;
        Some(ReadOk { file_attributes: Some(attributes), eof, data })
    }

    /// Asks the origin for the state of the file and what the caller may.
    async fn ask_readable(&self, disk: &Disk, read: &Read<'_>) -> Option<Fattr3> {
        let Read { session, caller, file, .. } = read;
        let was_cached = self.ask_access(session, caller, *file, access::ALL).await.ok()?.1;
        if was_cached {
            // The origin is away: what was known is what there is.
            let right = disk.known.last_rights(file, caller)?;
            let may = right.access & access::READ != 0;
            return right.obj_attributes.filter(|_| may);
        }
        let readable = disk.known.readable(file, caller);
        if readable.is_none() {
            let fileid = disk.known.last(file).map_or(0, |last| last.fileid);
            disk.cache.missed(&Key::new(file.as_bytes())?, fileid, Cause::Unsure);
        }
        readable
    }

    /// Writes all of it, one part after the other; fails if one does. A part that was written
    /// before stays, as with every WRITE that fails.
    pub(crate) async fn write_whole(
        &self,
        session: &Session,
        file: FileHandle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        let stable = stable_how(stability);
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let mut wcc: Option<Wcc> = None;
        let mut committed: Option<Committed> = None;
        let mut done = 0_usize;
        loop {
            let most = session.sizes_now().write_bytes_max as usize;
            let part = data.slice(done..data.len().min(done + most));
            let at = offset + done as u64;
            let reply = match session.write(file, at, part, stable).await {
                Ok(timed) => timed.reply,
                Err(error) => {
                    let failed = self.changed_in_vain(&error, Kind::Repeatable);
                    let wcc = wcc.map_or(failed.wcc, |before| around(before, failed.wcc));
                    return Changed { wcc, result: failed.result };
                }
            };
            self.changed(&file, reply.file_wcc.after.as_ref());
            let returned = neutral::wcc(&reply.file_wcc);
            wcc = Some(wcc.map_or(returned, |before| around(before, returned)));
            let where_ = Committed::of_reply(&reply);
            committed = Some(committed.map_or(where_, |before| before.and(where_)));
            done += (reply.count as usize).min(data.len() - done);
            if done >= data.len() {
                break;
            }
        }
        let wcc = wcc.unwrap_or_default();
        let written = committed.map(|committed| Written { count, committed });
        Changed { wcc, result: written.ok_or(Status::ServerFault) }
    }
}

/// The states around two changes, one after the other: unless the second found what the first had
/// left, somebody else came between, and what was before is not to be compared with.
pub(crate) fn around(first: Wcc, second: Wcc) -> Wcc {
    let left = first.after.as_ref().map(server::types::Before::from);
    let before = first.before.filter(|_| left.is_some() && left == second.before);
    Wcc { before, after: second.after }
}

fn stable_how(of: Stability) -> StableHow {
    match of {
        Stability::Unstable => StableHow::Unstable,
        Stability::DataSync => StableHow::DataSync,
        Stability::FileSync => StableHow::FileSync,
    }
}

#[cfg(test)]
mod tests {
    use server::types::{Attr, Before, FileKind, Time};

    use super::*;

    fn attr(second: i64) -> Attr {
        let time = Time { secs: second, nanos: 0 };
        Attr {
            kind: FileKind::Regular,
            mode: 0,
            links: 1,
            uid: 0,
            gid: 0,
            size: 0,
            used: 0,
            device: (0, 0),
            fsid: 0,
            fileid: 0,
            accessed: time,
            modified: time,
            changed: time,
            made: None,
        }
    }

    #[test]
    fn a_change_by_somebody_else_between_two_parts_is_not_taken_for_ours() {
        let wcc = |before: i64, after: i64| Wcc {
            before: Some(Before::from(&attr(before))),
            after: Some(attr(after)),
        };
        assert_eq!(around(wcc(1, 2), wcc(2, 3)), wcc(1, 3));
        let torn = Wcc { before: None, after: Some(attr(4)) };
        assert_eq!(around(wcc(1, 2), wcc(3, 4)), torn);
        let unknown = Wcc { before: None, after: None };
        assert_eq!(around(unknown, Wcc { before: None, ..wcc(3, 4) }), torn);
    }
}
