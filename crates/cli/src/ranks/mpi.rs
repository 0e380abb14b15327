//! Through MPI. Its calls wait without giving way: nothing else runs meanwhile, as nothing is
//! measured then.

use load::curve::{Gather, GatherError, Share};
use load::mix::Outcome;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Root as _};
use mpi::{Count, Threading};

use crate::exit::Failure;
use crate::output;

/// Most bytes of an outcome: histograms of all operations, many times over.
const OUTCOME_BYTES_MAX: usize = 64 << 20;
/// Most numbers that the first process tells the others at a time.
const NUMBERS_MAX: u64 = 1 << 20;

/// All processes that were started together.
pub(crate) struct Mpi {
    world: SimpleCommunicator,
    share: Share,
    /// Ends MPI when it is dropped.
    _universe: Universe,
}

impl Mpi {
    pub(super) fn join() -> Result<Self, Failure> {
        let unready = || {
            let what = "MPI does not start in this process";
            Failure::environment(what, "the mpirun of the library that this program was built with")
        };
        // Only the thread that has started it calls it.
        let (universe, threading) =
            mpi::initialize_with_threading(Threading::Funneled).ok_or_else(unready)?;
        if threading < Threading::Funneled {
            return Err(unready());
        }
        let world = universe.world();
        let number = |count: i32| u32::try_from(count).map_err(|_| unready());
        let share = Share { rank: number(world.rank())?, ranks: number(world.size())? };
        Ok(Self { world, share, _universe: universe })
    }

    /// Tells why, and ends all processes.
    pub(super) fn abort(&self, failure: Failure) -> ! {
        let (rank, ranks) = (self.share.rank, self.share.ranks);
        output::complain(format_args!("process {rank} of {ranks}:\n"));
        // The code goes to the launcher, which makes what it likes of it.
        self.world.abort(i32::from(failure.say()))
    }

    /// The texts of all, in the order of their ranks.
    fn all(&self, own: &str) -> Result<Vec<String>, GatherError> {
        let ranks = self.share.ranks.max(1) as usize;
        let fits = own.len() <= OUTCOME_BYTES_MAX / ranks;
        // All of them learn it when one has too much, and none waits for it.
        let count = if fits { Count::try_from(own.len()).unwrap_or(-1) } else { -1 };
        let mut counts = vec![0; ranks];
        self.world.all_gather_into(&count, &mut counts[..]);
        if counts.iter().any(|count| *count < 0) {
            return Err(GatherError("an outcome is too long to be sent".to_owned()));
        }
        let starts: Vec<Count> = counts
            .iter()
            .scan(0, |end, count| Some(std::mem::replace(end, *end + count)))
            .collect();
        let length = counts.iter().sum::<Count>();
        let mut bytes = vec![0_u8; usize::try_from(length).unwrap_or(0)];
        {
            let mut parts = PartitionMut::new(&mut bytes[..], &counts[..], &starts[..]);
            self.world.all_gather_varcount_into(own.as_bytes(), &mut parts);
        }
        let mut rest = bytes.as_slice();
        let mut texts = Vec::new();
        for count in counts {
            let (text, after) = rest.split_at(usize::try_from(count).unwrap_or(0));
            let text = std::str::from_utf8(text).map_err(|error| GatherError(error.to_string()))?;
            texts.push(text.to_owned());
            rest = after;
        }
        Ok(texts)
    }
}

impl Gather for Mpi {
    fn share(&self) -> Share {
        self.share
    }

    async fn barrier(&mut self) -> Result<(), GatherError> {
        self.world.barrier();
        Ok(())
    }

    async fn merge(&mut self, own: Outcome) -> Result<Outcome, GatherError> {
        let mut merged: Option<Outcome> = None;
        for text in self.all(&own.to_text())? {
            let outcome = Outcome::from_text(&text).map_err(GatherError)?;
            match &mut merged {
                None => merged = Some(outcome),
                Some(merged) => merged.merge(outcome),
            }
        }
        merged.ok_or_else(|| GatherError("nobody is there".to_owned()))
    }

    async fn sum(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        let mut sums = vec![0.0; own.len()];
        self.world.all_reduce_into(&own[..], &mut sums[..], SystemOperation::sum());
        Ok(sums)
    }

    async fn broadcast(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        let first = self.world.process_at_rank(0);
        let mut count = own.len() as u64;
        first.broadcast_into(&mut count);
        if count > NUMBERS_MAX {
            return Err(GatherError(format!("{count} numbers are too many to be sent")));
        }
        let mut numbers = own;
        numbers.resize(usize::try_from(count).unwrap_or(0), 0.0);
        first.broadcast_into(&mut numbers[..]);
        Ok(numbers)
    }
}
