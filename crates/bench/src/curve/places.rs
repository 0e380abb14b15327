//! A scratch directory on each target, which is removed however the run ends.

use harness::exit::Failure;
use harness::scratch::Held;
use harness::signals::Interrupts;
use harness::target::Reached;
use load::scratch::Scratch;
use perf::units::Nanos;

/// What removing may take, whatever there is.
const REMOVE_LIMIT: Nanos = Nanos::from_secs(20);
/// And for each file.
const REMOVE_LIMIT_OF_FILE: Nanos = Nanos::from_millis(20);

/// See the module's head.
#[derive(Debug)]
pub(super) struct Places<'a> {
    made: Vec<(&'a Reached, Held)>,
}

impl<'a> Places<'a> {
    /// Makes one on each, or none.
    pub(super) async fn make(
        targets: &'a [Reached],
        interrupts: &mut Interrupts,
    ) -> Result<Self, Failure> {
        let mut places = Self { made: Vec::new() };
        for target in targets {
            match Held::make(target, interrupts).await {
                Ok(held) => places.made.push((target, held)),
                Err(failure) => {
                    return Err(match places.clear(0).await {
                        Some(left) => failure.and(left.what()),
                        None => failure,
                    });
                }
            }
        }
        Ok(places)
    }

    /// Removes them, with about so many files. Tells what could not be.
    pub(super) async fn clear(self, files: usize) -> Option<Failure> {
        let limit = REMOVE_LIMIT + REMOVE_LIMIT_OF_FILE * files as u64;
        let mut left = None;
        for (target, held) in self.made {
            let cleared = held.clear(target, limit, Ok(())).await;
            left = left.or_else(|| cleared.err());
        }
        left
    }

    /// In the order of the targets.
    pub(super) fn dirs(&self) -> impl Iterator<Item = &Scratch> {
        self.made.iter().map(|(_, held)| &held.scratch)
    }
}
