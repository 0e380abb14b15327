//! `nfskit bench storage`: what a local directory can do.

use std::fmt::Write;

use harness::exit::Failure;
use harness::local;
use harness::records::{self, bytes, cell, quantile, sample};
use harness::verbosity::Verbosity;
use load::file_system::{self, FileSystem};
use load::floor::mib_per_s;
use load::floor::storage::{self, APPEND_BYTES, Measured, Plan, Run};
use load::latencies::histogram;
use perf::histogram::Histogram;
use perf::record::{Better, Durability, Run as Record, Target};
use perf::stats::Sample;
use perf::units::Nanos;

use super::{failure, on_a_thread};
use crate::floors::args::Storage;
use crate::workload::{self, Conditions, Outputs, Workload};

/// Largest call: a buffer of it is in memory.
const CALL_BYTES_MAX: u64 = 1 << 30;
/// Times of appends that are recorded: 160 MB.
const TIMES_MAX: u64 = 20_000_000;
/// A share of a file in memory up to which a read counts as one from below.
const COLD_SHARE_MAX: f64 = 0.05;

impl Workload for Storage {
    type Plan = FileSystem;
    type Measured = Measured;

    fn plan(&self) -> Result<FileSystem, Failure> {
        look(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    async fn run(
        &self,
        _: &FileSystem,
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Measured>, Failure> {
        let plan = Plan {
            dir: self.dir.clone(),
            file_bytes: self.size,
            call_bytes: usize::try_from(self.call).unwrap_or(usize::MAX),
            repeats: self.repeats,
            appends: self.appends,
            append_time_max: self.append_time,
            drop_caches: self.drop_caches,
        };
        let name = local::tag(&clock);
        let work = move |stop: &_, progress: load::floor::Progress<'_>| {
            storage::run(&clock, &plan, &name, stop, progress)
        };
        let ran = on_a_thread("storage", verbosity, &mut interrupts, work).await?;
        let failed = ran.failed.map(failure);
        let measured = (!ran.measured.runs.is_empty()).then_some(ran.measured);
        Ok(workload::Outcome { measured, failed })
    }

    fn table(&self, file_system: &FileSystem, measured: &Measured, _: Verbosity) -> String {
        Report { args: self, file_system, measured }.text()
    }

    fn record(&self, file_system: &FileSystem, measured: &Measured) -> Vec<Record> {
        vec![Report { args: self, file_system, measured }.record()]
    }
}

/// The directory, if there is room in it.
fn look(args: &Storage) -> Result<FileSystem, Failure> {
    if args.call > CALL_BYTES_MAX {
        return Err(Failure::usage("--call is above 1G", "a smaller --call"));
    }
    if u64::from(args.appends) * u64::from(args.repeats) > TIMES_MAX {
        let what = format!(
            "{} appends, {} times: the times of {TIMES_MAX} are recorded",
            args.appends, args.repeats
        );
        return Err(Failure::usage(what, "fewer --repeats, or fewer --appends"));
    }
    let file_system = local::directory(&args.dir, "--dir")?;
    // One after the other, so that the larger one decides.
    let appended = u64::from(args.appends) * APPEND_BYTES as u64;
    let free = file_system::free_bytes(&args.dir).map_err(failure)?;
    let advice = "free space there, or a smaller --size";
    local::room(&args.dir.display().to_string(), args.size.max(appended), free, advice)?;
    Ok(file_system)
}

struct Report<'a> {
    args: &'a Storage,
    file_system: &'a FileSystem,
    measured: &'a Measured,
}

impl Report<'_> {
    fn rates(&self, span: impl Fn(&Run) -> Option<Nanos>) -> Option<Sample> {
        let spans = self.measured.runs.iter().filter_map(span);
        sample(spans.map(|span| mib_per_s(self.args.size, span)))
    }

    /// The share of the file in memory before a read; the highest of all repetitions.
    fn resident(&self, share: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.measured.runs.iter().map(share).collect();
        shares?.into_iter().reduce(f64::max)
    }

    fn appends(&self) -> Histogram {
        let mut all = Histogram::new();
        self.measured.runs.iter().for_each(|run| all.merge(&histogram(&run.appends)));
        all
    }

    /// Appends in a second, each made durable.
    fn append_rates(&self) -> Option<Sample> {
        let runs = self.measured.runs.iter().filter(|run| !run.appends.is_empty());
        sample(runs.map(|run| {
            let span = run.appends.iter().fold(Nanos::ZERO, |sum, append| sum + *append);
            run.appends.len() as f64 / span.as_secs_f64()
        }))
    }

    fn sync_ms(&self) -> Option<Sample> {
        let spans = self.measured.runs.iter().filter_map(|run| run.flushed.zip(run.written));
        sample(spans.map(|(flushed, written)| (flushed - written).as_millis_f64()))
    }

    /// Processor time of this process over all time that was measured.
    fn own_share(&self) -> f64 {
        let cpu: f64 = self.measured.runs.iter().map(|run| run.cpu.as_secs_f64()).sum();
        cpu / self.measured.runs.iter().map(|run| run.span.as_secs_f64()).sum::<f64>()
    }

    /// Whether the second read came from below the kernel's memory; `None` when it is not known.
    fn is_cold(&self) -> Option<bool> {
        Some(self.resident(|run| run.reread_resident)? <= COLD_SHARE_MAX)
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        self.write(&mut out).ok();
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { args, file_system, measured } = self;
        writeln!(
            out,
            "storage     {}: {}; {} in calls of {}; medians of {}",
            args.dir.display(),
            file_system.kind,
            bytes(args.size),
            bytes(args.call),
            measured.runs.len()
        )?;
        let survives = survives(file_system.flushed);
        let line = |out: &mut String, name: &str, rates: Option<Sample>, what: &str| {
            writeln!(out, "{name:16}{:>28} MiB/s  {what}", cell(rates.as_ref(), 1))
        };
        line(out, "written", self.rates(|run| run.written), "the kernel has it")?;
        line(out, "written, synced", self.rates(|run| run.flushed), survives)?;
        let resident = in_memory(self.resident(|run| run.read_resident));
        line(out, "read", self.rates(|run| run.read), &resident)?;
        let resident = in_memory(self.resident(|run| run.reread_resident));
        line(out, "read, dropped", self.rates(|run| run.reread), &resident)?;
        writeln!(out, "{:16}{:>28} ms", "fsync", cell(self.sync_ms().as_ref(), 2))?;
        self.write_appends(out)?;
        if let Some(why) = &measured.not_dropped {
            writeln!(out, "the system's caches were not dropped ({why}); the file's own were")?;
        }
        if self.is_cold() == Some(false) {
            writeln!(
                out,
                "the second read is one of memory: the file system keeps the file there"
            )?;
        }
        writeln!(
            out,
            "generator   {:.0} % of one processor; what is below the kernel may cache, too",
            self.own_share() * 100.0
        )
    }

    fn write_appends(&self, out: &mut String) -> std::fmt::Result {
        let appends = self.appends();
        if appends.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "{:16}{:>28} appends of 4 KiB, fdatasync, for each second",
            "appended",
            cell(self.append_rates().as_ref(), 0)
        )?;
        let [p50, p90, p99, p999, max] =
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|share| quantile(&appends, share));
        writeln!(
            out,
            "{:16}p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p999}  max {max}  ({} appends)",
            "",
            appends.count()
        )
    }

    fn record(&self) -> Record {
        let mut record = records::of("storage");
        self.describe(&mut record);
        let samples = [
            ("written_mib_per_s", self.rates(|run| run.written), "MiB/s"),
            ("flushed_mib_per_s", self.rates(|run| run.flushed), "MiB/s"),
            ("read_mib_per_s", self.rates(|run| run.read), "MiB/s"),
            ("reread_mib_per_s", self.rates(|run| run.reread), "MiB/s"),
            ("fsync_ms", self.sync_ms(), "ms"),
            ("appends_per_s", self.append_rates(), "1/s"),
        ];
        records::spreads(&mut record, samples);
        for part in ["written", "flushed", "read", "reread"] {
            record.result(&format!("{part}_mib_per_s"), Better::Larger);
        }
        record.result("fsync_ms", Better::Smaller).result("appends_per_s", Better::Larger);
        if !self.appends().is_empty() {
            record.histogram("append", &self.appends());
        }
        let shares = [
            ("read_resident_share", self.resident(|run| run.read_resident)),
            ("reread_resident_share", self.resident(|run| run.reread_resident)),
        ];
        for (name, share) in shares {
            share.map(|share| record.metric(name, share, ""));
        }
        record.metric("generator_cpu_share", self.own_share(), "");
        self.warn(&mut record);
        record
    }

    /// The target and the parameters.
    fn describe(&self, record: &mut Record) {
        let Self { args, file_system, measured } = self;
        record.target = Target {
            kind: "directory".to_owned(),
            path: Some(args.dir.display().to_string()),
            durability: file_system.flushed,
            mount_options: file_system.mount_options.clone(),
            ..Target::default()
        };
        record.target.other.insert("file_system".to_owned(), file_system.kind.clone().into());
        let parameters = [
            ("file_bytes", args.size),
            ("call_bytes", args.call),
            ("append_bytes", APPEND_BYTES as u64),
            ("appends", u64::from(args.appends)),
            ("append_ns_max", args.append_time.as_nanos()),
            ("repeats", measured.runs.len() as u64),
        ];
        records::parameters(record, parameters);
        let dropped = match (args.drop_caches, &measured.not_dropped) {
            (true, None) => "the system's caches",
            _ => "the file's pages",
        };
        records::parameters(record, [("dropped", dropped)]);
    }

    fn warn(&self, record: &mut Record) {
        if let Some(why) = &self.measured.not_dropped {
            let text = format!("the system's caches were not dropped: {why}");
            record.warn("caches-kept", &text, "as root, or without --drop-caches");
        }
        if self.is_cold() != Some(true) {
            record.warn(
                "reread-not-cold",
                "the second read is one of memory, or it is not known",
                "a --size above the memory, or another file system",
            );
        }
    }
}

/// How much of a file was in memory.
fn in_memory(share: Option<f64>) -> String {
    match share {
        Some(share) => format!("{:.0} % of it in memory before", share * 100.0),
        None => "how much of it was in memory the file system does not say".to_owned(),
    }
}

fn survives(durability: Option<Durability>) -> &'static str {
    match durability {
        None => "what it survives is not known from here",
        Some(Durability::Memory) => "survives nothing: it is memory",
        Some(Durability::PageCache) => "survives the end of the server, but no loss of power",
        Some(Durability::Stable) => "survives a loss of power",
    }
}
