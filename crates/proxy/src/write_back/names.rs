//! Names of a directory that are served from here, by name and in the order of a listing.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use perf::units::Instant;
use server::types::Handle;

use super::nodes::LINGER;

/// A name whose state here is another than at the origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Named {
    /// What has the name; nothing.
    pub(crate) child: Option<Handle>,
    /// Of the record that made it so; for cookies.
    pub(crate) number: u64,
    pub(crate) is_pending: bool,
    /// When it became so, here or there.
    pub(crate) at: Instant,
    /// It has left the overlay, with which `Node::names_left`.
    pub(crate) left: Option<u64>,
}

impl Named {
    /// Whether a listing that has begun with this `Node::names_left` has it from here.
    pub(crate) fn is_in(&self, listing: u64) -> bool {
        self.left.is_none_or(|left| left > listing)
    }

    /// Its change is on its way, or has come to the origin so lately that a listing of there may
    /// not have it.
    pub(crate) fn is_recent(&self, now: Instant) -> bool {
        self.is_pending || now.since(self.at) <= LINGER
    }
}

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// It was made here, and nobody else has been there: what is not among them is not there.
    pub(crate) is_complete: bool,
    /// Shared with parts of listings that are under way.
    table: Arc<Table>,
}

/// Names at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    known: BTreeMap<Bytes, Named>,
    /// Those that something has, by their records' numbers: a part of a listing looks at no more
    /// of them than it has.
    listed: BTreeMap<u64, Bytes>,
}

impl Names {
    pub(crate) fn of_new() -> Self {
        Self { is_complete: true, ..Self::default() }
    }

    /// As they are now, whatever becomes of them.
    pub(crate) fn now(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.known.len()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&Named> {
        self.table.find(name)
    }

    pub(crate) fn insert(&mut self, name: Bytes, named: Named) {
        let Table { known, listed } = Arc::make_mut(&mut self.table);
        if let Some(before) = known.insert(name.clone(), named) {
            unlist(listed, &name, &before);
        }
        if named.child.is_some() {
            listed.insert(named.number, name);
        }
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&Named) -> bool) {
        let Table { known, listed } = Arc::make_mut(&mut self.table);
        known.retain(|name, named| {
            let stays = stays(named);
            if !stays {
                unlist(listed, name, named);
            }
            stays
        });
    }

    /// The change of this number has come to the origin.
    pub(crate) fn is_there(&mut self, name: &[u8], number: u64, now: Instant) {
        let known = &mut Arc::make_mut(&mut self.table).known;
        if let Some(named) = known.get_mut(name).filter(|named| named.number == number) {
            (named.is_pending, named.at) = (false, now);
        }
    }

    /// Those that are to leave the overlay, to be marked so.
    pub(crate) fn ending(&mut self, now: Instant) -> impl Iterator<Item = &mut Option<u64>> {
        let ends = move |named: &&mut Named| named.left.is_none() && !named.is_recent(now);
        let known = &mut Arc::make_mut(&mut self.table).known;
        known.values_mut().filter(ends).map(|named| &mut named.left)
    }

    /// Whether something has a name here that has not left the overlay.
    pub(crate) fn has_some_ours(&self) -> bool {
        self.table.from(0).any(|(_, named)| named.left.is_none())
    }

    pub(crate) fn are_free(&self) -> bool {
        self.table.listed.is_empty()
    }
}

impl Table {
    pub(crate) fn has_some(&self) -> bool {
        !self.listed.is_empty()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&Named> {
        self.known.get(name)
    }

    /// What has a name by a record of this number or a later one, in their order.
    pub(crate) fn from(&self, number: u64) -> impl Iterator<Item = (&Bytes, &Named)> {
        let named = |name| Some((name, self.known.get(name)?));
        self.listed.range(number..).filter_map(move |(_, name)| named(name))
    }
}

/// A RENAME has two names by one record.
fn unlist(listed: &mut BTreeMap<u64, Bytes>, name: &[u8], named: &Named) {
    if listed.get(&named.number).is_some_and(|listed| *listed == name) {
        listed.remove(&named.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_each_name_once_by_its_last_record() {
        let mut names = Names::default();
        let child = Handle::new(&[1]);
        // The last ones are moved, made anew, and removed.
        let all = [
            ("b", 1, child),
            ("a", 2, child),
            ("c", 3, child),
            ("b", 4, None),
            ("d", 4, child),
            ("a", 5, child),
            ("c", 6, None),
        ];
        for (name, number, child) in all {
            let at = Instant::EPOCH;
            let named = Named { child, number, is_pending: false, at, left: None };
            names.insert(Bytes::from_static(name.as_bytes()), named);
        }
        let from = |names: &Names, number| {
            let all = names.now();
            all.from(number).map(|(name, named)| (name[0], named.number)).collect::<Vec<_>>()
        };
        assert_eq!(from(&names, 0), [(b'd', 4), (b'a', 5)]);
        assert_eq!(from(&names, 5), [(b'a', 5)]);
        names.retain(|named| named.child.is_some());
        assert_eq!((names.len(), from(&names, 0).len()), (2, 2));
        names.retain(|_| false);
        assert!(names.are_free());
    }
}
