//! From a seed to a plan in which all clients compete: for the same few names, files and logs.
//!
//! What goes wrong is what shows in another order: replies that are late and overtake each other,
//! connections that break, a disk that is slow or full for a while, a server that loses power and
//! with it what was not stable. Clients that vanish and disks that give errors are left to plans in
//! which each client has a directory of its own.

use fastrand::Rng;
use perf::model::disk::PROFILES;
use perf::units::Nanos;

use super::{Act, By, Client, Fault, LOCKS, LOGS, Level, Op, PLACES, Plan, Step, Unheard, What};

/// How long all may pause: longer than any attributes are good.
const LONG: u64 = 150_000_000;

const SETTLED: Nanos = Nanos::from_secs(3);

impl Plan {
    /// The contest that a seed stands for.
    pub fn contest(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let clients: Vec<_> = (0..random.usize(2..=4)).map(|_| client(&mut random)).collect();
        let latency = Nanos::from_micros(random.u64(20..2_000));
        let programs: Vec<_> = clients.iter().map(|_| random.usize(1..=3)).collect();
        let mut steps: Vec<Step> = Vec::new();
        let mut values = 0u8;
        // Rounds in which all are busy, and between them nobody, for as long as something is
        // remembered or less.
        let mut round = Nanos::ZERO;
        for number in 1..=random.usize(1..=5) {
            for (client, &programs) in programs.iter().enumerate() {
                for program in 0..programs {
                    let mut at = round + Nanos::from_micros(random.u64(..2_000));
                    // What is remembered is looked at before anybody changes it.
                    let mut act = match random.u8(..4) > 0 {
                        true => look(&mut random, number),
                        false => act(&mut random, &mut values),
                    };
                    for _ in 0..random.usize(1..7) {
                        let op = Op::Contend { program, act };
                        steps.push(Step { at, what: What::Do { client, op } });
                        at += pause(&mut random, latency);
                        act = self::act(&mut random, &mut values);
                    }
                }
            }
            // When all of that is done, as a rule.
            let last = steps.iter().map(|step| step.at).max().unwrap_or(round) + SETTLED;
            if random.u8(..4) > 0 {
                expect(&mut random, &programs, last, number, &mut steps);
            }
            at_once(&mut random, &programs, last, &mut values, &mut steps);
            let least = if random.bool() { LONG / 2 } else { 0 };
            round = last + Nanos::from_micros(random.u64(least..LONG));
        }
        let end = steps.iter().map(|step| step.at).max().unwrap_or(Nanos::ZERO);
        impairments(&mut random, &clients, end, &mut steps);
        for _ in 0..random.usize(0..4) {
            let client = random.usize(..clients.len());
            let fault = fault(&mut random, client);
            let at = steps[random.usize(..steps.len())].at + latency * random.u64(..4);
            if let Fault::Full { .. } = fault {
                fill(&mut random, client, at, &mut values, &mut steps);
            }
            steps.push(Step { at, what: What::Fault(fault) });
        }
        steps.sort_by_key(|step| step.at);
        let disk = PROFILES[random.usize(..PROFILES.len())];
        Self { seed, latency, disk, clients, steps }
    }
}

/// What programs of several clients do at the same time.
fn at_once(
    random: &mut Rng,
    programs: &[usize],
    last: Nanos,
    values: &mut u8,
    steps: &mut Vec<Step>,
) {
    if random.bool() {
        lock_at_once(random, programs, last, steps);
    }
    if random.bool() {
        write_at_once(random, programs.len(), last, values, steps);
    }
    if random.bool() {
        list_and_append(random, programs, last, steps);
    }
}

/// Networks of clients by datagrams that lose and double some.
fn impairments(random: &mut Rng, clients: &[Client], span: Nanos, steps: &mut Vec<Step>) {
    for (client, by) in clients.iter().map(|client| client.by).enumerate() {
        if by == By::Datagrams && random.u8(..4) > 0 {
            let jitter = Nanos::from_micros(random.u64(..60_000));
            let (lost, doubled) = [(0, 0), (20, 20)][random.usize(..2)];
            let fault = Fault::Impairments { client, lost, doubled, jitter, span };
            steps.push(Step { at: Nanos::ZERO, what: What::Fault(fault) });
        }
    }
}

fn fault(random: &mut Rng, client: usize) -> Fault {
    let span = |random: &mut Rng, micros_max| Nanos::from_micros(random.u64(..micros_max));
    match random.u8(..20) {
        0..5 => Fault::Cut { client },
        5..8 => Fault::CutAfterReplies { client, replies: random.u64(..20) },
        8..10 => Fault::Outage { client, span: span(random, 2_000_000) },
        10..14 => {
            let span = span(random, 2_000_000);
            Fault::Slow { factor: random.u32(2..50), span }
        }
        14..16 => Fault::Full { span: span(random, 1_000_000) },
        _ => Fault::Crash { polls: random.u64(..400), down: span(random, 5_000_000) },
    }
}

/// No pause between two steps of a plan that is played live is longer.
const PAUSE_MAX: Nanos = Nanos::from_millis(25);

/// Nor is a file held open longer.
const HOLD_MAX: Nanos = Nanos::from_millis(25);

impl Plan {
    /// The contest of a seed for real time: nothing goes wrong but what programs do to one another,
    /// and pauses are short. No name is moved, which others may have given to another file: a
    /// kernel takes the new name for the file that it remembers, as long as it remembers names. Nor
    /// is a log written in place: a kernel that writes back writes the whole page, and what others
    /// have appended to it.
    pub fn live(seed: u64) -> Self {
        let mut plan = Self::contest(seed);
        let is_left_out =
            |op: &Op| matches!(op, Op::Contend { act: Act::Move { .. } | Act::Rewrite { .. }, .. });
        plan.steps.retain(|step| matches!(&step.what, What::Do { op, .. } if !is_left_out(op)));
        let (mut before, mut at) = (Nanos::ZERO, Nanos::ZERO);
        for step in &mut plan.steps {
            at += (step.at - before).min(PAUSE_MAX);
            before = std::mem::replace(&mut step.at, at);
            let What::Do { op: Op::Contend { act, .. }, .. } = &mut step.what else { continue };
            match act {
                Act::Write { hold, .. } | Act::Cut { hold, .. } => *hold = (*hold).min(HOLD_MAX),
                Act::Lock { hold, .. } => *hold = (*hold).min(HOLD_MAX / 5),
                _ => {}
            }
        }
        plan
    }
}

fn client(random: &mut Rng) -> Client {
    let level = if random.u8(..4) == 0 { Level::Calls } else { Level::Files };
    let by = if random.u8(..3) == 0 { By::Stream } else { By::Datagrams };
    Client { level, by }
}

/// Mostly about as long as a call takes.
fn pause(random: &mut Rng, latency: Nanos) -> Nanos {
    let micros = latency.as_nanos() / 1_000;
    Nanos::from_micros(match random.u8(..24) {
        0..2 => random.u64(..1_000_000),
        2..10 => random.u64(..60_000),
        _ => random.u64(..6 * micros + 1),
    })
}

/// A value that no place has.
fn next(values: &mut u8) -> u8 {
    *values = *values % 250 + 1;
    *values
}

fn name(random: &mut Rng) -> String {
    ["a", "b", "c", "d"][random.usize(..4)].to_owned()
}

/// Two programs of a client write to one file when the disk becomes full; or one does that hears
/// nothing of it.
fn fill(random: &mut Rng, client: usize, at: Nanos, values: &mut u8, steps: &mut Vec<Step>) {
    let name = name(random);
    if random.bool() {
        let value = next(values);
        let by = [Unheard::Interrupted, Unheard::Mapped][random.usize(..2)];
        let count = random.u32(1..=PLACES);
        let write = Act::Unheard { name: name.clone(), first: 0, count, value, by };
        for (at, act) in [(at - Nanos::from_millis(40), Act::Make(name)), (at, write)] {
            let op = Op::Contend { program: 0, act };
            steps.push(Step { at, what: What::Do { client, op } });
        }
        return;
    }
    for program in 0..2 {
        let hold = Nanos::from_micros(random.u64(..100_000));
        let (first, count, value) = (4 * program, random.u32(1..=4), next(values));
        let act = Act::Write { name: name.clone(), first, count, value, hold };
        let op = Op::Contend { program: program as usize, act };
        let at = (at + Nanos::from_micros(random.u64(..20_000))) - Nanos::from_micros(10_000);
        steps.push(Step { at, what: What::Do { client, op } });
    }
}

/// One client makes a file of a name that nobody has had, while all others look for it.
fn expect(
    random: &mut Rng,
    programs: &[usize],
    begins: Nanos,
    round: usize,
    steps: &mut Vec<Step>,
) {
    let maker = random.usize(..programs.len());
    for (client, &programs) in programs.iter().enumerate() {
        for program in 0..programs {
            for _ in 0..2 {
                let act = match (client == maker, program) {
                    (true, 0) => Act::Make(expected(round)),
                    _ => Act::Look(expected(round)),
                };
                let at = begins + Nanos::from_micros(random.u64(..40_000));
                let op = Op::Contend { program, act };
                steps.push(Step { at, what: What::Do { client, op } });
            }
        }
    }
}

/// All want the same lock, while other clients change its file.
fn lock_at_once(random: &mut Rng, programs: &[usize], begins: Nanos, steps: &mut Vec<Step>) {
    let lock = random.u32(..LOCKS);
    for (client, &programs) in programs.iter().enumerate() {
        for program in 0..programs {
            let hold = Nanos::from_micros(random.u64(..100_000));
            let act = Act::Lock { lock, hold, keeps: random.bool() };
            let at = begins + Nanos::from_micros(random.u64(..100_000));
            steps.push(Step { at, what: What::Do { client, op: Op::Contend { program, act } } });
        }
    }
}

/// All have read a file, write to places of their own at the same time, and read it again.
fn write_at_once(
    random: &mut Rng,
    clients: usize,
    begins: Nanos,
    values: &mut u8,
    steps: &mut Vec<Step>,
) {
    let name = name(random);
    let mut add = |client, at: u64, act| {
        let at = begins + Nanos::from_micros(at);
        let op = Op::Contend { program: 0, act };
        steps.push(Step { at, what: What::Do { client, op } });
    };
    add(random.usize(..clients), 0, Act::Make(name.clone()));
    for client in 0..clients {
        let (first, value) = (u32::try_from(client).unwrap_or(0) % PLACES, next(values));
        let hold = Nanos::from_micros(random.u64(..10_000));
        add(client, 100_000, Act::Read(name.clone()));
        let write = Act::Write { name: name.clone(), first, count: 1, value, hold };
        add(client, 500_000 + random.u64(..20_000), write);
        add(client, 1_500_000, Act::Read(name.clone()));
    }
}

/// All list the directory, with pauses, while each appends to the same log: what a page says of the
/// log is old when it is looked at. Then they append once more. Others write to it in place.
fn list_and_append(random: &mut Rng, programs: &[usize], begins: Nanos, steps: &mut Vec<Step>) {
    let log = random.u32(..LOGS);
    for (client, &programs) in programs.iter().enumerate() {
        let mut add = |program, at: u64, act| {
            let at = begins + Nanos::from_micros(at);
            steps.push(Step { at, what: What::Do { client, op: Op::Contend { program, act } } });
        };
        // The second time through the descriptor of the first: that looks no name up.
        for (begins, keeps) in [(0, true), (200_000, random.bool())] {
            let wait = Nanos::from_micros(random.u64(..100_000));
            add(programs - 1, begins + random.u64(..60_000), Act::List { wait });
            add(0, begins + random.u64(..100_000), Act::Append { log, keeps });
        }
        if programs > 1 {
            let hold = Nanos::from_micros(random.u64(..500_000));
            add(1, random.u64(..200_000), Act::Rewrite { log, hold });
        }
        add(0, 1_500_000, Act::ReadLog { log });
    }
}

fn expected(round: usize) -> String {
    format!("e{round}")
}

/// Looks at what may be remembered.
fn look(random: &mut Rng, round: usize) -> Act {
    match random.u8(..4) {
        0 => Act::Look(name(random)),
        1 => Act::Read(name(random)),
        _ => Act::Look(expected(round.saturating_sub(1))),
    }
}

/// How long a file is held open.
fn hold(random: &mut Rng) -> Nanos {
    Nanos::from_micros(match random.u8(..3) {
        0 => 0,
        1 => random.u64(..20_000),
        _ => random.u64(..500_000),
    })
}

fn act(random: &mut Rng, values: &mut u8) -> Act {
    let name = name(random);
    match random.u8(..114) {
        0..12 => Act::Make(name),
        12..20 => Act::Remove(name),
        20..24 => Act::Replace { name, value: next(values) },
        24..42 => {
            let first = random.u32(..PLACES);
            let count = random.u32(1..=PLACES - first);
            let hold = hold(random);
            Act::Write { name, first, count, value: next(values), hold }
        }
        42..58 => Act::Read(name),
        58..70 => Act::Look(name),
        70..76 => Act::List { wait: Nanos::from_micros(random.u64(..50_000)) },
        76..88 => Act::Append { log: random.u32(..LOGS), keeps: random.bool() },
        88..94 => Act::ReadLog { log: random.u32(..LOGS) },
        100..105 => Act::Move { from: name, to: self::name(random) },
        105..108 => Act::Link { from: name, to: self::name(random) },
        108..111 => Act::Cut { name, hold: hold(random) },
        111.. => Act::Mode(name),
        _ => lock(random),
    }
}

fn lock(random: &mut Rng) -> Act {
    let hold = Nanos::from_micros(random.u64(..20_000));
    Act::Lock { lock: random.u32(..LOCKS), hold, keeps: random.bool() }
}
