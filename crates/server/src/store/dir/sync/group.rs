//! Group commit: which sync covers whom. A decision without threads, clocks or files.
//!
//! A sync covers the writes that came before it *began*. So a caller joins a sync that waits for
//! a thread, but not one that runs already: that one may have passed its pages. All who arrive
//! during a run share the next one:
//!
//! ```text
//!   a arrives     b arrives       c, d arrive          (next: c, d)      e arrives
//!   |--- waiting for a thread ---|==== sync covers a, b ====||==== sync covers c, d ====| ...
//! ```
//!
//! However many callers there are, at most one sync of a file runs and at most one waits.

/// How much must be stable. Later ones include the earlier.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Need {
    /// The data, and what is needed to read it back (fdatasync).
    #[default]
    Data,
    /// And all of the file's attributes (fsync).
    File,
    /// All of the file system (syncfs): for objects that cannot be opened.
    FileSystem,
}

/// What an arriving caller has to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::store::dir) enum Arrival {
    /// Hand the group to a thread, which calls [`Group::begin`].
    First,
    /// Nothing but wait: a sync that covers the caller is on its way.
    Joined,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Idle,
    /// Handed to a thread that has not begun.
    Queued,
    Running,
}

/// The callers who wait for syncs of one file. `W` is how a caller gets the outcome.
#[derive(Debug)]
pub(in crate::store::dir) struct Group<W> {
    state: State,
    /// Covered by the sync that runs.
    running: Vec<W>,
    /// Covered by the one after it.
    waiting: Vec<W>,
    need: Need,
}

/// The end of a sync.
#[derive(Debug)]
pub(in crate::store::dir) struct Finished<W> {
    /// Who gets the outcome.
    pub(in crate::store::dir) waiters: Vec<W>,
    /// Others arrived meanwhile: the group must be passed to a thread again.
    pub(in crate::store::dir) again: bool,
}

impl<W> Default for Group<W> {
    fn default() -> Self {
        Self { state: State::Idle, running: Vec::new(), waiting: Vec::new(), need: Need::default() }
    }
}

impl<W> Group<W> {
    /// A caller whose writes are done wants them stable.
    pub(in crate::store::dir) fn arrive(&mut self, need: Need, waiter: W) -> Arrival {
        self.waiting.push(waiter);
        self.need = self.need.max(need);
        match self.state {
            State::Idle => {
                self.state = State::Queued;
                Arrival::First
            }
            State::Queued | State::Running => Arrival::Joined,
        }
    }

    /// The sync begins: from here on it takes nobody in. Says how much it has to do.
    pub(in crate::store::dir) fn begin(&mut self) -> Need {
        assert_eq!(self.state, State::Queued, "a sync begins once for each time it was handed out");
        debug_assert!(self.running.is_empty() && !self.waiting.is_empty());
        self.state = State::Running;
        self.running = std::mem::take(&mut self.waiting);
        std::mem::take(&mut self.need)
    }

    /// The sync that began last has ended.
    pub(in crate::store::dir) fn finish(&mut self) -> Finished<W> {
        assert_eq!(self.state, State::Running, "a sync ends that has begun");
        let again = !self.waiting.is_empty();
        self.state = if again { State::Queued } else { State::Idle };
        Finished { waiters: std::mem::take(&mut self.running), again }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn callers_join_a_sync_that_has_not_begun_and_miss_one_that_has() {
        let mut group = Group::default();
        assert_eq!(group.arrive(Need::Data, 'a'), Arrival::First);
        assert_eq!(group.arrive(Need::File, 'b'), Arrival::Joined);
        assert_eq!(group.begin(), Need::File);
        assert_eq!(group.arrive(Need::Data, 'c'), Arrival::Joined);
        assert_eq!(group.arrive(Need::Data, 'd'), Arrival::Joined);
        let first = group.finish();
        assert_eq!((first.waiters, first.again), (vec!['a', 'b'], true));
        assert_eq!(group.begin(), Need::Data, "the strength is that of the batch");
        let second = group.finish();
        assert_eq!((second.waiters, second.again), (vec!['c', 'd'], false));
        assert_eq!(group.arrive(Need::Data, 'e'), Arrival::First);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arrive(Need),
        Begin,
        Finish,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let need = prop_oneof![Just(Need::Data), Just(Need::File), Just(Need::FileSystem)];
        proptest::collection::vec(
            prop_oneof![
                3 => need.prop_map(Step::Arrive),
                1 => Just(Step::Begin),
                1 => Just(Step::Finish),
            ],
            0..60,
        )
    }

    proptest! {
        /// Against the definition: everyone is answered once, by a sync that began after they came
        /// and was strong enough; and a thread holds the group exactly while someone waits.
        #[test]
        fn everyone_is_covered_once_by_a_sync_that_began_after_them(steps in steps()) {
            let mut group = Group::default();
            let mut arrived: Vec<(usize, Need)> = Vec::new();
            let mut answered = Vec::new();
            let mut handed = false;
            let mut run: Option<(usize, Need)> = None;
            for (moment, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Arrive(need) => {
                        arrived.push((moment, need));
                        let first = group.arrive(need, (moment, need)) == Arrival::First;
                        prop_assert_eq!(first, !handed);
                        handed = true;
                    }
                    Step::Begin if handed && run.is_none() => run = Some((moment, group.begin())),
                    Step::Finish => {
                        if let Some((began, strength)) = run.take() {
                            let finished = group.finish();
                            for &(came, need) in &finished.waiters {
                                prop_assert!(came < began && need <= strength);
                            }
                            answered.extend(finished.waiters);
                            handed = finished.again;
                        }
                    }
                    Step::Begin => {}
                }
            }
            while handed {
                if run.take().is_none() {
                    group.begin();
                }
                let finished = group.finish();
                answered.extend(finished.waiters);
                handed = finished.again;
            }
            prop_assert_eq!(answered, arrived);
        }
    }
}
