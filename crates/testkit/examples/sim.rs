//! Runs plans: of seeds, of files, with or without a planted mistake. `cargo xtask sim` calls it.

#![expect(clippy::disallowed_methods, reason = "it says how fast the worlds are, in real time")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use testkit::plan::Plan;
use testkit::plan::shrink::shrink;
use testkit::sim::contest::live::{Folders, Mount};
use testkit::sim::contest::{RECORD_LOCKS, serve_locks};
use testkit::sim::{self, Failure, Options, Planted, Report};

/// Tries to make a plan smaller, and how long they may take.
const TRIES_MAX: usize = 2_000;
const TRYING_MAX: Duration = Duration::from_secs(60);

/// Within so many seeds a planted mistake must be noticed.
const PLANTED_MAX: u64 = 1_000;
const PLANTED_IN_CONTESTS_MAX: u64 = 2_000;

/// How a run failed that is not as it was before.
const NOT_THE_SAME: &str = "not the same twice";

const USAGE: &str = "\
usage: cargo xtask sim [OPTION]...

  --seed N        this seed, or the first of --count; without it, fresh ones, and stored ones
  --count N       so many seeds; 200, or 1 with --seed
  --plan FILE     this plan
  --contest       seeds in which all clients compete for the same names and files
  --kills         contests whose clients keep what they read on a disk are killed in the midst
                  of that, and go on with what their disk has
  --planted NAME  with a mistake: reply-cache-off, verifier-kept, commit-early, drive-lies; of
                  clients, in contests: old-attributes, forgotten-excuses, unasked-ends,
                  late-names, errors-told-once, commit-makes-state, unheard-errors, and of
                  those with a cache on a disk old-blocks, others-blocks, old-names, and where
                  they are killed unchecked-blocks; of a host, in contests: locks-by-node; or each
                  of them (all); fails if none of 1,000 seeds notices it, of 2,000 in contests, or
                  of --count
  --live DIR      seeds of contests in real time, in this folder; once for each mount of the same
                  directory, on a file system that does not use inode numbers again (tmpfs)
  --live-unremembering DIR
                  the same, of a mount that remembers no names (acdirmax=0)
  --server DIR    with --live: that directory as the server has it
  --may-be-full   with --live: its disk may be full now and then
  --jobs N        at once; as many as there are processors
  --twice         each seed twice, and not one of ten: the same must happen
  --verbose       what happens, line by line
  --print         the plan, and nothing happens; with --planted, a small one that notices it

What failed once (crates/testkit/plans, crates/testkit/seeds) runs first, but with --plan and
--print.
";

#[derive(Clone, Default)]
struct Arguments {
    seed: Option<u64>,
    count: Option<u64>,
    plan: Option<PathBuf>,
    planted: Vec<Planted>,
    jobs: Option<usize>,
    scenario: Scenario,
    live: Vec<Mount>,
    server: Option<PathBuf>,
    may_be_full: bool,
    twice: bool,
    verbose: bool,
    print: bool,
}

/// What seeds stand for: each has more in it than the one before.
#[derive(Clone, Copy, Default, Eq, Ord, PartialEq, PartialOrd)]
enum Scenario {
    /// Faults under clients, each of which has files of its own.
    #[default]
    Faults,
    /// Clients that compete.
    Contest,
    /// The same, killed while they fill their caches.
    Kills,
}

impl Scenario {
    /// The one in which a mistake shows.
    fn of(planted: Planted) -> Self {
        match () {
            () if planted.is_of_kills() => Self::Kills,
            () if planted.is_of_contests() => Self::Contest,
            () => Self::Faults,
        }
    }

    /// The plan that a seed stands for.
    fn plan(self, seed: u64) -> Plan {
        match self {
            Self::Faults => Plan::generate(seed),
            Self::Contest => Plan::contest(seed),
            Self::Kills => Plan::kills_in_contest(seed),
        }
    }

    /// As the command line has it.
    fn option(self) -> &'static str {
        match self {
            Self::Faults => "",
            Self::Contest => " --contest",
            Self::Kills => " --kills",
        }
    }
}

/// Sums over all runs.
#[derive(Default)]
struct Totals {
    runs: u64,
    ops: u64,
    virtual_secs: u64,
    faults: BTreeMap<&'static str, u64>,
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let done = match &words[..] {
        [_, first, file] if first == RECORD_LOCKS => {
            serve_locks(file.as_ref()).map_err(|error| format!("{}: {error}", file.display()))
        }
        _ => arguments().and_then(|arguments| run(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value\n{USAGE}"));
        let number = |text: String| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word.as_str() {
            "--seed" => arguments.seed = Some(number(value()?)?),
            "--count" => arguments.count = Some(number(value()?)?),
            "--plan" => arguments.plan = Some(value()?.into()),
            "--planted" => {
                arguments.planted = match value()?.as_str() {
                    "all" => Planted::ALL.to_vec(),
                    name => vec![name.parse()?],
                }
            }
            "--jobs" => arguments.jobs = usize::try_from(number(value()?)?).ok(),
            "--contest" => arguments.scenario = Scenario::Contest,
            "--kills" => arguments.scenario = Scenario::Kills,
            "--live" | "--live-unremembering" => {
                let mount = Mount { path: value()?.into(), remembers: word == "--live" };
                arguments.live.push(mount);
            }
            "--server" => arguments.server = Some(value()?.into()),
            "--may-be-full" => arguments.may_be_full = true,
            "--twice" => arguments.twice = true,
            "--verbose" => arguments.verbose = true,
            "--print" => arguments.print = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(arguments)
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if !arguments.live.is_empty() {
        return run_live(arguments);
    }
    // A panic is a failure of the plan, and reported with it.
    std::panic::set_hook(Box::new(|_| {}));
    let options = Options { planted: None, is_verbose: arguments.verbose };
    if let Some(path) = &arguments.plan {
        return match *arguments.planted {
            [] => run_file(path, arguments.twice, options),
            [one] => run_file(path, arguments.twice, Options { planted: Some(one), ..options }),
            _ => Err("--plan goes with one mistake at a time".to_owned()),
        };
    }
    if let (Some(seed), true, []) = (arguments.seed, arguments.print, &*arguments.planted) {
        print!("{}", arguments.scenario.plan(seed));
        return Ok(());
    }
    if !arguments.print {
        run_regressions()?;
    }
    if !arguments.planted.is_empty() {
        return run_planted(arguments, options);
    }
    let (first, count) = match (arguments.seed, arguments.count) {
        (Some(seed), count) => (seed, count.unwrap_or(1)),
        (None, count) => (fresh(), count.unwrap_or(200)),
    };
    println!("sim: {count} seeds from {first}");
    match run_seeds(arguments, first, count, options) {
        None => Ok(()),
        Some((seed, failure)) => Err(explain(arguments, seed, &failure, options)),
    }
}

/// Plays seeds one after another in folders.
fn run_live(arguments: &Arguments) -> Result<(), String> {
    let (mounts, server) = (arguments.live.clone(), arguments.server.clone());
    let may_be_full = arguments.may_be_full;
    let ourselves = std::env::current_exe();
    let locker = ourselves.map_err(|error| format!("our own program is not known: {error}"))?;
    let folders = Folders { mounts, server, locker: Some(locker), may_be_full };
    let first = arguments.seed.unwrap_or_else(fresh);
    let begun = Instant::now();
    let (mut count, mut ops) = (0, 0);
    for seed in first..first + arguments.count.unwrap_or(1) {
        let plan = Plan::live(seed);
        if arguments.print {
            print!("{plan}");
        }
        let report = folders.play(&format!("contest-{seed}"), &plan, true);
        if arguments.verbose || report.failure.is_some() {
            report.lines.iter().for_each(|line| println!("{line}"));
        }
        if let Some(failure) = report.failure {
            return Err(format!("live: seed {seed}: {failure}"));
        }
        (count, ops) = (count + 1, ops + report.ops);
    }
    let secs = begun.elapsed().as_secs_f64();
    println!("live: {count} seeds from {first}, {ops} operations in {secs:.1} s");
    Ok(())
}

/// Each mistake must be noticed by one of the seeds.
fn run_planted(arguments: &Arguments, options: Options) -> Result<(), String> {
    let first = arguments.seed.unwrap_or_else(fresh);
    let mut missed = Vec::new();
    for &planted in &arguments.planted {
        let scenario = arguments.scenario.max(Scenario::of(planted));
        let arguments = &Arguments { scenario, planted: Vec::new(), ..arguments.clone() };
        let most = match scenario {
            Scenario::Faults => PLANTED_MAX,
            Scenario::Contest | Scenario::Kills => PLANTED_IN_CONTESTS_MAX,
        };
        let count = arguments.count.unwrap_or(most);
        let (name, options) = (planted.name(), Options { planted: Some(planted), ..options });
        println!("sim: {name}: at most {count} seeds from {first}");
        match run_seeds(arguments, first, count, options) {
            Some((seed, failure)) => {
                let after = seed - first + 1;
                println!("{name}: noticed after {after} seeds, by seed {seed}: {failure}");
                if arguments.print {
                    println!("{}", explain(arguments, seed, &failure, options));
                }
            }
            None => missed.push(format!("{name}: not noticed in {count} seeds from {first}")),
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

/// A seed that nobody has had before.
fn fresh() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Room for the seeds that follow.
    u64::try_from(now.as_millis()).unwrap_or_default() % 10_000_000_000_000 * 10_000
}

/// The first of the seeds that fails, if any.
fn run_seeds(
    arguments: &Arguments,
    first: u64,
    count: u64,
    options: Options,
) -> Option<(u64, Failure)> {
    let begun = Instant::now();
    let (next, stop) = (AtomicU64::new(first), AtomicBool::new(false));
    let failed = Mutex::new(None::<(u64, Failure)>);
    let totals = Mutex::new(Totals::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.unwrap_or(cores).max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed - first >= count {
                        return;
                    }
                    // A run that is not the same twice shows soon.
                    let twice = arguments.twice || seed.is_multiple_of(10);
                    let report = run_plan(&arguments.scenario.plan(seed), twice, options);
                    if options.is_verbose {
                        report.lines.iter().for_each(|line| println!("{line}"));
                        println!("digest {:016x}", report.digest);
                    }
                    totals.lock().expect("nobody panics with it").add(&report);
                    if let Some(failure) = report.failure {
                        stop.store(true, Ordering::Relaxed);
                        let mut failed = failed.lock().expect("nobody panics with it");
                        if failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                            *failed = Some((seed, failure));
                        }
                    }
                }
            });
        }
    });
    let totals = totals.into_inner().expect("nobody panics with it");
    totals.print(begun.elapsed());
    failed.into_inner().expect("nobody panics with it")
}

fn run_plan(plan: &Plan, twice: bool, options: Options) -> Report {
    let mut report = sim::run(plan, options);
    if twice && report.failure.is_none() {
        let again = sim::run(plan, options);
        if again.digest != report.digest {
            let what = format!("{:016x}, then {:016x}", report.digest, again.digest);
            report.failure = Some(Failure { way: NOT_THE_SAME.to_owned(), what });
        }
    }
    report
}

/// Makes the plan smaller, keeps it, and says how to see it again.
fn explain(arguments: &Arguments, seed: u64, failure: &Failure, options: Options) -> String {
    let (plan, twice) = (arguments.scenario.plan(seed), arguments.twice);
    eprintln!("seed {seed} failed: {failure}\nmaking the plan smaller ...");
    let begun = Instant::now();
    // Whoever runs the smaller ones must see what was seen.
    let twice = twice || failure.way == NOT_THE_SAME;
    let quiet = Options { is_verbose: false, ..options };
    let shrunk = shrink(&plan, TRIES_MAX, |plan| {
        let in_time = begun.elapsed() < TRYING_MAX;
        let fails = || run_plan(plan, twice, quiet).failure;
        in_time && fails().is_some_and(|other| other.way == failure.way)
    });
    let last = run_plan(&shrunk.plan, twice, quiet).failure;
    let last = last.map_or_else(|| failure.to_string(), |failure| failure.to_string());
    let mut same = String::new();
    if let Some(planted) = options.planted {
        same += &format!(" --planted {}", planted.name());
    }
    if twice {
        same += " --twice";
    }
    let folder = Path::new("target/sim");
    let path = folder.join(format!("{seed}.plan"));
    let text = format!("# seed {seed}{same}: {last}\n{}", shrunk.plan);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, &text));
    let scenario = arguments.scenario.option();
    let replay = match written {
        Ok(()) => format!("cargo xtask sim --plan {}{same} --verbose", path.display()),
        Err(error) => format!("(the plan could not be stored: {error})"),
    };
    let count = if options.planted.is_some() { " --count 1" } else { "" };
    format!(
        "{text}\nseed {seed}: {failure}\nin the smaller plan ({} steps of {}): {last}\n\
         see it again:  cargo xtask sim{scenario} --seed {seed}{count}{same} --verbose\n     \
         or:       {replay}",
        shrunk.plan.steps.len(),
        plan.steps.len(),
    )
}

fn run_file(path: &Path, twice: bool, options: Options) -> Result<(), String> {
    let name = path.display();
    let report = run_plan(&read(path)?, twice, options);
    report.lines.iter().for_each(|line| println!("{line}"));
    match report.failure {
        Some(failure) => Err(format!("{name}: {failure}")),
        None => {
            println!("{name}: {} operations, digest {:016x}", report.ops, report.digest);
            Ok(())
        }
    }
}

fn read(path: &Path) -> Result<Plan, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    text.parse().map_err(|error| format!("{name}: {error}"))
}

/// Plans and seeds that failed once, each twice.
fn run_regressions() -> Result<(), String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = home.join("plans");
    let entries = std::fs::read_dir(&folder);
    let entries = entries.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut plans: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    plans.retain(|path| path.extension().is_some_and(|extension| extension == "plan"));
    plans.sort();
    for path in &plans {
        if let Some(failure) = run_plan(&read(path)?, true, Options::default()).failure {
            let path = path.display();
            let again = format!("cargo xtask sim --plan {path} --twice --verbose");
            return Err(format!("{path}: {failure}\nsee it again:  {again}"));
        }
    }
    let seeds = std::fs::read_to_string(home.join("seeds")).unwrap_or_default();
    let mut count = 0;
    for line in seeds.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let seed = line.split_whitespace().next().and_then(|seed| seed.parse().ok());
        let seed = seed.ok_or_else(|| format!("crates/testkit/seeds: {line:?} has no seed"))?;
        let arguments = Arguments { twice: true, ..Arguments::default() };
        let report = run_plan(&arguments.scenario.plan(seed), true, Options::default());
        if let Some(failure) = report.failure {
            return Err(explain(&arguments, seed, &failure, Options::default()));
        }
        count += 1;
    }
    println!("sim: {} plans and {count} seeds that failed once do not any more", plans.len());
    Ok(())
}

impl Totals {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.ops += report.ops;
        self.virtual_secs += report.span.as_nanos() / 1_000_000_000;
        for (name, count) in &report.faults {
            *self.faults.entry(name).or_default() += count;
        }
    }

    fn print(&self, took: Duration) {
        let secs = took.as_secs_f64().max(1e-9);
        println!(
            "sim: {} seeds in {secs:.1} s ({:.0} seeds/s), {} operations, {} s of virtual time",
            self.runs,
            self.runs as f64 / secs,
            self.ops,
            self.virtual_secs,
        );
        let faults = self.faults.iter().map(|(name, count)| format!("{name} {count}"));
        println!("sim: faults: {}", faults.collect::<Vec<_>>().join(", "));
    }
}
