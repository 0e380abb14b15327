//! What is counted of each procedure.
//!
//! A procedure has a slot by its numbers: `wire` lists which ones there are, so that one
//! that is taught a new program or version is counted here without a change.

use std::sync::OnceLock;

use perf::units::Nanos;
use wire::{Procedure, mount, nfs3, nlm, portmap};

use super::counter::{Counter, Writers};
use super::histogram::{Distribution, Histogram};
use super::outcome::{self, KINDS, Kind};
use super::phase::{Phase, Phases};

/// The programs that are distinguished, by their name in labels.
const PROGRAMS: [(u32, &str); 4] = [
    (nfs3::PROGRAM, "nfs"),
    (mount::PROGRAM, "mount"),
    (portmap::PROGRAM, "portmap"),
    (nlm::PROGRAM, "nlm"),
];
/// Their versions, which begin with 1.
const VERSIONS: u32 = 4;
/// More than the procedures of any of them: NFS version 3 has 22.
const NUMBERS: u32 = 32;
const TABLES: usize = PROGRAMS.len() * VERSIONS as usize;

/// Where a procedure is counted; all that are not known have one slot together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Slot(u32);

const UNKNOWN: Slot = Slot(4 * VERSIONS * NUMBERS);

impl Slot {
    /// Of a tag, which is never 0.
    pub(super) fn of_tag(tag: u32) -> Option<Self> {
        let index = tag.checked_sub(1)?;
        (index <= UNKNOWN.0).then_some(Self(index))
    }

    pub(super) fn tag(self) -> u32 {
        self.0 + 1
    }

    fn table(self) -> usize {
        (self.0 / NUMBERS) as usize
    }

    fn number(self) -> u32 {
        self.0 % NUMBERS
    }

    /// Program with its name, and version; none for the slot of the unknown.
    fn program(self) -> Option<((u32, &'static str), u32)> {
        let version = self.0 / NUMBERS;
        let program = PROGRAMS.get((version / VERSIONS) as usize)?;
        Some((*program, version % VERSIONS + 1))
    }

    /// Labels: program, version, procedure.
    pub(super) fn names(self) -> (&'static str, String, String) {
        match self.program() {
            None => ("other", String::new(), "?".to_owned()),
            Some(((program, name), version)) => {
                let procedure = Procedure::of(program, version, self.number()).name();
                (name, version.to_string(), procedure.to_owned())
            }
        }
    }
}

/// Which slots there are.
#[derive(Debug)]
pub(super) struct Slots {
    /// For each table, a bit for each procedure that is known.
    known: [u32; TABLES],
    /// And those whose results begin with a status.
    with_status: [u32; TABLES],
}

impl Slots {
    pub(super) fn new() -> Self {
        let mut slots = Self { known: [0; TABLES], with_status: [0; TABLES] };
        for slot in (0..UNKNOWN.0).map(Slot) {
            let Some(((program, _), version)) = slot.program() else { continue };
            let (number, bit) = (slot.number(), 1 << slot.number());
            if !matches!(Procedure::of(program, version, number), Procedure::Unknown { .. }) {
                slots.known[slot.table()] |= bit;
                if outcome::has_status(program, version, number) {
                    slots.with_status[slot.table()] |= bit;
                }
            }
        }
        slots
    }

    /// The slot of a call, by the numbers in its header.
    pub(super) fn of(&self, record: &[u8]) -> Slot {
        let word = |index: usize| {
            let rest = record.get(4 * index..).unwrap_or_default();
            rest.first_chunk().map_or(u32::MAX, |word| u32::from_be_bytes(*word))
        };
        let (program, version, number) = (word(3), word(4).wrapping_sub(1), word(5));
        let found = (0..).zip(PROGRAMS).find(|&(_, (known, _))| known == program);
        let Some((program, _)) = found.filter(|_| version < VERSIONS && number < NUMBERS) else {
            return UNKNOWN;
        };
        let slot = Slot((program * VERSIONS + version) * NUMBERS + number);
        let is_known = self.known[slot.table()] >> number & 1 == 1;
        if is_known { slot } else { UNKNOWN }
    }

    pub(super) fn has_status(&self, slot: Slot) -> bool {
        let bits = self.with_status.get(slot.table());
        bits.is_some_and(|bits| bits >> slot.number() & 1 == 1)
    }
}

/// A thread's counters of all procedures.
#[derive(Debug, Default)]
pub(super) struct Procedures {
    tables: [OnceLock<Box<Table>>; TABLES],
    unknown: Counters,
}

type Table = [Counters; NUMBERS as usize];

/// Of one procedure.
#[derive(Debug, Default)]
struct Counters {
    calls: Counter,
    received_bytes: Counter,
    sent_bytes: Counter,
    /// From the record's arrival to the reply.
    response: Histogram,
    /// Spans of no length are not recorded.
    phases: [Histogram; Phase::ALL.len()],
    sent: Counter,
    failures: OnceLock<Box<Failures>>,
}

#[derive(Debug)]
struct Failures([Counter; KINDS]);

impl Default for Failures {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

/// What is known of a call when its reply is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) slot: Slot,
    pub(super) failure: Option<Kind>,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) phases: Phases,
}

impl Procedures {
    fn counters(&self, slot: Slot) -> &Counters {
        match self.tables.get(slot.table()) {
            Some(table) => &table.get_or_init(Box::default)[slot.number() as usize],
            None => &self.unknown,
        }
    }

    pub(super) fn count(&self, served: &Served, writers: Writers) {
        let counters = self.counters(served.slot);
        counters.calls.add(1, writers);
        counters.received_bytes.add(served.received_bytes, writers);
        counters.sent_bytes.add(served.sent_bytes, writers);
        counters.response.record(served.phases.total(), writers);
        for (phase, span) in served.phases.iter() {
            if span > Nanos::ZERO {
                counters.phases[phase as usize].record(span, writers);
            }
        }
        if let Some(kind) = served.failure {
            counters.failures.get_or_init(Box::default).0[kind.index()].add(1, writers);
        }
    }

    pub(super) fn count_sent(&self, slot: Slot, span: Nanos, writers: Writers) {
        let counters = self.counters(slot);
        counters.sent.add(1, writers);
        counters.phases[Phase::Send as usize].record(span, writers);
    }
}

/// What all threads have counted of a procedure.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) slot: Slot,
    pub(super) calls: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) response: Distribution,
    /// By [`Phase`].
    pub(super) phases: [Distribution; Phase::ALL.len()],
    pub(super) failures: Vec<(Kind, u64)>,
}

/// The procedures that were called at least once.
pub(super) fn tallies<'s>(shards: impl Iterator<Item = &'s Procedures> + Clone) -> Vec<Tally> {
    let tally = |slot| tally(slot, shards.clone());
    (0..=UNKNOWN.0).map(Slot).map(tally).filter(|tally| tally.calls > 0).collect()
}

fn tally<'s>(slot: Slot, shards: impl Iterator<Item = &'s Procedures>) -> Tally {
    let mut sum = Tally {
        slot,
        calls: 0,
        received_bytes: 0,
        sent_bytes: 0,
        response: Distribution::default(),
        phases: [Distribution::default(); Phase::ALL.len()],
        failures: Vec::new(),
    };
    let (mut sent, mut failures) = (0_u64, [0_u64; KINDS]);
    for shard in shards {
        let counters = match shard.tables.get(slot.table()).map(OnceLock::get) {
            Some(None) => continue,
            Some(Some(table)) => &table[slot.number() as usize],
            None => &shard.unknown,
        };
        let add = |sum: &mut u64, counter: &Counter| *sum = sum.wrapping_add(counter.value());
        add(&mut sum.calls, &counters.calls);
        add(&mut sum.received_bytes, &counters.received_bytes);
        add(&mut sum.sent_bytes, &counters.sent_bytes);
        add(&mut sent, &counters.sent);
        sum.response.add(&counters.response);
        for (sum, phase) in sum.phases.iter_mut().zip(&counters.phases) {
            sum.add(phase);
        }
        for (sum, counter) in
            failures.iter_mut().zip(counters.failures.get().iter().flat_map(|f| &f.0))
        {
            add(sum, counter);
        }
    }
    for phase in Phase::ALL {
        let all = if phase == Phase::Send { sent } else { sum.calls };
        let phase = &mut sum.phases[phase as usize];
        phase.add_nothing(all.saturating_sub(phase.count()));
    }
    sum.failures = Kind::all().zip(failures).filter(|&(_, count)| count > 0).collect();
    sum
}

#[cfg(test)]
mod tests {
    use wire::rpc::{CallHeader, OpaqueAuth};
    use wire::xdr::Encode;

    use super::*;

    #[test]
    fn every_procedure_has_a_slot_of_its_own() {
        let slots = Slots::new();
        assert_eq!(PROGRAMS.len(), 4);
        let mut seen = Vec::new();
        for procedure in nfs3::Procedure::ALL {
            let procedure = Procedure::Nfs3(*procedure);
            let slot = slots.of(&CallHeader::new(7, procedure, OpaqueAuth::NONE).to_bytes());
            assert_eq!(slot.names(), ("nfs", "3".to_owned(), procedure.name().to_owned()));
            assert_eq!(slots.has_status(slot), procedure.name() != "NULL");
            assert_eq!(Slot::of_tag(slot.tag()), Some(slot));
            assert!(!seen.contains(&slot));
            seen.push(slot);
        }
        let mnt = Procedure::Mount(mount::Procedure::Mnt);
        let slot = slots.of(&CallHeader::new(7, mnt, OpaqueAuth::NONE).to_bytes());
        assert_eq!(slot.names(), ("mount", "3".to_owned(), "MNT".to_owned()));
        let lock = Procedure::Nlm4(nlm::Procedure::Lock);
        let slot = slots.of(&CallHeader::new(7, lock, OpaqueAuth::NONE).to_bytes());
        assert_eq!(slot.names(), ("nlm", "4".to_owned(), "LOCK".to_owned()));
        assert!(!slots.has_status(slot), "a cookie is before it");
    }

    #[test]
    fn what_is_not_known_is_counted_together() {
        let slots = Slots::new();
        let of = |program: u32, version: u32, procedure: u32| {
            let words = [7, 0, 2, program, version, procedure];
            slots.of(&words.map(u32::to_be_bytes).concat())
        };
        for slot in [
            of(100_003, 3, 22),
            of(100_003, 3, u32::MAX),
            of(100_003, 0, 1),
            of(100_003, 99, 1),
            of(100_021, 2, 0),
            of(100_024, 1, 0),
            slots.of(&[]),
        ] {
            assert_eq!(slot, UNKNOWN);
            assert_eq!(slot.names().0, "other");
            assert!(!slots.has_status(slot));
        }
        assert_eq!(Slot::of_tag(0), None);
        assert_eq!(Slot::of_tag(UNKNOWN.tag()), Some(UNKNOWN));
        assert_eq!(Slot::of_tag(UNKNOWN.tag() + 1), None);
    }
}
