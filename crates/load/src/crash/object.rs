//! A file, directory or symbolic link: what is promised of it, and which calls are about it.

use std::ops::Range;

use wire::nfs3::{FType, Fattr3, FileHandle};

use super::content::Content;
use super::loss::{Kind, Lost};

/// What an object is.
#[derive(Clone, Debug)]
pub enum Body {
    File(Content),
    Dir,
    Symlink(String),
}

#[derive(Clone, Debug)]
pub struct Object {
    pub body: Body,
    pub handle: Option<FileHandle>,
    pub fileid: Option<u64>,
    /// Those it may have, the newest last; none is promised if there is none.
    pub(super) modes: Vec<u32>,
    /// Modification times in seconds, likewise.
    pub(super) times: Vec<u32>,
    /// Calls about it that are under way.
    pub(super) uses: Uses,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub(super) shared: u32,
    pub(super) is_exclusive: bool,
    pub(super) spans: Vec<Range<u64>>,
}

impl Object {
    pub(super) fn new(body: Body, mode: Option<u32>) -> Self {
        Self {
            body,
            handle: None,
            fileid: None,
            modes: mode.into_iter().collect(),
            times: Vec::new(),
            uses: Uses::default(),
        }
    }

    pub fn content(&self) -> Option<&Content> {
        match &self.body {
            Body::File(content) => Some(content),
            _ => None,
        }
    }

    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match &mut self.body {
            Body::File(content) => Some(content),
            _ => None,
        }
    }

    /// Whether nobody else works on it.
    pub fn is_idle(&self) -> bool {
        self.uses.shared == 0 && !self.uses.is_exclusive
    }

    /// Whether these bytes may be written or committed now.
    pub fn admits(&self, span: &Range<u64>) -> bool {
        let apart = |other: &Range<u64>| other.end <= span.start || span.end <= other.start;
        !self.uses.is_exclusive && self.uses.spans.iter().all(apart)
    }

    /// What is wrong with the attributes after a crash, but for the size.
    pub fn compare(&self, found: &Fattr3, links: Option<u32>) -> Vec<Lost> {
        let mut lost = Vec::new();
        let mut wrong = |what| lost.push(Lost { kind: Kind::Attributes, what, bytes: 0 });
        let is_one_of = |all: &[u32], one| all.is_empty() || all.contains(&one);
        if !is_one_of(&self.modes, found.mode & 0o777) {
            let modes: Vec<String> = self.modes.iter().map(|mode| format!("{mode:o}")).collect();
            wrong(format!("mode {:o}, promised {}", found.mode & 0o777, modes.join(" or ")));
        }
        if !is_one_of(&self.times, found.mtime.seconds) {
            let (seconds, times) = (found.mtime.seconds, &self.times);
            wrong(format!("modified at {seconds}, promised {times:?}"));
        }
        if let Some(links) = links.filter(|links| *links != found.nlink) {
            wrong(format!("{} links, promised {links}", found.nlink));
        }
        lost
    }

    /// Whether something found by its name can be it but for its fileid.
    pub(super) fn is_renumbered(&self, found: &Fattr3) -> bool {
        self.expected_type() == found.ftype && !self.is(found)
    }

    fn expected_type(&self) -> FType {
        match self.body {
            Body::File(_) => FType::Reg,
            Body::Dir => FType::Dir,
            Body::Symlink(_) => FType::Lnk,
        }
    }

    /// Whether something found by name can be it.
    pub fn is(&self, found: &Fattr3) -> bool {
        let same = self.fileid.is_none_or(|fileid| fileid == found.fileid);
        same && self.expected_type() == found.ftype
    }
}
