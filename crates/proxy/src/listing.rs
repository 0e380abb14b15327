//! READDIR and READDIRPLUS: a page of the origin's is one of ours. Its cookies and its verifier are
//! passed on as they are, so that a listing goes on after a restart of the proxy.

use client::error::Error;
use client::ops::{DirEntry, DirPage};
use client::session::Session;
use server::store::{Entry, ListFrom, Listed, Looked, Node, Sink};
use server::types::{Caller, Handle};
use wire::nfs3::FileHandle;

use crate::neutral;
use crate::remote::Remote;

/// Fewest bytes that are requested of the origin: it must have room for one entry of ours.
const BYTES_MIN: u32 = 1024;

impl Remote {
    pub(crate) async fn list_page(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        let dir = match self.origin_handle(dir) {
            Ok(dir) => dir,
            Err(status) => return Looked::failed(status),
        };
        let page = match self.page(&self.acting(caller), dir, from).await {
            Ok(page) => page,
            Err(error) => return self.looked_in_vain(&error),
        };
        if page.entries.iter().any(|entry| entry.handle.zip(entry.attributes).is_some()) {
            self.note_search(&dir, caller, page.dir_attributes.as_ref());
        }
        let mut is_taken = true;
        for entry in &page.entries {
            if !is_name(&entry.name) {
                continue;
            }
            let (fileid, node) = match (&entry.name[..], dir == self.root) {
                // What is above is looked up, if it is inside.
                (b"..", true) => (self.root_identity.1, None),
                (b"..", false) => (entry.fileid, None),
                _ => (entry.fileid, self.known(&dir, entry)),
            };
            is_taken = sink(Entry { fileid, name: &entry.name, cookie: entry.cookie, node });
            if !is_taken {
                break;
            }
        }
        let listed = Listed { verifier: page.cookieverf, eof: page.eof && is_taken };
        Looked { attr: neutral::post_op(page.dir_attributes), result: Ok(listed) }
    }

    /// A page with attributes and handles, if they are wanted and the origin has such pages.
    async fn page(
        &self,
        session: &Session,
        dir: FileHandle,
        from: ListFrom,
    ) -> Result<DirPage, Error> {
        let ListFrom { cookie, verifier, with_nodes, bytes } = from;
        let bytes = bytes.max(BYTES_MIN).min(session.sizes().read_bytes_max);
        if with_nodes {
            match session.readdirplus(dir, cookie, verifier, bytes, bytes).await {
                Err(error) if error.is_unsupported() => {}
                page => return page,
            }
        }
        session.readdir(dir, cookie, verifier, bytes).await
    }

    /// What the entry tells of its file.
    fn known(&self, dir: &FileHandle, entry: &DirEntry) -> Option<Node> {
        let (origin, attributes) = entry.handle.zip(entry.attributes)?;
        self.learn(&origin, &attributes, None);
        if let Some(disk) = &self.disk {
            disk.known.note_name(dir, &entry.name, &origin);
        }
        Some(Node { handle: self.handles.seal(&origin), attr: neutral::attr(&attributes) })
    }
}

/// Whether it can be the name of an entry; others are left out.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.contains(&b'/') && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_none() {
        for name in [&b"a"[..], b".", b"..", b"...", b"\xff\n"] {
            assert!(is_name(name));
        }
        for name in [&b""[..], b"/", b"../etc", b"a/b", b"a\0"] {
            assert!(!is_name(name));
        }
    }
}
