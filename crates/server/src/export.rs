//! What is exported, and how its callers are seen.

use crate::types::Caller;

/// User and group of nobody, as Linux has them.
const NOBODY: u32 = 65_534;

/// A tree offered to clients. This version has one, the whole of a store.
#[derive(Clone, Debug)]
pub struct Export {
    /// The path clients mount, absolute: `/` or `/export`.
    pub name: String,
    /// Part of every file handle; keep it as long as clients may have handles.
    pub id: u32,
    /// Changes are refused with NFS3ERR_ROFS.
    pub read_only: bool,
    pub squash: Squash,
    /// Who AUTH_NONE and squashed callers are.
    pub anonymous: Caller,
    /// Take calls with AUTH_NONE; otherwise they are refused with AUTH_TOOWEAK.
    pub anonymous_allowed: bool,
}

impl Default for Export {
    /// `/`, writable, ids as stated, nobody for the rest.
    fn default() -> Self {
        Self {
            name: "/".to_owned(),
            id: 0,
            read_only: false,
            squash: Squash::None,
            anonymous: Caller { uid: NOBODY, gid: NOBODY, gids: Vec::new() },
            anonymous_allowed: true,
        }
    }
}

/// Whose ids are replaced by the anonymous caller's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Squash {
    /// Nobody's: AUTH_SYS ids are taken as they are.
    #[default]
    None,
    /// Those of uid 0.
    Root,
    /// Everyone's.
    All,
}
