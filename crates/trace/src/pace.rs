//! The pace of a flow: how many calls are outstanding, how long a turn takes, and where it stands
//! still.
//!
//! Stop-and-wait is a client that has one call outstanding, waits for the reply, and calls again.
//! Its cycle is the time from one such call to the next. A gap is a time without a reply that is
//! much longer than the flow's replies usually are apart ([`GAP_FACTOR`] times, and [`GAP_NS_MIN`]
//! at least).

use super::ids::FileId;
use super::late::Late;
use super::outstanding::Load;
use super::spread::Spread;
use super::work::{WORKS, Work};

/// How many times longer than the usual distance of replies a gap is.
pub const GAP_FACTOR: u64 = 20;
/// Shorter ones are none.
pub const GAP_NS_MIN: u64 = 5_000_000;
/// Gaps of a flow that are recorded: the longest.
pub const GAPS_MAX: usize = 256;
/// Replies before the usual distance is known.
const SETTLED: u64 = 16;
/// Weight of a new distance is one in so many.
const SMOOTHING: u64 = 16;

perf::named! {
    /// What a flow waited for in a gap, as far as the capture shows it.
    #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
    pub enum Cause {
        /// The capture lost messages in it: what was waited for is not known.
        NotCaptured => "messages not captured",
        /// A COMMIT had no reply.
        Commit => "COMMIT outstanding",
        /// A WRITE that was to be stable had no reply.
        StableWrite => "stable WRITE outstanding",
        /// An end announced a TCP window of zero.
        ZeroWindow => "TCP window of zero",
        /// A call was retransmitted.
        Retransmission => "RPC retransmission timeout",
        /// TCP sent bytes again.
        TcpRecovery => "TCP loss recovery",
        /// Calls were outstanding, and nothing else is to be seen.
        SilentServer => "silent server",
        /// The same, and the capture ended before a reply came.
        NoReply => "silent server, not ended",
        /// A call that was late had no reply, and no other was outstanding.
        LateCall => "late call outstanding",
        /// The server had put off what was called for, and no call was outstanding.
        Postponed => "call put off by the server",
        /// No call was outstanding.
        SilentClient => "silent client",
    }
}

/// A time in which a flow stood still.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Gap {
    pub begin_ns: u64,
    pub end_ns: u64,
    pub cause: Cause,
    /// Calls outstanding at its end.
    pub outstanding: u32,
    /// Calls that were retransmitted in it.
    pub retransmissions: u32,
    /// The packets of the reply before it, and of the one that ended it, as Wireshark counts.
    pub begin_frame: u64,
    pub end_frame: u64,
    /// What the flow had done when it began.
    pub before: Done,
    /// What it had done when it was over.
    pub after: Done,
}

/// What a flow has done until a moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Done {
    /// Data read and written.
    pub moved_bytes: u64,
    pub replies: u64,
    /// Nanoseconds with exactly one call outstanding, and with more.
    pub one_ns: u64,
    pub more_ns: u64,
}

/// A time between two gaps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Phase {
    pub begin_ns: u64,
    pub end_ns: u64,
    /// What was done in it.
    pub done: Done,
}

impl Phase {
    /// Bytes a second: the slope of the cumulative transfer.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let ns = self.end_ns.saturating_sub(self.begin_ns);
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = self.done.moved_bytes as f64 / (ns as f64 / 1e9);
        (ns > 0 && self.done.moved_bytes > 0).then_some(rate)
    }

    /// As [`Pace::stop_and_wait`].
    pub fn stop_and_wait(&self) -> Option<f64> {
        share(self.done.one_ns, self.done.more_ns)
    }

    /// Mean nanoseconds from one reply to the next; none where all came at once.
    pub fn turn_ns(&self) -> Option<u64> {
        let ns = self.end_ns.saturating_sub(self.begin_ns);
        ns.checked_div(self.done.replies).filter(|ns| *ns > 0)
    }
}

impl Gap {
    pub const fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Times by kind of what was outstanding, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Shares {
    none: u64,
    /// Of that while bytes of the next call came.
    arriving: u64,
    /// And while the client waited to call again for what was put off.
    postponed: u64,
    one: u64,
    more: u64,
    /// With none but late ones, which count in neither of those.
    late: u64,
    commit: u64,
    stable: u64,
    /// While an end announced a TCP window of zero.
    zero: u64,
}

/// What the time until each reply went for, in nanoseconds: together the time from the first call
/// to the last reply, or to the capture's end where calls were outstanding then.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Waited {
    /// No call was outstanding, and none came.
    pub idle: u64,
    /// Nor was one, for the server had put off what was called for.
    pub postponed: u64,
    /// Nor was one, but the next was on its way: from its first byte to its last.
    pub arriving: u64,
    /// Calls were, and nothing was in the way: by what the reply was for, as in [`Work::ALL`].
    pub works: [u64; WORKS],
    pub recovery: u64,
    pub retransmission: u64,
    pub zero_window: u64,
    /// None was outstanding but late ones, and others were answered since they were late.
    pub late: u64,
    /// From the last reply on, with calls outstanding when the capture ended.
    pub unanswered: u64,
    /// The capture lost messages meanwhile: what was waited for is not known.
    pub unknown: u64,
}

impl Waited {
    pub fn of(&self, work: Work) -> u64 {
        self.works[work as usize]
    }

    pub fn all(&self) -> u64 {
        let busy: u64 = self.works.iter().sum();
        let repairs = self.recovery + self.retransmission + self.zero_window;
        let none = self.idle + self.postponed + self.arriving;
        busy + none + repairs + self.late + self.unanswered + self.unknown
    }
}

/// A reply: when it came and in which packet, what for, with how many bytes of data, and the call
/// that is over with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) now: u64,
    pub(super) frame: u64,
    pub(super) call_frame: u64,
    pub(super) work: Work,
    pub(super) bytes: u32,
    pub(super) load: Load,
    /// When the call was late, or would have been.
    pub(super) due_ns: u64,
    pub(super) file: FileId,
    /// It puts the call off.
    pub(super) is_later: bool,
}

/// The pace of one flow, or of several together.
#[derive(Debug, Default)]
pub struct Pace {
    load: Load,
    late: Late,
    /// Calls that were late when the last reply came.
    late_before: u32,
    /// The last reply was to a late call, with others answered before.
    was_late: bool,
    /// When it changed last.
    since_ns: u64,
    total: Shares,
    /// Since the last reply.
    silence: Shares,
    /// Of that with no call outstanding, what had passed when calls last ceased to count.
    none_before: u64,
    /// Messages were lost since the last reply.
    misses: bool,
    /// Until when the client waits for what was put off.
    postponed_until_ns: u64,
    /// What was seen since the last reply.
    again: u32,
    tcp_again: u32,
    /// Ends of connections that announce a window of zero.
    zero_windows: u32,
    /// When the first call was made; and the time until its reply, as long as what is usual behind
    /// it is not known.
    first_ns: u64,
    opening: Option<Gap>,
    last_reply_ns: u64,
    last_reply_frame: u64,
    replies: u64,
    /// What was waited for until the last reply was work of the server, and no gap.
    is_work: bool,
    usual_ns: u64,
    /// The last call that was made while none was outstanding, and since when nothing else was.
    lone: Option<(Work, u64)>,
    pub outstanding_max: u32,
    /// From a reply to the next call, when none was outstanding.
    pub think: Spread,
    /// From one lone READ to the next, and from one lone WRITE to the next.
    pub read_cycle: Spread,
    pub write_cycle: Spread,
    pub gaps: Vec<Gap>,
    /// Number and nanoseconds of all gaps by cause, in the order of [`Cause::ALL`].
    pub by_cause: [(u64, u64); Cause::ALL.len()],
    pub moved_bytes: u64,
    pub waited: Waited,
    /// When the last reply came.
    done_at_reply: Done,
}

impl Pace {
    /// Calls outstanding that are not late.
    const fn active(&self) -> u32 {
        self.load.calls.saturating_sub(self.late.calls())
    }

    /// Time goes on until `now`.
    fn advance(&mut self, now: u64) {
        while let Some(due_ns) = self.late.next(now) {
            self.pass(due_ns);
            self.late.comes(due_ns);
        }
        self.pass(now);
    }

    /// The same with no call that becomes late meanwhile.
    fn pass(&mut self, now: u64) {
        let ns = now.saturating_sub(self.since_ns);
        self.since_ns = self.since_ns.max(now);
        // What happens before the first call begins nothing.
        if self.first_ns == 0 {
            return;
        }
        let put_off = self.postponed_until_ns.min(now).saturating_sub(now - ns);
        let now = Shares {
            none: if self.load.calls == 0 { ns } else { 0 },
            arriving: 0,
            postponed: if self.load.calls == 0 { put_off } else { 0 },
            one: if self.active() == 1 { ns } else { 0 },
            more: if self.active() > 1 { ns } else { 0 },
            late: if self.load.calls > 0 && self.active() == 0 { ns } else { 0 },
            commit: if self.load.commits > 0 { ns } else { 0 },
            stable: if self.load.stable_writes > 0 { ns } else { 0 },
            zero: if self.zero_windows > 0 { ns } else { 0 },
        };
        self.total.add(now);
        self.silence.add(now);
    }

    /// A call was made, of which the first byte came at `first`, and that is late at `due_ns`.
    pub(super) fn called(&mut self, (now, first): (u64, u64), work: Work, load: Load, due_ns: u64) {
        if self.load.calls == 0 && self.first_ns > 0 {
            self.silence.arriving += now.saturating_sub(first.max(self.since_ns));
        }
        self.advance(now);
        if self.first_ns == 0 {
            self.first_ns = now;
            (self.misses, self.again, self.tcp_again) = (false, 0, 0);
        }
        match self.active() {
            0 => self.called_alone((now, first), work),
            _ => self.lone = None,
        }
        self.load.add(load);
        self.late.called(due_ns);
        self.outstanding_max = self.outstanding_max.max(self.load.calls);
    }

    /// A call was made with no other outstanding.
    fn called_alone(&mut self, (now, first): (u64, u64), work: Work) {
        if self.last_reply_ns > 0 {
            self.think.record(first.saturating_sub(self.last_reply_ns));
        }
        if let Some((before, at)) = self.lone {
            let is_write = |work| matches!(work, Work::Write | Work::StableWrite);
            match (before, work) {
                (Work::Read, Work::Read) => self.read_cycle.record(now.saturating_sub(at)),
                (before, work) if is_write(before) && is_write(work) => {
                    self.write_cycle.record(now.saturating_sub(at));
                }
                _ => {}
            }
        }
        self.lone = Some((work, now));
    }

    /// Whether what the last reply was waited for is its work's: not a repair of the network, nor
    /// a server that stood still. Of the first that is not known yet.
    pub(super) const fn is_work(&self) -> bool {
        self.is_work
    }

    /// Whether a call outstanding is late by then.
    pub(super) fn has_late(&self, now: u64) -> bool {
        self.late.calls() > 0 || self.late.next(now).is_some()
    }

    /// Whether the last reply was to a call that had been late when another was answered.
    pub(super) const fn was_late(&self) -> bool {
        self.was_late
    }

    pub(super) const fn last_reply_ns(&self) -> u64 {
        self.last_reply_ns
    }

    pub(super) const fn outstanding(&self) -> u32 {
        self.load.calls
    }

    /// Calls are outstanding that are to make data stable.
    pub(super) const fn waits_for_sync(&self) -> bool {
        self.load.commits + self.load.stable_writes > 0
    }

    /// Calls are outstanding that need nothing to be stable.
    pub(super) const fn waits_for_other(&self) -> bool {
        self.load.calls > self.load.commits + self.load.stable_writes
    }

    /// A reply came; how long the gap was that it ended, if it ended one of which is known what it
    /// came from.
    pub(super) fn replied(&mut self, reply: Reply) -> Option<u64> {
        let Reply { now, frame, work, bytes, load, due_ns, .. } = reply;
        self.advance(now);
        let silent = now.saturating_sub(self.last_reply_ns);
        let is_gap = self.is_gap(silent);
        // Since the last reply nothing else has been waited for.
        self.was_late = due_ns < self.last_reply_ns;
        if due_ns <= now && !self.was_late {
            self.silence.one += std::mem::take(&mut self.silence.late);
        }
        let cause = self.cause(silent);
        let is_work = self.attribute(work, is_gap, silent);
        self.is_work = is_work && (self.replies > 0 || work.is_sync());
        if is_gap {
            self.is_work &= cause != Cause::SilentServer;
            self.keep(self.gap(now, frame, cause));
        }
        if self.replies == 0 {
            self.opening = Some(self.opened(&reply));
        } else {
            // One that is far off moves the usual distance by no more than another.
            let is_settled = self.replies >= SETTLED;
            let silent = if is_settled { silent.min(self.usual_ns * 4 + 1) } else { silent };
            self.usual_ns = match self.replies {
                1 => silent,
                _ => (self.usual_ns * (SMOOTHING - 1) + silent) / SMOOTHING,
            };
        }
        self.load.take(load);
        self.late.over(due_ns);
        self.late_before = self.late.calls();
        self.replies += 1;
        if let Some(gap) = self.opening.take_if(|_| self.replies == SETTLED)
            && self.is_gap(gap.ns())
        {
            self.keep(gap);
        }
        self.last_reply_ns = now;
        self.last_reply_frame = frame;
        let misses = std::mem::take(&mut self.misses);
        (self.silence, self.none_before) = (Shares::default(), 0);
        (self.again, self.tcp_again) = (0, 0);
        self.moved_bytes += u64::from(bytes);
        self.done_at_reply = self.done();
        (is_gap && !misses).then_some(silent)
    }

    /// The capture ends, with this packet: what is outstanding has waited until now.
    pub(super) fn ended(&mut self, now: u64, frame: u64) {
        if self.load.calls == 0 {
            return;
        }
        self.advance(now);
        let silent = now.saturating_sub(self.last_reply_ns);
        if self.late.calls() > self.late_before {
            // It is late because of what the others are.
            self.silence.one += std::mem::take(&mut self.silence.late);
        }
        let Shares { none, postponed, one, more, late, .. } = self.silence;
        if self.misses {
            self.waited.unknown += none + one + more + late;
        } else {
            self.waited.late += late;
            self.waited.idle += none - postponed.min(none);
            self.waited.postponed += postponed.min(none);
            self.waited.unanswered += one + more;
        }
        if self.is_gap(silent) {
            let cause = match () {
                () if self.misses => Cause::NotCaptured,
                () if late > silent / 2 => Cause::LateCall,
                () => Cause::NoReply,
            };
            self.keep(self.gap(now, frame, cause));
        }
    }

    /// Whether a time without a reply is much longer than is usual.
    fn is_gap(&self, silent: u64) -> bool {
        let limit = self.usual_ns.saturating_mul(GAP_FACTOR).max(GAP_NS_MIN);
        self.replies >= SETTLED && silent > limit
    }

    /// The time since the last reply, which is over with this packet.
    const fn gap(&self, now: u64, frame: u64, cause: Cause) -> Gap {
        Gap {
            begin_ns: self.last_reply_ns,
            end_ns: now,
            cause,
            outstanding: self.load.calls,
            retransmissions: self.again,
            begin_frame: self.last_reply_frame,
            end_frame: frame,
            before: self.done_at_reply,
            after: self.done(),
        }
    }

    /// The time from the first call to the first reply.
    fn opened(&self, reply: &Reply) -> Gap {
        let (begin_ns, begin_frame) = (self.first_ns.min(reply.now), reply.call_frame);
        let cause = self.cause(reply.now - begin_ns);
        Gap { begin_ns, begin_frame, ..self.gap(reply.now, reply.frame, cause) }
    }

    /// What the time since the last reply went for, now that one of this work came. Whatever is
    /// lost or stopped on the network holds up what is behind it, be calls outstanding or not.
    /// False where it went for repairs, or is not known.
    fn attribute(&mut self, work: Work, is_gap: bool, silent: u64) -> bool {
        let Shares { mut none, arriving, postponed, one, more, late, commit, zero, .. } =
            self.silence;
        let waited = &mut self.waited;
        let mut busy = one + more;
        if !self.misses {
            // Of the stretch, what passed so: calls wait for it before a client does.
            let stopped = zero.min(busy);
            let rest = (zero - stopped).min(none);
            waited.zero_window += stopped + rest;
            (busy, none) = (busy - stopped, none - rest);
        }
        let repairs = match () {
            () if self.misses => Some(&mut waited.unknown),
            () if self.again > 0 => Some(&mut waited.retransmission),
            () if self.tcp_again > 0 => Some(&mut waited.recovery),
            () => None,
        };
        if let Some(repairs) = repairs {
            *repairs += none + late + busy;
            return false;
        }
        // A server that answers nothing else while it makes data stable.
        let behind = is_gap && commit > silent / 2;
        let work = if behind { Work::Commit } else { work };
        let arriving = arriving.min(none);
        let postponed = postponed.min(none - arriving);
        waited.idle += none - arriving - postponed;
        waited.postponed += postponed;
        waited.arriving += arriving;
        waited.late += late;
        waited.works[work as usize] += busy;
        true
    }

    /// Calls will not be answered any more, as far as the capture shows.
    pub(super) fn expired(&mut self, now: u64, load: Load) {
        self.advance(now);
        self.load.take(load);
        self.late.gone(load.calls);
        self.none_before = self.silence.none;
    }

    /// A call that did not count any more is answered or retransmitted after all: it was
    /// outstanding meanwhile.
    pub(super) fn recalled(&mut self, now: u64, load: Load, due_ns: u64) {
        self.advance(now);
        self.late.called(due_ns);
        let ns = self.silence.none.saturating_sub(self.none_before);
        for shares in [&mut self.silence, &mut self.total] {
            shares.none -= ns.min(shares.none);
            shares.one += ns;
            shares.commit += if load.commits > 0 { ns } else { 0 };
            shares.stable += if load.stable_writes > 0 { ns } else { 0 };
        }
        self.load.add(load);
    }

    /// Until when a client without a call outstanding waits to call again.
    pub(super) const fn postponed(&mut self, until_ns: u64) {
        self.postponed_until_ns = until_ns;
    }

    /// The capture lost messages.
    pub(super) fn missed(&mut self) {
        self.misses = true;
    }

    pub(super) fn sent_again(&mut self) {
        self.again = self.again.saturating_add(1);
    }

    pub(super) fn tcp_sent_again(&mut self) {
        self.tcp_again = self.tcp_again.saturating_add(1);
    }

    /// An end of a connection announces a window of zero from now on, or no longer.
    pub(super) fn zero_window(&mut self, now: u64, is_zero: bool) {
        self.advance(now);
        self.zero_windows = match is_zero {
            true => self.zero_windows.saturating_add(1),
            false => self.zero_windows.saturating_sub(1),
        };
    }

    /// What a silence of `ns` came from.
    fn cause(&self, ns: u64) -> Cause {
        let most = ns / 2;
        let Shares { none, postponed, late, commit, stable, zero, .. } = self.silence;
        match () {
            () if self.misses => Cause::NotCaptured,
            () if commit > most => Cause::Commit,
            () if zero > most => Cause::ZeroWindow,
            () if self.again > 0 => Cause::Retransmission,
            () if self.tcp_again > 0 => Cause::TcpRecovery,
            () if stable > most => Cause::StableWrite,
            () if postponed > most => Cause::Postponed,
            () if none > most => Cause::SilentClient,
            () if late > most => Cause::LateCall,
            () => Cause::SilentServer,
        }
    }

    fn keep(&mut self, gap: Gap) {
        if let Some(place) = Cause::ALL.iter().position(|cause| *cause == gap.cause) {
            self.by_cause[place].0 += 1;
            self.by_cause[place].1 += gap.ns();
        }
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap);
            return;
        }
        let shortest = self.gaps.iter_mut().min_by_key(|gap| gap.ns());
        if let Some(shortest) = shortest
            && shortest.ns() < gap.ns()
        {
            *shortest = gap;
        }
    }

    /// Nanoseconds with no, exactly one, and more calls outstanding.
    pub const fn time_with(&self) -> (u64, u64, u64) {
        (self.total.none, self.total.one, self.total.more)
    }

    /// Share of the time with calls outstanding in which it was exactly one: 1 is stop-and-wait.
    pub fn stop_and_wait(&self) -> Option<f64> {
        share(self.total.one, self.total.more)
    }

    const fn done(&self) -> Done {
        Done {
            moved_bytes: self.moved_bytes,
            replies: self.replies,
            one_ns: self.total.one,
            more_ns: self.total.more,
        }
    }

    /// The times between the gaps that were recorded, and before the first and behind the last.
    pub fn phases(&self, begin_ns: u64) -> Vec<Phase> {
        let mut gaps: Vec<&Gap> = self.gaps.iter().collect();
        gaps.sort_by_key(|gap| gap.begin_ns);
        let mut phases = Vec::with_capacity(gaps.len() + 1);
        let mut from = (begin_ns, Done::default());
        for gap in gaps {
            phases.push(phase(from, (gap.begin_ns, gap.before)));
            from = (gap.end_ns, gap.after);
        }
        phases.push(phase(from, (self.last_reply_ns.max(from.0), self.done_at_reply)));
        phases.retain(|phase| phase.done.replies > 1);
        phases
    }
}

fn phase((begin_ns, from): (u64, Done), (end_ns, to): (u64, Done)) -> Phase {
    let done = Done {
        moved_bytes: to.moved_bytes.saturating_sub(from.moved_bytes),
        replies: to.replies.saturating_sub(from.replies),
        one_ns: to.one_ns.saturating_sub(from.one_ns),
        more_ns: to.more_ns.saturating_sub(from.more_ns),
    };
    Phase { begin_ns, end_ns, done }
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(one: u64, more: u64) -> Option<f64> {
    let busy = one + more;
    (busy > 0).then_some(one as f64 / busy as f64)
}

impl Shares {
    fn add(&mut self, other: Self) {
        self.none += other.none;
        self.postponed += other.postponed;
        self.arriving += other.arriving;
        self.one += other.one;
        self.more += other.more;
        self.late += other.late;
        self.commit += other.commit;
        self.stable += other.stable;
        self.zero += other.zero;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_at_once_are_no_time_apart() {
        let done = Done { replies: 4, ..Done::default() };
        let phase = |end_ns| Phase { begin_ns: 1_000, end_ns, done };
        assert_eq!(phase(1_000).turn_ns(), None);
        assert_eq!(phase(9_000).turn_ns(), Some(2_000));
    }
}
