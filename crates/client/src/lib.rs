//! NFS client: mount, typed procedures, windowed transfers. Knows nothing of any server.
//!
//! - [`url`]: targets, `nfs://host/export`.
//! - [`mount`]: from a target to a [`session::Session`]: portmapper, MOUNT, FSINFO.
//! - [`session`]: a connection, a credential and the root; [`ops`] has one typed method of it for
//!   each procedure.
//! - [`files`]: a mounted file system as its users see it, with what it remembers ([`cache`]) and
//!   fetches in advance ([`read_ahead`]).
//! - [`locks`]: of the programs that share one mounted file system.
//! - [`write_behind`]: writers go on at once, WRITEs and COMMITs follow; five policies.
//! - [`walk`]: whether a listing gets anywhere.
//! - [`transfer`]: sequential writes and reads with many calls outstanding.

pub mod cache;
pub mod error;
pub mod files;
pub mod locks;
pub mod mount;
pub mod ops;
pub mod read_ahead;
pub mod session;
pub mod transfer;
pub mod url;
mod v2;
pub mod walk;
pub mod write_behind;
