//! What the two ends tell each other over TCP, before and after a run.
//!
//! ```text
//!   far  -> near   "nfskit-stream 1\n"                     the greeting, at once
//!   near -> far    "nfskit-stream 1\n"
//!   near -> far    kind, message bytes, bytes, limit in ns (a request: four words)
//!   far  -> near   status, token                           (an answer: two words)
//!        ... the run ...
//!   far  -> near   what came, and when                     (a report: 12 words)
//! ```
//!
//! A word is an unsigned number of 64 bits, the highest byte first; all ones means that it is not
//! known. One connection carries one run. Over TCP the connection carries the messages, too, and
//! the near end ends its half after the last; runs over UDP use datagrams (see `datagram.rs`) to
//! the same port, and the connection says when they are over: two words, an order and how many
//! datagrams were sent.

use perf::units::Nanos;

use super::{DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MIN};

pub const VERSION: u32 = 1;
/// Where the far end listens by default. Ours by choice; nobody has registered it.
pub const PORT: u16 = 20_490;
pub(super) const GREETING: &[u8; 16] = b"nfskit-stream 1\n";
const GREETING_WORD: &str = "nfskit-stream ";

/// Longest run, and most bytes in one, that a far end takes part in.
pub const RUN_MAX: Nanos = Nanos::from_secs(3_600);
pub const RUN_BYTES_MAX: u64 = 1 << 44;
/// Largest message over TCP.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// What the far end sends when all bytes of a transfer have come over TCP.
pub(super) const SENTINEL: u64 = 0x5345_4e54_494e_454c;

/// Orders over the connection of a run with datagrams.
pub(super) const REPORT: u64 = 1;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Messages one way, as fast as they go.
    TcpStream,
    /// Each message comes back.
    TcpEcho,
    /// So many bytes one way, then a sentinel back.
    TcpTransfer,
    UdpStream,
    UdpEcho,
    UdpTransfer,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::TcpStream,
        Self::TcpEcho,
        Self::TcpTransfer,
        Self::UdpStream,
        Self::UdpEcho,
        Self::UdpTransfer,
    ];

    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::TcpStream | Self::TcpEcho | Self::TcpTransfer)
    }
}

/// What the near end asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    pub kind: Kind,
    pub message_bytes: u64,
    /// Of a transfer; of other runs the most that will come.
    pub bytes: u64,
    /// Within which the run will be over.
    pub limit: Nanos,
}

impl Request {
    pub(super) fn words(&self) -> [u64; 4] {
        let kind = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0) as u64;
        [kind, self.message_bytes, self.bytes, self.limit.as_nanos()]
    }

    /// What the words ask for, if it is within our limits.
    pub(super) fn from_words([kind, message_bytes, bytes, limit]: [u64; 4]) -> Option<Self> {
        let kind = *Kind::ALL.get(usize::try_from(kind).ok()?)?;
        let most = if kind.is_tcp() { MESSAGE_BYTES_MAX } else { DATAGRAM_BYTES_MAX };
        let request = Self { kind, message_bytes, bytes, limit: Nanos::from_nanos(limit) };
        let fits = (MESSAGE_BYTES_MIN as u64..=most as u64).contains(&message_bytes)
            && (1..=RUN_BYTES_MAX).contains(&bytes)
            && request.limit <= RUN_MAX;
        fits.then_some(request)
    }
}

/// What the far end says to a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Status {
    Go = 0,
    Busy = 1,
    Refused = 2,
}

/// What the far end saw of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Bytes of messages that came, each once.
    pub bytes: u64,
    /// Of these, what came first: the time began when it was there.
    pub first_bytes: u64,
    /// From the first to the last that came.
    pub span: Nanos,
    /// Datagrams, each once; over TCP the reads it took.
    pub messages: u64,
    /// Datagrams that had come before.
    pub duplicates: u64,
    /// Datagrams that came after one that was sent later.
    pub reordered: u64,
    /// Processor time of the far end's process.
    pub cpu: Nanos,
    /// Datagrams that the kernel dropped for want of room at the far end's socket (`None`: it does
    /// not say).
    pub socket_drops: Option<u64>,
    /// The same for all sockets of the far host (`UdpRcvbufErrors`), which has others' in it.
    pub host_receive_buffer_errors: Option<u64>,
    /// All datagrams that the far host could not deliver (`UdpInErrors`).
    pub host_in_errors: Option<u64>,
    /// Fragments of datagrams that never became whole there (`IpReasmFails`).
    pub host_reassembly_failures: Option<u64>,
}

const UNKNOWN: u64 = u64::MAX;

impl Report {
    pub(super) fn words(&self) -> [u64; 12] {
        let known = |value: Option<u64>| value.unwrap_or(UNKNOWN);
        [
            self.bytes,
            self.span.as_nanos(),
            self.messages,
            self.duplicates,
            self.reordered,
            self.cpu.as_nanos(),
            known(self.socket_drops),
            known(self.host_receive_buffer_errors),
            known(self.host_in_errors),
            known(self.host_reassembly_failures),
            self.first_bytes,
            0,
        ]
    }

    pub(super) fn from_words(words: [u64; 12]) -> Self {
        let known = |word: u64| (word != UNKNOWN).then_some(word);
        let [bytes, span, messages, duplicates, reordered, cpu, drops, buffer, errors, whole, ..] =
            words;
        Self {
            bytes,
            first_bytes: words[10],
            span: Nanos::from_nanos(span),
            messages,
            duplicates,
            reordered,
            cpu: Nanos::from_nanos(cpu),
            socket_drops: known(drops),
            host_receive_buffer_errors: known(buffer),
            host_in_errors: known(errors),
            host_reassembly_failures: known(whole),
        }
    }
}

/// The version that a greeting names; `None` when it is no greeting.
pub(super) fn greeted_version(greeting: &[u8]) -> Option<u32> {
    let greeting = std::str::from_utf8(greeting).ok()?;
    greeting.strip_prefix(GREETING_WORD)?.lines().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_reports_come_out_as_they_went_in() {
        for kind in Kind::ALL {
            let request =
                Request { kind, message_bytes: 1472, bytes: 1 << 20, limit: Nanos::from_secs(3) };
            assert_eq!(Request::from_words(request.words()), Some(request));
        }
        let report =
            Report { bytes: 1, reordered: 5, host_in_errors: Some(3), ..Report::default() };
        assert_eq!(Report::from_words(report.words()), report);
    }

    #[test]
    fn what_is_out_of_range_is_no_request() {
        let good = Request {
            kind: Kind::UdpEcho,
            message_bytes: DATAGRAM_BYTES_MAX as u64,
            bytes: RUN_BYTES_MAX,
            limit: RUN_MAX,
        }
        .words();
        assert!(Request::from_words(good).is_some());
        for (at, wrong) in [(0, 6), (1, 39), (1, good[1] + 1), (2, 0), (2, good[2] + 1)] {
            let mut words = good;
            words[at] = wrong;
            assert_eq!(Request::from_words(words), None, "{words:?}");
        }
        assert_eq!(Request::from_words([u64::MAX; 4]), None);
    }

    #[test]
    fn a_greeting_tells_its_version_and_nothing_else_does() {
        assert_eq!(greeted_version(GREETING), Some(VERSION));
        assert_eq!(greeted_version(b"nfskit-stream 27"), Some(27));
        for other in [&b"SSH-2.0-OpenSSH_9"[..], b"nfskit-stream x\n", b"", &[0xff; 16]] {
            assert_eq!(greeted_version(other), None);
        }
    }
}
