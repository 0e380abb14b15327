//! What finds, makes, moves and removes names.

use std::time::Duration;

use client::cache::attributes::Version;
use client::cache::names::Target;
use client::error::Error;
use client::files::Found;
use client::session::Credential;
use perf::units::Instant;
use rustix::io::Errno;
use wire::nfs3::{FType, Fattr3, FileHandle, access};

use super::{FileSystem, duration, errno};
use crate::abi::{Entry, answer};
use crate::again::Why;
use crate::attributes::{made, special};
use crate::inflight::Reply;
use crate::notify::Notice;
use crate::question;

/// Longest name, as everywhere in Linux.
pub(crate) const NAME_LEN_MAX: usize = 255;

impl FileSystem {
    /// `again`: what was known here of the name has not led to its file, which the thread opens.
    pub(super) async fn lookup(
        &self,
        who: Credential,
        (dir, name): (u64, Vec<u8>),
        (again, thread): (Option<Why>, u32),
        mut reply: Reply,
    ) {
        let disk = self.files.disk();
        let folder = || Some(disk?.folder()?.to_string());
        if let Some(answer) = question::answer(&name, disk.is_some(), folder) {
            return reply.error(answer);
        }
        if let Some(name) = question::about(&name) {
            return reply.error(self.is_on_disk(&who, (dir, name)).await);
        }
        let begun = self.looked_up.begins(thread);
        let result = async {
            let dir = self.named_in(dir, &name)?;
            let found = match again {
                None => self.files.lookup(&who, dir, &name).await,
                Some(why) => self.look_up_again(&who, (dir, &name), (why, thread)).await,
            };
            match found.map_err(errno) {
                Ok(found) => Ok((dir, Some(self.settled(&who, found).await?))),
                Err(Errno::NOENT) => Ok((dir, None)),
                Err(errno) => Err(errno),
            }
        };
        match result.await {
            Ok((dir, Some(found))) => {
                let mut entry = self.entry(&dir, &found);
                if again.is_none() && self.may_open(&who, &found, (thread, begun)) {
                    entry.entry_valid = Duration::ZERO;
                }
                self.answer_with(&entry, reply);
            }
            Ok((dir, None)) => {
                reply.leads_nowhere();
                // A node 0 is the absence of one, which may be remembered as well.
                let entry_valid = duration(self.files.missing_for(&dir, &name));
                let nothing = Entry { entry_valid, ..Entry::default() };
                match nothing.entry_valid.is_zero() {
                    true => reply.error(Errno::NOENT),
                    false => {
                        reply.body(&answer::entry(&nothing));
                    }
                }
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// What a thread that comes again finds, it is to find when it opens it, too.
    async fn look_up_again(
        &self,
        who: &Credential,
        name: (FileHandle, &[u8]),
        (why, thread): (Why, u32),
    ) -> Result<Found, Error> {
        let refused = match why {
            Why::Stale => None,
            Why::Refused(file) => Some(file),
        };
        let (found, opening) = self.files.lookup_again(who, name, refused).await?;
        if let Some(opening) = opening {
            self.again.found(thread, opening);
        }
        Ok(found)
    }

    /// Whether all of a file is on the local disk, as an answer.
    async fn is_on_disk(&self, who: &Credential, (dir, name): (u64, &[u8])) -> Errno {
        let found = match self.named_in(dir, name) {
            Ok(dir) => self.files.lookup(who, dir, name).await.map_err(errno),
            Err(errno) => Err(errno),
        };
        match found {
            Ok(found) => question::verdict(self.files.is_on_disk(&found.handle).await),
            // What tells that it does not know.
            Err(_) => Errno::NAMETOOLONG,
        }
    }

    pub(super) async fn mkdir(
        &self,
        who: Credential,
        dir: u64,
        name: Vec<u8>,
        mode: u32,
        reply: Reply,
    ) {
        let result = async {
            let dir = self.named_in(dir, &name)?;
            let found = self.files.mkdir(&who, dir, &name, made(mode)).await.map_err(errno)?;
            Ok((dir, found))
        }
        .await;
        self.made((dir, name), result, reply).await;
    }

    pub(super) async fn symlink(
        &self,
        who: Credential,
        dir: u64,
        name: Vec<u8>,
        target: Vec<u8>,
        reply: Reply,
    ) {
        let result = async {
            let dir = self.named_in(dir, &name)?;
            let attributes = made(0o777);
            let made = self.files.symlink(&who, dir, &name, attributes, &target);
            Ok((dir, made.await.map_err(errno)?))
        }
        .await;
        self.made((dir, name), result, reply).await;
    }

    pub(super) async fn mknod(
        &self,
        who: Credential,
        dir: u64,
        name: Vec<u8>,
        mode: u32,
        rdev: u32,
        reply: Reply,
    ) {
        let result = async {
            let dir = self.named_in(dir, &name)?;
            let found = match special(mode, rdev) {
                Some(what) => self.files.mknod(&who, dir, &name, what).await,
                None => self.files.create(&who, dir, &name, made(mode), true).await,
            };
            Ok((dir, found.map_err(errno)?))
        }
        .await;
        self.made((dir, name), result, reply).await;
    }

    pub(super) async fn link(
        &self,
        who: Credential,
        node: u64,
        dir: u64,
        name: Vec<u8>,
        reply: Reply,
    ) {
        let result = async {
            let (file, dir) = (self.file(node)?, self.named_in(dir, &name)?);
            // In this order: attributes of a newer version are of no node of the older one.
            let had = (self.files.last(&file), self.files.version(&file));
            let found = self.files.link(&who, file, dir, &name).await.map_err(errno)?;
            self.linked(had, &found);
            Ok((dir, self.settled(&who, found).await?))
        }
        .await;
        self.made((dir, name), result, reply).await;
    }

    pub(super) async fn unlink(&self, who: Credential, dir: u64, name: Vec<u8>, reply: Reply) {
        let result = async {
            let dir = self.named_in(dir, &name)?;
            let gone = self.files.find(&dir, &name);
            self.files.remove(&who, dir, &name).await.map_err(errno)?;
            self.name_changed(gone);
            Ok(())
        }
        .await;
        self.changed([(dir, name)], result, reply).await;
    }

    pub(super) async fn rmdir(&self, who: Credential, dir: u64, name: Vec<u8>, reply: Reply) {
        let result = async {
            let dir = self.named_in(dir, &name)?;
            self.files.rmdir(&who, dir, &name).await.map_err(errno)
        }
        .await;
        self.changed([(dir, name)], result, reply).await;
    }

    pub(super) async fn rename(
        &self,
        who: Credential,
        from: (u64, Vec<u8>),
        to: (u64, Vec<u8>),
        reply: Reply,
    ) {
        let result = async {
            let old = (self.named_in(from.0, &from.1)?, from.1.as_slice());
            let new = (self.named_in(to.0, &to.1)?, to.1.as_slice());
            let targets = [old, new].map(|(dir, name)| self.files.find(&dir, name));
            self.files.rename(&who, old, new).await.map_err(errno)?;
            targets.into_iter().for_each(|target| self.name_changed(target));
            Ok(())
        }
        .await;
        self.changed([from, to], result, reply).await;
    }

    pub(super) async fn readlink(&self, who: Credential, node: u64, reply: Reply) {
        let result = async {
            let link = self.file(node)?;
            self.files.readlink(&who, link).await.map_err(errno)
        };
        match result.await {
            // The kernel takes a page.
            Ok(target) if target.len() >= 4096 => reply.error(Errno::NAMETOOLONG),
            Ok(target) => {
                reply.data(&target);
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// The directory, where the name is one that it may have.
    pub(super) fn named_in(&self, dir: u64, name: &[u8]) -> Result<FileHandle, Errno> {
        if name.len() > NAME_LEN_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        self.file(dir)
    }

    /// A name that led there, as far as is known, was changed.
    fn name_changed(&self, target: Option<Target>) {
        let file = match target {
            Some(Target::Nothing) => return,
            Some(Target::File(file)) => Some(file),
            None => None,
        };
        self.nodes.lock().name_changed(file);
    }

    /// Another name was made of a file of which this was known before. A change of others has
    /// another time or size.
    fn linked(&self, (had, version): (Option<Fattr3>, Option<Version>), found: &Found) {
        let data = |of: Fattr3| (of.mtime, of.size);
        let mut nodes = self.nodes.lock();
        if had.map(data) == Some(data(found.attributes)) {
            nodes.linked(&found.handle, version, found.version);
        }
        nodes.name_changed(Some(found.handle));
    }

    async fn made(
        &self,
        name: (u64, Vec<u8>),
        result: Result<(FileHandle, Found), Errno>,
        reply: Reply,
    ) {
        let (dir, found) = match result {
            Ok(made) => made,
            Err(errno) => return self.not_changed([name], errno, reply).await,
        };
        if !self.answer_entry(&dir, &found, reply) {
            self.forget_names([name]).await;
        }
    }

    async fn changed<const N: usize>(
        &self,
        names: [(u64, Vec<u8>); N],
        result: Result<(), Errno>,
        reply: Reply,
    ) {
        if let Err(errno) = result {
            return self.not_changed(names, errno, reply).await;
        }
        if !reply.done() {
            self.forget_names(names).await;
        }
    }

    /// Answers that names were not changed, or that it is not known: where the server has given no
    /// answer, or nobody waits for it any more, the kernel is to ask for them anew. It would go on
    /// denying a name that it has looked for before, for as long as the directory is good.
    pub(super) async fn not_changed<const N: usize>(
        &self,
        names: [(u64, Vec<u8>); N],
        errno: Errno,
        reply: Reply,
    ) {
        let is_heard = reply.report_error(errno);
        if !is_heard || errno == Errno::IO {
            self.forget_names(names).await;
        }
    }

    /// Waits for whoever changes names of a directory; so not before that is answered.
    pub(super) async fn forget_names<const N: usize>(&self, names: [(u64, Vec<u8>); N]) {
        for (dir, name) in names {
            self.notifier.notify(Notice::ForgetName { dir, name }).await;
        }
    }

    /// False when nobody has heard it.
    fn answer_entry(&self, dir: &FileHandle, found: &Found, reply: Reply) -> bool {
        self.answer_with(&self.entry(dir, found), reply)
    }

    fn answer_with(&self, entry: &Entry, reply: Reply) -> bool {
        let is_heard = reply.body(&answer::entry(entry));
        if !is_heard {
            self.unname(entry);
        }
        is_heard
    }

    /// Whether an open that began with this look-up needs no call more.
    fn may_open(&self, who: &Credential, found: &Found, (thread, begun): (u32, Instant)) -> bool {
        let is_file = thread != 0 && found.attributes.ftype == FType::Reg;
        let may_open =
            is_file && self.files.was_requested_since(who, &found.handle, (access::READ, begun));
        if may_open {
            self.looked_up.answers(thread, found.handle, begun);
        }
        may_open
    }
}

/// Answers what has no result but success.
pub(super) fn done(result: Result<(), Errno>, reply: Reply) {
    match result {
        Ok(()) => {
            reply.done();
        }
        Err(errno) => reply.error(errno),
    }
}
