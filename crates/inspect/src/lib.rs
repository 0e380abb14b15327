//! `nfskit trace`: what captures of the network show; and what the relay has carried, as a capture.

mod amounts;
pub mod args;
mod csv;
mod explain;
mod json;
mod live;
mod page;
mod parquet;
pub mod relayed;
mod row;
mod screen;
mod seen;
mod sides;
pub mod verdict;

use std::fs::{File, Metadata};
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::exit::Failure;
use harness::hints;
use harness::output::{self, Bars};
use harness::verbosity::Verbosity;
use trace::capture::{Capture, CaptureError, Merged, Packet};
use trace::mix::{Counts, counts};
use trace::{Analyzer, Filter, OPERATIONS, Operation};

use self::seen::Seen;
use crate::args::Trace;

/// What a capture says that lies in memory.
///
/// # Errors
/// It is no capture, or of a link that is not known.
pub fn verdict_of(name: &str, bytes: &[u8]) -> Result<verdict::Verdict, CaptureError> {
    let mut analyzer = Analyzer::new(Filter::default());
    let mut capture = Capture::open(name, Box::new(bytes))?;
    while capture.advance()? {
        if let Some(packet) = capture.packet() {
            analyzer.packet(&packet, &mut |_, _, _| {});
        }
    }
    analyzer.set_resolution(capture.resolution_ns());
    analyzer.end();
    Ok(verdict::answer(&analyzer))
}

/// A time until which nothing can be selected is a slip.
fn check_times(args: &Trace) -> Result<(), Failure> {
    match (args.from, args.until) {
        (Some(from), Some(until)) if until <= from => {
            let what = format!("--until {until} is not behind --from {from}");
            Err(Failure::usage(what, "both are counted from the first packet"))
        }
        _ => Ok(()),
    }
}

/// Operations to look for must be ones that there are.
fn check_operations(names: &[String]) -> Result<(), Failure> {
    let is_known = |name: &String| {
        let mut all = (0..OPERATIONS).filter_map(Operation::at);
        all.any(|one| one.name() == name.to_uppercase() || one.to_string() == name.to_uppercase())
    };
    names.iter().find(|name| !is_known(name)).map_or(Ok(()), |name| Err(unknown(name)))
}

fn unknown(name: &str) -> Failure {
    let what = format!("--operation {name}: no protocol of NFS has an operation of that name");
    Failure::usage(what, "a name as the RFCs have it, such as READDIRPLUS or COMMIT")
}

/// Who takes every transaction.
struct Rows {
    csv: Option<csv::Csv>,
    parquet: Option<parquet::Parquet>,
    timed: Option<explain::TimedPairs>,
}

impl Rows {
    fn begin(args: &Trace) -> Result<Self, Failure> {
        Ok(Self {
            csv: args.csv.as_deref().map(csv::Csv::create).transpose()?,
            parquet: args.parquet.as_deref().map(parquet::Parquet::create).transpose()?,
            timed: args.explain.then(explain::TimedPairs::default),
        })
    }

    /// Takes a packet, and what it completes.
    fn packet(&mut self, analyzer: &mut Analyzer, packet: &Packet<'_>) {
        let begin_ns = analyzer.span_ns().0;
        analyzer.packet(packet, &mut |transaction, files, flows| {
            if let Some(csv) = &mut self.csv {
                csv.line(transaction, files, flows);
            }
            if let Some(parquet) = &mut self.parquet {
                parquet.row(transaction, files, flows);
            }
            if let Some(timed) = &mut self.timed {
                timed.keep(transaction, begin_ns, flows);
            }
        });
    }
}

/// Runs the command.
pub fn run(args: &Trace, verbosity: Verbosity) -> Result<(), Failure> {
    check_operations(&args.operation)?;
    check_times(args)?;
    // Before anything is read: a long capture would be read in vain.
    output::check(outs(args), &args.files)?;
    let (mut rows, mut seen) = match args.interface.is_empty() {
        true => read_files(args, verbosity)?,
        false => read_live(args, verbosity)?,
    };
    seen.analyzer.end();
    rows.csv.take().map_or(Ok(()), csv::Csv::end)?;
    rows.parquet.take().map_or(Ok(()), parquet::Parquet::end)?;
    seen.explained = rows.timed.map(|timed| timed.explained(seen.analyzer.flows()));
    show(args, &seen, verbosity)
}

fn outs(args: &Trace) -> [&Option<PathBuf>; 5] {
    [&args.json, &args.csv, &args.html, &args.mix, &args.parquet]
}

fn filter(args: &Trace) -> Filter {
    Filter {
        clients: args.client.clone(),
        servers: args.server.clone(),
        operations: args.operation.iter().map(|name| name.to_uppercase()).collect(),
        file: args.file.clone(),
        from_ns: args.from.map(|time| time.as_nanos()),
        until_ns: args.until.map(|time| time.as_nanos()),
    }
}

fn read_files(args: &Trace, verbosity: Verbosity) -> Result<(Rows, Seen), Failure> {
    let mut progress = Progress::of(&args.files, verbosity);
    let captures: Result<Vec<Capture<'_>>, Failure> =
        args.files.iter().map(|path| open(path, &progress.read)).collect();
    let mut merged = Merged::new(captures?).map_err(Failure::from)?;
    let (mut rows, mut analyzer) = (Rows::begin(args)?, Analyzer::new(filter(args)));
    while let Some(packet) = merged.next_packet().map_err(Failure::from)? {
        rows.packet(&mut analyzer, &packet);
        progress.show(analyzer.packets());
    }
    progress.bars.clear();
    analyzer.set_resolution(merged.resolution_ns());
    let notes = merged.notes().iter().map(ToString::to_string).collect();
    Ok((rows, Seen::of(analyzer, merged.read().1, args.files.clone(), notes)))
}

fn read_live(args: &Trace, verbosity: Verbosity) -> Result<(Rows, Seen), Failure> {
    let (mut rows, mut analyzer) = (Rows::begin(args)?, Analyzer::new(filter(args)));
    let heard = live::listen(args, verbosity, |packet| rows.packet(&mut analyzer, packet))?;
    let seen = Seen::of(analyzer, heard.bytes, Vec::new(), Vec::new());
    Ok((rows, Seen { dropped: Some(heard.dropped), ..seen }))
}

fn show(args: &Trace, read: &Seen, verbosity: Verbosity) -> Result<(), Failure> {
    read.notes.iter().for_each(output::say);
    if let Some(count @ 1..) = read.dropped {
        let what = "packets passed too fast, and were dropped by the kernel";
        output::say(format_args!("{count} {what}"));
    }
    output::print_text(verbosity, outs(args), || screen::text(read))?;
    output::write_to(&args.json, || json::text(read))?;
    output::write_to(&args.html, || page::text(read))?;
    let Some(path) = &args.mix else { return Ok(()) };
    let found = counts(&read.analyzer).ok_or_else(no_mix)?;
    output::write(path, &mix(&found))
}

fn no_mix() -> Failure {
    Failure::check(
        "no NFS call of version 2 or 3 was found, so there is no mix",
        "a capture of such a client, with whole packets (tcpdump -s 0)",
    )
}

/// How far the files are read, on a terminal.
struct Progress {
    bars: Bars,
    /// Bytes of the files, as they lie on the disk; none where that is not known.
    bytes: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Progress {
    /// Packets between two looks at it: some milliseconds.
    const PACKETS: u64 = 1 << 16;

    fn of(files: &[PathBuf], verbosity: Verbosity) -> Self {
        let lens = files.iter().map(|path| {
            let found = path.metadata().ok().filter(Metadata::is_file);
            found.map(|found| found.len())
        });
        Self { bars: Bars::new(verbosity), bytes: lens.sum(), read: Arc::default() }
    }

    fn show(&mut self, packets: u64) {
        if packets.is_multiple_of(Self::PACKETS)
            && let Some(bytes) = self.bytes
        {
            let read = self.read.load(Ordering::Relaxed);
            #[expect(clippy::cast_precision_loss, reason = "a share")]
            self.bars.show("reading the capture", read as f64 / (bytes as f64).max(1.0));
        }
    }
}

/// A file that says how much of it was read.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// A capture, from a file or standard input; what is read of it is counted.
fn open(path: &Path, read: &Arc<AtomicU64>) -> Result<Capture<'static>, Failure> {
    if path == Path::new("-") {
        return Capture::open("standard input", Box::new(stdin().lock())).map_err(Failure::from);
    }
    let name = path.display().to_string();
    let inner = File::open(path).map_err(|cause| {
        Failure::environment(format!("cannot read {name}: {cause}"), hints::reading(&cause))
    })?;
    let counted = Counted { inner, read: Arc::clone(read) };
    Capture::open(&name, Box::new(counted)).map_err(Failure::from)
}

/// A mix as text: a line for each procedure with its share in percent.
fn mix(counts: &Counts) -> String {
    let calls = counts.calls();
    let mut text = format!("# nfskit mix: NFS v{}, {calls} calls\n", counts.version);
    for (_, name, count) in &counts.procedures {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let percent = *count as f64 / calls as f64 * 100.0;
        text.push_str(&format!("{name} {percent:.4}\n"));
    }
    text
}
