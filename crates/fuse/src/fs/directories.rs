//! Open directories: a page of the server's is cached, and the kernel takes from it what it has
//! room for.
//!
//! Where reading goes on is the server's cookie, which stays good while the directory changes.

use std::sync::Arc;

use client::files::Found;
use client::ops::{DirEntry, DirPage};
use client::session::Credential;
use rustix::io::Errno;

use super::names::NAME_LEN_MAX;
use super::{FileSystem, errno};
use crate::abi::directory::{Listed, Name};
use crate::abi::{Entry, answer};
use crate::attributes::kind;
use crate::inflight::Reply;
use crate::opens::OpenDir;

impl FileSystem {
    /// A stale handle is refused here: the kernel looks the name up again, which it does not do
    /// where it reads what it has opened.
    pub(super) async fn opendir(&self, who: Credential, node: u64, lists: bool, reply: Reply) {
        let result = async {
            let listing = self.files.listing(&who, self.file(node)?);
            listing.open(lists).await.map_err(errno)?;
            Ok(listing)
        };
        match result.await {
            Ok(listing) => {
                let dir = OpenDir { listing, page: tokio::sync::Mutex::new(None) };
                let number = self.opens.add_dir(dir);
                if !reply.body(&answer::open(number, 0)) {
                    self.opens.take_dir(number);
                }
            }
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) async fn readdir(&self, dir: u64, offset: u64, size: u32, plus: bool, reply: Reply) {
        let Some(dir) = self.opens.dir(dir) else {
            return reply.error(Errno::BADF);
        };
        let mut named = Vec::new();
        match self.list(&dir, offset, size, plus, &mut named).await {
            Ok(listed) => {
                if !reply.body(&listed.into_body()) {
                    named.iter().for_each(|entry| self.unname(entry));
                }
            }
            Err(errno) => {
                named.iter().for_each(|entry| self.unname(entry));
                reply.error(errno);
            }
        }
    }

    /// Entries behind `offset`, as many as there is room for, or as the server has at hand.
    async fn list(
        &self,
        dir: &Arc<OpenDir>,
        mut offset: u64,
        size: u32,
        plus: bool,
        named: &mut Vec<Entry>,
    ) -> Result<Listed, Errno> {
        let mut listed = Listed::new(size);
        let mut cached = dir.page.lock().await;
        // Whoever begins again (rewinddir(3)) wants what is there now.
        if offset == 0 {
            *cached = None;
        }
        loop {
            let at = cached.as_ref().and_then(|(follows, page)| position(*follows, page, offset));
            let (at, page) = match (at, cached.as_ref()) {
                (Some(at), Some((_, page))) => (at, page),
                _ => {
                    // It leads on, or it is an error: nothing here is requested without end.
                    let page = dir.listing.page(offset).await.map_err(errno)?;
                    (0, &cached.insert((offset, page)).1)
                }
            };
            for entry in &page.entries[at..] {
                // What Linux has no room for cannot be opened either.
                let len = entry.name.len();
                if len == 0 || len > NAME_LEN_MAX || entry.name.contains(&b'/') {
                    offset = entry.cookie;
                    continue;
                }
                if !listed.fits(&entry.name, plus) {
                    return Ok(listed);
                }
                self.list_one(dir, entry, plus, &mut listed, named);
                offset = entry.cookie;
            }
            if page.eof || !listed.is_empty() {
                return Ok(listed);
            }
        }
    }

    fn list_one(
        &self,
        dir: &OpenDir,
        entry: &DirEntry,
        plus: bool,
        listed: &mut Listed,
        named: &mut Vec<Entry>,
    ) {
        let fileid = entry.attributes.map_or(entry.fileid, |attributes| attributes.fileid);
        let attributes = entry.attributes.or_else(|| self.files.last(&dir.listing.dir()));
        let ino = attributes.map_or(fileid, |attributes| self.number(fileid, attributes.fsid));
        let kind = entry.attributes.map_or(0, |attributes| kind(attributes.ftype));
        let name = Name { name: &entry.name, ino, kind, offset: entry.cookie };
        if !plus {
            listed.add(&name, None);
            return;
        }
        let known = self.known(entry).map(|found| self.entry(&dir.listing.dir(), &found));
        listed.add(&name, Some(&known.unwrap_or_default()));
        named.extend(known);
    }

    /// What READDIRPLUS may say of an entry: nothing where a name stands for the directory itself
    /// or its parent, or where it would come between the kernel and data that it has not written
    /// back.
    fn known(&self, entry: &DirEntry) -> Option<Found> {
        if entry.name == b"." || entry.name == b".." {
            return None;
        }
        let found = self.files.listed(entry)?;
        let nodes = self.nodes.lock();
        let is_open = nodes.outdated(&self.named(&found)).any(|(_, node)| node.opens > 0);
        (!is_open).then_some(found)
    }
}

/// Where in a page reading goes on.
fn position(follows: u64, page: &DirPage, offset: u64) -> Option<usize> {
    if follows == offset {
        return Some(0);
    }
    let last = page.entries.iter().position(|entry| entry.cookie == offset)?;
    (last + 1 < page.entries.len() || page.eof).then_some(last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cookies: &[u64], eof: bool) -> DirPage {
        let entry = |&cookie: &u64| DirEntry {
            fileid: cookie,
            name: vec![b'a'],
            cookie,
            attributes: None,
            handle: None,
        };
        let entries = cookies.iter().map(entry).collect();
        DirPage { entries, cookieverf: [0; 8], eof, dir_attributes: None }
    }

    #[test]
    fn reading_goes_on_behind_a_cookie() {
        let middle = page(&[11, 12, 13], false);
        assert_eq!(position(10, &middle, 10), Some(0));
        assert_eq!(position(10, &middle, 12), Some(2));
        assert_eq!(position(10, &middle, 13), None);
        assert_eq!(position(10, &middle, 9), None);
        assert_eq!(position(10, &page(&[11], true), 11), Some(1));
    }
}
