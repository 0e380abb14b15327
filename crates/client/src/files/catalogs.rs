//! What is known of directories, for the local disk: their names, where they lead and where not,
//! the order in which the server lists them, and what links lead to.
//!
//! What is here is good as in [`crate::cache::names`], as long as nobody else has changed the
//! directory. What is written to the disk is used as long as the directory looks as it did, however
//! long that is. So it is written only if whatever anybody may have done to the directory since any
//! of it was requested has left the directory in a state that looks different.
//!
//! Bounded: [`NAMES_MAX`] names, some 300 bytes each, and [`LINKS_MAX`] links; of a directory with
//! more than a catalog has nothing is stored.

use std::collections::BTreeMap;

use cache::catalog::{ENTRIES_MAX, Entry, LINK_BYTES_MAX};
use cache::{Catalog, Key, Token};
use lru::LruCache;
use wire::nfs3::{FType, Fattr3, FileHandle};
use wire::xdr::{Encode, from_bytes};

use super::options::Mistake;
use crate::cache::attributes::{Version, at_least_one};
use crate::cache::names::Target;
use crate::cache::state::{At, token};
use crate::ops::DirEntry;

/// Names of all directories.
pub(super) const NAMES_MAX: usize = 1 << 16;

/// Links whose text is remembered.
const LINKS_MAX: usize = 1 << 13;

/// Entries that are given at a time.
const PAGE_MAX: usize = 1024;

/// How often it is tried to write what may not be written yet.
const TRIES_MAX: u8 = 3;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Catalogs {
    dirs: LruCache<FileHandle, Dir>,
    links: LruCache<FileHandle, (Token, Vec<u8>)>,
    names: usize,
    /// A task writes what is new, and there may be something.
    pub(super) is_looked_after: bool,
    pub(super) may_have_news: bool,
    mistake: Option<Mistake>,
}

#[derive(Debug)]
struct Dir {
    /// Of which names they are.
    version: Version,
    /// When the first was requested of what the disk does not have.
    requested: Option<At>,
    names: BTreeMap<Box<[u8]>, Known>,
    /// All names in the server's order, each with its cookie, and the verifier of those.
    listing: Option<([u8; 8], Vec<Place>)>,
    /// The disk does not know all of it.
    has_news: bool,
    tries: u8,
    /// The disk was read for what it has of this version.
    was_read: bool,
    /// It was listed without asking: the attributes of its files may be those of long ago.
    is_bare: bool,
    is_too_large: bool,
}

/// A cookie, and the name that has it.
type Place = (u64, Box<[u8]>);

/// Of which version of a directory, and when it was requested.
type Then = (Version, At);

/// Where a name leads, and the attributes of what is there.
type Leads = (Target, Option<Fattr3>);

/// What is known of a name.
#[derive(Clone, Debug)]
struct Known {
    /// None: there is no such name.
    file: Option<There>,
}

#[derive(Clone, Debug)]
struct There {
    fileid: u64,
    handle: Option<FileHandle>,
    /// As they were returned last, by this or another process.
    attributes: Option<Fattr3>,
}

/// Entries of a directory that follow each other.
#[derive(Debug)]
pub(super) struct KnownPage {
    pub(super) entries: Vec<DirEntry>,
    pub(super) verifier: [u8; 8],
    pub(super) is_last: bool,
}

impl Dir {
    fn new(version: Version) -> Self {
        Self {
            version,
            requested: None,
            names: BTreeMap::new(),
            listing: None,
            has_news: false,
            tries: 0,
            was_read: false,
            is_bare: false,
            is_too_large: false,
        }
    }
}

impl Catalogs {
    pub(super) fn new(mistake: Option<Mistake>) -> Self {
        let links = LruCache::new(at_least_one(LINKS_MAX));
        let dirs = LruCache::unbounded();
        let (is_looked_after, may_have_news) = (false, false);
        Self { dirs, links, names: 0, is_looked_after, may_have_news, mistake }
    }

    /// Where a name leads, if it is known for this version of its directory.
    pub(super) fn find(
        &mut self,
        dir: &FileHandle,
        name: &[u8],
        version: Version,
    ) -> Option<Target> {
        // Where a directory lies its names do not tell.
        let is_itself = name == b"." || name == b"..";
        let known = self.of(dir, version).filter(|_| !is_itself)?.names.get(name)?;
        match &known.file {
            None => Some(Target::Nothing),
            Some(there) => there.handle.map(Target::File),
        }
    }

    fn of(&mut self, dir: &FileHandle, version: Version) -> Option<&mut Dir> {
        let keeps = self.mistake == Some(Mistake::OldNames);
        self.dirs.get_mut(dir).filter(|known| known.version == version || keeps)
    }

    /// The directory, with nothing in it if what was known is of another version.
    fn begin(&mut self, dir: &FileHandle, version: Version) -> &mut Dir {
        let keeps = self.mistake == Some(Mistake::OldNames);
        let known = self.dirs.get_or_insert_mut(*dir, || Dir::new(version));
        if known.version != version && !keeps {
            self.names -= known.names.len();
            *known = Dir::new(version);
        }
        known
    }

    /// Whether the disk is to be read for what it has of the directory: once for each version.
    pub(super) fn asks(&mut self, dir: &FileHandle, version: Version) -> bool {
        !std::mem::replace(&mut self.begin(dir, version).was_read, true)
    }

    /// Where a name leads has been requested.
    pub(super) fn learn(
        &mut self,
        dir: &FileHandle,
        name: &[u8],
        (version, at): Then,
        target: Leads,
    ) {
        let attributes = target.1;
        let file = match target.0 {
            Target::Nothing => None,
            Target::File(handle) => {
                let fileid = attributes.map_or(0, |attributes| attributes.fileid);
                Some(There { fileid, handle: Some(handle), attributes })
            }
        };
        if attributes.is_some() || file.is_none() {
            self.put(dir, (version, at), name, Known { file });
        }
    }

    fn put(&mut self, dir: &FileHandle, (version, at): Then, name: &[u8], known: Known) {
        let of = self.begin(dir, version);
        if of.is_too_large {
            return;
        }
        if of.requested.is_none_or(|requested| at.now < requested.now) {
            of.requested = Some(at);
        }
        let is_same = of.names.get(name).is_some_and(|before| before.leads_to(&known));
        // Names that are missing are in no listing.
        if known.file.is_some() && !is_same {
            of.listing = None;
        }
        of.has_news |= !is_same;
        let is_new = of.names.insert(name.into(), known).is_none();
        let count = of.names.len();
        self.may_have_news |= !is_same;
        self.names += usize::from(is_new);
        if count > ENTRIES_MAX {
            self.is_too_large(dir, version);
        }
    }

    fn is_too_large(&mut self, dir: &FileHandle, version: Version) {
        self.forget_dir(dir);
        self.dirs.put(*dir, Dir { was_read: true, is_too_large: true, ..Dir::new(version) });
    }

    /// We have changed where a name leads; to nobody knows what where there is no target. Of the
    /// others all is as it was.
    pub(super) fn changed(&mut self, dir: &FileHandle, name: &[u8], to: Option<(Then, Leads)>) {
        let Some(known) = self.dirs.get_mut(dir) else { return };
        known.listing = None;
        self.names -= usize::from(known.names.remove(name).is_some());
        known.has_news = true;
        self.may_have_news = true;
        if let Some((then, target)) = to
            && known.version == then.0
        {
            self.learn(dir, name, then, target);
        }
    }

    /// All entries of a directory, in the server's order.
    pub(super) fn listed(
        &mut self,
        dir: &FileHandle,
        (version, at): Then,
        verifier: [u8; 8],
        entries: &[DirEntry],
    ) {
        if self.begin(dir, version).is_too_large {
            return;
        }
        for entry in entries {
            let DirEntry { fileid, handle, attributes, .. } = *entry;
            let file = Some(There { fileid, handle, attributes });
            self.put(dir, (version, at), &entry.name, Known { file });
        }
        let known = self.begin(dir, version);
        if known.is_too_large {
            return;
        }
        // What is there was all listed, and what is not there was not: nothing of it is older.
        if known.names.values().filter(|known| known.file.is_some()).count() == entries.len() {
            known.requested = Some(at);
        }
        let listing = entries.iter().map(|entry| (entry.cookie, entry.name.as_slice().into()));
        let listing = Some((verifier, listing.collect()));
        let is_new = known.listing != listing;
        known.has_news |= is_new;
        (known.listing, known.is_bare) = (listing, false);
        self.may_have_news |= is_new;
    }

    /// What the disk has of a directory of this version.
    pub(super) fn loaded(&mut self, dir: &FileHandle, version: Version, catalog: &Catalog) {
        let known = self.begin(dir, version);
        // What is known already is no older.
        if !known.names.is_empty() || known.is_too_large {
            return;
        }
        let mut listing = Vec::new();
        for entry in &catalog.entries {
            let handle = FileHandle::new(&entry.key);
            let attributes: Option<Fattr3> = from_bytes(&entry.attributes).ok();
            let there = There { fileid: entry.fileid, handle, attributes };
            let file = entry.is_there.then_some(there);
            let name: Box<[u8]> = entry.name.as_slice().into();
            listing.extend(entry.cookie.map(|cookie| (cookie, name.clone())));
            known.names.insert(name, Known { file });
        }
        known.listing = catalog.whole.map(|verifier| (verifier, listing));
        self.names += known.names.len();
        for entry in catalog.entries.iter().filter(|entry| !entry.link.is_empty()) {
            let attributes: Option<Fattr3> = from_bytes(&entry.attributes).ok();
            if let (Some(link), Some(attributes)) = (FileHandle::new(&entry.key), attributes) {
                self.links.put(link, (token(&attributes), entry.link.clone()));
            }
        }
    }

    /// Whether all of a directory is known.
    pub(super) fn is_whole(&mut self, dir: &FileHandle, version: Version) -> bool {
        self.of(dir, version).is_some_and(|known| known.listing.is_some())
    }

    /// The entries that follow a cookie, if all of the directory is known.
    pub(super) fn page(
        &mut self,
        dir: &FileHandle,
        version: Version,
        cookie: u64,
    ) -> Option<KnownPage> {
        let known = self.of(dir, version)?;
        let (verifier, listing) = known.listing.as_ref()?;
        let from = match cookie {
            0 => 0,
            cookie => listing.iter().position(|(at, _)| *at == cookie)? + 1,
        };
        let rest = listing.get(from..)?;
        let entry = |(cookie, name): &Place| {
            let There { fileid, handle, attributes } = known.names.get(name)?.file.clone()?;
            Some(DirEntry { fileid, name: name.to_vec(), cookie: *cookie, attributes, handle })
        };
        let entries: Option<Vec<DirEntry>> = rest.iter().take(PAGE_MAX).map(entry).collect();
        let (entries, verifier, is_last) = (entries?, *verifier, rest.len() <= PAGE_MAX);
        known.is_bare = true;
        Some(KnownPage { entries, verifier, is_last })
    }

    /// From where the server is to list, to hear of this name and those that follow: of
    /// a directory that was listed without asking.
    pub(super) fn before(
        &mut self,
        dir: &FileHandle,
        name: &[u8],
        version: Version,
    ) -> Option<(u64, [u8; 8])> {
        let known = self.of(dir, version).filter(|known| known.is_bare)?;
        let (verifier, listing) = known.listing.as_ref()?;
        let at = listing.iter().position(|(_, listed)| **listed == *name)?;
        let cookie = at.checked_sub(1).and_then(|before| listing.get(before));
        Some(cookie.map_or((0, [0; 8]), |(cookie, _)| (*cookie, *verifier)))
    }

    /// The attributes of its files were requested to the end, or cannot be requested together.
    pub(super) fn is_not_bare(&mut self, dir: &FileHandle) {
        if let Some(known) = self.dirs.peek_mut(dir) {
            known.is_bare = false;
        }
    }

    /// What a link in this state leads to.
    pub(super) fn link(&mut self, link: &FileHandle, state: &Token) -> Option<Vec<u8>> {
        let (of, text) = self.links.get(link)?;
        (of == state).then(|| text.clone())
    }

    pub(super) fn learn_link(&mut self, link: &FileHandle, state: Token, text: &[u8]) {
        if text.len() <= LINK_BYTES_MAX {
            self.links.put(*link, (state, text.to_vec()));
        }
    }

    pub(super) fn forget_dir(&mut self, dir: &FileHandle) {
        if let Some(known) = self.dirs.pop(dir) {
            self.names -= known.names.len();
        }
    }

    /// The directory to let go, if there are too many names.
    pub(super) fn too_many(&self) -> Option<FileHandle> {
        let is_full = self.names > NAMES_MAX || self.dirs.len() > NAMES_MAX;
        self.dirs.peek_lru().filter(|_| is_full).map(|(dir, _)| *dir)
    }

    /// When the first was requested of what is known of a directory.
    pub(super) fn requested(&self, dir: &FileHandle) -> Option<At> {
        self.dirs.peek(dir)?.requested
    }

    /// Directories of which the disk does not know all.
    pub(super) fn with_news(&self) -> Vec<FileHandle> {
        let mut found: Vec<FileHandle> =
            self.dirs.iter().filter(|(_, known)| known.has_news).map(|(dir, _)| *dir).collect();
        found.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        found
    }

    /// What there is to write of a directory that is of this version and in this state, if it may
    /// be written now.
    pub(super) fn catalog(
        &mut self,
        dir: &FileHandle,
        (version, state): (Version, Option<Token>),
        last: impl Fn(&FileHandle) -> Option<Fattr3>,
    ) -> Option<Catalog> {
        let known = self.dirs.peek_mut(dir).filter(|known| known.has_news)?;
        known.tries += 1;
        let may_come = known.version == version && known.tries < TRIES_MAX;
        let Some(token) = state.filter(|_| known.version == version) else {
            known.has_news = may_come;
            return None;
        };
        (known.has_news, known.tries) = (false, 0);
        let mut entries = Vec::new();
        let listed = known.listing.iter().flat_map(|(_, listing)| listing);
        let mut rest = known.names.clone();
        for (cookie, name) in listed {
            let known = rest.remove(name)?;
            entries.push(entry((name, &known), Some(*cookie), &last, &mut self.links));
        }
        let others =
            rest.iter().map(|(name, known)| entry((name, known), None, &last, &mut self.links));
        entries.extend(others);
        let whole = known.listing.as_ref().map(|(verifier, _)| *verifier);
        Some(Catalog { key: Key::new(dir.as_bytes())?, token, whole, entries })
    }
}

impl Known {
    fn leads_to(&self, other: &Self) -> bool {
        let handle = |known: &Self| known.file.as_ref().map(|there| there.handle);
        handle(self) == handle(other)
    }
}

fn entry(
    (name, known): (&[u8], &Known),
    cookie: Option<u64>,
    last: impl Fn(&FileHandle) -> Option<Fattr3>,
    links: &mut LruCache<FileHandle, (Token, Vec<u8>)>,
) -> Entry {
    let name = name.to_vec();
    let Some(There { fileid, handle, attributes }) = &known.file else {
        return Entry { name, ..Entry::default() };
    };
    let attributes = handle.as_ref().and_then(last).or(*attributes);
    let link =
        attributes.filter(|attributes_known| attributes_known.ftype == FType::Lnk).zip(*handle);
    let link = link.and_then(|(attributes_known, link)| {
        links
            .peek(&link)
            .filter(|(state, _)| *state == token(&attributes_known))
            .map(|(_, text)| text.clone())
    });
    let mut bytes = Vec::new();
    if let Some(attributes) = attributes {
        attributes.encode(&mut bytes);
    }
    Entry {
        name,
        is_there: true,
        cookie,
        fileid: *fileid,
        key: handle.as_ref().map_or_else(Vec::new, |handle| handle.as_bytes().to_vec()),
        attributes: bytes,
        link: link.unwrap_or_default(),
    }
}
