//! Decides what becomes of the messages of one direction: a plain struct that takes the time.
//!
//! **A datagram** passes the queue (what does not fit is lost), then the link (G for its bytes, g
//! after it), then may be lost, repeated, overtaken or damaged, and arrives L later, give or take
//! the jitter. With an MTU it is cut as IP cuts it, every fragment has its header, its place in
//! the queue and its chance to be lost, and one lost fragment loses the datagram.
//!
//! **On a stream** TCP hides all that, and its price is time. A lost or damaged packet (a wrong
//! checksum is a loss) is retransmitted: after one round trip, taken as 2 L, if three packets of
//! the same message follow it (RFC 5681 section 3.2), else after the retransmission timer of
//! [`RTO_MIN`] above a round trip, doubled each time that is lost, too (RFC 6298 section 5). The
//! message arrives with its last byte, and whatever comes behind it waits (head of line blocking).
//! So does what jitter and reordering would let pass. Duplicates are invisible. A retransmission
//! takes no time on the link: at 1 % loss its rate is 1 % too high. A full queue is the caller's
//! to respect: see [`Lane::has_room`].

use std::collections::VecDeque;

use fastrand::Rng;
use perf::model::loggp::{Link, Occupancy};
use perf::units::{Instant, Nanos};

use super::conditions::{Conditions, DELAY_MAX, Jitter, OutageKind, Ppm};

/// What the retransmission timer waits at least beyond a round trip: Linux's TCP_RTO_MIN.
pub const RTO_MIN: Nanos = Nanos::from_millis(200);

/// Longest wait between two transmissions of one segment: Linux's TCP_RTO_MAX.
const RTO_MAX: Nanos = Nanos::from_secs(120);

/// Transmissions of one segment after which it arrives, whatever the odds: hours later.
const TRANSMISSIONS_MAX: u32 = 64;

/// Packets behind a lost one that tell its sender soon (RFC 5681: three duplicate ACKs).
const DUPLICATE_ACKS: u64 = 3;

/// Stalls that may follow each other without a pause between before one ends all the same.
const STALLS_MAX: u32 = 64;

/// Packets that a queue with a bound holds, however small they are: 4 MiB of memory for the
/// queue itself, and more than the largest holds of full Ethernet frames.
const QUEUE_PACKETS_MAX: usize = 1 << 18;

const IP_HEADER_BYTES: u64 = 20;
const UDP_HEADER_BYTES: u64 = 8;
const TCP_HEADER_BYTES: u64 = 20;

/// Why a datagram was lost.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lost {
    Chance,
    Partition,
    /// The queue of the link was full.
    Queue,
    /// The emulator holds as much as it may.
    Held,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fate {
    /// The link begins with it: it was free, and nothing stalled it.
    pub starts: Instant,
    /// The last byte has left, or would have.
    pub departs: Instant,
    /// On a stream never lost.
    pub arrival: Result<Instant, Lost>,
    /// It arrives once more.
    pub again: Option<Instant>,
    /// It was held back so that others overtake it.
    pub reordered: bool,
    /// Number of the bit that is wrong, from the first on.
    pub flipped_bit: Option<u64>,
    /// Packets that it took.
    pub packets: u64,
    /// Packets that were retransmitted: on streams.
    pub retransmissions: u64,
}

/// When something is on the link, from the first byte to the last.
#[derive(Clone, Copy, Debug)]
struct OnLink {
    starts: Instant,
    departs: Instant,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Lane {
    conditions: Conditions,
    /// When the conditions came into force.
    begun: Instant,
    occupancy: Occupancy,
    random: Rng,
    /// What waits for the link or is on it: until when, and its bytes with headers. Recorded only
    /// where there is a bound, which also bounds it.
    queue: VecDeque<(Instant, u64)>,
    queue_bytes: u64,
    /// When the last message of the stream arrives.
    latest: Instant,
}

impl Lane {
    /// The same seed and the same messages at the same times have the same fates.
    pub fn new(conditions: Conditions, seed: u64, begun: Instant) -> Self {
        Self {
            conditions,
            begun,
            occupancy: Occupancy::default(),
            random: Rng::with_seed(seed),
            queue: VecDeque::new(),
            queue_bytes: 0,
            latest: Instant::EPOCH,
        }
    }

    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// From now on it is like this. What was decided stays.
    pub fn replace(&mut self, conditions: Conditions, begun: Instant) {
        if conditions.queue_bytes_max.is_none() {
            self.queue.clear();
            self.queue_bytes = 0;
        }
        self.conditions = conditions;
        self.begun = begun;
    }

    /// Bytes that wait for the link or are on it, with their headers; none are counted where the
    /// queue has no bound.
    pub fn queue_bytes(&mut self, now: Instant) -> u64 {
        while let Some(&(departs, bytes)) = self.queue.front()
            && departs <= now
        {
            self.queue_bytes -= bytes;
            self.queue.pop_front();
        }
        self.queue_bytes
    }

    /// Whether a stream may give another message: one over the bound is taken.
    pub fn has_room(&mut self, now: Instant) -> bool {
        let queued = self.queue_bytes(now);
        let is_below = |max| queued < max && self.queue.len() < QUEUE_PACKETS_MAX;
        self.conditions.queue_bytes_max.is_none_or(is_below)
    }

    /// When there is more room than at the last look.
    pub fn room_at(&self) -> Option<Instant> {
        self.queue.front().map(|&(departs, _)| departs)
    }

    /// A datagram with `bytes` of payload is sent.
    pub fn datagram(&mut self, now: Instant, bytes: u64) -> Fate {
        let packets = match self.conditions.mtu {
            None => Packets::whole(bytes),
            Some(mtu) => Packets::fragments(bytes, mtu),
        };
        let (on_link, cut) = self.transmit_or_drop(now, &packets);
        let departs = on_link.departs;
        let mut fate = Fate::of(on_link, packets.count);
        let lost = match cut {
            Some(lost) => Some(lost),
            None if self.is_partitioned(departs) => Some(Lost::Partition),
            None => {
                let lost = self.conditions.lost;
                let lost = (0..packets.count).filter(|_| self.chance(lost)).count();
                (lost > 0).then_some(Lost::Chance)
            }
        };
        if let Some(lost) = lost {
            fate.arrival = Err(lost);
            return fate;
        }
        let mut arrives = departs + self.latency();
        if self.chance(self.conditions.reordered.share) {
            arrives += self.conditions.reordered.by;
            fate.reordered = true;
        }
        fate.arrival = Ok(arrives);
        if self.chance(self.conditions.duplicated) {
            fate.again = Some(departs + self.latency());
        }
        if self.chance(self.conditions.corrupted) && bytes > 0 {
            fate.flipped_bit = Some(self.random.u64(0..bytes * 8));
        }
        fate
    }

    /// A message of the only stream is sent: `bytes` with its record mark.
    pub fn message(&mut self, now: Instant, bytes: u64) -> Fate {
        let mut fate = self.message_of_many(now, bytes);
        self.latest = self.latest.max(fate.arrival.unwrap_or(fate.departs));
        fate.arrival = Ok(self.latest);
        fate
    }

    /// The same of one of several streams: that what is behind it in the same one waits for it is
    /// the caller's to see to.
    pub fn message_of_many(&mut self, now: Instant, bytes: u64) -> Fate {
        let packets = match self.conditions.mtu {
            None => Packets::whole(bytes),
            Some(mtu) => Packets::segments(bytes, mtu),
        };
        let on_link = self.transmit(now, packets.bytes, self.conditions.link.gap);
        let departs = on_link.departs;
        let mut fate = Fate::of(on_link, packets.count);
        let mut arrives = departs + self.latency() + self.retransmitted(departs, &mut fate);
        if self.chance(self.conditions.reordered.share) {
            arrives += self.conditions.reordered.by;
            fate.reordered = true;
        }
        fate.arrival = Ok(arrives);
        fate
    }

    /// How much later the message's last byte is there because packets were lost.
    fn retransmitted(&mut self, departs: Instant, fate: &mut Fate) -> Nanos {
        let conditions = &self.conditions;
        let share = Ppm(conditions.lost.0.saturating_add(conditions.corrupted.0));
        let (link, partitioned) = (conditions.link, self.is_partitioned(departs));
        if share == Ppm::NONE && !partitioned {
            return Nanos::ZERO;
        }
        let round_trip = link.latency + link.latency;
        let mut longest = Nanos::ZERO;
        for behind in (0..fate.packets).rev() {
            if !partitioned && !self.chance(share) {
                continue;
            }
            let mut rto = round_trip + RTO_MIN;
            let mut waited = match behind >= DUPLICATE_ACKS && !partitioned {
                true => round_trip,
                false => rto,
            };
            for _ in 1..TRANSMISSIONS_MAX {
                fate.retransmissions += 1;
                if !self.is_partitioned(departs + waited) && !self.chance(share) {
                    break;
                }
                rto = (rto + rto).min(RTO_MAX);
                waited += rto;
            }
            longest = longest.max(waited);
            if partitioned {
                // All of them are lost, and go again together.
                break;
            }
        }
        longest
    }

    /// Puts the packets of a datagram on the link, as far as the queue takes them.
    fn transmit_or_drop(&mut self, now: Instant, packets: &Packets) -> (OnLink, Option<Lost>) {
        let Some(max) = self.conditions.queue_bytes_max else {
            return (self.transmit(now, packets.bytes, self.conditions.link.gap), None);
        };
        let mut dropped = None;
        let mut passed: Option<OnLink> = None;
        let mut left = packets.bytes;
        for index in 1..=packets.count {
            let bytes = if index == packets.count { left } else { packets.each.min(left) };
            left -= bytes;
            let is_over = self.queue_bytes(now) + bytes > max;
            if is_over || self.queue.len() >= QUEUE_PACKETS_MAX {
                dropped = Some(Lost::Queue);
                continue;
            }
            let gap = if index == packets.count { self.conditions.link.gap } else { Nanos::ZERO };
            let packet = self.transmit(now, bytes, gap);
            let starts = passed.map_or(packet.starts, |first| first.starts);
            passed = Some(OnLink { starts, ..packet });
        }
        (passed.unwrap_or(OnLink { starts: now, departs: now }), dropped)
    }

    fn transmit(&mut self, now: Instant, bytes: u64, gap: Nanos) -> OnLink {
        let link = Link { gap, ..self.conditions.link };
        let starts = self.after_stalls(now.max(self.occupancy.free_at()));
        let departs = self.occupancy.admit(&link, starts, bytes).departs;
        if self.conditions.queue_bytes_max.is_some() {
            self.queue.push_back((departs, bytes));
            self.queue_bytes += bytes;
        }
        OnLink { starts, departs }
    }

    /// The first moment from `now` on at which nothing stalls.
    fn after_stalls(&self, now: Instant) -> Instant {
        let mut clear = now;
        for _ in 0..STALLS_MAX {
            match self.outage(OutageKind::Stall, clear) {
                Some(end) => clear = end,
                None => break,
            }
        }
        clear
    }

    fn is_partitioned(&self, now: Instant) -> bool {
        self.outage(OutageKind::Partition, now).is_some()
    }

    fn outage(&self, kind: OutageKind, now: Instant) -> Option<Instant> {
        let outages = self.conditions.schedule.iter().filter(|outage| outage.kind == kind);
        outages.filter_map(|outage| outage.end(self.begun, now)).max()
    }

    fn chance(&mut self, share: Ppm) -> bool {
        share > Ppm::NONE && self.random.u32(0..Ppm::ALL.0) < share.0
    }

    /// L, give or take the jitter.
    fn latency(&mut self) -> Nanos {
        let latency = self.conditions.link.latency;
        match self.conditions.jitter {
            Jitter::None => latency,
            Jitter::Uniform(span) => {
                latency + Nanos::from_nanos(self.random.u64(0..=span.as_nanos()))
            }
            Jitter::Normal(deviation) => {
                let secs = deviation.as_secs_f64() * self.standard_normal();
                match secs < 0.0 {
                    true => latency.saturating_sub(Nanos::from_secs_f64(-secs)),
                    false => latency + added(secs),
                }
            }
            Jitter::Exponential(mean) => {
                latency + added(mean.as_secs_f64() * -(1.0 - self.random.f64()).ln())
            }
            Jitter::Pareto { scale, shape } => {
                let tail = (1.0 - self.random.f64()).powf(-1.0 / shape) - 1.0;
                latency + added(scale.as_secs_f64() * tail)
            }
        }
    }

    /// By the polar form of Box and Muller (1958).
    fn standard_normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.f64()).cos()
    }
}

/// Tails are cut where nothing is requested either.
fn added(secs: f64) -> Nanos {
    Nanos::from_secs_f64(secs).min(DELAY_MAX)
}

impl Fate {
    fn of(OnLink { starts, departs }: OnLink, packets: u64) -> Self {
        Self {
            starts,
            departs,
            arrival: Ok(departs),
            again: None,
            reordered: false,
            flipped_bit: None,
            packets,
            retransmissions: 0,
        }
    }
}

/// How a message is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Packets {
    count: u64,
    /// All of them, with their headers.
    bytes: u64,
    /// Each but the last.
    each: u64,
}

impl Packets {
    fn whole(bytes: u64) -> Self {
        Self { count: 1, bytes, each: bytes }
    }

    /// RFC 791 section 3.2: every fragment but the last carries a multiple of 8 bytes.
    fn fragments(bytes: u64, mtu: u16) -> Self {
        let payload = bytes + UDP_HEADER_BYTES;
        let room = (u64::from(mtu).saturating_sub(IP_HEADER_BYTES)).max(8);
        let each = room / 8 * 8;
        let count = 1 + payload.saturating_sub(room).div_ceil(each);
        Self { count, bytes: payload + count * IP_HEADER_BYTES, each: each + IP_HEADER_BYTES }
    }

    /// Segments of TCP without options.
    fn segments(bytes: u64, mtu: u16) -> Self {
        let headers = IP_HEADER_BYTES + TCP_HEADER_BYTES;
        let each = (u64::from(mtu).saturating_sub(headers)).max(1);
        let count = bytes.div_ceil(each).max(1);
        Self { count, bytes: bytes + count * headers, each: each + headers }
    }
}

#[cfg(test)]
mod tests;
