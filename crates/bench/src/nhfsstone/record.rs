//! The run record.

use harness::records;
use load::nhfsstone::outcome::Pace;
use load::nhfsstone::{Outcome, Plan};
use perf::record::{Better, Run as Record, Target};
use perf::units::Nanos;
use serde_json::json;

use super::{Ran, targets, text};
use crate::nhfsstone::args::Nhfsstone as Args;

pub(super) fn record(args: &Args, plan: &Plan, ran: &Ran) -> Record {
    let mut record = records::begin(ran.started.clone());
    let outcome = &ran.outcome;
    record.target = target(args);
    record.workload.name = "nhfsstone".to_owned();
    describe(&mut record, plan);
    record.metric("elapsed_s", outcome.elapsed.as_secs_f64(), "s");
    record.metric("took_s", ran.took.as_secs_f64(), "s");
    records::generator(&mut record, ran.generator_share);
    record.metric("calls", outcome.calls() as f64, "calls");
    record.metric("calls_per_s", outcome.calls_per_s(), "calls/s");
    record.metric_if_known("call_ms_mean", outcome.mean().map(Nanos::as_millis_f64), "ms");
    record.result("call_ms_mean", Better::Smaller);
    record.metric("mix_off_percent", outcome.off_percent(), "%");
    record.metric("behind_max_s", outcome.behind_max, "s");
    record.metric("failed", outcome.failed() as f64, "calls");
    record.metric("retransmissions", ran.retransmissions as f64, "calls");
    for (side, calls) in [("server", ran.background.server), ("client", ran.background.client)] {
        let name = format!("background_{side}_calls");
        record.metric_if_known(&name, calls.map(|calls| calls as f64), "calls");
    }
    operations(&mut record, outcome);
    if let Some((why, advice)) = text::invalid(outcome) {
        record.warn("invalid", &why, advice);
    }
    let advice = match outcome.pace() {
        Pace::Below => Some("a lower --load, or more --processes"),
        Pace::AsOffered => None,
        Pace::Above => Some("more calls (-c, -t): an operation is several"),
    };
    if let Some(advice) = advice {
        record.warn("rate-not-kept", &text::rate(outcome), advice);
    }
    if outcome.pace() == Pace::Below {
        // One that was reached is what was offered.
        record.result("calls_per_s", Better::Larger);
    }
    if let Some(first) = &outcome.first_failure {
        let text = format!("{} calls had an unexpected answer: {first}", outcome.failed());
        record.warn("failed-calls", &text, "the server's log");
    }
    record
}

fn describe(record: &mut Record, plan: &Plan) {
    let given = [
        ("mix", json!(plan.mix.name)),
        ("mix_source", json!(plan.mix.source)),
        ("mix_sureness", json!(plan.mix.sureness.name())),
        ("mix_percent", records::mix_percent(&plan.mix)),
        ("load_per_s", json!(plan.load_per_s)),
        ("calls", json!(plan.calls)),
        ("processes", json!(plan.tasks)),
        ("seed", json!(plan.seed)),
        ("cache", json!("none of a client's: each operation is calls to the server")),
        ("write_stability", json!(records::write_stability(&plan.mix))),
    ];
    records::parameters(record, given);
}

fn operations(record: &mut Record, outcome: &Outcome) {
    for (operation, tally) in &outcome.operations {
        record.metric(&format!("{operation}_percent"), outcome.percent(*operation), "%");
        record.metric(&format!("{operation}_calls"), tally.calls as f64, "calls");
        record.metric(&format!("{operation}_s"), tally.total.as_secs_f64(), "s");
        let mean_ms = tally.mean().map(Nanos::as_millis_f64);
        let name = format!("{operation}_ms_mean");
        record.metric_if_known(&name, mean_ms, "ms").result(&name, Better::Smaller);
        record.histogram(operation.name(), &tally.times);
    }
}

fn target(args: &Args) -> Target {
    let first = args.target.first();
    Target {
        kind: "server".to_owned(),
        url: Some(targets(args)),
        version: first.map(|target| target.version.number()),
        proto: first.map(|target| target.protocol.name().to_owned()),
        ..Target::default()
    }
}
