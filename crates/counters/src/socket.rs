//! TCP connections with what the kernel knows of each: what `ss -tino` prints, and what
//! sock_diag(7) answers, which becomes the same text ([`Connection::text`]).
//!
//! A connection is a line that begins with its state; what is known of it follows, on the same
//! line or on the next. Of that, what says something about NFS is read, by name; the rest is
//! passed over, since every version of ss has other words.

use std::net::{IpAddr, SocketAddr};

use super::fields::Line;
use super::problem::{Problem, Wrong};
use super::rpc::bounded;

/// Connections of one text, at most.
pub const CONNECTIONS_MAX: usize = 65_536;

/// One TCP connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connection {
    pub state: String,
    pub received_queue: u64,
    pub sent_queue: u64,
    /// `ADDRESS:PORT`.
    pub local: String,
    pub peer: String,
    /// Smoothed and smallest round trip, ms.
    pub rtt_ms: Option<f64>,
    pub rtt_min_ms: Option<f64>,
    pub window_packets: Option<u64>,
    pub segment_bytes: Option<u64>,
    /// Segments that were retransmitted since it was made, of those that were sent.
    pub retransmitted: Option<u64>,
    pub segments_sent: Option<u64>,
    pub delivery_bits_per_s: Option<f64>,
    /// Shares of its busy time in which the peer's window, or our send buffer, held it up, percent.
    pub peer_limited: Option<f64>,
    pub buffer_limited: Option<f64>,
}

impl Connection {
    /// The port of the other end.
    pub fn peer_port(&self) -> Option<u16> {
        self.peer.rsplit_once(':')?.1.parse().ok()
    }

    /// The address of the other end, without brackets and without an interface.
    pub fn peer_address(&self) -> &str {
        let host = self.peer.rsplit_once(':').map_or(self.peer.as_str(), |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let host = host.split('%').next().unwrap_or(host);
        host.strip_prefix("::ffff:").unwrap_or(host)
    }

    /// As ss prints it, with the words that [`read`] knows.
    pub fn text(&self) -> String {
        let Self { state, received_queue, sent_queue, local, peer, .. } = self;
        let mut text = format!("{state} {received_queue} {sent_queue} {local} {peer}\n\t");
        let mut say = |word: Option<String>| text.extend(word.map(|word| format!(" {word}")));
        say(self.rtt_ms.map(|ms| format!("rtt:{ms:.3}/0")));
        say(self.rtt_min_ms.map(|ms| format!("minrtt:{ms:.3}")));
        say(self.window_packets.map(|packets| format!("cwnd:{packets}")));
        say(self.segment_bytes.map(|bytes| format!("mss:{bytes}")));
        say(self.retransmitted.map(|segments| format!("retrans:0/{segments}")));
        say(self.segments_sent.map(|segments| format!("segs_out:{segments}")));
        say(self.delivery_bits_per_s.map(|rate| format!("delivery_rate {rate:.0}bps")));
        say(self.peer_limited.map(|percent| format!("rwnd_limited:0ms({percent:.1}%)")));
        say(self.buffer_limited.map(|percent| format!("sndbuf_limited:0ms({percent:.1}%)")));
        text.push('\n');
        text
    }

    /// One answer of sock_diag(7): `inet_diag_msg`, then attributes with `tcp_info` among them
    /// (linux/inet_diag.h, linux/tcp.h). None where it is cut off or of another family.
    pub fn of_diag(message: &[u8]) -> Option<Self> {
        const HEAD_LEN: usize = 72;
        let word = |at: usize| Some(u32::from_ne_bytes(*message.get(at..)?.first_chunk()?));
        let port = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?));
        let address = |at: usize| match message.first()? {
            2 => Some(IpAddr::from(*message.get(at..)?.first_chunk::<4>()?)),
            10 => Some(IpAddr::from(*message.get(at..)?.first_chunk::<16>()?)),
            _ => None,
        };
        let mut connection = Self {
            state: "ESTAB".to_owned(),
            received_queue: u64::from(word(56)?),
            sent_queue: u64::from(word(60)?),
            local: SocketAddr::new(address(8)?, port(4)?).to_string(),
            peer: SocketAddr::new(address(24)?, port(6)?).to_string(),
            ..Self::default()
        };
        let mut rest = message.get(HEAD_LEN..)?;
        while let Some(head) = rest.first_chunk::<4>() {
            const INET_DIAG_INFO: u16 = 2;
            let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            if u16::from_ne_bytes([head[2], head[3]]) == INET_DIAG_INFO {
                connection.info(rest.get(4..len)?);
            }
            rest = rest.get(len.max(4).next_multiple_of(4)..).unwrap_or_default();
        }
        Some(connection)
    }

    /// `tcp_info`, of which older kernels have less.
    fn info(&mut self, info: &[u8]) {
        let word = |at: usize| {
            let bytes = info.get(at..)?.first_chunk()?;
            Some(u64::from(u32::from_ne_bytes(*bytes)))
        };
        let long = |at: usize| Some(u64::from_ne_bytes(*info.get(at..)?.first_chunk()?));
        let ms = |at: usize| word(at).filter(|us| *us > 0 && *us < u64::from(u32::MAX));
        self.segment_bytes = word(16);
        self.rtt_ms = ms(68).map(|us| us as f64 / 1e3);
        self.window_packets = word(80);
        self.retransmitted = word(100);
        self.segments_sent = word(136);
        self.rtt_min_ms = ms(148).map(|us| us as f64 / 1e3);
        let rate = long(160).filter(|rate| *rate > 0);
        self.delivery_bits_per_s = rate.map(|bytes| bytes as f64 * 8.0);
        let of_busy = |at: usize| {
            let busy = long(168).filter(|busy| *busy > 0)?;
            Some((long(at)? as f64 / busy as f64 * 100.0).min(100.0))
        };
        (self.peer_limited, self.buffer_limited) = (of_busy(176), of_busy(184));
    }

    fn take(&mut self, word: &str) {
        if let Some((name, value)) = word.split_once(':') {
            let parts = || value.split('/');
            match name {
                "rtt" => self.rtt_ms = parts().next().and_then(number),
                "minrtt" => self.rtt_min_ms = number(value),
                "cwnd" => self.window_packets = value.parse().ok(),
                "mss" => self.segment_bytes = value.parse().ok(),
                "retrans" => self.retransmitted = parts().nth(1).and_then(|n| n.parse().ok()),
                "segs_out" => self.segments_sent = value.parse().ok(),
                "rwnd_limited" => self.peer_limited = percent(value),
                "sndbuf_limited" => self.buffer_limited = percent(value),
                _ => {}
            }
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// `12ms(3.4%)`.
fn percent(text: &str) -> Option<f64> {
    number(text.split_once('(')?.1.strip_suffix("%)")?)
}

/// `1.2Gbps`.
fn rate(text: &str) -> Option<f64> {
    let text = text.strip_suffix("bps")?;
    let scales = [("G", 1e9), ("M", 1e6), ("K", 1e3)];
    let scaled = scales.iter().find_map(|(unit, by)| Some((text.strip_suffix(unit)?, by)));
    scaled.map_or_else(|| number(text), |(digits, by)| Some(number(digits)? * by))
}

const STATES: [&str; 11] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "CLOSE-WAIT",
    "LAST-ACK",
    "CLOSING",
    "LISTEN",
    "UNCONN",
];

/// Whether this is what ss prints.
pub fn is_likely(text: &str) -> bool {
    let mut words = text.lines().take(1_000).map(|line| line.split_whitespace().next());
    words.any(|word| word.is_some_and(|word| STATES.contains(&word)))
}

/// Reads a text.
///
/// # Errors
/// The first connection whose line is broken, or none.
pub fn read(text: &[u8]) -> Result<Vec<Connection>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut connections: Vec<Connection> = Vec::new();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let mut words = line;
        let mut first = words.word();
        if matches!(first.text, "tcp" | "tcp6") {
            first = words.word();
        }
        if STATES.contains(&first.text) {
            if connections.len() == CONNECTIONS_MAX {
                let wrong = Wrong::TooMany { what: "connections", max: CONNECTIONS_MAX };
                return Err(first.wrong(wrong));
            }
            connections.push(head(first.text, &mut words)?);
            line = words;
        }
        let Some(connection) = connections.last_mut() else { continue };
        let mut after_rate = false;
        for word in line.words() {
            if after_rate {
                connection.delivery_bits_per_s = rate(word.text);
            }
            after_rate = word.text == "delivery_rate";
            connection.take(word.text);
        }
    }
    if connections.is_empty() {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(connections)
}

/// The words behind the state: queues and ends.
fn head(state: &str, words: &mut Line<'_>) -> Result<Connection, Problem> {
    let (received_queue, sent_queue) = (words.number()?, words.number()?);
    let (local, peer) = (words.word().text.to_owned(), words.word());
    if peer.text.is_empty() {
        return Err(peer.unexpected("the address of the other end"));
    }
    Ok(Connection {
        state: state.to_owned(),
        received_queue,
        sent_queue,
        local,
        peer: peer.text.to_owned(),
        ..Connection::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      264      10.0.0.2:789     10.0.0.1:2049  timer:(on,200ms,0)
\t cubic wscale:7,7 rto:201 rtt:0.512/0.1 ato:40 mss:1448 pmtu:1500 cwnd:10 bytes_sent:99 \
bytes_retrans:9 segs_out:100 segs_in:90 send 226250000bps delivery_rate 1.5Gbps busy:100ms \
rwnd_limited:12ms(12.0%) retrans:0/3 minrtt:0.2
ESTAB 0 0 [fd00::2%eth0]:1000 [::ffff:10.0.0.9]:2049 rtt:5/2
";

    #[test]
    fn connections_are_read_from_one_line_or_two() {
        let connections = read(TEXT.as_bytes()).unwrap();
        let [first, second] = &connections[..] else { panic!("{connections:?}") };
        assert_eq!((first.peer_port(), first.peer_address()), (Some(2049), "10.0.0.1"));
        assert_eq!((first.rtt_ms, first.rtt_min_ms), (Some(0.512), Some(0.2)));
        assert_eq!((first.retransmitted, first.segments_sent), (Some(3), Some(100)));
        assert_eq!((first.delivery_bits_per_s, first.peer_limited), (Some(1.5e9), Some(12.0)));
        assert_eq!((second.peer_address(), second.rtt_ms), ("10.0.0.9", Some(5.0)));
    }

    /// What the kernel would answer for 10.0.0.2:700 -> 10.0.0.1:2049.
    fn diag() -> Vec<u8> {
        let mut message = vec![0; 72];
        message[0] = 2;
        message[4..8].copy_from_slice(&[700_u16.to_be_bytes(), 2049_u16.to_be_bytes()].concat());
        message[8..12].copy_from_slice(&[10, 0, 0, 2]);
        message[24..28].copy_from_slice(&[10, 0, 0, 1]);
        message[60..64].copy_from_slice(&264_u32.to_ne_bytes());
        let mut info = vec![0; 192];
        for (at, value) in [(16, 1448_u32), (68, 512), (80, 10), (100, 3), (136, 100), (148, 200)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        info[168..176].copy_from_slice(&1000_u64.to_ne_bytes());
        info[176..184].copy_from_slice(&120_u64.to_ne_bytes());
        message.extend([196_u16.to_ne_bytes(), 2_u16.to_ne_bytes()].concat());
        message.extend(info);
        message
    }

    #[test]
    fn what_the_kernel_answers_is_what_ss_would_print() {
        let connection = Connection::of_diag(&diag()).unwrap();
        assert_eq!((connection.rtt_ms, connection.rtt_min_ms), (Some(0.512), Some(0.2)));
        assert_eq!((connection.retransmitted, connection.peer_limited), (Some(3), Some(12.0)));
        assert_eq!((connection.sent_queue, connection.peer.as_str()), (264, "10.0.0.1:2049"));
        let [again] = &read(connection.text().as_bytes()).unwrap()[..] else { panic!("one") };
        assert_eq!(*again, connection);
        for end in 0..diag().len() {
            Connection::of_diag(&diag()[..end]);
        }
        assert_eq!(Connection::of_diag(&[]), None);
    }

    #[test]
    fn what_is_broken_has_its_place() {
        assert!(read(b"ESTAB 0 x").unwrap_err().to_string().contains("column 9: \"x\""));
        assert!(read(b"ESTAB 0 0 a:1").unwrap_err().to_string().contains("the other end"));
        assert!(read(b"hello").is_err() && !is_likely("hello") && is_likely(TEXT));
    }
}
