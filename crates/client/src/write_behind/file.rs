//! One file with data that the server may not have for good.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::Notify;
use wire::nfs3::{FileHandle, StableHow};

use super::index::Index;
use crate::error::Error;
use crate::session::Session;

/// A file that is not written for so long has its rest sent.
const QUIET_FOR_WRITE: Nanos = Nanos::from_millis(100);

/// A rest that has waited for so long is sent, quiet or not.
const OLD: Nanos = Nanos::from_secs(5);

/// A file that is not written for so long is committed.
const QUIET_FOR_COMMIT: Nanos = Nanos::from_secs(1);

/// A server that loses what it was given so often in a row gets stable WRITEs at once.
const LOSSES_MAX: u32 = 3;

/// See the module's head.
#[derive(Debug)]
pub(super) struct File {
    pub(super) handle: FileHandle,
    /// Guards all that is known of the file; never held across a wait.
    pub(super) state: Mutex<State>,
    /// A reply has come.
    pub(super) changed: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) index: Box<dyn Index>,
    /// Who wrote; the index names them by their place here.
    pub(super) callers: Vec<Writer>,
    /// Of an earlier WRITE or COMMIT, until all have got it whom it concerns.
    pub(super) failed: Option<Failed>,
    /// Bytes were given up, and whoever holds copies of them has not heard to forget these.
    pub(super) has_given_up: bool,
    /// What is this old or older is sent without waiting for more.
    pub(super) urgent_age: u64,
    /// What is this old or older somebody wants to be stable.
    stable_age: u64,
    /// Stands in the queue of those with something to send.
    pub(super) queued: bool,
    pub(super) commit_running: bool,
    /// COMMITs in a row whose replies show that the server had lost something.
    losses: u32,
    last_write: Instant,
    /// Since when there may be something that nobody has requested.
    dirty_since: Option<Instant>,
}

/// Who has written bytes; and who may have, where they come from a cache that several share.
#[derive(Clone, Copy, Debug)]
pub(super) struct By<'a> {
    pub(super) session: &'a Session,
    pub(super) others: &'a [Session],
}

/// The same, held.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) session: Session,
    others: Vec<Session>,
}

impl Writer {
    fn of(by: By<'_>) -> Self {
        Self { session: by.session.clone(), others: by.others.to_vec() }
    }

    fn is(&self, by: By<'_>) -> bool {
        let are_same = |(one, other): (&Session, &Session)| one.is_same_caller(other);
        are_same((&self.session, by.session))
            && self.others.len() == by.others.len()
            && self.others.iter().zip(by.others).all(are_same)
    }

    /// On whose behalf the bytes may be sent: each stands in for those before, who were refused.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Session> {
        std::iter::once(&self.session).chain(&self.others)
    }
}

/// An error that is to be reported.
#[derive(Debug)]
pub(super) struct Failed {
    error: Error,
    /// Later errors, of any file, have larger ones.
    number: u64,
    /// It was reported: it does not concern who opens the file from now on.
    pub(super) is_reported: bool,
}

/// Up to which error of its file a descriptor has got them: each has to get an error that comes
/// while it is open, whoever else has heard of it (as with Linux' `errseq_t`).
#[derive(Debug)]
pub struct Heard {
    /// By a flush.
    flushed: AtomicU64,
    /// By a write, whose error may not reach the program: a kernel that makes several writes of one
    /// answers with the bytes of those before, and drops the error.
    written: AtomicU64,
}

impl Heard {
    /// Of one that is opened when the newest error of all files has this number.
    pub(super) fn until(number: u64) -> Self {
        Self { flushed: AtomicU64::new(number), written: AtomicU64::new(number) }
    }

    fn at_flush(&self) -> u64 {
        self.flushed.load(Ordering::Acquire)
    }

    fn at_write(&self) -> u64 {
        self.written.load(Ordering::Acquire).max(self.at_flush())
    }
}

/// What reports an error, and whether it is reported again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Teller {
    /// Once, and the next flush tells it again.
    Write,
    /// Once.
    Flush,
    /// Again at each close: one descriptor may be closed several times (dup(2), fork(2)).
    Close,
}

/// What a look at a file that nobody waits for says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// Look again later.
    Later,
    /// Something has become urgent.
    Send,
    Commit,
    /// There is nothing to keep.
    Nothing,
    /// Nothing but an error that nobody has been given.
    Error,
}

impl File {
    pub(super) fn new(handle: FileHandle, index: Box<dyn Index>) -> Self {
        let state = State {
            index,
            callers: Vec::new(),
            failed: None,
            has_given_up: false,
            urgent_age: 0,
            stable_age: 0,
            queued: false,
            commit_running: false,
            losses: 0,
            last_write: Instant::EPOCH,
            dirty_since: None,
        };
        Self { handle, state: Mutex::new(state), changed: Notify::new() }
    }
}

impl State {
    /// The number of a caller; none when there are too many.
    pub(super) fn caller(&mut self, by: By<'_>, callers_max: usize) -> Option<u32> {
        let known = self.callers.iter().rposition(|other| other.is(by));
        let at = match known {
            Some(at) => at,
            None if self.callers.len() < callers_max => {
                self.callers.push(Writer::of(by));
                self.callers.len() - 1
            }
            // No bytes are left: numbers may be given anew.
            None if self.index.sums().held_bytes == 0 => {
                self.callers.clear();
                self.callers.push(Writer::of(by));
                0
            }
            None => return None,
        };
        u32::try_from(at).ok()
    }

    /// On whose behalf a COMMIT may be called: of those whose bytes it makes stable. The next
    /// stands in for one who may write no more; whoever has written last may have been refused.
    pub(super) fn committers(&self) -> Vec<Session> {
        let writer = |caller| self.callers.get(usize::try_from(caller).ok()?);
        let writers: Vec<&Writer> =
            self.index.unstable_callers().into_iter().filter_map(writer).collect();
        let mut sessions: Vec<Session> = Vec::new();
        let firsts = writers.iter().map(|writer| &writer.session);
        for session in firsts.chain(writers.iter().flat_map(|writer| &writer.others)) {
            if !sessions.iter().any(|other| other.is_same_caller(session)) {
                sessions.push(session.clone());
            }
        }
        sessions
    }

    pub(super) fn on_insert(&mut self, now: Instant) {
        self.last_write = now;
        self.dirty_since.get_or_insert(now);
    }

    /// Everything written so far is to be sent now; gives its age.
    pub(super) fn hurry(&mut self) -> u64 {
        self.urgent_age = self.index.age();
        self.dirty_since = None;
        self.urgent_age
    }

    /// The same, and it is to be stable.
    pub(super) fn hurry_to_be_stable(&mut self) -> u64 {
        self.stable_age = self.hurry();
        self.stable_age
    }

    /// What to do for a file that nobody waits for.
    pub(super) fn due(&mut self, now: Instant, pressure: bool) -> Due {
        let quiet = now.since(self.last_write);
        let old = self.dirty_since.is_some_and(|since| now.since(since) >= OLD);
        match (self.index.oldest_unanswered(), self.index.oldest_unstable()) {
            (Some(oldest), _) => {
                let is_due = pressure || old || quiet >= QUIET_FOR_WRITE;
                if is_due && oldest > self.urgent_age {
                    self.hurry();
                    return Due::Send;
                }
                Due::Later
            }
            (None, Some(_)) if !self.commit_running && (pressure || quiet >= QUIET_FOR_COMMIT) => {
                Due::Commit
            }
            (None, Some(_)) => Due::Later,
            (None, None) if self.commit_running => Due::Later,
            (None, None) if self.failed.is_some() => Due::Error,
            (None, None) => Due::Nothing,
        }
    }

    /// What a WRITE asks for that is about to be sent: stable storage where somebody waits for
    /// that, and nothing is left for a COMMIT to do.
    pub(super) fn stable(&self, requested: StableHow, bytes: usize) -> StableHow {
        let sums = self.index.sums();
        let is_all = sums.unanswered_bytes == bytes as u64 && sums.unstable_bytes == 0;
        let is_waited_for = self.stable_age > 0 && self.stable_age == self.index.age();
        match self.losses >= LOSSES_MAX || is_all && is_waited_for {
            true => StableHow::FileSync,
            false => requested,
        }
    }

    pub(super) fn on_committed(&mut self, lost_bytes: u64) {
        self.losses = if lost_bytes > 0 { self.losses.saturating_add(1) } else { 0 };
    }

    /// An error that is not reported yet. The first stays: the later ones are its consequences,
    /// as a rule. Not of one that was reported: what has failed since, nobody knows.
    pub(super) fn fail(&mut self, error: Error, number: u64) {
        self.has_given_up = true;
        if self.failed.as_ref().is_none_or(|failed| failed.is_reported) {
            self.failed = Some(Failed { error, number, is_reported: false });
        }
    }

    /// Tells a descriptor of an error that it has not heard of.
    pub(super) fn tell(&mut self, heard: &Heard, by: Teller) -> Result<(), Error> {
        let until = if by == Teller::Write { heard.at_write() } else { heard.at_flush() };
        let Some(failed) = self.failed.as_mut().filter(|failed| failed.number > until) else {
            return Ok(());
        };
        match by {
            Teller::Write => heard.written.store(failed.number, Ordering::Release),
            Teller::Flush => heard.flushed.store(failed.number, Ordering::Release),
            Teller::Close => {}
        }
        failed.is_reported |= by != Teller::Write;
        Err(failed.error.clone())
    }

    /// Reports the error, if it was not reported yet.
    pub(super) fn tell_anybody(&mut self) -> Result<(), Error> {
        match self.failed.take_if(|failed| !failed.is_reported) {
            Some(failed) => Err(failed.error),
            None => Ok(()),
        }
    }

    /// A report did not reach its descriptor.
    pub(super) fn not_heard(&mut self, heard: &Heard, error: Error, number: u64) {
        match &mut self.failed {
            Some(failed) => {
                failed.is_reported = false;
                heard.flushed.fetch_min(failed.number - 1, Ordering::AcqRel);
                heard.written.fetch_min(failed.number - 1, Ordering::AcqRel);
            }
            None => self.fail(error, number),
        }
    }
}
