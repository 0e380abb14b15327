//! `cargo xtask ranks`: `nfskit bench curve` as two processes of mpirun measures what one does.
//!
//! The server is behind a link of 1 ms each way, so that response times say something of the path
//! and little of the machine. One process is measured before and after the two: what lies between
//! those runs is noise, and so much the two may differ as well. It is medians that are compared:
//! in the few seconds of a point a pause of the machine's of a tenth of one doubles the mean.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::host::child::{finish, text};
use crate::host::nfskit::Server;
use crate::host::{build, free_port, scratch, tools};

/// Operations a second, far below what any machine does.
const LOADS: [&str; 3] = ["200", "400", "800"];
const RUN_WITHIN: Duration = Duration::from_secs(120);
/// What else two runs of a few seconds may differ by.
const RESPONSE_OFF: f64 = 0.15;
const THROUGHPUT_OFF: f64 = 0.02;

/// What the two processes show each other.
const KEY: (&str, &str) = ("NFSKIT_MEET_KEY", "two processes of a stage");

/// Builds, measures, and compares.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mpirun = tools::find("mpirun", "openmpi-bin")?;
    let nfskit = build::release(root, "ranks", "nfskit", "nfskit")?;
    let scratch = scratch::make("ranks")?;
    let options = ["--link", "none,L=1ms"].map(str::to_owned);
    let server = Server::start_with(&nfskit, Path::new("mem:"), &options)?;
    let stage = Stage { mpirun, nfskit, scratch: scratch.path(), url: server.address.url("") };
    let before = stage.measure("before", None)?;
    let both = stage.measure("both", Some(2))?;
    let after = stage.measure("after", None)?;
    println!("{:>8}{:>6}{:>16}{:>16}{:>16}", "load/s", "", "one, us", "two, us", "one, us");
    for load in LOADS {
        compare(load, &before, &both, &after)?;
    }
    let processes = both["workload"]["parameters"]["processes"].as_u64();
    if processes != Some(2) {
        return Err(format!("ranks: the record tells of {processes:?} processes"));
    }
    server.stop()?;
    stage.fails_together()
}

struct Stage<'a> {
    mpirun: PathBuf,
    nfskit: PathBuf,
    scratch: &'a Path,
    url: String,
}

impl Stage<'_> {
    /// `bench curve` of our server, once or as so many processes.
    fn command(&self, processes: Option<u32>) -> Result<Command, String> {
        let curve = ["bench", "curve", "--target", &self.url];
        let Some(number) = processes else {
            let mut command = Command::new(&self.nfskit);
            command.args(curve);
            return Ok(command);
        };
        let mut command = Command::new(&self.mpirun);
        // More processes than processors, and root, are what its users do not want.
        command.args(["--allow-run-as-root", "--oversubscribe", "-n", &number.to_string()]);
        command.env(KEY.0, KEY.1).args(["-x", KEY.0]).arg(&self.nfskit).args(curve);
        // An address of the loopback that nobody listens on; taken again at once, it is ours.
        let port = free_port().map_err(|error| format!("ranks: {error}"))?;
        command.args(["--meet", &format!("127.0.0.1:{port}")]);
        Ok(command)
    }

    fn measure(&self, name: &str, processes: Option<u32>) -> Result<Value, String> {
        let path = self.scratch.join(name);
        let mut command = self.command(processes)?;
        command.args(["--loads", &LOADS.join(",")]);
        // Random arrivals of other numbers of processes are others, and as many only on average.
        command.args(["--arrivals", "fixed", "--warm-up", "500ms", "--time", "4s"]);
        command.args(["--file-set-max", "8M", "--json"]);
        command.arg(&path);
        // A point that does not hold a rule ends it with 1, and has its record.
        let ended = finish(&mut command, RUN_WITHIN, text);
        let read = std::fs::read_to_string(&path);
        let read =
            read.map_err(|error| format!("ranks, {name}: {error}; it ended so: {ended:?}"))?;
        serde_json::from_str(&read).map_err(|error| format!("ranks, {name}: {error}"))
    }

    /// Where one process cannot go on, none waits for it.
    fn fails_together(&self) -> Result<(), String> {
        // The server has stopped.
        let mut command = self.command(Some(2))?;
        command.args(["--loads", "100"]);
        match finish(&mut command, RUN_WITHIN, text) {
            Ok(_) => Err("ranks: two processes without a server were content".to_owned()),
            Err(why) if why.contains("connect") => {
                println!("ranks: two processes without a server end, and say why");
                Ok(())
            }
            Err(why) => Err(format!("ranks: two processes without a server: {why}")),
        }
    }
}

fn compare(load: &str, before: &Value, both: &Value, after: &Value) -> Result<(), String> {
    let value = |record: &Value, what: &str| {
        let name = format!("load/{load}.000/{what}");
        let value = record["metrics"][&name]["value"].as_f64();
        value.ok_or_else(|| format!("ranks: the record has no {name}"))
    };
    let of = |what: &str| {
        Ok::<_, String>((value(before, what)?, value(both, what)?, value(after, what)?))
    };
    for (what, name) in [("mean", "response_us"), ("p50", "response_us_p50")] {
        let (one, two, again) = of(name)?;
        println!("{load:>8}{what:>6}{one:>16.0}{two:>16.0}{again:>16.0}");
    }
    is_between("median response time", load, of("response_us_p50")?, RESPONSE_OFF)?;
    is_between("throughput", load, of("achieved_per_s")?, THROUGHPUT_OFF)
}

/// Whether the second of three values is as the others are, give or take their difference and
/// this share.
fn is_between(
    what: &str,
    load: &str,
    (one, two, again): (f64, f64, f64),
    share: f64,
) -> Result<(), String> {
    let slack = (one - again).abs() + share * one.max(again);
    match two >= one.min(again) - slack && two <= one.max(again) + slack {
        true => Ok(()),
        false => Err(format!(
            "ranks: {what} at {load}/s: {two:.1} of two processes, {one:.1} and {again:.1} of one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_may_differ_as_much_as_one_does_from_itself() {
        assert!(is_between("x", "1", (100.0, 112.0, 100.0), 0.15).is_ok());
        assert!(is_between("x", "1", (100.0, 160.0, 140.0), 0.15).is_ok());
        assert!(is_between("x", "1", (100.0, 120.0, 100.0), 0.15).is_err());
        assert!(is_between("x", "1", (100.0, 80.0, 100.0), 0.15).is_err());
    }
}
