//! Signals that ask for an end: one thread takes them for the whole process.
//!
//! Who has something to clean up, or to say at the end, catches them ([`Interrupts::catch`]) before
//! there is anything. While nobody does, Ctrl-C and SIGTERM end the process at once, and so does
//! the end of its terminal; all of these are [`Failure::interrupted`].
//!
//! Who catches them may have a limit ([`Interrupts::ends_within`]), which this thread keeps. The
//! others may all be in a system call that does not return.

use std::sync::{OnceLock, mpsc};

use net::clock::Clock;
use net::serve::Drained;
use nix::sys::signal::{SigSet, SigmaskHow, Signal as Number};
use parking_lot::Mutex;
use perf::units::Nanos;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;

use crate::exit::Failure;

/// How much longer than its limit an end may take, and than a second request for it. Connections
/// have a second to notice; what is left then are system calls that do not return.
const OVERTIME: Nanos = Nanos::from_secs(2);

/// What has come: SIGINT and SIGTERM, or SIGHUP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signal {
    End,
    Hangup,
}

/// How often each has come since the process began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Counts {
    ends: u64,
    hangups: u64,
}

/// What is common to the thread and to those who catch.
#[derive(Debug)]
struct Watched {
    /// Held while it is decided whether anybody catches, and while somebody begins to.
    counts: Mutex<watch::Sender<Counts>>,
    /// As whoever started us has set it (nohup).
    ignores_hangup: bool,
    /// Guards how long an end may take, as long as somebody keeps to a limit.
    limit: Mutex<Option<Nanos>>,
}

/// Begins to take signals, if that has not begun.
///
/// # Errors
/// The system gives no thread, or no descriptors.
pub fn watch() -> Result<(), Failure> {
    watched().map(drop)
}

fn watched() -> Result<&'static Watched, Failure> {
    static WATCHED: OnceLock<Result<Watched, String>> = OnceLock::new();
    let watched = WATCHED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let (begun, answer) = mpsc::channel();
        let _held = Held::begin();
        let taken = move || net::runtime::block_on(take(begun)).ok();
        let thread = std::thread::Builder::new().name("nfskit-signals".to_owned());
        thread.spawn(taken).map_err(|cause| cause.to_string())?;
        let caught = answer.recv().map_err(|_| "no event queue".to_owned())?;
        caught.map_err(|cause| cause.to_string())?;
        let counts = Mutex::new(watch::Sender::new(Counts::default()));
        Ok(Watched { counts, ignores_hangup: ignores_hangup(&status), limit: Mutex::new(None) })
    });
    watched.as_ref().map_err(|cause| Failure::resources(format!("cannot catch signals: {cause}")))
}

/// Signals wait while they are held, by this thread and those that it starts. One that came between
/// the system's handler and what the handler calls would be lost: Ctrl-C in the first milliseconds.
#[derive(Debug)]
pub struct Held(Option<SigSet>);

impl Held {
    fn begin() -> Self {
        Self(ours().thread_swap_mask(SigmaskHow::SIG_BLOCK).ok())
    }
}

fn ours() -> SigSet {
    SigSet::from_iter([Number::SIGINT, Number::SIGTERM, Number::SIGHUP])
}

/// Leaves signals to the thread that takes them, while this is there, for this thread and those
/// that it starts. The system may choose any other that takes one, also one that a file system
/// keeps, and then nobody hears of it. Programs that they start would not hear of theirs.
pub fn leave_to_their_thread() -> Held {
    Held::begin()
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            before.thread_set_mask().ok();
        }
    }
}

/// The thread: for as long as the process lives.
async fn take(begun: mpsc::Sender<std::io::Result<()>>) {
    let signals = unix::signal(SignalKind::interrupt()).and_then(|interrupt| {
        let terminate = unix::signal(SignalKind::terminate())?;
        Ok((interrupt, terminate, unix::signal(SignalKind::hangup())?))
    });
    let (mut interrupt, mut terminate, mut hangup) = match signals {
        Ok(signals) => signals,
        Err(cause) => {
            begun.send(Err(cause)).ok();
            return;
        }
    };
    // It begins with what is held by who has started it.
    ours().thread_unblock().ok();
    begun.send(Ok(())).ok();
    let clock = Clock::real();
    loop {
        let signal = tokio::select! {
            _ = interrupt.recv() => Signal::End,
            _ = terminate.recv() => Signal::End,
            _ = hangup.recv() => Signal::Hangup,
        };
        // Whoever waits for us to begin has waited by then.
        if let Ok(watched) = watched() {
            watched.count(signal);
            if signal == Signal::End {
                watched.keep_limit(&clock);
            }
        }
    }
}

impl Watched {
    /// Counts a signal for those who catch it; ends the process if there are none.
    fn count(&self, signal: Signal) {
        let counts = self.counts.lock();
        let is_ignored = signal == Signal::Hangup && self.ignores_hangup;
        if counts.receiver_count() == 0 && !is_ignored {
            Failure::interrupted().end();
        }
        counts.send_modify(|counts| match signal {
            Signal::End => counts.ends += 1,
            Signal::Hangup => counts.hangups += 1,
        });
    }
}

impl Watched {
    /// Ends the process when the limit is over; at a second request it is over at once.
    fn keep_limit(&'static self, clock: &Clock) {
        let Some(limit) = *self.limit.lock() else { return };
        let is_first = self.counts.lock().borrow().ends == 1;
        let limit = if is_first { limit } else { Nanos::ZERO };
        let own = clock.clone();
        clock.spawn(async move {
            own.sleep(limit + OVERTIME).await;
            if self.limit.lock().is_some() {
                overdue().end();
            }
        });
    }
}

fn overdue() -> Failure {
    let what = "the grace period is over, and a system call has not returned";
    Failure::environment(what, "look for a file system or a disk that does not answer")
}

/// The end takes no longer than the limit while this is there.
#[derive(Debug)]
pub struct Limited(&'static Watched);

impl Drop for Limited {
    fn drop(&mut self) {
        *self.0.limit.lock() = None;
    }
}

/// Whether a process of this /proc/PID/status ignores SIGHUP, which is the first of all signals.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// Ctrl-C, and the system's request to end. All are caught from when this is made: make it before
/// there is anything to clean up, or to announce.
#[derive(Debug)]
pub struct Interrupts {
    counts: watch::Receiver<Counts>,
    seen: Counts,
    watched: &'static Watched,
}

impl Interrupts {
    pub fn catch() -> Result<Self, Failure> {
        let watched = watched()?;
        let mut counts = watched.counts.lock().subscribe();
        let seen = *counts.borrow_and_update();
        Ok(Self { counts, seen, watched })
    }

    /// From the first request to end on, what is in progress has so long, and two seconds: then
    /// the process ends, whatever its other threads do.
    pub fn ends_within(&self, limit: Nanos) -> Limited {
        *self.watched.limit.lock() = Some(limit);
        Limited(self.watched)
    }

    /// Done when one has come. A terminal that is closed is one, unless nohup began the process.
    pub async fn next(&mut self) {
        while self.next_signal().await == Signal::Hangup && self.watched.ignores_hangup {}
    }

    /// What comes first: the end of `work`, which leaves nothing behind, or an interrupt.
    ///
    /// # Errors
    /// As `work`, or interrupted.
    pub async fn or<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        unless(self.next(), work).await
    }

    /// The same, for those to whom a hangup means something else: one that comes waits.
    ///
    /// # Errors
    /// As `work`, or interrupted.
    pub async fn or_end<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        unless(self.next_end(), work).await
    }

    /// Waits for the end of what is in progress, or for somebody who asks again.
    pub async fn hurry(
        &mut self,
        draining: impl Future<Output = Drained>,
    ) -> Result<Drained, Failure> {
        self.or_end(async { Ok(draining.await) }).await
    }

    /// The next signal, for those to whom a hangup means something else.
    pub async fn next_signal(&mut self) -> Signal {
        loop {
            if self.has_end() {
                return Signal::End;
            }
            let hangups = self.counts.borrow().hangups;
            if hangups > self.seen.hangups {
                self.seen.hangups = hangups;
                return Signal::Hangup;
            }
            self.changed().await;
        }
    }

    /// Waits for a request to end, and leaves hangups to [`Self::next_signal`].
    pub async fn next_end(&mut self) {
        while !self.has_end() {
            self.changed().await;
        }
    }

    fn has_end(&mut self) -> bool {
        let has_end = self.counts.borrow_and_update().ends > self.seen.ends;
        self.seen.ends += u64::from(has_end);
        has_end
    }

    async fn changed(&mut self) {
        if self.counts.changed().await.is_err() {
            // The sender lives as long as the process.
            std::future::pending::<()>().await;
        }
    }
}

/// What `work` comes to, unless an interrupt comes first.
async fn unless<T>(
    interrupt: impl Future<Output = ()>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = interrupt => Err(Failure::interrupted()),
        done = work => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_seen() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangup("") && !ignores_hangup("SigIgn:\tno number"));
    }
}
