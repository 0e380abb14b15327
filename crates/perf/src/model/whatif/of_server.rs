//! Changes to a file server that was inferred from its curve: response time at a rate, saturation,
//! and what limits it, by the open formula and, with a number of callers, by mean value analysis.
//!
//! | change | in the model |
//! |---|---|
//! | L | D grows by 2 L: 2 for each us, as in the paper |
//! | o | S grows by k o, D by k o if the client pays it too |
//! | cpu, cpus, disk, disks, cache | the parameter itself |
//! | clients x | the rate, and of a closed server the callers |
//! | clients =, outstanding | the callers of a closed server, which have one call each |
//!
//! Intervals: as far as the answer goes when the parameters go to the end of theirs, along each
//! axis of their covariance, for every number of disks that fits the curve alike. What the curve
//! did not show makes them wide, as it should; the bottleneck is named only if all have the same.
//! Of the saturation, no server counts for less than the rate that was measured; and there is none
//! where what limits was not found.
//!
//! Source: Martin & Culler 1999, section 4.3, for L and o; the rest follows from the model.

use std::cell::Cell;

use super::{Change, How, What, WhatIfError};
use crate::model::closed::closed_server::ClosedServer;
use crate::model::infer::Inferred;
use crate::model::least_squares::Fitted;
use crate::model::queue::file_server::{Bottleneck, FileServer};
use crate::model::queue::line::Line;
use crate::stats::Estimate;

/// What the question is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    /// Calls a second before the change.
    pub per_s: f64,
    /// N; `None`: only the open formula answers.
    pub callers: Option<u32>,
    /// L of the measured server, us, which `L=` replaces.
    pub latency_us: f64,
    /// k: messages of an operation, each of which costs an o.
    pub messages_per_op: f64,
    /// Whether the client's processor pays o as well.
    pub client_pays: bool,
}

impl Base {
    /// At a rate, of a server of which no more is known.
    pub fn at(per_s: f64) -> Self {
        Self { per_s, callers: None, latency_us: 0.0, messages_per_op: 1.0, client_pays: false }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// M/M/c and M/M/m, arrivals that do not wait.
    Open,
    /// Mean value analysis with a number of callers.
    Closed,
}

/// A server at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerPrediction {
    pub per_s: f64,
    /// us; `None` where the rate is not reached. Without an interval where what explains the curve
    /// as well may not reach it.
    pub response_us: Option<Estimate>,
    /// Calls a second; without it none shows: see [`Inferred::shows`].
    pub saturation_per_s: Option<Estimate>,
    /// The most that was measured before the change.
    pub peak_per_s: f64,
    pub bottleneck: Bottleneck,
    /// Whether it is the same for all that explains the curve as well.
    pub bottleneck_is_identified: bool,
    /// The server and its callers themselves.
    pub server: FileServer,
    pub callers: Option<u32>,
}

/// One method's answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    pub method: Method,
    pub before: ServerPrediction,
    pub after: ServerPrediction,
}

/// The server, its load, and its callers after changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ServerCase {
    server: FileServer,
    per_s: f64,
    callers: Option<u32>,
    latency_us: f64,
}

/// Answers of the open formula and, with callers, of the closed network. Fails where a change is
/// not part of the model or leads to a server that cannot be.
pub fn answer(
    inferred: &Inferred,
    base: &Base,
    changes: &[Change],
) -> Result<Vec<Answer>, WhatIfError> {
    let methods = match base.callers {
        Some(_) => vec![Method::Open, Method::Closed],
        None => vec![Method::Open],
    };
    let mut answers = Vec::new();
    for method in methods {
        answers.push(Answer {
            method,
            before: predicted(inferred, base, &[], method)?,
            after: predicted(inferred, base, changes, method)?,
        });
    }
    Ok(answers)
}

fn predicted(
    inferred: &Inferred,
    base: &Base,
    changes: &[Change],
    method: Method,
) -> Result<ServerPrediction, WhatIfError> {
    let case = apply(inferred.server, base, changes)?;
    let (is_cut, least) = (Cell::new(false), Cell::new(f64::INFINITY));
    let reaching = |server: FileServer| {
        let reaching = server.reaching(inferred.peak_per_s);
        is_cut.set(is_cut.get() || reaching != server);
        let found = saturation(&apply(reaching, base, changes)?, method)?;
        least.set(least.get().min(found.0));
        Ok::<_, WhatIfError>(found)
    };
    let (per_s, bottleneck) = reaching(inferred.server)?;
    let differs = Cell::new(false);
    let mut saturation_per_s = range(inferred, per_s, &|server| {
        let (per_s, by) = reaching(server)?;
        differs.set(differs.get() || by != bottleneck);
        Ok(per_s)
    });
    if let Some(ci95) = saturation_per_s.ci95.as_mut().filter(|_| is_cut.get()) {
        ci95.lo = ci95.lo.max(least.get());
    }
    let response_us = response(&case, method).map(|us| {
        range(inferred, us, &|server| {
            let case = apply(server, base, changes)?;
            response(&case, method).ok_or(WhatIfError::Beyond("the rate is not reached"))
        })
    });
    Ok(ServerPrediction {
        per_s: case.per_s,
        response_us,
        saturation_per_s: inferred.shows(bottleneck).then_some(saturation_per_s),
        peak_per_s: inferred.peak_per_s,
        bottleneck,
        bottleneck_is_identified: !differs.get(),
        server: case.server,
        callers: case.callers,
    })
}

/// A value with the interval of everything that explains the curve as well: none where something of
/// it has no answer.
fn range(
    inferred: &Inferred,
    value: f64,
    of: &dyn Fn(FileServer) -> Result<f64, WhatIfError>,
) -> Estimate {
    let answer = |(disks, fitted): &(u32, Fitted)| {
        fitted.answer(|values| of(inferred.with(*disks, values)?)).ok()?.ci95
    };
    let mut all = inferred.alike.iter().map(answer);
    let first = all.next().flatten();
    let ci95 = all.fold(first, |range, next| Some(range?.joined(&next?)));
    Estimate { value, ci95 }
}

fn response(case: &ServerCase, method: Method) -> Option<f64> {
    match (method, case.callers) {
        (Method::Closed, Some(callers)) => {
            ClosedServer::new(case.server, callers).ok()?.response_us(case.per_s)
        }
        _ => case.server.response_us(case.per_s),
    }
}

fn saturation(case: &ServerCase, method: Method) -> Result<(f64, Bottleneck), WhatIfError> {
    match (method, case.callers) {
        (Method::Closed, Some(callers)) => ClosedServer::new(case.server, callers)?
            .saturation()
            .ok_or(WhatIfError::Beyond("the closed network has no solution")),
        _ => Ok(case.server.saturation()),
    }
}

fn apply(server: FileServer, base: &Base, changes: &[Change]) -> Result<ServerCase, WhatIfError> {
    let mut case = ServerCase {
        server,
        per_s: base.per_s,
        callers: base.callers,
        latency_us: base.latency_us,
    };
    for change in changes {
        case.apply(change, base)?;
    }
    Ok(case)
}

impl ServerCase {
    fn apply(&mut self, change: &Change, base: &Base) -> Result<(), WhatIfError> {
        let foreign = |why| Err(WhatIfError::Foreign { what: change.what, why });
        let server = &mut self.server;
        let FileServer { cpu, disks, .. } = *server;
        match change.what {
            What::Latency if change.how == How::Times && self.latency_us == 0.0 => {
                return foreign("how much of D is L is not known: say L+TIME, or --latency TIME");
            }
            What::Latency => {
                let latency_us = change.of(self.latency_us);
                let added_us = 2.0 * (latency_us - self.latency_us);
                self.latency_us = latency_us;
                server.delay_us = (server.delay_us + added_us).max(0.0);
            }
            What::Overhead if change.how == How::Add => {
                let added_us = base.messages_per_op * change.value;
                server.cpu = Line::new(cpu.servers(), cpu.service_us() + added_us)?;
                if base.client_pays {
                    server.delay_us += added_us;
                }
            }
            What::Overhead => return foreign("S contains it: say how much is added, as in o+50us"),
            What::Cpu => server.cpu = Line::new(cpu.servers(), change.of(cpu.service_us()))?,
            What::Cpus => {
                server.cpu = Line::new(change.of_count(cpu.servers()), cpu.service_us())?;
            }
            What::Disk => server.disks = Line::new(disks.servers(), change.of(disks.service_us()))?,
            What::Disks => {
                server.disks = Line::new(change.of_count(disks.servers()), disks.service_us())?;
            }
            What::Cache => {
                server.cache = server.cache.with_bytes(change.of(server.cache.bytes()))?
            }
            What::Clients if change.how == How::Times => {
                self.per_s *= change.value;
                self.callers = self.callers.map(|callers| change.of_count(callers));
            }
            // Callers have one call each: as many are outstanding as there are callers.
            What::Clients | What::Outstanding => {
                let Some(callers) = self.callers else {
                    return foreign("only a closed model has callers: say --callers N for before");
                };
                self.callers = Some(change.of_count(callers));
            }
            What::Gap => return foreign("a curve has no bytes: see nfskit model sensitivity"),
            What::CallSize => {
                return foreign("a curve has no bytes of a call: give a probe's record");
            }
            What::Threads => {
                return foreign("a curve shows processors, not threads: say cpus=N");
            }
            What::WriteLog => {
                return foreign("the curve's writes are hits already: give a probe's record");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::curve::{Curve, Point};
    use crate::model::infer::{Given, UNKNOWN};
    use crate::model::queue::cache::Cache;

    /// The paper's SCSI server, inferred from a smooth curve of its own.
    fn inferred() -> Inferred {
        let server = FileServer::paper_scsi();
        let point = |i: i32| {
            let per_s = 50.0 * f64::from(i);
            // A ripple of 2 %, so that there is something to be uncertain of.
            let ripple = 1.0 + 0.02 * f64::from(i % 3 - 1);
            Point { per_s, response_us: server.response_us(per_s).unwrap() * ripple }
        };
        let curve = Curve::new((1..=21).map(point).collect()).unwrap();
        Inferred::from(&curve, Given { disks: Some(24), ..UNKNOWN }).unwrap()
    }

    const BASE: Base = Base {
        per_s: 600.0,
        callers: Some(32),
        latency_us: 10.0,
        messages_per_op: 2.42,
        client_pays: false,
    };

    fn ask(inferred: &Inferred, text: &str) -> Vec<Answer> {
        answer(inferred, &BASE, &[text.parse().unwrap()]).unwrap()
    }

    #[test]
    fn both_methods_answer_and_their_intervals_hold_the_truth() {
        let inferred = inferred();
        for text in ["L=1.01ms", "o+100us", "cache=256000000", "cpus=2"] {
            let change: Change = text.parse().unwrap();
            let truth = apply(FileServer::paper_scsi(), &BASE, &[change]).unwrap();
            let answers = ask(&inferred, text);
            assert_eq!(answers.len(), 2);
            for Answer { method, after, .. } in answers {
                let us = after.response_us.unwrap();
                let truth_us = response(&truth, method).unwrap();
                assert!((us.value / truth_us - 1.0).abs() < 0.03, "{text} {method:?}");
                assert!(us.ci95.unwrap().contains(truth_us), "{text} {method:?}");
                let per_s = after.saturation_per_s.unwrap();
                let truth_per_s = saturation(&truth, method).unwrap().0;
                assert!((per_s.value / truth_per_s - 1.0).abs() < 0.03, "{text} {method:?}");
            }
        }
    }

    #[test]
    fn latency_and_overhead_do_what_the_paper_says() {
        let inferred = inferred();
        let added = |answer: &Answer| {
            answer.after.response_us.unwrap().value - answer.before.response_us.unwrap().value
        };
        let latency = ask(&inferred, "L+1ms");
        assert!((added(&latency[0]) - 2_000.0).abs() < 1e-6);
        assert!((added(&latency[1]) - 2_000.0).abs() < 1e-3);
        assert_eq!(
            latency[0].before.saturation_per_s.unwrap().value,
            latency[0].after.saturation_per_s.unwrap().value
        );
        let overhead = ask(&inferred, "o+100us");
        let cpu_us = inferred.fitted.value("cpu").unwrap();
        let want = 1e6 / (cpu_us + 242.0);
        assert!((overhead[0].after.saturation_per_s.unwrap().value / want - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_new_bottleneck_is_named_and_a_rate_out_of_reach_has_no_response_time() {
        let inferred = inferred();
        let few = ask(&inferred, "disks=4");
        assert_eq!(few[0].before.bottleneck, Bottleneck::Cpu);
        assert_eq!(few[0].after.bottleneck, Bottleneck::Disks);
        assert_eq!(few[0].after.response_us, None);
        let crowd = ask(&inferred, "clients x10");
        assert_eq!(crowd[0].after.per_s, 6_000.0);
        assert_eq!(crowd[1].after.response_us, None);
    }

    #[test]
    fn a_saturation_is_no_less_than_what_was_measured() {
        let points = crate::model::curve::tests::PUBLISHED[0].2;
        let curve = crate::model::curve::tests::curve(points);
        let inferred = Inferred::from(&curve, UNKNOWN).unwrap();
        let base = Base { callers: Some(1), ..Base::at(15_000.0) };
        let answers = answer(&inferred, &base, &[]).unwrap();
        let found = answers[0].before.saturation_per_s.unwrap();
        let lo = found.ci95.unwrap().lo;
        assert!(lo >= 30_554.9 && found.value >= lo, "{found:?}");
        assert!(answers[0].before.bottleneck != Bottleneck::Callers);
        // One caller alone makes far fewer.
        assert_eq!(answers[1].before.bottleneck, Bottleneck::Callers);
        assert!(answers[1].before.saturation_per_s.unwrap().value < 1_000.0);
    }

    #[test]
    fn a_curve_that_is_flat_has_no_saturation() {
        let point = |i: u32| Point { per_s: 100.0 * f64::from(i), response_us: 1_000.0 };
        let curve = Curve::new((1..=6).map(point).collect()).unwrap();
        let inferred = Inferred::from(&curve, UNKNOWN).unwrap();
        let before = answer(&inferred, &Base::at(300.0), &[]).unwrap()[0].before;
        assert_eq!((before.saturation_per_s, before.peak_per_s), (None, 600.0), "{inferred:?}");
    }

    #[test]
    fn changes_that_the_model_does_not_contain_are_refused() {
        let inferred = inferred();
        for text in ["wsize=1M", "o=1us", "G=1Gbit/s", "threads=1", "disks=0", "cpu=0us"] {
            assert!(answer(&inferred, &BASE, &[text.parse().unwrap()]).is_err(), "{text}");
        }
    }

    /// A curve from low loads only, where no call waits for a disk: 28 disks, or any other number
    /// that is large enough, explain it.
    fn of_few_loads(seed: u64) -> (FileServer, Inferred) {
        let server = FileServer::paper_raid();
        let mut draw = fastrand::Rng::with_seed(seed);
        let point = |i: u32| {
            let per_s = 60.0 * f64::from(i);
            let normal = (0..12).map(|_| draw.f64()).sum::<f64>() - 6.0;
            let response_us = server.response_us(per_s).unwrap() * (1.0 + 0.05 * normal);
            Point { per_s, response_us }
        };
        let curve = Curve::new((1..=20).map(point).collect()).unwrap();
        let given = Given { cache_bytes: Some(512e6), ..UNKNOWN };
        (server, Inferred::from(&curve, given).unwrap())
    }

    const SEEDS: u32 = 16;

    #[test]
    fn what_the_number_of_disks_decides_is_as_uncertain_as_that_number() {
        let base = Base { callers: None, ..BASE };
        let (mut covered, mut identified_wrongly, mut open) = (0, 0, 0);
        for seed in 0..SEEDS {
            let (server, inferred) = of_few_loads(seed.into());
            open += u32::from(inferred.disks.1.is_none());
            // Twice as many calls that miss: the disks may be full before the processor is.
            let change: Change = "cpu x0.4".parse().unwrap();
            let truth = apply(server, &base, &[change]).unwrap();
            let (truth_per_s, truth_by) = saturation(&truth, Method::Open).unwrap();
            let after = answer(&inferred, &base, &[change]).unwrap()[0].after;
            let interval = after.saturation_per_s.and_then(|found| found.ci95);
            covered += u32::from(interval.is_none_or(|ci95| ci95.contains(truth_per_s)));
            identified_wrongly +=
                u32::from(after.bottleneck_is_identified && after.bottleneck != truth_by);
        }
        assert!(2 * open > SEEDS, "{open} of {SEEDS} leave the number of disks open");
        assert!(covered + 1 >= SEEDS, "{covered} of {SEEDS}");
        assert!(identified_wrongly <= 1, "{identified_wrongly} of {SEEDS}");
    }

    /// A server that nobody chose, and what a curve of 12 points of it says, from a twentieth of
    /// its saturation to some share of it.
    fn drawn(seed: u64) -> Option<(FileServer, Inferred)> {
        let mut draw = fastrand::Rng::with_seed(1_000 + seed);
        let mut between = |lo: f64, hi: f64| lo * (hi / lo).powf(draw.f64());
        let (cpu_us, disk_us) = (between(200.0, 2_000.0), between(3_000.0, 15_000.0));
        let delay_us = between(100.0, 3_000.0);
        let (cache_share, disks_per_cpu, to) =
            (between(0.1, 0.7), between(0.4, 4.0), between(0.5, 0.97));
        // Disks enough for the calls that miss at the processor's saturation, or too few.
        let full_per_s = 1e6 / cpu_us;
        let needed = full_per_s * (1.0 - cache_share) * disk_us / 1e6;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few disks")]
        let disks = (disks_per_cpu * needed).round().max(1.0) as u32;
        let cache = Cache::scaled(cache_share * full_per_s * 1e6, 1e6).unwrap();
        let (cpu, disks) = (Line::new(1, cpu_us).unwrap(), Line::new(disks, disk_us).unwrap());
        let server = FileServer::new(cpu, disks, cache, delay_us).unwrap();
        let most_per_s = to * server.saturation().0;
        let point = |i: u32| {
            let per_s = most_per_s * (0.05 + 0.95 * f64::from(i) / 11.0);
            let normal = (0..12).map(|_| draw.f64()).sum::<f64>() - 6.0;
            Some(Point { per_s, response_us: server.response_us(per_s)? * (0.05 * normal).exp() })
        };
        let points: Option<Vec<Point>> = (0..12).map(point).collect();
        let curve = Curve::new(points?).ok()?;
        let known = seed.is_multiple_of(2).then_some(cache.bytes());
        let given = Given { cache_bytes: known, ..UNKNOWN };
        Some((server, Inferred::from(&curve, given).ok()?))
    }

    #[test]
    fn a_bottleneck_of_servers_that_nobody_chose_is_right_or_not_identified() {
        // Of 240: docs/models.md, section 14.
        const CASES: u64 = 40;
        let base = Base { callers: None, ..BASE };
        let (mut identified, mut wrong, mut covered) = (0, 0, 0);
        for (server, inferred) in (0..CASES).filter_map(drawn) {
            let change: Change = "cpu x0.4".parse().unwrap();
            let truth = apply(server, &base, &[change]).unwrap();
            let (truth_per_s, truth_by) = saturation(&truth, Method::Open).unwrap();
            let after = answer(&inferred, &base, &[change]).unwrap()[0].after;
            identified += u64::from(after.bottleneck_is_identified);
            wrong += u64::from(after.bottleneck_is_identified && after.bottleneck != truth_by);
            let ci95 = after.saturation_per_s.and_then(|found| found.ci95);
            covered += u64::from(ci95.is_none_or(|ci95| ci95.contains(truth_per_s)));
        }
        assert!(identified > 0 && wrong <= CASES / 20, "{wrong} of {identified} wrong");
        assert!(covered >= CASES * 85 / 100, "{covered} of {CASES}");
    }
}
