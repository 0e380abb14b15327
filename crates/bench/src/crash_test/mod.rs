//! `nfskit crash-test`: a server killed under load, and which promises it has broken.

mod report;
mod site;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use client::url::{Protocol, Target, Version};
use harness::exit::Failure;
use harness::scratch::REMOVE_LIMIT;
use harness::signals::Interrupts;
use harness::values::{self, count, size, time, whole};
use harness::verbosity::Verbosity;
use harness::{local, output, target};
use load::crash::{Kind, Options, Round, Trial};
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;

use self::site::{Killed, Restarts};
use crate::workload::{self, Conditions, Outcome, Outputs, Workload};

/// The load begins with a tenth of the longest at least, so that there is something to lose.
const LOAD_LEAST: u64 = 10;

/// Kills a server under load, starts it again, and checks everything it had promised.
///
/// Works on any server, in a directory of its own. The load is mixed: stable and unstable WRITEs,
/// COMMITs, truncations, changes of attributes and names. What was answered before the kill must be
/// there after the restart: bytes, names, attributes, handles; an unstable WRITE only if its COMMIT
/// had the same verifier. What was not answered may be there, or not, or in part. Exit code 1:
/// something was lost.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit crash-test nfs://server/export --rounds 20 \\
      --kill 'ssh root@server reboot --force --force' --restart 'sleep 30'
  nfskit crash-test nfs://127.0.0.1/?nfsport=2050 --kill 'pkill -KILL my-nfsd' --restart './start'
  nfskit crash-test server:/export --hold data-sync,data-commit --kill ... --restart ...

A kill of the server's process alone leaves the page cache of its machine as it is, and so finds
little. Take the power: of a virtual machine, or a machine that can be switched off.")]
pub struct CrashTest {
    /// A directory of an NFS server to work in, by version 3 over TCP.
    #[arg(value_name = "URL", value_parser = values::target)]
    target: Target,
    /// Ends the server at once; a command for sh. It is gone when the command ends.
    #[arg(long, value_name = "COMMAND")]
    kill: String,
    /// Starts it; a command for sh, which may end before the server answers, or go on.
    #[arg(long, value_name = "COMMAND")]
    restart: String,
    /// How often.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=100_000))]
    rounds: u32,
    /// What decides the calls, and when to kill [default: the time].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    seed: Option<u64>,
    /// The load before a kill: so long at most, a tenth of it at least.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    load: Nanos,
    /// Clients, each with a connection and a directory.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count(1..=256))]
    clients: u32,
    /// Calls of each at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = count(1..=64))]
    outstanding: u32,
    /// What the load has, separated by commas: data (WRITE, COMMIT), names, attributes (SETATTR),
    /// reads (READ, compared at once: for what has a cache). Names alone find a server that does
    /// not sync them: it does so with data.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        default_value = "data,names,attributes"
    )]
    calls: Vec<Calls>,
    /// Longest that a file may become.
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = size)]
    file_size: u64,
    /// What the server must not lose, separated by commas; the rest is counted, and no failure.
    #[arg(
        long, value_name = "KINDS", value_delimiter = ',', value_parser = kind,
        default_value = "data-sync,data-commit,foreign-bytes,names,attributes,handles,verifier,\
                         replies"
    )]
    hold: Vec<Kind>,
    /// Retransmits the last calls of each client, with their XIDs, after the restart: those that
    /// were answered must be answered as before, and the others be done then. Only for a server
    /// whose replies outlive its restart; another one would execute them again.
    #[arg(long)]
    retransmit: bool,
    /// How long the server may take to answer after its restart.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time)]
    back_within: Nanos,
    /// A server behind this one, which gets everything from it a little later: an origin whose
    /// proxy answers from a log. After each comparison of the server the same is compared there,
    /// by names, bytes and attributes.
    #[arg(long, value_name = "URL", value_parser = values::target)]
    behind: Option<Target>,
    /// How long it may take until all that was promised is there.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    #[arg(requires = "behind")]
    behind_within: Nanos,
    /// How long a call may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    reply_limit: Nanos,
    /// Leaves the directory on the server, also when nothing was lost.
    #[arg(long)]
    keep: bool,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Calls {
    Data,
    Names,
    Attributes,
    Reads,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        format!("{name:?} is none of {names}")
    })
}

/// Runs the command.
///
/// # Errors
/// As it ends.
pub fn run(args: &CrashTest, verbosity: Verbosity) -> Result<(), Failure> {
    workload::run(args, verbosity)
}

/// What the kills have shown, and what of it is a failure.
#[derive(Debug, Default)]
pub struct Shown {
    seed: u64,
    rounds: Vec<Round>,
    held: Vec<Kind>,
    restarts: Restarts,
}

impl CrashTest {
    fn options(&self, seed: u64) -> Options {
        Options {
            seed,
            clients: self.clients,
            outstanding: self.outstanding,
            calls: load::crash::Calls {
                data: self.calls.contains(&Calls::Data),
                names: self.calls.contains(&Calls::Names),
                attributes: self.calls.contains(&Calls::Attributes),
                reads: self.calls.contains(&Calls::Reads),
            },
            file_bytes_max: self.file_size,
            load: (self.load / LOAD_LEAST, self.load),
            retransmits: self.retransmit,
            answer_limit: self.back_within,
            behind_limit: self.behind_within,
        }
    }

    fn site(&self, clock: &Clock) -> Killed {
        Killed {
            clock: clock.clone(),
            target: self.target.clone(),
            behind: self.behind.clone(),
            mount: target::options(&self.target, self.reply_limit, Shape::default()),
            kill: self.kill.clone(),
            restart: self.restart.clone(),
            reply_limit: self.reply_limit,
            answer_limit: self.back_within,
            restarts: Restarts::default(),
        }
    }
}

impl Workload for CrashTest {
    type Plan = ();
    type Measured = Shown;

    fn plan(&self) -> Result<(), Failure> {
        let cannot = |of: &Target| of.version == Version::Two || of.protocol == Protocol::Udp;
        if cannot(&self.target) || self.behind.as_ref().is_some_and(cannot) {
            let what = "the load needs version 3, over TCP";
            return Err(Failure::usage(what, "without version=2 and proto=udp"));
        }
        if self.file_size > u64::from(u32::MAX) {
            return Err(Failure::usage("--file-size is above 4G", "a smaller one"));
        }
        Ok(())
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    fn is_untimed(&self) -> bool {
        true
    }

    async fn run(
        &self,
        (): &(),
        conditions: Conditions,
    ) -> Result<Outcome<Self::Measured>, Failure> {
        let Conditions { clock, mut interrupts, verbosity } = conditions;
        let seed =
            self.seed.unwrap_or_else(|| u64::from(clock.since_1970().subsec_nanos()) % 1_000_000);
        let (options, site) = (self.options(seed), self.site(&clock));
        let name = format!("{}{}", load::scratch::PREFIX, local::tag(&clock));
        let (held, restarts) = (self.hold.clone(), site.restarts.clone());
        let mut shown = Shown { seed, rounds: Vec::new(), held, restarts };
        let mut trial = interrupts.or(Trial::begin(&clock, site, options, &name)).await?;
        for number in 1..=self.rounds {
            match interrupts.or(trial.round()).await {
                Ok(round) => {
                    if verbosity > Verbosity::Quiet {
                        output::complain(report::line(number, &round));
                    }
                    shown.rounds.push(round);
                }
                Err(failure) => {
                    let failure = match interrupts.or(trial.revive()).await {
                        Ok(()) => failure,
                        Err(why) => failure.and(format!("the server is down: {}", why.what())),
                    };
                    let stays = self.keep || shown.has_lost() || trial.is_unseen();
                    let measured = (!shown.rounds.is_empty()).then_some(shown);
                    let failed = match stays {
                        true => Some(failure.and(left(&name))),
                        false => end(&clock, &trial, &mut interrupts, Some(failure)).await,
                    };
                    return Ok(Outcome { measured, failed });
                }
            }
        }
        if self.keep || shown.has_lost() {
            output::say(left(&name));
            return Ok(Outcome::whole(shown));
        }
        let failed = end(&clock, &trial, &mut interrupts, None).await;
        Ok(Outcome { measured: Some(shown), failed })
    }

    fn table(&self, (): &(), shown: &Shown, _: Verbosity) -> String {
        report::table(self, shown)
    }

    fn record(&self, (): &(), shown: &Shown) -> Vec<Record> {
        vec![report::record(self, shown)]
    }

    fn verdict(&self, shown: Shown) -> Result<(), Failure> {
        let lost = shown.rounds.iter().filter(|round| shown.breaks(round)).count();
        if lost > 0 {
            let what = format!("something that was promised is gone after {lost} kills");
            return Err(Failure::check(what, report::advice(&shown)));
        }
        let is_blind = |round: &&Round| round.files == 0 && round.files_gone > 0;
        let blind = shown.rounds.iter().filter(is_blind).count();
        if blind > 0 {
            let what = format!("no file was left to check after {blind} kills: nothing is held");
            return Err(Failure::check(what, report::advice(&shown)));
        }
        if shown.rounds.iter().all(|round| round.calls() == 0) {
            return Err(match shown.rounds.iter().find_map(|round| round.refusal.as_ref()) {
                Some(refusal) => Failure::environment(refusal, "an export that lets us write"),
                None => Failure::environment(
                    "no call was answered before the server was killed",
                    "more --load; nfskit doctor URL tells whether the server answers at all",
                ),
            });
        }
        Ok(())
    }
}

/// Removes the directory, and gives what ended the trial before its end: why it `failed`, or why
/// the directory is left.
async fn end(
    clock: &Clock,
    trial: &Trial<Killed>,
    interrupts: &mut Interrupts,
    failed: Option<Failure>,
) -> Option<Failure> {
    let late = |elapsed| Failure::environment(elapsed, "the server's log");
    let removal = async { clock.within(REMOVE_LIMIT, trial.end()).await.map_err(late)? };
    match interrupts.or(removal).await {
        Ok(()) => failed,
        Err(why) => Some(failed.unwrap_or(why).and(left(trial.name()))),
    }
}

fn left(name: &str) -> String {
    format!("the directory {name} is left on the server")
}

impl Shown {
    fn has_lost(&self) -> bool {
        self.rounds.iter().any(|round| !round.lost.is_empty())
    }

    /// Whether it has shown the loss of something that must be held.
    fn breaks(&self, round: &Round) -> bool {
        round.lost.iter().any(|lost| self.held.contains(&lost.kind))
    }
}
