//! What a change is of: the files and names that it uses, and its key in the log.

use bytes::Bytes;
use log::Key;
use server::types::Handle;

use super::order::{How, Thing};
use super::record::Change;

/// A name, and the directory it is in.
pub(super) type Place<'n> = (&'n Handle, &'n [u8]);

/// What the log notes of the proxy itself has this number, which no change has.
pub(crate) const OF_LIFE: u64 = 0;

/// What the journal calls a record: each is alone.
pub(crate) fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).expect("8 bytes are neither none nor too many")
}

/// Which change that is.
pub(crate) fn number_of(key: &Key) -> Option<u64> {
    key.as_bytes().try_into().ok().map(u64::from_be_bytes)
}

/// The file whose bytes or attributes a change is of.
pub(crate) fn file(change: &Change) -> Option<Handle> {
    match change {
        Change::Write { file, .. } | Change::Set { file, .. } => Some(*file),
        _ => None,
    }
}

/// The files and directories that a change needs, but for what it makes.
pub(crate) fn involved(change: &Change) -> Vec<Handle> {
    match change {
        Change::Write { file, .. } | Change::Set { file, .. } => vec![*file],
        Change::Make { dir, .. } => vec![*dir],
        Change::Remove { dir, file, .. } => vec![*dir, *file],
        Change::Rename { from, to, file, over } => {
            let mut all = vec![from.0, *file];
            all.extend((to.0 != from.0).then_some(to.0));
            all.extend(*over);
            all
        }
    }
}

/// The file whose state before is in the record of a change: of a RENAME the one that goes for it.
pub(crate) fn has_base_of(change: &Change) -> Option<Handle> {
    match change {
        Change::Write { file, .. } | Change::Set { file, .. } | Change::Remove { file, .. } => {
            Some(*file)
        }
        Change::Rename { over, .. } => *over,
        Change::Make { .. } => None,
    }
}

pub(crate) fn names(change: &Change) -> impl Iterator<Item = (&Handle, &Bytes)> {
    let (one, other) = match change {
        Change::Write { .. } | Change::Set { .. } => (None, None),
        Change::Make { dir, name, .. } | Change::Remove { dir, name, .. } => {
            (Some((dir, name)), None)
        }
        Change::Rename { from, to, .. } => {
            (Some((&from.0, &from.1)), (from != to).then_some((&to.0, &to.1)))
        }
    };
    one.into_iter().chain(other)
}

/// A name as changes use it.
pub(crate) fn named(dir: &Handle, name: &[u8]) -> Thing {
    Thing::Name(*dir, Bytes::copy_from_slice(name))
}

/// What a change uses, `made` being what it makes.
pub(crate) fn uses(change: &Change, made: &Handle) -> Vec<(Thing, How)> {
    let (one, other) = match change {
        Change::Write { file, offset, data } => {
            let how = How::Bytes { from: *offset, to: offset + data.len() as u64 };
            return vec![(Thing::File(*file), how)];
        }
        Change::Make { .. } => (made, None),
        Change::Set { file, .. } | Change::Remove { file, .. } => (file, None),
        Change::Rename { file, over, .. } => (file, over.as_ref()),
    };
    let alone = |file: &Handle| (Thing::File(*file), How::Alone);
    let places = names(change)
        .flat_map(|(dir, name)| [(Thing::File(*dir), How::Shared), (named(dir, name), How::Alone)]);
    places.chain([alone(one)]).chain(other.map(alone)).collect()
}
