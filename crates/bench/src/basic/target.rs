//! A server, at the wire.

use std::sync::atomic::AtomicBool;

use client::mount::{self, Mounted, Persistence};
use client::session::Session;
use client::url::{Protocol, Target};
use harness::emulated;
use harness::exit::Failure;
use harness::scratch;
use harness::signals::Interrupts;
use harness::target::{self, Reached};
use load::basic::place::Place;
use load::basic::wire::Wire;
use load::basic::{Event, Measured, Outcome, run as run_tests, sweep};
use load::scratch::Scratch;
use net::shape::Shape;
use perf::record::Durability;

use super::lines;
use super::ran::{Described, Ran, broken, failed};
use super::work::{CLEAN_LIMIT, Work, is_enough, is_fit};

/// Runs the tests on the server; an error is one of before the first test.
pub(super) async fn run(
    work: &Work<'_>,
    target: &Target,
    interrupts: &mut Interrupts,
) -> Result<Ran, Failure> {
    let started = load::environment::rfc3339(work.clock);
    let mut tested = Tested::default();
    let ended = match work.plan.in_place {
        true => in_place(work, target, interrupts, &mut tested).await,
        false => in_scratch(work, target, interrupts, &mut tested).await,
    };
    let Some(outcome) = tested.outcome else {
        let ended = ended.err().unwrap_or_else(Failure::interrupted);
        let place = described(work, target, None);
        return Ran::until(ended, started, tested.measured, (work.plan, place));
    };
    let failure = match (failed(&outcome.measured), ended) {
        (failure, Ok(())) => failure,
        (None, Err(failure)) => Some(failure),
        (Some(failure), Err(left)) => Some(failure.and(left.what())),
    };
    let Outcome { measured, left } = outcome;
    let place = described(work, target, Some(tested.retransmissions));
    Ok(Ran { started, measured, left, place, failure, interrupted: None })
}

/// What is known when the tests have ended, however the cleaning up goes.
#[derive(Default)]
struct Tested {
    /// Tests that came to their end: all that is left of a run that is interrupted.
    measured: Vec<Measured>,
    outcome: Option<Outcome>,
    retransmissions: u64,
}

fn options(work: &Work<'_>, target: &Target, link: Shape) -> mount::Options {
    let mut options = target::options(target, work.args.reply_limit, link);
    if target.protocol == Protocol::Udp {
        // Datagrams get lost, and no client would leave it at that. They are counted.
        options.persistence = Some(Persistence { soft: true, ..Persistence::default() });
    }
    options
}

async fn connect(work: &Work<'_>, target: &Target) -> Result<Session, Failure> {
    let link = work.args.link.clone().unwrap_or_default();
    emulated::calibrate(work.clock, &link).await?;
    let options = options(work, target, link.into());
    let Mounted { session, .. } = mount::mount(work.clock, target, &options).await?;
    Ok(session.patient(work.clock, Some(work.args.reply_limit)))
}

async fn in_scratch(
    work: &Work<'_>,
    target: &Target,
    interrupts: &mut Interrupts,
    tested: &mut Tested,
) -> Result<(), Failure> {
    let reached = Reached::new(work.clock, None, target, options(work, target, Shape::default()));
    scratch::in_scratch(&reached, interrupts, async |scratch: &Scratch| {
        let session = connect(work, target).await?;
        let free = session.fsstat(session.root()).await?.abytes;
        is_enough(&target.to_string(), free, work.plan)?;
        let name = below(target, scratch.name()).to_string();
        let wire = Wire::new(session.with_root(scratch.dir()), name, work.plan.sync);
        tests(work, &wire, tested).await
    })
    .await
}

/// The target of a directory in it.
fn below(target: &Target, name: &str) -> Target {
    let mut path = target.path.clone();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
    Target { path, ..target.clone() }
}

async fn in_place(
    work: &Work<'_>,
    target: &Target,
    interrupts: &mut Interrupts,
    tested: &mut Tested,
) -> Result<(), Failure> {
    let prepare = async {
        let session = connect(work, target).await?;
        let free = session.fsstat(session.root()).await?.abytes;
        is_enough(&target.to_string(), free, work.plan)?;
        let wire = Wire::new(session, target.to_string(), work.plan.sync);
        is_fit(&wire, &wire.root(), work.plan).await?;
        Ok::<_, Failure>(wire)
    };
    let wire = tokio::select! {
        biased;
        () = interrupts.next() => return Err(Failure::interrupted()),
        wire = prepare => wire?,
    };
    tokio::select! {
        biased;
        () = interrupts.next() => {}
        ended = tests(work, &wire, tested) => return ended,
    }
    let root = wire.root();
    let swept = sweep(&wire, &root, work.plan, &work.plan.tests);
    match work.clock.within(CLEAN_LIMIT, swept).await {
        Ok(()) => Err(Failure::interrupted()),
        Err(_) => Err(Failure::interrupted().and(format!("files may be left in {target}"))),
    }
}

/// Runs the tests; an error is what ended them that was no failed test.
async fn tests(work: &Work<'_>, wire: &Wire, tested: &mut Tested) -> Result<(), Failure> {
    let root = wire.root();
    let mut print = lines::observer(work.is_printed, work.plan.mode);
    let whole = &mut tested.measured;
    let mut observe = |event: Event<'_>| {
        if let Event::Ended(one) = event {
            whole.extend(one.whole());
        }
        print(event);
    };
    if work.is_printed {
        harness::output::print(&lines::beginning(&wire.show(&root), work.plan))?;
    }
    let never = AtomicBool::new(false);
    let mut outcome = run_tests(work.clock, wire, &root, work.plan, &never, &mut observe).await;
    tested.retransmissions = wire.session().rpc().retransmissions();
    let broken = broken(&mut outcome, work.plan, &wire.show(&root));
    tested.outcome = Some(outcome);
    broken.map_or(Ok(()), Err)
}

fn described(work: &Work<'_>, target: &Target, retransmissions: Option<u64>) -> Described {
    let (version, proto) = (target.version.number(), target.protocol.name());
    Described {
        kind: "server",
        name: target.to_string(),
        file_system: format!("NFS version {version} over {}", proto.to_uppercase()),
        durability: Some(Durability::Stable),
        survives:
            "a loss of power, as the protocol promises; whether it does is not seen from here"
                .to_owned(),
        cache: "none of a client's: each operation is a call to the server",
        version: Some(version),
        proto: Some(proto),
        retransmissions,
        link: work.args.link.as_ref().map(ToString::to_string),
        ..Described::default()
    }
}
