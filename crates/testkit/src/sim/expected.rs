//! What one client may see: the trees that are possible, and the bytes of its files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wire::nfs3::{FType, FileHandle, NfsStat3};

use super::failure::Failure;
use crate::plan::PART_BYTES;
use crate::reference::content::Content;
use crate::reference::tree::{Change, Doubt, Outcome, Thing, Tree};

/// Possible trees at once; more doubt than that is not distinguished, and the run ends.
const TREES_MAX: usize = 4_096;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Expected {
    trees: BTreeSet<Tree>,
    /// What a crash may bring back: a change that failed may be visible, and not stable.
    before_errors: BTreeSet<Tree>,
    crashes: u64,
    contents: BTreeMap<u32, Content>,
    /// A file is never another one.
    handles: BTreeMap<u32, FileHandle>,
    numbers: HashMap<FileHandle, u32>,
    /// The client's part of the file that all write to.
    pub(crate) part: Content,
    /// An operation ended in doubt: a hidden name may be left.
    pub(crate) may_leave_hidden: bool,
}

impl Expected {
    pub(crate) fn new() -> Self {
        Self {
            trees: BTreeSet::from([Tree::default()]),
            before_errors: BTreeSet::new(),
            crashes: 0,
            contents: BTreeMap::new(),
            handles: BTreeMap::new(),
            numbers: HashMap::new(),
            part: Content::part(PART_BYTES as usize),
            may_leave_hidden: false,
        }
    }

    pub(crate) fn trees(&self) -> &BTreeSet<Tree> {
        &self.trees
    }

    /// One of the possible trees.
    pub(crate) fn any(&self) -> &Tree {
        self.trees.first().expect("what leaves none is a failure that ends the run")
    }

    /// The server has crashed so often.
    pub(crate) fn crashed(&mut self, crashes: u64) {
        if crashes != self.crashes {
            self.crashes = crashes;
            self.trees.extend(std::mem::take(&mut self.before_errors));
        }
    }

    /// A change was seen to end so, and gave this handle.
    pub(crate) fn changed(
        &mut self,
        change: &Change,
        number: u32,
        doubt: Doubt,
        seen: Outcome,
        handle: Option<FileHandle>,
    ) -> Result<(), Failure> {
        let mut possible = BTreeSet::new();
        let mut trees = BTreeSet::new();
        for (outcome, tree) in self.trees.iter().flat_map(|t| t.outcomes(change, number, doubt)) {
            possible.insert(format!("{outcome:?}"));
            if outcome == seen {
                trees.insert(tree);
            }
        }
        if trees.is_empty() || trees.len() > TREES_MAX {
            let what = format!("{seen:?}, not {possible:?}, in {}", self.any());
            return Err(Failure::new(format!("outcome of {}", verb(change)), what));
        }
        self.may_leave_hidden |= doubt != Doubt::default();
        match seen {
            // The journal is stable up to here.
            Ok(()) if !doubt.failed => self.before_errors.clear(),
            _ if doubt.failed => self.before_errors.extend(self.trees.iter().cloned()),
            _ => {}
        }
        self.trees = trees;
        match (change, handle) {
            (
                Change::Create(path, _) | Change::Mkdir(path) | Change::Symlink(path),
                Some(handle),
            ) => {
                // It distinguishes a file that was there from a new one, where both were possible.
                let is_like =
                    |tree: &&Tree| tree.find(path).is_ok_and(|thing| self.is_like(thing, handle));
                let like: BTreeSet<Tree> = self.trees.iter().filter(is_like).cloned().collect();
                if !like.is_empty() {
                    self.trees = like;
                }
                self.found(path, handle)
            }
            _ => Ok(()),
        }
    }

    /// A change of a client that vanished was under way: it may have been done.
    pub(crate) fn may_have_changed(&mut self, change: &Change, number: u32) {
        let done: Vec<_> = self.trees.iter().map(|tree| tree.after(change, number).1).collect();
        self.trees.extend(done);
        self.may_leave_hidden = true;
    }

    /// A path was looked up: the trees in which it leads there are still possible.
    pub(crate) fn looked_up(
        &mut self,
        path: &str,
        seen: Result<FileHandle, NfsStat3>,
    ) -> Result<(), Failure> {
        let outcome = |tree: &Tree| match (tree.find(path), seen) {
            (Ok(thing), Ok(handle)) => self.is_like(thing, handle),
            (Err(expected), Err(seen)) => expected == seen,
            _ => false,
        };
        let trees: BTreeSet<Tree> = self.trees.iter().filter(|t| outcome(t)).cloned().collect();
        if trees.is_empty() {
            let seen = seen.map(|handle| self.numbers.get(&handle).copied());
            let what = format!("{path} is {seen:?} in {}", self.any());
            return Err(Failure::new("lookup", what));
        }
        self.trees = trees;
        Ok(())
    }

    /// Whether a path may lead to things of more than one type, which a handle does not tell.
    pub(crate) fn is_ambiguous(&self, path: &str) -> bool {
        let mut types = self.trees.iter().filter_map(|tree| tree.find(path).ok()).map(type_of);
        types.next().is_some_and(|first| types.any(|other| other != first))
    }

    /// What a path leads to is of this type: the trees in which it is are still possible.
    pub(crate) fn is_a(&mut self, path: &str, ftype: FType) -> Result<(), Failure> {
        let is_one = |tree: &&Tree| tree.find(path).is_ok_and(|thing| type_of(thing) == ftype);
        let trees: BTreeSet<Tree> = self.trees.iter().filter(is_one).cloned().collect();
        if trees.is_empty() {
            return Err(Failure::new(
                "type",
                format!("{path} is a {ftype}, not in {}", self.any()),
            ));
        }
        self.trees = trees;
        Ok(())
    }

    /// What a path with this handle leads to, in all trees that are still possible.
    pub(crate) fn thing_at(&mut self, path: &str, handle: FileHandle) -> Result<Thing, Failure> {
        self.found(path, handle)?;
        let thing = self.any().find(path).cloned();
        thing.map_err(|status| Failure::new("lookup", format!("{path} is {status} after all")))
    }

    /// Whether what is expected may have this handle.
    fn is_like(&self, thing: &Thing, handle: FileHandle) -> bool {
        match thing {
            Thing::Dir => !self.numbers.contains_key(&handle),
            Thing::File(number) | Thing::Link(number, _) => {
                match (self.handles.get(number), self.numbers.get(&handle)) {
                    (Some(known), _) => *known == handle,
                    (None, other) => other.is_none(),
                }
            }
        }
    }

    /// A path leads to this handle.
    fn found(&mut self, path: &str, handle: FileHandle) -> Result<(), Failure> {
        let Some(number) = self.any().number_at(path) else { return Ok(()) };
        if !self.handles.contains_key(&number) && !self.numbers.contains_key(&handle) {
            self.call_it(path, number);
        }
        let known = *self.handles.entry(number).or_insert(handle);
        let of = *self.numbers.entry(handle).or_insert(number);
        match known == handle && of == number {
            true => Ok(()),
            false => {
                let what = format!("{path} is file {number} and has the handle of file {of}");
                Err(Failure::new("identity", what))
            }
        }
    }

    /// Files whose handles nobody has seen differ by their numbers only, which we gave them: what
    /// a path leads to gets this one in all trees.
    fn call_it(&mut self, path: &str, number: u32) {
        let others: BTreeSet<u32> =
            self.trees.iter().filter_map(|tree| tree.number_at(path)).collect();
        for other in others.into_iter().filter(|other| *other != number) {
            let is_other = |tree: &Tree| tree.number_at(path) == Some(other);
            let trees = std::mem::take(&mut self.trees).into_iter();
            self.trees = trees
                .map(|tree| if is_other(&tree) { tree.swapped(number, other) } else { tree })
                .collect();
            // Nobody knows of which of the trees these were.
            let swapped: Vec<Tree> =
                self.before_errors.iter().map(|tree| tree.swapped(number, other)).collect();
            self.before_errors.extend(swapped);
        }
    }

    /// What files a path may lead to.
    pub(crate) fn files_at(&self, path: &str) -> BTreeSet<u32> {
        let number = |tree: &Tree| match tree.find(path) {
            Ok(Thing::File(number)) => Some(*number),
            _ => None,
        };
        self.trees.iter().filter_map(number).collect()
    }

    pub(crate) fn handle_of(&self, number: u32) -> Option<FileHandle> {
        self.handles.get(&number).copied()
    }

    pub(crate) fn number_of(&self, handle: &FileHandle) -> Option<u32> {
        self.numbers.get(handle).copied()
    }

    pub(crate) fn content(&mut self, number: u32) -> &mut Content {
        self.contents.entry(number).or_default()
    }

    /// Files that have bytes which are not stable, and their handles.
    pub(crate) fn unsettled(&self) -> Vec<(u32, FileHandle)> {
        let unsettled = self.contents.iter().filter(|(_, content)| !content.is_settled());
        let with_handle = unsettled
            .filter_map(|(number, _)| self.handles.get(number).map(|handle| (*number, *handle)));
        with_handle.collect()
    }

    /// Whether the file has a name in every possible tree.
    pub(crate) fn has_name(&self, number: u32) -> bool {
        self.trees.iter().all(|tree| tree.names_of(number) > 0)
    }

    /// How many names a file may have.
    pub(crate) fn names_of(&self, number: u32) -> BTreeSet<u32> {
        self.trees.iter().map(|tree| tree.names_of(number)).collect()
    }

    /// Its client has vanished: what it had not made stable may be there or not.
    pub(crate) fn abandoned(&mut self) {
        self.contents.values_mut().for_each(Content::doubt_all);
        self.part.doubt_all();
        self.may_leave_hidden = true;
    }

    /// Compares what a walk has found with each possible tree.
    pub(crate) fn compare(
        &mut self,
        found: &BTreeMap<String, Found>,
        losses: u64,
    ) -> Result<(), Failure> {
        let mut wrong = Vec::new();
        for tree in &self.trees {
            match self.differs(tree, found, losses) {
                None => return Ok(()),
                Some(what) => wrong.push(format!("{what} (in {tree})")),
            }
        }
        let first = wrong.into_iter().next().unwrap_or_default();
        Err(Failure::new("walk", first))
    }

    fn differs(&self, tree: &Tree, found: &BTreeMap<String, Found>, losses: u64) -> Option<String> {
        if let Some((path, _)) = tree.things().iter().find(|(path, _)| !found.contains_key(*path)) {
            return Some(format!("{path} is missing"));
        }
        for (path, found) in found {
            let thing = match tree.things().get(path) {
                Some(thing) => thing,
                None if self.may_leave_hidden && path.contains(".nfs") => continue,
                None => return Some(format!("{path} is there")),
            };
            if !self.is_like(thing, found.handle) {
                return Some(format!("{path} is another file"));
            }
            let number = match (thing, found.ftype) {
                (Thing::Dir, FType::Dir) => continue,
                (Thing::File(number), FType::Reg) => number,
                (Thing::Link(number, text), FType::Lnk) => {
                    if text.as_bytes() != found.bytes {
                        return Some(format!("{path} leads to {:?}", found.bytes));
                    }
                    number
                }
                (_, other) => return Some(format!("{path} is a {other}")),
            };
            if found.names != tree.names_of(*number) && !self.may_leave_hidden {
                return Some(format!("{path} has {} names", found.names));
            }
            if let Thing::File(number) = thing {
                let empty = Content::default();
                let content = self.contents.get(number).unwrap_or(&empty);
                let size = found.bytes.len();
                if !content.sizes(losses).contains(&size) {
                    return Some(format!(
                        "{path} has {size} bytes, not {:?}",
                        content.sizes(losses)
                    ));
                }
                if let Err(what) = content.check(0, size, &found.bytes, losses) {
                    return Some(format!("{path}: {what}"));
                }
            }
        }
        None
    }
}

/// What a walk has found at a path.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) handle: FileHandle,
    pub(crate) ftype: FType,
    pub(crate) names: u32,
    /// Of a file, or the text of a link.
    pub(crate) bytes: Vec<u8>,
}

/// Of what type a thing is.
pub(crate) fn type_of(thing: &Thing) -> FType {
    match thing {
        Thing::Dir => FType::Dir,
        Thing::File(_) => FType::Reg,
        Thing::Link(..) => FType::Lnk,
    }
}

/// What a change is called.
pub(crate) fn verb(change: &Change) -> &'static str {
    match change {
        Change::Create(..) => "create",
        Change::Mkdir(_) => "mkdir",
        Change::Symlink(_) => "symlink",
        Change::Remove(_) => "remove",
        Change::Rmdir(_) => "rmdir",
        Change::Rename(..) => "rename",
        Change::Link(..) => "link",
    }
}
