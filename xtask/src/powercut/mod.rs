//! `cargo xtask powercut`: servers on a machine whose power is cut under load.
//!
//! ```text
//!   here                                             user-mode Linux, killed with SIGKILL
//!   nfskit crash-test ────────── tap ──────────────  nfskit serve, knfsd, NFS-Ganesha
//!     --kill, --restart                                ext4 or xfs on /dev/nbd0
//!     machine.rs: kills, boots                             │
//!     disk.rs: a disk with a volatile cache ── NBD ────────┘
//! ```
//!
//! Proxies and mounts in the guest have an origin outside, which stays (`origin.rs`): crash-test
//! compares what it has with what the proxy had answered, and `mounted.rs` works on mounts.
//!
//! The guest dies as a machine does whose power is gone: with its page cache, and with what its
//! disk was given and has not flushed, but for any sectors of it. What clients were promised is
//! known outside, by `nfskit crash-test`. Servers and disks with a mistake show that it would be
//! seen.

mod disk;
mod machine;
mod mounted;
mod origin;
mod scenes;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use self::disk::Counts;
use self::machine::{GUEST, Machine, Switch, make_network};
use self::origin::Origin;
use self::scenes::{Expected, OURS, SCENES, Scene, Server};
use crate::guest::image::Image;
use crate::guest::missing;
use crate::host::{build, isolate, metrics, not_run, scratch};

/// A boot, a look at the file system and the start of a server, on a busy machine.
const BACK_WITHIN: &str = "60s";

/// Where a proxy in the guest has its counters.
const METRICS: u16 = 9150;
/// Work between two kills of a mount, at most.
const LOAD_OF_MOUNTS: Duration = Duration::from_secs(4);

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "powercut-inside";

/// Cuts the power of a machine whose server is under load.
#[derive(Debug, Parser)]
#[command(name = "powercut", bin_name = "cargo xtask powercut")]
struct Options {
    /// Cuts of each scene.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Our servers with a write log alone.
    #[arg(long, conflicts_with = "only")]
    write_log: bool,
    /// These scenes [default: our servers, with and without a log, on ext4 and xfs].
    #[arg(long, value_name = "SCENE,...", value_delimiter = ',', value_parser = find)]
    only: Vec<&'static str>,
    /// What decides the calls, when to cut, and what of a disk's cache is left [default: one of the
    /// run's own].
    #[arg(long, value_name = "N", default_value_t = fastrand::u64(1..1_000_000))]
    #[arg(hide_default_value = true)]
    seed: u64,
    /// The load before a cut, at most.
    #[arg(long, value_name = "TIME", default_value = "3s")]
    load: String,
    /// No call comes again after a boot.
    #[arg(long)]
    no_retransmissions: bool,
    /// A binary of nfskit, instead of one that is built here.
    #[arg(long, value_name = "FILE")]
    nfskit: Option<PathBuf>,
    /// The scripts that make and run the guest, if they are not beside the checkout.
    #[arg(long, value_name = "DIR")]
    kernelvm: Option<PathBuf>,
}

fn find(name: &str) -> Result<&'static str, String> {
    crate::options::find(name, SCENES.iter().map(|scene| (scene.name, scene.name)))
}

impl Options {
    fn scenes(&self) -> Vec<&'static Scene> {
        let is_chosen = |scene: &&Scene| match self.only.is_empty() {
            true => OURS.contains(&scene.name) && (!self.write_log || scene.name.ends_with("-log")),
            false => self.only.contains(&scene.name),
        };
        SCENES.iter().filter(is_chosen).collect()
    }
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = crate::options::parse(words)?;
    if let Some(why) = missing() {
        return not_run("powercut", "no power was cut", &why);
    }
    let nfskit = build::given_or_release(root, "powercut", options.nfskit.as_deref())?;
    let image = Image::provide(root, options.kernelvm.as_deref())?;
    let scratch = scratch::make("powercut")?;
    let guest = image.folder();
    let mut arguments = vec![Path::new(INSIDE), scratch.path(), &nfskit, &guest];
    arguments.extend(words.iter().map(Path::new));
    isolate::run_ourselves("powercut", arguments)
}

/// What all scenes have in common.
#[derive(Debug)]
struct Run<'a> {
    scratch: &'a Path,
    nfskit: &'a Path,
    guest: &'a Path,
    options: &'a Options,
}

pub(crate) fn run_inside(words: &[&str]) -> Result<(), String> {
    let [scratch, nfskit, guest, words @ ..] = words else {
        return Err("this command is called by powercut".to_owned());
    };
    let [scratch, nfskit, guest] = [scratch, nfskit, guest].map(Path::new);
    isolate::end_with_caller(scratch);
    let options: Options = crate::options::parse(words)?;
    let run = Run { scratch, nfskit, guest, options: &options };
    make_network()?;
    let mut failed = Vec::new();
    for scene in options.scenes() {
        let began = Instant::now();
        let outcome = run.play(scene);
        let seconds = began.elapsed().as_secs();
        match outcome {
            Ok(what) => println!("powercut: {}: {what}; {seconds} s", scene.name),
            Err(why) => {
                println!("powercut: {}: FAILED after {seconds} s: {why}", scene.name);
                failed.push(scene.name);
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("powercut: seed {}: {}", options.seed, failed.join(", "))),
    }
}

impl Run<'_> {
    /// Cuts the power of a scene, so often; says what came of it.
    fn play(&self, scene: &Scene) -> Result<String, String> {
        let folder = self.scratch.join(scene.name);
        let (guest, nfskit, seed) = (self.guest, self.nfskit, self.options.seed);
        let mut machine = Machine::new(scene, folder.clone(), guest, nfskit, seed)?;
        let is_proxy = matches!(scene.server, Server::Proxy(_));
        let has_origin = is_proxy || matches!(scene.server, Server::Mount(_));
        let link = is_proxy.then_some("wan-10ms");
        let origin = has_origin.then(|| Origin::start(self.nfskit, &folder, link)).transpose()?;
        if let (Server::Mount(_), Some(origin)) = (scene.server, &origin) {
            return self.play_mount(scene, machine, origin, &folder);
        }
        let switch = Switch::make(&folder)?;
        machine.boot()?;
        machine.await_server(scene.server.export().1)?;
        let of_machine = switch.clone();
        let working = thread::spawn(move || {
            let carried_out = machine.carry_out(&of_machine);
            (machine, carried_out)
        });
        let tested = self.test(scene, &switch, &folder);
        switch.end();
        let (mut machine, carried_out) = working.join().map_err(|_| "the machine has panicked")?;
        carried_out?;
        let found = tested?;
        if let Some(origin) = origin {
            if found.is_empty() {
                origin.await_empty()?;
            }
            origin.stop()?;
        }
        // The last boot ends as the others.
        let (cuts, sectors) = (machine.cuts, machine.sectors_lost);
        let Counts { writes, bytes_written, flushes } = machine.counts();
        let cached = if is_proxy { cached()? } else { String::new() };
        machine.cut()?;
        let lost: Vec<&str> = found.iter().map(String::as_str).collect();
        let what = match lost.is_empty() {
            true => "nothing lost".to_owned(),
            false => format!("lost: {}", lost.join(", ")),
        };
        let what = format!(
            "{what} in {cuts} cuts; of the disk {sectors} sectors, of {writes} writes with {} MiB \
             and {flushes} flushes{cached}",
            bytes_written >> 20
        );
        match scene.expected {
            Expected::NothingLost if lost.is_empty() => Ok(what),
            Expected::Lost(kinds) if lost.iter().any(|kind| kinds.contains(kind)) => Ok(what),
            Expected::NothingLost => Err(what),
            Expected::Lost(kinds) => Err(format!("{what}; expected one of {}", kinds.join(", "))),
        }
    }

    /// The same of a mount, which has its own oracle.
    fn play_mount(
        &self,
        scene: &Scene,
        mut machine: Machine,
        origin: &Origin,
        folder: &Path,
    ) -> Result<String, String> {
        let job = folder.join("job");
        let is_planted = scene.expected != Expected::NothingLost;
        let mut play = mounted::Play::new(&job, origin, self.options.seed, is_planted)?;
        machine.boot()?;
        let found = play.rounds(&mut machine, self.options.rounds, LOAD_OF_MOUNTS)?;
        let what = format!(
            "{} files closed, {} kills, {} sectors of the disk lost",
            found.closed, machine.cuts, machine.sectors_lost
        );
        machine.cut()?;
        match (found.lost.len(), is_planted) {
            (0, false) => Ok(format!("nothing wrong read, nothing lost; {what}")),
            (0, true) => Err(format!("{what}; what was planted is not found")),
            (count, true) => Ok(format!("{count} wrong reads, as planted; {what}")),
            _ => Err(format!("{what}; WRONG:\n  {}", found.lost.join("\n  "))),
        }
    }

    /// The kinds of what was lost.
    fn test(&self, scene: &Scene, switch: &Switch, folder: &Path) -> Result<Vec<String>, String> {
        let (export, mount_port) = scene.server.export();
        let record = folder.join("record.json");
        let Options { rounds, seed, load, no_retransmissions, .. } = self.options;
        let mut command = Command::new(self.nfskit);
        command
            .arg("crash-test")
            .arg(format!("nfs://{GUEST}{export}?nfsport=2049&mountport={mount_port}"))
            .args(["--kill", &switch.command("cut"), "--restart", &switch.command("boot")])
            .args(["--rounds", &rounds.to_string(), "--seed", &seed.to_string()])
            .args(["--load", load, "--calls", scene.calls])
            .args(["--back-within", BACK_WITHIN, "--json"])
            .arg(&record);
        if scene.retransmits && !no_retransmissions {
            command.arg("--retransmit");
        }
        if matches!(scene.server, Server::Proxy(_)) {
            command.args(["--behind", &origin::url()]);
        }
        let ended = command.stdin(Stdio::null()).status();
        let ended = ended.map_err(|error| format!("crash-test does not start: {error}"))?;
        if !matches!(ended.code(), Some(0 | 1)) {
            return Err(format!("crash-test: {ended}"));
        }
        let failed = |what: &dyn std::fmt::Display| format!("{}: {what}", record.display());
        let text = std::fs::read_to_string(&record).map_err(|error| failed(&error))?;
        lost(&text).ok_or_else(|| failed(&"no record of crash-test"))
    }
}

/// What the cache of a proxy has done in its last life.
fn cached() -> Result<String, String> {
    let page = metrics::page(&format!("{GUEST}:{METRICS}"))?;
    let value = |name: &str| {
        let mut lines = page.lines().filter(|line| line.starts_with(name));
        lines.next()?.rsplit(' ').next()
    };
    let stored = value("nfskit_cache_stored_blocks_total{");
    match (stored, value("nfskit_cache_hits_total{")) {
        (Some(stored), Some(hits)) => Ok(format!(
            "; in the last life {stored} blocks were stored in the cache and {hits} reads served"
        )),
        _ => Err("the proxy tells nothing of its cache".to_owned()),
    }
}

/// The kinds that a record tells were lost.
fn lost(record: &str) -> Option<Vec<String>> {
    let record: serde_json::Value = serde_json::from_str(record).ok()?;
    let record = record.as_array().and_then(|all| all.first()).unwrap_or(&record);
    let metrics = record.get("metrics")?.as_object()?;
    let lost = metrics.iter().filter_map(|(name, metric)| {
        let kind = name.strip_prefix("lost_")?;
        let is_some = metric.get("value")?.as_f64()? > 0.0;
        is_some.then(|| kind.replace('_', "-"))
    });
    Some(lost.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let options: Options = parse(words).unwrap();
        options.scenes().iter().map(|scene| scene.name).collect()
    }

    #[test]
    fn scenes_are_chosen_by_name() {
        assert_eq!(names(&[]), OURS);
        assert_eq!(names(&["--write-log"]), ["ext4-log", "xfs-log"]);
        assert_eq!(names(&["--only", "planted-late,knfsd"]), ["knfsd", "planted-late"]);
        assert!(parse::<Options>(&["--only", "fat"]).is_err());
    }

    #[test]
    fn a_record_tells_what_was_lost() {
        let record = r#"{"metrics": {"kills": {"value": 3.0}, "lost_names": {"value": 2.0},
            "lost_data_sync": {"value": 0.0}}}"#;
        assert_eq!(lost(record), Some(vec!["names".to_owned()]));
        assert_eq!(lost("{}"), None);
    }
}
