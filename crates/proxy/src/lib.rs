//! A store whose files are another server's: what `nfskit serve nfs://origin/export` serves.
//!
//! ```text
//!   client --NFS--> engine --Store--> Remote --Session, as the caller--> origin
//!                                       |- handles    ours <-> the origin's
//!                                       |- disk       blocks of files that are cached here
//!                                       |- ahead      what sequential readers will ask for
//!                                       |- neutral    the protocol's types <-> the store's
//!                                       '- fate       the reply to a client whose call failed
//! ```
//!
//! Each call of a client becomes a call of the origin, under the ids of its caller. Nothing is
//! answered that the origin has not answered, but for bytes that were read ahead or are on the
//! disk, so there is no state to lose: a proxy that is killed has lost no write, and its successor
//! has the same handles.
//!
//! It stands on [`client::session::Session`], not on [`client::files::Files`]: the caches of a
//! mount answer one host's programs by nfs(5), with attributes that are seconds old. A proxy's
//! clients have such caches themselves, and what reaches the proxy is what they want to know now:
//! GETATTR when a file is opened. Answering that from a second cache would break close-to-open.

mod above;
mod ahead;
mod disk;
mod exclusive;
mod fate;
pub mod fuzzing;
mod handles;
mod known;
mod listing;
mod named;
mod naming;
mod neutral;
mod readings;
mod remote;
mod store;
mod transfer;
mod whole;
pub mod write_back;

pub use self::handles::{Handles, HandlesError};
pub use self::remote::{Options, Remote};
