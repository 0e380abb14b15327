//! Open files: reading, writing, and what is promised when they are closed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use client::error::Error;
use client::files::open::{Mode, Open};
use client::session::Credential;
use rustix::io::Errno;
use wire::nfs3::{FileHandle, Sattr3, SetTime, access};

use super::sharing::Verdict;
use super::{FileSystem, errno};
use crate::abi::init::KernelCache;
use crate::abi::request::{From, How, O_APPEND};
use crate::abi::{answer, fopen};
use crate::attributes::made;
use crate::inflight::Reply;
use crate::opens::OpenFile;

const O_ACCMODE: u32 = 3;
const O_RDONLY: u32 = 0;
const O_WRONLY: u32 = 1;
const O_EXCL: u32 = 0o200;
const O_TRUNC: u32 = 0o1000;
/// The file is opened to be run (the kernel's `__FMODE_EXEC`).
const FMODE_EXEC: u32 = 0x20;

/// Set-uid and set-gid.
const SETID: u32 = 0o6000;

/// Why a file was not opened.
enum Unopened {
    Failed(Errno),
    /// The kernel is to look the name of this file up again.
    Refused(FileHandle),
}

impl std::convert::From<Errno> for Unopened {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl FileSystem {
    pub(super) async fn open(
        &self,
        who: Credential,
        (node, thread): (u64, u32),
        (flags, comes_again): (u32, bool),
        reply: Reply,
    ) {
        match self.open_file(&who, (node, thread), (flags, comes_again)).await {
            Ok((open, caching)) => {
                let can_write = flags & O_ACCMODE != O_RDONLY;
                let file = OpenFile::new(open, who, node, can_write, flags & O_APPEND != 0);
                let appends = file.appends;
                let (number, caching) = self.opened(file, caching);
                if appends {
                    self.is_stable(node).await;
                }
                if !reply.body(&answer::open(number, caching)) {
                    self.closed(number).await;
                }
            }
            Err(Unopened::Failed(errno)) => reply.error(errno),
            Err(Unopened::Refused(file)) => reply.refuse(file),
        }
    }

    /// A file that is open, and how the kernel may cache it.
    async fn open_file(
        &self,
        who: &Credential,
        (node, thread): (u64, u32),
        (flags, comes_again): (u32, bool),
    ) -> Result<(Open, u32), Unopened> {
        let file = self.file(node)?;
        let open = self.open_for(who, (node, thread), file, flags).await.map_err(errno)?;
        if comes_again {
            // It is not refused once more.
            self.nodes.lock().refuse(file, thread);
        }
        match self.admit(who, (node, thread), flags, &open).await {
            Ok(caching) => Ok((open, caching)),
            Err(unopened) => {
                open.close().await;
                Err(unopened)
            }
        }
    }

    /// Opens a file with the calls that these flags need.
    async fn open_for(
        &self,
        who: &Credential,
        (node, thread): (u64, u32),
        file: FileHandle,
        flags: u32,
    ) -> Result<Open, Error> {
        let read = flags & O_ACCMODE != O_WRONLY;
        // Who may not write it cuts nothing, whatever it is opened for.
        let write = flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0;
        let mode = Mode { read, write };
        // What the kernel has it does not read, and what is cut nobody does.
        let has_data = self.nodes.lock().has_data(node, self.files.version(&file));
        let to_run = flags & FMODE_EXEC != 0;
        let rights = if to_run { access::EXECUTE } else { mode.rights() };
        match self.open_as_looked_up(who, (file, thread), rights).await {
            Some(open) => Ok(open),
            None if to_run => self.files.open_to_run(who, file).await,
            None if has_data || flags & O_TRUNC != 0 => {
                self.files.open_cached(who, file, mode).await
            }
            None => self.files.open(who, file, mode).await,
        }
    }

    /// Cuts an open file that is to be cut, and chooses how the kernel may cache it.
    async fn admit(
        &self,
        who: &Credential,
        (node, thread): (u64, u32),
        flags: u32,
        open: &Open,
    ) -> Result<u32, Unopened> {
        let file = open.file();
        if self.may_lead_elsewhere((node, thread), &file).await {
            return Err(Unopened::Refused(file));
        }
        if flags & O_TRUNC != 0 {
            let cut = Sattr3 { size: Some(0), ..Sattr3::default() };
            self.files.setattr(who, file, cut).await.map_err(errno)?;
        }
        self.cached(who, (node, thread), flags, open).await
    }

    /// Opens a file of which the look-up of its name has requested what an open needs.
    async fn open_as_looked_up(
        &self,
        who: &Credential,
        (file, thread): (FileHandle, u32),
        rights: u32,
    ) -> Option<Open> {
        let begun = self.looked_up.opens(thread, &file)?;
        self.files.open_as_looked_up(who, file, (rights, begun)).await
    }

    /// How the kernel may cache a file that it opens.
    async fn cached(
        &self,
        who: &Credential,
        (node, thread): (u64, u32),
        flags: u32,
        open: &Open,
    ) -> Result<u32, Unopened> {
        let file = open.file();
        if self.cache == KernelCache::None {
            if self.judge((node, thread), &file) != Verdict::Same {
                self.catch_up(who, node, &file).await;
            }
            return Ok(fopen::DIRECT_IO);
        }
        if self.writes_back && flags & O_ACCMODE == O_WRONLY {
            // To write a part of a page the kernel reads the rest of it first.
            let owner = self.files.getattr(who, file).await.map_err(errno)?.uid;
            if owner != who.uid {
                let granted = self.files.access(who, file, access::READ).await;
                if granted.map_err(errno)? & access::READ == 0 {
                    return Ok(fopen::DIRECT_IO);
                }
            }
        }
        match self.judge((node, thread), &file) {
            Verdict::Same => Ok(fopen::KEEP_CACHE),
            Verdict::Changed => {
                let has_size = self.catch_up(who, node, &file).await;
                Ok(if has_size { 0 } else { fopen::DIRECT_IO })
            }
            Verdict::ChangedAgain => {
                // What programs have written through its pages counts, and who maps it gets others.
                self.write_back(node).await;
                Ok(fopen::DIRECT_IO)
            }
            Verdict::Outdated => {
                self.write_back(node).await;
                Err(Unopened::Refused(file))
            }
        }
    }

    /// Makes a file and opens it. What another client has given the name to meanwhile is not opened
    /// here, as the kernel takes it to be the caller's own and checks nothing: without O_EXCL it
    /// looks the name up, and opens what it finds.
    pub(super) async fn create(
        &self,
        who: Credential,
        (dir, name): (u64, Vec<u8>),
        mode: u32,
        (flags, comes_again): (u32, bool),
        reply: Reply,
    ) {
        let exclusive = flags & O_EXCL != 0;
        let result = async {
            let dir = self.named_in(dir, &name)?;
            let created = self.files.create_open(&who, dir, &name, made(mode), exclusive).await;
            let (found, open) = created.map_err(|error| match errno(error) {
                Errno::EXIST if !exclusive && !comes_again => Errno::STALE,
                errno => errno,
            })?;
            Ok((dir, found, open))
        }
        .await;
        let (parent, found, open) = match result {
            Ok(created) => created,
            Err(errno) => return self.not_changed([(dir, name)], errno, reply).await,
        };
        let mut entry = self.entry(&parent, &found);
        let can_write = flags & O_ACCMODE != O_RDONLY;
        let node = entry.node;
        let file = OpenFile::new(open, who, node, can_write, flags & O_APPEND != 0);
        let appends = file.appends;
        let caching = if self.cache == KernelCache::None { fopen::DIRECT_IO } else { 0 };
        let (number, caching) = self.opened(file, caching);
        if appends {
            entry.attr_valid = Duration::ZERO;
            self.is_stable(node).await;
        }
        if !reply.body(&answer::create(&entry, number, caching)) {
            self.closed(number).await;
            self.unname(&entry);
            self.forget_names([(dir, name)]).await;
        }
    }

    pub(super) async fn read(
        &self,
        file: u64,
        (offset, count): (u64, u32),
        asks_server: bool,
        reply: Reply,
    ) {
        let Some(file) = self.opens.file(file) else {
            return reply.error(Errno::BADF);
        };
        let read = match asks_server {
            true => file.open.read_past_caches(offset, count).await,
            false => file.open.read(offset, count).await,
        };
        match read {
            Ok(data) => {
                let data = &data[..data.len().min(count as usize)];
                if data.len() < count as usize {
                    self.ends_at(file.node, offset.saturating_add(data.len() as u64));
                }
                reply.data(data);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    /// The kernel holds pages until it is answered: nothing that needs one of them is waited for
    /// before.
    pub(super) async fn write(
        &self,
        (node, file): (u64, u64),
        (requested, data): (u64, Bytes),
        how: How,
        reply: Reply,
    ) {
        let Some(file) = self.opens.file(file) else {
            return reply.error(Errno::BADF);
        };
        let turn = if how.appends { Some(file.appending.lock().await) } else { None };
        let offset = match self.place(node, &file, requested, how).await {
            Ok(offset) => offset,
            Err(error) => return reply.error(errno(error)),
        };
        let Some(end) = offset.checked_add(data.len() as u64) else {
            return reply.error(Errno::FBIG);
        };
        #[expect(clippy::cast_possible_truncation, reason = "the kernel counts in 32 bits")]
        let count = data.len() as u32;
        let mut written = self.write_at(offset, data, (node, &file), how).await;
        drop(turn);
        let last = self.files.last(&file.open.file()).filter(|_| how.kills_setid);
        if last.is_some_and(|last| last.mode & SETID != 0) && written.is_ok() {
            // The server takes them away, and whoever looks at the file next is to see that.
            written = file.open.flush_at_write().await;
        }
        match written {
            Ok(()) => {
                let length = u64::from(count);
                let has_pages = self.wrote(node, requested.saturating_add(length), how.from);
                if how.from == From::PastCache {
                    self.wrote_past_cache(node, (offset, length), has_pages).await;
                }
                if self.files.is_sync() {
                    self.is_to_ask(node).await;
                }
                reply.body(&answer::write(count));
                if offset != requested {
                    self.wrote_elsewhere(node, &file.who, (requested, end)).await;
                }
                if self.files.is_sync() {
                    self.forget_what_was_lost(node).await;
                }
            }
            Err(error) => {
                match how.from {
                    From::Cache => {
                        reply.error(errno(error.clone()));
                        file.open.fail(error);
                    }
                    From::Program | From::PastCache => answer_error(&file.open, error, reply),
                }
                self.forget_what_was_lost(node).await;
            }
        }
    }

    async fn write_at(
        &self,
        offset: u64,
        data: Bytes,
        (node, file): (u64, &OpenFile),
        how: How,
    ) -> Result<(), Error> {
        match how.from {
            From::Cache => {
                let others = self.other_writers(node, &file.who);
                file.open.write_back(offset, data, others).await
            }
            _ if how.asks_server => file.open.write_past_caches(offset, data).await,
            From::Program | From::PastCache => file.open.write_bytes(offset, data).await,
        }
    }

    /// Where a write goes, for which the kernel gives way by other nodes of the file.
    async fn place(
        &self,
        node: u64,
        file: &OpenFile,
        requested: u64,
        how: How,
    ) -> Result<u64, Error> {
        if how.from == From::PastCache {
            self.others_forget(node).await;
        }
        if how.appends { self.place_of_append(file, requested).await } else { Ok(requested) }
    }

    /// What the kernel keeps where it took the end to be is not there. (It holds those pages until
    /// its WRITE is answered.)
    async fn wrote_elsewhere(&self, node: u64, who: &Credential, (requested, end): (u64, u64)) {
        self.forget_pages(node, requested, 0).await;
        if self.writes_back {
            // Nor does the file end there.
            self.follow_to(who, node, end).await;
        }
    }

    /// What the kernel has in its cache of bytes that were written past it is of before.
    async fn wrote_past_cache(&self, node: u64, (offset, length): (u64, u64), has_pages: bool) {
        if has_pages && length > 0 {
            self.forget_pages(node, offset, length).await;
        }
        self.others_forget(node).await;
    }

    /// The other users that have a node open for writing: the kernel writes back by whichever open
    /// file it likes, and the bytes may be theirs.
    fn other_writers(&self, node: u64, who: &Credential) -> Vec<Credential> {
        let is_shared = self.nodes.lock().find(node).is_some_and(|node| node.writers > 1);
        if is_shared { self.opens.other_writers(node, who) } else { Vec::new() }
    }

    /// Remembers what was written of a node, to an end that the kernel knows; tells whether it may
    /// have pages of it.
    fn wrote(&self, node: u64, end: u64, from: From) -> bool {
        let mut nodes = self.nodes.lock();
        if from == From::Cache {
            self.written_back.fetch_add(1, Ordering::Relaxed);
            if let Some(node) = nodes.find_mut(node) {
                (node.wrote_pages, node.owes_time) = (true, self.writes_back);
            }
        }
        nodes.wrote(node, end)
    }

    /// close(2): whoever opens the file next, anywhere, is to find what was written.
    pub(super) async fn flush(&self, node: u64, number: u64, owner: u64, reply: Reply) {
        let Some(file) = self.opens.file(number) else {
            return reply.error(Errno::BADF);
        };
        file.open.is_left();
        if !file.can_write {
            self.unlock_at_close(node, owner, number).await;
            reply.done();
            return;
        }
        self.join_time(&file);
        let flushed = file.open.flush_at_close().await;
        self.send_time(&file).await;
        self.is_stable(file.node).await;
        self.unlock_at_close(node, owner, number).await;
        match flushed {
            Ok(()) => drop(reply.done()),
            Err(error) => answer_error(&file.open, error, reply),
        }
    }

    pub(super) async fn fsync(&self, file: u64, reply: Reply) {
        let Some(file) = self.opens.file(file) else {
            return reply.error(Errno::BADF);
        };
        self.join_time(&file);
        let flushed = file.open.flush().await;
        self.is_stable(file.node).await;
        match flushed {
            Ok(()) => drop(reply.done()),
            Err(error) => answer_error(&file.open, error, reply),
        }
    }

    pub(super) async fn release(&self, file: u64, reply: Reply) {
        self.closed(file).await;
        reply.done();
    }

    /// The time that the kernel has given a file is to be set, that of a file that is being made
    /// with the rest. Of what it has written back it has sent the time before, or has had it.
    fn join_time(&self, file: &OpenFile) {
        let mut nodes = self.nodes.lock();
        if let Some(node) = nodes.find_mut(file.node) {
            if std::mem::take(&mut node.owes_time) {
                node.mtime.get_or_insert(node.kernel_mtime);
            }
            node.mtime.take_if(|time| file.open.set_time_later(*time));
        }
    }

    /// Sets the time that the kernel has given the file. As the server has its own, and may not let
    /// this user set it, a failure is not reported.
    async fn send_time(&self, file: &OpenFile) {
        let time = {
            let mut nodes = self.nodes.lock();
            nodes.find_mut(file.node).and_then(|node| node.mtime.take())
        };
        if let Some(time) = time {
            let new = Sattr3 { mtime: SetTime::ClientTime(time), ..Sattr3::default() };
            self.files.setattr(&file.who, file.open.file(), new).await.ok();
        }
    }

    /// The kernel has this open from now on. Gives its number, and how it may be cached.
    fn opened(&self, file: OpenFile, caching: u32) -> (u64, u32) {
        let (node, writes, appends) = (file.node, file.can_write, file.appends);
        let may_be_cached = self.nodes.lock().opened(node, writes, appends);
        let number = self.opens.add_file(file);
        (number, if may_be_cached { caching } else { fopen::DIRECT_IO })
    }

    async fn closed(&self, number: u64) {
        let Some(file) = self.opens.take_file(number) else {
            return;
        };
        file.open.end_begins();
        self.locks.release_open(&file.open.file(), number);
        // What was written through a mapping after the last close(2); it goes before a hidden name
        // does.
        if file.can_write && self.files.write_behind().is_dirty(file.open.file()) {
            // Nobody hears of an error here: the next who opens the file does, or the end.
            file.open.settle().await;
        }
        self.nodes.lock().closed(file.node, file.can_write, file.appends);
        if file.can_write {
            self.forget_what_was_lost(file.node).await;
        }
        file.open.close().await;
        if file.can_write {
            self.send_time(&file).await;
        }
    }
}

/// Answers with an error that a descriptor got. Who was interrupted meanwhile does not hear of
/// it, so that the next who asks does, or the end.
fn answer_error(open: &Open, error: Error, reply: Reply) {
    if !reply.report_error(errno(error.clone())) {
        open.not_heard(error);
    }
}
