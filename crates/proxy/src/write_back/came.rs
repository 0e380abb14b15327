//! What came of a change at the origin.

use server::types::{Handle, Wcc};

use super::describe::describe;
use super::events::{Event, Gone};
use super::record::{Change, Outcome};

/// For the log and for the nodes.
#[derive(Default)]
pub(super) struct Came {
    pub(super) outcome: Outcome,
    /// Directories, as the change has left them.
    pub(super) dirs: Vec<(Handle, Wcc)>,
    /// A file that is not served from here any more.
    pub(super) dropped: Option<Handle>,
    /// Nothing else was under way with the file.
    pub(super) is_last: bool,
    /// So many are of the file's [`answered`](crate::write_back::nodes::Node::answered).
    pub(super) answered: usize,
    /// The origin has its names and files otherwise than clients were shown: it tells.
    pub(super) differs: bool,
    /// It was not carried out, or not all of it.
    pub(super) is_lost: bool,
    /// That, to be recorded first.
    pub(super) lost: Option<Event>,
}

impl Came {
    pub(super) fn dirs(dirs: impl IntoIterator<Item = (Handle, Wcc)>) -> Self {
        Self { dirs: dirs.into_iter().collect(), ..Self::default() }
    }

    pub(super) fn dropping(file: Handle) -> Self {
        Self { dropped: Some(file), ..Self::default() }
    }

    /// The change was not made, or only in part.
    pub(super) fn differing(dropped: Handle) -> Self {
        Self { differs: true, ..Self::dropping(dropped) }
    }

    /// All of a change, or some, was not carried out.
    pub(super) fn lost(self, change: &Change, why: Gone) -> Self {
        let change = describe(change);
        Self { is_lost: true, lost: Some(Event::NotMade { change, why }), ..self }
    }
}
