//! What may be seen in the directory for which all compete.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perf::units::{Instant, Nanos};
use wire::nfs3::FileHandle;

use super::host::Unheard;
use crate::plan::{LOGS, PLACE_BYTES, PLACES};
use crate::reference::register::{Look, Register, Ticket};

/// How long a name may be remembered that others have changed: as long as a directory's attributes
/// are good, however long a reply was on its way.
const REMEMBERED: Nanos = Nanos::from_secs(60);

/// Where a name leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Bound {
    Nothing,
    File(FileHandle),
    /// A file whose handle no reply has had.
    Some,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Truth {
    /// From the beginning of one place to that of the next.
    stride: u32,
    names: BTreeMap<String, Register<Bound>>,
    /// Never walked.
    files: HashMap<FileHandle, File>,
    pub(super) logs: [Log; LOGS as usize],
    /// By host, which alone they concern, and number.
    locks: BTreeMap<(usize, u32), Lock>,
}

/// A lock of a file, and what was written under it last.
#[derive(Debug, Default)]
struct Lock {
    holder: Option<usize>,
    value: u64,
}

/// A file with places that are written whole.
#[derive(Debug)]
struct File {
    places: Vec<Register<u8>>,
    sessions: Sessions,
}

/// A file to which all append in turn.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) is_taken: bool,
    /// Records that are stable, in their order, and since when.
    records: Vec<(String, Instant)>,
    sessions: Sessions,
}

/// Who has had a file open for writing.
#[derive(Debug, Default)]
struct Sessions(Vec<Session>);

#[derive(Debug)]
struct Session {
    by: usize,
    begun: Instant,
    ended: Option<Instant>,
}

impl Default for File {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| Register::new(0)).collect();
        Self { places, sessions: Sessions::default() }
    }
}

impl Sessions {
    fn begin(&mut self, by: usize, begun: Instant) -> usize {
        self.0.push(Session { by, begun, ended: None });
        self.0.len() - 1
    }

    /// From when on a client that opens the file at `begun` must have seen what others have closed:
    /// two that write at the same time see each other's data when both have closed it.
    fn heard(&self, by: usize, begun: Instant) -> Instant {
        let mut heard = begun;
        let reaches = |one: &&Session, heard| {
            one.by == by && one.begun < heard && one.ended.is_none_or(|ended| ended >= heard)
        };
        while let Some(one) = self.0.iter().find(|one| reaches(one, heard)) {
            heard = one.begun;
        }
        heard
    }
}

impl Truth {
    pub(super) fn new(stride: u32) -> Self {
        let (names, files, locks) = Default::default();
        Self { stride, names, files, logs: Default::default(), locks }
    }

    fn name(&mut self, name: &str) -> &mut Register<Bound> {
        self.names.entry(name.to_owned()).or_insert_with(|| Register::new(Bound::Nothing))
    }

    fn file(&mut self, file: FileHandle) -> &mut File {
        self.files.entry(file).or_default()
    }

    pub(super) fn bind(&mut self, name: &str, to: Bound, by: usize, now: Instant) -> Ticket {
        self.name(name).begin(to, by, now)
    }

    pub(super) fn bound(&mut self, name: &str, ticket: Ticket, to: Bound, now: Instant) {
        self.name(name).is(ticket, to);
        self.name(name).end(ticket, now);
    }

    pub(super) fn not_bound(&mut self, name: &str, ticket: Ticket) {
        self.name(name).undone(ticket);
    }

    /// A name was moved to another, during this look: to there leads what it may have led to. Two
    /// names of one file stay as they are (RFC 1813 section 3.3.14).
    pub(super) fn moved(
        &mut self,
        (from, left): (&str, Ticket),
        (to, reached): (&str, Ticket),
        look: Look,
    ) {
        self.not_bound(to, reached);
        let (led, replaced) = (self.leads(from, look, false), self.leads(to, look, false));
        let is_file = |bound: &&Bound| **bound != Bound::Nothing;
        for &bound in led.iter().filter(is_file) {
            let ticket = self.bind(to, bound, look.by, look.begun);
            self.bound(to, ticket, bound, look.ended);
        }
        let is_same = |one: &Bound| {
            *one == Bound::Some || replaced.contains(one) || replaced.contains(&Bound::Some)
        };
        if !led.iter().filter(is_file).any(is_same) {
            self.bound(from, left, Bound::Nothing, look.ended);
        }
    }

    pub(super) fn open(&mut self, file: FileHandle, by: usize, begun: Instant) -> usize {
        self.file(file).sessions.begin(by, begun)
    }

    /// A host was killed: nothing is open on it any more. What it was writing may be done or not,
    /// now or later.
    pub(super) fn killed(&mut self, host: usize, now: Instant) {
        let files = self.files.values_mut().map(|file| &mut file.sessions);
        let logs = self.logs.iter_mut().map(|log| &mut log.sessions);
        for session in files.chain(logs).flat_map(|sessions| &mut sessions.0) {
            if session.by == host && session.ended.is_none() {
                session.ended = Some(now);
            }
        }
    }

    pub(super) fn closed(&mut self, file: FileHandle, session: usize, now: Instant) {
        self.file(file).sessions.0[session].ended = Some(now);
    }

    pub(super) fn write(
        &mut self,
        file: FileHandle,
        place: u32,
        value: u8,
        by: usize,
        now: Instant,
    ) -> Ticket {
        self.file(file).places[place as usize].begin(value, by, now)
    }

    pub(super) fn written(&mut self, file: FileHandle, place: u32, ticket: Ticket, now: Instant) {
        self.file(file).places[place as usize].end(ticket, now);
    }

    /// What was written without a reply: no error was reported.
    pub(super) fn are_there(&mut self, unheard: Vec<Unheard>) {
        for Unheard { file, tickets, stable } in unheard {
            for (place, ticket) in tickets {
                if let Some(stable) = stable {
                    self.written(file, place, ticket, stable);
                }
            }
        }
    }

    pub(super) fn turn(&mut self, log: u32, by: usize, now: Instant) -> usize {
        self.logs[log as usize].sessions.begin(by, now)
    }

    pub(super) fn turned(
        &mut self,
        log: u32,
        session: usize,
        record: Option<String>,
        now: Instant,
    ) {
        let log = &mut self.logs[log as usize];
        log.records.extend(record.map(|record| (record, now)));
        log.sessions.0[session].ended = Some(now);
        log.is_taken = false;
    }

    /// A program has a log open to write to it in place, until [`Truth::rewritten`].
    pub(super) fn rewrites(&mut self, log: u32, by: usize, now: Instant) -> usize {
        self.logs[log as usize].sessions.begin(by, now)
    }

    pub(super) fn rewritten(&mut self, log: u32, session: usize, now: Instant) {
        self.logs[log as usize].sessions.0[session].ended = Some(now);
    }

    /// The first record of a log that is stable.
    pub(super) fn first_record(&self, log: u32) -> Option<String> {
        self.logs[log as usize].records.first().map(|(record, _)| record.clone())
    }

    /// A program of a host has got a lock, and reads a number there.
    ///
    /// # Errors
    /// Another one has it, or had written another number.
    pub(super) fn locked(
        &mut self,
        (host, lock): (usize, u32),
        program: usize,
    ) -> Result<(), String> {
        let held = self.locks.entry((host, lock)).or_default();
        match held.holder.replace(program) {
            None => Ok(()),
            Some(other) => Err(format!("{host}.{program} has got it, and {host}.{other} has it")),
        }
    }

    /// What its holder reads there; gives what it may write. `may_be_lost`: what was written.
    ///
    /// # Errors
    /// Something else was written under the lock before.
    pub(super) fn guarded(
        &mut self,
        lock: (usize, u32),
        seen: u64,
        may_be_lost: bool,
    ) -> Result<u64, String> {
        let held = self.locks.entry(lock).or_default();
        match std::mem::replace(&mut held.value, seen + 1) {
            value if value == seen || may_be_lost => Ok(seen + 1),
            value => Err(format!("{seen} is read under it, not {value}")),
        }
    }

    /// What is in a file with locks, in the end.
    ///
    /// # Errors
    /// Something else was written under one.
    pub(super) fn check_locks(&self, lock: u32, data: &[u8]) -> Result<(), String> {
        for (&(host, _), held) in self.locks.iter().filter(|((_, of), _)| *of == lock) {
            let at = host * self.stride as usize;
            let there = data.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            let seen = there.map_or(0, u64::from_le_bytes);
            if seen != held.value {
                return Err(format!("{seen} is host {host}'s, not {}", held.value));
            }
        }
        Ok(())
    }

    pub(super) fn unlocked(&mut self, lock: (usize, u32)) {
        self.locks.entry(lock).or_default().holder = None;
    }

    /// Where a name may be seen to lead; `remembers`: by who may find it in memory.
    fn leads(&mut self, name: &str, look: Look, remembers: bool) -> Vec<Bound> {
        let heard = match remembers {
            true => look.begun - REMEMBERED,
            false => look.begun,
        };
        self.name(name).seen(Look { heard, ..look }).copied().collect()
    }

    /// A name was seen to lead there.
    ///
    /// # Errors
    /// It cannot.
    pub(super) fn check_name(
        &mut self,
        name: &str,
        seen: Option<FileHandle>,
        look: Look,
        remembers: bool,
    ) -> Result<(), String> {
        let leads = self.leads(name, look, remembers);
        let is_right = leads.iter().any(|bound| match (bound, seen) {
            (Bound::Nothing, None) | (Bound::Some, Some(_)) => true,
            (Bound::File(file), Some(seen)) => *file == seen,
            _ => false,
        });
        match is_right {
            true => Ok(()),
            false => Err(format!("{name} is {seen:?}, not {leads:?}")),
        }
    }

    /// There was something, whatever it was.
    pub(super) fn check_taken(
        &mut self,
        name: &str,
        look: Look,
        remembers: bool,
    ) -> Result<(), String> {
        let leads = self.leads(name, look, remembers);
        match leads.iter().any(|bound| *bound != Bound::Nothing) {
            true => Ok(()),
            false => Err(format!("{name} is there, and nobody has made it")),
        }
    }

    /// A file may have lost its name, or the name have become another's.
    pub(super) fn may_be_gone(&mut self, name: &str, look: Look) -> bool {
        let heard = Instant::EPOCH;
        self.name(name).seen(Look { heard, ..look }).count() > 1
    }

    /// The data of a file that was opened at the beginning of a look.
    ///
    /// # Errors
    /// Something else should have been seen.
    pub(super) fn check_data(
        &mut self,
        file: FileHandle,
        data: &[u8],
        look: Look,
    ) -> Result<(), String> {
        let stride = self.stride as usize;
        let truth = self.file(file);
        let look = Look { heard: truth.sessions.heard(look.by, look.begun), ..look };
        let part = PLACE_BYTES as usize;
        for (number, place) in truth.places.iter().enumerate() {
            let at = number * stride;
            let within = |from: usize, to: usize| &data[from.min(data.len())..to.min(data.len())];
            let there = within(at, at + part);
            let mut seen: BTreeSet<u8> = there.iter().copied().collect();
            if there.len() < part {
                // What is not there is a hole, or was not there yet.
                seen.insert(0);
            }
            let may: BTreeSet<u8> = place.seen(look).copied().collect();
            if let Some(wrong) = seen.iter().find(|value| !may.contains(value)) {
                let bytes = data.len();
                return Err(format!("place {number} has {wrong}, not {may:?}, of {bytes} bytes"));
            }
            if within(at + part, at + stride).iter().any(|byte| *byte != 0) {
                return Err(format!("something is behind place {number}"));
            }
        }
        Ok(())
    }

    /// # Errors
    /// A record is missing that was stable before the log was opened.
    pub(super) fn check_log(&self, log: u32, data: &[u8], look: Look) -> Result<(), String> {
        let Log { records, sessions, .. } = &self.logs[log as usize];
        let heard = sessions.heard(look.by, look.begun);
        let mut rest = data;
        for (record, _) in records.iter().filter(|(_, stable)| *stable < heard) {
            let at = rest.windows(record.len()).position(|part| part == record.as_bytes());
            let Some(at) = at else {
                let bytes = data.len();
                return Err(format!("{:?} is missing in {bytes} bytes", record.trim_end()));
            };
            rest = &rest[at + record.len()..];
        }
        Ok(())
    }

    /// The names that a listing has shown.
    ///
    /// # Errors
    /// One is missing that was there all the time, or is there and never was.
    pub(super) fn check_list(&mut self, seen: &[String], look: Look) -> Result<(), String> {
        let names: Vec<String> = self.names.keys().cloned().collect();
        for name in names {
            let leads = self.leads(&name, look, false);
            let is_seen = seen.contains(&name);
            match (&leads[..], is_seen) {
                ([Bound::File(_)], false) => return Err(format!("{name} is missing")),
                (leads, true) if leads.iter().all(|bound| *bound == Bound::Nothing) => {
                    return Err(format!("{name} is there"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All names that there have been.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }
}
