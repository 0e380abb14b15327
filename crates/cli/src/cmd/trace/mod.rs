//! `nfskit trace`: what captures of the network show.

mod csv;
mod explain;
mod json;
mod page;
mod screen;

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use analyze::capture::{Capture, CaptureError, Merged, Note};
use analyze::trace::mix::{Counts, counts};
use analyze::trace::{Analyzer, Filter, OPERATIONS, Operation};
use perf::model::trace::Explained;

use crate::args::Verbosity;
use crate::args::trace::Trace;
use crate::exit::Failure;
use crate::output;

/// What was read.
struct Seen {
    analyzer: Analyzer,
    notes: Vec<Note>,
    bytes: u64,
    files: usize,
    /// The model of the busiest connection, or why there is none, if it was asked for.
    explained: Option<Result<Explained, String>>,
}

/// Operations to look for must be ones that there are.
fn check_operations(names: &[String]) -> Result<(), Failure> {
    let is_known = |name: &String| {
        let mut all = (0..OPERATIONS).filter_map(Operation::at);
        all.any(|one| one.name() == name.to_uppercase() || one.to_string() == name.to_uppercase())
    };
    match names.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(
            format!("--operation {name}: no protocol of NFS has an operation of that name"),
            "a name as the RFCs have it, such as READDIRPLUS or COMMIT",
        )),
    }
}

/// Runs the command.
pub(crate) fn run(args: &Trace, verbosity: Verbosity) -> Result<(), Failure> {
    check_operations(&args.operation)?;
    let filter = Filter {
        clients: args.client.clone(),
        servers: args.server.clone(),
        operations: args.operation.iter().map(|name| name.to_uppercase()).collect(),
        file: args.file.clone(),
        from_ns: args.from.map(|time| time.as_nanos()),
        until_ns: args.until.map(|time| time.as_nanos()),
    };
    let mut csv = args.csv.as_deref().map(csv::Csv::create).transpose()?;
    let captures: Result<Vec<Capture<'_>>, Failure> =
        args.files.iter().map(|path| open(path)).collect();
    let mut merged = Merged::new(captures?).map_err(failure)?;
    let mut analyzer = Analyzer::new(filter);
    let mut kept = args.explain.then(explain::Kept::default);
    while let Some(packet) = merged.next_packet().map_err(failure)? {
        let begin_ns = analyzer.span_ns().0;
        analyzer.packet(&packet, &mut |transaction, files, talks| {
            if let Some(csv) = &mut csv {
                csv.line(transaction, files, talks);
            }
            if let Some(kept) = &mut kept {
                kept.keep(transaction, begin_ns);
            }
        });
    }
    analyzer.end();
    if let Some(csv) = csv {
        csv.end()?;
    }
    let (_, bytes) = merged.read();
    let busiest = screen::busiest(&analyzer).map(|(id, _)| id);
    let explained = kept.zip(busiest).map(|(kept, talk)| kept.explained(talk));
    let (notes, files) = (merged.notes(), args.files.len());
    let read = Seen { analyzer, notes, bytes, files, explained };
    show(args, &read, verbosity)
}

fn show(args: &Trace, read: &Seen, verbosity: Verbosity) -> Result<(), Failure> {
    for note in &read.notes {
        eprintln!("nfskit: {note}");
    }
    let stdout = Path::new("-");
    let outs = [&args.json, &args.csv, &args.html, &args.mix];
    let is_taken = outs.iter().any(|out| out.as_deref() == Some(stdout));
    if verbosity > Verbosity::Quiet && !is_taken {
        output::print(&screen::text(read))?;
    }
    if let Some(path) = &args.json {
        output::write(path, &json::text(read))?;
    }
    if let Some(path) = &args.html {
        let words: Vec<String> = std::env::args().collect();
        output::write(path, &page::text(read, words.join(" ")))?;
    }
    if let Some(path) = &args.mix {
        let Some(found) = counts(&read.analyzer) else {
            return Err(Failure::check(
                "no call of NFS version 2 or 3 was found, so there is no mix",
                "a capture of such a client, with whole packets (tcpdump -s 0)",
            ));
        };
        output::write(path, &mix(&found))?;
    }
    Ok(())
}

/// A capture, from a file or standard input.
fn open(path: &Path) -> Result<Capture<'static>, Failure> {
    let name = path.display().to_string();
    let reader: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(stdin().lock()),
        false => {
            let file = File::open(path).map_err(|cause| {
                Failure::environment(
                    format!("cannot read {name}: {cause}"),
                    "a capture, as tcpdump -w FILE makes it",
                )
            })?;
            Box::new(file)
        }
    };
    Capture::open(&name, reader).map_err(failure)
}

pub(super) fn failure(error: CaptureError) -> Failure {
    let advice = match &error {
        CaptureError::Link { .. } => "a capture on another interface, or without monitor mode",
        CaptureError::Empty { .. } | CaptureError::NotACapture { .. } => {
            "a pcap or pcapng file, as tcpdump -w FILE or dumpcap make it"
        }
        CaptureError::Io { .. } => "see whether the file is whole, and may be read",
    };
    Failure::environment(error, advice)
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
