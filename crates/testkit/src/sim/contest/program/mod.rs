//! A program of a contest: what it does to files, and what it may see of them.

mod names;
mod unheard;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, NfsStat3};

use super::host::{Host, Locking, Opened};
use super::refused::{Refused, Way};
use super::scene::{Scene, lock_name, log_name};
use crate::plan::{Act, Op, PLACE_BYTES, PLACES, Plan};
use crate::reference::register::{Look, Ticket};
use crate::sim::failure::Failure;

/// How often a program looks whether it is its turn.
const TURN: Nanos = Nanos::from_millis(1);

/// What is read where a file was cut: the value of no place that was written.
const CUT: u8 = 0;

/// A program on a host.
pub(super) struct Program<'h> {
    scene: &'h Scene,
    host: &'h Host,
    client: usize,
    number: usize,
    /// Logs and files with locks that stay open, by name.
    open: BTreeMap<String, Opened>,
    /// Of the host, in which those were opened.
    life: usize,
}

impl<'h> Program<'h> {
    pub(super) fn new(scene: &'h Scene, host: &'h Host, client: usize, number: usize) -> Self {
        Self { scene, host, client, number, open: BTreeMap::new(), life: host.lives() }
    }

    pub(super) async fn run(mut self, plan: &Plan, begun: Instant) -> Result<(), Failure> {
        let clock = self.scene.clock.clone();
        for (step, at, op) in plan.ops(self.client) {
            let Op::Contend { program, act } = op else { continue };
            if program != self.number {
                continue;
            }
            clock.sleep((begun + at).since(clock.now())).await;
            self.note(|| act.to_string());
            self.scene.trace.lock().op();
            let (since, open) = (clock.now(), self.open.len());
            self.host.begins(act.is_awaited());
            self.notice_kills();
            let host = self.host;
            let acted = host.unless_killed(self.act(step, &act)).await;
            self.notice_kills();
            host.ended(act.is_awaited(), open, self.open.len());
            let span = (since.since(begun), clock.now().since(begun));
            match acted {
                Some(acted) => acted.map_err(|failure| self.located(&act, span, failure))?,
                None => self.note(|| "  killed".to_owned()),
            }
        }
        self.notice_kills();
        for (_, opened) in std::mem::take(&mut self.open) {
            if let Some(closed) = self.host.unless_killed(self.host.close(opened)).await {
                self.unless_disk_failed(closed)?;
            }
        }
        Ok(())
    }

    /// What was open when the host was killed is not any more.
    fn notice_kills(&mut self) {
        let life = self.host.lives();
        if std::mem::replace(&mut self.life, life) != life {
            self.open.clear();
        }
    }

    /// A failure with whose it is, and of which act.
    fn located(&self, act: &Act, (from, to): (Nanos, Nanos), failure: Failure) -> Failure {
        let Failure { way, what } = failure;
        let (client, number) = (self.client, self.number);
        Failure { way, what: format!("{client}.{number}, `{act}`, from {from} to {to}: {what}") }
    }

    pub(super) async fn act(&mut self, step: u32, act: &Act) -> Result<(), Failure> {
        match act {
            Act::Make(name) => self.make(name).await,
            Act::Remove(name) => self.remove(name).await,
            Act::Replace { name, value } => self.replace(step, name, *value).await,
            Act::Move { from, to } => self.move_name(from, to).await,
            Act::Link { from, to } => self.link(from, to).await,
            Act::Cut { name, hold } => self.write(name, 0..PLACES, CUT, *hold).await,
            Act::Mode(name) => self.mode(name).await,
            Act::Write { name, first, count, value, hold } => {
                self.write(name, *first..*first + *count, *value, *hold).await
            }
            // Whoever hears of all writes has nothing to be interrupted in.
            Act::Unheard { name, first, count, value, .. } if !self.host.has_silence() => {
                self.write(name, *first..*first + *count, *value, Nanos::ZERO).await
            }
            Act::Unheard { name, first, count, value, by } => {
                self.write_unheard(name, *first..*first + *count, *value, *by).await
            }
            Act::Read(name) => self.read(name).await,
            Act::Look(name) => self.look(name).await,
            Act::List { wait } => self.list(*wait).await,
            Act::Append { log, keeps } => self.append(step, *log, *keeps).await,
            Act::ReadLog { log } => self.read_log(*log).await,
            Act::Rewrite { log, hold } => self.rewrite(*log, *hold).await,
            Act::Lock { lock, hold, keeps } => self.lock(*lock, *hold, *keeps).await,
        }
    }

    async fn write(
        &self,
        name: &str,
        places: std::ops::Range<u32>,
        value: u8,
        hold: Nanos,
    ) -> Result<(), Failure> {
        let begun = self.now();
        match self.host.open(name, Way::Write).await {
            Ok(opened) => {
                self.check_name(name, Some(opened.file), begun)?;
                match self.fill((opened, begun), places, value, hold).await? {
                    None => self.may_be_gone(name, begun),
                    Some(_) => Ok(()),
                }
            }
            Err(error) => self.not_there(name, &error, begun),
        }
    }

    /// Writes places of an open file, or cuts it, waits, and closes it. None if the file is gone,
    /// else whether all is there now. The file is open from when the request was sent, which may
    /// have answered at any moment since.
    async fn fill(
        &self,
        (opened, opening): (Opened, Instant),
        places: std::ops::Range<u32>,
        value: u8,
        hold: Nanos,
    ) -> Result<Option<bool>, Failure> {
        let (file, begun) = (opened.file, self.now());
        let (session, tickets): (_, Vec<Ticket>) = {
            let mut truth = self.scene.truth.lock();
            let session = truth.open(file, self.client, opening);
            let write = |place| truth.write(file, place, value, self.client, begun);
            (session, places.clone().map(write).collect())
        };
        let data = vec![value; PLACE_BYTES as usize];
        let write = |place: u32| {
            let at = u64::from(place) * u64::from(self.scene.stride);
            self.host.write(&opened, at, &data)
        };
        let written: Result<Vec<()>, Refused> = match value {
            CUT => self.host.cut(&opened).await.map(|()| Vec::new()),
            _ => join_all(places.clone().map(write)).await.into_iter().collect(),
        };
        self.scene.clock.sleep(hold).await;
        let closed = self.host.close(opened).await;
        let now = self.now();
        self.scene.truth.lock().closed(file, session, now);
        match written.and(closed) {
            Ok(()) => {
                let mut truth = self.scene.truth.lock();
                for (place, ticket) in places.zip(tickets) {
                    truth.written(file, place, ticket, now);
                }
                Ok(Some(true))
            }
            Err(error) if error.status()? == NfsStat3::Stale => Ok(None),
            Err(error) => self.excuse("write", &error).map(|()| Some(false)),
        }
    }

    async fn read(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        match self.host.read(name).await {
            Ok((file, data)) => {
                self.note(|| format!("  {file:?}, {} bytes", data.len()));
                self.check_name(name, Some(file), begun)?;
                let look = self.look_since(begun);
                let checked = self.scene.truth.lock().check_data(file, &data, look);
                checked.map_err(failed("close-to-open"))
            }
            Err(error) => self.not_there(name, &error, begun),
        }
    }

    async fn look(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        match self.host.look(name).await {
            Ok(file) => self.check_name(name, Some(file), begun),
            Err(error) => self.not_there(name, &error, begun),
        }
    }

    async fn list(&self, wait: Nanos) -> Result<(), Failure> {
        let begun = self.now();
        let names = self.host.list(wait).await.map_err(refused("list failed"))?;
        let checked = self.scene.truth.lock().check_list(&names, self.look_since(begun));
        checked.map_err(failed("list"))
    }

    async fn append(&mut self, step: u32, log: u32, keeps: bool) -> Result<(), Failure> {
        while std::mem::replace(&mut self.scene.truth.lock().logs[log as usize].is_taken, true) {
            self.scene.clock.sleep(TURN).await;
        }
        let session = self.scene.truth.lock().turn(log, self.client, self.now());
        let record = format!("[{:02}{:02}{step:08}]\n", self.client, self.number);
        let appended = self.append_now(log, &record, keeps).await;
        let stable = appended.is_ok().then_some(record);
        self.scene.truth.lock().turned(log, session, stable, self.now());
        match appended {
            Ok(()) => Ok(()),
            Err(error) => self.excuse("append", &error),
        }
    }

    async fn append_now(&mut self, log: u32, record: &str, keeps: bool) -> Result<(), Refused> {
        let name = log_name(log);
        let opened = match self.open.remove(&name) {
            Some(opened) => opened,
            None => self.host.open(&name, Way::Append).await?,
        };
        let done = self.append_to(&opened, record).await;
        match keeps {
            true => {
                self.open.insert(name, opened);
                done
            }
            false => done.and(self.host.close(opened).await),
        }
    }

    async fn append_to(&self, opened: &Opened, record: &str) -> Result<(), Refused> {
        self.host.append(opened, record.as_bytes()).await?;
        self.host.sync(opened).await
    }

    async fn read_log(&self, log: u32) -> Result<(), Failure> {
        let (name, begun) = (log_name(log), self.now());
        let (_, data) = self.host.read(&name).await.map_err(refused("read failed"))?;
        let checked = self.scene.truth.lock().check_log(log, &data, self.look_since(begun));
        checked.map_err(failed("records"))
    }

    /// Of a log that begins with a record that is stable: nobody sees a difference, unless somebody
    /// takes the writing for that of another client, or for appending.
    async fn rewrite(&self, log: u32, hold: Nanos) -> Result<(), Failure> {
        let name = log_name(log);
        let Some(record) = self.scene.truth.lock().first_record(log) else { return Ok(()) };
        let (_, data) = self.host.read(&name).await.map_err(refused("read failed"))?;
        if !data.starts_with(record.as_bytes()) {
            return Ok(());
        }
        let session = self.scene.truth.lock().rewrites(log, self.client, self.now());
        let rewritten = self.rewrite_now(&name, record.as_bytes(), hold).await;
        self.scene.truth.lock().rewritten(log, session, self.now());
        self.unless_disk_failed(rewritten).map(drop)
    }

    async fn rewrite_now(&self, name: &str, record: &[u8], hold: Nanos) -> Result<(), Refused> {
        let opened = self.host.open(name, Way::Write).await?;
        let written = self.host.write(&opened, 0, record).await;
        let looked = self.host.attributes(&opened).await;
        self.scene.clock.sleep(hold).await;
        written.and(looked).and(self.host.close(opened).await)
    }

    /// Counts on in the host's own place of a file, under its lock.
    async fn lock(&mut self, lock: u32, hold: Nanos, keeps: bool) -> Result<(), Failure> {
        let way = Locking::of(lock);
        if !self.host.has_locks(way) {
            return Ok(());
        }
        let name = lock_name(lock);
        let opened = match self.open.remove(&name) {
            Some(opened) => opened,
            None => {
                let opened = self.host.open_to_lock(&name, way).await;
                opened.map_err(refused("open of a lock failed"))?
            }
        };
        let counted = self.count_on(&opened, lock, hold).await?;
        match keeps {
            true => {
                let unlocked = self.host.unlock(&opened, self.number, way);
                unlocked.map_err(refused("unlock failed"))?;
                self.open.insert(name, opened);
                self.unless_disk_failed(counted).map(drop)
            }
            // Closing gives it up.
            false => self.unless_disk_failed(counted.and(self.host.close(opened).await)).map(drop),
        }
    }

    /// What there is to do while it has a lock; who looks on takes it for given up then.
    async fn count_on(
        &self,
        opened: &Opened,
        lock: u32,
        hold: Nanos,
    ) -> Result<Result<(), Refused>, Failure> {
        let (of, failed) = ((self.client, lock), failed("lock"));
        let locked = self.host.lock(opened, self.number, Locking::of(lock)).await;
        locked.map_err(refused("lock failed"))?;
        self.scene.truth.lock().locked(of, self.number).map_err(&failed)?;
        let at = self.client as u64 * u64::from(self.scene.stride);
        let seen = self.host.number_at(opened, at).await;
        let seen = seen.map_err(refused("read under a lock failed"))?;
        let may_be_lost = self.scene.history.was_troubled();
        let next = self.scene.truth.lock().guarded(of, seen, may_be_lost).map_err(&failed)?;
        let written = self.host.write(opened, at, &next.to_le_bytes()).await;
        self.note(|| format!("  {next}"));
        self.scene.clock.sleep(hold).await;
        self.scene.truth.lock().unlocked(of);
        Ok(written)
    }

    /// What all have written under locks, in the end.
    pub(super) async fn read_locks(&self, lock: u32) -> Result<(), Failure> {
        if self.scene.history.was_troubled() {
            return Ok(());
        }
        let (_, data) = self.host.read(&lock_name(lock)).await.map_err(refused("read failed"))?;
        self.scene.truth.lock().check_locks(lock, &data).map_err(failed("lock"))
    }

    fn now(&self) -> Instant {
        self.scene.clock.now()
    }

    /// From then until now.
    fn look_since(&self, begun: Instant) -> Look {
        Look { by: self.client, begun, ended: self.now(), heard: begun }
    }

    fn check_name(
        &self,
        name: &str,
        seen: Option<FileHandle>,
        begun: Instant,
    ) -> Result<(), Failure> {
        self.note(|| format!("  {seen:?}"));
        let (look, remembers) = (self.look_since(begun), self.host.remembers());
        let checked = self.scene.truth.lock().check_name(name, seen, look, remembers);
        checked.map_err(failed("name"))
    }

    /// Nothing was found.
    fn not_there(&self, name: &str, error: &Refused, begun: Instant) -> Result<(), Failure> {
        match error.status()? {
            NfsStat3::NoEnt => self.check_name(name, None, begun),
            NfsStat3::Stale => self.may_be_gone(name, begun),
            _ => self.excuse("open", error),
        }
    }

    /// Whether the server has forgotten meanwhile what it was requested, so that it may have done
    /// it twice.
    fn was_forgotten(&self, begun: Instant) -> bool {
        self.scene.history.doubt(begun, self.now()).forgot
    }

    /// Whether what stands in the way may be what this very operation has done before.
    fn may_be_ours<T>(
        &self,
        done: &Result<T, Refused>,
        by: NfsStat3,
        begun: Instant,
    ) -> Result<bool, Failure> {
        match done {
            Err(error) => Ok(error.status()? == by && self.was_forgotten(begun)),
            Ok(_) => Ok(false),
        }
    }

    fn may_be_gone(&self, name: &str, begun: Instant) -> Result<(), Failure> {
        match self.scene.truth.lock().may_be_gone(name, self.look_since(begun)) {
            true => Ok(()),
            false => Err(Failure::new("stale", format!("nobody has taken {name} away"))),
        }
    }

    /// None for an error that the disk has made.
    fn unless_disk_failed<T>(&self, result: Result<T, Refused>) -> Result<Option<T>, Failure> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(error) => self.excuse("call", &error).map(|()| None),
        }
    }

    /// An error is one that the disk has made.
    fn excuse(&self, verb: &str, error: &Refused) -> Result<(), Failure> {
        let is_full = error.status()? == NfsStat3::NoSpc && self.scene.history.was_troubled();
        self.note(|| format!("  {error}"));
        match is_full {
            true => Ok(()),
            false => Err(Failure::new(format!("{verb} failed"), error.to_string())),
        }
    }

    fn note(&self, what: impl FnOnce() -> String) {
        let (client, number) = (self.client, self.number);
        self.scene.trace.lock().add(self.now(), || format!("{client}.{number} {}", what()));
    }
}

fn failed(way: &'static str) -> impl Fn(String) -> Failure {
    move |what| Failure::new(way, what)
}

/// For what has nothing to fail for.
pub(super) fn refused(way: &'static str) -> impl Fn(Refused) -> Failure {
    move |refused| Failure::new(way, refused.to_string())
}
