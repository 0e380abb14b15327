//! A plan that fails, made smaller as long as it still fails in the same way.
//!
//! First steps are left out, in halves, quarters and so on, then one by one; then whole clients
//! are silenced by that; then numbers are made smaller. Each try is a run of the plan, and there is
//! a bound of tries.

use perf::units::Nanos;

use super::{Act, Fault, Op, Plan, Step, What};

/// A plan that has become smaller, and by how many tries.
#[derive(Clone, Debug)]
pub struct Shrunk {
    pub plan: Plan,
    pub tries: usize,
}

/// The smallest plan found in `tries_max` tries of which `fails` says that it fails as the first.
pub fn shrink(plan: &Plan, tries_max: usize, mut fails: impl FnMut(&Plan) -> bool) -> Shrunk {
    let mut shrunk = Shrunk { plan: plan.clone(), tries: 0 };
    let mut attempt = |shrunk: &mut Shrunk, plan: Plan| {
        if shrunk.tries >= tries_max {
            return false;
        }
        shrunk.tries += 1;
        let holds = fails(&plan);
        if holds {
            shrunk.plan = plan;
        }
        holds
    };
    loop {
        let before = shrunk.plan.clone();
        let mut size = shrunk.plan.steps.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < shrunk.plan.steps.len() {
                let mut smaller = shrunk.plan.clone();
                let end = (at + size).min(smaller.steps.len());
                smaller.steps.drain(at..end);
                if !attempt(&mut shrunk, smaller) {
                    at += size;
                }
            }
            size /= 2;
        }
        for at in 0..shrunk.plan.steps.len() {
            for simpler in simpler(&shrunk.plan.steps[at]) {
                let mut plan = shrunk.plan.clone();
                plan.steps[at] = simpler;
                attempt(&mut shrunk, plan);
            }
        }
        if shrunk.plan == before || shrunk.tries >= tries_max {
            return shrunk;
        }
    }
}

/// The same step with smaller numbers.
fn simpler(step: &Step) -> Vec<Step> {
    let mut simpler = Vec::new();
    let mut add = |what: What| simpler.push(Step { at: step.at, what });
    match &step.what {
        What::Do { client, op: Op::Write { path, at, bytes, value, stable, pieces } } => {
            let (client, path, value, stable) = (*client, path.clone(), *value, *stable);
            let write = |at, bytes, pieces| {
                let path = path.clone();
                let op = Op::Write { path, at, bytes, value, stable, pieces };
                What::Do { client, op }
            };
            if *pieces > 1 {
                add(write(*at, *bytes, 1));
            }
            if *at > 0 {
                add(write(0, *bytes, *pieces));
            }
            if *bytes > 1 {
                add(write(*at, *bytes / 2, *pieces));
                add(write(*at, 1, *pieces));
            }
        }
        What::Do { client, op: Op::Contend { program, act } } => {
            let (client, program) = (*client, *program);
            simpler_act(act, |act| add(What::Do { client, op: Op::Contend { program, act } }));
        }
        What::Fault(fault) => add(What::Fault(simpler_fault(*fault))),
        What::Do { .. } => {}
    }
    simpler.retain(|other| other != step);
    simpler
}

fn simpler_act(act: &Act, mut add: impl FnMut(Act)) {
    match act.clone() {
        Act::Write { name, first, count, value, hold } => {
            let (name, half) = (&name, half(hold));
            let write =
                |first, count, hold| Act::Write { name: name.clone(), first, count, value, hold };
            if count > 1 {
                add(write(first, count / 2, hold));
                add(write(first + count / 2, count - count / 2, hold));
            }
            add(write(first, count, half));
        }
        Act::List { wait } => add(Act::List { wait: half(wait) }),
        Act::Rewrite { log, hold } => add(Act::Rewrite { log, hold: half(hold) }),
        _ => {}
    }
}

fn simpler_fault(fault: Fault) -> Fault {
    match fault {
        Fault::Crash { polls, down } if polls > 0 => Fault::Crash { polls: polls / 2, down },
        Fault::Outage { client, span } => Fault::Outage { client, span: half(span) },
        Fault::Impairments { client, lost, doubled, jitter, span } => {
            Fault::Impairments { client, lost, doubled, jitter, span: half(span) }
        }
        other => other,
    }
}

fn half(span: Nanos) -> Nanos {
    Nanos::from_micros(span.as_nanos() / 2_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let plan = Plan::generate(3);
        let creates = |plan: &Plan| {
            let is_write =
                |step: &&Step| matches!(&step.what, What::Do { op: Op::Write { .. }, .. });
            plan.steps.iter().filter(is_write).count()
        };
        assert!(creates(&plan) >= 2, "another seed, please");
        let shrunk = shrink(&plan, 10_000, |plan| creates(plan) >= 2);
        assert_eq!(shrunk.plan.steps.len(), 2);
        assert!(shrunk.tries < 200, "{}", shrunk.tries);
    }

    #[test]
    fn there_is_an_end() {
        assert_eq!(shrink(&Plan::generate(3), 7, |_| false).tries, 7);
    }
}
