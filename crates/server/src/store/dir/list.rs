//! Listings: READDIR and READDIRPLUS, by getdents64 and the file system's own cookies.
//!
//! A cookie is the kernel's d_off: on ext4 a hash of the name, on xfs and btrfs a position that
//! keeps its meaning, on tmpfs (from Linux 6.6) a number that is not used again. So entries that
//! exist throughout a listing appear exactly once, whatever is made or removed meanwhile. Because
//! they keep their meaning, there is no cookie verifier: it is always zero.
//!
//! Each call opens the directory anew, since the position belongs to the open file: openat, lseek
//! and close beside one getdents64 per 8 KiB of names. With nodes, each entry costs statx
//! if it is open already, else openat2, statx, a handle and close more.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, RawDir, RawDirEntry, SeekFrom};
use rustix::io::Errno;

use super::beneath::Component;
use super::errno::status;
use super::objects::Object;
use super::tree::Tree;
use crate::store::{Entry, ListFrom, Listed, Node, Sink};
use crate::types::{Caller, FileKind, Status};

/// Some 250 names: more than most replies hold, so that few are read in vain.
const NAMES_BYTES: usize = 8 << 10;

impl Tree {
    pub(super) fn list(
        &self,
        caller: &Caller,
        dir: &Object,
        from: &ListFrom,
        sink: Sink<'_>,
    ) -> Result<Listed, Status> {
        if dir.kind != FileKind::Directory {
            return Err(Status::NotDirectory);
        }
        self.acting.act_as(caller)?;
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
                return Ok(Listed { verifier: [0; 8], eof: false });
            }
        }
        Ok(Listed { verifier: [0; 8], eof: true })
    }

    /// A descriptor of its own, whose position nobody shares, standing at the cookie.
    fn open_at(&self, dir: &Object, cookie: u64) -> Result<OwnedFd, Status> {
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
        let above_root = name == b".." && dir.handle == self.root.handle;
        Entry {
            fileid: if above_root { self.root_identity.inode } else { raw.ino() },
            name,
            cookie: raw.next_entry_cookie(),
            node: with_node.then(|| self.entry_node(dir, name)).flatten(),
        }
    }

    /// `None` for what vanished since, and for mount points.
    fn entry_node(&self, dir: &Object, name: &[u8]) -> Option<Node> {
        let child = match name {
            b"." => {
                return Some(Node { handle: dir.handle, attr: dir.stat().ok()?.attr() });
            }
            b".." => self.parent(dir).ok()?,
            _ => {
                let name = Component::new(name).ok()?;
                if let Some(node) = self.met(dir, name).ok()? {
                    return Some(node);
                }
                self.child(dir, name).ok()?
            }
        };
        Some(Node::from(&child))
    }
}
