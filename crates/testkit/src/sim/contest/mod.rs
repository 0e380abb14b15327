//! All clients compete: for the same few names, files and logs, with several programs on each.
//!
//! ```text
//!   plan --> programs (here) --> host.rs: calls, or files and a kernel --links--> the server
//!               |  every outcome, with its beginning and end
//!               v
//!            truth.rs: registers of names and of bytes, records of logs
//! ```
//!
//! What is promised is in docs/client.md: whoever opens a file sees what was closed before; a name
//! may be remembered for as long as its directory's attributes are good; records appended in turn
//! are all there; and what a close has not complained about is there, also when the server has
//! lost power in the end.

mod host;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;

use client::error::Error;
use futures_util::future::{join, join_all, try_join_all};
use net::call;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, NfsStat3};

use self::host::{Host, Opened};
use self::truth::{Bound, Truth};
use super::client::{at_entry, mounted, no_reply, status};
use super::public::dir;
use super::{Failure, QUIET, Stage, fate};
use crate::outage::Outage;
use crate::plan::{Act, LOGS, Level, Op, PLACE_BYTES, PLACES, PROGRAMS_MAX, Plan};
use crate::reference::register::{Look, Ticket};

/// How often a program looks whether it is its turn.
const TURN: Nanos = Nanos::from_millis(1);

/// What whoever has seen nothing is called.
const STRANGER: usize = usize::MAX - 1;

type Shared = Arc<Mutex<Truth>>;

/// A program on a host.
struct Program<'h> {
    stage: &'h Stage,
    truth: &'h Shared,
    host: &'h Host,
    client: usize,
    number: usize,
    /// Logs that stay open.
    kept: BTreeMap<u32, Opened>,
}

pub(super) async fn play(stage: Stage, plan: Plan) -> Result<(), Failure> {
    let truth = Shared::default();
    let (mut hosts, mut wires) = (Vec::new(), Vec::new());
    for (number, client) in plan.clients.iter().enumerate() {
        let (clock, session, wire) = mounted(&stage, &plan, number).await?;
        let dir = dir(&session, "contest").await?;
        hosts.push(Host::new(&clock, session, dir, client.level, stage.mistake));
        wires.push(wire);
    }
    for log in 0..LOGS {
        let (name, now) = (log_name(log), stage.clock.now());
        let file = hosts[0].make(&name).await.map_err(at_entry)?;
        let ticket = truth.lock().bind(&name, Bound::Some, 0, now);
        truth.lock().bound(&name, ticket, Bound::File(file), stage.clock.now());
    }
    let begun = stage.clock.now();
    let programs = hosts.iter().enumerate().flat_map(|(client, host)| {
        let (stage, truth) = (&stage, &truth);
        (0..PROGRAMS_MAX).map(move |number| {
            let kept = BTreeMap::new();
            Program { stage, truth, host, client, number, kept }
        })
    });
    let running = try_join_all(programs.map(|program| program.run(&plan, begun)));
    let (ran, ()) = join(running, fate::run(&stage, &plan, &wires, begun)).await;
    ran?;
    for host in &hosts {
        if let Some(error) = host.leave().await.filter(|_| !stage.history.was_troubled()) {
            return Err(Failure::new("loss at the end", error.to_string()));
        }
    }
    stage.machine.calm_down();
    stage.clock.sleep(QUIET).await;
    walk(&stage, &truth, "the end").await?;
    stage.machine.lose_power().await;
    walk(&stage, &truth, "the loss of power").await?;
    stage.machine.audit()
}

/// Somebody who has seen nothing before looks at everything.
async fn walk(stage: &Stage, truth: &Shared, when: &str) -> Result<(), Failure> {
    let now = stage.clock.now().since(Instant::EPOCH).as_nanos();
    // No client has these numbers, nor has a walk before.
    let first_xid = 0xff00_0000 | u32::try_from(now >> 20 & 0xff_ffff).unwrap_or(0);
    let options = call::Options { first_xid, insist: true, ..call::Options::stream() };
    let rpc = stage.machine.over_stream(&stage.clock, &Outage::default(), options).await;
    let rpc = rpc.map_err(|error| Failure::new("connect", error.to_string()))?;
    let session = stage.machine.session(rpc).await.map_err(at_entry)?;
    let dir = dir(&session, "contest").await?;
    let host = Host::new(&stage.clock, session, dir, Level::Calls, None);
    let kept = BTreeMap::new();
    let mut stranger = Program { stage, truth, host: &host, client: STRANGER, number: 0, kept };
    let names = truth.lock().names();
    let is_log = |name: &String| (0..LOGS).any(|log| log_name(log) == *name);
    let files = names.into_iter().filter(|name| !is_log(name)).map(Act::Read);
    let logs = (0..LOGS).map(|log| Act::ReadLog { log });
    let list = Act::List { wait: Nanos::ZERO };
    for act in files.chain(logs).chain([list]) {
        stranger.act(0, &act).await.map_err(|Failure { way, what }| Failure {
            way,
            what: format!("at {when}, `{act}`: {what}"),
        })?;
    }
    Ok(())
}

fn log_name(log: u32) -> String {
    format!("log{log}")
}

impl Program<'_> {
    async fn run(mut self, plan: &Plan, begun: Instant) -> Result<(), Failure> {
        let clock = self.stage.clock.clone();
        for (step, at, op) in plan.ops(self.client) {
            let Op::Contend { program, act } = op else { continue };
            if program != self.number {
                continue;
            }
            clock.sleep((begun + at).since(clock.now())).await;
            self.note(|| act.to_string());
            self.stage.trace.lock().op();
            let since = clock.now();
            self.act(step, &act).await.map_err(|Failure { way, what }| {
                let (from, to) = (since.since(begun), clock.now().since(begun));
                let (client, number) = (self.client, self.number);
                let what = format!("{client}.{number}, `{act}`, from {from} to {to}: {what}");
                Failure { way, what }
            })?;
        }
        for (_, opened) in std::mem::take(&mut self.kept) {
            let closed = self.host.close(opened).await;
            self.told(closed)?;
        }
        Ok(())
    }

    async fn act(&mut self, step: u32, act: &Act) -> Result<(), Failure> {
        match act {
            Act::Make(name) => self.make(name).await,
            Act::Remove(name) => self.remove(name).await,
            Act::Replace { name, value } => self.replace(step, name, *value).await,
            Act::Write { name, first, count, value, hold } => {
                self.write(name, *first..*first + *count, *value, *hold).await
            }
            Act::Read(name) => self.read(name).await,
            Act::Look(name) => self.look(name).await,
            Act::List { wait } => self.list(*wait).await,
            Act::Append { log, keeps } => self.append(step, *log, *keeps).await,
            Act::ReadLog { log } => self.read_log(*log).await,
        }
    }

    async fn make(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        let ticket = self.truth.lock().bind(name, Bound::Some, self.client, begun);
        match self.host.make(name).await {
            Ok(file) => {
                self.truth.lock().bound(name, ticket, Bound::File(file), self.now());
                Ok(())
            }
            Err(error) if status(&error)? == NfsStat3::Exist => {
                let mut truth = self.truth.lock();
                truth.not_bound(name, ticket);
                truth.check_taken(name, self.look_since(begun)).map_err(failed("name"))
            }
            // It was made, and is gone before its attributes were set.
            Err(error) if status(&error)? == NfsStat3::Stale => self.may_be_gone(name, begun),
            Err(error) => self.excuse("make", &error),
        }
    }

    async fn remove(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        let ticket = self.truth.lock().bind(name, Bound::Nothing, self.client, begun);
        match self.host.remove(name).await {
            Ok(()) => {
                self.truth.lock().bound(name, ticket, Bound::Nothing, self.now());
                Ok(())
            }
            Err(error) if status(&error)? == NfsStat3::NoEnt => {
                let mut truth = self.truth.lock();
                truth.not_bound(name, ticket);
                let look = self.look_since(begun);
                truth.check_name(name, None, look, false).map_err(failed("name"))
            }
            Err(error) if status(&error)? == NfsStat3::Stale => self.may_be_gone(name, begun),
            Err(error) => self.excuse("remove", &error),
        }
    }

    async fn replace(&self, step: u32, name: &str, value: u8) -> Result<(), Failure> {
        let beside = format!("t{}-{}-{step}", self.client, self.number);
        let made = self.host.make(&beside).await;
        if self.told(made)?.is_none() {
            return Ok(());
        }
        let opened = self.host.open(&beside).await;
        let Some(opened) = self.told(opened)? else { return Ok(()) };
        let file = opened.file;
        match self.fill(opened, 0..PLACES, value, Nanos::ZERO).await? {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => return Err(Failure::new("stale", format!("nobody has taken {beside} away"))),
        }
        let ticket = self.truth.lock().bind(name, Bound::File(file), self.client, self.now());
        let renamed = self.host.rename(&beside, name).await;
        if self.told(renamed)?.is_some() {
            self.truth.lock().bound(name, ticket, Bound::File(file), self.now());
        }
        Ok(())
    }

    async fn write(
        &self,
        name: &str,
        places: std::ops::Range<u32>,
        value: u8,
        hold: Nanos,
    ) -> Result<(), Failure> {
        let begun = self.now();
        match self.host.open(name).await {
            Ok(opened) => {
                self.check_name(name, Some(opened.file), begun)?;
                match self.fill(opened, places, value, hold).await? {
                    None => self.may_be_gone(name, begun),
                    Some(_) => Ok(()),
                }
            }
            Err(error) => self.not_there(name, &error, begun),
        }
    }

    /// Writes places of an open file, waits, and closes it. None if the file is gone, else whether
    /// all is there now.
    async fn fill(
        &self,
        opened: Opened,
        places: std::ops::Range<u32>,
        value: u8,
        hold: Nanos,
    ) -> Result<Option<bool>, Failure> {
        let (file, begun) = (opened.file, self.now());
        let (session, tickets): (_, Vec<Ticket>) = {
            let mut truth = self.truth.lock();
            let session = truth.open(file, self.client, begun);
            let write = |place| truth.write(file, place, value, self.client, begun);
            (session, places.clone().map(write).collect())
        };
        let data = vec![value; PLACE_BYTES as usize];
        let write = |place: u32| {
            let at = u64::from(place) * 2 * u64::from(PLACE_BYTES);
            self.host.write(&opened, at, &data)
        };
        let written: Result<Vec<()>, Error> =
            join_all(places.clone().map(write)).await.into_iter().collect();
        self.stage.clock.sleep(hold).await;
        let closed = self.host.close(opened).await;
        let now = self.now();
        self.truth.lock().closed(file, session, now);
        match written.and(closed) {
            Ok(()) => {
                let mut truth = self.truth.lock();
                if truth.has_failed(file, self.client, begun) {
                    return Ok(Some(true));
                }
                for (place, ticket) in places.zip(tickets) {
                    truth.written(file, place, ticket, now);
                }
                Ok(Some(true))
            }
            Err(error) if status(&error)? == NfsStat3::Stale => Ok(None),
            Err(error) => {
                self.truth.lock().failed(file, self.client, begun, now);
                self.excuse("write", &error).map(|()| Some(false))
            }
        }
    }

    async fn read(&self, name: &str) -> Result<(), Failure> {
        let begun = self.now();
        match self.host.read(name).await {
            Ok((file, data)) => {
                self.note(|| format!("  {file:?}, {} bytes", data.len()));
                self.check_name(name, Some(file), begun)?;
                let look = self.look_since(begun);
                let checked = self.truth.lock().check_data(file, &data, look);
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
        let names = self.host.list(wait).await.map_err(no_reply("list"))?;
        let checked = self.truth.lock().check_list(&names, self.look_since(begun));
        checked.map_err(failed("list"))
    }

    async fn append(&mut self, step: u32, log: u32, keeps: bool) -> Result<(), Failure> {
        while std::mem::replace(&mut self.truth.lock().logs[log as usize].is_taken, true) {
            self.stage.clock.sleep(TURN).await;
        }
        let session = self.truth.lock().turn(log, self.client, self.now());
        let record = format!("[{:02}{:02}{step:08}]\n", self.client, self.number);
        let appended = self.append_now(log, &record, keeps).await;
        let stable = appended.is_ok().then_some(record);
        self.truth.lock().turned(log, session, stable, self.now());
        match appended {
            Ok(()) => Ok(()),
            Err(error) => self.excuse("append", &error),
        }
    }

    async fn append_now(&mut self, log: u32, record: &str, keeps: bool) -> Result<(), Error> {
        let opened = match self.kept.remove(&log) {
            Some(opened) => opened,
            None => self.host.open(&log_name(log)).await?,
        };
        let done = self.append_to(&opened, record).await;
        match keeps {
            true => {
                self.kept.insert(log, opened);
                done
            }
            false => done.and(self.host.close(opened).await),
        }
    }

    async fn append_to(&self, opened: &Opened, record: &str) -> Result<(), Error> {
        let end = self.host.end(opened).await?;
        self.host.write(opened, end, record.as_bytes()).await?;
        self.host.sync(opened).await
    }

    async fn read_log(&self, log: u32) -> Result<(), Failure> {
        let (name, begun) = (log_name(log), self.now());
        let (_, data) = self.host.read(&name).await.map_err(no_reply("read"))?;
        let checked = self.truth.lock().check_log(log, &data, self.look_since(begun));
        checked.map_err(failed("records"))
    }

    fn now(&self) -> Instant {
        self.stage.clock.now()
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
        let checked = self.truth.lock().check_name(name, seen, look, remembers);
        checked.map_err(failed("name"))
    }

    /// Nothing was found.
    fn not_there(&self, name: &str, error: &Error, begun: Instant) -> Result<(), Failure> {
        match status(error)? {
            NfsStat3::NoEnt => self.check_name(name, None, begun),
            NfsStat3::Stale => self.may_be_gone(name, begun),
            _ => self.excuse("open", error),
        }
    }

    fn may_be_gone(&self, name: &str, begun: Instant) -> Result<(), Failure> {
        match self.truth.lock().may_be_gone(name, self.look_since(begun)) {
            true => Ok(()),
            false => Err(Failure::new("stale", format!("nobody has taken {name} away"))),
        }
    }

    /// None for an error that the disk has made.
    fn told<T>(&self, result: Result<T, Error>) -> Result<Option<T>, Failure> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(error) => self.excuse("call", &error).map(|()| None),
        }
    }

    /// An error is one that the disk has made.
    fn excuse(&self, verb: &str, error: &Error) -> Result<(), Failure> {
        let is_full = status(error)? == NfsStat3::NoSpc && self.stage.history.was_troubled();
        self.note(|| format!("  {error}"));
        match is_full {
            true => Ok(()),
            false => Err(Failure::new(format!("{verb} failed"), error.to_string())),
        }
    }

    fn note(&self, what: impl FnOnce() -> String) {
        let (client, number) = (self.client, self.number);
        self.stage.trace.lock().add(self.now(), || format!("{client}.{number} {}", what()));
    }
}

fn failed(way: &'static str) -> impl Fn(String) -> Failure {
    move |what| Failure::new(way, what)
}
