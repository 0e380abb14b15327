//! The parameters that a study found, and how.

use load::probe::Findings;
use perf::stats::Estimate;
use report::Parameter;

use crate::server_study::outcome::ServerStudy;

pub(super) fn parameters(outcome: &ServerStudy) -> Vec<Parameter> {
    let findings = &outcome.findings;
    let mut parameters = of_single_calls(findings);
    if let Some(local) = &outcome.local {
        parameters.push(parameter(
            "T_B local",
            local.block_us,
            ("us", local.trials),
            "8 KiB written and synced less 8 KiB written, in the directory itself.",
        ));
    }
    parameters.extend(of_bursts(findings));
    parameters
}

pub(crate) fn parameter(
    name: &str,
    estimate: Estimate,
    (unit, n): (&str, usize),
    how: &str,
) -> Parameter {
    Parameter {
        name: name.to_owned(),
        value: estimate.value,
        unit: unit.to_owned(),
        ci95: estimate.ci95,
        n: Some(n as u64),
        how: how.to_owned(),
    }
}

fn of_single_calls(findings: &Findings) -> Vec<Parameter> {
    const HOW: [(&str, &str, &str); 4] = [
        ("2 T_prop", "us", "Median response time of NULL calls, one at a time."),
        (
            "T_ser",
            "us/KiB",
            "Slope of the response time of single UNSTABLE WRITEs of 1 KiB to 1 MiB over their \
             size.",
        ),
        ("T_op", "us", "Intercept of the same line, less 2 T_prop."),
        (
            "T_B",
            "us",
            "FILE_SYNC response time of single 8 KiB WRITEs, less that of UNSTABLE ones after a \
             rest as long.",
        ),
    ];
    let Findings { round_trip, ser_us_per_kib, op_us, block_us, .. } = *findings;
    let (null, rounds) = (findings.null_us.len(), findings.rounds);
    let found = [(round_trip, null), (ser_us_per_kib, rounds), (op_us, rounds), (block_us, rounds)];
    let all = HOW.into_iter().zip(found);
    all.map(|((name, unit, how), (found, n))| parameter(name, found, (unit, n), how)).collect()
}

fn of_bursts(findings: &Findings) -> [Parameter; 4] {
    let alone = |value: f64| Estimate { value, ci95: None };
    let (n, capacity) = (findings.bursts, findings.path.capacity);
    let commit = format!(
        "Response time of a COMMIT of {} MiB less 2 T_prop; spread over its blocks it is the T_B \
         of a transfer.",
        findings.commit_probe_bytes >> 20
    );
    let o = "What each further outstanding 8 KiB call adds to a cycle: bursts of two at a time.";
    let per_call = "Time per call in bursts, many outstanding, less the bytes' share.";
    let per_kib = "Time per KiB in bursts of 8 KiB and 1 MiB WRITEs.";
    [
        parameter("T_commit", findings.commit_us, ("us", n), &commit),
        parameter("o", findings.overhead_us, ("us", n), o),
        parameter("g", alone(capacity.call_us), ("us", n), per_call),
        parameter("G", alone(capacity.us_per_kib), ("us/KiB", n), per_kib),
    ]
}
