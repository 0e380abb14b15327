//! From a seed to a contest whose clients keep what they read on a disk, and are killed in the
//! midst of that: while their programs read, and while others write what they read.
//!
//! Nothing is written unheard, and nothing under a lock that stays open: what a program has not
//! a reply for as stable may go with its client.

use fastrand::Rng;
use perf::units::Nanos;

use super::{Act, Fault, Level, Op, PLACES, Plan, Step, What};

/// What is stored is known to be of one state for as long before it is requested.
const SETTLED_MICROS: u64 = 60_000;

impl Plan {
    /// The contest with kills that a seed stands for.
    pub fn kills_in_contest(seed: u64) -> Self {
        let mut plan = Self::contest(seed);
        let mut random = Rng::with_seed(!seed);
        plan.steps.retain_mut(|step| match &mut step.what {
            What::Do { op: Op::Contend { act: Act::Unheard { .. }, .. }, .. } => false,
            What::Do { op: Op::Contend { act: Act::Lock { keeps, .. }, .. }, .. } => {
                *keeps = false;
                true
            }
            _ => true,
        });
        // The first is always killed, and there is always another one.
        plan.clients[0].level = Level::Files;
        for _ in 0..random.usize(2..7) {
            let victim = match random.u8(..3) {
                0 => random.usize(..plan.clients.len()),
                _ => 0,
            };
            let at = plan.steps[random.usize(..plan.steps.len())].at;
            let at = at + Nanos::from_micros(random.u64(..2_000_000));
            plan.kill(&mut random, victim, at);
        }
        plan.steps.sort_by_key(|step| step.at);
        plan
    }

    /// Somebody writes a file, the victim reads it and is killed in the midst of it, and reads it
    /// again; now and then somebody else has changed it by then.
    fn kill(&mut self, random: &mut Rng, victim: usize, at: Nanos) {
        let name = ["a", "b", "c", "d"][random.usize(..4)].to_owned();
        let other = (victim + random.usize(1..self.clients.len())) % self.clients.len();
        let call = self.latency.as_nanos() / 1_000;
        let mut add = |micros: u64, what| {
            self.steps.push(Step { at: at + Nanos::from_micros(micros), what });
        };
        let program = |client, program, act| What::Do { client, op: Op::Contend { program, act } };
        let write = |random: &mut Rng| {
            let first = random.u32(..PLACES);
            let (count, value) = (random.u32(1..=PLACES - first), random.u8(1..=250));
            Act::Write { name: name.clone(), first, count, value, hold: Nanos::ZERO }
        };
        add(0, program(other, 0, Act::Make(name.clone())));
        let writer = if random.bool() { other } else { victim };
        add(1_000, program(writer, 0, write(random)));
        // What is looked at only when it is read is not known for long enough to be stored.
        let looked = 10_000 + 8 * call;
        add(looked, program(victim, 0, Act::Look(name.clone())));
        let read = looked + 4 * call + SETTLED_MICROS + random.u64(..SETTLED_MICROS);
        add(read, program(victim, 0, Act::Read(name.clone())));
        add(read + random.u64(..2 * call + 1), program(victim, 1, Act::Read(name.clone())));
        let killed = read + random.u64(..8 * call + 1);
        let fault = match random.u8(..3) {
            0 => Fault::Kill { client: victim },
            _ => Fault::PowerLoss { client: victim },
        };
        add(killed, What::Fault(fault));
        if random.bool() {
            let when = random.u64(..killed + 4 * call);
            add(when, program(other, 1, write(random)));
        }
        for again in 1..=2 {
            let when = killed + again * random.u64(..SETTLED_MICROS);
            add(when, program(victim, 2, Act::Read(name.clone())));
        }
    }
}
