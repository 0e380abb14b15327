//! Bytes over a blocking connection, until a moment and not longer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use perf::units::{Instant, Nanos};

use crate::clock::Clock;

/// Asks again in time, so that a peer that sends a byte now and then holds nobody for ever.
const SLICE_MIN: Duration = Duration::from_millis(1);

/// `span` as the standard library has it.
pub(super) fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

/// What is left until `at`, for a socket's limit, which must be above zero.
fn left(clock: &Clock, at: Instant) -> io::Result<Duration> {
    let now = clock.now();
    if now >= at {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(duration(at.since(now)).max(SLICE_MIN))
}

/// Reads up to `bytes.len()` bytes: fewer when the peer ends its half, or at `until` with an error.
/// The second value is what was read before the error.
pub(super) fn read_up_to(
    clock: &Clock,
    mut stream: &TcpStream,
    bytes: &mut [u8],
    until: Instant,
) -> (io::Result<()>, usize) {
    let mut have = 0;
    while have < bytes.len() {
        let limit = match left(clock, until) {
            Ok(limit) => limit,
            Err(cause) => return (Err(cause), have),
        };
        let limited = stream.set_read_timeout(Some(limit));
        let read = limited.and_then(|()| stream.read(&mut bytes[have..]));
        match read {
            Ok(0) => break,
            Ok(count) => have += count,
            Err(cause) if is_passing(&cause) => {}
            Err(cause) => return (Err(cause), have),
        }
    }
    (Ok(()), have)
}

/// Reads exactly `N` words by `until`.
pub(super) fn read_words<const N: usize>(
    clock: &Clock,
    stream: &TcpStream,
    until: Instant,
) -> io::Result<[u64; N]> {
    let mut bytes = vec![0; N * 8];
    let (outcome, have) = read_up_to(clock, stream, &mut bytes, until);
    outcome?;
    if have < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    Ok(words)
}

pub(super) fn write_words(mut stream: &TcpStream, words: &[u64]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    stream.write_all(&bytes)
}

/// An error of a blocking socket that is none: its limit has come, or a signal.
pub(super) fn is_passing(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
