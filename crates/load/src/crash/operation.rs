//! What the load consists of.

use std::fmt;

use wire::nfs3::StableHow;

use super::content::Generation;

/// A file, directory or symbolic link, by the order of making.
pub type Number = u32;

/// A name in a directory.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Key {
    pub dir: Number,
    pub name: u32,
}

impl Key {
    pub fn text(self) -> String {
        format!("n{}", self.name)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    Unchecked,
    Guarded,
    Exclusive,
}

/// One call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Operation {
    Write {
        file: Number,
        offset: u64,
        bytes: u32,
        generation: Generation,
        stable: StableHow,
    },
    /// `bytes` 0 is to the end of the file.
    Commit {
        file: Number,
        offset: u64,
        bytes: u32,
    },
    Read {
        file: Number,
        offset: u64,
        bytes: u32,
    },
    Truncate {
        file: Number,
        size: u64,
    },
    SetMode {
        object: Number,
        mode: u32,
    },
    SetTime {
        object: Number,
        seconds: u32,
    },
    Create {
        name: Key,
        how: How,
        mode: u32,
    },
    MakeDir {
        name: Key,
        mode: u32,
    },
    Symlink {
        name: Key,
        target: String,
    },
    Link {
        file: Number,
        name: Key,
    },
    Remove {
        name: Key,
    },
    RemoveDir {
        name: Key,
    },
    Rename {
        from: Key,
        to: Key,
    },
}

impl Operation {
    /// What is counted.
    pub fn procedure(&self) -> &'static str {
        match self {
            Self::Write { stable: StableHow::Unstable, .. } => "WRITE unstable",
            Self::Write { .. } => "WRITE stable",
            Self::Commit { .. } => "COMMIT",
            Self::Read { .. } => "READ",
            Self::Truncate { .. } | Self::SetMode { .. } | Self::SetTime { .. } => "SETATTR",
            Self::Create { .. } => "CREATE",
            Self::MakeDir { .. } => "MKDIR",
            Self::Symlink { .. } => "SYMLINK",
            Self::Link { .. } => "LINK",
            Self::Remove { .. } => "REMOVE",
            Self::RemoveDir { .. } => "RMDIR",
            Self::Rename { .. } => "RENAME",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.name)
    }
}
