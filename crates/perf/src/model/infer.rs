//! The structure of a server from its curve of response time: service time of the processor, fixed
//! delay, cache, service time of the disks, and how many disks there are.
//!
//! The model is that of [`super::queue::file_server`], the unknowns are what is not [`Given`].
//! Disks: each of a row of numbers is tried; the range holds those whose fit is as good within 95 %
//! (the ratio of the sums of squares, by the distribution of F with one degree of freedom, which is
//! Student's t squared).
//!
//! What can be seen where: D + S at the lowest loads, S where the curve turns up, the cache where
//! it first rises, the disks' service time in how far it rises after that. The number of disks
//! shows only if calls wait for them; otherwise there is a least number and no largest.
//!
//! Source: Martin & Culler 1999, section 6, which says that it can be done from published results
//! and gives no method: ours.

use super::curve::Curve;
use super::error::ModelError;
use super::least_squares::{FitError, Fitted, Found, Parameter, minimize_from};
use super::queue::cache::Cache;
use super::queue::file_server::{Bottleneck, DiskLines, FileServer};
use super::queue::line::Line;
use crate::stats::student_t_975;

/// What is known of a server before. `None`: to be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Given {
    /// c, processors that calls are spread over; nodes of a cluster.
    pub cpus: u32,
    pub disks: Option<u32>,
    pub disk_us: Option<f64>,
    /// Memory and NVRAM together.
    pub cache_bytes: Option<f64>,
    /// Data accessed for each call a second; SFS: 1 MB.
    pub accessed_bytes_per_op_s: f64,
    pub disk_lines: DiskLines,
    /// Typical error (of 1) up to which a fit is a fit.
    pub tolerated: f64,
}

/// One processor, everything to be found, in the paper's model of SFS.
pub const UNKNOWN: Given = Given {
    cpus: 1,
    disks: None,
    disk_us: None,
    cache_bytes: None,
    accessed_bytes_per_op_s: 1e6,
    disk_lines: DiskLines::Shared,
    tolerated: 0.15,
};

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    pub server: FileServer,
    /// `cpu`, `delay`, and of `cache` and `disk` those that were not given; us and bytes.
    pub fitted: Fitted,
    pub given: Given,
    /// Numbers of disks, of those tried, that fit as well; `None` above: no largest was found.
    pub disks: (u32, Option<u32>),
    /// The fits with these numbers of disks, that of `fitted` among them: what follows from one and
    /// not from the others is not known.
    pub alike: Vec<(u32, Fitted)>,
    /// The curve's largest throughput, calls a second.
    pub peak_per_s: f64,
}

/// Load points that a server is inferred from: with more, the search takes minutes, and what each
/// of them says, its neighbours say.
pub const POINTS_MAX: usize = 500;

/// Numbers of disks that are tried: no two neighbours are more than a third apart.
const DISKS_TRIED: [u32; 26] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 192,
    256, 512,
];

impl Inferred {
    /// Fails with too few points for the unknowns, with values given that cannot be, or where the
    /// model does not fit the curve.
    pub fn from(curve: &Curve, given: Given) -> Result<Self, FitError> {
        let got = curve.points().len();
        if got > POINTS_MAX {
            return Err(FitError::TooMany { got, most: POINTS_MAX });
        }
        let tried: Vec<u32> = match given.disks {
            Some(disks) => vec![disks],
            None => DISKS_TRIED.to_vec(),
        };
        let mut fits: Vec<(u32, Fitted)> = Vec::new();
        let mut last = FitError::NotFinite;
        for disks in tried {
            // A number of disks fits much as the one before: its minimum is the first start.
            let before = fits.last().map(|(_, fitted)| fitted);
            match fit(curve, &given, disks, before) {
                Ok(fitted) => fits.push((disks, fitted)),
                Err(error) => last = error,
            }
        }
        let best = fits.iter().min_by(|(_, a), (_, b)| a.deviation.total_cmp(&b.deviation));
        let Some((disks, fitted)) = best.cloned() else { return Err(last) };
        let loads = curve.points().iter().map(|point| point.per_s);
        let fitted = fitted.tolerated(given.tolerated)?.over(loads, given.tolerated)?;
        let freedom = curve.points().len() - fitted.parameters.len();
        let ratio = 1.0 + student_t_975(freedom).unwrap_or(12.7).powi(2) / freedom as f64;
        let as_good = |(_, other): &&(u32, Fitted)| {
            other.deviation.powi(2) <= fitted.deviation.powi(2) * ratio
        };
        let alike: Vec<(u32, Fitted)> = fits.iter().filter(as_good).cloned().collect();
        let (least, most) = match (alike.first(), alike.last()) {
            (Some((least, _)), Some((most, _))) => (*least, *most),
            _ => (disks, disks),
        };
        let is_found = given.disks.is_some() || DISKS_TRIED.last().is_none_or(|last| most < *last);
        let values = fitted.values();
        let server = server(&given, disks, &values).map_err(|_| FitError::NotFinite)?;
        let fitted = Fitted { parameters: joined(&fitted, &alike), ..fitted };
        let disks = (least, is_found.then_some(most));
        Ok(Self { server, fitted, given, disks, alike, peak_per_s: curve.peak_per_s() })
    }

    /// Sentences on what the curve does not show, and what would.
    pub fn unidentified(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.fitted.unidentified.iter().map(advice).collect();
        for found in self.fitted.parameters.iter().filter(|found| found.at_bound) {
            notes.push(format!("{} went to the end of what is possible: not found", found.name));
        }
        if self.given.disks.is_none() && self.disks.1.is_none() {
            let least = self.disks.0;
            notes.push(format!(
                "disks: {least} or more fit alike, because no call waits for them: give their \
                 number, or add load points nearer to where they would be busy"
            ));
        }
        notes
    }

    /// Whether what limits the server was found, and did not go to the end of what is possible: no
    /// saturation follows from that.
    pub fn shows(&self, bottleneck: Bottleneck) -> bool {
        let names: &[&str] = match bottleneck {
            Bottleneck::Cpu => &["cpu"],
            Bottleneck::Disks => &["disk", "cache"],
            Bottleneck::Callers => &[],
        };
        let mut found = self.fitted.parameters.iter();
        !found.any(|found| found.at_bound && names.contains(&found.name))
    }

    /// The server with so many disks and other values of the parameters that were found, in their
    /// order.
    pub(super) fn with(&self, disks: u32, values: &[f64]) -> Result<FileServer, ModelError> {
        server(&self.given, disks, values)
    }
}

/// The parameters with intervals that hold those of all fits that are alike.
fn joined(fitted: &Fitted, alike: &[(u32, Fitted)]) -> Vec<Found> {
    let mut parameters = fitted.parameters.clone();
    for (_, other) in alike {
        for (found, other) in parameters.iter_mut().zip(&other.parameters) {
            let both = found.estimate.ci95.zip(other.estimate.ci95);
            found.estimate.ci95 = both.map(|(own, other)| own.joined(&other));
        }
    }
    parameters
}

fn advice(unidentified: &super::least_squares::Unidentified) -> String {
    let has = |name: &str| unidentified.names.contains(&name);
    let what = match () {
        () if has("cache") && has("disk") => "give the size of the cache, or the disks' time",
        () if has("cache") => "add load points around where the curve begins to rise",
        () if has("disk") => "add load points with data that exceed the cache, or give its size",
        () if has("delay") => "add load points at a tenth of the peak and below",
        () => "add load points close to the peak",
    };
    format!("{unidentified}: {what}")
}

fn fit(
    curve: &Curve,
    given: &Given,
    disks: u32,
    before: Option<&Fitted>,
) -> Result<Fitted, FitError> {
    let points = curve.points();
    let residuals = |values: &[f64], out: &mut [f64]| {
        let Ok(server) = server(given, disks, values) else { return false };
        let edge = 0.9995 * server.saturation().0;
        for (out, point) in out.iter_mut().zip(points) {
            let Some(us) = beyond(&server, edge, point.per_s) else { return false };
            *out = (us / point.response_us).ln();
        }
        true
    };
    let mut starts = starts(curve, given);
    if let Some(before) = before {
        let value = |(parameter, found): (&Parameter, &Found)| Parameter {
            start: found.estimate.value.clamp(parameter.lo, parameter.hi),
            ..*parameter
        };
        starts.insert(0, starts[0].iter().zip(&before.parameters).map(value).collect());
    }
    minimize_from(&starts, points.len(), residuals)
}

/// Response time also beyond the saturation, of which `edge` is a little less, and where there is
/// none: a steep slope that leads a search back.
fn beyond(server: &FileServer, edge: f64, per_s: f64) -> Option<f64> {
    if per_s <= edge {
        return server.response_us(per_s);
    }
    Some(server.response_us(edge)? * (per_s / edge).powi(40))
}

fn server(given: &Given, disks: u32, values: &[f64]) -> Result<FileServer, ModelError> {
    let mut values = values.iter().copied();
    let mut next = || values.next().unwrap_or(f64::NAN);
    let (cpu_us, delay_us) = (next(), next());
    let cache_bytes = given.cache_bytes.unwrap_or_else(&mut next);
    let disk_us = given.disk_us.unwrap_or_else(&mut next);
    let cache = Cache::scaled(cache_bytes, given.accessed_bytes_per_op_s)?;
    let (cpu, disks) = (Line::new(given.cpus, cpu_us)?, Line::new(disks, disk_us)?);
    let server = FileServer::new(cpu, disks, cache, delay_us)?;
    Ok(FileServer { disk_lines: given.disk_lines, ..server })
}

/// Where searches begin: a cache for a tenth, a third, and most of the load, disks of 2 to 15 ms.
fn starts(curve: &Curve, given: &Given) -> Vec<Vec<Parameter>> {
    let (peak, first) = (curve.peak_per_s(), curve.points()[0]);
    let least_us = curve.points().iter().map(|p| p.response_us).fold(f64::INFINITY, f64::min);
    let cpu_us = 0.9 * f64::from(given.cpus) * 1e6 / peak;
    let parameter = |name, unit, start: f64, reach: f64| Parameter {
        name,
        unit,
        start,
        lo: start / reach,
        hi: start * reach,
    };
    let mut starts = Vec::new();
    for covered in [0.1, 0.3, 0.8] {
        for disk_us in [2_000.0, 6_000.0, 15_000.0] {
            let delay_us = (least_us - cpu_us).max(0.2 * least_us).min(first.response_us);
            let mut start = vec![
                parameter("cpu", "us", cpu_us, 100.0),
                parameter("delay", "us", delay_us, 1e4),
            ];
            if given.cache_bytes.is_none() {
                let bytes = covered * peak * given.accessed_bytes_per_op_s.max(1.0);
                start.push(parameter("cache", "bytes", bytes, 1e3));
            }
            if given.disk_us.is_none() {
                start.push(parameter("disk", "us", disk_us, 1e3));
            }
            starts.push(start);
        }
    }
    if given.cache_bytes.is_some() {
        starts.truncate(3);
    }
    if given.disk_us.is_some() {
        starts = starts.into_iter().step_by(3).collect();
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::curve::Point;
    use crate::model::curve::tests::{PUBLISHED, curve};

    /// A curve with noise of 5 % on each response time, loads spread evenly.
    fn synthetic(server: &FileServer, seed: u64, points: u32, share: (f64, f64)) -> Curve {
        let mut draw = fastrand::Rng::with_seed(seed);
        let (from, to) = (share.0 * server.saturation().0, share.1 * server.saturation().0);
        let point = |i: u32| {
            let per_s = from + (to - from) * f64::from(i) / f64::from(points - 1);
            let normal = (0..12).map(|_| draw.f64()).sum::<f64>() - 6.0;
            let response_us = server.response_us(per_s).unwrap() * (1.0 + 0.05 * normal);
            Point { per_s, response_us }
        };
        Curve::new((0..points).map(point).collect()).unwrap()
    }

    #[test]
    fn parameters_come_back_within_5_percent_and_intervals_cover_them() {
        let server = FileServer::paper_raid();
        let truth = [650.0, 3_400.0, 512e6, 12_000.0];
        let given = Given { disks: Some(28), ..UNKNOWN };
        let (mut covered, mut errors) = ([0; 4], vec![Vec::new(); 4]);
        for seed in 0..100 {
            let curve = synthetic(&server, seed, 100, (0.02, 0.98));
            let inferred = Inferred::from(&curve, given).unwrap();
            for (i, found) in inferred.fitted.parameters.iter().enumerate() {
                let interval = found.estimate.ci95.unwrap();
                covered[i] += u32::from(interval.contains(truth[i]));
                errors[i].push((found.estimate.value / truth[i] - 1.0).abs());
            }
        }
        assert!(covered.iter().all(|&n| n >= 90), "{covered:?}");
        for errors in &mut errors {
            errors.sort_unstable_by(f64::total_cmp);
            assert!(errors[94] <= 0.05, "95 of 100: {}", errors[94]);
        }
    }

    #[test]
    fn intervals_of_ten_points_cover_the_truth() {
        let server = FileServer::paper_raid();
        let truth = [650.0, 3_400.0, 512e6, 12_000.0];
        let given = Given { disks: Some(28), ..UNKNOWN };
        let mut covered = [0; 4];
        for seed in 0..200 {
            let inferred =
                Inferred::from(&synthetic(&server, seed, 10, (0.02, 0.98)), given).unwrap();
            for (i, found) in inferred.fitted.parameters.iter().enumerate() {
                covered[i] += u32::from(found.estimate.ci95.unwrap().contains(truth[i]));
            }
        }
        assert!(covered.iter().all(|n| (180..=198).contains(n)), "{covered:?}");
    }

    /// Five published curves with what the reports say of processors and disks. The cache comes out
    /// two to three and a half times as large as memory and NVRAM are: SPEC found in 2001 that this
    /// release accessed a third of the data that it should, or less, and withdrew it.
    #[test]
    fn published_curves_show_a_cache_that_is_larger_than_the_memory() {
        let reports = [(2, 76, 6.4), (16, 448, 51.2), (12, 336, 38.4), (2, 56, 2.3), (2, 76, 6.4)];
        for ((name, _, points), (cpus, disks, memory_gb)) in PUBLISHED.into_iter().zip(reports) {
            // The second is off by 16 %, most of it in its first point: refused by default.
            let given = Given { cpus, disks: Some(disks), tolerated: 0.17, ..UNKNOWN };
            let inferred = Inferred::from(&curve(points), given).unwrap();
            let times = inferred.fitted.value("cache").unwrap() / (memory_gb * 1e9);
            assert!((2.0..3.7).contains(&times), "{name}: {times}");
            let cpu = inferred.fitted.parameters[0].estimate;
            let cpu_per_s = f64::from(cpus) * 1e6 / cpu.value;
            let peak_per_s = points[points.len() - 1].0;
            assert!((1.0..1.15).contains(&(cpu_per_s / peak_per_s)), "{name}: {cpu_per_s}");
            let delay_ms = inferred.fitted.value("delay").unwrap() / 1e3;
            assert!((0.9..1.4).contains(&delay_ms), "{name}: {delay_ms}");
        }
    }

    #[test]
    fn what_a_curve_does_not_show_is_stated_with_what_would() {
        // All loads fit into the cache: nothing of the disks or of the cache's size is there.
        let curve = synthetic(&FileServer::paper_raid(), 1, 40, (0.02, 0.33));
        let notes = Inferred::from(&curve, Given { disks: Some(28), ..UNKNOWN })
            .unwrap()
            .unidentified()
            .join("; ");
        assert!(notes.contains("cache") && notes.contains("disk"), "{notes}");
        // The number of disks, where none of 28 is ever waited for.
        let curve = synthetic(&FileServer::paper_raid(), 1, 12, (0.1, 0.95));
        let inferred =
            Inferred::from(&curve, Given { cache_bytes: Some(512e6), ..UNKNOWN }).unwrap();
        assert!(inferred.disks.0 <= 28 && inferred.disks.1.is_none_or(|most| most >= 28));
    }

    #[test]
    fn a_curve_that_no_such_server_has_is_refused_with_its_residuals() {
        let zigzag = [
            (100.0, 1.0),
            (200.0, 9.0),
            (300.0, 1.0),
            (400.0, 9.0),
            (500.0, 1.0),
            (600.0, 9.0),
            (700.0, 1.0),
        ];
        let refused = Inferred::from(&curve(&zigzag), Given { disks: Some(4), ..UNKNOWN });
        assert!(matches!(refused, Err(FitError::Bad { .. })), "{refused:?}");
        let few = Inferred::from(&curve(&zigzag[..4]), Given { disks: Some(4), ..UNKNOWN });
        assert!(matches!(few, Err(FitError::TooFew { got: 4, parameters: 4 })), "{few:?}");
        let many: Vec<(f64, f64)> = (1..=501).map(|i| (f64::from(i), 1.0)).collect();
        let many = Inferred::from(&curve(&many), UNKNOWN);
        assert_eq!(many, Err(FitError::TooMany { got: 501, most: 500 }));
    }
}
