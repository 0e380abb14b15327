//! What all programs know, wherever they run, and the names of their files.

use std::sync::Arc;

use net::clock::Clock;
use parking_lot::Mutex;

use super::truth::Truth;
use crate::plan::{LOCKS, LOGS};
use crate::sim::history::History;
use crate::sim::trace::Trace;

/// What all programs know, wherever they run.
pub(super) struct Scene {
    pub(super) clock: Clock,
    pub(super) trace: Arc<Mutex<Trace>>,
    pub(super) history: Arc<History>,
    /// From the beginning of one place of a file to that of the next.
    pub(super) stride: u32,
    pub(super) truth: Mutex<Truth>, // guards what may be seen, never held across a wait
}

/// Files that are there from the beginning, and stay.
pub(super) fn own_names() -> impl Iterator<Item = String> {
    (0..LOGS).map(log_name).chain((0..LOCKS).map(lock_name))
}

pub(super) fn log_name(log: u32) -> String {
    format!("log{log}")
}

pub(super) fn lock_name(lock: u32) -> String {
    format!("lock{lock}")
}
