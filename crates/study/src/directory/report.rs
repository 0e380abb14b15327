//! A study of a directory as the report wants it.

use load::directory::{Kind, Names};
use perf::record::{Durability, Run};
use perf::stats::{Interval, Sample};
use perf::units::Nanos;
use report::{
    Curve, CurvePoint, Cycle, Fact, Headline, Numbers, Parameter, Step, StudyReport, Term,
    ThroughputPlot,
};

use super::counted::{Counted, Operation};
use super::job::Measured;
use super::outcome::{DirectoryStudy, Part, Place, ProgramsPoint};
use super::record::{SPANS, file_rates, single, us};
use crate::model::or_dash;
use crate::server_study::report::environment;
use crate::server_study::report::parameters::parameter;

/// The whole report.
pub(super) fn report(outcome: &DirectoryStudy, run: &Run) -> StudyReport {
    StudyReport {
        title: "nfskit study".to_owned(),
        generated_at: outcome.started.clone(),
        command: outcome.command.clone(),
        target: format!("{} ({})", outcome.dir.display(), outcome.file_system.kind),
        durability: outcome.file_system.flushed,
        link: mount(outcome),
        environment: environment(run),
        warnings: run.warnings.clone(),
        headline: headline(outcome),
        parameters: parameters(outcome),
        cycles: cycles(outcome),
        throughput: vec![plot(outcome, Kind::Write), plot(outcome, Kind::Read)],
        steps: [Kind::Write, Kind::Read]
            .into_iter()
            .filter_map(|kind| step(outcome, kind))
            .collect(),
        tables: tables(outcome),
        method: method(outcome),
        raw_data: "run.json and calls.csv".to_owned(),
        ..StudyReport::default()
    }
}

fn mount(outcome: &DirectoryStudy) -> String {
    let Some(report) = &outcome.diagnosis else {
        let options = outcome.file_system.mount_options.as_deref();
        return format!("mounted {}", options.unwrap_or("options not known"));
    };
    let fact = |name| report.fact(name).unwrap_or_default();
    format!("{} NFS v{}: {}", fact("server"), fact("version"), fact("options"))
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "8 KiB writes, each made stable",
        Kind::Read => "8 KiB reads at random, dropped from memory before",
    }
}

fn headline(outcome: &DirectoryStudy) -> Headline {
    let verdict = outcome.diagnosis.as_ref().map(|report| format!("Doctor: {}.", report.verdict));
    let sentences = [most_of_a_write(outcome), gained(outcome), verdict].into_iter().flatten();
    let sentence = sentences.collect::<Vec<String>>().join(" ");
    Headline { sentence, facts: facts(outcome) }
}

/// What most of a small write's time goes to.
fn most_of_a_write(outcome: &DirectoryStudy) -> Option<String> {
    let median_us = us(&outcome.measured.small.of.stable)?.median();
    of_a_write(median_us, &outcome.parts())
}

/// What a write takes is the median, as in the table. Only of a mean there are parts.
fn of_a_write(median_us: f64, parts: &[Part]) -> Option<String> {
    let mean_us: f64 = parts.iter().map(|part| part.us).sum();
    let most = parts.iter().max_by(|a, b| a.us.total_cmp(&b.us))?;
    let share = 100.0 * most.us / mean_us.max(f64::MIN_POSITIVE);
    let how_much = if share > 50.0 { "most" } else { "the largest part" };
    Some(format!(
        "A write of 8 KiB that is made stable takes {} in the median; {how_much} of the mean of \
         {}, {share:.0} %, is {}.",
        time(median_us),
        time(mean_us),
        in_words(most)
    ))
}

/// What several programs at once give.
fn gained(outcome: &DirectoryStudy) -> Option<String> {
    if outcome.is_unpredictable(Kind::Write) {
        let why = "two programs at once are each faster than one alone";
        return Some(format!("What more programs give is not predicted: {why}."));
    }
    let (programs, gain) = outcome.gain(Kind::Write)?;
    let (measured, predicted, held) = (gain.measured, gain.predicted, gain.sentence());
    Some(format!(
        "{programs} programs at once give {measured:.1} times as much as one; predicted from one \
         and two: {predicted:.1} ({held})."
    ))
}

fn facts(outcome: &DirectoryStudy) -> Vec<Fact> {
    let rate = |name: &str| {
        let (_, span) = SPANS.into_iter().find(|(known, _)| *known == name)?;
        Some(format!("{:.1} MiB/s", file_rates(&outcome.measured, span)?.median()))
    };
    let from_memory = match outcome.memory_share() {
        (Some(share), how) => format!("{:.0} % of it from memory, {how}", 100.0 * share),
        (None, _) => "how much of it came from memory is not known".to_owned(),
    };
    let all = [
        ("a file written and flushed", "flushed", survives(outcome)),
        ("read at once", "read_at_once", "the client has it in memory"),
        ("read after it was dropped", "reread", &from_memory),
    ];
    let fact = |(label, span, note): (&str, &str, &str)| {
        Some(Fact { label: label.to_owned(), value: rate(span)?, note: note.to_owned() })
    };
    all.into_iter().filter_map(fact).collect()
}

fn survives(outcome: &DirectoryStudy) -> &'static str {
    match outcome.file_system.flushed {
        Some(Durability::Stable) => {
            "it survives a loss of power, if server and disks keep what they promise"
        }
        Some(Durability::PageCache) => "it survives the program",
        Some(Durability::Memory) => "it survives nothing: it lies in memory",
        None => "what it survives cannot be seen from here",
    }
}

/// A part in words.
fn in_words(part: &Part) -> &'static str {
    match part.place {
        Place::ClientQueue => "waiting in the client for its turn",
        Place::ClientRest | Place::PageCache | Place::Write => "spent in this host",
        Place::Fdatasync => "making it stable",
        Place::Network => "the network's round trips",
        Place::NetworkOrServer => "network or server, which cannot be distinguished",
        Place::Server => "the server and its storage",
    }
}

fn time(us: f64) -> String {
    if us < 1e3 { format!("{us:.0} us") } else { format!("{:.2} ms", us / 1e3) }
}

fn parameters(outcome: &DirectoryStudy) -> Vec<Parameter> {
    const HOW: [(&str, &str); 8] = [
        ("create", "open(2) with O_CREAT and O_EXCL, and close(2), in an empty directory."),
        ("stat_known", "stat(2) of a file that was just made: from the client's memory, mostly."),
        ("stat_absent", "stat(2) of a name that is not there, and was not looked up before."),
        ("remove", "unlink(2) of an empty file."),
        ("write_8k", "pwrite(2) of 8 KiB in place: into the client's memory, mostly."),
        ("write_stable_8k", "The same until fdatasync(2) has returned."),
        ("write_1m", "pwrite(2) of 1 MiB in place."),
        ("write_stable_1m", "The same until fdatasync(2) has returned."),
    ];
    let measured = &outcome.measured;
    let single = single(measured).into_iter().zip(HOW).filter_map(|((name, times), how)| {
        debug_assert_eq!(name, how.0);
        Some(median(name.replace('_', " "), "us", &us(times)?, how.1))
    });
    let how = format!("A file of {} MiB in calls of 1 MiB.", measured.file_bytes >> 20);
    let files = SPANS.into_iter().filter_map(|(name, span)| {
        let name = format!("file {}", name.replace('_', " "));
        Some(median(name, "MiB/s", &file_rates(measured, span)?, &how))
    });
    single.chain(files).collect()
}

fn median(name: String, unit: &str, sample: &Sample, how: &str) -> Parameter {
    parameter(&name, sample.median_estimate(), (unit, sample.n()), how)
}

fn cycles(outcome: &DirectoryStudy) -> Vec<Cycle> {
    let name = "8 KiB, stable, one at a time".to_owned();
    let terms = outcome.parts().into_iter();
    let terms =
        terms.map(|part| Term { name: part.place.name().to_owned(), us: part.us }).collect();
    let measured_us = us(&outcome.measured.small.of.stable).map(|sample| sample.mean());
    vec![Cycle { name, terms, measured_us }]
}

fn plot(outcome: &DirectoryStudy, kind: Kind) -> ThroughputPlot {
    let points = outcome.curve(kind).iter().map(point).collect();
    let curves = vec![Curve { name: "programs at once".to_owned(), points }];
    ThroughputPlot { title: title(kind).to_owned(), curves, ceilings: Vec::new() }
}

fn point(point: &ProgramsPoint) -> CurvePoint {
    let sample = point.mib_per_s.as_ref();
    CurvePoint {
        n: u32::try_from(point.programs).unwrap_or(u32::MAX),
        measured_mib_s: sample.map(Sample::median),
        spread_mib_s: sample.map(|sample| Interval { lo: sample.min(), hi: sample.max() }),
        predicted_mib_s: point.predicted_mib_per_s,
        simulated_mib_s: None,
    }
}

fn step(outcome: &DirectoryStudy, kind: Kind) -> Option<Step> {
    let (programs, gain) = outcome.gain(kind)?;
    let before_mib_s = outcome.curve(kind).first()?.mib_per_s.as_ref()?.median();
    let [predicted_mib_s, measured_mib_s] =
        [gain.predicted, gain.measured].map(|times| times * before_mib_s);
    let change = format!("{}: 1 -> {programs} programs", title(kind));
    Some(Step { change, before_mib_s, predicted_mib_s, measured_mib_s })
}

fn tables(outcome: &DirectoryStudy) -> Vec<Numbers> {
    let counted = outcome.measured.mount.as_ref().map(|_| counted(&outcome.measured));
    counted.into_iter().chain(outcome.diagnosis.as_ref().map(diagnosis)).collect()
}

fn diagnosis(report: &doctor::Report) -> Numbers {
    let columns = ["rule", "layer", "severity", "finding", "to try", "gain"];
    let rows = report.findings.iter().map(finding);
    Numbers::new("What doctor says of the mount", &report.fine.join("; "), columns, rows)
}

fn finding(finding: &doctor::Finding) -> [String; 6] {
    let found = &finding.found;
    let [rule, layer, severity] =
        [finding.rule.name, finding.layer.name(), found.severity.name()].map(str::to_owned);
    [rule, layer, severity, found.what.clone(), found.remedy.clone(), found.gain.to_string()]
}

/// The kernel's calls of each step, beside those of the program.
fn counted(measured: &Measured) -> Numbers {
    let (small, large) = (&measured.small, &measured.large);
    let mut rows = vec![
        counted_step("names", &all_names(&measured.names.of), measured.names.counted.as_ref()),
        counted_step("8 KiB stable", &small.of.stable, small.counted.as_ref()),
        counted_step("1 MiB stable", &large.of.stable, large.counted.as_ref()),
    ];
    for crowds in &measured.crowds {
        let times: Vec<Nanos> = crowds.runs.iter().flat_map(|run| run.calls.clone()).collect();
        let what = if crowds.kind == Kind::Write { "stable" } else { "read" };
        let name = format!("8 KiB {what}, {} programs", crowds.programs);
        rows.push(counted_step(&name, &times, crowds.counted.as_ref()));
    }
    Numbers::new(
        "What the kernel's client counted",
        "Of each step: the calls of programs with their mean time, the calls of NFS for each of \
         them, and the means of those. A call that is not counted was answered from memory; one \
         more than the program's may be for several.",
        COUNTED_COLUMNS,
        rows,
    )
}

const COUNTED_COLUMNS: [&str; 7] = [
    "step",
    "program's calls",
    "us each",
    "calls of NFS for each",
    "queue ms",
    "rtt ms",
    "execute ms",
];

fn all_names(names: &Names) -> Vec<Nanos> {
    [&names.created, &names.known, &names.absent, &names.removed]
        .into_iter()
        .flatten()
        .copied()
        .collect()
}

/// The calls of a program in a step, and what the kernel counted for them.
fn counted_step(name: &str, times: &[Nanos], counted: Option<&Counted>) -> [String; 7] {
    let mean_us = us(times).map_or(0.0, |sample| sample.mean());
    let (calls, mean_us) = (times.len().to_string(), format!("{mean_us:.0}"));
    let for_each = counted.map(|counted| counted.for_each(times.len()));
    let [queue, rtt, execute] = match counted.map(Counted::total) {
        Some(Operation { calls, queue_ms, rtt_ms, execute_ms, .. }) => {
            [queue_ms, rtt_ms, execute_ms]
                .map(|all_ms| format!("{:.3}", all_ms / (calls as f64).max(1.0)))
        }
        None => ["-"; 3].map(str::to_owned),
    };
    [name.to_owned(), calls, mean_us, or_dash(for_each), queue, rtt, execute]
}

fn method(outcome: &DirectoryStudy) -> Vec<String> {
    let plan = &outcome.plan;
    let mut paragraphs = vec![
        format!(
            "System calls in a directory of its own (mode 0700), which is removed: {} names made, \
             looked up, listed and removed; {} writes of 8 KiB and {} of 1 MiB in place, each made \
             stable by fdatasync(2); no step goes on for more than {:.0} s.",
            outcome.measured.names.of.created.len(),
            outcome.measured.small.of.stable.len(),
            outcome.measured.large.of.stable.len(),
            plan.step_time.as_secs_f64()
        ),
        format!(
            "Several programs are threads with open files of their own, {:.0} ms a run, every \
             number of them {} times, all of them once before any comes again. Writers overwrite \
             1 MiB of their own; readers share a file of {} MiB that was dropped from memory \
             (posix_fadvise), no block twice, without read-ahead.",
            plan.run_time.as_millis_f64(),
            plan.repeats,
            outcome.measured.file_bytes >> 20
        ),
        "Predicted from one program and two, and nothing else: T1 has a part D that serves one \
         call after the other, T2 = T1 + D^2 / T1, and a closed network of a delay T1 - D and a \
         queue D gives the rest. A server that makes several writes stable at once beats it."
            .to_owned(),
    ];
    paragraphs.push(counting(outcome));
    paragraphs
}

fn counting(outcome: &DirectoryStudy) -> String {
    match &outcome.measured.mount {
        Some(mount) => format!(
            "The directory is on {mount}: its counters were read before and after each step, and \
             whatever else used the mount then is in them. The network's part is TCP's smallest \
             round trip for each call, the server's the rest of the time from sending to reply."
        ),
        None => format!(
            "The kernel counts no calls for {}: what is below the system calls was not seen.",
            outcome.file_system.kind
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_takes_the_median_and_the_parts_are_of_the_mean() {
        let of = |written, stable| {
            let part = |place, us| Part { place, us };
            of_a_write(206.0, &[part(Place::Write, written), part(Place::Fdatasync, stable)])
                .unwrap()
        };
        let write = "A write of 8 KiB that is made stable takes 206 us in the median;";
        let most = " most of the mean of 271 us, 97 %, is making it stable.";
        assert_eq!(of(8.0, 263.0), format!("{write}{most}"));
        let half = " the largest part of the mean of 400 us, 50 %, is";
        assert!(of(200.0, 200.0).starts_with(&format!("{write}{half}")), "{}", of(200.0, 200.0));
    }
}
