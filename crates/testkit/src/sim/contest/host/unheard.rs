//! Errors that nobody has heard of.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use perf::units::Instant;
use wire::nfs3::FileHandle;

use crate::reference::register::Ticket;

/// Writes of whose outcome their program hears nothing, by descriptor, until somebody on the host
/// hears of an error of their file.
pub(super) type Silent = Mutex<BTreeMap<u64, Unheard>>;

/// A program's writes of whose outcome it hears nothing.
pub(in crate::sim::contest) struct Unheard {
    pub(in crate::sim::contest) file: FileHandle,
    /// By place.
    pub(in crate::sim::contest) tickets: Vec<(u32, Ticket)>,
    /// Since when all of it is stable, if nobody hears of an error.
    pub(in crate::sim::contest) stable: Option<Instant>,
}
