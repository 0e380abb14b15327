//! What clients ask for: the origin's files, and over them what is on its way there.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use server::store::{Entry, Extent, ListFrom, Listed, Looked, Node, Sink, Store};
use server::types::{Access, Attr, Caller, FileKind, Handle, Status};

use super::extents::Extents;
use super::names::Table;
use super::state::State;
use super::touches::named;
use super::verifiers::{Begun, Verifier};
use super::{Inner, lease};

/// Cookies of names that are served from here; the origin's are smaller, or a listing fails. Those
/// of most file systems have 63 bits, of some all of 64.
const OURS: u64 = 0xfffc << 48;

/// In a listing that is from here alone.
const ALL: u64 = OURS | 2 << 48;

/// Those of `.` and `..` there.
const SELF_COOKIE: u64 = ALL | 1;
const ABOVE_COOKIE: u64 = ALL | 2;

/// A name's is that of its record, and so much.
const COOKIE_BASE: u64 = 2;

/// What a READ is answered from, beside the origin's bytes.
struct Over {
    attr: Attr,
    extents: Extents,
    /// Nothing of the origin's from here on.
    cut: u64,
    origin: Option<Handle>,
    /// What the caller may, if that is known; whether it was reported lately.
    rights: Option<(u32, bool)>,
    has_rights_there: bool,
    /// Who owns a file that was made here reads it whatever its mode is.
    is_own: bool,
}

impl Over {
    /// Where a READ of this ends.
    fn end(&self, offset: u64, count: u32) -> u64 {
        offset.saturating_add(u64::from(count)).min(self.attr.size).max(offset)
    }

    /// What the origin calls the file, if bytes of there are needed, and where they end.
    fn theirs(&self, offset: u64, count: u32) -> Option<(Handle, u64)> {
        let end = self.end(offset, count);
        let theirs = self.cut.min(end);
        let origin = self.origin.filter(|_| theirs > offset);
        Some((origin.filter(|_| !self.extents.covers(offset, end))?, theirs))
    }

    /// Why nobody reads it.
    fn refusal(&self) -> Option<Status> {
        match self.attr.kind {
            FileKind::Regular if self.attr.links == 0 => Some(Status::Stale),
            FileKind::Regular => None,
            FileKind::Directory => Some(Status::IsDirectory),
            _ => Some(Status::Invalid),
        }
    }

    /// Whether the caller may read, by what is known here; who executes a file has to read it.
    fn may_read(&self) -> bool {
        let granted = self.rights.map_or(0, |(granted, _)| granted);
        self.is_own || granted & (Access::READ | Access::EXECUTE) != 0
    }
}

/// How a listing goes on.
struct Listing {
    /// The overlay's.
    names: Arc<Table>,
    /// They are all that there are.
    is_all: bool,
    /// As of this many, see `Node::names_left` of the overlay.
    names_left: u64,
    /// The origin's verifier with which it goes on.
    origin: Verifier,
    /// It has names to skip, and goes on in this life alone.
    skips: bool,
}

impl<S: Store> Inner<S> {
    pub(super) async fn attr(&self, caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        let id = self.id(handle);
        if let Some(attr) = self.answered_here(&id)? {
            return Ok(attr);
        }
        let Some(origin) = self.origin(&id)? else { return Err(Status::Stale) };
        let epoch = self.epoch();
        let call = async {
            let returned = self.store.attr(caller, &origin).await;
            returned.map(|returned| self.tell(&id, returned, epoch))
        };
        let cached = |state: &mut State| state.nodes.find(&id).map(|node| node.attr);
        match self.origin_or_cached(call, cached).await {
            Ok(attr) => Ok(attr),
            Err(status) => self.answered_here(&id)?.ok_or(status),
        }
    }

    /// The attributes of a file that need no call to the origin.
    fn answered_here(&self, id: &Handle) -> Result<Option<Attr>, Status> {
        let (now, state) = (self.now(), self.state.lock());
        match state.nodes.find(id).filter(|node| node.is_answered_here(now)) {
            Some(node) if node.attr.links == 0 => Err(Status::Stale),
            node => Ok(node.map(|node| node.attr)),
        }
    }

    /// Attributes that the origin has returned beside a result.
    pub(super) fn tell_other(&self, handle: &Handle, returned: Option<Attr>) -> Option<Attr> {
        let id = self.id(handle);
        match self.answered_here(&id) {
            Ok(Some(attr)) => Some(attr),
            _ => returned.map(|returned| self.tell(&id, returned, 0)),
        }
    }

    pub(super) async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        let id = self.id(dir);
        if self.is_hidden(name) {
            return Looked::failed(Status::NoEntry);
        }
        match name {
            b"." => return self.itself(caller, &id).await,
            b".." => return self.above(caller, &id).await,
            _ => {}
        }
        let look = || self.state.lock().own_name(&id, name, self.now());
        let mut own = look();
        if own.is_some() {
            if let Err(status) = self.may_pass(caller, &id).await {
                return Looked {
                    attr: self.answered_here(&id).ok().flatten(),
                    result: Err(status),
                };
            }
            own = look();
        }
        match own {
            Some(Some(child)) => self.looked_at(caller, &id, &child).await,
            // Whoever has removed it and heard no reply knows by the directory that it was done.
            Some(None) => {
                Looked { attr: self.attr(caller, &id).await.ok(), result: Err(Status::NoEntry) }
            }
            None => self.lookup_there(caller, &id, name).await.unwrap_or_else(Looked::failed),
        }
    }

    /// A directory by its own name, for who may search it.
    async fn itself(&self, caller: &Caller, id: &Handle) -> Looked<Node> {
        let looked = self.looked_at(caller, id, id).await;
        let refused = match &looked.result {
            Ok(node) if node.attr.kind != FileKind::Directory => Some(Status::NotDirectory),
            Ok(_) => self.may_pass(caller, id).await.err(),
            Err(_) => None,
        };
        match refused {
            Some(status) => Looked { result: Err(status), ..looked },
            None => looked,
        }
    }

    /// Where no name is looked up at the origin, which would say it.
    async fn may_pass(&self, caller: &Caller, dir: &Handle) -> Result<(), Status> {
        self.may(caller, dir, Access::LOOKUP).await
    }

    /// Whether the caller has a right, where no call to the origin would show that.
    pub(super) async fn may(&self, caller: &Caller, id: &Handle, right: u32) -> Result<(), Status> {
        let known = {
            let (who, now, state) = (self.who(caller), self.now(), self.state.lock());
            let known = state.nodes.find(id).and_then(|node| node.rights(who, now));
            // While the origin is away, its last reply stands.
            known.filter(|(_, is_fresh)| *is_fresh || state.is_away)
        };
        let granted = match known {
            Some((granted, _)) => granted,
            None => self.rights(caller, id).await?,
        };
        if granted & right != 0 { Ok(()) } else { Err(Status::Access) }
    }

    async fn looked_at(&self, caller: &Caller, dir: &Handle, child: &Handle) -> Looked<Node> {
        let result = self.attr(caller, child).await.map(|attr| Node { handle: *child, attr });
        Looked { attr: self.answered_here(dir).ok().flatten(), result }
    }

    async fn lookup_there(
        &self,
        caller: &Caller,
        id: &Handle,
        name: &[u8],
    ) -> Result<Looked<Node>, Status> {
        let origin = self.there(id)?;
        let epoch = self.epoch();
        let now = self.now();
        let call = async {
            match self.store.lookup(caller, &origin, name).await {
                Looked { result: Err(Status::Away), .. } => Err(Status::Away),
                looked => Ok(Some(looked)),
            }
        };
        // While the origin is away, what is cached of a name counts.
        let is_above = name == b"..";
        let cached = |state: &mut State| match is_above {
            true => None,
            false => state.own_name(id, name, now).map(|_| None),
        };
        let looked = match self.origin_or_cached(call, cached).await? {
            Some(looked) => match looked.result {
                Ok(_) | Err(Status::NoEntry) => looked,
                // Whoever is refused does not see what was made here meanwhile either.
                Err(_) => return Ok(looked),
            },
            None => {
                self.may_pass(caller, id).await?;
                Looked::failed(Status::Jukebox)
            }
        };
        let attr = looked.attr.map(|attr| self.tell(id, attr, epoch));
        let result = looked.result.map(|node| self.tell_node(&node, epoch));
        if is_above {
            return Ok(Looked { attr, result });
        }
        // It may have been made or removed here meanwhile.
        Ok(match self.met_name(id, name, &result, epoch) {
            Some(Some(child)) => self.looked_at(caller, id, &child).await,
            Some(None) => Looked { attr, result: Err(Status::NoEntry) },
            None => Looked { attr, result },
        })
    }

    /// The origin has returned a name; what it is here.
    fn met_name(
        &self,
        id: &Handle,
        name: &[u8],
        met: &Result<Node, Status>,
        epoch: u64,
    ) -> Option<Option<Handle>> {
        let (now, mut state) = (self.now(), self.state.lock());
        let is_of_now = !state.is_touched(&named(id, name), epoch);
        match met {
            Ok(node) => {
                if is_of_now {
                    state.met_at(&node.handle, (id, name));
                    state.met_name(id, name, Some(node.handle), now);
                }
            }
            Err(Status::NoEntry) if is_of_now => state.met_name(id, name, None, now),
            Err(_) => {}
        }
        state.own_name(id, name, now)
    }

    async fn above(&self, caller: &Caller, id: &Handle) -> Looked<Node> {
        let above = {
            let state = self.state.lock();
            let node = state.nodes.find(id).filter(|node| node.is_pending());
            node.and_then(|node| node.place.as_ref()).map(|(above, _)| *above)
        };
        match above {
            Some(above) => self.looked_at(caller, id, &above).await,
            None => self.lookup_there(caller, id, b"..").await.unwrap_or_else(Looked::failed),
        }
    }

    pub(super) async fn access(
        &self,
        caller: &Caller,
        handle: &Handle,
        requested: Access,
    ) -> Result<Looked<Access>, Status> {
        let id = self.id(handle);
        let (who, now) = (self.who(caller), self.now());
        let own = {
            let state = self.state.lock();
            let node = state.nodes.find(&id).filter(|node| node.is_answered_here(now));
            // What is not shown yet is not forbidden.
            let node = node.filter(|_| !self.guesses_rights(caller));
            node.and_then(|node| Some((node.attr, node.rights(who, now)?.0)))
        };
        if let Some((attr, granted)) = own {
            return Ok(Looked { attr: Some(attr), result: Ok(Access(granted & requested.0)) });
        }
        self.has_rights_there(&id).await?;
        let origin = self.there(&id)?;
        let epoch = self.epoch();
        let call = async {
            let Looked { attr, result } = self.store.access(caller, &origin, requested).await;
            result.map(|granted| (attr.map(|attr| self.tell(&id, attr, epoch)), granted))
        };
        let cached = |state: &mut State| {
            let node = state.nodes.find(&id)?;
            let granted = node.rights(who, now)?.0;
            Some((Some(node.attr), Access(granted & requested.0)))
        };
        Ok(match self.origin_or_cached(call, cached).await {
            Ok((attr, granted)) => Looked { attr, result: Ok(granted) },
            Err(status) => {
                Looked { attr: self.answered_here(&id).ok().flatten(), result: Err(status) }
            }
        })
    }

    pub(super) async fn read_link(
        &self,
        caller: &Caller,
        handle: &Handle,
    ) -> Result<Looked<Bytes>, Status> {
        let id = self.id(handle);
        let own = {
            let state = self.state.lock();
            let node = state.nodes.find(&id);
            node.and_then(|node| Some((node.attr, node.target.clone()?)))
        };
        if let Some((attr, target)) = own {
            return Ok(Looked { attr: Some(attr), result: Ok(target) });
        }
        let origin = self.made_origin(&id).await?;
        let epoch = self.epoch();
        let Looked { attr, result } = self.store.read_link(caller, &origin).await;
        Ok(Looked { attr: attr.map(|attr| self.tell(&id, attr, epoch)), result })
    }

    pub(super) async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Result<Looked<Extent>, Status> {
        let id = self.id(handle);
        let mut is_loaded = false;
        loop {
            let Some(over) = self.over(caller, &id) else {
                let (origin, epoch) = (self.there(&id)?, self.epoch());
                let read = self.store.read(caller, &origin, offset, count).await;
                let attr = read.attr.map(|attr| self.tell(&id, attr, epoch));
                return Ok(Looked { attr, result: read.result });
            };
            let looked = |result| Ok(Looked { attr: Some(over.attr), result });
            if let Some(status) = over.refusal() {
                return looked(Err(status));
            }
            // Elsewhere the READ at the origin says who may.
            let is_ours = over.theirs(offset, count).is_none() || !over.has_rights_there;
            let is_known = over.rights.is_some_and(|(_, is_fresh)| is_fresh || is_loaded);
            if is_ours && !over.is_own && !is_known {
                match self.load(caller, &id).await {
                    Ok(()) => is_loaded = true,
                    Err(status) => return looked(Err(status)),
                }
                continue;
            }
            if is_ours && !over.may_read() {
                return looked(Err(Status::Access));
            }
            let result = self.read_over(caller, &over, offset, count).await;
            // It is to have the mode first that lets the caller read.
            let waits = matches!(result, Err(Status::Access)) && !over.has_rights_there;
            if !waits || self.has_rights_there(&id).await.is_err() {
                return looked(result);
            }
        }
    }

    /// What is known of a file whose bytes are on their way. Taken before the origin is called:
    /// what comes there meanwhile is in what it says.
    fn over(&self, caller: &Caller, id: &Handle) -> Option<Over> {
        let (who, now, state) = (self.who(caller), self.now(), self.state.lock());
        let node = state.nodes.find(id).filter(|node| node.is_pending())?;
        let is_ours = node.is_made_here || node.origin.is_none();
        Some(Over {
            attr: node.attr,
            extents: node.extents.clone(),
            cut: node.cut(),
            origin: node.origin,
            rights: node.rights(who, now),
            has_rights_there: node.has_rights_there(),
            is_own: is_ours && who.owns(&node.attr),
        })
    }

    async fn read_over(
        &self,
        caller: &Caller,
        over: &Over,
        offset: u64,
        count: u32,
    ) -> Result<Extent, Status> {
        let end = over.end(offset, count);
        let len = usize::try_from(end - offset).map_err(|_| Status::Invalid)?;
        let mut bytes = BytesMut::zeroed(len);
        if let Some((origin, theirs)) = over.theirs(offset, count) {
            let wanted = u32::try_from(theirs - offset).unwrap_or(count);
            let read = self.store.read(caller, &origin, offset, wanted).await.result?;
            let got = read.data.len().min(len);
            bytes[..got].copy_from_slice(&read.data[..got]);
        }
        over.extents.over(offset, &mut bytes);
        Ok(Extent { data: bytes.freeze(), eof: end >= over.attr.size })
    }

    /// Leases are not for clients: this one's, and those of proxies that have a part of the export.
    pub(super) fn is_hidden(&self, name: &[u8]) -> bool {
        name == lease::NAME && self.options.owner.is_some()
    }

    pub(super) async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Result<Looked<Listed>, Status> {
        let id = self.id(dir);
        // What it went on from may not be known any more.
        let listing = self.listing(&id, from).ok_or(Status::BadCookie)?;
        let mut looked = Looked {
            attr: self.answered_here(&id).ok().flatten(),
            result: Ok(Listed { verifier: from.verifier, eof: false }),
        };
        if from.cookie < OURS && !listing.is_all {
            looked = self.list_there(caller, &id, from, &listing, sink).await?;
            let is_over = matches!(looked.result, Ok(Listed { eof: true, .. }));
            self.is_listed(&id, is_over);
            if !is_over {
                return Ok(looked);
            }
        } else {
            self.may_list(caller, &id).await?;
        }
        let from =
            ListFrom { cookie: from.cookie.max(if listing.is_all { ALL } else { OURS }), ..from };
        // A handle is what LOOKUP gives, to those who may search.
        let with_nodes =
            from.with_nodes && listing.names.has_some() && self.may_pass(caller, &id).await.is_ok();
        let is_taken = self.list_here(&id, &listing, ListFrom { with_nodes, ..from }, sink);
        if let Ok(listed) = &mut looked.result {
            listed.eof = is_taken;
        }
        self.is_listed(&id, is_taken);
        Ok(looked)
    }

    /// A client has a part of a listing, and may come for the next.
    fn is_listed(&self, id: &Handle, is_over: bool) {
        if !is_over && let Some(node) = self.state.lock().nodes.find_mut(id) {
            node.listed_at = Some(self.now());
        }
    }

    /// How a listing goes on from here. None: it may not go on from this cookie.
    fn listing(&self, id: &Handle, from: ListFrom) -> Option<Listing> {
        let state = &mut *self.state.lock();
        let (now, is_away, is_first) = (self.now(), state.is_away, from.cookie == 0);
        let begun = match is_first {
            true => Begun { origin: from.verifier, names_left: None },
            false => state.verifiers.find(from.verifier)?,
        };
        let skips = begun.names_left.is_some();
        let (names, origin) = (Arc::default(), begun.origin);
        let mut listing = Listing { names, is_all: false, names_left: 0, origin, skips };
        // A cookie of ours is of names that were here.
        let is_theirs = from.cookie < OURS;
        let Some(node) = state.nodes.find_mut(id) else {
            // What it has skipped was forgotten with the node.
            return Some(listing).filter(|_| is_theirs && !skips);
        };
        if is_first {
            node.end_names(now);
            listing.skips = node.skips_names();
        }
        listing.names_left = match is_first || from.cookie >= ALL {
            true => node.names_left,
            false => node.listing(begun)?,
        };
        let is_unmade = node.origin.is_none();
        let Some(names) = &node.names else {
            listing.is_all = is_unmade;
            return Some(listing).filter(|_| is_unmade || is_theirs);
        };
        let can_all = is_unmade || names.is_complete;
        let is_fresh = is_unmade || is_away || node.is_answered_here(now);
        // A listing goes on as it has begun.
        listing.is_all = if is_first { can_all && is_fresh } else { from.cookie >= ALL };
        if listing.is_all && !can_all {
            return None;
        }
        listing.names = names.now();
        node.used = now;
        Some(listing)
    }

    /// Where no page of the origin's is in a listing, which would say it.
    async fn may_list(&self, caller: &Caller, id: &Handle) -> Result<(), Status> {
        let is_dir = self.state.lock().nodes.find(id).ok_or(Status::Stale)?.is_dir();
        if !is_dir {
            return Err(Status::NotDirectory);
        }
        let granted = self.rights(caller, id).await?;
        if granted & Access::READ != 0 { Ok(()) } else { Err(Status::Access) }
    }

    /// The origin's part of a listing, without the names that are served from here.
    async fn list_there(
        &self,
        caller: &Caller,
        id: &Handle,
        from: ListFrom,
        listing: &Listing,
        sink: Sink<'_>,
    ) -> Result<Looked<Listed>, Status> {
        let origin = self.there(id)?;
        let epoch = self.epoch();
        let &Listing { ref names, names_left, .. } = listing;
        let there = ListFrom { verifier: listing.origin, ..from };
        let mut is_ambiguous = false;
        let mut each = |entry: Entry<'_>| {
            is_ambiguous |= entry.cookie >= OURS;
            if is_ambiguous {
                return false;
            }
            let own = names.find(entry.name).filter(|named| named.is_in(names_left));
            if own.is_some() || self.is_hidden(entry.name) {
                return true;
            }
            let node = entry.node.map(|node| self.tell_node(&node, epoch));
            if let Some(node) = node.filter(|_| !matches!(entry.name, b"." | b"..")) {
                self.state.lock().met_at(&node.handle, (id, entry.name));
            }
            let fileid = || self.aliases.fileid(entry.fileid);
            let fileid = node.map_or_else(fileid, |node| node.attr.fileid);
            sink(Entry { fileid, node, ..entry })
        };
        let Looked { attr, result } = self.store.list(caller, &origin, there, &mut each).await;
        if is_ambiguous {
            // Its names would be passed over.
            return Err(Status::ServerFault);
        }
        let attr = attr.map(|attr| self.tell(id, attr, epoch));
        let result = result.map(|listed| {
            let verifier = self.verifier_of(id, listing, listed.verifier, from.verifier);
            Listed { verifier, ..listed }
        });
        Ok(Looked { attr, result })
    }

    /// The verifier with which a listing goes on that the origin has given this one for, in the
    /// place of the last.
    fn verifier_of(
        &self,
        id: &Handle,
        &Listing { names_left, skips, .. }: &Listing,
        origin: Verifier,
        last: Verifier,
    ) -> Verifier {
        let state = &mut *self.state.lock();
        let begun = Begun { origin, names_left: skips.then_some(names_left) };
        let node = state.nodes.find_mut(id);
        let others = node.as_ref().and_then(|node| node.listed).map_or(last, |(_, given)| given);
        let given = state.verifiers.of(begun, [last, others]);
        if let Some(node) = node {
            node.listed = Some((origin, given));
        }
        given
    }

    /// The names that are served from here, behind this cookie; whether the last was taken.
    fn list_here(&self, id: &Handle, listing: &Listing, from: ListFrom, sink: Sink<'_>) -> bool {
        let &Listing { ref names, is_all, names_left, .. } = listing;
        let (after, base) = (from.cookie, if is_all { ALL } else { OURS });
        let state = self.state.lock();
        let node = state.nodes.find(id);
        let own = node.map_or(0, |node| node.attr.fileid);
        let above = node.and_then(|node| node.place.as_ref());
        let above = above.and_then(|(above, _)| state.nodes.find(above));
        let above = above.map_or(own, |node| node.attr.fileid);
        let dots: [(&[u8], u64, u64); 2] = [(b".", own, SELF_COOKIE), (b"..", above, ABOVE_COOKIE)];
        for (name, fileid, cookie) in dots.into_iter().filter(|dot| is_all && dot.2 > after) {
            if !sink(Entry { fileid, name, cookie, node: None }) {
                return false;
            }
        }
        let next = (after - base + 1).saturating_sub(COOKIE_BASE);
        let there = names.from(next).filter(|(_, named)| is_all || named.is_in(names_left));
        for (name, named) in there {
            let (cookie, Some(child)) = (base | (named.number + COOKIE_BASE), named.child) else {
                continue;
            };
            let known = state.nodes.find(&child);
            let alias = || self.aliases.find(&child).map(|alias| alias.fileid);
            let fileid = known.map(|node| node.attr.fileid).or_else(alias).unwrap_or(cookie);
            let node = known
                .filter(|_| from.with_nodes)
                .map(|node| Node { handle: child, attr: node.attr });
            if !sink(Entry { fileid, name, cookie, node }) {
                return false;
            }
        }
        true
    }
}
