//! What was found after a crash, compared with a tree.

use std::collections::{BTreeMap, BTreeSet};

use wire::nfs3::Fattr3;

use super::loss::{Kind, Lost};
use super::object::Object;
use super::operation::{Key, Number};
use super::tree::{Names, Tree};

impl Tree {
    /// What a directory was found to have after a crash: what is wrong, and by which name to find
    /// which object.
    pub fn compare(
        &self,
        dir: Number,
        found: &BTreeMap<String, Fattr3>,
    ) -> (Vec<Lost>, Vec<(Key, Number)>) {
        let mut lost = Vec::new();
        let mut present = Vec::new();
        let mut allowed = BTreeSet::new();
        let mut wrong = |what| lost.push(Lost { kind: Kind::Names, what, bytes: 0 });
        for (key, number) in self.names.iter().filter(|(key, _)| key.dir == dir) {
            if self.is_doubted(*key) {
                continue;
            }
            allowed.insert(key.text());
            match self.difference(*key, Some(*number), found) {
                None => present.push((*key, *number)),
                Some(what) => wrong(what),
            }
        }
        for doubt in &self.doubts {
            allowed.extend(doubt.keys().filter(|key| key.dir == dir).map(Key::text));
        }
        for name in found.keys().filter(|name| !allowed.contains(*name)) {
            wrong(format!("{name} is there and was removed, or never made"));
        }
        (lost, present)
    }

    /// What the names of a directory lead to, or may lead to.
    pub(super) fn leads_to(&self, dir: Number) -> Vec<(Key, Number)> {
        let doubted = self.doubts.iter().flat_map(|doubt| doubt.before.iter().chain(&doubt.after));
        let doubted = doubted.filter_map(|(key, number)| Some((*key, (*number)?)));
        let names = self.names.iter().map(|(key, number)| (*key, *number));
        names.chain(doubted).filter(|(key, _)| key.dir == dir).collect()
    }

    /// Whether a fileid is one of ours: what has it and is not found by its own name is another
    /// file.
    pub(super) fn knows(&self, fileid: u64) -> bool {
        self.objects.values().any(|object| object.fileid == Some(fileid))
    }

    /// What is not as a name should be.
    fn difference(
        &self,
        key: Key,
        expected: Option<Number>,
        found: &BTreeMap<String, Fattr3>,
    ) -> Option<String> {
        let object = expected.and_then(|number| self.objects.get(&number));
        match (object, found.get(&key.text())) {
            (None, None) => None,
            (None, Some(_)) => Some(format!("{key} is there")),
            (Some(_), None) => Some(format!("{key} is gone")),
            (Some(object), Some(attributes)) if object.is(attributes) => None,
            (Some(Object { fileid: Some(fileid), .. }), Some(found)) if *fileid != found.fileid => {
                let found = found.fileid;
                Some(format!("{key} is another file: fileid {found}, promised {fileid}"))
            }
            (Some(_), Some(_)) => Some(format!("{key} is another file")),
        }
    }

    /// Changes of names that were not answered: each was done whole, or not at all. `found` has all
    /// directories. Gives by which names to find what.
    pub fn compare_open(
        &self,
        found: &BTreeMap<Number, BTreeMap<String, Fattr3>>,
    ) -> (Vec<Lost>, Vec<(Key, Number)>) {
        let mut lost = Vec::new();
        let mut present = Vec::new();
        let none = BTreeMap::new();
        for doubt in &self.doubts {
            let differs = |names: &Names| {
                let mut all = names.iter();
                all.find_map(|(key, number)| {
                    self.difference(*key, *number, found.get(&key.dir).unwrap_or(&none))
                })
            };
            let is_seen = doubt.keys().all(|key| found.contains_key(&key.dir));
            let [before, after] = [differs(&doubt.before), differs(&doubt.after)];
            let names = match (before, after) {
                _ if !is_seen => continue,
                (None, _) => &doubt.before,
                (_, None) => &doubt.after,
                (Some(before), Some(after)) => {
                    let call = doubt.operation.procedure();
                    let what = format!("a {call} is half done: {before}, and {after}");
                    lost.push(Lost { kind: Kind::Names, what, bytes: 0 });
                    continue;
                }
            };
            present.extend(names.iter().filter_map(|(key, number)| Some((*key, (*number)?))));
        }
        (lost, present)
    }

    /// Whether names are as before a call that was not answered, and whether as after it; `found`
    /// has what these names lead to. None: the tree has no doubt about it.
    pub fn shows(
        &self,
        number: u64,
        found: &BTreeMap<Number, BTreeMap<String, Fattr3>>,
    ) -> Option<(bool, bool)> {
        let none = BTreeMap::new();
        let doubt = self.doubts.iter().find(|doubt| doubt.number == number)?;
        let shows = |names: &Names| {
            names.iter().all(|(key, object)| {
                self.difference(*key, *object, found.get(&key.dir).unwrap_or(&none)).is_none()
            })
        };
        Some((shows(&doubt.before), shows(&doubt.after)))
    }

    /// Whether an object has a name, whatever became of the calls that were not answered.
    pub(super) fn must_be(&self, number: Number) -> bool {
        let has = |names: &Names| names.iter().any(|(_, object)| *object == Some(number));
        let mut names = self.names.iter().filter(|(_, object)| **object == number);
        let is_settled = names.any(|(key, _)| !self.is_doubted(*key));
        is_settled || self.doubts.iter().any(|doubt| has(&doubt.before) && has(&doubt.after))
    }

    /// A path by which an object was known, below the directory `top`.
    pub(super) fn path(&self, number: Number, top: &str) -> String {
        match self.names.iter().find(|(_, object)| **object == number) {
            Some((key, _)) => format!("{}/{key}", self.path(key.dir, top)),
            None => top.to_owned(),
        }
    }

    /// How many names a file must have, if that is known.
    pub fn links(&self, number: Number) -> Option<u32> {
        let is_file = self.objects.get(&number)?.content().is_some();
        let count = self.names.values().filter(|other| **other == number).count();
        (is_file && !self.doubts_object(number)).then(|| u32::try_from(count).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::{FType, FileHandle, NfsTime};

    use super::*;
    use crate::crash::operation::{How, Operation};
    use crate::crash::tree::{Answer, ROOT};

    fn handle(number: u8) -> FileHandle {
        FileHandle::new(&[number; 8]).unwrap()
    }

    fn key(name: u32) -> Key {
        Key { dir: ROOT, name }
    }

    fn attributes(fileid: u64, ftype: FType) -> Fattr3 {
        let time = NfsTime { seconds: 5, nseconds: 0 };
        Fattr3 { ftype, fileid, ..Fattr3::of_file(0, time) }
    }

    fn create(name: u32) -> Operation {
        Operation::Create { name: key(name), how: How::Guarded, mode: 0o644 }
    }

    /// A tree in which a file was made and answered, for each of these numbers.
    fn tree_of(numbers: &[u8]) -> Tree {
        let mut tree = Tree::new(handle(0));
        for number in numbers {
            let ticket = tree.begin(create(u32::from(*number)));
            let answer = Answer::Made { handle: handle(*number), fileid: Some(u64::from(*number)) };
            tree.answered(&ticket, answer);
        }
        tree
    }

    fn done(tree: &mut Tree, operation: Operation) {
        let ticket = tree.begin(operation);
        tree.answered(&ticket, Answer::Done);
    }

    /// What is wrong if the directory has these names, each with a file's number.
    fn wrong(tree: &Tree, found: &[(&str, u64)]) -> Vec<String> {
        let files = found
            .iter()
            .map(|(name, fileid)| ((*name).to_owned(), attributes(*fileid, FType::Reg)));
        let listing: BTreeMap<String, Fattr3> = files.collect();
        let (mut lost, _) = tree.compare(ROOT, &listing);
        lost.extend(tree.compare_open(&BTreeMap::from([(ROOT, listing)])).0);
        assert!(lost.iter().all(|lost| lost.kind == Kind::Names));
        lost.into_iter().map(|lost| lost.what).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_name_that_was_made_is_there_and_one_that_was_removed_is_not() {
        let mut tree = tree_of(&[1, 2]);
        assert_eq!(wrong(&tree, &[("n1", 1), ("n2", 2)]), NOTHING);
        assert_eq!(wrong(&tree, &[("n2", 2)]), ["n1 is gone"]);
        assert_eq!(
            wrong(&tree, &[("n1", 7), ("n2", 2)]),
            ["n1 is another file: fileid 7, promised 1"]
        );
        done(&mut tree, Operation::Remove { name: key(1) });
        assert_eq!(wrong(&tree, &[("n2", 2)]), NOTHING);
        let still = "n1 is there and was removed, or never made";
        assert_eq!(wrong(&tree, &[("n1", 1), ("n2", 2)]), [still]);
    }

    #[test]
    fn what_was_not_answered_is_there_or_not_also_in_later_rounds() {
        let mut tree = tree_of(&[1]);
        tree.begin(create(2));
        tree.begin(Operation::Remove { name: key(1) });
        for _ in 0..2 {
            for found in [&[][..], &[("n1", 1)], &[("n2", 9)], &[("n1", 1), ("n2", 9)]] {
                assert_eq!(wrong(&tree, found), NOTHING, "{found:?}");
            }
            assert_eq!(wrong(&tree, &[("n1", 3)]).len(), 1, "another file");
            tree.settle();
        }
        assert_eq!(tree.settled().count(), 0, "nobody works on them any more");
    }

    #[test]
    fn a_rename_is_done_whole_or_not_at_all() {
        let rename = || Operation::Rename { from: key(1), to: key(2) };
        let mut tree = tree_of(&[1, 2]);
        tree.begin(rename());
        assert_eq!(wrong(&tree, &[("n1", 1), ("n2", 2)]), NOTHING);
        assert_eq!(wrong(&tree, &[("n2", 1)]), NOTHING);
        for half in [&[("n1", 1), ("n2", 1)][..], &[("n1", 1)], &[("n2", 2)], &[]] {
            let wrong = wrong(&tree, half);
            assert!(wrong.len() == 1 && wrong[0].contains("half done"), "{half:?}: {wrong:?}");
        }
        let mut tree = tree_of(&[1, 2]);
        done(&mut tree, rename());
        assert_eq!(wrong(&tree, &[("n2", 1)]), NOTHING);
        assert_eq!(wrong(&tree, &[("n1", 1), ("n2", 2)]).len(), 2);
    }

    #[test]
    fn attributes_are_those_that_were_set_last() {
        let mut tree = tree_of(&[1]);
        let (_, number, _) = tree.settled().next().unwrap();
        let wrong = |tree: &Tree, mode, seconds| {
            let mtime = NfsTime { seconds, nseconds: 0 };
            let found = Fattr3 { mode, mtime, ..attributes(1, FType::Reg) };
            tree.object(number).unwrap().compare(&found, tree.links(number)).len()
        };
        assert_eq!([wrong(&tree, 0o644, 5), wrong(&tree, 0o600, 5)], [0, 1]);
        done(&mut tree, Operation::SetTime { object: number, seconds: 77 });
        assert_eq!([wrong(&tree, 0o644, 77), wrong(&tree, 0o644, 5)], [0, 1]);
        tree.begin(Operation::SetMode { object: number, mode: 0o600 });
        let all = [0o644, 0o600, 0o666].map(|mode| wrong(&tree, mode, 77));
        assert_eq!(all, [0, 0, 1], "a call that was not answered");
        tree.settle();
        done(&mut tree, Operation::SetMode { object: number, mode: 0o600 });
        assert_eq!(wrong(&tree, 0o644, 77), 1);
        done(&mut tree, Operation::Link { file: number, name: key(3) });
        assert_eq!(wrong(&tree, 0o600, 77), 1, "a link is missing");
        tree.begin(Operation::Truncate { file: number, size: 1 });
        assert_eq!(wrong(&tree, 0o600, 5), 1, "any time, and still the link");
    }
}
