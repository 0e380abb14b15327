//! READDIR and READDIRPLUS: a page of the origin's is one of ours. Its cookies and its verifier are
//! passed on as they are, so that a listing goes on after a restart of the proxy.

use client::error::Error;
use client::ops::{DirEntry, DirPage};
use client::session::Session;
use server::store::{Entry, ListFrom, Listed, Looked, Node, Sink};
use server::types::{Caller, Handle};
use wire::nfs3::FileHandle;

use crate::known::PageKey;
use crate::named::Leads;
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
        let session = self.acting(caller);
        let key = (dir, caller.clone(), from.cookie, from.verifier, from.with_nodes);
        let call = self.page(&session, dir, from);
        let (page, was_cached) = match self.or_cached(call, |known| known.last_page(&key)).await {
            Ok(page) => page,
            Err(error) => return self.looked_in_vain(&error),
        };
        if !was_cached {
            self.learn_page(key, &page);
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
                _ => (entry.fileid, self.known(entry)),
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

    /// The origin has returned this page, and with it perhaps what has which name.
    fn learn_page(&self, key: PageKey, page: &DirPage) {
        let (dir, caller, ..) = &key;
        let is_below = |entry: &&DirEntry| is_name(&entry.name) && entry.name != b"..";
        let named = page.entries.iter().filter(is_below);
        let mut has_nodes = false;
        for (entry, origin, attributes) in
            named.filter_map(|entry| Some((entry, entry.handle?, entry.attributes?)))
        {
            has_nodes = true;
            self.learn(&origin, &attributes, None);
            self.names.note(dir, &entry.name, Leads::to(origin, Some(&attributes)));
            if let Some(disk) = &self.disk {
                disk.known.note_name(dir, &entry.name, &origin);
            }
        }
        if has_nodes {
            self.note_search(dir, caller, page.dir_attributes.as_ref());
        }
        if let Some(known) = self.known_offline() {
            known.note_page(key, page);
        }
    }

    /// What the entry tells of its file.
    fn known(&self, entry: &DirEntry) -> Option<Node> {
        let (origin, attributes) = entry.handle.zip(entry.attributes)?;
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
