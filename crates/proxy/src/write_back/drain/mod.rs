//! Changes go to the origin.

mod files;
mod names;

use std::pin::pin;
use std::sync::Arc;

use perf::units::Nanos;
use server::store::Store;
use server::types::{Before, Handle, Status};

use super::aside::{GIVE_UP, is_for_good};
use super::away::PATIENCE;
use super::came::Came;
use super::describe::describe;
use super::events::Event;
use super::record::{Change, Entry};
use super::state::State;
use super::touches::file;
use super::{Inner, Mistake};

/// When a change is tried again that the origin has refused, at first and at most.
const AGAIN: Nanos = Nanos::from_millis(500);
const AGAIN_MAX: Nanos = Nanos::from_secs(30);

/// Why a change is to be tried again.
enum Held {
    Refused(Status),
    /// It was not carried out, and this host does not record that.
    Unrecorded(String),
}

impl<S: Store> Inner<S> {
    /// Sends what is due, so many at a time.
    pub(super) async fn send(self: Arc<Self>) {
        loop {
            let (due, wait) = self.due();
            for number in due {
                self.clock.spawn(Arc::clone(&self).carry_out(number));
            }
            let woken = self.to_send.notified();
            match wait {
                Some(wait) => drop(self.clock.within(wait, pin!(woken)).await),
                None => woken.await,
            }
        }
    }

    /// What is due, or how long it waits still. They go many at a time, for less work on either
    /// side, and while clients are idle: once the oldest goes, so do all others.
    fn due(&self) -> (Vec<u64>, Option<Nanos>) {
        let (mut due, mut state) = (Vec::new(), self.state.lock());
        let wait = state.gathers(&self.options, self.now());
        let is_time = wait.is_none() && !state.is_fenced;
        while is_time && state.under_way < self.options.under_way_max {
            let Some(number) = state.next() else { break };
            due.push(number);
        }
        (due, wait)
    }

    /// Brings a change to the origin, however long that takes.
    async fn carry_out(self: Arc<Self>, number: u64) {
        let (mut pause, mut refused_since) = (AGAIN, None);
        let mut to_join = match self.goes_aside(number) {
            true => Vec::new(),
            false => self.state.lock().join(number),
        };
        loop {
            // What is refused is tried again alone.
            let joined = std::mem::take(&mut to_join);
            if joined.is_empty() && self.state.lock().is_superfluous(number) {
                return self.arrived(number, &joined, Came::default());
            }
            if self.goes_aside(number)
                && let Some(came) = self.set_aside(number, None).await
            {
                return self.arrived(number, &joined, came);
            }
            let held = match self.carried(number, &joined).await {
                Ok(came) => return self.arrived(number, &joined, came),
                Err(held) => held,
            };
            if !joined.is_empty() {
                // Perhaps it does not take them as one. They may have been executed.
                self.state.lock().part(number, &joined);
                continue;
            }
            let status = self.held_up(number, held);
            let now = self.now();
            let since = *refused_since.get_or_insert(now);
            if !is_for_good(status) {
                refused_since = None;
            } else if now.since(since) >= GIVE_UP
                && let Some(came) = self.set_aside(number, Some(status)).await
            {
                return self.arrived(number, &joined, came);
            }
            let dropped = |state: &mut State| state.is_superfluous(number).then_some(());
            self.clock.within(pause, pin!(self.until(dropped))).await.ok();
            pause = (pause + pause).min(AGAIN_MAX);
        }
    }

    /// Carries a change out, and records what of it was not.
    async fn carried(&self, number: u64, joined: &[u64]) -> Result<Came, Held> {
        if self.state.lock().sends(number, self.now()) {
            self.to_write.notify_one();
        }
        let mut carrying = pin!(self.carry(number, joined));
        let carried = match self.clock.within(PATIENCE, carrying.as_mut()).await {
            Ok(carried) => carried,
            Err(_elapsed) => {
                self.is_away(&mut self.state.lock(), true);
                self.changed.notify_waiters();
                carrying.await
            }
        };
        let came = carried.map_err(Held::Refused)?;
        self.state.lock().is_away = false;
        came.lost.iter().try_for_each(|lost| self.conflict(lost)).map_err(Held::Unrecorded)?;
        Ok(came)
    }

    /// A change waits. That is reported once for each reason, as long as any change waits for it;
    /// the reason, as a status.
    fn held_up(&self, number: u64, held: Held) -> Status {
        let status = match &held {
            Held::Refused(status) => *status,
            Held::Unrecorded(_) => Status::NoSpace,
        };
        let mut state = self.state.lock();
        state.counts.tried_again += 1;
        self.is_away(&mut state, status == Status::Away);
        let Some(change) = state.ops.get(&number).map(|op| op.entry.change.clone()) else {
            return status;
        };
        let is_later = matches!(status, Status::Away | Status::Jukebox);
        let is_known = state.trouble(number, status);
        let is_reported = matches!(held, Held::Refused(_)) && state.troubles_others(number, status);
        let is_news = !is_known && !is_reported && !is_later;
        drop(state);
        // Nobody waits behind who waits for this.
        self.changed.notify_waiters();
        if is_news {
            let event = match held {
                Held::Refused(status) => {
                    let path = self.path_of(&change, file(&change).as_ref());
                    Event::Refused { change: describe(&change), path, status }
                }
                Held::Unrecorded(why) => Event::NotStored { why },
            };
            (self.options.hear)(&event).ok();
        }
        status
    }

    fn arrived(&self, number: u64, joined: &[u64], came: Came) {
        let now = self.now();
        let mut state = self.state.lock();
        let Came { outcome, dirs, dropped, is_last, answered, differs, is_lost, lost: _ } = came;
        if let Some(node) = outcome.file.and_then(|file| state.nodes.find_mut(&file)) {
            node.answered = node.answered.saturating_sub(answered);
            node.left(outcome.after, is_last);
        }
        for (dir, wcc) in &dirs {
            if let Some(node) = state.nodes.find_mut(dir) {
                node.left(wcc.after.as_ref().map(Before::from), false);
            }
        }
        let is_last_beside = |file: &Handle| {
            let node = state.nodes.find(file);
            node.is_some_and(|node| {
                (node.beside.is_some() || node.aside.is_some()) && node.pending == 1 + joined.len()
            })
        };
        let file = state.ops.get(&number).and_then(|op| file(&op.entry.change));
        let seen_otherwise = file.filter(is_last_beside);
        let Some(op) = state.arrived(number, now) else { return };
        let joined = joined.iter().filter_map(|next| state.arrived(*next, now).map(|_| *next));
        let joined: Vec<_> = joined.collect();
        state.counts.lost += if is_lost { 1 + joined.len() as u64 } else { 0 };
        state.forget_refused(number, &op.entry.change);
        // Clients see the origin's version again.
        seen_otherwise.into_iter().chain(dropped).for_each(|file| state.forget_file(&file));
        if differs {
            state.forget_shown(&op.entry.change);
        }
        match op.entry.change {
            Change::Make { .. } => state.notes.made.push((number, outcome)),
            _ => state.forget(number, outcome, now),
        }
        joined.iter().for_each(|next| state.forget(*next, outcome, now));
        if self.options.mistake == Some(Mistake::FollowEarly) {
            [number].iter().chain(&joined).for_each(|number| state.order.done(*number));
        }
        drop(state);
        self.to_forget.notify_one();
        self.to_write.notify_one();
        self.to_send.notify_one();
        self.changed.notify_waiters();
    }

    /// One call for a change and those that are joined to it.
    async fn carry(&self, number: u64, joined: &[u64]) -> Result<Came, Status> {
        let Some((mut entry, is_in_doubt)) = self.entry(number) else { return Ok(Came::default()) };
        let others = joined.iter().filter_map(|next| self.entry(*next));
        others.for_each(|(next, _)| entry.join(&next));
        match &entry.change {
            Change::Write { file, offset, data } => {
                self.carry_write(&entry, number, file, *offset, data).await
            }
            Change::Set { file, set } => {
                self.carry_set(&entry, (number, 1 + joined.len()), file, set).await
            }
            Change::Make { dir, name, what, set } => {
                self.carry_made(&entry, (number, is_in_doubt), dir, name, what, set).await
            }
            Change::Remove { dir, name, file, is_dir } => {
                self.carry_removed(&entry, dir, name, file, *is_dir).await
            }
            Change::Rename { from, to, file, over } => {
                self.carry_renamed(&entry, number, from, to, file, over.as_ref()).await
            }
        }
    }

    pub(super) fn entry(&self, number: u64) -> Option<(Entry, bool)> {
        let state = self.state.lock();
        state.ops.get(&number).map(|op| (op.entry.clone(), op.is_in_doubt))
    }
}
