//! Everything that a caller's directory has after a restart, compared with what was promised.

use std::collections::BTreeMap;

use client::error::Error as ClientError;
use client::session::Session;
use wire::nfs3::{Fattr3, FileHandle, NfsStat3};

use super::content::{Content, Verifier};
use super::loss::{Kind, Lost};
use super::object::{Body, Object};
use super::operation::{Key, Number};
use super::round::Round;
use super::tree::{ROOT, Tree};
use super::worker::Worker;
use crate::scratch::is_dot;

/// Bytes of a READDIR.
const LIST_BYTES: u32 = 32 << 10;

type Outcome<T> = Result<T, ClientError>;

/// An object as it was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    path: String,
    handle: FileHandle,
    pub(super) attributes: Fattr3,
}

struct Look<'a> {
    session: &'a Session,
    part: Round,
    lost: Vec<Lost>,
}

impl Worker {
    /// What was counted, and what was lost. After a loss the directory is left as it is.
    pub(super) async fn look(
        &mut self,
        session: &Session,
        parent: FileHandle,
    ) -> Outcome<(Round, Vec<Lost>)> {
        let name = self.name();
        let part = self.take_tally();
        let Some(mut tree) = self.tree.take() else { return Ok((part, Vec::new())) };
        tree.settle();
        let mut look = Look { session, part, lost: Vec::new() };
        match look.unless_refused(&name, found(session, parent, &name).await)? {
            Some(Some(top)) => look.tree(&mut tree, top).await?,
            unseen => {
                if unseen.is_some() {
                    look.lose(Kind::Names, format!("{name} is gone, with all that is in it"));
                }
                look.nameless(&tree, &name, &BTreeMap::new()).await?;
            }
        }
        if look.lost.is_empty() && look.part.lost.is_empty() {
            self.tree = Some(tree);
        }
        Ok((look.part, look.lost))
    }

    /// The same where all names are gone.
    pub(super) async fn look_without_names(
        &mut self,
        session: &Session,
    ) -> Outcome<(Round, Vec<Lost>)> {
        let part = self.take_tally();
        let Some(mut tree) = self.tree.take() else { return Ok((part, Vec::new())) };
        tree.settle();
        let mut look = Look { session, part, lost: Vec::new() };
        look.nameless(&tree, &self.name(), &BTreeMap::new()).await?;
        Ok((look.part, look.lost))
    }

    /// What another server that serves the same does not have, or has otherwise; while things are
    /// on their way to it, also what is missing in the midst of a comparison. Without a `parent` it
    /// has nothing.
    pub(super) async fn look_behind(
        &self,
        session: &Session,
        parent: Option<FileHandle>,
    ) -> Outcome<Vec<Lost>> {
        let Some(tree) = &self.tree else { return Ok(Vec::new()) };
        let (mut tree, name) = (tree.elsewhere(), self.name());
        let mut look = Look { session, part: Round::default(), lost: Vec::new() };
        let top = match parent {
            Some(parent) => found(session, parent, &name).await?,
            None => None,
        };
        let looked = match top {
            Some(top) => look.tree(&mut tree, top).await,
            None => {
                look.lose(Kind::Names, format!("{name} is not there"));
                look.nameless(&tree, &name, &BTreeMap::new()).await
            }
        };
        match looked {
            // It was removed or replaced meanwhile.
            Err(error) if error.status().is_some() => {
                look.lose(Kind::Names, error.to_string());
                Ok(look.lost)
            }
            looked => looked.map(|()| look.lost),
        }
    }
}

impl Look<'_> {
    fn lose(&mut self, kind: Kind, what: String) {
        self.lost.push(Lost { kind, what, bytes: 0 });
    }

    /// An answer about names; none, and a loss, where it is refused.
    fn unless_refused<T>(&mut self, path: &str, answered: Outcome<T>) -> Outcome<Option<T>> {
        refused(answered).map(|answered| {
            let lose = |refusal| self.lose(Kind::Names, format!("{path}: {refusal}"));
            answered.map_err(lose).ok()
        })
    }

    async fn tree(&mut self, tree: &mut Tree, top: Found) -> Outcome<()> {
        let mut listings = BTreeMap::new();
        let mut objects = BTreeMap::from([(ROOT, top)]);
        let mut dirs = vec![ROOT];
        loop {
            let Some(dir) = dirs.pop() else {
                let (lost, present) = tree.compare_open(&listings);
                if !self.open(tree, present, &listings, &mut objects, &mut dirs).await? {
                    self.lost.extend(lost);
                    break;
                }
                continue;
            };
            let Some(Found { handle, path, .. }) = objects.get(&dir).cloned() else { continue };
            let listed = self.list(handle, &path).await;
            let Some(entries) = self.unless_refused(&path, listed)? else { continue };
            let listing: BTreeMap<String, Fattr3> =
                entries.iter().map(|(name, found)| (name.clone(), found.attributes)).collect();
            self.renumber(tree, dir, &entries).await?;
            let (lost, present) = tree.compare(dir, &listing);
            self.lost.extend(lost.into_iter().map(|lost| lost.of(&path)));
            listings.insert(dir, listing);
            for (key, number) in present {
                if let Some(found) = entries.get(&key.text()) {
                    objects.entry(number).or_insert_with(|| found.clone());
                    if matches!(tree.object(number).map(|object| &object.body), Some(Body::Dir)) {
                        dirs.push(number);
                    }
                }
            }
        }
        self.nameless(tree, &objects[&ROOT].path.clone(), &objects).await?;
        for (number, found) in objects {
            self.object(tree, number, &found).await?;
        }
        Ok(())
    }

    /// What has another fileid than before and is the same all the same: that is lost of it, and
    /// nothing else. Its names lead to it from here on.
    async fn renumber(
        &mut self,
        tree: &mut Tree,
        dir: Number,
        entries: &BTreeMap<String, Found>,
    ) -> Outcome<()> {
        for (key, number) in tree.leads_to(dir) {
            let (Some(object), Some(found)) = (tree.object(number), entries.get(&key.text()))
            else {
                continue;
            };
            if !object.is_renumbered(&found.attributes)
                || !self.is_same(tree, (object, key), found).await?
            {
                continue;
            }
            let (path, fileid) = (&found.path, found.attributes.fileid);
            let promised = object.fileid.unwrap_or_default();
            let what = format!("{path}: fileid {fileid}, promised {promised}");
            self.lose(Kind::Attributes, what);
            if let Some(object) = tree.object_mut(number) {
                object.fileid = Some(fileid);
            }
        }
        Ok(())
    }

    /// Whether what has an object's name and another fileid is the object: its handle tells that.
    /// Where that is stale, its bytes do, or else that no other object has had the fileid.
    async fn is_same(
        &self,
        tree: &Tree,
        (object, key): (&Object, Key),
        found: &Found,
    ) -> Outcome<bool> {
        let fileid = found.attributes.fileid;
        match object.handle {
            None => return Ok(false),
            Some(handle) if handle == found.handle => return Ok(true),
            Some(handle) => {
                if let Ok(by_handle) = refused(self.session.getattr(handle).await)? {
                    return Ok(by_handle.fileid == fileid);
                }
            }
        }
        let Some(content) = object.content().filter(|content| !content.promised().is_empty())
        else {
            return Ok(!tree.is_doubted(key) && !tree.knows(fileid));
        };
        let mut apart = Look { session: self.session, part: Round::default(), lost: Vec::new() };
        apart.read(content, found).await?;
        Ok(apart.lost.is_empty() && content.clone().found(found.attributes.size).is_none())
    }

    /// Files that were not found by a name and must have one: their bytes are lost, too, unless
    /// their handles lead to them.
    async fn nameless(
        &mut self,
        tree: &Tree,
        top: &str,
        objects: &BTreeMap<Number, Found>,
    ) -> Outcome<()> {
        for (number, object) in &tree.objects {
            let Some(content) = object.content() else { continue };
            if objects.contains_key(number) || !tree.must_be(*number) {
                continue;
            }
            let path = tree.path(*number, top);
            match self.by_handle(object, &path).await? {
                Some(found) => {
                    self.part.files += 1;
                    let lost = content.clone().found(found.attributes.size);
                    self.lost.extend(lost.map(|lost| lost.of(&path)));
                    self.read(content, &found).await?;
                }
                None => {
                    self.part.files_gone += 1;
                    self.gone(content, &path);
                }
            }
        }
        Ok(())
    }

    /// An object by the handle that it had, if that is still its own.
    async fn by_handle(&self, object: &Object, path: &str) -> Outcome<Option<Found>> {
        let Some(handle) = object.handle else { return Ok(None) };
        match self.session.getattr(handle).await {
            Ok(attributes) if object.is(&attributes) => {
                Ok(Some(Found { path: path.to_owned(), handle, attributes }))
            }
            Ok(_) => Ok(None),
            Err(error) if error.status().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn unreadable(&mut self, promised: BTreeMap<Kind, u64>, path: &str, refusal: &ClientError) {
        for (kind, bytes) in promised {
            let what = format!("{path}: {bytes} bytes cannot be read: {refusal}");
            self.lost.push(Lost { kind, what, bytes });
        }
    }

    fn gone(&mut self, content: &Content, path: &str) {
        for (kind, bytes) in content.promised() {
            let what = format!("{path}: {bytes} bytes are gone with the file, and its handle");
            self.lost.push(Lost { kind, what, bytes });
        }
    }

    /// Objects below names that are open; says whether there are directories to look into.
    async fn open(
        &mut self,
        tree: &Tree,
        present: Vec<(Key, Number)>,
        listings: &BTreeMap<Number, BTreeMap<String, Fattr3>>,
        objects: &mut BTreeMap<Number, Found>,
        dirs: &mut Vec<Number>,
    ) -> Outcome<bool> {
        for (key, number) in present {
            let Some(parent) = objects.get(&key.dir).cloned() else { continue };
            if objects.contains_key(&number) {
                continue;
            }
            let path = format!("{}/{key}", parent.path);
            let found = found(self.session, parent.handle, &key.text()).await;
            let Some(Some(at)) = self.unless_refused(&path, found)? else { continue };
            objects.insert(number, Found { path, ..at });
            let is_dir = matches!(tree.object(number).map(|object| &object.body), Some(Body::Dir));
            if is_dir && !listings.contains_key(&number) {
                dirs.push(number);
            }
        }
        Ok(!dirs.is_empty())
    }

    /// All names of a directory, each looked up.
    async fn list(&mut self, dir: FileHandle, path: &str) -> Outcome<BTreeMap<String, Found>> {
        let mut entries = BTreeMap::new();
        let (mut cookie, mut verifier) = (0, [0; 8]);
        loop {
            let page = self.session.readdir(dir, cookie, verifier, LIST_BYTES).await?;
            (verifier, cookie) = (page.cookieverf, page.entries.last().map_or(0, |all| all.cookie));
            let is_last = page.eof || page.entries.is_empty();
            for entry in page.entries.into_iter().filter(|entry| !is_dot(&entry.name)) {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let path = format!("{path}/{name}");
                let found = found(self.session, dir, &name).await;
                match self.unless_refused(&path, found)? {
                    Some(Some(at)) => drop(entries.insert(name, Found { path, ..at })),
                    Some(None) => self.lose(Kind::Names, format!("{path} is listed, not found")),
                    None => {}
                }
            }
            if is_last {
                return Ok(entries);
            }
        }
    }

    async fn object(&mut self, tree: &mut Tree, number: Number, found: &Found) -> Outcome<()> {
        let links = tree.links(number);
        let Some(object) = tree.object_mut(number) else { return Ok(()) };
        let Found { path, handle, attributes } = found;
        if let Some(old) = object.handle.replace(*handle).filter(|old| old != handle) {
            let same = match self.session.getattr(old).await {
                Ok(old) => old.fileid == attributes.fileid,
                Err(error) if error.status().is_some() => false,
                Err(error) => return Err(error),
            };
            if !same {
                self.lose(Kind::Handles, format!("{path}: its handle is stale"));
            }
        }
        if number != ROOT {
            let lost = object.compare(attributes, links);
            self.lost.extend(lost.into_iter().map(|lost| lost.of(path)));
        }
        match &mut object.body {
            Body::Dir => {}
            Body::Symlink(target) => {
                let read = self.session.readlink(*handle).await;
                if let Some((seen, _)) = self.unless_refused(path, read)?
                    && seen != target.as_bytes()
                {
                    self.lose(Kind::Names, format!("{path} does not lead to {target}"));
                }
            }
            Body::File(content) => {
                self.part.files += 1;
                let lost = content.found(attributes.size);
                self.lost.extend(lost.map(|lost| lost.of(path)));
                let vanished = self.read(content, found).await?;
                // A COMMIT that is refused tells as much as another verifier.
                if !vanished.is_empty()
                    && let Ok(ok) = refused(self.session.commit(*handle, 0, 0).await)?
                    && vanished.contains(&ok.reply.verf)
                {
                    let what = "unstable bytes are gone, and the write verifier is the same";
                    self.lose(Kind::Verifier, format!("{path}: {what}"));
                }
            }
        }
        Ok(())
    }

    /// Reads and compares a file; gives the verifiers of unstable bytes that are gone.
    async fn read(&mut self, content: &Content, found: &Found) -> Outcome<Vec<Verifier>> {
        let count = self.session.sizes().read_bytes_max;
        let mut vanished = content.vanished_behind(found.attributes.size);
        let mut offset = 0;
        while offset < found.attributes.size {
            let ok = match refused(self.session.read(found.handle, offset, count).await)? {
                Ok(ok) => ok,
                Err(refusal) => {
                    let end = offset + u64::from(count);
                    self.unreadable(content.promised_in(offset..end), &found.path, &refusal);
                    offset = end;
                    continue;
                }
            };
            vanished.extend(content.vanished(offset, &ok.data));
            let lost = content.compare(offset, &ok.data);
            self.lost.extend(lost.into_iter().map(|lost| lost.of(&found.path)));
            offset += ok.data.len() as u64;
            self.part.bytes += ok.data.len() as u64;
            if ok.data.is_empty() {
                let what = format!("{}: READ ends at {offset}", found.path);
                self.lose(Kind::Attributes, what);
                break;
            }
        }
        Ok(vanished)
    }
}

/// An answer, or the error status in its place, which is a loss where something was promised:
/// whoever needs it does not get it. NFS3ERR_JUKEBOX promises an answer later.
fn refused<T>(answered: Outcome<T>) -> Outcome<Result<T, ClientError>> {
    match answered {
        Err(error) if error.status().is_none_or(|status| status == NfsStat3::Jukebox) => Err(error),
        answered => Ok(answered),
    }
}

/// What a name leads to, if it is there.
pub(super) async fn found(
    session: &Session,
    dir: FileHandle,
    name: &str,
) -> Outcome<Option<Found>> {
    match session.lookup(dir, name.as_bytes()).await {
        Ok(ok) => {
            let attributes = match ok.obj_attributes {
                Some(attributes) => attributes,
                None => session.getattr(ok.object).await?,
            };
            Ok(Some(Found { path: name.to_owned(), handle: ok.object, attributes }))
        }
        Err(error) if error.status() == Some(NfsStat3::NoEnt) => Ok(None),
        Err(error) => Err(error),
    }
}
