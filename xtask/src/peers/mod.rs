//! `cargo xtask peers`: `nfskit serve` side by side with NFS-Ganesha and unfs3, in one run.
//!
//! All servers run at once, each fresh for every round, on the same directory; a row is measured
//! on one after the other before the next row begins, and who is first changes from round to
//! round. So what the machine does in the meantime concerns all alike. The main figure has
//! client and servers on one and the same core; beside it stand two cores, and two connections.
//! docs/benchmarks.md explains how to read what comes out.

mod client;
mod cpu;
mod durability;
mod fixture;
mod measure;
mod options;
mod outcome;
mod packages;
mod plan;
mod profile;
mod rows;
mod servers;
mod stats;
mod table;

use std::ffi::OsStr;
use std::path::Path;

use serde_json::{Value, json};

use crate::host::{about, build, isolate, scratch};
pub(crate) use cpu::CpuTime;
use durability::Syncs;
use options::Options;
use outcome::Outcomes;
use servers::{Name, Stage};

/// The command by which `run` calls an optimized build of ourselves inside the namespaces.
pub(crate) const INSIDE: &str = "peers-inside";
/// With more than this, others share the core that we measure on. A guess.
const LOAD_MAX: f64 = 1.0;
/// `f_type` of a tmpfs (statfs(2)).
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Installs and builds what is needed, and measures in namespaces of our own.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    crate::options::parse::<Options>(words)?;
    packages::install()?;
    let nfskit = build::release(root, "peers", "nfskit", "nfskit")?;
    let ourselves = build::release(root, "peers", "xtask", "xtask")?;
    let scratch = scratch::make("peers")?;
    if !is_on_disk(scratch.path())? {
        return Err("peers: the folder for temporary files is in memory, where a sync costs \
                    nothing; set TMPDIR to one on disk"
            .to_owned());
    }
    if !isolate::is_possible() {
        return Err("peers: needs namespaces of its own, see unshare(1)".to_owned());
    }
    let first = [OsStr::new(INSIDE), scratch.path().as_os_str(), nfskit.as_os_str()];
    let arguments = first.into_iter().chain(words.iter().map(OsStr::new));
    isolate::run("peers", &ourselves, arguments)
}

/// Measures, in the namespaces of which we are the first process.
pub(crate) fn run_inside(scratch: &Path, nfskit: &Path, words: &[&str]) -> Result<(), String> {
    isolate::end_with_caller(scratch);
    let options: Options = crate::options::parse(words)?;
    let load = load_average();
    if load > LOAD_MAX {
        println!("peers: the load of this machine is {load}: throughput will say little");
    }
    let export = scratch.join("export");
    println!("peers: making {} files", fixture::ENTRIES);
    fixture::make(&export).map_err(about(&export))?;
    let stage = Stage::new(nfskit, scratch, export, options.serve())?;
    stage.obstacle(Name::Ganesha)?;
    for name in Name::ALL {
        if let Err(why) = stage.obstacle(name) {
            println!("peers: without {}: {why}", name.label());
        }
    }
    let mut outcomes = Outcomes::default();
    let syncs = plan::watch_syncs(&stage, &mut outcomes);
    plan::measure_all(&stage, &options, &mut outcomes)?;
    println!("{}", table::text(&outcomes));
    println!("syncs behind changes, as strace sees them:");
    syncs.iter().for_each(|syncs| println!("  {}", syncs.line()));
    if let Some(file) = &options.json {
        let record = record(&options, load, &syncs, &outcomes);
        let text = serde_json::to_string_pretty(&record).map_err(|error| error.to_string())?;
        std::fs::write(file, text).map_err(about(file))?;
    }
    match outcomes.failures.as_slice() {
        [] => Ok(()),
        failures => Err(format!("failed to run:\n{}", failures.join("\n"))),
    }
}

/// Everything that was measured, and on what.
fn record(options: &Options, load: f64, syncs: &[Syncs], outcomes: &Outcomes) -> Value {
    let name = rustix::system::uname();
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "nfskit": env!("CARGO_PKG_VERSION"),
        "kernel": name.release().to_string_lossy(),
        "cpu": model.map_or("", |(_, model)| model),
        "cores": cpu::cores().map_or(0, |cores| cores.len()),
        "load_average_before": load,
        "options": options.to_json(),
        "syncs": syncs.iter().map(Syncs::to_json).collect::<Vec<_>>(),
        "failures": outcomes.failures,
        "runs": outcomes.to_json(),
    })
}

/// How many programs want to run, of the last minute; 0 where that is not known.
fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn is_on_disk(folder: &Path) -> Result<bool, String> {
    let found = rustix::fs::statfs(folder).map_err(|error| format!("statfs: {error}"))?;
    Ok(u64::try_from(found.f_type) != Ok(TMPFS_MAGIC))
}
