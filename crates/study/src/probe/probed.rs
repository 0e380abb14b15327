//! What was found of a path, and how.

use harness::verdict::Gain;
use load::probe::Findings;
use load::probe::concurrency::{self, Concurrency};
use load::study as sweep;
use net::shape::profile::Profile;
use perf::model::saved::SavedPath;
use perf::model::whatif::of_path::PathCase;
use perf::stats::Estimate;
use perf::units::Nanos;

use super::base::Base;
use crate::explain::{Explanation, half};

/// Everything that was found, and how.
#[derive(Debug)]
pub(super) struct Probed {
    pub(super) url: String,
    pub(super) version: u32,
    pub(super) proto: &'static str,
    pub(super) link: Profile,
    pub(super) started: String,
    pub(super) took: Nanos,
    pub(super) findings: Findings,
    pub(super) concurrency: Concurrency,
    pub(super) explanation: Explanation,
    pub(super) commit_bytes: u64,
    /// What changes are held to.
    pub(super) base: Base,
    /// By how much repetitions of the sweep differ, percent: the median of its points; `None` of
    /// one repetition.
    pub(super) noise_pct: Option<f64>,
    /// Repetitions of the sweep.
    pub(super) repeats: usize,
    /// Its runs in which too little became stable, and all.
    pub(super) unanswered: (usize, usize),
    /// The longest that any of them waited for a COMMIT after its end.
    pub(super) drain_most: Nanos,
    pub(super) neighbours_share: Option<f64>,
}

impl Probed {
    /// Every WRITE is stable when it is answered: there are no COMMITs, and what being stable takes
    /// is in T_op.
    pub(super) fn is_stable_only(&self) -> bool {
        self.version == 2 || self.findings.stable_only
    }

    /// As `nfskit model` takes it: the window that the model recommends.
    pub(super) fn saved(&self) -> SavedPath {
        let Findings { path, .. } = &self.findings;
        let after = self.explanation.after;
        let transfer = sweep::transfer(&after, self.commit_bytes);
        let case = PathCase::of(*path, self.explanation.servers[0], transfer);
        // Data go there.
        let us_per_kib = self.link.there.link.gap_per_byte_ps as f64 * 1024.0 / 1e6;
        let small_kib = f64::from(concurrency::SMALL_BYTES) / 1024.0;
        let small = (small_kib, self.concurrency.small_us.value);
        let case = case.behind(self.latency_us(), us_per_kib, small);
        let spread = self.findings.spread(&self.concurrency.small_us);
        let saved = SavedPath::of(&case, &spread, self.base.points.clone());
        let (runs_differ_pct, stable_in_op) = (self.base.runs_differ_pct, self.is_stable_only());
        SavedPath { runs_differ_pct, stable_in_op, ..saved }
    }

    /// L of the emulated link, one way; 0 without one.
    pub(super) fn latency_us(&self) -> f64 {
        let links = self.link.links();
        (links.there.latency + links.back.latency).as_micros_f64() / 2.0
    }

    /// What the recommended window gains over one call at a time; none where the sweep does not
    /// have both, or they are the same.
    pub(super) fn gain(&self) -> Option<Gain> {
        let Explanation { before, after, .. } = &self.explanation;
        let (before, after) = (self.explanation.row(*before)?, self.explanation.row(*after)?);
        let predicted = after.prediction.mib_per_s / before.prediction.mib_per_s;
        let measured = after.measured_mib_per_s? / before.measured_mib_per_s?;
        let is_change = before.configuration != after.configuration;
        let noise_pct = 2.0 * self.noise_pct.unwrap_or(0.0);
        is_change.then_some(Gain { predicted, measured, noise_pct })
    }

    /// Windows of the sweep of which no run shows a throughput.
    pub(super) fn unmeasured(&self) -> usize {
        let rows = self.explanation.rows.iter();
        rows.filter(|row| row.measured_mib_per_s.is_none()).count()
    }

    /// 2 T_prop, halved.
    pub(super) fn t_prop(&self) -> Estimate {
        half(self.findings.round_trip)
    }
}
