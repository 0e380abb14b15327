//! `cargo xtask attacks`: what clients with bad manners cost one that behaves.
//!
//! For each attack a server is started, a healthy client measures it before, during and after, and
//! the rows become a table: the one of docs/semantics.md. A quantile during or after that is more
//! than [`TIMES_MAX`] times the one before fails the command. It compares response times, so it
//! belongs to `cargo xtask full`.
//!
//! All share the processors of one machine, where clients would have their own: so a client that
//! behaves goes before all others, and an attacker behind them (sched(7), nice). What is left of
//! the competition for processors is that for those of the server.
//!
//! An attack is a file with one constant of type [`Attack`], and a line in [`ATTACKS`].

mod attack;
mod calls;
mod healthy;
mod idle_connections;
mod metrics_flood;
mod never_read;
mod parents;
mod partial_records;
mod strangers;
mod walks;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Parser;
use tempfile::TempDir;

use self::attack::{Attack, Scene};
use self::healthy::{Healthy, KINDS};
use crate::host::nfskit::Server;
use crate::host::process::resident_mib;
use crate::host::{build, isolate, scratch};
use crate::options;

/// The command by which `run` calls ourselves inside the namespaces.
pub(crate) const INSIDE: &str = "attacks-inside";

/// All of them, in the order of the table.
const ATTACKS: &[&Attack] = &[
    &never_read::ATTACK,
    &never_read::SMALL,
    &never_read::SAME_HOST,
    &partial_records::ATTACK,
    &idle_connections::ATTACK,
    &strangers::ATTACK,
    &metrics_flood::ATTACK,
    &parents::ATTACK,
    &walks::ATTACK,
];

/// How much longer a healthy client may wait.
const TIMES_MAX: f64 = 3.0;

/// Shorter than this is not distinguished from the machine's own unrest.
const FLOOR: Duration = Duration::from_micros(500);

/// How long the server may take beyond its grace to end while it is attacked.
const END_WITHIN: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(2);

/// What came of it.
struct Row {
    attack: &'static Attack,
    before: Duration,
    during: Duration,
    during_by_kind: [Duration; KINDS.len()],
    after: Duration,
    /// Since when it was attacked when the call began that waited longest, its wait, and its kind.
    worst: Option<(Duration, Duration, usize)>,
    /// Resident at the most, and 10 s after the attack.
    most_mib: u64,
    after_mib: u64,
    failures: usize,
    /// How long the server took to end, beyond its grace, while it was attacked.
    end: Duration,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = options::parse(words)?;
    if options.list {
        options.attacks().iter().for_each(|attack| println!("{:<18}{}", attack.name, attack.about));
        return Ok(());
    }
    let nfskit = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::release(root, "attacks", "nfskit", "nfskit")?,
    };
    if !isolate::is_possible() {
        println!("attacks: without namespaces of its own: with this host's control of congestion");
        return measure_all(&nfskit, &options);
    }
    let first = [OsStr::new(INSIDE), nfskit.as_os_str()];
    isolate::run_ourselves("attacks", first.into_iter().chain(words.iter().map(OsStr::new)))
}

/// Measures, in the namespaces of which we are the first process.
pub(crate) fn run_inside(nfskit: &Path, words: &[&str]) -> Result<(), String> {
    isolate::end_with_caller_and_mounts();
    measure_all(nfskit, &options::parse(words)?)
}

fn measure_all(nfskit: &Path, options: &Options) -> Result<(), String> {
    raise_descriptor_limit();
    let mut rows = Vec::new();
    for attack in options.attacks() {
        println!("attacks: {}: {}", attack.name, attack.about);
        let row = measure(nfskit, attack, options.seconds)?;
        println!("{row}\n{}", row.kinds());
        rows.push(row);
    }
    println!("{HEAD}");
    rows.iter().for_each(|row| println!("{row}"));
    let missed: Vec<&str> =
        rows.iter().filter(|row| !row.is_held()).map(|row| row.attack.name).collect();
    match (missed.as_slice(), options.check) {
        ([], _) => Ok(()),
        (names, true) => Err(format!("attacks: a healthy client suffers: {}", names.join(", "))),
        (names, false) => {
            println!("missed: {}", names.join(", "));
            Ok(())
        }
    }
}

fn measure(nfskit: &Path, attack: &'static Attack, phase: Duration) -> Result<Row, String> {
    let grace = format!("{}s", GRACE.as_secs());
    let mut options = vec!["--metrics", "127.0.0.1:0", "--grace", &grace];
    options.extend(attack.options);
    let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
    let failed = |error: io::Error| format!("attacks: {}: {error}", attack.name);
    let tree = attack.tree.map(Tree::make).transpose()?;
    let served = tree.as_ref().map_or_else(|| Path::new("mem:"), |tree| tree.0.path());
    let server = Server::start_with(nfskit, served, &options)?;
    let scene = Scene::of(&server).map_err(failed)?;
    let healthy = Healthy::start(scene.address, scene.file);
    let begin = Instant::now();
    let mut most_mib = 0;
    let mut watch = |span: Duration| {
        let until = Instant::now() + span;
        while Instant::now() < until {
            most_mib = most_mib.max(resident_mib(server.pid()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    watch(phase);
    let attacked = Instant::now();
    let under_way = attack.begin(&scene).map_err(failed)?;
    watch((attacked + phase).saturating_duration_since(Instant::now()));
    drop(under_way);
    let left = Instant::now();
    watch(phase.max(Duration::from_secs(10)));
    let end = Instant::now();
    let after_mib = resident_mib(server.pid()).unwrap_or(0);
    let seen = healthy.stop();
    // Once more, and now it gets SIGTERM.
    let under_way = attack.begin(&scene).map_err(failed)?;
    std::thread::sleep(Duration::from_secs(1));
    let begun = Instant::now();
    server.stop()?;
    let took = begun.elapsed();
    drop(under_way);
    Ok(Row {
        attack,
        before: seen.p99(&(begin..attacked)),
        during: seen.p99(&(attacked..left)),
        during_by_kind: seen.p99_by_kind(&(attacked..left)),
        after: seen.p99(&(left..end)),
        worst: seen.worst(&(attacked..left)),
        most_mib,
        after_mib,
        failures: seen.failures,
        end: took.saturating_sub(GRACE),
    })
}

/// A folder on disk that anybody may change.
struct Tree(TempDir);

impl Tree {
    fn make(fill: fn(&Path) -> io::Result<()>) -> Result<Self, String> {
        let tree = Self(scratch::make("attacks")?);
        let open = Permissions::from_mode(0o777);
        let filled = fs::set_permissions(tree.0.path(), open).and_then(|()| fill(tree.0.path()));
        filled.map_err(|error| format!("attacks: {}: {error}", tree.0.path().display()))?;
        Ok(tree)
    }
}

impl Drop for Tree {
    /// Directories may lie too deep in one another for [`TempDir`].
    fn drop(&mut self) {
        let removed = Command::new("rm").arg("-rf").arg(self.0.path()).status();
        scratch::warn_unless_removed(removed.map(drop));
    }
}

impl Row {
    fn times(&self) -> f64 {
        let most = self.during.max(self.after).max(FLOOR);
        most.as_secs_f64() / self.before.max(FLOOR).as_secs_f64()
    }

    /// Which calls waited.
    fn kinds(&self) -> String {
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        let took = self.during_by_kind.map(ms);
        let parts = KINDS.iter().zip(took).map(|(kind, took)| format!("{kind} {took:.2} ms"));
        let worst = self.worst.map(|(at, took, kind)| {
            let (kind, took, at) = (KINDS[kind], ms(took), at.as_secs_f64());
            format!("; longest: {kind}, {took:.2} ms, {at:.2} s after it began")
        });
        let parts = parts.collect::<Vec<_>>().join("; ");
        format!("    p99 during: {parts}{}", worst.unwrap_or_default())
    }

    fn is_held(&self) -> bool {
        self.times() <= TIMES_MAX && self.failures == 0 && self.end <= END_WITHIN
    }
}

/// Of the table.
const HEAD: &str = "| attack | p99 before | during | after (ms) | times | calls that failed | \
                    memory at most | 10 s after (MiB) | end beyond the grace (s) |\n\
                    |---|---|---|---|---|---|---|---|---|";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |span: Duration| format!("{:.2}", span.as_secs_f64() * 1e3);
        let (before, during, after) = (ms(self.before), ms(self.during), ms(self.after));
        let (about, times, failures) = (self.attack.about, self.times(), self.failures);
        let (most, left, end) = (self.most_mib, self.after_mib, self.end.as_secs_f64());
        write!(
            f,
            "| {about} | {before} | {during} | {after} | {times:.1} | {failures} | {most} | \
             {left} | {end:.1} |"
        )
    }
}

fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Not allowed is no harm: an attack that needs more reports that.
    setrlimit(Resource::Nofile, limit).ok();
}

/// What clients with bad manners cost one that behaves.
#[derive(Parser)]
#[command(name = "attacks", bin_name = "cargo xtask attacks")]
struct Options {
    /// These attacks.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = find)]
    only: Vec<&'static Attack>,
    /// This nfskit, not a new release build.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// How long each phase is.
    #[arg(long, value_name = "N", default_value = "15", value_parser = seconds)]
    seconds: Duration,
    /// Fails when a client that behaves waits more than 3 times as long.
    #[arg(long)]
    check: bool,
    /// Names the attacks, and makes none.
    #[arg(long)]
    list: bool,
}

impl Options {
    fn attacks(&self) -> &[&'static Attack] {
        if self.only.is_empty() { ATTACKS } else { &self.only }
    }
}

fn seconds(number: &str) -> Result<Duration, String> {
    number.parse().map(Duration::from_secs).map_err(|error| format!("{error}"))
}

fn find(name: &str) -> Result<&'static Attack, String> {
    options::find(name, ATTACKS.iter().map(|attack| (attack.name, *attack)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(before: u64, during: u64, failures: usize) -> Row {
        let ms = Duration::from_millis;
        Row {
            attack: ATTACKS[0],
            before: ms(before),
            during: ms(during),
            during_by_kind: [ms(during); KINDS.len()],
            after: ms(before),
            worst: None,
            most_mib: 0,
            after_mib: 0,
            failures,
            end: Duration::ZERO,
        }
    }

    #[test]
    fn a_client_that_waits_longer_or_fails_is_harmed() {
        assert!(row(2, 6, 0).is_held());
        assert!(!row(2, 7, 0).is_held() && !row(2, 2, 1).is_held());
        assert!(!Row { end: Duration::from_millis(1100), ..row(2, 2, 0) }.is_held());
        assert!(row(0, 1, 0).is_held(), "below the floor nothing is distinguished");
    }

    #[test]
    fn names_are_of_one_attack_each() {
        for attack in ATTACKS {
            assert_eq!(ATTACKS.iter().filter(|other| other.name == attack.name).count(), 1);
        }
    }
}
