//! The processes that a launcher (mpirun, srun) has started as one load generator.
//!
//! With the feature `mpi` they meet through MPI, which is what clusters have, and what other
//! storage benchmarks use. Without it a process is alone, and one that a launcher has started is
//! refused: as many measurements would disturb each other as there are processes.

use load::curve::{Alone, Gather, GatherError, Share};
use load::mix::Outcome;

use crate::exit::Failure;

/// How launchers tell a process how many there are: Open MPI's, and those that speak PMI (MPICH,
/// srun with its plugin).
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
/// `srun --mpi=pmix` tells each process its rank, and how many there are in a variable of its own,
/// which is there without an MPI as well.
const PMIX: (&str, &str) = ("PMIX_RANK", "SLURM_STEP_NUM_TASKS");

/// This process among those of its measurement.
pub(crate) enum Ranks {
    Alone(Alone),
    #[cfg(feature = "mpi")]
    Mpi(mpi::Mpi),
}

impl std::fmt::Debug for Ranks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ranks").field(&self.share()).finish()
    }
}

/// Whether a launcher has started this process among others.
fn is_launched() -> bool {
    let several = |name: &str| std::env::var_os(name).is_some_and(|size| size != "1");
    SIZES.into_iter().any(several) || (std::env::var_os(PMIX.0).is_some() && several(PMIX.1))
}

impl Ranks {
    /// Meets the others, if there are any.
    ///
    /// # Errors
    /// There are, and this program cannot talk to them.
    pub(crate) fn join() -> Result<Self, Failure> {
        if !is_launched() {
            return Ok(Self::Alone(Alone));
        }
        #[cfg(feature = "mpi")]
        return mpi::Mpi::join().map(Self::Mpi);
        #[cfg(not(feature = "mpi"))]
        Err(Failure::environment(
            "a launcher has started several of this program, which was built without MPI",
            "cargo build --release --features mpi, or start it once",
        ))
    }

    /// Whether this process speaks for all.
    pub(crate) fn is_first(&self) -> bool {
        self.share().rank == 0
    }

    /// Ends all processes where one has failed: the others would wait for it. Those that were
    /// interrupted all were, by their launcher, and end by themselves when they have cleaned up.
    pub(crate) fn fail(&self, failure: Failure) -> Failure {
        #[cfg(feature = "mpi")]
        if let Self::Mpi(mpi) = self
            && !failure.is_interrupted()
        {
            mpi.abort(failure);
        }
        failure
    }
}

impl Gather for Ranks {
    fn share(&self) -> Share {
        match self {
            Self::Alone(alone) => alone.share(),
            #[cfg(feature = "mpi")]
            Self::Mpi(mpi) => mpi.share(),
        }
    }

    async fn barrier(&mut self) -> Result<(), GatherError> {
        match self {
            Self::Alone(alone) => alone.barrier().await,
            #[cfg(feature = "mpi")]
            Self::Mpi(mpi) => mpi.barrier().await,
        }
    }

    async fn merge(&mut self, own: Outcome) -> Result<Outcome, GatherError> {
        match self {
            Self::Alone(alone) => alone.merge(own).await,
            #[cfg(feature = "mpi")]
            Self::Mpi(mpi) => mpi.merge(own).await,
        }
    }

    async fn sum(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        match self {
            Self::Alone(alone) => alone.sum(own).await,
            #[cfg(feature = "mpi")]
            Self::Mpi(mpi) => mpi.sum(own).await,
        }
    }

    async fn broadcast(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        match self {
            Self::Alone(alone) => alone.broadcast(own).await,
            #[cfg(feature = "mpi")]
            Self::Mpi(mpi) => mpi.broadcast(own).await,
        }
    }
}

#[cfg(feature = "mpi")]
mod mpi;
