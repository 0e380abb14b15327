//! A client of a plan: it does its steps one after the other and compares every outcome.

use std::pin::pin;

use cache::medium::Memory;
use client::error::Error;
use client::files::{self, Files};
use client::session::Session;
use futures_util::future::{Either, select};
use net::call::{self, Bulk, Traits};
use net::clock::{Clock, Group};
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, NfsStat3};

use super::access::{Access, Means};
use super::data::Stopped;
use super::expected::{Expected, type_of};
use super::failure::Failure;
use super::fate::Wires;
use super::public::Places;
use super::stage::{Stage, on_disk};
use crate::plan::{By, Level, Op, Plan};
use crate::reference::tree::{Change, Doubt, How, Thing, parent};

/// Nothing is as if something had been lost: for bytes that the client keeps, and shows, itself.
pub(super) const NEVER: u64 = 0;

/// So many losses there never are: nothing that is not stable is sure.
pub(super) const UNSURE: u64 = u64::MAX;

/// READ and WRITE of version 3 move data.
const TRAITS: Traits = Traits {
    class: Some,
    bulk: |procedure| match procedure {
        6 => Some(Bulk::Read),
        7 => Some(Bulk::Write),
        _ => None,
    },
    is_idempotent: |_| false,
};

/// See the module's head.
pub(crate) struct Actor {
    pub(super) number: usize,
    pub(super) stage: Stage,
    pub(super) access: Access,
    pub(super) places: Places,
    pub(super) expected: Expected,
    wires: Wires,
    /// What it is at: done or not, if it vanishes.
    in_flight: Option<(u32, Op)>,
    pub(super) has_vanished: bool,
}

impl Actor {
    /// Mounts, and finds or makes its places.
    pub(crate) async fn enter(stage: &Stage, plan: &Plan, number: usize) -> Result<Self, Failure> {
        let (clock, session, wires) = mounted(stage, plan, number).await?;
        let (places, home) = Places::make(&session, plan.clients.len(), number).await?;
        let means = match plan.clients[number].level {
            Level::Calls => Means::Calls(session),
            Level::Files => {
                let disk =
                    number.is_multiple_of(2).then(|| on_disk(&Memory::default(), stage.planted));
                let files = Files::on_disk(&clock, session, files::Options::default(), disk);
                Means::Files { files, opens: Default::default() }
            }
        };
        Ok(Self {
            number,
            stage: stage.clone(),
            access: Access { home, means },
            places,
            expected: Expected::new(),
            wires,
            in_flight: None,
            has_vanished: false,
        })
    }

    pub(crate) fn wires(&self) -> Wires {
        self.wires.clone()
    }

    /// Does its steps, until they are done or it vanishes.
    pub(crate) async fn act(&mut self, plan: &Plan, begun: Instant) -> Result<(), Failure> {
        let group = self.wires.group.clone();
        let acted = unless_killed(&group, self.steps(plan, begun)).await;
        acted.unwrap_or_else(|| {
            self.vanish();
            Ok(())
        })
    }

    /// Makes everything stable, and closes what is open.
    pub(crate) async fn leave(&mut self) -> Result<(), Failure> {
        if self.has_vanished {
            return Ok(());
        }
        let group = self.wires.group.clone();
        let left = unless_killed(&group, self.finish()).await;
        left.unwrap_or_else(|| {
            self.vanish();
            Ok(())
        })
    }

    async fn steps(&mut self, plan: &Plan, begun: Instant) -> Result<(), Failure> {
        let clock = self.stage.clock.clone();
        for (number, at, op) in plan.ops(self.number) {
            clock.sleep((begun + at).since(clock.now())).await;
            let client = self.number;
            self.note(|| format!("{client} {op}"));
            self.stage.trace.lock().op();
            self.in_flight = Some((number, op.clone()));
            let since = clock.now();
            let done = self.step(number, &op).await;
            self.in_flight = None;
            done.map_err(|Failure { way, what }| {
                let (from, to) = (since.since(begun), clock.now().since(begun));
                let what = format!("client {client}, `{op}`, from {from} to {to}: {what}");
                Failure { way, what }
            })?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        let client = self.number;
        self.note(|| format!("{client} leaves"));
        for (number, file) in self.expected.unsettled() {
            if self.expected.has_name(number) || self.access.is_open(&file) {
                self.commit(number, file).await?;
            }
        }
        for file in self.access.opens() {
            if let Some(number) = self.expected.number_of(&file) {
                self.read_and_check(number, file, 0, 1 << 20).await?;
                self.close(number, file).await?;
            }
        }
        self.commit_part().await?;
        self.leave_places().await?;
        if let Means::Files { files, .. } = &self.access.means {
            let lost = files.shut_down().await;
            if let Some(loss) = lost.first().filter(|_| !self.stage.history.was_troubled()) {
                return Err(Failure::new("loss at the end", loss.error.to_string()));
            }
        }
        Ok(())
    }

    /// It is gone: nobody knows how far it came.
    fn vanish(&mut self) {
        self.has_vanished = true;
        let client = self.number;
        self.note(|| format!("{client} has vanished"));
        self.expected.abandoned();
        match self.in_flight.take() {
            Some((number, Op::Change(change))) => self.expected.may_have_changed(&change, number),
            Some((_, Op::Write { path, at, bytes, value, .. })) => {
                for number in self.expected.files_at(&path) {
                    let range = at as usize..(at + bytes) as usize;
                    self.expected.content(number).doubted(range, value);
                }
            }
            Some((_, Op::Resize(path, bytes))) => {
                for number in self.expected.files_at(&path) {
                    self.expected.content(number).resize_doubted(bytes as usize);
                }
            }
            Some((_, Op::WritePart { at, bytes, value, .. })) => {
                self.expected.part.doubted(at as usize..(at + bytes) as usize, value);
            }
            _ => {}
        }
    }

    async fn step(&mut self, number: u32, op: &Op) -> Result<(), Failure> {
        match op {
            Op::Change(change) => self.change(number, change).await,
            Op::Write { path, at, bytes, value, stable, pieces } => {
                let Some((number, file)) = self.file(path).await? else { return Ok(()) };
                self.write(number, file, (*at, *bytes), *value, *stable, *pieces).await
            }
            Op::Commit(path) => match self.file(path).await? {
                Some((number, file)) => self.commit(number, file).await,
                None => Ok(()),
            },
            Op::Close(path) => match self.file(path).await? {
                Some((number, file)) => {
                    self.commit(number, file).await?;
                    self.close(number, file).await
                }
                None => Ok(()),
            },
            Op::Resize(path, bytes) => match self.file(path).await? {
                Some((number, file)) => self.resize(number, file, *bytes).await,
                None => Ok(()),
            },
            Op::Read { path, at, bytes } => match self.resolve(path).await? {
                Some((Thing::File(number), file)) => {
                    self.read_and_check(number, file, *at, *bytes).await
                }
                Some((Thing::Link(_, text), link)) => {
                    let seen = self.access.readlink(link).await.map_err(no_reply("readlink"))?;
                    match seen == text.as_bytes() {
                        true => Ok(()),
                        false => Err(Failure::new("readlink", format!("{seen:?}, not {text}"))),
                    }
                }
                _ => Ok(()),
            },
            Op::Look(path) => self.look(path).await,
            Op::List(path) => self.list(path).await,
            Op::Publish { bytes, style } => self.publish(number, *bytes, *style).await,
            Op::Peek { of } => self.peek(*of).await,
            Op::WritePart { at, bytes, value, stable } => {
                self.write_part(*at, *bytes, *value, *stable).await
            }
            Op::CommitPart => self.commit_part().await,
            Op::ReadPart => self.read_part().await,
            // There is a contest then, and other players.
            Op::Contend { .. } => Ok(()),
        }
    }

    async fn change(&mut self, number: u32, change: &Change) -> Result<(), Failure> {
        let change = match change {
            Change::Create(path, How::Guarded) if self.access.is_files() => {
                Change::Create(path.clone(), How::Exclusive)
            }
            other => other.clone(),
        };
        self.close_what_goes(&change).await?;
        let since = self.stage.clock.now();
        let result = self.access.change(&change, number).await;
        let doubt = self.doubt(since);
        let (seen, handle) = match result {
            Ok(handle) => (Ok(()), handle),
            Err(error) => (Err(status(&error)?), None),
        };
        self.note(|| format!("  {seen:?}"));
        self.expected.crashed(self.stage.history.crashes());
        self.expected.changed(&change, number, doubt, seen, handle)
    }

    /// A hidden name is left only in the client's own directory, which nobody removes.
    async fn close_what_goes(&mut self, change: &Change) -> Result<(), Failure> {
        let (Change::Remove(path) | Change::Rename(_, path)) = change else { return Ok(()) };
        if parent(path).is_empty() {
            return Ok(());
        }
        for number in self.expected.files_at(path) {
            if let Some(file) = self.expected.handle_of(number)
                && self.access.is_open(&file)
            {
                self.commit(number, file).await?;
                self.close(number, file).await?;
            }
        }
        Ok(())
    }

    /// What a path leads to, if anything.
    pub(super) async fn resolve(
        &mut self,
        path: &str,
    ) -> Result<Option<(Thing, FileHandle)>, Failure> {
        let seen = match self.access.find(path).await {
            Ok(handle) => Ok(handle),
            Err(error) => Err(status(&error)?),
        };
        self.expected.crashed(self.stage.history.crashes());
        self.expected.looked_up(path, seen)?;
        let Ok(handle) = seen else { return Ok(None) };
        if self.expected.is_ambiguous(path) {
            let seen = self.access.getattr(handle).await.map_err(no_reply("getattr"))?;
            self.expected.is_a(path, seen.ftype)?;
        }
        Ok(Some((self.expected.thing_at(path, handle)?, handle)))
    }

    async fn file(&mut self, path: &str) -> Result<Option<(u32, FileHandle)>, Failure> {
        Ok(match self.resolve(path).await? {
            Some((Thing::File(number), file)) => Some((number, file)),
            _ => None,
        })
    }

    async fn look(&mut self, path: &str) -> Result<(), Failure> {
        let Some((thing, handle)) = self.resolve(path).await? else { return Ok(()) };
        let before = self.losses();
        let seen = self.access.getattr(handle).await.map_err(no_reply("getattr"))?;
        let losses = if self.losses() == before { before } else { UNSURE };
        if seen.ftype != type_of(&thing) {
            return Err(Failure::new("type", format!("{path} is a {}", seen.ftype)));
        }
        if let Thing::File(number) = thing {
            let sizes = self.expected.content(number).sizes(losses);
            if !usize::try_from(seen.size).is_ok_and(|size| sizes.contains(&size)) {
                let what = format!("{path} has {} bytes, not {sizes:?}", seen.size);
                return Err(Failure::new("size", what));
            }
            let names = self.expected.names_of(number);
            let may_be_hidden = self.access.is_open(&handle) || self.expected.may_leave_hidden;
            if !names.contains(&seen.nlink) && !may_be_hidden {
                let what = format!("{path} has {} names, not {names:?}", seen.nlink);
                return Err(Failure::new("names", what));
            }
        }
        Ok(())
    }

    async fn list(&mut self, path: &str) -> Result<(), Failure> {
        let Some((Thing::Dir, dir)) = self.resolve(path).await? else { return Ok(()) };
        let mut seen = self.access.list(dir).await.map_err(no_reply("list"))?;
        self.expected.crashed(self.stage.history.crashes());
        seen.retain(|name| !name.starts_with(".nfs"));
        seen.sort();
        let names: Vec<String> = self.expected.any().names(path).into_iter().collect();
        let is_one = |tree: &crate::reference::tree::Tree| tree.names(path).iter().eq(seen.iter());
        match self.expected.trees().iter().any(is_one) {
            true => Ok(()),
            false => Err(Failure::new("list", format!("{path:?} has {seen:?}, not {names:?}"))),
        }
    }

    /// How often something was lost, for bytes that the client itself does not hold.
    pub(super) fn losses(&self) -> u64 {
        match self.access.is_files() {
            // An error that was not reported yet: what it was for is given up.
            true if self.stage.history.was_troubled() => UNSURE,
            true => NEVER,
            false => self.stage.history.losses(),
        }
    }

    pub(super) fn doubt(&self, since: Instant) -> Doubt {
        self.stage.history.doubt(since, self.stage.clock.now())
    }

    /// An error is one that the disk has made.
    pub(super) fn excuse(&self, verb: &str, error: &Error, since: Instant) -> Result<(), Failure> {
        self.excused(verb, error, since).map_err(|stopped| stopped.failure)
    }

    pub(super) fn excused(&self, verb: &str, error: &Error, since: Instant) -> Result<(), Stopped> {
        let status = status(error)?;
        let doubt = self.doubt(since);
        // What is written behind fails before that is reported.
        let late = self.access.is_files() && self.stage.history.was_troubled();
        let is_excused = match status {
            NfsStat3::Io => doubt.failed || late,
            NfsStat3::NoSpc => doubt.full || late,
            _ => false,
        };
        let failure = || Failure::new(format!("{verb} failed"), error.to_string());
        let is_stale = status == NfsStat3::Stale;
        if is_excused { Ok(()) } else { Err(Stopped { failure: failure(), is_stale }) }
    }

    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        self.stage.trace.lock().add(self.stage.clock.now(), what);
    }
}

/// A client's session, its clock, and what can be done to it.
pub(super) async fn mounted(
    stage: &Stage,
    plan: &Plan,
    number: usize,
) -> Result<(Clock, Session, Wires), Failure> {
    let (clock, group) = stage.clock.group();
    let client = plan.clients[number];
    let shared = std::sync::Arc::new(parking_lot::Mutex::new(stage.machine.calm(number)));
    let wires = Wires { outage: Default::default(), shared, group };
    let first_xid = u32::try_from(number + 1).unwrap_or(u32::MAX) << 24;
    let rpc = match client.by {
        By::Stream => {
            let nconnect = 1 + u32::try_from((plan.seed + number as u64) % 3).unwrap_or(0);
            let timeo = Nanos::from_secs(5);
            let usual = call::Options::stream();
            let options = call::Options { nconnect, timeo, first_xid, insist: true, ..usual };
            let rpc = stage.machine.over_stream(&clock, &wires.outage, options).await;
            rpc.map_err(|error| Failure::new("connect", error.to_string()))?
        }
        By::Datagrams => {
            let options = call::Options::datagrams();
            let options = call::Options { traits: TRAITS, first_xid, insist: true, ..options };
            stage.machine.over_datagrams(&clock, &wires.shared, &options)
        }
    };
    let session = stage.machine.session(rpc).await.map_err(at_entry)?;
    Ok((clock, session, wires))
}

/// What comes of `work`, unless its client is gone before.
pub(super) async fn unless_killed<T>(group: &Group, work: impl Future<Output = T>) -> Option<T> {
    // Who is gone does not notice its own calls failing.
    match select(pin!(group.killed()), pin!(work)).await {
        Either::Left(_) => None,
        Either::Right((done, _)) => Some(done),
    }
}

/// The status in the reply; anything else is a failure of the run.
pub(super) fn status(error: &Error) -> Result<NfsStat3, Failure> {
    error.status().ok_or_else(|| Failure::new("no reply", error.to_string()))
}

/// An operation that has nothing to fail for.
pub(super) fn no_reply(verb: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure::new(format!("{verb} failed"), error.to_string())
}

pub(super) fn at_entry(error: Error) -> Failure {
    Failure::new("entry", error.to_string())
}

impl std::fmt::Debug for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actor").field("number", &self.number).finish_non_exhaustive()
    }
}
