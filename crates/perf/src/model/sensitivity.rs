//! What a change of L, o or G does to a server: base response time, saturation, threshold.
//!
//! ```text
//! d(base) / dL     = round trips one after the other x 2
//! saturation(o)    = 1 / (S + k o)         o: added to each message, S: with what was there before
//! k                = messages that the server sends and takes for an operation
//! G threshold      = 1 / (rate x bytes of the busier direction)
//! ```
//!
//! k follows from the mix of operations and from how messages are cut into packets: two for a call
//! and its reply, and one more for each further packet of a READ's reply or a WRITE's call. The
//! paper says 2.4; its own mix (7 % writes, 14 % reads, 8 KiB) and MTU (3.5 KB) give 2.42.
//!
//! Source: Martin & Culler 1999, section 4.3 (the relations), 3.1 (the MTU), 5.1.2 and 5.3 (what
//! was measured).

use super::error::{ModelError, not_negative, positive, share, within};

/// How a message becomes packets, each of which costs an o.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Packets {
    /// One for each message: o is charged by message, as an emulated link does.
    Whole,
    /// IP fragments of a datagram, for a maximum transmission unit in bytes.
    Udp { mtu_bytes: u32 },
    /// Segments of a stream, with time stamps; acknowledgements are not counted.
    Tcp { mtu_bytes: u32 },
}

/// Smallest unit that an IP network may have (RFC 791, section 3.2), and the largest packet.
pub const MTU_BYTES: std::ops::RangeInclusive<u32> = 68..=65_535;

const IP_HEADER_BYTES: u64 = 20;
const UDP_HEADER_BYTES: u64 = 8;
/// With the time stamps of RFC 7323, padded.
const TCP_HEADER_BYTES: u64 = 32;
const RECORD_MARK_BYTES: u64 = 4;

impl Packets {
    /// Fails where the unit is none that IP knows.
    pub fn check(self) -> Result<Self, ModelError> {
        if let Self::Udp { mtu_bytes } | Self::Tcp { mtu_bytes } = self {
            let (min, max) = (*MTU_BYTES.start(), *MTU_BYTES.end());
            within("MTU", mtu_bytes.into(), min.into(), max.into())?;
        }
        Ok(self)
    }

    /// Packets of an RPC message of so many bytes; at least one. A unit that IP does not know is
    /// taken as the nearest it does.
    pub fn of(self, message_bytes: u64) -> u64 {
        let room = |mtu_bytes: u32, headers: u64| {
            u64::from(mtu_bytes.clamp(*MTU_BYTES.start(), *MTU_BYTES.end())) - headers
        };
        match self {
            Self::Whole => 1,
            Self::Udp { mtu_bytes } => {
                // Fragments begin at multiples of 8 bytes (RFC 791, section 3.2).
                let room = room(mtu_bytes, IP_HEADER_BYTES) / 8 * 8;
                message_bytes.saturating_add(UDP_HEADER_BYTES).div_ceil(room)
            }
            Self::Tcp { mtu_bytes } => {
                let room = room(mtu_bytes, IP_HEADER_BYTES + TCP_HEADER_BYTES);
                message_bytes.saturating_add(RECORD_MARK_BYTES).div_ceil(room)
            }
        }
    }
}

/// One kind of operation in a mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Of all operations, of 1.
    pub share: f64,
    /// RPC message with its data: what the client sends.
    pub call_bytes: u64,
    /// What the server sends back.
    pub reply_bytes: u64,
}

/// What operations a load is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    shares: Vec<Share>,
}

/// RPC and NFS headers of a call or a reply, to the nearest hundred bytes: too few to matter.
const HEADERS_BYTES: u64 = 150;

impl Mix {
    /// Fails unless the shares are shares and sum to 1 (within 1 %, for printed tables).
    pub fn new(shares: Vec<Share>) -> Result<Self, ModelError> {
        for part in &shares {
            share("share of an operation", part.share)?;
        }
        let sum: f64 = shares.iter().map(|part| part.share).sum();
        if (sum - 1.0).abs() > 0.01 {
            return Err(ModelError::NotShare { what: "sum of the shares", got: sum });
        }
        Ok(Self { shares })
    }

    /// READs and WRITEs of one size, and for the rest small calls with small replies.
    pub fn of_data(reads: f64, writes: f64, data_bytes: u32) -> Result<Self, ModelError> {
        let data = HEADERS_BYTES + u64::from(data_bytes);
        let part = |share, call_bytes, reply_bytes| Share { share, call_bytes, reply_bytes };
        Self::new(vec![
            part(reads, HEADERS_BYTES, data),
            part(writes, data, HEADERS_BYTES),
            part(1.0 - reads - writes, HEADERS_BYTES, HEADERS_BYTES),
        ])
    }

    /// The paper's: SFS 2.0 with 14 % READ and 7 % WRITE of 8 KiB.
    pub fn paper() -> Self {
        Self::of_data(0.14, 0.07, 8192).expect("shares that sum to 1")
    }

    /// k: messages that an endpoint sends and takes for an operation, on average.
    pub fn messages_per_op(&self, packets: Packets) -> f64 {
        let of = |part: &Share| packets.of(part.call_bytes) + packets.of(part.reply_bytes);
        self.shares.iter().map(|part| part.share * of(part) as f64).sum()
    }

    /// Bytes of an operation towards the server and towards the client, on average.
    pub fn bytes_per_op(&self) -> (f64, f64) {
        let sum = |of: fn(&Share) -> u64| -> f64 {
            self.shares.iter().map(|part| part.share * of(part) as f64).sum()
        };
        (sum(|part| part.call_bytes), sum(|part| part.reply_bytes))
    }
}

/// 1 / (S + k o), operations a second: saturation of c processors (`cpus`) when each message costs
/// o (`added_us`, us) more. S (`service_us`, us) contains the o that was there before.
pub fn saturation_per_s(
    service_us: f64,
    cpus: u32,
    messages_per_op: f64,
    added_us: f64,
) -> Result<f64, ModelError> {
    positive("service time", service_us)?;
    within("processors", cpus.into(), 1, u32::MAX.into())?;
    not_negative("messages per operation", messages_per_op)?;
    not_negative("added overhead", added_us)?;
    Ok(f64::from(cpus) * 1e6 / (service_us + messages_per_op * added_us))
}

/// k from measured saturations: the slope of 1 / saturation over o, by least squares. With S, us.
///
/// Points are (o added in us, operations a second); one processor. Fails with fewer than two
/// different o, or a rate that is not above 0.
pub fn messages_per_op_from(points: &[(f64, f64)]) -> Result<Overhead, ModelError> {
    for &(added_us, per_s) in points {
        not_negative("added overhead", added_us)?;
        positive("saturation", per_s)?;
    }
    let (x, y): (Vec<f64>, Vec<f64>) =
        points.iter().map(|(added_us, per_s)| (*added_us, 1e6 / per_s)).unzip();
    let fit = crate::stats::fit_least_squares(&x, &y).map_err(|_| ModelError::Count {
        what: "different o",
        got: points.len(),
        need: 2,
    })?;
    Ok(Overhead { service_us: fit.intercept, messages_per_op: fit.slope, r_squared: fit.r_squared })
}

/// S and k as measured saturations show them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// S, us.
    pub service_us: crate::stats::Estimate,
    /// k.
    pub messages_per_op: crate::stats::Estimate,
    pub r_squared: f64,
}

/// d(base)/dL, us per us: an operation of `round_trips` calls one after the other, and L both ways.
/// The paper's operation is one call: 2. A directory walk or a READ of several blocks without
/// read-ahead is more.
pub fn base_per_latency(round_trips: f64) -> f64 {
    2.0 * round_trips
}

/// Rounds of round trips that an operation waits for, on average, if a request becomes several
/// operations and an operation's time counts from its request: `requests` are (share of requests,
/// operations in each), of which `outstanding` run at a time. `None` for an empty mix or a window
/// of 0.
pub fn rounds_per_op(requests: &[(f64, u32)], outstanding: u32) -> Option<f64> {
    if outstanding == 0 || requests.iter().any(|&(_, ops)| ops > 1 << 20) {
        return None;
    }
    let (mut ops_sum, mut rounds_sum) = (0.0, 0.0);
    for &(share, ops) in requests {
        let rounds: u64 = (1..=ops).map(|op| u64::from(op.div_ceil(outstanding))).sum();
        ops_sum += share * f64::from(ops);
        rounds_sum += share * rounds as f64;
    }
    (ops_sum > 0.0).then(|| rounds_sum / ops_sum)
}

/// The G (us per KiB) above which the busier direction of one link is full at this rate:
/// 1 / (rate x bytes). Arrivals in bursts feel a smaller one. Infinite at rate 0.
pub fn gap_threshold_us_per_kib(mix: &Mix, per_s: f64) -> f64 {
    let (calls, replies) = mix.bytes_per_op();
    1e6 * 1024.0 / (per_s * calls.max(replies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() <= relative, "{got} is not {want}");
    }

    #[test]
    fn the_papers_mix_and_mtu_give_its_2_4_messages() {
        let myrinet = Packets::Udp { mtu_bytes: 3584 };
        assert_eq!(myrinet.of(8192 + 150), 3); // "two extra fragments per read or write"
        assert_near(Mix::paper().messages_per_op(myrinet), 2.42, 1e-12);
        // The same load elsewhere.
        let k = |packets| Mix::paper().messages_per_op(packets);
        assert_near(k(Packets::Whole), 2.0, 1e-12);
        assert_near(k(Packets::Udp { mtu_bytes: 1500 }), 2.0 + 0.21 * 5.0, 1e-12);
        assert_near(k(Packets::Udp { mtu_bytes: 9000 }), 2.0, 1e-12);
        assert_near(k(Packets::Tcp { mtu_bytes: 1500 }), 2.0 + 0.21 * 5.0, 1e-12);
    }

    #[test]
    fn packets_are_counted_at_their_edges() {
        let ethernet = Packets::Udp { mtu_bytes: 1500 };
        // 1,480 bytes of a datagram, 8 of them the UDP header.
        assert_eq!([1, 1472, 1473, 2952, 2953].map(|bytes| ethernet.of(bytes)), [1, 1, 2, 2, 3]);
        let stream = Packets::Tcp { mtu_bytes: 1500 };
        assert_eq!([1, 1444, 1445].map(|bytes| stream.of(bytes)), [1, 1, 2]);
        assert!(Packets::Udp { mtu_bytes: 67 }.check().is_err());
        assert!(Packets::Udp { mtu_bytes: 0 }.of(u64::MAX) > 0);
    }

    #[test]
    fn saturation_falls_with_o_and_k_comes_back_from_it() {
        let at = |added_us| saturation_per_s(900.0, 1, 2.42, added_us).unwrap();
        assert_near(at(0.0), 1111.111, 1e-6);
        let points: Vec<(f64, f64)> =
            [0.0, 50.0, 100.0, 400.0].map(|added_us| (added_us, at(added_us))).into();
        let found = messages_per_op_from(&points).unwrap();
        assert_near(found.messages_per_op.value, 2.42, 1e-9);
        assert_near(found.service_us.value, 900.0, 1e-9);
        assert!(messages_per_op_from(&points[..1]).is_err());
        assert!(messages_per_op_from(&[(0.0, 1.0), (1.0, 0.0)]).is_err());
        assert!(saturation_per_s(0.0, 1, 2.0, 0.0).is_err());
    }

    /// SFS makes 1.64 READs and 2.0 WRITEs of a request (shares of 1, 3, 5, 9, 17 and, for WRITE,
    /// 2 operations). Were a READ's or WRITE's time counted from its request, with two outstanding
    /// as its clients have, L would count 2.3 times; one after the other 2.7 times. The paper
    /// measured 3.
    #[test]
    fn what_a_request_of_several_operations_can_explain_of_the_factor_of_three() {
        let reads = [(0.85, 1), (0.08, 3), (0.04, 5), (0.02, 9), (0.01, 17)];
        let writes = [(0.49, 1), (0.36, 2), (0.08, 3), (0.04, 5), (0.02, 9), (0.01, 17)];
        let factor = |outstanding| {
            let of = |requests| rounds_per_op(requests, outstanding).unwrap();
            base_per_latency(0.79 + 0.14 * of(&reads) + 0.07 * of(&writes))
        };
        assert_near(base_per_latency(1.0), 2.0, 1e-12);
        assert_near(factor(2), 2.29, 0.005);
        assert_near(factor(1), 2.68, 0.005);
        assert_eq!(rounds_per_op(&reads, 0), None);
        assert_eq!(rounds_per_op(&[], 1), None);
    }

    /// Section 5.3: nothing at 26 MB/s, a slight effect at 2.5 MB/s, a clear one at 1.25 MB/s.
    #[test]
    fn the_gap_matters_where_the_data_of_the_mix_fill_the_link() {
        let threshold = gap_threshold_us_per_kib(&Mix::paper(), 1000.0);
        let mb_per_s = 1024.0 / threshold;
        assert!((1.25..2.5).contains(&mb_per_s), "{mb_per_s} MB/s");
        assert_eq!(gap_threshold_us_per_kib(&Mix::paper(), 0.0), f64::INFINITY);
    }

    #[test]
    fn a_mix_that_is_none_is_refused() {
        assert!(Mix::of_data(0.8, 0.3, 8192).is_err());
        assert!(Mix::of_data(f64::NAN, 0.3, 8192).is_err());
        assert!(Mix::new(Vec::new()).is_err());
    }
}
