//! The outcome of a benchmark, as text.

use std::fmt::Write;

use harness::compared::{Better, Compared};
use harness::records::{self, known};
use load::file_system::FileSystem;
use load::latencies::{self, Bar, SPIKES_OF_A_RHYTHM, STANDS_OUT, Summary};
use load::seqwrite_files::Mark;
use perf::record::Durability;
use perf::stats::Estimate;
use perf::units::Nanos;

use super::files::Measured;
use super::record::ratio;
use crate::seqwrite::args::Seqwrite;

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 40;
const OF_THE_FIRST: &str = "  of the first";

/// A table for each length, then the calls of each place.
pub(super) fn text(measured: &[Measured], args: &Seqwrite) -> String {
    let mut text = String::new();
    for group in measured.chunk_by(|a, b| a.workload == b.workload) {
        // Writing to a String does not fail.
        write_group(&mut text, group, args).ok();
    }
    text
}

fn write_group(out: &mut String, group: &[Measured], args: &Seqwrite) -> std::fmt::Result {
    let Some(first) = group.first() else { return Ok(()) };
    let workload = first.workload;
    writeln!(
        out,
        "seqwrite    {} in {} calls of {}; median of {}, in MiB (2^20 bytes) for each second",
        records::bytes(workload.file_bytes),
        workload.calls(),
        records::bytes(u64::from(workload.call_bytes)),
        first.runs.len(),
    )?;
    let longest = group.iter().map(|one| one.place.name().chars().count()).max().unwrap_or(0);
    let width = longest.max(OF_THE_FIRST.len());
    writeln!(out, "{:width$}{:>22}{:>22}{:>22}", "", "written", "flushed", "closed")?;
    for one in group {
        write_rates(out, one, width)?;
        if !std::ptr::eq(one, first) {
            write_ratios(out, one, first, width, args.mix_durability)?;
        }
    }
    for one in group {
        write_place(out, one, args.slow)?;
    }
    write_compared(out, group, args.mix_durability)?;
    writeln!(out)
}

fn write_rates(out: &mut String, one: &Measured, width: usize) -> std::fmt::Result {
    write!(out, "{:width$}", one.place.name())?;
    for mark in Mark::ALL {
        let cell = one
            .rates(mark)
            .map(|rates| format!("{:.1} ({:.1}..{:.1})", rates.median(), rates.min(), rates.max()));
        write!(out, "{:>22}", cell.unwrap_or_default())?;
    }
    writeln!(out)
}

/// Which place is faster than the first, as far as the runs tell.
fn write_compared(out: &mut String, group: &[Measured], mix: bool) -> std::fmt::Result {
    let [first, others @ ..] = group else { return Ok(()) };
    for other in others {
        let (a, b) = (first.place.name(), other.place.name());
        writeln!(out, "\ncompared    {b} with {a}; in brackets the interval of 95 %")?;
        for mark in Mark::ALL.into_iter().filter(|mark| is_compared(*mark, other, first, mix)) {
            let rates = first.rates(mark).zip(other.rates(mark));
            let compared = rates.and_then(|(a, b)| Compared::of(&a, &b, Better::Larger));
            if let Some(compared) = compared {
                writeln!(out, "  {:9} {}", mark.name(), compared.sentence(&a, &b))?;
            }
        }
    }
    Ok(())
}

/// Whether what is flushed survives the same, or does not matter.
fn is_compared(mark: Mark, one: &Measured, first: &Measured, mix: bool) -> bool {
    let (mine, theirs) = (one.place.file_system.flushed, first.place.file_system.flushed);
    mark == Mark::Written || mix || (mine.is_some() && mine == theirs)
}

/// Beside the first place.
fn write_ratios(
    out: &mut String,
    one: &Measured,
    first: &Measured,
    width: usize,
    mix: bool,
) -> std::fmt::Result {
    let is_fair = is_compared(Mark::Flushed, one, first, mix);
    write!(out, "{OF_THE_FIRST:width$}")?;
    for mark in Mark::ALL {
        let cell = match ratio(one, first, mark) {
            Some(ratio) if is_compared(mark, one, first, mix) => format!("x {ratio:.2}"),
            _ => "-".to_owned(),
        };
        write!(out, "{cell:>22}")?;
    }
    writeln!(out)?;
    if !is_fair {
        writeln!(
            out,
            "  flushed and closed are not compared: what is flushed survives {} there, {} here \
             (--mix-durability compares all the same)",
            survived(&first.place.file_system),
            survived(&one.place.file_system)
        )?;
    }
    Ok(())
}

fn write_place(out: &mut String, one: &Measured, slow: Nanos) -> std::fmt::Result {
    let file_system = &one.place.file_system;
    writeln!(
        out,
        "\n{}: {}; what is flushed survives {}",
        one.place.name(),
        file_system.kind,
        survived(file_system)
    )?;
    let [own, machine] = one.cpu_s_per_gib();
    let machine = machine.map(|time| format!(", of the whole machine {time:.2} s"));
    let own = own.map_or_else(
        || "too little was written".to_owned(),
        |time| format!("of this process {time:.2} s"),
    );
    writeln!(out, "  processor time for each GiB: {own}{}", machine.unwrap_or_default())?;
    let calls = one.typical().map(|run| run.calls.as_slice()).unwrap_or_default();
    let Some(summary) = Summary::of(calls, slow) else { return Ok(()) };
    write_calls(out, &summary)?;
    write_bars(out, &latencies::bars(calls))
}

/// The calls of the typical run in words.
fn write_calls(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let Summary { max, threshold, slow_calls, .. } = summary;
    let [p50, p90, p99, p999] = [summary.p50, summary.p90, summary.p99, summary.p999].map(known);
    writeln!(out, "  write()  p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p999}  max {max}")?;
    write!(out, "  mean {}", summary.mean)?;
    match (summary.mean_without_slow, summary.inflation()) {
        (Some(mean), Some(times)) => {
            writeln!(
                out,
                "; {mean} without the {slow_calls} calls over {threshold}: x {times:.2}"
            )?;
        }
        _ => writeln!(out, "; all {slow_calls} calls are over {threshold}")?,
    }
    writeln!(out, "  {}", rhythm(summary))?;
    match &summary.slope_us_per_1000 {
        Some(slope) => writeln!(out, "  {}", change(slope)),
        None => Ok(()),
    }
}

fn change(slope: &Estimate) -> String {
    let is_flat = slope.ci95.is_none_or(|ci| ci.contains(0.0));
    let judged = if is_flat { ", which may be none" } else { "" };
    let ci95 = slope.ci95.map(|ci| format!(" (95 %: {:+.2} to {:+.2})", ci.lo, ci.hi));
    let ci95 = ci95.unwrap_or_default();
    format!("calls change by {:+.2} us in 1,000 calls{ci95}{judged}", slope.value)
}

fn rhythm(summary: &Summary) -> String {
    let Some(period) = summary.period else { return without_period(summary) };
    format!(
        "a spike of {} every {:.0} calls ({} spikes, half of them {:.0} to {:.0} apart)",
        period.height, period.calls, period.spikes, period.middle_half.lo, period.middle_half.hi
    )
}

/// Why no period is given: there is none, or there are too few spikes to show one.
fn without_period(summary: &Summary) -> String {
    let Summary { spikes, threshold, .. } = summary;
    match spikes {
        0 => format!("no spikes: no call over {threshold} takes {STANDS_OUT} times the median"),
        few if *few < SPIKES_OF_A_RHYTHM => format!(
            "{few} spike(s): too few to tell a period from chance, which takes \
             {SPIKES_OF_A_RHYTHM}"
        ),
        many => format!("{many} spikes, and no period in them that chance would not give"),
    }
}

/// Bars by the square root of their calls: a spike in a thousand can be seen.
fn write_bars(out: &mut String, bars: &[Bar]) -> std::fmt::Result {
    let most = bars.iter().map(|bar| bar.calls).max().unwrap_or(1).max(1) as f64;
    for bar in bars {
        let share = (bar.calls as f64 / most).sqrt();
        let columns = (1..=BAR_COLUMNS).filter(|n| *n as f64 <= share * BAR_COLUMNS as f64 + 0.999);
        let line = "#".repeat(if bar.calls == 0 { 0 } else { columns.count() });
        let range = format!("{} to {}", bar.low, bar.high);
        writeln!(out, "  {range:>20} {:>9} {line}", bar.calls)?;
    }
    Ok(())
}

fn survived(file_system: &FileSystem) -> &'static str {
    match file_system.flushed {
        None => "something that is not known from here",
        Some(Durability::Memory) => "nothing",
        Some(Durability::PageCache) => "the end of the server, but no loss of power",
        Some(Durability::Stable) if file_system.is_nfs() => "a loss of power, as NFS promises",
        Some(Durability::Stable) => "a loss of power",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_is_no_period_depends_on_the_spikes() {
        let text = |every: usize, calls: usize| {
            let of = |n: usize| if n % every == every - 1 { 20_000 } else { 100 };
            let calls: Vec<Nanos> = (0..calls).map(|n| Nanos::from_micros(of(n))).collect();
            let summary = Summary::of(&calls, Nanos::from_millis(1)).unwrap();
            let mut out = String::new();
            write_calls(&mut out, &summary).unwrap();
            out
        };
        assert!(text(5_000, 1_000).contains("no spikes: no call over"), "{}", text(5_000, 1_000));
        assert!(text(100, 350).contains("3 spike(s): too few"), "{}", text(100, 350));
        let rhythm = text(100, 2_000);
        assert!(rhythm.contains("every 100 calls") && !rhythm.contains("too few"), "{rhythm}");
        assert!(rhythm.contains("which may be none"), "{rhythm}");
    }

    #[test]
    fn a_bar_with_one_call_among_many_is_seen() {
        let (low, high) = (Nanos::from_micros(1), Nanos::from_micros(2));
        let bars = [1_000_000, 0, 1].map(|calls| Bar { low, high, calls });
        let mut out = String::new();
        write_bars(&mut out, &bars).unwrap();
        let marks: Vec<usize> = out.lines().map(|line| line.matches('#').count()).collect();
        assert_eq!(marks, [BAR_COLUMNS, 0, 1]);
    }
}
