//! The duplicate request cache: a call that must not be executed twice is executed once, however
//! often it comes.
//!
//! ```text
//!   call --claim--> new          -> execute -> record the reply -> answer
//!                   in progress  -> drop: the first one will be answered
//!                   answered     -> the recorded bytes again
//!                   in doubt     -> execute; if it fails as it would had it been done already,
//!                                   look for its traces (`proc3::in_doubt`)
//! ```
//!
//! Calls are distinguished by client address, XID, procedure, caller and a checksum of the
//! arguments; not by port or connection, so that a client that reconnects is known. With a file
//! ([`Replies::persistent_in`]) they are known after the death of the process too: what was
//! answered is answered again, and what was in progress is in doubt.
//!
//! WRITE is remembered as well, but not in the file: done again it does no harm, unless it comes
//! behind a later WRITE to the same place.
//!
//! A store with a write log keeps replies in it ([`recorded`]), which survive a loss of power.

pub(crate) mod answered;
mod cache;
mod doubt;
mod file;
mod recorded;
mod slots;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use wire::Procedure;
use wire::record::Message;
use wire::{nfs2, nfs3};

pub use self::answered::Recorded;
use self::cache::{Cache, Counts, Key, Known, RETENTION};
pub(crate) use self::doubt::Doubt;
pub(crate) use self::recorded::{Outcome, Recording};
use self::slots::{Slot, Slots};
use crate::metrics::{MonotonicClock, Reading};
use crate::siphash::siphash;
use crate::types::Time;

/// Tells the time of day, as files have it.
pub type TimeOfDay = Arc<dyn Fn() -> Time + Send + Sync>;

/// The clocks of a reply cache.
#[derive(Clone)]
pub struct Times {
    pub of_day: TimeOfDay,
    /// Time that passes, however the time of day is set meanwhile.
    pub passing: MonotonicClock,
}

/// Bytes of a call's arguments that go into its checksum: all of them, whatever is not a WRITE. A
/// SYMLINK has the most: its target is of 4 KiB at most.
const CHECKSUM_BYTES_MAX: usize = 16 << 10;

/// The same of a WRITE: its file, its place and 256 bytes of its data or more, as the Linux
/// server has it. All would take longer than anything else that is done to a WRITE of 4 KiB here.
const WRITE_CHECKSUM_BYTES_MAX: usize = 384;

/// Replies that a process has left are not good any more when a day has passed since: a client
/// that knows nothing of its server for so long has likely begun anew.
pub(crate) const OUTAGE_SECS_MAX: u64 = 24 * 60 * 60;

/// Not a secret: who can make checksums collide can only confuse his own calls.
const CHECKSUM_KEY: [u8; 16] = *b"nfskit checksum1";

/// Replies that were given, for when they are requested again.
pub struct Replies {
    cache: Mutex<Cache>, // guards itself
    /// Those of WRITE, which are many and would push out the others.
    writes: Mutex<Cache>, // guards itself
    slots: Option<Slots>,
    times: Times,
}

/// What a call needs that may be a retransmission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Retention {
    /// It can be executed again.
    None,
    /// Until the process ends.
    InMemory,
    /// As long as there is a file.
    InFile,
}

/// What identifies a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) client: IpAddr,
    pub(crate) xid: u32,
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) procedure: u32,
    /// The caller's, which two processes of a client may differ in.
    pub(crate) uid: u32,
    pub(crate) args: &'a [u8],
}

/// What is to be done with a call.
pub(crate) enum Claimed<'r> {
    Execute(Claim<'r>),
    /// It is being executed.
    Drop,
    Replay(Message),
}

/// The right to execute a call, to be spent once. Dropped without that, because its connection
/// broke say, the call is in doubt.
#[must_use]
pub(crate) struct Claim<'r> {
    replies: &'r Replies,
    cache: &'r Mutex<Cache>,
    key: Key,
    slot: Option<Slot>,
    /// When it may have been executed at the earliest.
    since: Time,
    came: Instant,
    doubt: Option<Doubt>,
    spent: bool,
}

impl Replies {
    /// Remembers at most `replies_max` replies (of a few hundred bytes each), and as many of
    /// WRITE, until the process ends.
    pub fn in_memory(replies_max: usize, times: Times) -> Self {
        let cache = || Mutex::new(Cache::new(replies_max));
        Self { cache: cache(), writes: cache(), slots: None, times }
    }

    /// The same, and the last `slots` of them (512 bytes each) in a file that outlives the
    /// process. `slots` should be several times the calls in service at once.
    ///
    /// # Errors
    /// The file cannot be made, read or given its length.
    pub fn persistent_in(
        path: &Path,
        slots: usize,
        replies_max: usize,
        times: Times,
    ) -> io::Result<Self> {
        let (slots, records) = Slots::open(path, slots.max(1))?;
        let mut cache = Cache::new(replies_max);
        let past = times.past(records.iter().map(|record| record.claimed_at));
        for record in records {
            let Some(good_until) = past.good_until(record.claimed_at) else { continue };
            match record.reply {
                Some(reply) => cache.answered(record.key, good_until, reply),
                None => {
                    let doubt = Doubt { since: record.claimed_at, until: past.latest() };
                    cache.in_doubt(record.key, good_until, doubt);
                }
            }
        }
        let writes = Mutex::new(Cache::new(replies_max));
        Ok(Self { cache: Mutex::new(cache), writes, slots: Some(slots), times })
    }

    /// What a store has recorded of calls that were answered before this process began.
    pub(crate) fn restore(&self, recorded: Vec<Recorded>) {
        let past = self.times.past(recorded.iter().map(|recorded| recorded.came));
        for recorded in recorded {
            let Some(good_until) = past.good_until(recorded.came) else { continue };
            let key = recorded.key();
            let cache = if is_write(&key) { &self.writes } else { &self.cache };
            cache.lock().answered(key, good_until, recorded.reply);
        }
    }

    /// Calls that could not be written to the file, and are not known after a restart.
    pub fn file_failures(&self) -> u64 {
        self.slots.as_ref().map_or(0, Slots::failures)
    }

    /// The file has no room for its slots, as the system reported at the start. They are written
    /// all the same, as soon as there is some.
    pub fn no_room(&self) -> Option<&io::Error> {
        self.slots.as_ref().and_then(Slots::no_room)
    }

    /// The last call could not be written to the file.
    pub(crate) fn is_failing(&self) -> bool {
        self.slots.as_ref().is_some_and(Slots::is_failing)
    }

    /// How full it is, and what it was good for.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        let counts = [&self.cache, &self.writes].map(|cache| cache.lock().counts());
        let row = |name, help, count: fn(&Counts) -> u64| {
            Reading::new(name, help, counts.iter().map(count).sum::<u64>() as f64)
        };
        let failures = self.file_failures();
        vec![
            row("nfskit_replies_remembered", "Calls in the reply cache.", |counts| counts.entries),
            row(
                "nfskit_replies_replayed_total",
                "Retransmissions answered with the recorded reply.",
                |counts| counts.replayed,
            ),
            row(
                "nfskit_replies_in_progress_total",
                "Retransmissions of calls in progress, which were dropped.",
                |counts| counts.dropped,
            ),
            row(
                "nfskit_replies_in_doubt_total",
                "Retransmissions of calls of which it was not known how far they had come.",
                |counts| counts.in_doubt,
            ),
            row("nfskit_replies_evicted_total", "Replies forgotten for newer ones.", |counts| {
                counts.evicted
            }),
            Reading::new(
                "nfskit_replies_file_failures_total",
                "Calls that could not be written to the file of the reply cache.",
                failures as f64,
            ),
        ]
    }

    pub(crate) fn claim(&self, identity: &Identity<'_>, retention: Retention) -> Claimed<'_> {
        let key = identity.key();
        let cache = match retention {
            Retention::InMemory => &self.writes,
            _ => &self.cache,
        };
        let came = (self.times.passing)();
        let known = cache.lock().claim(key, came);
        let doubt = match known {
            Known::New => None,
            Known::InDoubt(doubt) => Some(doubt),
            Known::InProgress => return Claimed::Drop,
            Known::Answered(reply) => return Claimed::Replay(Message::new(reply.to_vec())),
        };
        let since = doubt.map_or_else(|| (self.times.of_day)(), |doubt| doubt.since);
        let slot = match (&self.slots, retention) {
            (Some(slots), Retention::InFile) => slots.claim(&key, since),
            _ => None,
        };
        Claimed::Execute(Claim {
            replies: self,
            cache,
            key,
            slot,
            since,
            came,
            doubt,
            spent: false,
        })
    }
}

impl Times {
    /// The life of a process that has ended and left calls which came at these times of day.
    fn past(&self, came: impl Iterator<Item = Time>) -> Past {
        let now = (self.of_day)();
        // A clock that was set back leaves some that are still to come.
        let ended = came.filter(|&came| came <= now).max().unwrap_or(now);
        Past { ended, now, begins: (self.passing)() }
    }
}

/// A life of the server before this one. While no server could be called no client can have come
/// round its XIDs, so calls age with the lives alone: from their time to the newest call's, and
/// from the start of this process on.
struct Past {
    /// When it was alive last, as far as is known.
    ended: Time,
    now: Time,
    /// This process.
    begins: Instant,
}

impl Past {
    /// How long the reply to a call is good that came at this time; none if it is not any more.
    fn good_until(&self, came: Time) -> Option<Instant> {
        if secs_between(came, self.now) > OUTAGE_SECS_MAX {
            return None;
        }
        let age = secs_between(came, self.ended).saturating_mul(1_000_000_000);
        let left = RETENTION.as_nanos().checked_sub(age)?;
        Some(self.begins + Nanos::from_nanos(left))
    }

    /// The latest time at which a call of it may have been executed, if none takes longer than its
    /// reply is good.
    fn latest(&self) -> Time {
        let retention = RETENTION.as_nanos() / 1_000_000_000;
        let secs = self.ended.secs.saturating_add_unsigned(retention);
        self.now.min(Time { secs, ..self.ended })
    }
}

/// 0 where the clock was set back.
fn secs_between(since: Time, until: Time) -> u64 {
    u64::try_from(until.secs.saturating_sub(since.secs)).unwrap_or(0)
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Times").finish_non_exhaustive()
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies").field("slots", &self.slots.is_some()).finish_non_exhaustive()
    }
}

impl Identity<'_> {
    fn key(&self) -> Key {
        let key = Key {
            client: self.client.to_canonical(),
            xid: self.xid,
            program: self.program,
            version: self.version,
            procedure: self.procedure,
            checksum: 0,
        };
        let bytes_max = if is_write(&key) { WRITE_CHECKSUM_BYTES_MAX } else { CHECKSUM_BYTES_MAX };
        let args = &self.args[..self.args.len().min(bytes_max)];
        let length_and_uid = (self.args.len() as u64) << 32 | u64::from(self.uid);
        let checksum = siphash(&CHECKSUM_KEY, args) ^ length_and_uid.rotate_left(17);
        Key { checksum, ..key }
    }
}

impl Claim<'_> {
    /// For a store that keeps its reply.
    pub(crate) fn recording(&self, procedure: Procedure, export: u32) -> Recording {
        Recording { call: (&self.key).into(), came: self.since, procedure, export }
    }

    /// When it may have been executed before, if that is not known.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    /// Records the reply, which may be sent from here on.
    pub(crate) fn answered(mut self, reply: &Message) {
        self.spent = true;
        let mut bytes = reply.head.clone();
        bytes.extend_from_slice(&reply.payload);
        if let (Some(slots), Some(slot)) = (&self.replies.slots, self.slot.take()) {
            slots.answer(slot, &bytes);
        }
        self.cache.lock().answered(self.key, self.came + RETENTION, Bytes::from(bytes));
    }

    /// Nothing was executed, the arguments made no sense say.
    pub(crate) fn refused(mut self) {
        self.spent = true;
        if let (Some(slots), Some(slot)) = (&self.replies.slots, self.slot.take()) {
            slots.clear(slot);
        }
        self.cache.lock().forget(&self.key);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.spent {
            return;
        }
        if let (Some(slots), Some(slot)) = (&self.replies.slots, self.slot.take()) {
            slots.release(slot);
        }
        let times = &self.replies.times;
        let doubt = Doubt { since: self.since, until: (times.of_day)() };
        self.cache.lock().in_doubt(self.key, (times.passing)() + RETENTION, doubt);
    }
}

fn is_write(key: &Key) -> bool {
    let procedure = Procedure::of(key.program, key.version, key.procedure);
    retention(procedure) == Retention::InMemory
}

/// How long a call is to be remembered.
pub(crate) fn retention(procedure: Procedure) -> Retention {
    use nfs2::Procedure as P2;
    use nfs3::Procedure as P;
    match procedure {
        Procedure::Nfs3(
            P::Setattr
            | P::Create
            | P::Mkdir
            | P::Symlink
            | P::Mknod
            | P::Remove
            | P::Rmdir
            | P::Rename
            | P::Link,
        ) => Retention::InFile,
        Procedure::Nfs2(
            P2::Setattr
            | P2::Create
            | P2::Remove
            | P2::Rename
            | P2::Link
            | P2::Symlink
            | P2::Mkdir
            | P2::Rmdir,
        ) => Retention::InFile,
        Procedure::Nfs3(P::Write) | Procedure::Nfs2(P2::Write) => Retention::InMemory,
        _ => Retention::None,
    }
}
