//! A load curve: response time over throughput, from next to nothing up to a little more than a
//! server can do.
//!
//! - [`share`], [`gather`]: one generator of several, in threads and in processes.
//! - [`subject`]: a server with its files. [`crate::space`]: is there room for them?
//! - [`search`]: how much the server can do.
//! - `course`: the points, of several servers in alternation.
//! - [`validity`]: what a point has to hold to count.
//! - [`signature`]: base, slope, saturation, knee, overall response time.
//!
//! What it stresses: everything of a file server, at loads that are stated, with a working set that
//! grows with the load.
//!
//! The benchmark is SPEC SFS (LADDIS 1993, SFS97 2.0 and 3.0, SFS2008): mixes, lengths of files and
//! transfers, 10 MB of files for each operation a second, of which 10 % are touched, response time
//! as the mean of all operations, ten points or more, validity rules. It differs:
//!
//! - Every operation is one call that starts when a schedule says (SFS: requests of up to 17 calls,
//!   from a few processes that wait for each), so that a slow server cannot hold load back, and
//!   response times count from when a call was meant to start. A closed loop is there, too.
//! - The saturation is found, and the points are spread below it.
//! - One set of files is made, for the highest load; lower loads touch a part of it in proportion
//!   (SFS makes the files anew for each load).
//! - Points take seconds and not ten minutes, and the file set is bounded, by default:
//!   what differs from SFS's rules is stated with every result.

mod course;
pub mod gather;
pub mod meeting;
mod point;
pub mod search;
pub mod share;
pub mod signature;
pub mod subject;
pub mod validity;

pub use course::{Broken, Measured, Progress, Runs, Step, measure};
pub use gather::{Alone, Gather, GatherError};
pub use meeting::Meeting;
pub use point::{Kind, Point};
pub use share::Share;
pub use signature::{Quantity, Signature};
pub use subject::{Built, Shard, Shards, Subject};
pub use validity::Breach;

use perf::units::Nanos;

use crate::fileset::Layout;
use crate::fileset::layout::BYTES_PER_RATE;
use crate::mix::{Arrivals, Mix};

/// Load points that are measured, at most.
pub const POINTS_MAX: usize = 1_000;

/// Which points.
#[derive(Clone, Debug, PartialEq)]
pub enum Loads {
    /// So many evenly below the saturation, which is found first, and one above it.
    Find { points: usize },
    /// Operations a second.
    Rates(Vec<f64>),
    /// A closed loop, with so many outstanding.
    Outstanding(Vec<usize>),
}

impl Loads {
    /// How many.
    pub fn count(&self) -> usize {
        match self {
            Self::Find { points } => points + 1,
            Self::Rates(rates) => rates.len(),
            Self::Outstanding(numbers) => numbers.len(),
        }
    }
}

/// How large the set of files is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Files {
    /// Bytes for each operation a second of the highest load.
    pub bytes_per_rate: u64,
    /// Not more than that.
    pub bytes_max: u64,
    /// The share that is touched, from 0 to 1.
    pub accessed: f64,
}

impl Files {
    /// As SFS 3.0 has it, with a bound.
    pub const fn at_most(bytes_max: u64) -> Self {
        Self { bytes_per_rate: BYTES_PER_RATE, bytes_max, accessed: 0.1 }
    }

    /// For this highest load.
    pub fn layout(&self, per_s: f64, seed: u64) -> Layout {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let bytes = (per_s.max(0.0) * self.bytes_per_rate as f64) as u64;
        let layout = Layout::of_bytes(bytes.clamp(1, self.bytes_max.max(1)), seed);
        Layout { accessed: self.accessed, ..layout }
    }
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Settings {
    pub mix: Mix,
    pub arrivals: Arrivals,
    pub loads: Loads,
    /// Of each run, before anything counts.
    pub warm_up: Nanos,
    /// Of each run.
    pub time: Nanos,
    /// Runs of each point.
    pub repeats: usize,
    /// Of all generators together; over it, operations of an open loop wait.
    pub outstanding_max: usize,
    pub files: Files,
    pub seed: u64,
}

impl Settings {
    /// Which loop.
    pub fn kind(&self) -> Kind {
        match self.loads {
            Loads::Outstanding(_) => Kind::Closed,
            Loads::Find { .. } | Loads::Rates(_) => Kind::Open,
        }
    }
}
