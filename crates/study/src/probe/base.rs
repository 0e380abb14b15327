//! Throughput of the path as it is, to which what a change would give is held.
//!
//! The sweep's runs are short. Where a server writes back early, or a cache takes what its disk
//! will not, a transfer of seconds has another throughput. So the windows to predict
//! most are run for longer; where those show something else, so are others, and the sweep's points
//! are left out.

use load::error::Error;
use load::study::{Configuration, Study, Subject};
use perf::model::transaction::{Path, Server};
use perf::model::whatif::believed::{TransferPoint, observed};
use perf::units::Nanos;

use crate::explain::{Explanation, PlannedRun, Row};

/// What changes are held to.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    /// Without the beginning and the end of runs.
    pub(super) points: Vec<TransferPoint>,
    /// By how much the longer run that differs most is above its point in the sweep, percent of
    /// that; `None` where there is no longer run, or none differs.
    pub(super) differs_pct: Option<f64>,
    /// By how much the two longer runs of a configuration differ, at most, percent of their mean.
    pub(super) runs_differ_pct: Option<f64>,
}

impl Base {
    /// By the sweep alone.
    pub(super) fn of_sweep(explanation: &Explanation, path: &Path, run: PlannedRun) -> Self {
        let point = |row: &Row| {
            let measured = row.measured_mib_per_s?;
            point(&run, path, explanation.servers[0], &row.configuration, measured)
        };
        let points = explanation.rows.iter().filter_map(point).collect();
        Self { points, ..Self::default() }
    }
}

/// Some COMMITs of a slow disk.
pub(super) const TIME: Nanos = Nanos::from_secs(1);

/// Calls that a client has outstanding which nobody has tuned: the thesis's.
const USUAL: usize = 4;

/// What is run for longer where the first two differ, of each size.
const MORE: [usize; 3] = [1, USUAL, 16];

/// Runs that differ by less say the same, percent. Guess: what a model is off by that explains.
const ALIKE_PCT: f64 = 10.0;

/// By runs of [`TIME`], where they say something else than the sweep.
pub(super) async fn measured<S: Subject>(
    study: &mut Study<'_, S>,
    explanation: &Explanation,
    path: &Path,
    planned: PlannedRun,
) -> Result<Base, Error> {
    let server = explanation.servers[0];
    let long = PlannedRun { time: TIME, ..planned };
    let swept = Base::of_sweep(explanation, path, planned).points;
    let first = [explanation.after, Configuration { outstanding: USUAL, ..explanation.before }];
    let mut longer = runs(study, &first, &long, path, server).await?;
    let runs_differ_pct = longer.iter().map(|long| long.differ_pct).reduce(f64::max);
    let points = |longer: &[Long]| longer.iter().map(|long| long.point).collect::<Vec<_>>();
    let alike_pct = explanation.choice.noise_pct.unwrap_or(0.0).max(ALIKE_PCT);
    let differs_pct = differs_pct(&swept, &points(&longer)).filter(|pct| pct.abs() > alike_pct);
    if differs_pct.is_none() {
        let points = joined(&points(&longer), &swept);
        return Ok(Base { points, differs_pct, runs_differ_pct });
    }
    let sizes = study.call_bytes();
    let every = sizes.iter().flat_map(|&call_bytes| {
        MORE.map(|outstanding| Configuration { subject: 0, call_bytes, outstanding })
    });
    let more: Vec<Configuration> = every.filter(|one| !first.contains(one)).collect();
    longer.extend(runs(study, &more, &long, path, server).await?);
    Ok(Base { points: points(&longer), differs_pct, runs_differ_pct })
}

/// What runs of a configuration have at the mean, and by how much of it they differ.
struct Long {
    point: TransferPoint,
    differ_pct: f64,
}

/// Two runs of each, the second time in the other order. One in which too little became
/// stable in time leaves out its configuration.
async fn runs<S: Subject>(
    study: &mut Study<'_, S>,
    configurations: &[Configuration],
    run: &PlannedRun,
    path: &Path,
    server: Server,
) -> Result<Vec<Long>, Error> {
    let mut first = Vec::new();
    for configuration in configurations {
        first.push(study.run_long(*configuration, TIME).await?);
    }
    let mut longer = Vec::new();
    for (configuration, first) in configurations.iter().zip(first).rev() {
        let second = study.run_long(*configuration, TIME).await?;
        let Some((first, second)) = first.zip(second) else { continue };
        let mean = f64::midpoint(first, second);
        let differ_pct = 100.0 * (first - second).abs() / mean;
        let point = point(run, path, server, configuration, mean);
        longer.extend(point.map(|point| Long { point, differ_pct }));
    }
    Ok(longer)
}

fn point(
    run: &PlannedRun,
    path: &Path,
    server: Server,
    configuration: &Configuration,
    mib_per_s: f64,
) -> Option<TransferPoint> {
    let mib_per_s = mib_per_s / run.ends(path, server, configuration);
    let transfer = run.transfer(configuration);
    (mib_per_s.is_finite() && mib_per_s > 0.0).then_some(TransferPoint {
        call_bytes: transfer.call_bytes,
        outstanding: transfer.outstanding,
        mib_per_s,
    })
}

/// Of the longer run that differs most.
fn differs_pct(swept: &[TransferPoint], longer: &[TransferPoint]) -> Option<f64> {
    let differs = longer.iter().filter_map(|long| {
        let short = observed(swept, long.call_bytes, long.outstanding)?;
        Some(100.0 * (long.mib_per_s / short - 1.0))
    });
    differs.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// The longer runs, and of the sweep what they do not have.
fn joined(longer: &[TransferPoint], swept: &[TransferPoint]) -> Vec<TransferPoint> {
    let is_new =
        |short: &&TransferPoint| observed(longer, short.call_bytes, short.outstanding).is_none();
    longer.iter().chain(swept.iter().filter(is_new)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(outstanding: u32, mib_per_s: f64) -> TransferPoint {
        TransferPoint { call_bytes: 8192, outstanding, mib_per_s }
    }

    #[test]
    fn the_run_that_differs_most_counts_and_longer_ones_take_the_place_of_short_ones() {
        let swept = [at(1, 20.0), at(4, 40.0), at(16, 42.0)];
        assert_eq!(differs_pct(&swept, &[at(4, 30.0), at(16, 44.1)]), Some(-25.0));
        assert_eq!(differs_pct(&swept, &[at(64, 30.0)]), None);
        let all = joined(&[at(4, 39.0)], &swept);
        assert_eq!(all, [at(4, 39.0), at(1, 20.0), at(16, 42.0)]);
    }
}
