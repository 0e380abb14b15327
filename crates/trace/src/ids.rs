//! Places in the tables of files and of flows.

/// A file's place in the table.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId(pub(super) u32);

impl FileId {
    /// No file, or one of those that found no place.
    pub const OTHER: Self = Self(0);
}

/// A flow's place in the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FlowId(pub(super) u32);
