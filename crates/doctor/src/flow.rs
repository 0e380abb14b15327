//! The bytes of a mount, a second: whether they may stand in a queue of their own.

use super::subject::Mounted;

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    sent: f64,
    received: f64,
    /// What TCP says that it delivers, on all connections of the mount.
    pub delivered_bits_per_s: Option<f64>,
}

impl Flow {
    /// Bytes that make a queue. A guess.
    pub const QUEUE_BYTES: f64 = 16_384.0;

    /// The share of what TCP delivers, below which it is sent in bursts. A guess.
    pub const DELIVERED: f64 = 0.5;

    pub fn of(mount: &Mounted<'_>) -> Self {
        let total = mount.total();
        let seconds = mount.rates.span.seconds.unwrap_or(0.0).max(0.001);
        let per_s = |bytes: u64| bytes as f64 / seconds;
        let (sent, received) = (per_s(total.sent_bytes), per_s(total.received_bytes));
        let delivered = mount.connections.iter().filter_map(|one| one.delivery_bits_per_s);
        Self { sent, received, delivered_bits_per_s: delivered.reduce(|sum, one| sum + one) }
    }

    pub fn bytes_per_s(&self) -> f64 {
        self.sent.max(self.received)
    }

    /// Whether as many bytes come in that time.
    pub fn fills(&self, queue_ms: f64, bytes: f64) -> bool {
        self.bytes_per_s() * queue_ms / 1e3 >= bytes
    }

    /// Whether bursts are sent far below what the path can: somebody else holds it up.
    pub fn is_in_bursts(&self, share: f64) -> bool {
        let is_below = |rate: f64| self.sent > self.received && self.sent * 8.0 < share * rate;
        self.delivered_bits_per_s.is_some_and(is_below)
    }
}
