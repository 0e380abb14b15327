//! One copy of one test: where it works, and whether it may go on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::failed::Failed;
use super::material::Material;

/// See the module's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// The copy's own directory.
    pub(super) dir: &'a Path,
    pub(super) material: &'a Material,
    pub(super) stop: &'a AtomicBool,
}

impl Step<'_> {
    /// Fails when the caller wants no more.
    pub(super) fn may_go_on(&self) -> Result<(), Failed> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Failed::Stopped),
            false => Ok(()),
        }
    }

    /// What the files of the package are copied from.
    pub(super) fn sources(&self) -> PathBuf {
        self.dir.join("sources")
    }

    /// The hierarchy that they are copied into.
    pub(super) fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    pub(super) fn archive(&self) -> PathBuf {
        self.dir.join("package.tar")
    }

    /// Where the archive is unpacked.
    pub(super) fn unpacked(&self) -> PathBuf {
        self.dir.join("unpacked")
    }

    pub(super) fn listed(&self) -> PathBuf {
        self.dir.join("listed")
    }

    /// The two big files.
    pub(super) fn big(&self) -> [PathBuf; 2] {
        ["big", "other-big"].map(|name| self.dir.join(name))
    }

    pub(super) fn copied(&self) -> PathBuf {
        self.dir.join("other-big.copy")
    }

    pub(super) fn random(&self) -> PathBuf {
        self.dir.join("random")
    }

    /// The files of tests 12 and 13.
    pub(super) fn small(&self) -> [PathBuf; 2] {
        ["appended", "appended-and-read"].map(|name| self.dir.join(name))
    }
}

/// The directory of a path in an archive.
pub(super) fn dir_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}
