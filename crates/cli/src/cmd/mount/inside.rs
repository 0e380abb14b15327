//! The process behind a mount that another command makes for itself: `nfskit mounted`, hidden.
//!
//! It is a process of its own because one that works on a mount must not serve it: killed in the
//! middle of a request it would wait for itself. Whoever has started it asks by lines on standard
//! input and is answered by lines on standard output:
//!
//! | request | answer |
//! |---|---|
//! | (nothing) | `mounted SPOKEN`, or `failed CODE WHAT<tab>ADVICE` and the end |
//! | `calls` | `calls NANOSECONDS-OF-CPU PROCEDURE=CALLS ...`, since it was mounted |
//! | `end MILLISECONDS` | `ended`, or `failed ...`: written back and unmounted, or by force |
//!
//! The end of the input is as `end`: when its caller dies, the mount goes.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use client::files::Files;
use fuse::session::{Ended, Mount, Unmounted, check};
use harness::exit::Failure;
use harness::mounts::embedded::settings;
use harness::mounts::settings::Settings;
use harness::mounts::{disk, failures, metrics};
use harness::served::worker_threads;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use perf::units::Nanos;
use tokio::sync::mpsc;

use super::notices::Notices;
use super::reach;

/// How long writing back may take when the caller has gone.
const ORPHAN_GRACE: Nanos = Nanos::from_secs(5);
/// Lines that wait to be read: one request at a time.
const LINES_MAX: usize = 4;

/// The arguments: of our own making.
#[derive(Debug, clap::Parser)]
pub(crate) struct Args {
    source: String,
    dir: PathBuf,
    #[arg(short, long, default_value = "")]
    options: String,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let served = net::runtime::block_on_threads(worker_threads().max(2), serve(args));
    let served = served.unwrap_or_else(|cause| Err(Failure::resources(cause)));
    answer(&served.map_or_else(|failure| encoded(&failure), |()| "ended".to_owned()));
    Ok(())
}

fn answer(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody may be there any more.
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}

fn encoded(failure: &Failure) -> String {
    let plain = |text: &str| text.replace(['\n', '\t'], " ");
    format!("failed {}\t{}", plain(failure.what()), plain(failure.advice()))
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let clock = Clock::real();
    let settings = settings(&args.source, &args.options)
        .map_err(|what| Failure::usage(what, "`nfskit mount --help`"))?;
    let (mount, files, spoken) = start(&clock, &settings, &args.dir).await?;
    let mut lines = listen()?;
    answer(&format!("mounted {spoken}"));
    let grace = loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = mount.is_over() => None,
        };
        match line.as_deref().map(|line| line.split_once(' ').unwrap_or((line, ""))) {
            Some(("calls", _)) => answer(&calls(&files)),
            Some(("end", millis)) => {
                break millis.parse().map_or(ORPHAN_GRACE, Nanos::from_millis);
            }
            _ => break ORPHAN_GRACE,
        }
    };
    let outcome = mount.end(grace).await;
    disk::end(&files);
    ended(&args.dir, outcome)
}

async fn start(
    clock: &Clock,
    settings: &Settings,
    dir: &Path,
) -> Result<(Mount, Files, String), Failure> {
    let at = check(dir, false).map_err(failures::directory)?;
    let notices = Notices::new(Verbosity::Quiet);
    let reached = reach::reach(clock, settings, &notices).await?;
    let mount = super::begin(clock, settings, &at, &reached)?;
    Ok((mount, reached.files, reached.spoken))
}

/// Lines of standard input, read by a thread; closed at its end.
fn listen() -> Result<mpsc::Receiver<String>, Failure> {
    let (send, lines) = mpsc::channel(LINES_MAX);
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if send.blocking_send(line).is_err() {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("nfskit-commands".to_owned());
    thread.spawn(read).map_err(Failure::resources)?;
    Ok(lines)
}

/// Calls that have ended since it was mounted, by the names of their procedures.
fn calls(files: &Files) -> String {
    let counters = files.session().rpc().counters();
    let version = files.session().version();
    let called = counters.procedures.iter().enumerate().filter(|(_, one)| one.ops > 0);
    let called = called.map(|(at, one)| format!(" {}={}", metrics::named(at, version), one.ops));
    let process_ns = load::cpu::Usage::now().process.as_nanos();
    format!("calls {process_ns}{}", called.collect::<String>())
}

fn ended(at: &Path, ended: Ended) -> Result<(), Failure> {
    if let Unmounted::Not(cause) = ended.unmounted {
        return Err(super::not_unmounted(at, &cause));
    }
    let at = at.display();
    match ended.losses {
        Some(losses) if losses.is_empty() => Ok(()),
        _ => Err(Failure::environment(
            format!("not everything that was written to {at} could be written back"),
            "see whether the server is alive, and its disk",
        )),
    }
}
