//! A finished study, and the numbers that others rely on.

use harness::verdict::Gain;
use load::probe::Findings;
use load::study::{Configuration, Drain, Measured, Plan, WINDOWS};
use net::shape::profile::Profile;
use perf::model::transaction::Path;
use perf::record::Durability;
use perf::stats::Estimate;
use perf::units::Nanos;

use super::logged::Logged;
use crate::explain::{self, Explanation};
use crate::models;

/// Everything that a report or a record says.
#[derive(Debug)]
pub(crate) struct ServerStudy {
    pub(crate) plan: Plan,
    pub(crate) started: String,
    pub(crate) command: String,
    pub(crate) target: TargetInfo,
    pub(crate) findings: Findings,
    /// T_B and ceiling of the directory itself, when it is of this machine.
    pub(crate) local: Option<LocalFindings>,
    pub(crate) measured: Vec<Measured>,
    pub(crate) explanation: Explanation,
    /// Step 4, where it could be applied: before and after.
    pub(crate) applied: Option<(Measured, Measured)>,
    /// Stable WRITEs without a write log and with one, if that was requested.
    pub(crate) logged: Option<Logged>,
    pub(crate) file_bytes: u64,
    pub(crate) commit_bytes: u64,
    pub(crate) drain: Drain,
    pub(crate) emulator: Option<net::shape::calibration::Calibration>,
    /// Share of all processors that others used during the run.
    pub(crate) neighbours_share: Option<f64>,
    pub(crate) warnings: Vec<perf::record::Warning>,
}

#[derive(Clone, Debug)]
pub(crate) struct TargetInfo {
    pub(crate) kind: &'static str,
    pub(crate) url: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) link: String,
    pub(crate) link_mib_per_s: Option<f64>,
    pub(crate) durability: Durability,
    pub(crate) is_on_this_host: bool,
    pub(crate) read_bytes_max: u32,
    pub(crate) write_bytes_max: u32,
    /// How each subject is called.
    pub(crate) subjects: Vec<&'static str>,
}

impl TargetInfo {
    /// As a server answers before it is looked at: that what it calls stable is.
    pub(super) fn new(kind: &'static str, link: &Profile, subjects: &[&'static str]) -> Self {
        Self {
            kind,
            url: None,
            path: None,
            link: link.to_string(),
            link_mib_per_s: link.mib_per_s(),
            durability: Durability::Stable,
            is_on_this_host: false,
            read_bytes_max: 0,
            write_bytes_max: 0,
            subjects: subjects.to_vec(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalFindings {
    pub(crate) block_us: Estimate,
    pub(crate) ceiling: Estimate,
    /// Blocks that `block_us` rests on, and passes over the file that `ceiling` does.
    pub(crate) trials: usize,
    pub(crate) ceilings: usize,
}

impl ServerStudy {
    /// The link's ceiling: what was emulated; otherwise the most that anything showed, bursts
    /// without COMMITs or the sweep.
    pub(crate) fn link_mib_per_s(&self) -> f64 {
        let swept = self.measured.iter().filter_map(Measured::median).fold(0.0, f64::max);
        let observed = mib_per_s(self.findings.path.capacity.us_per_kib).max(swept);
        self.target.link_mib_per_s.unwrap_or(observed)
    }

    /// The storage's ceiling: the directory's own, or what COMMITs showed; infinite when they cost
    /// nothing that could be measured.
    pub(crate) fn storage_mib_per_s(&self) -> f64 {
        match &self.local {
            Some(local) => local.ceiling.value,
            None if self.commits_cost_nothing() => f64::INFINITY,
            None => mib_per_s(self.findings.path.storage.us_per_kib),
        }
    }

    /// Neither FILE_SYNC nor COMMIT takes noticeably longer than UNSTABLE: faster than any device
    /// that could keep the data.
    pub(crate) fn commits_cost_nothing(&self) -> bool {
        let storage = &self.findings.path.storage;
        storage.sync_us < FREE_SYNC_US && storage.us_per_kib < FREE_US_PER_KIB
    }

    /// The smaller of link and storage.
    pub(crate) fn limit_mib_per_s(&self) -> f64 {
        self.storage_mib_per_s().min(self.link_mib_per_s())
    }

    /// What the recommended configuration gave: in step 4, or in the sweep. Not finite where no
    /// COMMIT was answered in time, like all that follows from it.
    pub(crate) fn after_mib_per_s(&self) -> f64 {
        self.sides()[1].and_then(Measured::median).unwrap_or(f64::NAN)
    }

    pub(crate) fn before_mib_per_s(&self) -> f64 {
        self.sides()[0].and_then(Measured::median).unwrap_or(f64::NAN)
    }

    /// Before and after: what step 4 compared, or the same two of the sweep.
    pub(crate) fn sides(&self) -> [Option<&Measured>; 2] {
        let Explanation { before, after, .. } = self.explanation;
        match &self.applied {
            Some((before, after)) => [Some(before), Some(after)],
            None => [before, after].map(|configuration| self.measured(configuration)),
        }
    }

    pub(crate) fn efficiency_of_limit(&self) -> f64 {
        self.after_mib_per_s() / self.limit_mib_per_s()
    }

    /// Ratio of after to before, by the model whose base is held to what the sweep measured.
    pub(crate) fn predicted_gain(&self) -> f64 {
        let time = match &self.applied {
            Some(_) => self.plan.application_time,
            None => self.plan.run_time,
        };
        let path = self.path_as_swept();
        let predict = |configuration: Configuration| {
            let server = self.explanation.servers[configuration.subject];
            self.planned(time).predict(&path, server, &configuration).mib_per_s
        };
        predict(self.explanation.after) / predict(self.explanation.before)
    }

    /// The probe's path, held to the sweep's run before the change.
    fn path_as_swept(&self) -> Path {
        let (path, before) = (&self.findings.path, self.explanation.before);
        let server = self.explanation.servers[before.subject];
        self.planned(self.plan.run_time).held_to(path, server, &before, self.swept(before))
    }

    fn planned(&self, time: Nanos) -> explain::PlannedRun {
        explain::PlannedRun {
            commit_bytes: self.commit_bytes,
            time,
            drain: self.drain,
            simulation: Nanos::ZERO,
        }
    }

    pub(crate) fn measured_gain(&self) -> f64 {
        self.after_mib_per_s() / self.before_mib_per_s()
    }

    /// The change, predicted and measured.
    pub(crate) fn gain(&self) -> Gain {
        let noise_pct = self.sides().into_iter().flatten().filter_map(models::spread_pct).sum();
        let (predicted, measured) = (self.predicted_gain(), self.measured_gain());
        Gain { predicted, measured, noise_pct }
    }

    pub(crate) fn predicted(&self, configuration: Configuration) -> f64 {
        self.explanation.row(configuration).map_or(f64::NAN, |row| row.prediction.mib_per_s)
    }

    pub(crate) fn measured(&self, configuration: Configuration) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.configuration == configuration)
    }

    fn swept(&self, configuration: Configuration) -> f64 {
        self.measured(configuration).and_then(Measured::median).unwrap_or(f64::NAN)
    }

    /// How often each configuration ran.
    pub(crate) fn repeats(&self) -> usize {
        self.measured.first().map_or(0, |measured| measured.mib_per_s.len())
    }

    /// The curve that the unsuffixed metrics speak of: the recommended size on the last subject.
    pub(crate) fn main_curve(&self) -> impl Iterator<Item = Configuration> {
        let after = self.explanation.after;
        WINDOWS.into_iter().map(move |outstanding| Configuration { outstanding, ..after })
    }

    /// For a terminal's columns: `8 KiB x 1 stall`.
    pub(crate) fn short_name(&self, configuration: Configuration) -> String {
        let Configuration { call_bytes, outstanding, .. } = configuration;
        let (size, server) = (explain::bytes(call_bytes), self.server_name(configuration));
        format!("{size} x {outstanding} {server}")
    }

    /// The first word of what the subject is called.
    pub(crate) fn server_name(&self, configuration: Configuration) -> &'static str {
        let name = self.target.subjects[configuration.subject];
        name.split(',').next().unwrap_or(name)
    }

    pub(crate) fn name(&self, configuration: Configuration) -> String {
        let Configuration { call_bytes, outstanding, subject } = configuration;
        let (size, server) = (explain::bytes(call_bytes), self.target.subjects[subject]);
        format!("{size} calls, {server}, N={outstanding}")
    }
}

/// An NVMe device with a power-safe cache takes 10 us or more for a sync, and 0.1 us for a KiB.
const FREE_SYNC_US: f64 = 8.0;
const FREE_US_PER_KIB: f64 = 0.02;

fn mib_per_s(us_per_kib: f64) -> f64 {
    if us_per_kib > 0.0 { 1e6 / us_per_kib / 1024.0 } else { f64::INFINITY }
}
