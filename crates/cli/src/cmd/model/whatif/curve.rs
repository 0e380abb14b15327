//! A change of a server that a curve shows.

use std::fmt::Write;

use perf::model::curve::Curve;
use perf::model::whatif::server::{Answer, Base, Method, Outlook, answer};
use perf::units::Nanos;

use super::super::known::name;
use super::super::{infer, record, show, span};
use super::{interval, refused};
use crate::args::Verbosity;
use crate::args::estimate::WhatIf;
use crate::exit::Failure;

/// Runs the command.
pub(super) fn run(args: &WhatIf, curve: &Curve, verbosity: Verbosity) -> Result<(), Failure> {
    let inferred = infer::infer(curve, &args.file, &args.known)?;
    let base = Base {
        per_s: args.rate.unwrap_or_else(|| curve.peak_per_s() / 2.0),
        callers: args.callers,
        latency_us: args.latency.map_or(0.0, Nanos::as_micros_f64),
        messages_per_op: args.messages,
        client_pays: false,
    };
    let answers = answer(&inferred, &base, &args.changes).map_err(refused)?;

    let mut record = record("whatif", Some(&args.file));
    let mut text = String::new();
    writeln!(text, "{:<8}{:<8}{:>10}  {:<42}saturation", "", "", "calls/s", "response time").ok();
    for Answer { method, before, after } in &answers {
        let method = match method {
            Method::Open => "open",
            Method::Closed => "closed",
        };
        for (when, outlook) in [("before", before), ("after", after)] {
            writeln!(text, "{}", row(method, when, outlook)).ok();
            let n = curve.points().len() as u64;
            let name = |what: &str| format!("{method}/{when}/{what}");
            if let Some(us) = &outlook.response_us {
                record.estimate(&name("response_us"), us, "us", n);
            }
            record.estimate(&name("saturation_per_s"), &outlook.saturation_per_s, "1/s", n);
        }
    }
    for said in inferred.unidentified() {
        writeln!(text, "note: {said}").ok();
        record.warn("not-identified", &said, "");
    }
    show(&text, &record, args.json.as_deref(), verbosity)
}

fn row(method: &str, when: &str, outlook: &Outlook) -> String {
    let response = match &outlook.response_us {
        Some(us) => format!("{}{}", span(us.value), interval(us, &span)),
        None => "not reached".to_owned(),
    };
    let per_s = |per_s: f64| format!("{per_s:.0}");
    let saturation = &outlook.saturation_per_s;
    let saturation = format!("{:.0}{}", saturation.value, interval(saturation, &per_s));
    let by = name(outlook.bottleneck);
    format!("{method:<8}{when:<8}{:>10.1}  {response:<42}{saturation}, by {by}", outlook.per_s)
}
