//! Somebody else has changed at the origin what is to be changed there. Nothing is lost: the
//! origin's version stays, and ours gets a name beside it. And it is reported: an event, a counter,
//! and a line in the file beside the log.

use bytes::{Bytes, BytesMut};
use server::store::{Node as StoreNode, Store};
use server::types::{Attr, Before, Caller, Handle, SetAttr, SetTime, Stability, Status, Wcc};

use super::Inner;
use super::aside::is_for_good;
use super::describe::describe;
use super::drain::Came;
use super::nodes::Node;
use super::record::{Change, Entry, Made};
use perf::units::Nanos;

/// What was reported of a file lately is believed for so long while changes of it are on their way.
const CONFIRMED_FOR: Nanos = Nanos::from_secs(1);

/// Changes that are looked at when it is to be found out whose doing a state is.
const LOOKED_AT_MAX: usize = 256;

/// Bytes copied at a time, and of those that are compared with nothing at all.
const COPY_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: usize = 4096;

/// Longest name.
const NAME_BYTES_MAX: usize = 255;

/// Why ours got a name beside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conflict {
    /// Somebody else has changed the file.
    Changed,
    /// Somebody else has removed the file, or its directory.
    Gone,
    /// Somebody else has something of this name there.
    Replaced,
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gone {
    /// The file whose attributes were to be set is not there.
    File,
    /// What was to be removed or moved is another than it was.
    Replaced,
    /// What was to be removed was changed since.
    Changed,
    /// There is something in the directory that was to be removed.
    NotEmpty,
}

/// What nobody should miss.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Both versions are at the origin: theirs as `name`, ours as `copy`.
    Beside { name: String, copy: String, why: Conflict },
    /// A change was not made, so that what is at the origin stays.
    NotMade { change: String, why: Gone },
    /// The origin refuses a change; it is tried again, and what has to follow it waits.
    Refused { change: String, status: Status },
    /// The origin has refused a change for good: it was not made, and its bytes are in a file of
    /// this host.
    SetAside { change: String, path: String, status: Status, copy: Option<String> },
    /// What the origin refuses cannot be stored on this host either: it is tried again, and what
    /// has to follow it waits.
    NotStored { why: String },
    /// The log cannot be written: changes go to the origin while their callers wait.
    LogFailed,
    /// Somebody else has taken the lease: nothing is sent to the origin any more.
    Fenced { by: String },
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Beside { name, copy, why } => {
                let why = match why {
                    Conflict::Changed => "was changed at the origin by somebody else",
                    Conflict::Gone => "is gone at the origin",
                    Conflict::Replaced => "was made at the origin by somebody else",
                };
                write!(f, "CONFLICT: {name} {why}; the clients' version is {copy}")
            }
            Self::NotMade { change, why } => {
                let why = match why {
                    Gone::File => "the file is gone",
                    Gone::Replaced => "somebody else has put something else there",
                    Gone::Changed => "somebody else has changed the file since",
                    Gone::NotEmpty => "somebody else has put something into the directory",
                };
                write!(f, "CONFLICT: {change} was not carried out at the origin: {why}")
            }
            Self::Refused { change, status } => {
                write!(f, "the origin refuses {change} ({status:?}): it is tried again")
            }
            Self::SetAside { change, path, status, copy } => {
                let at = if path.is_empty() { String::new() } else { format!(" ({path})") };
                write!(f, "CONFLICT: the origin refuses {change}{at} for good ({status:?}): ")?;
                match copy {
                    Some(copy) => write!(f, "what clients have written is in {copy}"),
                    None => f.write_str("it was not carried out"),
                }
            }
            Self::NotStored { why } => {
                write!(f, "what the origin refuses cannot be set aside, and is tried again: {why}")
            }
            Self::LogFailed => f.write_str(
                "the log cannot be written: what it holds goes to the origin, and so does what is \
                 new, while clients wait",
            ),
            Self::Fenced { by } => write!(
                f,
                "the lease of the origin's export is {by}'s: nothing is sent there any more; \
                 end one of the two"
            ),
        }
    }
}

/// Where a change of a file is sent to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) target: Handle,
    /// Its number in the file's [`Trail`](super::trail::Trail), and [`Store::doubts`] before it.
    trail: Option<(u64, u64)>,
}

impl Sent {
    /// To where nobody else is.
    pub(super) fn unobserved(target: Handle) -> Self {
        Self { target, trail: None }
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
                    return Some(Some(Step::Go(Sent::unobserved(beside))));
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
                        Step::Go(Sent { target: origin, trail: Some((number, doubts)) })
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
                    checked?;
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
        Sent { target: *target, trail: Some((number, doubts)) }
    }

    /// The origin has answered a change of a file: done, or refused it for this reason.
    pub(super) fn answered(
        &self,
        file: &Handle,
        sent: &Sent,
        returned: &Wcc,
        refused: Option<Status>,
    ) {
        let Some((number, doubts)) = sent.trail else { return };
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
            let beside = node.beside.filter(|beside| beside != gone);
            node.is_being_confirmed = beside.is_none();
            Some(Ok(beside))
        });
        if let Some(beside) = beside.await?? {
            return Ok(beside);
        }
        let beside = self.keep_beside(entry, number, file, None, Conflict::Gone).await;
        self.end_confirming(file);
        beside
    }

    /// Looks whether a file is as we left it; else ours goes beside it.
    async fn check(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        origin: &Handle,
        base: Before,
    ) -> Result<(), Status> {
        let attr = match self.store.attr(&entry.caller, origin).await {
            Ok(attr) => attr,
            Err(Status::Stale | Status::BadHandle) if has_data(&entry.change) => {
                self.keep_beside(entry, number, file, None, Conflict::Gone).await?;
                return Ok(());
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
            return Ok(());
        }
        self.keep_beside(entry, number, file, Some((origin, &attr)), Conflict::Changed).await?;
        Ok(())
    }

    /// Whether the origin has a file so because of a change of ours that a killed proxy has not
    /// heard of.
    async fn explains(&self, file: &Handle, origin: &Handle, attr: &Attr) -> bool {
        let doubtful: Vec<Entry> = {
            let state = self.state.lock();
            let of_file = |change: &Change| super::state::file(change) == Some(*file);
            let ops =
                state.ops.iter().filter(|(_, op)| op.is_in_doubt && of_file(&op.entry.change));
            let mut ops: Vec<_> = ops.collect();
            ops.sort_unstable_by_key(|(number, _)| **number);
            ops.into_iter().take(LOOKED_AT_MAX).map(|(_, op)| op.entry.clone()).collect()
        };
        for entry in doubtful {
            if entry.owed == Some(attr.modified) {
                return true;
            }
            let is_there = match &entry.change {
                Change::Write { offset, data, .. } => {
                    let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
                    let read = self.store.read(&entry.caller, origin, *offset, count).await;
                    // A full disk, or a proxy that is killed, may leave the beginning of it.
                    let is_begun = |read: &[u8]| {
                        let ends_there = *offset + read.len() as u64 == attr.size;
                        ends_there && !read.is_empty() && data.starts_with(read)
                    };
                    read.result.is_ok_and(|read| read.data == *data || is_begun(&read.data))
                }
                Change::Set { set, .. } => {
                    set.modified == SetTime::To(attr.modified)
                        || (set.size == Some(attr.size) && set.modified == SetTime::Keep)
                }
                _ => false,
            };
            if is_there {
                return true;
            }
        }
        false
    }

    /// A name for ours beside theirs.
    pub(super) fn beside_name(&self, name: &Bytes, number: u64) -> Bytes {
        let suffix = format!(".nfskit-conflict-{number}");
        let head = name.len().min(NAME_BYTES_MAX - suffix.len());
        Bytes::from([&name[..head], suffix.as_bytes()].concat())
    }

    /// Makes a file beside one that somebody else has changed or removed, with all that clients see
    /// in it, for what is on its way and what comes until that is there. What nobody has written
    /// through the proxy is as in theirs.
    pub(super) async fn keep_beside(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        theirs: Option<(&Handle, &Attr)>,
        why: Conflict,
    ) -> Result<Handle, Status> {
        let (node, place) = {
            let state = self.state.lock();
            let node = state.nodes.find(file).ok_or(Status::Stale)?.clone();
            let place = node.place.clone();
            (node, place)
        };
        let unnamed = || Bytes::from_static(b".unnamed");
        let (dir, name) = place.unwrap_or_else(|| (self.id(&self.root), unnamed()));
        let beside = self.beside_name(&name, number);
        let set = SetAttr { mode: Some(node.attr.mode), ..SetAttr::default() };
        let what = Made::File(None);
        let (copy, dir) = self.make_somewhere(&entry.caller, &dir, &beside, &what, &set).await?;
        self.fill_copy(&entry.caller, &copy, &node, theirs).await?;
        let mut state = self.state.lock();
        if let Some(node) = state.nodes.find_mut(file) {
            node.beside = Some(copy);
        }
        drop(state);
        self.stored_beside(&dir, &name, &beside, why);
        Ok(copy)
    }

    /// Gives a copy all that clients see in a file. Holes stay holes.
    async fn fill_copy(
        &self,
        caller: &Caller,
        copy: &Handle,
        node: &Node,
        theirs: Option<(&Handle, &Attr)>,
    ) -> Result<(), Status> {
        // One that a proxy has begun that was killed has bytes already.
        let begun = self.store.attr(caller, copy).await?.size;
        let theirs = theirs.map(|(theirs, attr)| (theirs, attr.size.min(node.cut())));
        let theirs_end = theirs.map_or(0, |(_, end)| end);
        let (size, mut offset) = (node.attr.size, 0);
        let mut written_to = begun;
        while offset < size {
            if offset >= theirs_end.max(begun) {
                // Below here, there is nothing but ours.
                match node.extents.next(offset) {
                    Some(next) if next < size => offset = next,
                    _ => break,
                }
            }
            let end = size.min(offset.saturating_add(COPY_BYTES));
            let len = usize::try_from(end - offset).map_err(|_| Status::TooLarge)?;
            let mut bytes = BytesMut::zeroed(len);
            if let Some((theirs, theirs_end)) = theirs
                && !node.extents.covers(offset, end)
                && offset < theirs_end
            {
                let count = u32::try_from(theirs_end.min(end) - offset).unwrap_or(0);
                let read = self.store.read(caller, theirs, offset, count).await.result?;
                let got = read.data.len().min(len);
                bytes[..got].copy_from_slice(&read.data[..got]);
            }
            node.extents.over(offset, &mut bytes);
            let bytes = bytes.freeze();
            let known = usize::try_from(begun.saturating_sub(offset)).unwrap_or(len).min(len);
            for (from, to) in runs(&bytes, known) {
                let (at, data) = (offset + from as u64, bytes.slice(from..to));
                written_to = written_to.max(offset + to as u64);
                let written = self.store.write(caller, copy, at, data, Stability::FileSync).await;
                written.result?;
            }
            offset = end;
        }
        if written_to < size {
            let set = SetAttr { size: Some(size), ..SetAttr::default() };
            self.store.set_attr(caller, copy, set, None).await.result?;
        }
        Ok(())
    }

    /// Makes something in a directory, or if that is gone or refuses it, in the root; where it was
    /// made already, takes that.
    async fn make_somewhere(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &Bytes,
        what: &Made,
        set: &SetAttr,
    ) -> Result<(Handle, Handle), Status> {
        let dirs = [self.origin(dir).ok().flatten(), Some(self.root)];
        let ids = [*dir, self.id(&self.root)];
        let mut last = Status::Stale;
        for (there, id) in dirs.into_iter().zip(ids).filter_map(|(there, id)| Some((there?, id))) {
            let made = self.make_at(caller, &there, name, what, set).await.result;
            let found = match made {
                Err(Status::Exists) => self.store.lookup(caller, &there, name).await.result,
                made => made,
            };
            match found {
                Ok(node) => {
                    self.state.lock().unknown_names(&id);
                    return Ok((node.handle, id));
                }
                Err(status) => last = status,
            }
        }
        Err(last)
    }

    /// What was to be made has no place under its name; it gets another one.
    pub(super) async fn make_beside(
        &self,
        entry: &Entry,
        number: u64,
        there: Option<Handle>,
        name: &Bytes,
        what: &Made,
        set: &SetAttr,
    ) -> Result<Came, Status> {
        let Change::Make { dir, .. } = &entry.change else { return Err(Status::ServerFault) };
        let beside = self.beside_name(name, number);
        let (copy, place) = self.make_somewhere(&entry.caller, dir, &beside, what, set).await?;
        let attr = self.store.attr(&entry.caller, &copy).await?;
        let why = if there.is_some() { Conflict::Replaced } else { Conflict::Gone };
        self.stored_beside(&place, name, &beside, why);
        let came = self.made(number, StoreNode { handle: copy, attr }, None);
        let (id, _) = self.state.lock().identity(number);
        if let Some(node) = self.state.lock().nodes.find_mut(&id) {
            node.place = Some((place, beside));
        }
        Ok(Came { differs: true, ..came })
    }

    pub(super) fn stored_beside(&self, dir: &Handle, name: &Bytes, copy: &Bytes, why: Conflict) {
        let path = |name: &Bytes| self.path(dir, name);
        let event = Event::Beside { name: path(name), copy: path(copy), why };
        self.conflict(&event);
    }

    /// A change was not made.
    pub(super) fn lost(&self, change: &Change, why: Gone) {
        self.conflict(&Event::NotMade { change: describe(change), why });
    }

    pub(super) fn conflict(&self, event: &Event) {
        self.state.lock().counts.conflicts += 1;
        (self.options.hear)(event);
    }

    /// As much of a path as is known here.
    pub(super) fn path(&self, dir: &Handle, name: &[u8]) -> String {
        const LEVELS_MAX: usize = 64;
        let state = self.state.lock();
        let (mut names, mut above) = (vec![name.to_vec()], *dir);
        for _ in 0..LEVELS_MAX {
            let place = state.nodes.find(&above).and_then(|node| node.place.clone());
            let Some((dir, name)) = place else { break };
            names.push(name.to_vec());
            above = dir;
        }
        let root = if above == self.root { "/" } else { ".../" };
        names.reverse();
        root.to_owned() + &String::from_utf8_lossy(&names.join(&b'/'))
    }
}

/// Where there are bytes to be written: up to `known` all, and from there on the blocks that are
/// not zeros.
fn runs(bytes: &[u8], known: usize) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
        let from = number * BLOCK_BYTES;
        let to = from + block.len();
        if from >= known && block.iter().all(|byte| *byte == 0) {
            continue;
        }
        match runs.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ => runs.push((from, to)),
        }
    }
    runs
}

fn has_data(change: &Change) -> bool {
    matches!(change, Change::Write { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_zeros_are_left_out_but_where_there_were_bytes() {
        const BLOCK: usize = BLOCK_BYTES;
        let mut bytes = vec![0; 5 * BLOCK + 7];
        assert_eq!(runs(&bytes, 0), []);
        assert_eq!(runs(&bytes, BLOCK + 1), [(0, 2 * BLOCK)]);
        for at in [BLOCK, 3 * BLOCK - 1, 5 * BLOCK + 6] {
            bytes[at] = 1;
        }
        assert_eq!(runs(&bytes, 0), [(BLOCK, 3 * BLOCK), (5 * BLOCK, 5 * BLOCK + 7)]);
        assert_eq!(runs(&bytes[..0], 9), []);
    }
}
