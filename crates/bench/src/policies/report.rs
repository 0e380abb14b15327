//! The report: every call of every policy, in the order of the paper's figures.

use client::write_behind::{PolicyName, Stage};
use harness::records;
use harness::shell;
use load::latencies;
use net::clock::Clock;
use report::Numbers;
use report::policies::{CallPlot, Calls, PoliciesReport, SpreadPlot};
use report::{Latency, LatencyPlot};

use super::findings::findings;
use super::measured::{Measured, Outcome, Scene, Speed};
use super::text::paper;

/// Calls that figure 2 of the paper shows.
const FIGURE_2_CALLS: usize = 1_000;

pub(super) fn html(outcome: &Outcome) -> String {
    let made = load::environment::rfc3339(&Clock::real());
    let environment = load::environment::describe();
    let server = outcome.url.clone().unwrap_or_else(|| "servers of our own, in memory".to_owned());
    let facts = [
        ("Server", server),
        ("Link", outcome.link.to_string()),
        ("WRITE", format!("at most {} KiB", outcome.wsize >> 10)),
        ("Machine", environment.kernel.unwrap_or_default()),
        ("Processors", environment.cpus.map(|cpus| cpus.to_string()).unwrap_or_default()),
        ("Made", made),
    ];
    report::policies::html(&PoliciesReport {
        title: "Write-behind: five policies".to_owned(),
        facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
        findings: findings(outcome),
        calls: figure_2(outcome).into_iter().chain(figures_3_and_4(outcome)).collect(),
        spreads: [Speed::Fast, Speed::Slow]
            .into_iter()
            .filter_map(|speed| figures_5_and_6(outcome, speed))
            .collect(),
        tables: vec![table_1(outcome), beside_the_paper(outcome), stages(outcome)],
        method: METHOD.map(str::to_owned).into(),
        command: shell::own(),
    })
}

const METHOD: [&str; 4] = [
    "Each run writes a fresh file from its beginning in calls of 8 KiB, and commits it. The calls \
     go to the client's library; there is no kernel in between. The writer has a thread of its \
     own; flusher, replies and connection run on others. Runs of all policies alternate.",
    "The paper's client had two processors of 933 MHz and spent 140 us in a call that waited for \
     nothing. What takes a writer's time today is a hundredth of that, so it fills memory much \
     faster than the network empties it: what is compared is the shape, not the microseconds.",
    "Shown is the run with the median mean of all repetitions, without its first call. A slow call \
     is one of more than 1 ms. The period is the median distance between spikes, given only if \
     they are more regular than chance would have it; the slope is the growth of the median call \
     in 1,000 calls.",
    "Numbers of the paper: Lever and Honeyman, Linux NFS Client Write Performance, USENIX 2002, \
     sections 3.3 to 3.6.",
];

fn note(measured: &Measured) -> String {
    let Some(summary) = measured.summary() else { return String::new() };
    let mean = summary.mean.as_micros_f64();
    let period = summary.period.as_ref().map(|period| format!(", every {:.0}", period.calls));
    let slope = summary.slope_us_per_1000.as_ref().map(|slope| slope.value);
    format!(
        "mean {mean:.1} us, {} over 1 ms{}{}",
        summary.slow_calls,
        period.unwrap_or_default(),
        slope.map(|slope| format!(", {slope:+.2} us in 1000 calls")).unwrap_or_default(),
    )
}

fn call_plot(outcome: &Outcome, scene: Scene, calls_max: usize) -> Vec<Calls> {
    let all = PolicyName::ALL.into_iter();
    all.filter_map(|policy| {
        let measured = outcome.of(policy, scene, Speed::Fast)?;
        let calls = measured.typical()?.calls.iter().take(calls_max);
        Some(Calls {
            name: policy.name().to_owned(),
            note: note(measured),
            micros: calls.map(|call| call.as_micros_f64()).collect(),
        })
    })
    .collect()
}

/// What a figure shows: of which file on which server.
fn with_file(outcome: &Outcome, scene: Scene, speed: Speed) -> Option<(&Measured, String)> {
    let first = outcome.of(PolicyName::Linux244, scene, speed)?;
    Some((first, outcome.with_file(first)))
}

fn figure_2(outcome: &Outcome) -> Option<CallPlot> {
    let (first, file) = with_file(outcome, Scene::Spikes, Speed::Fast)?;
    let calls = first.typical()?.calls.len();
    let shown = if calls > FIGURE_2_CALLS { "the first 1,000" } else { "all" };
    Some(CallPlot {
        title: format!("Figure 2: {shown} calls of {file}"),
        caption:
            "In the paper, with a file of 40 MB, linux-2.4.4 has a call of more than 19 ms about \
                  every 85 calls, and a mean of 482.1 us that would be 139.6 us without them. 96 \
                  calls of 8 KiB are the 192 requests of a page at which that client stops to \
                  flush. The scale of time is logarithmic; the numbers are those of the whole run."
                .to_owned(),
        policies: call_plot(outcome, Scene::Spikes, FIGURE_2_CALLS),
    })
}

const PAPER_3_AND_4: &str = "\
    In the paper, with a file of 100 MB, calls get slower and slower without the limits \
    (no-flush, 484.7 us in the mean), because the list that is scanned grows, and stay as they \
    are with the hash table (hashed, 136.9 us).";

fn figures_3_and_4(outcome: &Outcome) -> Option<CallPlot> {
    let (_, file) = with_file(outcome, Scene::Growth, Speed::Fast)?;
    Some(CallPlot {
        title: format!("Figures 3 and 4: all calls of {file}"),
        caption: PAPER_3_AND_4.to_owned(),
        policies: call_plot(outcome, Scene::Growth, usize::MAX),
    })
}

const PAPER_5_AND_6: &str = "\
    In the paper, with a file of 30 MB, releasing the lock around the send (unlocked) instead of \
    holding it (hashed) lowers the mean from 149 to 127 us with the fast server and from 113 to \
    105 us with the slow one, and the longest call from 381 to 292 us. Both scales are \
    logarithmic. Upright lines: the median and the 99th percentile (dashed).";

fn figures_5_and_6(outcome: &Outcome, speed: Speed) -> Option<SpreadPlot> {
    let (_, file) = with_file(outcome, Scene::Jitter, speed)?;
    let all = PolicyName::ALL.into_iter();
    let latencies = all.filter_map(|policy| {
        let run = outcome.of(policy, Scene::Jitter, speed)?.typical()?;
        Some(Latency {
            name: policy.name().to_owned(),
            calls: Vec::new(),
            histogram: latencies::histogram(run.calls.get(1..)?),
        })
    });
    let title = format!("Figures 5 and 6: calls of {file}, by their time");
    Some(SpreadPlot {
        plot: LatencyPlot { title, latencies: latencies.collect() },
        caption: PAPER_5_AND_6.to_owned(),
    })
}

/// The numbers of the calls beside those of the paper.
fn beside_the_paper(outcome: &Outcome) -> Numbers {
    let columns = [
        "policy and file",
        "mean (us)",
        "up to 1 ms",
        "slow calls",
        "period",
        "us in 1000",
        "spread (us)",
        "written (MiB/s)",
        "flushed (MiB/s)",
    ];
    let measured = outcome.measured.iter().filter(|measured| measured.speed == Speed::Fast);
    let rows = measured.filter_map(row);
    let sentences = [
        (PolicyName::Linux244, Scene::Spikes),
        (PolicyName::NoFlush, Scene::Growth),
        (PolicyName::Hashed, Scene::Growth),
    ];
    let sentences = sentences.map(|(policy, scene)| format!("{policy}: {}", paper(policy, scene)));
    let of = if outcome.url.is_some() { "" } else { ", fast server" };
    Numbers {
        title: format!("Every policy with every file{of}"),
        caption: format!(
            "The paper has, for files of 40, 100 and 100 MB: {}.",
            sentences.join("; ")
        ),
        columns: columns.map(str::to_owned).into(),
        rows: rows.collect(),
    }
}

fn row(measured: &Measured) -> Option<Vec<String>> {
    let (summary, (written, flushed)) = (measured.summary()?, measured.rates()?);
    let dash = || "–".to_owned();
    let slope = summary.slope_us_per_1000.as_ref();
    Some(vec![
        format!("{}, {}", measured.policy, records::bytes(measured.file_bytes)),
        format!("{:.1}", summary.mean.as_micros_f64()),
        summary.mean_without_slow.map_or_else(dash, |m| format!("{:.1}", m.as_micros_f64())),
        format!("{} of {}", summary.slow_calls, summary.calls),
        summary.period.as_ref().map_or_else(dash, |period| format!("{:.0}", period.calls)),
        slope.map_or_else(dash, |slope| format!("{:+.2}", slope.value)),
        measured.spread_us().map_or_else(dash, |spread| format!("{spread:.1}")),
        format!("{written:.0}"),
        format!("{flushed:.0}"),
    ])
}

fn table_1(outcome: &Outcome) -> Numbers {
    let columns = ["server", "network", "lock", "no lock", "adaptive", "the paper, MB/s"];
    let rows = [(Speed::Fast, "38, 115, 140"), (Speed::Slow, "26, 138, 147")];
    let rows = rows.into_iter().filter_map(|(speed, paper)| {
        let rates = |policy| outcome.of(policy, Scene::Short, speed)?.rates();
        let (held, network) = rates(PolicyName::Hashed)?;
        let (released, _) = rates(PolicyName::Unlocked)?;
        let (adaptive, _) = rates(PolicyName::Adaptive)?;
        let numbers = [network, held, released, adaptive].map(|rate| format!("{rate:.0}"));
        Some([vec![speed.name().to_owned()], numbers.into(), vec![paper.to_owned()]].concat())
    });
    let first = outcome.of(PolicyName::Hashed, Scene::Short, Speed::Fast);
    let file = first.map_or_else(String::new, |first| records::bytes(first.file_bytes));
    Numbers {
        title: format!("Table 1: a file of {file}, MiB/s"),
        caption: "Network: until everything is committed. The others: until the last call has \
                  returned."
            .to_owned(),
        columns: columns.map(str::to_owned).into(),
        rows: rows.collect(),
    }
}

fn stages(outcome: &Outcome) -> Numbers {
    let mut columns = vec!["policy, mean in us".to_owned()];
    columns.extend(Stage::ALL.map(|stage| stage.name().to_owned()));
    let all = PolicyName::ALL.into_iter();
    let rows = all.filter_map(|policy| {
        let run = outcome.of(policy, Scene::Growth, Speed::Fast)?.typical()?;
        let means = Stage::ALL.map(|stage| {
            let histogram = run.stages.of(stage);
            let mean = histogram.mean().as_micros_f64();
            if histogram.is_empty() { "–".to_owned() } else { format!("{mean:.2}") }
        });
        Some([vec![policy.name().to_owned()], means.into()].concat())
    });
    Numbers {
        title: with_file(outcome, Scene::Growth, Speed::Fast)
            .map_or_else(String::new, |(_, file)| format!("What the stages cost, {file}")),
        caption: "Index lookup and lock wait are the writer's; with a list there are two lookups \
                  for each page. Send is from the encoded call until the system has taken its \
                  last byte, wait from there until the reply has come."
            .to_owned(),
        columns,
        rows: rows.collect(),
    }
}
