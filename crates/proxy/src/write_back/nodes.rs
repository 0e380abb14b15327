//! What clients see: files and directories that are otherwise in the log than at the origin, or
//! were a moment ago. Pure: its input is what was changed, and the origin's replies.
//!
//! A node is *pending* while changes of it are on their way. Then replies about it are made here
//! alone. Once they have come, the origin is queried again, and clients see its times as they saw
//! them here: a client that sees other times takes its cache for old.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use server::store::Node as StoreNode;
use server::types::{Attr, Before, Caller, FileKind, Handle, SetAttr, SetTime, Status, Time};

use super::extents::Extents;
use super::modes::Modes;
use super::names::{Named, Names};
use super::record::{Change, Made};
use super::rights::{Rights, Who, by_mode};
use super::trail::Trail;
use super::verifiers::{Begun as Listing, Verifier};

/// Nodes that are retained when nothing of them is on its way any more: some 500 bytes each.
pub(super) const RETAINED_MAX: usize = 1 << 15;

/// How long the names of a directory that was made here are served from here after its last change.
pub(super) const LINGER: Nanos = Nanos::from_secs(3);

/// How long a client is waited for that goes on with a listing.
const LISTING: Nanos = Nanos::from_secs(60);

/// Names of a directory that are retained when they are at the origin.
const NAMES_MAX: usize = 1 << 16;

/// Where the bytes of a file are that the origin does not take, and which changes they have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Aside {
    pub(crate) copy: Bytes,
    /// All up to this record; zero: none yet.
    pub(crate) number: u64,
    /// The origin's reason.
    pub(crate) status: Option<Status>,
}

/// A file at the origin with the clients' version of one that somebody else has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Beside {
    pub(crate) copy: Handle,
    /// Bits of a mode that it may have: it is for nobody for whom the file is not.
    pub(crate) mode_max: u32,
}

/// What was made at the origin for the clients' version: with its attributes then, and where.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) caller: Caller,
    pub(crate) made: StoreNode,
    pub(crate) dir: Handle,
    pub(crate) name: Bytes,
}

/// As most file systems have them.
const BLOCK_BYTES: u64 = 4096;

/// See the module's head.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// As clients see it.
    pub(crate) attr: Attr,
    /// What the origin calls it, once it has made it.
    pub(crate) origin: Option<Handle>,
    /// The origin's file as we left it, or met it.
    pub(crate) base: Option<Before>,
    /// When the origin was last found to have it so, while changes are on their way.
    pub(crate) confirmed: Option<Instant>,
    pub(crate) is_being_confirmed: bool,
    pub(crate) trail: Trail,
    /// Records.
    pub(crate) pending: usize,
    /// Records that the origin has answered, and that leave the modification time to another.
    pub(crate) answered: usize,
    pub(crate) used: Instant,
    /// When it was changed here last, or such a change has come to the origin.
    pub(crate) ours_at: Instant,
    /// When replies may not be older than what is known: a count of changes.
    pub(crate) epoch: u64,
    pub(crate) extents: Extents,
    /// Nothing of the origin's bytes from here on: truncations, and their records.
    cuts: Vec<(u64, u64)>,
    /// Where it was seen last.
    pub(crate) place: Option<(Handle, Bytes)>,
    pub(crate) names: Option<Names>,
    /// How often names of a directory have left the overlay, and are in the origin's listing from
    /// then on. A listing that had skipped them there goes on to have them from here.
    pub(crate) names_left: u64,
    /// With what they left that are forgotten: a listing from before may not go on.
    names_forgotten: u64,
    /// The cookie verifier of the origin's last reply, and what clients got for it.
    pub(crate) listed: Option<(Verifier, Verifier)>,
    /// When a client was given a part of a listing last that was not the end.
    pub(crate) listed_at: Option<Instant>,
    pub(crate) target: Option<Bytes>,
    pub(crate) verifier: Option<[u8; 8]>,
    pub(crate) rights: Rights,
    /// Of what is made in a directory; shared with directories that are made here in it.
    pub(crate) modes: Arc<Modes>,
    /// It was made here, and nobody else has changed it since.
    pub(crate) is_made_here: bool,
    /// How many names it has is not known for certain: a change of a log may have been carried out.
    pub(crate) is_unsure: bool,
    /// It is losing a name, and perhaps it is the last.
    pub(crate) is_leaving: bool,
    /// Its last WRITE came after all that set its modification time.
    pub(crate) owes_time: bool,
    /// Somebody else has changed the origin's: ours goes here.
    pub(crate) beside: Option<Beside>,
    /// The same while it is not whole.
    pub(crate) begun: Option<Box<Begun>>,
    /// The origin refuses it for good: what is on its way goes to a file of this host.
    pub(crate) aside: Option<Aside>,
    /// That was so until nothing was on its way any more.
    pub(crate) is_refused: bool,
}

impl Node {
    pub(crate) fn new(attr: Attr, now: Instant) -> Self {
        Self {
            attr,
            origin: None,
            base: None,
            confirmed: None,
            is_being_confirmed: false,
            trail: Trail::default(),
            pending: 0,
            answered: 0,
            used: now,
            ours_at: now,
            epoch: 0,
            extents: Extents::default(),
            cuts: Vec::new(),
            place: None,
            names: None,
            names_left: 0,
            names_forgotten: 0,
            listed: None,
            listed_at: None,
            target: None,
            verifier: None,
            rights: Rights::default(),
            modes: Arc::default(),
            is_made_here: false,
            is_unsure: false,
            is_leaving: false,
            owes_time: false,
            beside: None,
            begun: None,
            aside: None,
            is_refused: false,
        }
    }

    /// One that is made here, at this place.
    pub(crate) fn made(attr: Attr, place: (Handle, Bytes), what: &Made, now: Instant) -> Self {
        let mut node = Self { is_made_here: true, place: Some(place), ..Self::new(attr, now) };
        match what {
            Made::File(verifier) => node.verifier = *verifier,
            Made::Directory => node.names = Some(Names::of_new()),
            Made::Symlink(target) => node.target = Some(target.clone()),
        }
        node
    }

    /// One that the origin has.
    pub(crate) fn met(attr: Attr, origin: Handle, base: Before, now: Instant) -> Self {
        Self { origin: Some(origin), base: Some(base), ..Self::new(attr, now) }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0 || self.origin.is_none()
    }

    /// Whether the origin need not be queried about it: it could only return what is older.
    pub(crate) fn is_answered_here(&self, now: Instant) -> bool {
        self.is_pending() || (self.is_made_here && now.since(self.ours_at) <= LINGER)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.attr.kind == FileKind::Directory
    }

    /// Whether the origin has it, and its mode and owner are the same there.
    pub(crate) fn has_rights_there(&self) -> bool {
        self.origin.is_some() && self.rights.are_there()
    }

    /// What the caller may, if that is known: and whether it was reported lately.
    pub(crate) fn rights(&self, who: Who<'_>, now: Instant) -> Option<(u32, bool)> {
        let is_there = self.has_rights_there();
        // What the mode says of others an ACL at the origin may contradict.
        let is_by_mode = who.is_root() || who.owns(&self.attr);
        if is_by_mode && (self.is_made_here || !is_there) {
            return Some((by_mode(&self.attr, who.caller), true));
        }
        self.rights.of_origin(who.caller, now).filter(|_| is_there)
    }

    /// The same; nothing, where that is not known.
    pub(crate) fn granted(&self, who: Who<'_>, now: Instant) -> u32 {
        self.rights(who, now).map_or(0, |(granted, _)| granted)
    }

    /// A time to tell for a change that is made now: later than any before.
    pub(crate) fn next_time(&self, now: Time) -> Time {
        now.max(later(self.attr.changed))
    }

    /// Where the origin's bytes end that are still the file's.
    pub(crate) fn cut(&self) -> u64 {
        self.cuts.iter().map(|(cut, _)| *cut).min().unwrap_or(u64::MAX)
    }

    pub(crate) fn write(&mut self, offset: u64, data: Bytes, number: u64, at: Time) {
        let end = offset + data.len() as u64;
        let is_over = self.extents.covers(offset, end);
        self.extents.put(offset, data, number);
        self.attr.size = self.attr.size.max(end);
        // Holes take no room. Where the origin's file has some is not known.
        let more = if is_over { 0 } else { blocks(end) - offset / BLOCK_BYTES * BLOCK_BYTES };
        let most = self.attr.used.max(blocks(self.attr.size));
        self.attr.used = self.attr.used.saturating_add(more).min(most);
        (self.attr.modified, self.attr.changed) = (at, at);
        self.owes_time = true;
    }

    pub(crate) fn set(&mut self, set: &SetAttr, number: u64, at: Time) {
        let SetAttr { mode, uid, gid, size, accessed, modified } = *set;
        if let Some(size) = size {
            self.extents.cut(size);
            self.cuts.push((size.min(self.attr.size), number));
            self.attr.size = size;
            self.attr.used = self.attr.used.min(blocks(size));
            self.attr.modified = at;
            self.owes_time = true;
        }
        self.attr.mode = mode.unwrap_or(self.attr.mode);
        self.attr.uid = uid.unwrap_or(self.attr.uid);
        self.attr.gid = gid.unwrap_or(self.attr.gid);
        if mode.is_some() || uid.is_some() || gid.is_some() {
            self.rights.change(number);
        }
        if let SetTime::To(time) = accessed {
            self.attr.accessed = time;
        }
        if let SetTime::To(time) = modified {
            self.attr.modified = time;
            self.owes_time = false;
        }
        self.attr.changed = at;
    }

    /// Whether it is so already, as far as that is certain: mode and times that an exclusive CREATE
    /// gives are the origin's affair.
    pub(crate) fn is_as(&self, set: &SetAttr) -> bool {
        let SetAttr { mode, uid, gid, size, accessed, modified } = *set;
        let is_certain = self.verifier.is_none();
        let is_at = |time, at| time == SetTime::Keep || (is_certain && time == SetTime::To(at));
        mode.is_none_or(|mode| is_certain && mode == self.attr.mode)
            && uid.is_none_or(|uid| uid == self.attr.uid)
            && gid.is_none_or(|gid| gid == self.attr.gid)
            && size.is_none()
            && is_at(accessed, self.attr.accessed)
            && is_at(modified, self.attr.modified)
    }

    /// A name in this directory is as this now.
    pub(crate) fn name(&mut self, name: Bytes, child: Option<Handle>, number: u64, at: Instant) {
        let named = Named { child, number, is_pending: true, at, left: None };
        self.names.get_or_insert_default().insert(name, named);
    }

    /// The modification time that the origin's file is to get after this change, if that is not
    /// done by it.
    pub(crate) fn owed_after(&self, change: &Change, at: Time) -> Option<Time> {
        match change {
            Change::Write { .. } => Some(at),
            Change::Set { set, .. } if set.modified != SetTime::Keep => None,
            Change::Set { set, .. } if set.size.is_some() => Some(at),
            _ => self.owes_time.then_some(self.attr.modified),
        }
    }

    /// So many more directories are in this one, or fewer: each has a link to it.
    pub(crate) fn more_dirs(&mut self, dirs: i64) {
        let links = i64::from(self.attr.links) + dirs;
        self.attr.links = u32::try_from(links.max(0)).unwrap_or(u32::MAX);
    }

    pub(crate) fn touch(&mut self, at: Time) {
        (self.attr.modified, self.attr.changed) = (at, at);
    }

    /// The record of a name has come to the origin. It stays for a while, so that a listing that
    /// is under way does not miss it.
    pub(crate) fn name_is_there(&mut self, name: &Bytes, number: u64, now: Instant) {
        if let Some(names) = &mut self.names {
            names.is_there(name, number, now);
        }
    }

    /// A record of this node has come to the origin.
    pub(crate) fn arrived(&mut self, number: u64, epoch: u64, now: Instant) {
        self.pending = self.pending.saturating_sub(1);
        // What goes aside stays together until the last of it.
        if self.aside.is_none() {
            self.extents.forget(number);
        }
        self.cuts.retain(|(_, cut)| *cut != number);
        (self.epoch, self.used, self.ours_at) = (epoch, now, now);
        self.rights.arrived(number, self.pending == 0, epoch);
        if self.pending == 0 {
            if std::mem::take(&mut self.trail).is_torn() && self.beside.is_none() {
                // What somebody else has changed clients are to see.
                (self.base, self.is_made_here) = (None, false);
            }
            (self.confirmed, self.beside, self.begun) = (None, None, None);
            if self.aside.take().is_some() {
                (self.is_refused, self.extents) = (true, Extents::default());
            }
        }
    }

    /// What the origin's file is now, as a reply to a change of ours tells. Others may have been
    /// under way with it, and be answered in any order, unless `is_last`; many changes of a file
    /// system have the same time.
    pub(crate) fn left(&mut self, after: Option<Before>, is_last: bool) {
        let Some(after) = after else { return };
        let is_newer = self.base.is_none_or(|base| {
            (after.changed, after.size) >= (base.changed, base.size)
                || is_last && after.changed >= base.changed
        });
        if is_newer {
            self.base = Some(after);
        }
    }

    /// Names that do not stay are forgotten.
    pub(crate) fn forget_names(&mut self, stays: impl Fn(&Named) -> bool) {
        let Some(names) = &mut self.names else { return };
        let next = self.names_left + 1;
        names.retain(|named| {
            let is_retained = stays(named);
            if !is_retained {
                self.names_forgotten = self.names_forgotten.max(named.left.unwrap_or(next));
            }
            is_retained
        });
        self.names_left = self.names_left.max(self.names_forgotten);
    }

    /// Those that linger no longer leave the overlay. They stay known for listings that have begun
    /// before, and for when the origin is away.
    pub(crate) fn end_names(&mut self, now: Instant) {
        let Some(names) = &mut self.names else { return };
        let next = self.names_left + 1;
        for left in names.ending(now) {
            *left = Some(next);
            self.names_left = next;
        }
    }

    /// With which [`Self::names_left`] a listing goes on. None: it may not, since names that it has
    /// passed by are forgotten.
    pub(crate) fn listing(&self, begun: Listing) -> Option<u64> {
        let is_of_now = self.listed.is_none_or(|(origin, _)| origin != begun.origin);
        let plain = if is_of_now { self.names_left } else { 0 };
        let begun = begun.names_left.unwrap_or(plain);
        (self.names_forgotten..=self.names_left).contains(&begun).then_some(begun)
    }

    /// Whether a listing that begins now may have names to skip that the origin tells later.
    pub(crate) fn skips_names(&self) -> bool {
        self.names_left > 0 || self.names.as_ref().is_some_and(Names::has_some_ours)
    }

    /// What clients see when the origin returns this, in reply to a call of `epoch`.
    pub(crate) fn learn(&mut self, returned: Attr, epoch: u64) -> Attr {
        if self.is_pending() || epoch < self.epoch {
            return self.attr;
        }
        let (modified, changed) = (self.attr.modified, self.attr.changed);
        let state = Before::from(&returned);
        if self.base == Some(state) {
            self.attr = Attr { modified, changed, ..returned };
        } else {
            let is_of_names = self.base.is_some_and(|base| base.modified != state.modified);
            (self.attr, self.base) = (returned, Some(state));
            self.forget_names(|_| false);
            (self.names, self.is_made_here) = (None, false);
            self.rights.forget(epoch);
            // A change of its names is none of its ACL.
            if !is_of_names {
                self.modes = Arc::default();
            }
        }
        self.attr
    }
}

/// What so many bytes take in blocks of a file system.
fn blocks(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

/// The next moment.
fn later(time: Time) -> Time {
    match time.nanos {
        999_999_999.. => Time { secs: time.secs.saturating_add(1), nanos: 0 },
        nanos => Time { secs: time.secs, nanos: nanos + 1 },
    }
}

/// All of them, by what clients call them.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    nodes: HashMap<Handle, Node>,
}

impl Nodes {
    pub(crate) fn find(&self, id: &Handle) -> Option<&Node> {
        self.nodes.get(id)
    }

    pub(crate) fn find_mut(&mut self, id: &Handle) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }

    pub(crate) fn insert(&mut self, id: Handle, node: Node) {
        self.nodes.insert(id, node);
    }

    pub(crate) fn remove(&mut self, id: &Handle) {
        self.nodes.remove(id);
    }

    /// What is known of it may not be so any more: the origin tells, unless changes are on their
    /// way.
    pub(crate) fn forget(&mut self, id: &Handle) {
        let ends = |node: &Node| !node.is_pending() || (node.pending == 0 && node.is_refused);
        if self.nodes.get(id).is_some_and(ends) {
            self.nodes.remove(id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Forgets names that the origin tells by now, and what was not used for longest. Those of a
    /// directory that is being listed stay, and all of one that was made here, for when the origin
    /// is away.
    pub(crate) fn tend(&mut self, now: Instant) {
        for node in self.nodes.values_mut() {
            let is_quiet = node.pending == 0 && node.origin.is_some();
            let Some(names) = &mut node.names else { continue };
            names.is_complete &= names.len() <= NAMES_MAX || !is_quiet;
            if !names.is_complete {
                let is_listed = names.len() <= NAMES_MAX
                    && node.listed_at.is_some_and(|at| now.since(at) <= LISTING);
                node.forget_names(|named| is_listed || named.is_recent(now));
            }
        }
        if self.nodes.len() <= RETAINED_MAX {
            return;
        }
        let quiet = self.nodes.iter().filter(|(_, node)| !node.is_pending());
        let mut quiet: Vec<_> = quiet.map(|(id, node)| (node.used, *id)).collect();
        quiet.sort_unstable_by_key(|(used, _)| *used);
        let excess = self.nodes.len() - RETAINED_MAX;
        for (_, id) in quiet.into_iter().take(excess) {
            self.nodes.remove(&id);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn attr(second: i64) -> Attr {
        let time = Time { secs: second, nanos: 0 };
        Attr {
            kind: FileKind::Regular,
            mode: 0o640,
            links: 1,
            uid: 7,
            gid: 8,
            size: 100,
            used: 4096,
            device: (0, 0),
            fsid: 1,
            fileid: 2,
            accessed: time,
            modified: time,
            changed: time,
            made: None,
        }
    }

    fn handle(number: u8) -> Handle {
        Handle::new(&[number]).unwrap()
    }

    fn met() -> Node {
        let base = Before::from(&attr(5));
        Node::met(attr(5), handle(1), base, Instant::EPOCH)
    }

    #[test]
    fn times_are_reported_as_they_were_reported_until_somebody_else_has_changed_the_file() {
        let mut node = met();
        let at = node.next_time(Time { secs: 9, nanos: 1 });
        (node.pending, node.epoch) = (1, 1);
        node.write(90, Bytes::from_static(&[1; 20]), 4, at);
        assert_eq!((node.attr.size, node.attr.modified), (110, at));
        assert_eq!(node.learn(attr(5), 1), node.attr, "its change is not there yet");
        let there = Attr { size: 110, ..attr(20) };
        node.left(Some(Before::from(&there)), false);
        node.arrived(4, 2, Instant::EPOCH);
        assert!(node.extents.is_empty() && !node.is_pending());
        assert_eq!(node.learn(attr(5), 1).size, 110, "a reply that is older than the change");
        let shown = node.learn(there, 2);
        assert_eq!((shown.changed, shown.modified, shown.size), (at, at, 110));
        assert_eq!(node.learn(attr(30), 2), attr(30));
        assert_eq!(node.base, Some(Before::from(&attr(30))));
    }

    #[test]
    fn a_change_is_later_than_what_was_reported_before() {
        let node = met();
        assert_eq!(node.next_time(Time { secs: 2, nanos: 0 }), Time { secs: 5, nanos: 1 });
        let last = Time { secs: 5, nanos: 999_999_999 };
        assert_eq!(later(last), Time { secs: 6, nanos: 0 });
    }

    #[test]
    fn of_two_changes_at_the_same_time_the_last_one_counts() {
        let mut node = met();
        let at = |size, modified| {
            let modified = Time { secs: modified, nanos: 0 };
            Some(Before { size, modified, ..Before::from(&attr(20)) })
        };
        node.left(at(300, 20), false);
        node.left(at(200, 20), false);
        assert_eq!(node.base, at(300, 20), "the replies have overtaken one another");
        node.left(at(300, 7), true);
        assert_eq!(node.base, at(300, 7), "its time was set");
        for is_last in [false, true] {
            node.left(Some(Before::from(&attr(19))), is_last);
            assert_eq!(node.base, at(300, 7), "it was last when it was sent");
        }
    }

    #[test]
    fn holes_take_no_room() {
        let mut node = Node { attr: Attr { size: 0, used: 0, ..attr(5) }, ..met() };
        let mut write = |offset, len: usize| {
            node.write(offset, Bytes::from(vec![1; len]), 4, Time::default());
            node.attr.used
        };
        assert_eq!(write(1 << 20, 100), 4096);
        assert_eq!(write(1 << 20, 100), 4096);
        assert_eq!(write(5000, 4096), 3 * 4096, "it is in two blocks");
        assert_eq!(write(i64::MAX as u64 - 10, 10), 4 * 4096);
        node.set(&SetAttr { size: Some(2), ..SetAttr::default() }, 5, Time::default());
        assert_eq!(node.attr.used, 4096);
        let mut whole = Node { attr: Attr { size: 8192, used: 8192, ..attr(5) }, ..met() };
        whole.write(0, Bytes::from(vec![1; 8192]), 4, Time::default());
        assert_eq!(whole.attr.used, 8192, "nothing but what was there");
    }

    #[test]
    fn what_was_cut_off_does_not_come_back_from_the_origin() {
        let mut node = met();
        let size = |size| SetAttr { size: Some(size), ..SetAttr::default() };
        node.set(&size(10), 4, Time::default());
        node.set(&size(50), 5, Time::default());
        assert_eq!((node.attr.size, node.cut()), (50, 10));
        node.write(20, Bytes::from_static(b"more"), 6, Time::default());
        node.set(&size(60), 7, Time::default());
        node.pending = 4;
        node.arrived(4, 1, Instant::EPOCH);
        assert_eq!(node.cut(), 10);
        node.arrived(5, 2, Instant::EPOCH);
        // What was written after it is there.
        node.arrived(6, 3, Instant::EPOCH);
        assert_eq!(node.cut(), 50);
        node.arrived(7, 4, Instant::EPOCH);
        assert_eq!(node.cut(), u64::MAX);
    }

    #[test]
    fn a_listing_is_of_the_names_with_which_it_began_however_many_have_left() {
        let (mut node, origin) = (met(), [9; 8]);
        node.names_left = 200_000;
        let listing = |node: &Node, names_left| {
            node.listing(Listing { origin, names_left: Some(names_left) })
        };
        for begun in [200_000, 199_999, 1] {
            assert_eq!(listing(&node, begun), Some(begun));
        }
        let plain = Listing { origin, names_left: None };
        assert_eq!(node.listing(plain), Some(200_000), "of a client of version 2, say");
        node.listed = Some((origin, origin));
        assert_eq!(node.listing(plain), Some(0));
        node.names_forgotten = 199_999;
        assert_eq!(listing(&node, 199_999), Some(199_999));
        assert_eq!(listing(&node, 199_998), None, "what it has passed by is forgotten");
        assert_eq!(node.listing(plain), None);
        node.names_left = 3;
        node.names_forgotten = 0;
        assert_eq!(listing(&node, 4), None, "the node was another one");
        let at = Instant::EPOCH;
        let named = Named { child: None, number: 1, is_pending: false, at, left: Some(3) };
        assert!(named.is_in(2) && !named.is_in(3) && !named.is_in(200_000));
    }
}
