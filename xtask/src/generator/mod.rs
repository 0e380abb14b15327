//! `cargo xtask generator`: how much processor time `nfskit bench curve` needs for an operation,
//! beside libnfs (GETATTR) and fio's nfs engine (READ of 8 KiB), and how many GETATTRs it makes.
//!
//! All of them call one server that answers from memory, one after the other in each round, so that
//! what the machine does in the meantime concerns all alike. Neither reports how fast it was: in
//! the midst of a run the kernel says how much processor time the program has used, the server how
//! many calls it has answered, and a second later again.

mod counters;
mod programs;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::host::nfskit::Server;
use crate::host::{build, family, scratch};
use crate::options;
use crate::peers::CpuTime;
use counters::Counters;
use programs::{Program, Work};

/// A run is looked at for so long.
const LOOK: Duration = Duration::from_secs(2);
/// And lasts so long at most: it has to lay out its files first.
const RUN_SECONDS: u32 = 6;
/// A program that has not begun by then is broken.
const BEGIN_WITHIN: Duration = Duration::from_secs(20);
/// For its own end.
const END_WITHIN: Duration = Duration::from_secs(10);
/// So many calls are a run in its midst, and not its preparations.
const MIDST_CALLS: u64 = 10_000;
/// The load on the generator: GETATTRs a second.
const RATE_MIN: f64 = 150_000.0;
/// And its processor time for an operation over that of the peer.
const RATIO_MAX: f64 = 0.5;

/// Processor time of `nfskit bench curve` beside libnfs and fio.
#[derive(Debug, Parser)]
#[command(name = "generator", bin_name = "cargo xtask generator")]
struct Options {
    /// How often each program runs.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Fails when a goal is missed, which is for a quiet machine.
    #[arg(long)]
    check: bool,
}

/// What one look at a run has shown.
#[derive(Clone, Copy, Debug)]
struct Look {
    per_s: f64,
    cpu_us: f64,
    bytes_per_call: f64,
}

/// Measures, and prints a line for each program; with `--check` fails when a goal is missed, which
/// is for a quiet machine.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let Options { rounds, check } = options::parse(words)?;
    let nfskit = build::release(root, "generator", "nfskit", "nfskit")?;
    let scratch = scratch::make("generator")?;
    let programs = programs::provide(root, scratch.path(), &nfskit)?;
    let options = ["--metrics", "127.0.0.1:0"].map(str::to_owned);
    let server = Server::start_with(&nfskit, Path::new("mem:"), &options)?;
    let counters = Counters::of(&server)?;
    programs.iter().try_for_each(|program| program.prepare(&server))?;
    let mut looks: Vec<Vec<Look>> = programs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for step in 0..programs.len() {
            // Who is first changes.
            let at = (round + step) % programs.len();
            looks[at].push(look(&programs[at], &server, &counters)?);
        }
    }
    server.stop()?;
    let medians: Vec<(&Program, Look)> =
        programs.iter().zip(&looks).map(|(program, looks)| (program, median(looks))).collect();
    println!("{:24}{:>14}{:>14}{:>12}", "", "calls/s", "us/call", "bytes");
    for (program, look) in &medians {
        let Look { per_s, cpu_us, bytes_per_call } = look;
        println!("{:24}{per_s:>14.0}{cpu_us:>14.2}{bytes_per_call:>12.0}", program.name);
    }
    match (missed(&medians), check) {
        (missed, true) if !missed.is_empty() => Err(format!("generator: {}", missed.join("; "))),
        (missed, _) => {
            missed.iter().for_each(|what| println!("missed: {what}"));
            Ok(())
        }
    }
}

/// Waits until it is in its midst, and looks.
fn look(program: &Program, server: &Server, counters: &Counters) -> Result<Look, String> {
    let before = counters.read(program.work)?;
    let mut running = program.start(server, RUN_SECONDS)?;
    let begun = Instant::now();
    while counters.read(program.work)?.calls < before.calls + MIDST_CALLS {
        if begun.elapsed() > BEGIN_WITHIN || running.has_ended() {
            return Err(format!("{}: it does not begin: {:?}", program.name, running.lines()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let pids = [vec![running.pid()], family::descendants(running.pid())].concat();
    let cpu = || pids.iter().map(|&pid| CpuTime::of(pid)).collect::<Result<Vec<_>, _>>();
    let (at, calls, before) = (Instant::now(), counters.read(program.work)?, cpu()?);
    thread::sleep(LOOK);
    let (later, took) = (counters.read(program.work)?, at.elapsed().as_secs_f64());
    let used: u64 = cpu()?.iter().zip(&before).map(|(later, before)| later.since_ns(before)).sum();
    if running.has_ended() {
        return Err(format!("{}: it ended while looked at", program.name));
    }
    // By itself, so that it removes its files; fio's engine may never end.
    running.wait(END_WITHIN).ok();
    let done = (later.calls - calls.calls) as f64;
    let bytes = (later.bytes - calls.bytes) as f64;
    Ok(Look { per_s: done / took, cpu_us: used as f64 / 1e3 / done, bytes_per_call: bytes / done })
}

fn median(looks: &[Look]) -> Look {
    let of = |value: fn(&Look) -> f64| {
        let mut values: Vec<f64> = looks.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Look {
        per_s: of(|look| look.per_s),
        cpu_us: of(|look| look.cpu_us),
        bytes_per_call: of(|look| look.bytes_per_call),
    }
}

/// Prints the ratios; gives the goals that are missed.
fn missed(medians: &[(&Program, Look)]) -> Vec<String> {
    let mut missed = Vec::new();
    for work in Work::ALL {
        let of = |is_ours: bool| {
            let mut all = medians.iter();
            all.find(|(program, _)| program.work == work && program.is_ours() == is_ours)
        };
        let (Some((_, ours)), Some((peer, theirs))) = (of(true), of(false)) else { continue };
        // A program that moves less for a call gains nothing by it.
        let bytes = (theirs.bytes_per_call / ours.bytes_per_call).max(1.0);
        let ratio = ours.cpu_us * bytes / theirs.cpu_us;
        println!("{work:?}: processor time of ours over that of {}: {ratio:.2}", peer.name);
        if ratio > RATIO_MAX {
            missed.push(format!("{work:?} costs {ratio:.2} of {}, and not {RATIO_MAX}", peer.name));
        }
        if work == Work::Getattr && ours.per_s < RATE_MIN {
            missed.push(format!("{:.0} GETATTR/s, and not {RATE_MIN}", ours.per_s));
        }
    }
    missed
}
