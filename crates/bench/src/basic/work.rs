//! What is to be done, and whether a place is fit for it.

use harness::exit::Failure;
use harness::local;
use load::basic::place::{Place, Refused};
use load::basic::{Leftovers, Plan, Test, leftovers};
use net::clock::Clock;
use perf::units::Nanos;

use super::args::Basic;

/// What the command line chooses.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) clock: &'a Clock,
    pub(super) args: &'a Basic,
    pub(super) plan: &'a Plan,
    pub(super) is_printed: bool,
}

/// Names that a message lists.
const NAMES_MAX: usize = 3;

/// Made and removed in a directory that is worked in itself, before anything else is.
const PROBE: &str = ".nfskit-scratch-probe";

/// A directory that is worked in itself may be written in, and nothing of ours is there.
pub(super) async fn is_fit<P: Place>(place: &P, dir: &P::Dir, plan: &Plan) -> Result<(), Failure> {
    let show = place.show(dir);
    let Leftovers { ours, others } = leftovers(place, dir).await.map_err(refused)?;
    if !ours.is_empty() {
        let what = format!("{show} has names that the tests use: {}", list(&ours));
        return Err(Failure::environment(
            what,
            "remove what an earlier run has left there, or run without -n",
        ));
    }
    if !others.is_empty() && !plan.ignore_others && plan.tests.contains(&Test::Readdir) {
        let what = format!("{show} is not empty, and test 6 lists it: {}", list(&others));
        return Err(Failure::environment(what, "-i, which ignores others, or run without -n"));
    }
    let made = place.create(dir, PROBE).await.map_err(refused)?;
    place.close(made.value).await.map_err(refused)?;
    place.remove(dir, PROBE).await.map_err(refused)
}

fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn refused(refused: Refused) -> Failure {
    Failure::from(refused.error)
}

/// Whether test 5's file has room, and a little is left.
pub(super) fn is_enough(place: &str, free: u64, plan: &Plan) -> Result<(), Failure> {
    if !plan.tests.contains(&Test::Data) {
        return Ok(());
    }
    let advice = "free space there, a smaller --size, or --test without 5";
    local::room(place, plan.file_bytes, free, advice)
}

/// How long cleaning up may take when a run is interrupted.
pub(super) const CLEAN_LIMIT: Nanos = Nanos::from_secs(20);
