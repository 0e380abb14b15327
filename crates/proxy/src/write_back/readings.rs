//! What is counted, and what is done about once a second.

use server::metrics::Reading;
use server::store::Store;

use super::Inner;

impl<S: Store> Inner<S> {
    pub(super) fn tend(&self) {
        self.state.lock().nodes.tend(self.clock.now());
    }

    pub(super) fn all_readings(&self) -> Vec<Reading> {
        let mut readings = self.store.readings();
        let state = self.state.lock();
        let (used, size) = state.journal.fill();
        let counts = state.counts;
        let now = self.clock.now();
        let rows = [
            (
                "nfskit_writeback_changes_total",
                "Changes that were answered from the log.",
                counts.taken,
            ),
            ("nfskit_writeback_data_bytes_total", "Bytes of data in them.", counts.taken_bytes),
            (
                "nfskit_writeback_arrived_total",
                "Changes that have come to the origin.",
                counts.arrived - counts.lost,
            ),
            (
                "nfskit_writeback_passed_total",
                "Changes that the origin made while their callers waited.",
                counts.passed_through,
            ),
            (
                "nfskit_writeback_conflicts_total",
                "Changes that met one of somebody else at the origin.",
                counts.conflicts,
            ),
            (
                "nfskit_writeback_held_back_total",
                "Callers that had to wait for room in the log.",
                counts.held_back,
            ),
            (
                "nfskit_writeback_tried_again_total",
                "Times that the origin did not take a change.",
                counts.tried_again,
            ),
            (
                "nfskit_writeback_set_aside_total",
                "Changes that the origin has refused for good.",
                counts.set_aside,
            ),
            ("nfskit_writeback_pending", "Changes on their way.", state.ops.len() as u64),
            (
                "nfskit_writeback_troubled",
                "Of these, those that the origin did not take when they were tried last.",
                state.troubled as u64,
            ),
            ("nfskit_writeback_under_way", "Changes that are calls now.", state.under_way as u64),
            (
                "nfskit_writeback_nodes",
                "Files and directories answered from here.",
                state.nodes.len() as u64,
            ),
            ("nfskit_writeback_aliases", "Files with a name of ours.", self.aliases.len() as u64),
            ("nfskit_writeback_log_used_bytes", "Bytes of the log that are needed.", used),
            ("nfskit_writeback_log_size_bytes", "Bytes of the log.", size),
            (
                "nfskit_writeback_log_failed",
                "1: the log cannot be written, and nothing is answered from it.",
                u64::from(state.journal.is_failed()),
            ),
            (
                "nfskit_writeback_fenced",
                "1: somebody else has the lease, and nothing is sent.",
                u64::from(state.is_fenced),
            ),
        ];
        readings.extend(rows.map(|(name, help, value)| Reading::new(name, help, value as f64)));
        readings.push(Reading::new(
            "nfskit_writeback_oldest_seconds",
            "How long the oldest change is on its way.",
            state.oldest(now).as_secs_f64(),
        ));
        readings
    }
}
