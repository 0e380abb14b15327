//! A finished study, and the numbers that others rely on.

use load::probe::Findings;
use load::study::{Configuration, Measured, Plan, WINDOWS};
use perf::record::Durability;
use perf::stats::Estimate;

use super::explain::{self, Explanation};

/// Everything that a report or a record says.
#[derive(Debug)]
pub(crate) struct Outcome {
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
    pub(crate) file_bytes: u64,
    pub(crate) commit_bytes: u64,
    pub(crate) alarm_lateness: Option<net::clock::Lateness>,
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
    pub(crate) read_bytes_max: u32,
    pub(crate) write_bytes_max: u32,
    /// How each subject is called.
    pub(crate) subjects: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalFindings {
    pub(crate) block_us: Estimate,
    pub(crate) ceiling: Estimate,
    pub(crate) trials: usize,
}

impl Outcome {
    /// The link's ceiling: what was emulated, or what bursts showed.
    pub(crate) fn link_mib_per_s(&self) -> Option<f64> {
        let measured = mib_per_s(self.findings.path.capacity.us_per_kib);
        Some(self.target.link_mib_per_s.unwrap_or(measured))
    }

    /// The storage's ceiling: the directory's own, or what COMMITs showed.
    pub(crate) fn storage_mib_per_s(&self) -> f64 {
        let over_the_wire = || mib_per_s(self.findings.path.storage.us_per_kib);
        self.local.map_or_else(over_the_wire, |local| local.ceiling.value)
    }

    /// The smaller of link and storage.
    pub(crate) fn limit_mib_per_s(&self) -> f64 {
        self.storage_mib_per_s().min(self.link_mib_per_s().unwrap_or(f64::INFINITY))
    }

    /// What the recommended configuration gave: in step 4, or in the sweep.
    pub(crate) fn after_mib_per_s(&self) -> f64 {
        match &self.applied {
            Some((_, after)) => after.median(),
            None => self.swept(self.explanation.after),
        }
    }

    pub(crate) fn before_mib_per_s(&self) -> f64 {
        match &self.applied {
            Some((before, _)) => before.median(),
            None => self.swept(self.explanation.before),
        }
    }

    pub(crate) fn efficiency_of_limit(&self) -> f64 {
        self.after_mib_per_s() / self.limit_mib_per_s()
    }

    /// Ratio of after to before, by the model.
    pub(crate) fn predicted_gain(&self) -> f64 {
        let Some((before, after)) = &self.applied else {
            let explanation = &self.explanation;
            return self.predicted(explanation.after) / self.predicted(explanation.before);
        };
        let predict = |measured: &Measured| {
            let server = self.explanation.servers[measured.configuration.subject];
            explain::predict(self.commit_bytes, &self.findings, server, measured).mib_per_s
        };
        predict(after) / predict(before)
    }

    pub(crate) fn measured_gain(&self) -> f64 {
        self.after_mib_per_s() / self.before_mib_per_s()
    }

    pub(crate) fn predicted(&self, configuration: Configuration) -> f64 {
        self.explanation.row(configuration).map_or(f64::NAN, |row| row.prediction.mib_per_s)
    }

    pub(crate) fn measured(&self, configuration: Configuration) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.configuration == configuration)
    }

    fn swept(&self, configuration: Configuration) -> f64 {
        self.measured(configuration).map_or(f64::NAN, Measured::median)
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
        format!(
            "{} x {} {}",
            explain::bytes(configuration.call_bytes),
            configuration.outstanding,
            self.server_name(configuration)
        )
    }

    /// The first word of what the subject is called.
    pub(crate) fn server_name(&self, configuration: Configuration) -> &'static str {
        let name = self.target.subjects[configuration.subject];
        name.split(',').next().unwrap_or(name)
    }

    pub(crate) fn name(&self, configuration: Configuration) -> String {
        format!(
            "{} calls, {}, N={}",
            explain::bytes(configuration.call_bytes),
            self.target.subjects[configuration.subject],
            configuration.outstanding
        )
    }
}

fn mib_per_s(us_per_kib: f64) -> f64 {
    if us_per_kib > 0.0 { 1e6 / us_per_kib / 1024.0 } else { f64::INFINITY }
}
