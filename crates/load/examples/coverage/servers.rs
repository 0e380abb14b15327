//! Servers inferred from curves of which the number of disks is not known, and changes to what
//! curves and sweeps have shown (`model infer`, `model whatif`).

use perf::model::curve::{Curve, Point};
use perf::model::infer::{Given, Inferred, UNKNOWN};
use perf::model::queue::file_server::FileServer;
use perf::model::sweep::{Explained, Form, throughput};
use perf::model::whatif::of_server::{Base, Method, answer};
use perf::model::whatif::{Change, of_sweep};
use perf::stats::{Estimate, Interval};

use super::{Found, Noise, POINT, Process, SPREAD, SWEEP, observed};

/// The paper's RAID server: S, D, cache, T_B of a disk; of 28 disks.
pub(super) const TRUTH: [f64; 4] = [650.0, 3_400.0, 512e6, 12_000.0];
pub(super) const DISKS: u32 = 28;

/// Points of a curve from 2 to 98 % of the saturation.
pub(super) fn curve(noise: Noise, points: u32, seed: u64) -> Option<Curve> {
    let mut process = Process::new(noise, POINT, seed);
    let server = FileServer::paper_raid();
    let (from, to) = (0.02 * server.saturation().0, 0.98 * server.saturation().0);
    let point = |i: u32| {
        let at = f64::from(i) / f64::from(points - 1);
        let per_s = from + (to - from) * at;
        let us = server.response_us(per_s).unwrap_or(f64::NAN);
        Point { per_s, response_us: process.draw(us, SPREAD, i.into()) }
    };
    Curve::new((0..points).map(point).collect()).ok()
}

/// All that `model infer` prints without being given the number of disks, and what `model whatif`
/// does with it.
pub(super) fn without_disks(noise: Noise, seed: u64) -> Vec<Found> {
    let Some(curve) = curve(noise, 10, seed) else { return Vec::new() };
    let Ok(inferred) = Inferred::from(&curve, UNKNOWN) else { return Vec::new() };
    let name = "no disks given";
    let mut found = super::named(name, &inferred.fitted, &TRUTH);
    let (least, most) = inferred.disks;
    let range = Interval { lo: least.into(), hi: most.map_or(f64::INFINITY, f64::from) };
    let disks = Estimate { value: inferred.server.disks.servers().into(), ci95: Some(range) };
    found.push((format!("{name}: disks"), DISKS.into(), disks));
    found.extend(changed_server("what if, no disks given", &inferred));
    found
}

/// The same where the number of disks is given.
pub(super) fn with_disks(noise: Noise, points: u32, seed: u64) -> Vec<Found> {
    let Some(curve) = curve(noise, points, seed) else { return Vec::new() };
    let given = Given { disks: Some(DISKS), ..UNKNOWN };
    let Ok(inferred) = Inferred::from(&curve, given) else { return Vec::new() };
    let mut found = super::named(&format!("curve, {points} points"), &inferred.fitted, &TRUTH);
    if points == 10 {
        found.extend(changed_server("what if", &inferred));
    }
    found
}

/// Changes, by what limits the server before and after. The processor is full first; with eight
/// disks they are, and with two processors either might be.
const CHANGES: [&str; 5] = ["L+1ms", "o+50us", "cpus=2", "cache=256000000", "disks=8"];

fn changed_server(name: &str, inferred: &Inferred) -> Vec<Found> {
    let server = FileServer::paper_raid();
    // A curve of the server itself, by which the same changes are made to it.
    let base = Base {
        per_s: 0.5 * server.saturation().0,
        callers: inferred.given.disks.map(|_| 32),
        latency_us: 0.0,
        messages_per_op: 2.0,
        client_pays: false,
    };
    let mut found = Vec::new();
    for text in CHANGES {
        // A prediction for more disks than are known cannot be held to a truth.
        let Ok(change) = text.parse::<Change>() else { continue };
        let truth = Inferred { server, alike: Vec::new(), ..inferred.clone() };
        let (Ok(answers), Ok(truths)) =
            (answer(inferred, &base, &[change]), answer(&truth, &base, &[change]))
        else {
            continue;
        };
        for (answer, truth) in answers.iter().zip(&truths) {
            let method = match answer.method {
                Method::Open => "open",
                Method::Closed => "closed",
            };
            let of = |what: &str| format!("{name}, {text}, {method}: {what}");
            let saturations = answer.after.saturation_per_s.zip(truth.after.saturation_per_s);
            if let Some((per_s, truth)) = saturations {
                found.push((of("saturation"), truth.value, per_s));
            }
            if let Some((us, truth)) = answer.after.response_us.zip(truth.after.response_us) {
                found.push((of("response time"), truth.value, us));
            }
        }
    }
    found
}

/// Changes of a sweep, below its knee and above.
pub(super) fn changed_sweep(noise: Noise, repeats: usize, seed: u64) -> Vec<Found> {
    let Ok(explained) = Explained::from(&observed(noise, repeats, seed), Form::Curve) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (text, outstanding) in [("L+1ms", 4), ("o+50us", 4), ("o+50us", 64), ("outstanding x4", 4)]
    {
        let Ok(change) = text.parse::<Change>() else { continue };
        let Ok([_, after]) = of_sweep::answer(&explained, outstanding, &[change]) else { continue };
        let Ok((values, calls)) = of_sweep::changed(&SWEEP, outstanding, &[change]) else {
            continue;
        };
        let truth = throughput(Form::Curve, &values, calls).unwrap_or(f64::NAN);
        let times = if repeats == 1 { "once".to_owned() } else { format!("{repeats} times") };
        let name = format!("what if, sweep, {times}, {text} of {outstanding}");
        found.push((name, truth, after.per_s));
    }
    found
}
