//! What a sequential write does next: a decision without I/O.
//!
//! The plan gives out WRITEs in order of offset and a COMMIT whenever enough unstable bytes have
//! been acknowledged. It remembers which extents are not yet durable and with which verifier they
//! were acknowledged; when a reply shows another verifier the server has lost its memory, and
//! what was not durable goes to the front of the queue again (RFC 1813 section 3.3.7).
//!
//! A server that has stored nothing of what `LOSSES_MAX` COMMITs in a row covered will keep nothing
//! the next time either: the plan is then [`Action::GiveUp`].
//!
//! Bounded: extents remembered are at most `commit_bytes / call_bytes` plus the window, because a
//! COMMIT that is due goes before the next WRITE, and one COMMIT is outstanding at a time; while
//! it is, at most another `commit_bytes` are written.

use std::collections::{BTreeMap, VecDeque};

use wire::nfs3::StableHow;

/// How to write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Bytes per WRITE.
    pub call_bytes: u32,
    /// The file is written from offset 0; its length.
    pub file_bytes: u64,
    /// Bytes in all: beyond `file_bytes` the file is overwritten from its beginning.
    pub total_bytes: u64,
    /// What each WRITE asks for.
    pub stable: StableHow,
    /// A COMMIT is sent when so many bytes have been acknowledged as unstable.
    pub commit_bytes: u64,
}

/// A run of bytes of the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    pub offset: u64,
    pub bytes: u32,
}

/// What to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    Write(Span),
    /// Commit everything acknowledged so far.
    Commit,
    /// Nothing until a reply comes.
    Wait,
    /// Everything is durable.
    Done,
    /// The server loses all that it is given: it would be written again without end.
    GiveUp,
}

/// COMMITs in a row that have stored nothing, after which nothing more is sent. A server that
/// starts again keeps nothing once; one that does so in each of three rounds is no use.
const LOSSES_MAX: u32 = 3;

/// See the module's head.
#[derive(Debug)]
pub struct Plan {
    options: Options,
    /// Bytes given out for the first time.
    issued_bytes: u64,
    /// What must be written again, before anything new.
    again: VecDeque<Span>,
    writes_outstanding: usize,
    /// Acknowledged as unstable, by offset.
    unstable: BTreeMap<u64, Unstable>,
    commit_outstanding: bool,
    /// Counts COMMITs; an extent acknowledged in one epoch is covered by the COMMIT that ends it.
    epoch: u64,
    /// Set by [`Plan::finish`]: nothing new is given out.
    finishing: bool,
    /// COMMITs in a row that have stored nothing.
    losses: u32,
    resent_bytes: u64,
    lost_bytes: u64,
    acknowledged: Acknowledged,
}

/// Bytes that WRITEs were answered for, those that are written again counted again.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    stable: u64,
    unstable: u64,
    /// Of the unstable, those before the COMMIT that was sent last, and those before the one that
    /// was answered last.
    covered: u64,
    committed: u64,
}

impl Acknowledged {
    /// Unstable bytes since the COMMIT that was answered last: those of an extent that was
    /// overwritten meanwhile count each time, as they went over the wire and into memory.
    fn uncommitted(&self) -> u64 {
        self.unstable - self.committed
    }
}

#[derive(Clone, Copy, Debug)]
struct Unstable {
    bytes: u32,
    verifier: [u8; 8],
    epoch: u64,
}

impl Plan {
    pub fn new(options: Options) -> Self {
        Self {
            options,
            issued_bytes: 0,
            again: VecDeque::new(),
            writes_outstanding: 0,
            unstable: BTreeMap::new(),
            commit_outstanding: false,
            epoch: 0,
            finishing: false,
            losses: 0,
            resent_bytes: 0,
            lost_bytes: 0,
            acknowledged: Acknowledged::default(),
        }
    }

    /// Gives out nothing new from now on; what was given out is still made durable.
    pub fn finish(&mut self) {
        self.finishing = true;
    }

    /// Bytes that had to be written again because the server lost them or took only a part.
    pub fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// Bytes that are durable by the replies so far: those of stable WRITEs, and those that an
    /// answered COMMIT has covered and stored.
    pub fn durable_bytes(&self) -> u64 {
        let Acknowledged { stable, committed, .. } = self.acknowledged;
        (stable + committed).saturating_sub(self.lost_bytes)
    }

    /// The next call to send. The caller sends it, or asks again after the next reply.
    pub fn next_action(&mut self) -> Action {
        if self.losses >= LOSSES_MAX {
            return Action::GiveUp;
        }
        let commit_due = self.acknowledged.uncommitted() >= self.options.commit_bytes;
        if commit_due && self.commit_outstanding {
            return Action::Wait;
        }
        if commit_due {
            return self.commit();
        }
        if let Some(span) = self.again.pop_front() {
            return self.write(span);
        }
        if let Some(span) = self.fresh() {
            self.issued_bytes += u64::from(span.bytes);
            return self.write(span);
        }
        match (self.writes_outstanding, self.commit_outstanding, self.unstable.is_empty()) {
            (0, false, true) => Action::Done,
            (0, false, false) => self.commit(),
            _ => Action::Wait,
        }
    }

    /// A WRITE was acknowledged for `count` of its bytes.
    pub fn on_written(&mut self, span: Span, count: u32, committed: StableHow, verifier: [u8; 8]) {
        assert!(self.writes_outstanding > 0, "a WRITE is answered that was handed out");
        self.writes_outstanding -= 1;
        let count = count.min(span.bytes);
        if count < span.bytes {
            let rest = Span { offset: span.offset + u64::from(count), bytes: span.bytes - count };
            self.again(rest);
        }
        let acknowledged = match committed {
            StableHow::Unstable => &mut self.acknowledged.unstable,
            _ => &mut self.acknowledged.stable,
        };
        *acknowledged += u64::from(count);
        if committed == StableHow::Unstable && count > 0 {
            let unstable = Unstable { bytes: count, verifier, epoch: self.epoch };
            // An overwritten extent is replaced: its older bytes no longer matter.
            self.unstable.insert(span.offset, unstable);
        }
    }

    /// A COMMIT was answered: what it covered is durable, or lost if the verifier differs.
    pub fn on_committed(&mut self, verifier: [u8; 8]) {
        assert!(self.commit_outstanding, "a COMMIT is answered that was handed out");
        self.commit_outstanding = false;
        self.acknowledged.committed = self.acknowledged.covered;
        let covered = self.epoch;
        let (mut lost, mut is_stored) = (Vec::new(), false);
        self.unstable.retain(|&offset, extent| {
            let is_covered = extent.epoch < covered;
            if is_covered {
                if extent.verifier == verifier {
                    is_stored = true;
                } else {
                    lost.push(Span { offset, bytes: extent.bytes });
                }
            }
            !is_covered
        });
        debug_assert!(self.acknowledged.committed <= self.acknowledged.unstable);
        self.losses = if is_stored || lost.is_empty() { 0 } else { self.losses + 1 };
        for span in lost {
            self.lost_bytes += u64::from(span.bytes);
            self.again(span);
        }
    }

    fn commit(&mut self) -> Action {
        self.commit_outstanding = true;
        self.acknowledged.covered = self.acknowledged.unstable;
        self.epoch += 1;
        Action::Commit
    }

    fn write(&mut self, span: Span) -> Action {
        self.writes_outstanding += 1;
        Action::Write(span)
    }

    fn again(&mut self, span: Span) {
        self.resent_bytes += u64::from(span.bytes);
        self.again.push_back(span);
    }

    fn fresh(&self) -> Option<Span> {
        let left = self.options.total_bytes.saturating_sub(self.issued_bytes);
        if left == 0 || self.finishing || self.options.file_bytes == 0 {
            return None;
        }
        let offset = self.issued_bytes % self.options.file_bytes;
        let until_end = (self.options.file_bytes - offset).min(left);
        let bytes = self.options.call_bytes.min(u32::try_from(until_end).unwrap_or(u32::MAX));
        (bytes > 0).then_some(Span { offset, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        call_bytes: 10,
        file_bytes: 100,
        total_bytes: 45,
        stable: StableHow::Unstable,
        commit_bytes: 20,
    };
    const BEFORE: [u8; 8] = [1; 8];
    const AFTER: [u8; 8] = [2; 8];

    fn span(offset: u64, bytes: u32) -> Span {
        Span { offset, bytes }
    }

    /// Answers each action at once, as `server` says; gives the actions in order.
    fn run(plan: &mut Plan, mut verifier_at: impl FnMut(usize) -> [u8; 8]) -> Vec<Action> {
        let mut actions = Vec::new();
        loop {
            let action = plan.next_action();
            let verifier = verifier_at(actions.len());
            match action {
                Action::Write(span) => {
                    plan.on_written(span, span.bytes, StableHow::Unstable, verifier);
                }
                Action::Commit => plan.on_committed(verifier),
                Action::Wait => panic!("nothing is outstanding"),
                Action::Done | Action::GiveUp => return actions,
            }
            actions.push(action);
        }
    }

    #[test]
    fn a_file_is_written_in_order_with_a_commit_after_every_so_many_bytes_and_at_the_end() {
        let mut plan = Plan::new(OPTIONS);
        let write = |offset, bytes| Action::Write(span(offset, bytes));
        assert_eq!(
            run(&mut plan, |_| BEFORE),
            [
                write(0, 10),
                write(10, 10),
                Action::Commit,
                write(20, 10),
                write(30, 10),
                Action::Commit,
                write(40, 5),
                Action::Commit
            ]
        );
        assert_eq!(plan.resent_bytes(), 0);
    }

    #[test]
    fn what_the_server_lost_is_written_again_and_committed_again() {
        let mut plan = Plan::new(Options { total_bytes: 20, ..OPTIONS });
        // The server restarts between the second WRITE and the COMMIT.
        let actions = run(&mut plan, |at| if at < 2 { BEFORE } else { AFTER });
        let write = |offset| Action::Write(span(offset, 10));
        let twice = [write(0), write(10), Action::Commit];
        assert_eq!(actions, [twice, twice].concat());
        assert_eq!(plan.durable_bytes(), 20);
        assert_eq!(plan.resent_bytes(), 20);
    }

    #[test]
    fn a_server_that_keeps_nothing_is_given_up_and_one_that_starts_twice_is_not() {
        let writes = |options, verifier_at: fn(usize) -> [u8; 8]| {
            let mut plan = Plan::new(options);
            let actions = run(&mut plan, verifier_at);
            (actions.len(), plan.next_action())
        };
        let round = Options { total_bytes: 20, ..OPTIONS };
        let other_each_time = |at: usize| [u8::try_from(at).unwrap(); 8];
        assert_eq!(writes(round, other_each_time), (9, Action::GiveUp));
        // Two rounds are lost.
        let settles = |at| if at < 6 { [u8::try_from(at).unwrap(); 8] } else { AFTER };
        assert_eq!(writes(round, settles), (9, Action::Done));
    }

    #[test]
    fn a_commit_does_not_cover_what_is_acknowledged_after_it_was_sent() {
        let mut plan = Plan::new(Options { total_bytes: 30, ..OPTIONS });
        let Action::Write(first) = plan.next_action() else { panic!() };
        let Action::Write(second) = plan.next_action() else { panic!() };
        let Action::Write(third) = plan.next_action() else { panic!() };
        plan.on_written(first, 10, StableHow::Unstable, BEFORE);
        plan.on_written(second, 10, StableHow::Unstable, BEFORE);
        assert_eq!(plan.next_action(), Action::Commit);
        plan.on_written(third, 10, StableHow::Unstable, BEFORE);
        assert_eq!(plan.next_action(), Action::Wait);
        plan.on_committed(BEFORE);
        assert_eq!(plan.durable_bytes(), 20);
        assert_eq!(plan.next_action(), Action::Commit, "the third is not covered yet");
        plan.on_committed(BEFORE);
        assert_eq!(plan.durable_bytes(), 30);
        assert_eq!(plan.next_action(), Action::Done);
    }

    #[test]
    fn a_short_write_is_continued_where_it_ended() {
        let mut plan = Plan::new(Options { total_bytes: 10, ..OPTIONS });
        let Action::Write(all) = plan.next_action() else { panic!() };
        plan.on_written(all, 4, StableHow::FileSync, BEFORE);
        assert_eq!(plan.next_action(), Action::Write(span(4, 6)));
    }

    #[test]
    fn stable_writes_need_no_commit_and_a_finished_plan_hands_out_nothing_new() {
        let mut plan = Plan::new(Options { stable: StableHow::FileSync, ..OPTIONS });
        let Action::Write(first) = plan.next_action() else { panic!() };
        plan.finish();
        assert_eq!(plan.next_action(), Action::Wait);
        assert_eq!(plan.durable_bytes(), 0);
        plan.on_written(first, 10, StableHow::FileSync, BEFORE);
        assert_eq!((plan.next_action(), plan.durable_bytes()), (Action::Done, 10));
    }

    #[test]
    fn a_file_shorter_than_the_transfer_is_overwritten_from_its_beginning() {
        let mut plan = Plan::new(Options { file_bytes: 20, total_bytes: 40, ..OPTIONS });
        let offsets: Vec<u64> = run(&mut plan, |_| BEFORE)
            .into_iter()
            .filter_map(|action| match action {
                Action::Write(span) => Some(span.offset),
                _ => None,
            })
            .collect();
        assert_eq!(offsets, [0, 10, 0, 10]);
    }

    #[test]
    fn a_file_shorter_than_what_a_commit_covers_is_committed_as_often_as_any() {
        let commits = |file_bytes| {
            let options = Options { file_bytes, total_bytes: 120, commit_bytes: 40, ..OPTIONS };
            let actions = run(&mut Plan::new(options), |_| BEFORE);
            actions.iter().filter(|action| matches!(action, Action::Commit)).count()
        };
        assert_eq!([10, 20, 30, 200].map(commits), [3; 4]);
    }
}
