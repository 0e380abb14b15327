//! Somebody else has changed at the origin what is to be changed there. Nothing is lost: the
//! origin's version stays, and ours gets a name beside it. And it is reported: an event, a counter,
//! and a line in the file beside the log.

use bytes::Bytes;
use server::store::{Changed, Store};
use server::types::{Attr, Before, FileKind, Handle, SetAttr, SetTime, Status, Time, Wcc};

use super::Inner;
use super::aside::{has_bytes, is_for_good};
use super::changing::SET_IDS;
use super::describe::printable;
use super::events::{Conflict, Event};
use super::killed::{self, Shows};
use super::nodes::{Beside, Node};
use super::record::{Change, Entry};
use perf::units::Nanos;

/// What was reported of a file lately is believed for so long while changes of it are on their way.
const CONFIRMED_FOR: Nanos = Nanos::from_secs(1);

/// Changes that are looked at when it is to be found out whose doing a state is.
const LOOKED_AT_MAX: usize = 256;

/// Whose version a change goes to.
#[derive(Clone, Copy, Debug)]
enum Whose {
    Ours,
    /// Ours beside theirs.
    Beside(Beside),
    /// Somebody else's, of a file of this kind.
    Theirs(FileKind),
}

/// Where a change of a file is sent to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) target: Handle,
    whose: Whose,
    /// Its number in the file's [`Trail`](super::trail::Trail), and [`Store::doubts`] before it.
    trail: Option<(u64, u64)>,
}

impl Sent {
    /// To where nobody else is.
    pub(super) fn unobserved(target: Handle) -> Self {
        Self { target, whose: Whose::Ours, trail: None }
    }

    fn observed(target: Handle, number: u64, doubts: u64) -> Self {
        Self { trail: Some((number, doubts)), ..Self::unobserved(target) }
    }

    fn beside(beside: Beside) -> Self {
        Self { whose: Whose::Beside(beside), ..Self::unobserved(beside.copy) }
    }

    fn theirs(target: Handle, kind: FileKind) -> Self {
        Self { whose: Whose::Theirs(kind), ..Self::unobserved(target) }
    }

    /// Whether somebody else has changed what this change is made of.
    pub(super) fn is_theirs(&self) -> bool {
        matches!(self.whose, Whose::Theirs(_))
    }

    /// What a SETATTR sets there: a copy has no more rights than its file. Bytes that are not those
    /// of which it was sent keep the time at which they were written, and act as nobody.
    pub(super) fn takes(&self, set: &SetAttr) -> SetAttr {
        match self.whose {
            Whose::Beside(Beside { mode_max, .. }) => {
                SetAttr { mode: set.mode.map(|mode| mode & mode_max), ..*set }
            }
            Whose::Theirs(FileKind::Regular) => {
                let mode = set.mode.map(|mode| mode & !SET_IDS);
                SetAttr { mode, modified: SetTime::Keep, ..*set }
            }
            Whose::Ours | Whose::Theirs(_) => *set,
        }
    }
}

impl<S: Store> Inner<S> {
    /// Where a change of a file goes: to the file, if that is as we left it. The reply is to be
    /// passed to [`Inner::answered`].
    pub(super) async fn target(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
    ) -> Result<Sent, Status> {
        enum Step {
            Go(Sent),
            Check(Handle, Before),
        }
        let doubts = self.store.doubts();
        loop {
            let step = self.until(|state| {
                let now = self.now();
                let Some(node) = state.nodes.find_mut(file) else { return Some(None) };
                if let Some(beside) = node.beside {
                    return Some(Some(Step::Go(Sent::beside(beside))));
                }
                let Some(origin) = node.origin else { return Some(None) };
                if node.is_being_confirmed || node.trail.is_doubtful() {
                    return None;
                }
                let is_lately = |at| now.since(at) <= CONFIRMED_FOR;
                let is_sure = node.confirmed.is_some_and(is_lately) && !node.trail.is_torn();
                Some(Some(match node.base.filter(|_| !is_sure) {
                    None => {
                        let number = node.trail.sent(node.base.as_ref());
                        Step::Go(Sent::observed(origin, number, doubts))
                    }
                    // What is under way changes it.
                    Some(_) if node.trail.is_under_way() => return None,
                    Some(base) => {
                        node.is_being_confirmed = true;
                        Step::Check(origin, base)
                    }
                }))
            });
            match step.await? {
                Some(Step::Go(target)) => return Ok(target),
                Some(Step::Check(origin, base)) => {
                    let checked = self.check(entry, number, file, &origin, base).await;
                    self.end_confirming(file);
                    if let Some(theirs) = checked? {
                        return Ok(Sent::theirs(origin, theirs));
                    }
                }
                None => return self.there(file).map(Sent::unobserved),
            }
        }
    }

    /// Another change is sent to where one was sent.
    pub(super) fn sent(&self, file: &Handle, target: &Handle) -> Sent {
        let doubts = self.store.doubts();
        let mut state = self.state.lock();
        let is_file = |node: &&mut Node| node.origin == Some(*target) && node.beside.is_none();
        let Some(node) = state.nodes.find_mut(file).filter(is_file) else {
            return Sent::unobserved(*target);
        };
        let number = node.trail.sent(node.base.as_ref());
        Sent::observed(*target, number, doubts)
    }

    /// The origin has answered a change of a file: done, or refused it for this reason.
    pub(super) fn answered<T>(&self, file: &Handle, sent: &Sent, changed: &Changed<T>) {
        let Some((number, doubts)) = sent.trail else { return };
        let (returned, refused) = (&changed.wcc, changed.result.as_ref().err().copied());
        // One that was made twice may have left two states.
        let wcc = if self.store.doubts() == doubts { *returned } else { Wcc::default() };
        let now = self.now();
        let mut state = self.state.lock();
        if let Some(node) = state.nodes.find_mut(file) {
            match refused.filter(|_| returned.after.is_none()) {
                Some(status) if is_for_good(status) => node.trail.refused(number),
                _ => node.trail.answered(number, &wcc),
            }
            if refused.is_none() {
                node.left(returned.after.as_ref().map(Before::from), false);
            }
            if node.trail.is_decided() {
                node.confirmed = Some(now);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The next one may look whether a file is as we left it.
    fn end_confirming(&self, file: &Handle) {
        if let Some(node) = self.state.lock().nodes.find_mut(file) {
            node.is_being_confirmed = false;
        }
        self.changed.notify_waiters();
    }

    /// Where a change goes that found `gone`, which was there when it was sent. Of all those that
    /// were under way, one makes the file.
    pub(super) async fn beside_gone(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        gone: &Handle,
    ) -> Result<Handle, Status> {
        let beside = self.until(|state| {
            let Some(node) = state.nodes.find_mut(file) else { return Some(Err(Status::Stale)) };
            if node.is_being_confirmed {
                return None;
            }
            let beside = node.beside.filter(|beside| beside.copy != *gone);
            node.is_being_confirmed = beside.is_none();
            Some(Ok(beside.map(|beside| beside.copy)))
        });
        if let Some(beside) = beside.await?? {
            return Ok(beside);
        }
        let beside = self.keep_beside(entry, number, file, None, Conflict::Gone).await;
        self.end_confirming(file);
        beside
    }

    /// Looks whether a file is as we left it; else ours goes beside it. Of what kind theirs is, if
    /// this change is for that: it sets attributes, of which the last who sets them wins.
    async fn check(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        origin: &Handle,
        base: Before,
    ) -> Result<Option<FileKind>, Status> {
        let attr = match self.store.attr(&entry.caller, origin).await {
            Ok(attr) => attr,
            Err(Status::Stale | Status::BadHandle) if has_data(&entry.change) => {
                self.has_gone().await?;
                self.keep_beside(entry, number, file, None, Conflict::Gone).await?;
                return Ok(None);
            }
            Err(status) => return Err(status),
        };
        let is_same = (base.size, base.modified) == (attr.size, attr.modified);
        let is_torn = self.state.lock().nodes.find(file).is_some_and(|node| node.trail.is_torn());
        // A call of a proxy that was killed may have been executed after we looked.
        if is_same && !is_torn || self.explains(file, origin, &attr).await {
            let (now, left) = (self.now(), Before::from(&attr));
            if let Some(node) = self.state.lock().nodes.find_mut(file) {
                (node.base, node.confirmed) = (Some(left), Some(now));
                node.trail.take_for_ours(&left);
            }
            return Ok(None);
        }
        if !has_bytes(&entry.change) {
            return Ok(Some(attr.kind));
        }
        self.keep_beside(entry, number, file, Some((origin, &attr)), Conflict::Changed).await?;
        Ok(None)
    }

    /// Whether the origin has a file so because of changes of ours of which nobody has heard:
    /// those of a proxy that was killed, or that were tried (see `killed`).
    async fn explains(&self, file: &Handle, origin: &Handle, attr: &Attr) -> bool {
        let (doubtful, is_in_time) = {
            let state = self.state.lock();
            let (doubtful, is_of_before) = state.doubtful(file);
            (doubtful, !is_of_before || !state.lives.is_between(attr.changed))
        };
        let mut shows = Vec::new();
        for entry in doubtful.iter().take(LOOKED_AT_MAX) {
            shows.extend(self.shows(entry, origin, attr).await);
            if is_in_time && killed::is_ours(&shows, is_in_time) {
                return true;
            }
        }
        // Those that were not looked at may be missing.
        shows.extend((doubtful.len() > LOOKED_AT_MAX).then_some(Shows::Missing));
        killed::is_ours(&shows, is_in_time)
    }

    /// What a file at the origin shows of a change; nothing, where it does not matter: done again,
    /// it takes no bytes from anybody.
    async fn shows(&self, entry: &Entry, origin: &Handle, attr: &Attr) -> Option<Shows> {
        let is_set = |time| is_as_set(attr.modified, time);
        if entry.owed.is_some_and(is_set) {
            return Some(Shows::Last);
        }
        match &entry.change {
            Change::Write { offset, data, .. } => {
                let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
                let read = self.store.read(&entry.caller, origin, *offset, count).await;
                let Ok(read) = read.result else { return Some(Shows::Missing) };
                let ends_there = *offset + read.data.len() as u64 == attr.size;
                Some(match read.data {
                    read if read == *data => Shows::There,
                    read if ends_there && !read.is_empty() && data.starts_with(&read) => {
                        Shows::Begun
                    }
                    _ => Shows::Missing,
                })
            }
            Change::Set { set, .. } => match (set.modified, set.size) {
                (SetTime::To(time), _) if is_set(time) => Some(Shows::Last),
                (_, Some(size)) if size == attr.size => Some(Shows::There),
                (_, Some(_)) => Some(Shows::Missing),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn stored_beside(&self, dir: &Handle, name: &Bytes, copy: &Bytes, why: Conflict) {
        let path = |name: &Bytes| self.path(dir, name);
        let event = Event::Beside { name: path(name), copy: path(copy), why };
        // Both versions are there, recorded or not.
        (self.options.hear)(&event).ok();
        self.state.lock().counts.conflicts += 1;
    }

    /// Reports a conflict by which something is lost. An error: that is not recorded.
    pub(super) fn conflict(&self, event: &Event) -> Result<(), String> {
        (self.options.hear)(event)?;
        self.state.lock().counts.conflicts += 1;
        Ok(())
    }

    /// As much of a path as is known here.
    pub(super) fn path(&self, dir: &Handle, name: &[u8]) -> String {
        const LEVELS_MAX: usize = 64;
        let state = self.state.lock();
        let (mut names, mut above) = (vec![name.to_vec()], *dir);
        for _ in 0..LEVELS_MAX {
            let Some((dir, name)) = state.place(&above) else { break };
            names.push(name.to_vec());
            above = *dir;
        }
        let root = if above == self.root { "/" } else { ".../" };
        names.reverse();
        root.to_owned() + &printable(names.join(&b'/'))
    }
}

/// Whether the origin has a time as it was set: its file systems may have none so fine, and it says
/// so by zeros.
pub(super) fn is_as_set(there: Time, set: Time) -> bool {
    const GRAINS: [u32; 4] = [1_000_000_000, 1_000_000, 1_000, 100];
    let grain = GRAINS.into_iter().find(|grain| there.nanos.is_multiple_of(*grain)).unwrap_or(1);
    (there.secs, there.nanos / grain) == (set.secs, set.nanos / grain)
}

fn has_data(change: &Change) -> bool {
    matches!(change, Change::Write { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_it_was_set_where_the_origin_has_none_so_fine() {
        let set = Time { secs: 7, nanos: 123_456_789 };
        let there = |nanos| is_as_set(Time { secs: 7, nanos }, set);
        assert!([123_456_789, 123_456_700, 123_456_000, 123_000_000, 0].into_iter().all(there));
        assert!(![123_456_788, 123_456_800, 123_457_000, 1].into_iter().any(there));
        assert!(!is_as_set(Time { secs: 8, nanos: 0 }, set));
    }
}
