//! Listings: READDIR and READDIRPLUS, by getdents64 and the file system's own cookies.
//!
//! A cookie is the kernel's d_off: on ext4 a hash of the name, on xfs and btrfs a position that
//! keeps its meaning, on tmpfs (from Linux 6.6) a number that is not used again. Elsewhere, as on
//! an older tmpfs, it is made from the name ([`super::sorted`]). So entries that exist throughout a
//! listing appear exactly once, whatever is made or removed meanwhile. Because they keep their
//! meaning, there is no cookie verifier: it is always zero.
//!
//! A directory that has not changed for a moment is read as a whole and cached
//! ([`super::listing`]): then an entry costs nothing, and with its node a statx. Others are opened
//! anew for each reply, since the position belongs to the open file: openat, lseek and close beside
//! one getdents64 per 8 KiB of names. A node that was not met before costs a handle and statx;
//! where handles are not the kernel's, or do not tell the inode, openat2, statx, a handle and
//! close.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Access as May, OFlags, RawDir, RawDirEntry, SeekFrom};
use rustix::io::Errno;

use super::beneath::Component;
use super::errno::status;
use super::listing::{self, Line, Listing, State};
use super::objects::Object;
use super::rights::is_settled;
use super::sorted::{Named, Sorted};
use super::stat::{Identity, Stat};
use super::tree::Tree;
use super::up::Above;
use crate::store::{Entry, ListFrom, Listed, Node, Sink};
use crate::types::{Caller, FileKind, Status};

/// Some 250 names: more than most replies hold, so that few are read in vain.
const NAMES_BYTES: usize = 8 << 10;

/// For a whole directory.
const WHOLE_NAMES_BYTES: usize = 64 << 10;

/// What FUSE gives for the number of a file that its program does not have in a listing (libfuse:
/// `FUSE_UNKNOWN_INO`).
const UNKNOWN_INODE: u64 = 0xffff_ffff;

const DONE: Listed = Listed { verifier: [0; 8], eof: true };
const MORE: Listed = Listed { verifier: [0; 8], eof: false };

impl Tree {
    pub(super) fn list(
        &self,
        caller: &Caller,
        dir: &Object,
        stat: &Stat,
        from: &ListFrom,
        sink: Sink<'_>,
    ) -> Result<Listed, Status> {
        if dir.kind != FileKind::Directory {
            return Err(Status::NotDirectory);
        }
        self.acting.act_as(caller)?;
        let cached = self.listing(caller, dir, stat, from.cookie)?;
        match cached.as_ref().and_then(|cached| cached.after(from.cookie)) {
            Some(lines) => Ok(self.list_lines(dir, lines, from.with_nodes, sink)),
            None if self.file_system.has_lasting_cookies() => self.list_read(dir, from, sink),
            None => self.list_sorted(dir, from, sink),
        }
    }

    /// The directory's listing, if it is cached or can be.
    fn listing(
        &self,
        caller: &Caller,
        dir: &Object,
        stat: &Stat,
        cookie: u64,
    ) -> Result<Option<Arc<Listing>>, Status> {
        let state = State::of(stat);
        if let Some(cached) = self.listings.find(&dir.handle, state) {
            let may = self.may(caller, dir, stat, May::READ_OK)?;
            return if may {
                Ok(Some(cached).filter(|cached| !cached.is_too_long()))
            } else {
                Err(Status::Access)
            };
        }
        let file_system = &self.file_system;
        // Where cookies last, a listing that goes on was not worth it when it began.
        let begins = cookie == 0 || !file_system.has_lasting_cookies();
        if !begins || !file_system.is_local() || !is_settled(state.latest()) {
            return Ok(None);
        }
        let fd = self.open_at(dir, 0)?;
        let Ok(listing) = self.read_whole(dir, fd, state) else { return Ok(None) };
        // Read while it was changed, it is neither the old nor the new one.
        let same = dir.stat().is_ok_and(|stat| State::of(&stat) == state);
        let cached = same.then(|| self.listings.keep(dir.handle, listing));
        Ok(cached.filter(|cached| !cached.is_too_long()))
    }

    /// Its entries in the order of their cookies, or as they come.
    pub(super) fn read_whole(
        &self,
        dir: &Object,
        fd: OwnedFd,
        state: State,
    ) -> Result<Listing, Errno> {
        let lasting = self.file_system.has_lasting_cookies();
        let mut listing = if lasting { Listing::new(state) } else { Listing::by_name(state) };
        // One more than are cached shows that there are too many.
        let mut sorted = Sorted::at_most(listing::ENTRIES_MAX + 1, 0);
        let mut names = Vec::with_capacity(WHOLE_NAMES_BYTES);
        let mut entries = RawDir::new(fd, names.spare_capacity_mut());
        while let Some(entry) = entries.next().filter(|_| !listing.is_too_long()) {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let inode = self.fileid(dir, name, entry.ino(), None);
            match lasting {
                true => listing.push(inode, entry.next_entry_cookie(), name),
                false => sorted.push(name, inode),
            }
        }
        for Named { cookie, name, inode } in sorted.finish().0 {
            listing.push(inode, cookie, &name);
        }
        Ok(listing)
    }

    fn list_lines<'l>(
        &self,
        dir: &Object,
        lines: impl Iterator<Item = (&'l Line, &'l [u8], u64)>,
        with_nodes: bool,
        sink: Sink<'_>,
    ) -> Listed {
        for (line, name, cookie) in lines {
            let node = with_nodes.then(|| self.line_node(dir, line, name)).flatten();
            if !sink(Entry { fileid: line.inode, name, cookie, node }) {
                return MORE;
            }
        }
        DONE
    }

    /// One look at the file, if it was met before.
    fn line_node(&self, dir: &Object, line: &Line, name: &[u8]) -> Option<Node> {
        if let Some((identity, handle)) = line.met.get().map(AsRef::as_ref) {
            let name = Component::new(name).ok()?;
            let stat = Stat::named(dir.path(), name).ok()?;
            if stat.identity() == *identity && stat.is_no_mount_root() {
                let handle = self.handles.name_again(&dir.handle, name, *handle).ok()?;
                return Some(Node { handle, attr: stat.attr() });
            }
        }
        let (node, identity) = self.entry_node(dir, name)?;
        if let Some(identity) = identity {
            let _ = line.met.set(Box::new((identity, node.handle)));
        }
        Some(node)
    }

    /// Reads the directory from the cookie on.
    fn list_read(&self, dir: &Object, from: &ListFrom, sink: Sink<'_>) -> Result<Listed, Status> {
        let fd = self.open_at(dir, from.cookie)?;
        let mut names = [MaybeUninit::uninit(); NAMES_BYTES];
        let mut entries = RawDir::new(fd, &mut names);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // A directory that was removed while open.
                Err(Errno::NOENT) => break,
                Err(Errno::INVAL) => return Err(Status::BadCookie),
                Err(errno) => return Err(status(errno)),
            };
            if !sink(self.entry(dir, &entry, from.with_nodes)) {
                return Ok(MORE);
            }
        }
        Ok(DONE)
    }

    /// The same for file systems whose cookies do not last.
    fn list_sorted(&self, dir: &Object, from: &ListFrom, sink: Sink<'_>) -> Result<Listed, Status> {
        if i64::try_from(from.cookie).is_err() {
            return Err(Status::BadCookie);
        }
        let fd = self.open_at(dir, 0)?;
        let mut names = [MaybeUninit::uninit(); NAMES_BYTES];
        let mut entries = RawDir::new(fd, &mut names);
        let mut sorted = Sorted::behind(from.cookie);
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => sorted.push(entry.file_name().to_bytes(), entry.ino()),
                Err(Errno::NOENT) => break,
                Err(errno) => return Err(status(errno)),
            }
        }
        let (entries, is_end) = sorted.finish();
        for Named { cookie, name, inode } in entries {
            let node = from.with_nodes.then(|| self.entry_node(dir, &name)).flatten();
            let node = node.map(|(node, _)| node);
            let fileid = self.fileid(dir, &name, inode, node.as_ref());
            if !sink(Entry { fileid, name: &name, cookie, node }) {
                return Ok(MORE);
            }
        }
        Ok(if is_end { DONE } else { MORE })
    }

    /// A descriptor of its own, whose position nobody shares, standing at the cookie.
    pub(super) fn open_at(&self, dir: &Object, cookie: u64) -> Result<OwnedFd, Status> {
        if i64::try_from(cookie).is_err() {
            return Err(Status::BadCookie);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd =
            self.with_room(|| self.proc.reopen_as_caller(dir.path(), flags).map_err(status))?;
        if cookie != 0 {
            rustix::fs::seek(&fd, SeekFrom::Start(cookie)).map_err(|_| Status::BadCookie)?;
        }
        Ok(fd)
    }

    fn entry<'a>(&self, dir: &Object, raw: &'a RawDirEntry<'a>, with_node: bool) -> Entry<'a> {
        let name = raw.file_name().to_bytes();
        let node = with_node.then(|| self.entry_node(dir, name)).flatten().map(|(node, _)| node);
        let fileid = self.fileid(dir, name, raw.ino(), node.as_ref());
        Entry { fileid, name, cookie: raw.next_entry_cookie(), node }
    }

    /// The number of a file whose directory does not have it.
    fn looked_up(&self, dir: &Object, name: &[u8]) -> Option<u64> {
        let stat = match name {
            b"." => dir.stat().ok()?,
            b".." => match self.above(dir).ok()? {
                Above::Found(above) => above.stat,
                Above::Deep(..) => return None,
            },
            _ => Stat::named(dir.path(), Component::new(name).ok()?).ok()?,
        };
        Some(stat.attr().fileid)
    }

    /// The number of a file by the entry of it, which has none on some file systems. Above the root
    /// is the root.
    fn fileid(&self, dir: &Object, name: &[u8], inode: u64, node: Option<&Node>) -> u64 {
        match node {
            _ if name == b".." && dir.handle == self.root.handle => self.root_identity.inode,
            Some(node) => node.attr.fileid,
            None if inode == UNKNOWN_INODE => self.looked_up(dir, name).unwrap_or(inode),
            None => inode,
        }
    }

    /// `None` for what vanished since, for mount points, and for `..` of a deep directory. With its
    /// identity if it is a file under that name, not a way up.
    fn entry_node(&self, dir: &Object, name: &[u8]) -> Option<(Node, Option<Identity>)> {
        match name {
            b"." => {
                let node = Node { handle: dir.handle, attr: dir.stat().ok()?.attr() };
                Some((node, None))
            }
            b".." => match self.above(dir).ok()? {
                Above::Found(above) => Some((Node::from(&above), None)),
                Above::Deep(..) => None,
            },
            _ => {
                let name = Component::new(name).ok()?;
                if let Some((node, identity)) = self.seen_as(dir, name).ok()? {
                    return Some((node, Some(identity)));
                }
                if let Some((node, identity)) = self.met_as(dir, name).ok()? {
                    return Some((node, Some(identity)));
                }
                let child = self.child(dir, name).ok()?;
                Some((Node::from(&child), Some(child.stat.identity())))
            }
        }
    }
}
