//! The round trip between a client and a server, and its jumps.
//!
//! Three clocks, as far as the capture has what they need:
//!
//! - how soon the server's kernel acknowledges data of the client, with a packet that carries
//!   nothing: the way from where was captured to the server and back;
//! - the same of the client's kernel: the way to the client and back;
//! - how soon calls are answered that wait for nothing: one outstanding, and GETATTR, LOOKUP,
//!   ACCESS, NULL or an UNSTABLE WRITE. The server's time is in it, but it is there for UDP, too,
//!   and where a relay acknowledges.
//!
//! Queues and delayed acknowledgements make single times longer, never shorter, so that the least
//! of a window of [`WINDOW`] says what the way is like. A jump is a lasting change of that: two
//! windows that agree with each other, and are [`JUMP_FACTOR`] away from what was usual.

use super::spread::Spread;

/// Times in a window.
pub const WINDOW: u32 = 32;
/// A window is open so long at least.
pub const WINDOW_NS_MIN: u64 = 10_000_000;
/// By how much a round trip has to change.
pub const JUMP_FACTOR: f64 = 1.5;
/// Smaller changes are of the hosts, not of the way.
pub const JUMP_NS_MIN: u64 = 50_000;
/// Jumps of a clock that are recorded: the first.
pub const JUMPS_MAX: usize = 64;

perf::named! {
    /// What a round trip was measured by.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum RttOf {
        /// Acknowledgements of the server.
        Server => "acknowledgements of the server",
        /// Acknowledgements of the client.
        Client => "acknowledgements of the client",
        /// Replies to calls that wait for nothing.
        Replies => "replies to light calls",
    }
}

/// A lasting change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Jump {
    pub of: RttOf,
    /// The new time was seen from then on.
    pub at_ns: u64,
    pub before_ns: u64,
    pub after_ns: u64,
}

/// All clocks of a client with a server.
#[derive(Clone, Debug, Default)]
pub struct Rtt {
    clocks: [Clock; 3],
}

/// One clock's times.
#[derive(Clone, Debug, Default)]
struct Clock {
    times: Spread,
    /// What was usual so far.
    usual_ns: Option<u64>,
    /// Of the window that is open.
    count: u32,
    least_ns: u64,
    begin_ns: u64,
    /// A window that was unusual: when it began, and its least.
    unusual: Option<(u64, u64)>,
    jumps: Vec<Jump>,
}

impl Rtt {
    pub(super) fn record(&mut self, of: RttOf, now: u64, ns: u64) {
        let clock = &mut self.clocks[of as usize];
        clock.times.record(ns);
        if clock.count == 0 {
            (clock.begin_ns, clock.least_ns) = (now, ns);
        }
        clock.count += 1;
        clock.least_ns = clock.least_ns.min(ns);
        if clock.count >= WINDOW && now.saturating_sub(clock.begin_ns) >= WINDOW_NS_MIN {
            clock.close(of);
        }
    }

    /// All times of a clock.
    pub const fn times(&self, of: RttOf) -> &Spread {
        &self.clocks[of as usize].times
    }

    /// From one end to the other and back, at least; 0 where nothing shows it.
    pub(super) fn least_ns(&self) -> u64 {
        let least = |of: RttOf| {
            let times = self.times(of);
            (times.count() > 0).then(|| times.min().as_nanos())
        };
        match (least(RttOf::Server), least(RttOf::Client)) {
            (None, None) => least(RttOf::Replies).unwrap_or(0),
            (server, client) => server.unwrap_or(0) + client.unwrap_or(0),
        }
    }

    /// The jumps of all clocks, in the order of time.
    pub fn jumps(&self) -> Vec<Jump> {
        let all = self.clocks.iter().flat_map(|clock| clock.jumps.iter().copied());
        let mut all: Vec<Jump> = all.collect();
        all.sort_by_key(|jump| (jump.at_ns, jump.of));
        all
    }
}

impl Clock {
    /// The window is full.
    fn close(&mut self, of: RttOf) {
        let (begin_ns, least_ns) = (self.begin_ns, self.least_ns);
        self.count = 0;
        let Some(usual_ns) = self.usual_ns else {
            self.usual_ns = Some(least_ns);
            return;
        };
        if !differ(usual_ns, least_ns) {
            self.unusual = None;
            self.usual_ns = Some((usual_ns.saturating_mul(7).saturating_add(least_ns)) / 8);
            return;
        }
        let is_longer = least_ns > usual_ns;
        match self.unusual {
            Some((at_ns, before))
                if (before > usual_ns) == is_longer && !differ(before, least_ns) =>
            {
                let after_ns = least_ns.min(before);
                if self.jumps.len() < JUMPS_MAX {
                    self.jumps.push(Jump { of, at_ns, before_ns: usual_ns, after_ns });
                }
                self.usual_ns = Some(after_ns);
                self.unusual = None;
            }
            _ => self.unusual = Some((begin_ns, least_ns)),
        }
    }
}

/// Whether two times are of different ways.
fn differ(one_ns: u64, other_ns: u64) -> bool {
    let (short, long) = (one_ns.min(other_ns), one_ns.max(other_ns));
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let is_far = long as f64 > short as f64 * JUMP_FACTOR;
    is_far && long - short > JUMP_NS_MIN
}

/// What is measured of one direction of a connection: one segment at a time, from when it was
/// captured until it is acknowledged by a packet without data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    /// The number behind the segment, and when it came.
    running: Option<(u32, u64)>,
}

impl Stopwatch {
    /// A segment came that ends before `end`.
    pub(super) fn sent(&mut self, now: u64, end: u32) {
        self.running.get_or_insert((end, now));
    }

    /// Something was retransmitted: which of both an acknowledgement is for, nobody knows.
    pub(super) const fn spoil(&mut self) {
        self.running = None;
    }

    /// Everything before `ack` has come; by a packet that has data or not. The time, if it shows
    /// one.
    pub(super) fn acknowledged(&mut self, now: u64, ack: u32, has_data: bool) -> Option<u64> {
        let (end, at) = self.running?;
        // Half of the numbers are before, half behind.
        if ack.wrapping_sub(end) >= 1 << 31 {
            return None;
        }
        self.running = None;
        (!has_data).then_some(now.saturating_sub(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A round trip every millisecond, of so many microseconds, with queues now and then.
    fn run(rtt: &mut Rtt, from_ms: u64, us: u64) {
        for ms in from_ms..from_ms + 500 {
            let queue = if ms % 3 == 0 { 0 } else { (ms * 7919) % 900 };
            rtt.record(RttOf::Server, ms * MS, (us + queue) * 1000);
        }
    }

    #[test]
    fn a_lasting_change_is_a_jump_and_queues_are_none() {
        let mut rtt = Rtt::default();
        run(&mut rtt, 0, 200);
        assert_eq!(rtt.jumps(), []);
        run(&mut rtt, 500, 5_000);
        run(&mut rtt, 1_000, 5_100);
        run(&mut rtt, 1_500, 220);
        let jumps = rtt.jumps();
        let [up, down] = jumps[..] else { panic!("{jumps:?}") };
        assert!(up.at_ns.abs_diff(500 * MS) < 80 * MS, "{up:?}");
        assert!(down.at_ns.abs_diff(1_500 * MS) < 80 * MS, "{down:?}");
        assert!(up.before_ns.abs_diff(200_000) < 30_000 && up.after_ns.abs_diff(5 * MS) < MS / 10);
        assert!(down.after_ns.abs_diff(220_000) < 30_000, "{down:?}");
        assert_eq!(rtt.times(RttOf::Server).count(), 2_000);
        assert_eq!(rtt.times(RttOf::Client).count(), 0);
    }

    #[test]
    fn one_bad_moment_is_no_jump_and_jumps_are_bounded() {
        let mut rtt = Rtt::default();
        for ms in 0..2_000_u64 {
            let us = if (640..690).contains(&ms) { 9_000 } else { 300 };
            rtt.record(RttOf::Replies, ms * MS, us * 1000);
        }
        assert_eq!(rtt.jumps(), []);
        for ms in 0..100_000_u64 {
            let us = if ms / 500 % 2 == 0 { 9_000 } else { 300 };
            rtt.record(RttOf::Client, ms * MS, us * 1000);
        }
        assert_eq!(rtt.jumps().len(), JUMPS_MAX);
    }

    #[test]
    fn a_stopwatch_takes_the_first_acknowledgement_without_data() {
        let mut watch = Stopwatch::default();
        watch.sent(100, 0x10);
        watch.sent(150, 0x20);
        assert_eq!(watch.acknowledged(160, 0xffff_fff0, false), None);
        assert_eq!(watch.acknowledged(170, 0x18, false), Some(70));
        assert_eq!(watch.acknowledged(180, 0x20, false), None);
        watch.sent(200, 0x30);
        assert_eq!(watch.acknowledged(300, 0x30, true), None);
        watch.sent(400, 0x40);
        watch.spoil();
        assert_eq!(watch.acknowledged(500, 0x40, false), None);
    }
}
