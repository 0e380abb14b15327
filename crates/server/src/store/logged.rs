//! What stores with a write log say of it, whatever it lies on.

use log::Journal;

use crate::metrics::Reading;

/// What went to the log and how full it is.
pub(super) fn readings<W>(journal: &Journal<W>) -> Vec<Reading> {
    let counts = journal.counts();
    let (used, size) = journal.fill();
    let rows = [
        ("nfskit_log_records_total", "Records written to the write log.", counts.records),
        ("nfskit_log_frames_total", "Writes of the log, each for all who waited.", counts.frames),
        ("nfskit_log_written_bytes_total", "Bytes written to the log.", counts.bytes),
        (
            "nfskit_log_refused_total",
            "Stable WRITEs that were made stable in their file instead.",
            counts.refused,
        ),
        (
            "nfskit_log_replies",
            "Replies that the log keeps for retransmissions after a loss of power.",
            journal.replies() as u64,
        ),
        (
            "nfskit_log_replies_waited_total",
            "Replies that waited for room in the log.",
            counts.replies_waited,
        ),
        (
            "nfskit_log_held_back_total",
            "Stable WRITEs that waited, because the log was filling.",
            counts.held_back,
        ),
        ("nfskit_log_used_bytes", "Bytes of the log that are in use.", used),
        ("nfskit_log_size_bytes", "Bytes of the log.", size),
    ];
    rows.map(|(name, help, value)| Reading::new(name, help, value as f64)).into()
}
