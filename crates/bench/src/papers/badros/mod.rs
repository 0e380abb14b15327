//! `nfskit papers badros`: the thirteen tests of the paper on caching files on the client's disk,
//! on a local directory, through a client that waits as the paper's kernel did, one that waits as
//! Linux 2.4's did, ours, ours with a cache, and ours before a proxy that answers changes from its
//! log.

mod report;

use std::collections::BTreeMap;

use harness::exit::Failure;
use harness::local;
use harness::mounts::proxy::Proxy;
use harness::values::target;
use harness::verbosity::Verbosity;
use load::suite13::Test;
use perf::record::Run as Record;
use tempfile::TempDir;

use crate::papers::args::Badros;
use crate::suite13::Plan as SuitePlan;
use crate::suite13::args::{At, Caches, Place, Suite13};
use crate::suite13::measured::{Measured, Outcome};
use crate::workload::{self, Conditions, Outputs, Workload};

/// Places, in the order of the columns.
const LOCAL: usize = 0;
const OF_PAPER: usize = 1;
const KERNEL_LIKE: usize = 2;
const OURS: usize = 3;
const CACHED: usize = 4;
const WRITE_BACK: usize = 5;

/// A client as the paper's standard one (Linux 2.0.27): a WRITE for each write(2), which waits for
/// it, transfers of version 2's 8 KiB, and the timeouts that the paper has set for both clients.
const AS_OF_PAPER: &str =
    "sync,rsize=8192,wsize=8192,acregmin=5,acregmax=5,acdirmin=30,acdirmax=30";

/// What the paper's text says: its figures are lost.
const PAPER_AGAIN: f64 = 14.0;
const PAPER_SMALL_WRITES: f64 = 100.0;
const PAPER_BUILD: f64 = 1.1;

/// The tests of the paper, and what goes when it is over: a proxy, and directories.
#[derive(Debug)]
pub(crate) struct Plan {
    suite: Suite13,
    plan: SuitePlan,
    _proxy: Option<Proxy>,
    _dirs: [TempDir; 3],
}

impl Workload for Badros {
    type Plan = Plan;
    type Measured = Outcome;

    fn plan(&self) -> Result<Plan, Failure> {
        let [local, cache, log] = [self.own_dir()?, self.own_dir()?, self.own_dir()?];
        let cached_at = cache.path().to_string_lossy().into_owned();
        let mut suite = self.suite(&local, cached_at);
        let proxy = match self.no_write_back {
            true => None,
            false => {
                let origin = self.target.to_string();
                let proxy = Proxy::start(&origin, self.link.as_deref(), log.path());
                Some(proxy.map_err(|failure| failure.and("--no-write-back leaves it off"))?)
            }
        };
        if let Some(Proxy { url, .. }) = &proxy {
            let target = target(url).map_err(|why| Failure::usage(why, "--no-write-back"))?;
            suite.compare.push(place("write-back", At::Server(url.clone(), target)));
        }
        let plan = suite.plan()?;
        Ok(Plan { suite, plan, _proxy: proxy, _dirs: [local, cache, log] })
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.common.json)
    }

    fn is_on_all_processors(&self) -> bool {
        true
    }

    async fn run(
        &self,
        plan: &Plan,
        conditions: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        plan.suite.run(&plan.plan, conditions).await
    }

    fn table(&self, plan: &Plan, outcome: &Outcome, verbosity: Verbosity) -> String {
        let mut text = report::text(outcome, &self.copies, self.common.markdown);
        text += &plan.suite.table(&plan.plan, outcome, verbosity);
        text
    }

    fn record(&self, plan: &Plan, outcome: &Outcome) -> Vec<Record> {
        plan.suite.record(&plan.plan, outcome)
    }

    fn verdict(&self, outcome: Outcome) -> Result<(), Failure> {
        let claims = report::claims(&outcome, &self.copies);
        let unmet: Vec<_> = claims.iter().filter(|claim| claim.is_met == Some(false)).collect();
        self.common.verdict(unmet.is_empty(), || {
            let named: Vec<&str> = unmet.iter().map(|claim| claim.what.as_str()).collect();
            format!("not as the paper has it: {}", named.join("; "))
        })
    }
}

fn place(name: &str, at: At) -> Place {
    Place { name: name.to_owned(), at }
}

impl Badros {
    /// A directory for the time of the run.
    fn own_dir(&self) -> Result<TempDir, Failure> {
        let advice = "--dir DIR, or a TMPDIR that this user may write in";
        local::private(self.dir.as_deref(), advice)
    }

    /// All places but the proxy.
    fn suite(&self, local: &TempDir, cache: String) -> Suite13 {
        let server = || At::Server(self.target.to_string(), self.target.clone());
        let link = self.link.as_ref().map(|link| format!("link={link}"));
        let linked = |name: &str, words: &str| {
            let words = [Some(words.to_owned()), link.clone()].into_iter().flatten();
            let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
            (name.to_owned(), words.join(","))
        };
        Suite13 {
            compare: vec![
                place("local", At::Dir(local.path().to_owned())),
                place("1997", server()),
                place("kernel-like", server()),
                place("ours", server()),
                place("kept", server()),
            ],
            test: self.test.clone(),
            copies: self.copies.clone(),
            repeats: self.repeats,
            scale: self.scale,
            seed: 1,
            caches: Caches::Restart,
            drop_caches: false,
            no_sync: false,
            mix_durability: true,
            options: String::new(),
            cached: vec![("kept".to_owned(), cache)],
            own: vec![
                linked("1997", AS_OF_PAPER),
                linked("kernel-like", "write_policy=linux-2.4.4"),
                linked("ours", ""),
                linked("kept", ""),
            ],
            csv: None,
            json: None,
        }
    }
}

/// The calls of a test in a place, of the run that needed fewest: what a kernel sets of its own
/// accord (the time of its writes, if the server's clock has gone on meanwhile) is in some runs and
/// not in others.
fn calls(one: &Measured) -> Option<&BTreeMap<String, u64>> {
    let counted = one.runs().iter().filter_map(|ran| ran.calls.as_ref());
    counted.map(|calls| &calls.calls).min_by_key(|calls| calls.values().sum::<u64>())
}

/// The median time of a test.
fn seconds(outcome: &Outcome, copies: u32, test: Test, target: usize) -> Option<f64> {
    let span = outcome.of(target, copies, test)?.seconds(|ran| Some(ran.span()))?;
    Some(span.median())
}

/// How many times the time of the one goes into that of the other.
fn factor(outcome: &Outcome, copies: u32, test: Test, slow: usize, fast: usize) -> Option<f64> {
    let median = |target| seconds(outcome, copies, test, target);
    let factor = median(slow)? / median(fast)?;
    factor.is_finite().then_some(factor)
}
