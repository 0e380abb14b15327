//! What goes wrong, at its time.

use perf::units::Instant;

use super::history::Trouble;
use super::stage::Stage;
use crate::outage::Outage;
use crate::plan::{Fault, Plan};
use net::clock::Group;
use net::transport::lossy::{Impairments, SharedImpairments};
use perf::units::Nanos;

/// What can be done to a client and to its way to the server.
#[derive(Clone, Debug)]
pub(crate) struct Wires {
    pub(crate) outage: Outage,
    pub(crate) shared: SharedImpairments,
    /// All that runs of the client.
    pub(crate) group: Group,
}

/// A fault that begins, or one that is over.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at: Nanos,
    fault: Fault,
    is_end: bool,
}

/// Lets the faults of a plan happen; done when the last is over.
pub(crate) async fn run(stage: &Stage, plan: &Plan, wires: &[Wires], begun: Instant) {
    let mut turns = Vec::new();
    for (at, fault) in plan.faults() {
        turns.push(Turn { at, fault, is_end: false });
        turns.extend(span(fault).map(|span| Turn { at: at + span, fault, is_end: true }));
    }
    turns.sort_by_key(|turn| turn.at);
    for turn in turns {
        let now = stage.clock.now();
        stage.clock.sleep((begun + turn.at).since(now)).await;
        if turn.is_end {
            end(stage, wires, turn.fault);
        } else {
            stage.history.count(turn.fault.name());
            stage.trace.lock().add(stage.clock.now(), || format!("! {}", turn.fault));
            begin(stage, wires, turn.fault);
        }
    }
}

/// How long it lasts.
fn span(fault: Fault) -> Option<Nanos> {
    match fault {
        Fault::Outage { span, .. }
        | Fault::Impairments { span, .. }
        | Fault::WriteErrors { span }
        | Fault::SyncErrors { span }
        | Fault::Full { span }
        | Fault::Slow { span, .. } => Some(span),
        _ => None,
    }
}

fn begin(stage: &Stage, wires: &[Wires], fault: Fault) {
    let now = stage.clock.now();
    let disk = |trouble, span| {
        stage.history.begins(trouble, now, span);
        stage.machine.disk(fault, true);
    };
    match fault {
        Fault::Cut { client } => wires[client].outage.cut(),
        Fault::CutAfterCalls { client, calls } => wires[client].outage.cut_after_calls(calls),
        Fault::CutAfterReplies { client, replies } => {
            wires[client].outage.cut_after_replies(replies);
        }
        Fault::Outage { client, .. } => wires[client].outage.begin(),
        Fault::Impairments { client, lost, doubled, jitter, .. } => {
            let calm = stage.machine.calm(client);
            let impairments = Impairments { lost, duplicated: doubled, jitter, ..calm };
            *wires[client].shared.lock() = impairments;
        }
        Fault::Clock { secs } => stage.machine.jump(secs),
        Fault::Vanish { client } => wires[client].group.kill(),
        // Where clients compete, who has the hosts does it.
        Fault::Kill { .. } | Fault::PowerLoss { .. } => {}
        Fault::Crash { polls, down } => stage.machine.crash(polls, down),
        Fault::WriteErrors { span } | Fault::SyncErrors { span } => {
            disk(Trouble::Failing, span);
        }
        Fault::Full { span } => disk(Trouble::Full, span),
        Fault::Slow { .. } => stage.machine.disk(fault, true),
    }
}

fn end(stage: &Stage, wires: &[Wires], fault: Fault) {
    match fault {
        Fault::Outage { client, .. } => wires[client].outage.end(),
        Fault::Impairments { client, .. } => {
            *wires[client].shared.lock() = stage.machine.calm(client)
        }
        Fault::WriteErrors { .. } | Fault::SyncErrors { .. } | Fault::Full { .. } => {
            stage.machine.disk(fault, false);
            stage.history.ends();
        }
        Fault::Slow { .. } => stage.machine.disk(fault, false),
        _ => {}
    }
}
