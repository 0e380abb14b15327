//! How much to transfer in one datagram: a plain state machine.
//!
//! A datagram that is larger than a packet is cut into fragments, and losing one of them loses it
//! all: where one packet of a hundred is lost, a fifth of the datagrams of 32 KiB is. Sending the
//! same large datagram again meets the same odds, so the size has to give. It is halved when two
//! of the last 16 transfers of about that size had to be retransmitted, and doubled, up to what it
//! was at first, when 128 in a row and for a second were not.
//!
//! In worlds with one packet in a hundred lost and a round trip of 2 ms, 8 MiB in four files took
//! 5.6 s to write and read (mean of six seeds), where six of 16 halve the size 6.8 s, and 10.2 s
//! where nothing does.

use perf::units::{Instant, Nanos};

/// Least: with its headers it still goes into one packet of an Ethernet.
const BYTES_MIN: u32 = 1024;

/// Lost ones of the last 16 that are borne.
const LOST_MAX: u32 = 1;

/// Transfers in a row without loss after which a larger size is tried.
const UNLOST_MIN: u32 = 128;

/// And time without loss. An answer is known after a round trip and a loss only when the wait for
/// one is over, a tenth of a second at least: before that every size looks well.
const UNLOST_SPAN_MIN: Nanos = Nanos::from_secs(1);

/// The size for one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferSize {
    bytes_max: u32,
    bytes: u32,
    /// A bit for each of the last 16 transfers, set where it was lost.
    history: u16,
    unlost: u32,
    /// When the size was last changed, or something lost.
    unlost_since: Instant,
    /// What was sent before has been judged by another size.
    changed: Instant,
}

impl TransferSize {
    pub(super) fn new(bytes_max: u32) -> Self {
        let start = Instant::EPOCH;
        let (history, unlost) = (0, 0);
        Self { bytes_max, bytes: bytes_max, history, unlost, unlost_since: start, changed: start }
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// A transfer of `bytes` was answered after it had been sent once.
    pub(super) fn answered(&mut self, sent: Instant, now: Instant, bytes: usize) {
        if !self.counts(sent, bytes) {
            return;
        }
        self.history <<= 1;
        self.unlost += 1;
        let is_well = self.unlost >= UNLOST_MIN && now.since(self.unlost_since) >= UNLOST_SPAN_MIN;
        if is_well && self.bytes < self.bytes_max {
            self.change(now, self.bytes.saturating_mul(2).min(self.bytes_max));
        }
    }

    /// A transfer of `bytes`, last sent at `sent`, has to be retransmitted.
    pub(super) fn lost(&mut self, sent: Instant, now: Instant, bytes: usize) {
        if !self.counts(sent, bytes) {
            return;
        }
        self.history = self.history << 1 | 1;
        (self.unlost, self.unlost_since) = (0, now);
        if self.history.count_ones() > LOST_MAX && self.bytes > BYTES_MIN {
            self.change(now, (self.bytes / 2).max(BYTES_MIN));
        }
    }

    /// Small ones tell nothing about large ones.
    fn counts(&self, sent: Instant, bytes: usize) -> bool {
        sent >= self.changed && bytes >= self.bytes as usize / 2
    }

    fn change(&mut self, now: Instant, bytes: u32) {
        *self = Self { bytes, changed: now, unlost_since: now, ..Self::new(self.bytes_max) };
    }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + Nanos::from_millis(millis)
    }

    #[test]
    fn a_loss_now_and_then_changes_nothing_and_two_of_sixteen_halve_the_size() {
        let mut size = TransferSize::new(32_768);
        for round in 0..20 {
            size.lost(at(0), at(1), 32_768);
            (0..16).for_each(|_| size.answered(at(0), at(1), 32_768));
            assert_eq!(size.bytes(), 32_768, "{round}");
        }
        size.lost(at(0), at(1), 32_768);
        size.lost(at(0), at(1), 32_768);
        assert_eq!(size.bytes(), 16_384);
        // Those that were under way say nothing about the new size.
        (0..16).for_each(|_| size.lost(at(0), at(2), 32_768));
        assert_eq!(size.bytes(), 16_384);
    }

    #[test]
    fn the_size_has_a_floor_and_comes_back_to_what_it_was() {
        let mut size = TransferSize::new(32_768);
        (0..100).for_each(|now| size.lost(at(now), at(now), 32_768));
        assert_eq!(size.bytes(), BYTES_MIN);
        let mut grown = Vec::new();
        for now in (100..100_000).step_by(20) {
            let bytes = size.bytes();
            size.answered(at(now), at(now), bytes as usize);
            if size.bytes() != bytes {
                grown.push(size.bytes());
            }
        }
        assert_eq!(grown, [2_048, 4_096, 8_192, 16_384, 32_768]);
    }

    #[test]
    fn small_transfers_tell_nothing_about_large_ones() {
        let mut size = TransferSize::new(32_768);
        (0..100).for_each(|_| size.lost(at(1), at(1), 1_000));
        assert_eq!(size.bytes(), 32_768);
    }
}
