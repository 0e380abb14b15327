//! `nfskit papers badros`: the thirteen tests of the paper on caching files on the client's disk,
//! on a local directory, through a client that waits as Linux 2.4's did, through ours, and through
//! ours with a cache.

mod report;

use harness::exit::Failure;
use harness::verbosity::Verbosity;
use load::suite13::Test;
use perf::record::Run as Record;
use tempfile::TempDir;

use crate::papers::args::Badros;
use crate::suite13::args::{At, Caches, Place, Suite13};
use crate::suite13::{Measured, Outcome, Plan as SuitePlan};
use crate::workload::{self, Conditions, Outputs, Workload};

/// Places, in the order of the columns.
const LOCAL: usize = 0;
const KERNEL_LIKE: usize = 1;
const OURS: usize = 2;
const KEPT: usize = 3;

/// What the paper's text says: its figures are lost.
const PAPER_AGAIN: f64 = 14.0;
const PAPER_SMALL_WRITES: f64 = 100.0;
const PAPER_BUILD: f64 = 1.1;

/// The tests of the paper, and two directories that go when it is over.
#[derive(Debug)]
pub(crate) struct Plan {
    suite: Suite13,
    plan: SuitePlan,
    _local: TempDir,
    _kept: TempDir,
}

impl Workload for Badros {
    type Plan = Plan;
    type Measured = Outcome;

    fn plan(&self) -> Result<Plan, Failure> {
        let made = |cause| {
            let what = format!("no directory of our own: {cause}");
            Failure::environment(what, "--dir, or a TMPDIR that this user may write in")
        };
        let make = || {
            let mut builder = tempfile::Builder::new();
            let builder = builder.prefix("nfskit-badros-");
            match &self.dir {
                Some(dir) => builder.tempdir_in(dir),
                None => builder.tempdir(),
            }
        };
        let (local, kept) = (make().map_err(made)?, make().map_err(made)?);
        let server = || At::Server(self.target.to_string(), self.target.clone());
        let place = |name: &str, at| Place { name: name.to_owned(), at };
        let own = |name: &str, words: &str| (name.to_owned(), words.to_owned());
        let link = self.link.as_ref().map_or_else(String::new, |link| format!("link={link}"));
        let suite = Suite13 {
            compare: vec![
                place("local", At::Dir(local.path().to_owned())),
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
            options: link,
            cached: vec![("kept".to_owned(), kept.path().to_string_lossy().into_owned())],
            own: vec![own("kernel-like", "write_policy=linux-2.4.4")],
            csv: None,
            json: None,
        };
        let plan = suite.plan()?;
        Ok(Plan { suite, plan, _local: local, _kept: kept })
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

/// The calls of a test in a place, of the run that was typical.
fn calls(one: &Measured) -> Option<&std::collections::BTreeMap<String, u64>> {
    one.typical().and_then(|ran| ran.calls.as_ref()).map(|calls| &calls.calls)
}

/// How many times the time of the one goes into that of the other.
fn factor(outcome: &Outcome, copies: u32, test: Test, slow: usize, fast: usize) -> Option<f64> {
    let median = |target| {
        let span = outcome.of(target, copies, test)?.seconds(|ran| Some(ran.span()))?;
        Some(span.median())
    };
    let factor = median(slow)? / median(fast)?;
    factor.is_finite().then_some(factor)
}
