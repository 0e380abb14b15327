//! A client that behaves: every 10 ms one call, in turn small, of 32 KiB and of 1 MiB over a
//! connection that it keeps, and a first one over a new connection.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wire::Procedure;
use wire::nfs3::{self, FileHandle, Procedure as P};

use super::calls::{Connection, MIB};

/// What it requests, in turn.
pub(super) const KINDS: [&str; 4] =
    ["NULL, over a new connection", "READ of 1 MiB", "READ of 32 KiB", "GETATTR"];

const INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Healthy {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// When calls should have begun, how long it was from then until they were answered, and which of
/// [`KINDS`] they were.
#[derive(Debug, Default)]
pub(super) struct Seen {
    calls: Vec<(Instant, Duration, usize)>,
    pub(super) failures: usize,
}

impl Healthy {
    pub(super) fn start(server: SocketAddr, file: FileHandle) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            super::attack::be_nice(-20);
            work(server, file, &stopped)
        });
        Self { stop, thread }
    }

    pub(super) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn work(server: SocketAddr, file: FileHandle, stop: &AtomicBool) -> Seen {
    let (mut seen, mut connection_before) = (Seen::default(), None);
    let mut due = Instant::now();
    for turn in 0_usize.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        match call(server, file, turn, &mut connection_before) {
            Ok(()) => seen.calls.push((due, due.elapsed(), turn % KINDS.len())),
            Err(_) => {
                seen.failures += 1;
                connection_before = None;
            }
        }
        // What should have begun meanwhile waits for its turn, and that counts.
        due += INTERVAL;
    }
    seen
}

fn call(
    server: SocketAddr,
    file: FileHandle,
    turn: usize,
    connection_before: &mut Option<Connection>,
) -> io::Result<()> {
    let null = Procedure::Nfs3(P::Null);
    let count = match turn % KINDS.len() {
        0 => return Connection::to(server)?.ask(null, &()).map(drop),
        1 => MIB,
        2 => 32 << 10,
        _ => 1,
    };
    let connection = match connection_before {
        Some(connection) => connection,
        None => connection_before.insert(Connection::to(server)?),
    };
    let reply = match count {
        1 => {
            let getattr = nfs3::getattr::Args { object: file };
            connection.ask(Procedure::Nfs3(P::Getattr), &getattr)?
        }
        count => {
            let read = nfs3::read::Args { file, offset: 0, count };
            connection.ask(Procedure::Nfs3(P::Read), &read)?
        }
    };
    match reply.len() >= count as usize {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Seen {
    /// Of the calls that should have begun in `span`.
    pub(super) fn p99(&self, span: &Range<Instant>) -> Duration {
        Self::quantile(self.calls.iter().filter(|(due, ..)| span.contains(due)))
    }

    /// The same for each of [`KINDS`].
    pub(super) fn p99_by_kind(&self, span: &Range<Instant>) -> [Duration; KINDS.len()] {
        std::array::from_fn(|kind| {
            let is_one =
                |call: &&(Instant, Duration, usize)| span.contains(&call.0) && call.2 == kind;
            Self::quantile(self.calls.iter().filter(is_one))
        })
    }

    /// The call that waited longest: when it should have begun, how long it took, and its kind.
    pub(super) fn worst(&self, span: &Range<Instant>) -> Option<(Duration, Duration, usize)> {
        let within = self.calls.iter().filter(|(due, ..)| span.contains(due));
        let &(due, took, kind) = within.max_by_key(|call| call.1)?;
        Some((due - span.start, took, kind))
    }

    fn quantile<'c>(calls: impl Iterator<Item = &'c (Instant, Duration, usize)>) -> Duration {
        let mut times: Vec<Duration> = calls.map(|call| call.1).collect();
        times.sort_unstable();
        let at = (times.len() * 99).div_ceil(100).saturating_sub(1);
        // Nothing was answered: that is worse than any number.
        times.get(at).copied().unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_in_a_hundred_is_longer_than_the_quantile() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let calls = (0..200).map(|ms| (at(ms), Duration::from_millis(ms), 1)).collect();
        let seen = Seen { calls, failures: 0 };
        assert_eq!(seen.p99(&(at(0)..at(100))), Duration::from_millis(98));
        assert_eq!(seen.p99(&(at(0)..at(200))), Duration::from_millis(197));
        let by_kind = seen.p99_by_kind(&(at(0)..at(100)));
        assert_eq!(by_kind[..2], [Duration::MAX, Duration::from_millis(98)]);
        assert_eq!(seen.p99(&(at(500)..at(600))), Duration::MAX);
    }
}
