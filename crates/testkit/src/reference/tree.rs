//! Names: a map from paths to what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wire::nfs3::NfsStat3;

/// Components with `/` between them; empty for the directory that all begins in.
pub type Path = String;

/// What a path leads to. Files and links have numbers, so that they may have several names.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Thing {
    Dir,
    File(u32),
    Link(u32, String),
}

/// What changes names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    Create(Path, How),
    Mkdir(Path),
    /// A link whose text is its own path.
    Symlink(Path),
    Remove(Path),
    Rmdir(Path),
    Rename(Path, Path),
    Link(Path, Path),
}

perf::named! {
    /// How a file is made (RFC 1813 section 3.3.8).
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum How {
        Unchecked => "unchecked",
        Guarded => "guarded",
        Exclusive => "exclusive",
    }
}

/// What was seen of a change.
pub type Outcome = Result<(), NfsStat3>;

/// What else than its one outcome an operation may have, by what happened while it was under way.
///
/// | while it was under way | it is done | and reported |
/// |---|---|---|
/// | nothing; messages lost, late, repeated; connections cut | once | as it ended |
/// | the server lost its memory of replies (a crash) | once, or twice in a row | the last |
/// | the disk failed or was full | the same, or not at all | the same, or the error |
/// | its client vanished | once, or not at all | nothing |
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Doubt {
    /// The server lost its memory of replies.
    pub forgot: bool,
    /// The disk gave errors.
    pub failed: bool,
    /// The disk was full.
    pub full: bool,
}

/// See the module's head.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Tree {
    things: BTreeMap<Path, Thing>,
}

impl Tree {
    /// What may be seen of a change, each with the tree that it leaves. `number` is that of what is
    /// made.
    pub fn outcomes(&self, change: &Change, number: u32, doubt: Doubt) -> Vec<(Outcome, Self)> {
        let once = self.after(change, number);
        let mut all = vec![once];
        if doubt.forgot {
            let done = &all[0].1;
            // What is exclusive is known by its verifier, and is the same success.
            let again = match (change, &all[0].0) {
                (Change::Create(_, How::Exclusive), Ok(())) => (Ok(()), done.clone()),
                _ => done.after(change, number),
            };
            all.push(again);
        }
        let errors = [(doubt.failed, NfsStat3::Io), (doubt.full, NfsStat3::NoSpc)];
        for (_, status) in errors.into_iter().filter(|(may, _)| *may) {
            let states: BTreeSet<Self> = all.iter().map(|(_, tree)| tree.clone()).collect();
            let unchanged = std::iter::once(self.clone());
            all.extend(states.into_iter().chain(unchanged).map(|tree| (Err(status), tree)));
        }
        all
    }

    /// A change that is done once.
    pub fn after(&self, change: &Change, number: u32) -> (Outcome, Self) {
        let mut tree = self.clone();
        match tree.apply(change, number) {
            Ok(()) => (Ok(()), tree),
            Err(status) => (Err(status), self.clone()),
        }
    }

    fn apply(&mut self, change: &Change, number: u32) -> Outcome {
        match change {
            Change::Create(path, how) => match self.check_free(path) {
                Err(NfsStat3::Exist) if *how == How::Unchecked => match self.things.get(path) {
                    Some(Thing::File(_)) => {}
                    _ => return Err(NfsStat3::Exist),
                },
                Err(status) => return Err(status),
                Ok(()) => self.put(path, Thing::File(number)),
            },
            Change::Mkdir(path) => {
                self.check_free(path)?;
                self.put(path, Thing::Dir);
            }
            Change::Symlink(path) => {
                self.check_free(path)?;
                self.put(path, Thing::Link(number, path.clone()));
            }
            Change::Remove(path) => match self.find(path)? {
                Thing::Dir => return Err(NfsStat3::IsDir),
                _ => drop(self.things.remove(path)),
            },
            Change::Rmdir(path) => match self.find(path)? {
                Thing::Dir if !self.is_empty(path) => return Err(NfsStat3::NotEmpty),
                Thing::Dir => drop(self.things.remove(path)),
                _ => return Err(NfsStat3::NotDir),
            },
            Change::Rename(from, to) => self.rename(from, to)?,
            Change::Link(file, link) => {
                let thing = self.find(file)?.clone();
                self.check_parent(link)?;
                if thing == Thing::Dir {
                    return Err(NfsStat3::Inval);
                }
                self.check_free(link)?;
                self.put(link, thing);
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &Path, thing: Thing) {
        self.things.insert(path.clone(), thing);
    }

    /// What is at a path, found a component at a time.
    ///
    /// # Errors
    /// As LOOKUP says it.
    pub fn find(&self, path: &str) -> Result<&Thing, NfsStat3> {
        for (at, _) in path.match_indices('/') {
            match self.things.get(&path[..at]) {
                Some(Thing::Dir) => {}
                Some(_) => return Err(NfsStat3::NotDir),
                None => return Err(NfsStat3::NoEnt),
            }
        }
        if path.is_empty() {
            return Ok(&Thing::Dir);
        }
        self.things.get(path).ok_or(NfsStat3::NoEnt)
    }

    /// The parent is there and a directory; found first, as by LOOKUP, and then looked at.
    fn check_parent(&self, path: &str) -> Outcome {
        match self.find(parent(path))? {
            Thing::Dir => Ok(()),
            _ => Err(NfsStat3::NotDir),
        }
    }

    fn check_free(&self, path: &str) -> Outcome {
        self.check_parent(path)?;
        match self.things.contains_key(path) {
            true => Err(NfsStat3::Exist),
            false => Ok(()),
        }
    }

    fn is_empty(&self, path: &str) -> bool {
        !self.things.keys().any(|other| is_below(other, path))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Outcome {
        self.find(parent(from))?;
        self.find(parent(to))?;
        self.check_parent(from)?;
        self.check_parent(to)?;
        let moved = self.find(from)?.clone();
        let target = self.things.get(to);
        let same_file = moved != Thing::Dir && target == Some(&moved);
        if from == to || same_file {
            return Ok(());
        }
        if moved == Thing::Dir && is_below(to, from) {
            return Err(NfsStat3::Inval);
        }
        match (&moved, target) {
            (Thing::Dir, Some(Thing::Dir)) if !self.is_empty(to) => {
                return Err(NfsStat3::NotEmpty);
            }
            (_, None) | (Thing::Dir, Some(Thing::Dir)) => {}
            (Thing::Dir, Some(_)) => return Err(NfsStat3::NotDir),
            (_, Some(Thing::Dir)) => return Err(NfsStat3::IsDir),
            (_, Some(_)) => {}
        }
        self.things.remove(to);
        let keys = self.things.keys().filter(|path| *path == from || is_below(path, from));
        let moving: Vec<Path> = keys.cloned().collect();
        for path in moving {
            if let Some(thing) = self.things.remove(&path) {
                self.things.insert(format!("{to}{}", &path[from.len()..]), thing);
            }
        }
        Ok(())
    }

    /// The names in a directory.
    pub fn names(&self, dir: &str) -> BTreeSet<String> {
        let below = self.things.keys().filter(|path| path != &dir && parent(path) == dir);
        below.map(|path| last(path).to_owned()).collect()
    }

    /// How many names a file or link has.
    pub fn names_of(&self, number: u32) -> u32 {
        let same = |thing: &&Thing| match thing {
            Thing::Dir => false,
            Thing::File(other) | Thing::Link(other, _) => *other == number,
        };
        u32::try_from(self.things.values().filter(same).count()).unwrap_or(u32::MAX)
    }

    /// The number of the file or link at a path.
    pub fn number_at(&self, path: &str) -> Option<u32> {
        match self.find(path) {
            Ok(Thing::File(number) | Thing::Link(number, _)) => Some(*number),
            _ => None,
        }
    }

    /// The same with the numbers of two files or links exchanged.
    #[must_use]
    pub fn swapped(&self, one: u32, other: u32) -> Self {
        let mut tree = self.clone();
        for thing in tree.things.values_mut() {
            if let Thing::File(number) | Thing::Link(number, _) = thing {
                *number = match *number {
                    number if number == one => other,
                    number if number == other => one,
                    number => number,
                };
            }
        }
        tree
    }

    pub fn things(&self) -> &BTreeMap<Path, Thing> {
        &self.things
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (path, thing) in &self.things {
            match thing {
                Thing::Dir => write!(f, " {path}/")?,
                Thing::File(number) => write!(f, " {path}=f{number}")?,
                Thing::Link(number, _) => write!(f, " {path}->l{number}")?,
            }
        }
        f.write_str(" }")
    }
}

/// The directory that a path is in.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// The last name of a path.
pub fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether a path leads through a directory.
pub fn is_below(path: &str, dir: &str) -> bool {
    path.len() > dir.len()
        && path.starts_with(dir)
        && (dir.is_empty() || path.as_bytes()[dir.len()] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(tree: &Tree, changes: &[Change]) -> Tree {
        changes.iter().zip(100..).fold(tree.clone(), |tree, (change, number)| {
            let (outcome, after) = tree.after(change, number);
            assert_eq!(outcome, Ok(()), "{change:?}");
            after
        })
    }

    #[test]
    fn a_change_that_nothing_disturbs_has_one_outcome() {
        let tree = make(&Tree::default(), &[Change::Mkdir("a".into())]);
        let change = Change::Create("a/b".into(), How::Guarded);
        let outcomes = tree.outcomes(&change, 1, Doubt::default());
        assert_eq!(outcomes.len(), 1);
        assert_eq!(outcomes[0].1.find("a/b"), Ok(&Thing::File(1)));
    }

    #[test]
    fn a_change_whose_reply_may_be_forgotten_may_fail_as_if_it_had_been_done() {
        let tree = make(&Tree::default(), &[Change::Create("a".into(), How::Guarded)]);
        let forgot = Doubt { forgot: true, ..Doubt::default() };
        let removed = tree.outcomes(&Change::Remove("a".into()), 1, forgot);
        let outcomes: Vec<_> = removed.iter().map(|(outcome, _)| *outcome).collect();
        assert_eq!(outcomes, [Ok(()), Err(NfsStat3::NoEnt)]);
        assert!(removed.iter().all(|(_, tree)| tree.things.is_empty()), "it is gone either way");
        let made = tree.outcomes(&Change::Create("b".into(), How::Exclusive), 1, forgot);
        assert!(made.iter().all(|(outcome, _)| outcome.is_ok()), "known by its verifier");
    }

    #[test]
    fn a_directory_takes_everything_below_with_it() {
        let (a, b) = (|| "a".to_owned(), || "b".to_owned());
        let below = Change::Create("a/x".into(), How::Guarded);
        let tree = make(&Tree::default(), &[Change::Mkdir(a()), below, Change::Rename(a(), b())]);
        assert_eq!(tree.to_string(), "{ b/ b/x=f101 }");
        assert_eq!(tree.after(&Change::Rename(b(), "b/y".into()), 1).0, Err(NfsStat3::Inval));
        assert_eq!(tree.after(&Change::Rmdir(b()), 1).0, Err(NfsStat3::NotEmpty));
        assert_eq!(tree.names("b"), BTreeSet::from(["x".to_owned()]));
    }
}
