//! A report from invented but plausible numbers, to look at: its plots, its text, its print.
//!
//! `cargo run -p nfskit-report --example page -- page.html` writes the page and prints the
//! terminal's summary. The numbers come from the transaction cycle's formula with a little noise,
//! so that the plots have the shapes of real ones.

use std::process::ExitCode;

use perf::record::{Durability, Warning};
use perf::stats::Interval;
use perf::units::Nanos;
use report::{
    Ceiling, Curve, CurvePoint, Cycle, Fact, Headline, Latency, LatencyPlot, Parameter, Stall,
    Step, StudyReport, Term, ThroughputPlot, Transfer, TransferPlot, html, summary,
};

fn main() -> ExitCode {
    let report = report();
    print!("{}", summary(&report, 100));
    let Some(path) = std::env::args().nth(1) else {
        return ExitCode::SUCCESS;
    };
    match std::fs::write(&path, html(&report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cannot write {path}: {e}");
            ExitCode::FAILURE
        }
    }
}

fn report() -> StudyReport {
    StudyReport {
        title: "Where sequential writes lose their time".into(),
        generated_at: "2026-01-02 03:04 UTC, nfskit 0.1.0".into(),
        command: "nfskit study --size 64M --link rtt=200us,rate=1g --repeat 7".into(),
        target: "embedded server, NFS version 3 over TCP, store in a directory on ext4".into(),
        durability: Some(Durability::PageCache),
        link: "emulated: L 100 µs each way, G 8 ns per byte (1 Gbit/s), g 0".into(),
        environment: vec![
            ("Kernel".into(), "Linux 6.12.9 x86_64".into()),
            ("Processors".into(), "8 (no hypervisor)".into()),
            ("Memory".into(), "32 GiB".into()),
            ("Load average".into(), "0.12 at the start, 0.90 at the end".into()),
            ("Clock".into(), "steps of 1 ns, waiting accurate to 3 µs (median)".into()),
        ],
        warnings: vec![Warning::new(
            "spread",
            "Repetitions of 64 KiB with N = 32 differ by 14 %.",
            "repeat on a quiet machine, or with --repeat 15.",
        )],
        headline: headline(),
        parameters: parameters(),
        cycles: cycles(),
        throughput: vec![throughput_plot(8), throughput_plot(64)],
        steps: vec![
            step("window 1 → 8", 19.9, 87.6, 85.9),
            step("commit stall → concurrent", 85.9, 104.1, 101.8),
            step("transfer size 8 → 64 KiB", 101.8, 112.4, 110.2),
        ],
        transfers: vec![transfers()],
        latency: vec![latency()],
        tables: Vec::new(),
        method: vec![
            "Each term was measured alone: T_prop with NULL calls over the emulated link, T_ser \
             from the slope of response time over the size of a WRITE, T_op from the server's own \
             counters, T_B by writing the same bytes to the same directory without a network."
                .into(),
            "Every configuration ran seven times in shuffled order after one run for warming up. \
             Points are medians; bars reach from the fastest to the slowest repetition."
                .into(),
        ],
        raw_data: "run.json".into(),
    }
}

fn headline() -> Headline {
    let fact = |label: &str, value: &str, note: &str| Fact {
        label: label.into(),
        value: value.into(),
        note: note.into(),
    };
    Headline {
        sentence:
            "With one outstanding call, waiting for the link (T_prop) is 51 % of every 8 KiB \
                   write; eight outstanding calls hide it, and the model foresaw the gain within \
                   2 %."
                .into(),
        facts: vec![
            fact("Predicted gain", "+340 %", "8 KiB, window 1 → 8"),
            fact("Measured gain", "+332 %", "19.9 → 85.9 MiB/s"),
            fact("Limit", "118 MiB/s", "the link's payload rate"),
            fact("Efficiency", "93 %", "of the limit, after all changes"),
            fact("Best window", "N = 8", "more gains less than 2 %"),
        ],
    }
}

fn parameters() -> Vec<Parameter> {
    let parameter = |name: &str, value: f64, half: f64, n: u64, how: &str| Parameter {
        name: name.into(),
        value,
        unit: "µs".into(),
        ci95: Some(Interval { lo: value - half, hi: value + half }),
        n: Some(n),
        how: how.into(),
    };
    vec![
        parameter("T_prop", 201.3, 0.8, 2000, "Median round trip of a NULL call, both ways."),
        parameter("T_ser", 67.9, 0.4, 1400, "Slope of response time over the size, times 8 KiB."),
        parameter("T_op", 61.9, 2.1, 1400, "Intercept of the fit, less T_prop."),
        parameter("T_B", 61.4, 3.3, 700, "The store alone: the same writes without a network."),
        Parameter {
            name: "T_commit".into(),
            value: 118_000.0,
            unit: "µs".into(),
            ..Parameter::default()
        },
    ]
}

const TERMS_8_KIB: [(&str, f64); 4] =
    [("T_prop", 201.3), ("T_ser", 67.9), ("T_op", 61.9), ("T_B", 61.4)];

fn cycles() -> Vec<Cycle> {
    let cycle = |name: &str, factors: [f64; 4], measured_us: f64| Cycle {
        name: name.into(),
        terms: TERMS_8_KIB
            .iter()
            .zip(factors)
            .map(|((name, us), factor)| Term { name: (*name).into(), us: us * factor })
            .collect(),
        measured_us: Some(measured_us),
    };
    vec![
        cycle("8 KiB, stall, 1 thread, N=1", [1.0, 1.0, 1.0, 1.0], 401.0),
        cycle("8 KiB, concurrent, 8 threads, N=8", [0.0, 1.0, 0.12, 0.12], 90.9),
        cycle("64 KiB, stall, 1 thread, N=1", [1.0, 8.0, 1.2, 5.1], 1122.0),
        cycle("64 KiB, concurrent, 8 threads, N=8", [0.0, 8.0, 0.15, 0.2], 551.0),
    ]
}

fn throughput_plot(kib: u32) -> ThroughputPlot {
    let mib = f64::from(kib) / 1024.0;
    let ser_us = 8.48 * f64::from(kib);
    let curve = |name: &str, wait_us: f64, limit: f64, seed: f64| Curve {
        name: name.into(),
        points: (0..7)
            .map(|exponent| {
                let n = 1 << exponent;
                let window = f64::from(n) * mib / (wait_us + ser_us) * 1e6;
                let predicted = window.min(limit);
                let noise = ((f64::from(n) + seed) * 12.9898).sin() * 0.035 - 0.01;
                let measured = predicted * (1.0 + noise);
                CurvePoint {
                    n,
                    measured_mib_s: Some(measured),
                    spread_mib_s: Some(Interval { lo: measured * 0.96, hi: measured * 1.03 }),
                    predicted_mib_s: Some(predicted),
                    simulated_mib_s: None,
                }
            })
            .collect(),
    };
    let ceiling = |label: &str, mib_s: f64| Ceiling { label: label.into(), mib_s };
    let own = 1e6 * mib / ser_us;
    ThroughputPlot {
        title: format!("{kib} KiB writes"),
        curves: vec![
            curve("stall, 1 thread", 324.6, own * 0.76, 1.0),
            curve("concurrent, 8 threads", 310.0, own * 0.94, 5.0),
        ],
        ceilings: vec![ceiling("link", 118.2), ceiling("storage", 840.0)],
    }
}

fn step(change: &str, before: f64, predicted: f64, measured: f64) -> Step {
    Step {
        change: change.into(),
        before_mib_s: before,
        predicted_mib_s: predicted,
        measured_mib_s: measured,
    }
}

fn transfers() -> TransferPlot {
    let stalling = |name: &str, mib_s: f64, every_mib: f64, stall_ms: f64| {
        let mut transfer = Transfer { name: name.into(), ..Transfer::default() };
        let (mut t_ms, mut mib, mut since) = (0.0, 0.0, 0.0);
        while mib < 64.0 {
            transfer.points.push((t_ms, mib));
            t_ms += 0.25 / mib_s * 1e3;
            mib += 0.25;
            since += 0.25;
            if since >= every_mib && stall_ms > 0.0 {
                transfer.points.push((t_ms, mib));
                transfer.stalls.get_or_insert_default().push(Stall {
                    start_ms: t_ms,
                    end_ms: t_ms + stall_ms,
                    label: "COMMIT".into(),
                });
                t_ms += stall_ms;
                since = 0.0;
            }
        }
        transfer.points.push((t_ms, mib));
        transfer
    };
    TransferPlot {
        title: "64 MiB in writes of 8 KiB, before and after".into(),
        transfers: vec![
            stalling("before: stall, N=8", 86.0, 10.0, 118.0),
            stalling("after: concurrent, N=8", 102.0, 10.0, 0.0),
        ],
    }
}

fn latency() -> LatencyPlot {
    let calls = |name: &str, median_ms: f64, stall_ms: f64| {
        let mut latency = Latency { name: name.into(), ..Latency::default() };
        let mut state = 1u64;
        let mut t_ms = 0.0;
        for call in 0..8192u32 {
            state = state * 48_271 % 2_147_483_647;
            let uniform = state as f64 / 2_147_483_647.0;
            let waits = stall_ms > 0.0 && call % 1280 >= 1272;
            let response_ms = if waits {
                stall_ms * (0.9 + 0.1 * uniform)
            } else {
                median_ms * (0.85 - uniform.ln() * 0.2)
            };
            latency.calls.push((t_ms, response_ms));
            latency.histogram.record(Nanos::from_secs_f64(response_ms * 1e-3));
            t_ms += median_ms / 8.0 + if waits { stall_ms / 8.0 } else { 0.0 };
        }
        latency
    };
    LatencyPlot {
        title: "8 KiB writes, N = 8".into(),
        latencies: vec![calls("stall, 1 thread", 0.73, 118.0), calls("concurrent", 0.61, 0.0)],
    }
}
