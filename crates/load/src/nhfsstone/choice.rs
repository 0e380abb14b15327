//! Which operation comes next: one that the calls so far lack, at random, so that their shares
//! come to be those of the mix although operations are of several calls.

use fastrand::Rng;

use super::outcome::Outcome;
use crate::mix::{Mix, Operation};

/// How much stronger a share that is off counts than the share itself.
const CORRECTION: f64 = 16.0;

/// Random numbers are below this.
const RANDOM: u32 = 200;

/// The places of version 2's procedures, in whose order the benchmark looks for the next one; two
/// are of procedures that nobody calls. Those that version 3 has more stand behind them.
const PLACES: [Option<Operation>; 24] = [
    Some(Operation::Null),
    Some(Operation::Getattr),
    Some(Operation::Setattr),
    None,
    Some(Operation::Lookup),
    Some(Operation::Readlink),
    Some(Operation::Read),
    None,
    Some(Operation::Write),
    Some(Operation::Create),
    Some(Operation::Remove),
    Some(Operation::Rename),
    Some(Operation::Link),
    Some(Operation::Symlink),
    Some(Operation::Mkdir),
    Some(Operation::Rmdir),
    Some(Operation::Readdir),
    Some(Operation::Fsstat),
    Some(Operation::Access),
    Some(Operation::Mknod),
    Some(Operation::Readdirplus),
    Some(Operation::Fsinfo),
    Some(Operation::Pathconf),
    Some(Operation::Commit),
];

/// Version 2 has so many of them.
const PLACES_V2: usize = 18;

/// The operation with this number in the benchmark's table.
pub(super) fn by_number(number: usize) -> Option<Operation> {
    PLACES.get(number).copied().flatten()
}

/// See the module's head.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// What is wanted, in percent, in the benchmark's order.
    wanted: Vec<(Operation, f64)>,
    /// Where each place is in `wanted`, for the random beginning.
    places: usize,
}

impl Choice {
    pub(super) fn new(mix: &Mix) -> Self {
        let is_v2 = PLACES[PLACES_V2..].iter().flatten().all(|one| mix.share(*one) <= 0.0);
        let places = if is_v2 { PLACES_V2 } else { PLACES.len() };
        let wanted = PLACES.into_iter().flatten().map(|one| (one, 100.0 * mix.share(one)));
        Self { wanted: wanted.collect(), places }
    }

    /// The next one.
    pub(super) fn next(&self, so_far: &Outcome, random: &mut Rng) -> Operation {
        let drawn = random.u32(..RANDOM);
        let mut left = f64::from(drawn);
        let begin = drawn as usize % self.places;
        // The first from that place on; places that nobody calls are passed.
        let begin = PLACES[..begin].iter().flatten().count();
        let len = self.wanted.len();
        // The weights sum to 100, so that at least one is positive; a number below 200 is used up
        // after a few rounds.
        for at in (0..len * RANDOM as usize).map(|step| (begin + step) % len) {
            let (operation, wanted) = self.wanted[at];
            let weight = wanted - CORRECTION * (so_far.percent(operation) - wanted);
            if wanted > 0.0 && weight > 0.0 {
                left -= weight;
                if left < 0.0 {
                    return operation;
                }
            }
        }
        // All that is wanted is had in excess of itself: by what nobody has requested.
        let most = self.wanted.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map_or(Operation::Null, |(operation, _)| *operation)
    }
}
