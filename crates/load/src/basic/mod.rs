//! The basic tests of the Connectathon suite (cthon04): nine programs, ten timed operations.
//!
//! | test | stresses | by default |
//! |---|---|---|
//! | 1 | making files and directories | a tree of 5 levels, 5 files and 2 directories in each |
//! | 2 | removing them | the same tree |
//! | 3 | the way up and down: `..`, names, attributes | 250 times |
//! | 4 | setting and asking attributes | 10 files, 50 times, mode 0 and 0666 |
//! | 5 | writing, then reading | a file of 1 MiB in calls of 8 KiB, 10 times each |
//! | 6 | READDIR while entries vanish | 200 files, 200 passes, a file fewer after each |
//! | 7 | renaming and hard links | 10 files, 10 times |
//! | 8 | symbolic links | 10 files, 20 times |
//! | 9 | the state of the file system | 1500 times |
//!
//! The suite defines what is done, how often, what is checked, and the lines that are printed
//! ([`lines`]; [`log`] reads them). The thesis of 2002 (Boumenot) counts ten tests, because it
//! takes the two halves of test 5 for tests 5 and 6: its tests 7 to 10 are 6 to 9 here.
//!
//! How it differs from the suite:
//!
//! - A server is tested through [`client::session::Session`], the typed procedures of the
//!   production client ([`wire`]): who tests a server wants each operation to arrive there, and no
//!   cache of a client's between him and the answer. A stat is LOOKUP and GETATTR, a close after
//!   writing is a COMMIT, getcwd(3) is a LOOKUP of `..`. For what applications see there is
//!   [`local`]: system calls in a directory of any mounted file system.
//! - Results are compared exactly, and more of them: attributes that a reply tells besides, errors
//!   that must come (a name that is taken, gone, or leads to a directory with files). What the
//!   suite does not do is done outside the time that is measured.
//! - It works in a directory of its own, and removes what it made however it ends; the suite
//!   removes the test directory of before, whatever is in it.
//! - chdir(2) to a directory's parent is not done: descriptors and handles know where they are.
//! - Data are not invalidated through a mapping before they are read (`-DMMAP`): Linux keeps its
//!   cache all the same.
//! - Sizes and numbers that are given are used with `-f`, too.

mod attributes;
pub mod bench;
mod check;
mod clean;
mod data;
pub mod lines;
pub mod local;
pub mod log;
mod lookups;
mod names;
pub mod place;
mod readdir;
mod site;
mod statfs;
mod symlinks;
mod tree;
pub mod wire;

pub use self::bench::{Event, Outcome, run};
pub use self::check::{Ended, Failed};
pub use self::clean::{Leftovers, leftovers, sweep};
pub use self::site::Measured;

/// Bytes of one call of test 5.
pub const CALL_BYTES: u32 = 8192;

/// A program of the suite.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Test {
    Create,
    Remove,
    Lookup,
    Attributes,
    Data,
    Readdir,
    Rename,
    Symlink,
    Statfs,
}

impl Test {
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::Remove,
        Self::Lookup,
        Self::Attributes,
        Self::Data,
        Self::Readdir,
        Self::Rename,
        Self::Symlink,
        Self::Statfs,
    ];

    /// As the suite numbers its programs, from 1.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// What the suite prints behind the program's name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Create => "File and directory creation test",
            Self::Remove => "File and directory removal test",
            Self::Lookup => "lookups across mount point",
            Self::Attributes => "setattr, getattr, and lookup",
            Self::Data => "read and write",
            Self::Readdir => "readdir",
            Self::Rename => "link and rename",
            Self::Symlink => "symlink and readlink",
            Self::Statfs => "statfs",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// `-f`: whether it works, once.
    Functional,
    /// `-t`: whether it works, and how long it takes.
    Timed,
}

impl Mode {
    /// The suite's argument.
    pub fn argument(self) -> &'static str {
        match self {
            Self::Functional => "-f",
            Self::Timed => "-t",
        }
    }
}

/// What is done. Numbers that are not given are the suite's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// In the order of the suite.
    pub tests: Vec<Test>,
    pub mode: Mode,
    /// Of the tree, 1 or more.
    pub levels: Option<u32>,
    pub files: Option<u32>,
    /// In each directory of the tree.
    pub dirs: Option<u32>,
    pub count: Option<u32>,
    /// Length of test 5's file.
    pub file_bytes: u64,
    /// Test 5 writes synchronously (`-s`).
    pub sync: bool,
    /// Work in the directory itself instead of making one (`-n`).
    pub in_place: bool,
    /// Entries that are none of ours do not matter to test 6 (`-i`).
    pub ignore_others: bool,
    /// Go on with the next test when one has failed.
    pub keep_going: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            tests: Test::ALL.to_vec(),
            mode: Mode::Timed,
            levels: None,
            files: None,
            dirs: None,
            count: None,
            file_bytes: 1 << 20,
            sync: false,
            in_place: false,
            ignore_others: false,
            keep_going: false,
        }
    }
}

/// The numbers of one test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sizes {
    pub levels: u32,
    pub files: u32,
    pub dirs: u32,
    pub count: u32,
}

impl Plan {
    /// The numbers of `test`; those it does not know are 1.
    pub fn sizes(&self, test: Test) -> Sizes {
        let (levels, files, dirs, count) = match test {
            Test::Create | Test::Remove => (5, 5, 2, 1),
            Test::Lookup => (1, 1, 1, 250),
            Test::Attributes => (1, 10, 1, 50),
            Test::Data => (1, 1, 1, 10),
            Test::Readdir => (1, 200, 1, 200),
            Test::Rename => (1, 10, 1, 10),
            Test::Symlink => (1, 10, 1, 20),
            Test::Statfs => (1, 1, 1, 1500),
        };
        let tree = matches!(test, Test::Create | Test::Remove);
        let quick = |full: u32, quick: u32| match self.mode {
            Mode::Functional => full.min(quick),
            Mode::Timed => full,
        };
        let (levels, dirs) = (quick(levels, 2), quick(dirs, 2));
        let files = if tree { quick(files, 2) } else { files };
        let count = quick(count, 1);
        let has_files = !matches!(test, Test::Lookup | Test::Data | Test::Statfs);
        Sizes {
            levels: self.levels.filter(|_| tree).unwrap_or(levels),
            files: self.files.filter(|_| has_files).unwrap_or(files),
            dirs: self.dirs.filter(|_| tree).unwrap_or(dirs),
            count: self.count.filter(|_| !tree).unwrap_or(count),
        }
    }

    /// Files and directories of the tree, if they can be counted.
    pub fn tree(&self) -> Option<(u64, u64)> {
        let Sizes { levels, files, dirs, .. } = self.sizes(Test::Create);
        let (mut at_level, mut all) = (1_u64, 0_u64);
        for _ in 0..levels {
            all = all.checked_add(at_level)?;
            at_level = at_level.checked_mul(u64::from(dirs))?;
        }
        Some((all.checked_mul(u64::from(files))?, all.checked_mul(u64::from(dirs))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_suites() {
        let plan = Plan::default();
        assert_eq!(plan.tree(), Some((155, 62)));
        let counts = Test::ALL.map(|test| plan.sizes(test).count);
        assert_eq!(counts, [1, 1, 250, 50, 10, 200, 10, 20, 1500]);
        let files = Test::ALL.map(|test| plan.sizes(test).files);
        assert_eq!(files, [5, 5, 1, 10, 1, 200, 10, 10, 1]);
        let quick = Plan { mode: Mode::Functional, ..plan };
        assert_eq!(quick.tree(), Some((6, 6)));
        assert!(Test::ALL.iter().all(|test| quick.sizes(*test).count == 1));
        assert_eq!(quick.sizes(Test::Readdir).files, 200);
    }

    #[test]
    fn numbers_that_are_given_go_to_the_tests_that_know_them() {
        let given = Plan {
            levels: Some(3),
            files: Some(7),
            dirs: Some(4),
            count: Some(9),
            mode: Mode::Functional,
            ..Plan::default()
        };
        let sizes = given.sizes(Test::Create);
        assert_eq!(sizes, Sizes { levels: 3, files: 7, dirs: 4, count: 1 });
        let sizes = given.sizes(Test::Statfs);
        assert_eq!(sizes, Sizes { levels: 1, files: 1, dirs: 1, count: 9 });
        let huge = Plan { levels: Some(u32::MAX), dirs: Some(2), ..Plan::default() };
        assert_eq!(huge.tree(), None);
        let flat = Plan { levels: Some(1), dirs: Some(0), files: Some(3), ..Plan::default() };
        assert_eq!(flat.tree(), Some((3, 0)));
    }
}
