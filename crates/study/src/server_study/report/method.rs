//! How a study measures, in words.

use load::probe::Findings;
use load::study::Drain;

use crate::server_study::outcome::ServerStudy;

pub(super) fn method(outcome: &ServerStudy) -> Vec<String> {
    let mut paragraphs = vec![probe(outcome), sweep(outcome), file(outcome), change(outcome)];
    paragraphs.extend(PREDICTED.map(str::to_owned));
    if outcome.local.is_none() {
        paragraphs.push(NOT_OURS.to_owned());
    }
    if let Some(emulator) = outcome.emulator {
        paragraphs.push(format!(
            "The emulated link holds each message in this process until its time has come. Tried \
              out on this machine beforehand, its {emulator}. Bytes are those of the RPC records, \
              with IP, TCP and UDP headers only where the link has an MTU."
        ));
    }
    paragraphs
}

fn file(outcome: &ServerStudy) -> String {
    format!(
        "The file of {} MiB was written once before and is overwritten in place, so that the \
         steady state is measured and not the allocation of blocks. The storage's ceiling is \
         measured in the same way.",
        outcome.file_bytes >> 20
    )
}

fn change(outcome: &ServerStudy) -> String {
    format!(
        "Change: before and after in alternation, {} times {:.0} ms each, with one pass over a \
         file of the directory itself in between where there is one.",
        outcome.plan.applications,
        outcome.plan.application_time.as_millis_f64()
    )
}

const NOT_OURS: &str = "The server is not ours: whether it stalls while it commits or not is taken \
    from the form of the model that has the smaller error, and its link's ceiling is the most that \
    anything showed.";

fn probe(outcome: &ServerStudy) -> String {
    let Findings { null_us, rounds, bursts, .. } = &outcome.findings;
    format!(
        "Probe: {} NULL calls; {rounds} rounds of single WRITEs of 1 KiB to 1 MiB, each size \
         UNSTABLE and FILE_SYNC in turn; {bursts} bursts of UNSTABLE WRITEs. The first round, \
         which pays for what is cold, is left out.",
        null_us.len()
    )
}

fn sweep(outcome: &ServerStudy) -> String {
    let plan = &outcome.plan;
    format!(
        "Sweep: every configuration {} times, all of them once before any is run again, \
              each for {:.0} ms and until its outstanding calls have come back. UNSTABLE WRITEs \
              with a COMMIT after every {} MiB and at the end; the throughput counts durable \
              bytes from the first call to the reply of the last COMMIT. What is outstanding at \
              its end is waited for as long as the warm-up's rate lets expect, for {:.0} ms at \
              least and {:.0} s at most; a run that is abandoned then counts up to the last \
              COMMIT that was answered, and shows nothing where COMMITs covered too little of it.",
        outcome.repeats(),
        plan.run_time.as_millis_f64(),
        outcome.commit_bytes >> 20,
        plan.drain.as_millis_f64(),
        Drain::MOST.as_secs_f64()
    )
}

/// What predictions and response times are.
const PREDICTED: [&str; 3] = [
    "Predictions of the sweep use only the parameters of the probe and the plan of each run: \
         no number was adjusted to it. With N calls outstanding, throughput = bytes x min(N / \
         (T_cycle + (N - 1) o), 1 / slowest stage), T_cycle = 2 T_prop + T_ser + T_op + T_B; \
         to which a run of that length adds the first call's trip and the last COMMIT, which \
         nothing overlaps.",
    "The gain of the change is predicted from the same parameters, with the base held to the \
         sweep's run before the change: what that took longer or shorter than predicted belongs to \
         the term that dominates it. The sweep's run with the change has no part in it.",
    "Response times count from when a call is handed to the connection to when its reply \
          has come; in a sweep with N outstanding a new call is sent as soon as one is answered \
          (closed loop).",
];
