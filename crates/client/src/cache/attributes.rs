//! Attributes by handle: how long they are good, and whether the file is still what it was.
//!
//! As with the Linux client (nfs(5)): attributes are good for `acregmin` (files) or `acdirmin`
//! (directories); each time they are found unchanged, for twice as long, up to `acregmax` and
//! `acdirmax`; a change begins again at the least. That counts from when they were requested: a
//! reply may have been on its way for long, and what it tells is no newer than the call.
//!
//! Each file has a version, which is another after somebody else has changed its data. What was
//! cached under an older version is worth nothing: pages, and for a directory its names.
//!
//! Where a server's times are whole seconds, a state that is not two seconds old may be followed by
//! another that looks the same. What was cached under it is not used after the next look.

use std::num::NonZeroUsize;

use cache::{Now, OriginTime, Time};
use lru::LruCache;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FType, Fattr3, FileHandle, NfsTime, Sattr3, SetTime, WccAttr, WccData};

use super::ours::{Ours, Span};
use super::state::{steady_ns, time_of};

/// A state whose time is a whole second is the last of that second after so long, also where the
/// server's clock goes a little slower than ours.
const COARSE_SETTLED: Nanos = Nanos::from_secs(2);

/// Clocks that tick do so once in a millisecond at the most: two times of one object that are
/// nearer to each other come from a server that sees the difference.
const APART: Nanos = Nanos::from_micros(900);

/// How long attributes are good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Times {
    pub reg_min: Nanos,
    pub reg_max: Nanos,
    pub dir_min: Nanos,
    pub dir_max: Nanos,
}

impl Default for Times {
    /// Those of nfs(5).
    fn default() -> Self {
        Self {
            reg_min: Nanos::from_secs(3),
            reg_max: Nanos::from_secs(60),
            dir_min: Nanos::from_secs(30),
            dir_max: Nanos::from_secs(60),
        }
    }
}

impl Times {
    /// `actimeo`: all four alike. Zero is `noac`'s half that concerns attributes.
    pub fn all(span: Nanos) -> Self {
        Self { reg_min: span, reg_max: span, dir_min: span, dir_max: span }
    }

    fn least(&self, ftype: FType) -> Nanos {
        if ftype == FType::Dir { self.dir_min } else { self.reg_min }
    }

    fn most(&self, ftype: FType) -> Nanos {
        if ftype == FType::Dir { self.dir_max } else { self.reg_max }
    }
}

/// Tells apart what the data of a file was at different times; the default is that of no file.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Version(u64);

/// See the module's head.
#[derive(Debug)]
pub struct Attributes {
    times: Times,
    files: LruCache<FileHandle, File>,
    max: usize,
    /// Versions are handed out once, so that a file that was forgotten never gets an old one.
    versions: u64,
    /// When we last moved or took a name of a file without knowing of which.
    renamed: Option<Instant>,
    /// What the server's times say of its clock.
    server_time: OriginTime,
    /// The file system (fsid) that was seen last to tell apart changes that follow each other
    /// within [`APART`].
    distinguished: Option<u64>,
}

#[derive(Debug)]
struct File {
    attributes: Fattr3,
    /// When the reply came that returned them, and since when they are known: the latest call that
    /// has returned them was sent then.
    received: Instant,
    known_since: Instant,
    good_for: Nanos,
    /// Since when they are good for so long.
    good_since: Instant,
    version: Version,
    /// When this state was first returned, and the call sent by which others' changes were last
    /// looked for.
    seen: Instant,
    looked: Instant,
    ours: Ours,
    /// Calls of ours under way that change it, and how many have begun.
    changing: u32,
    changes: u64,
    /// When the last of those was answered.
    set: Instant,
    /// What it holds may not be forgotten: opens.
    pins: u32,
    /// A call of ours has changed the time of the last change of attributes, to we do not know
    /// what.
    is_moved: bool,
    /// That was while it was open here.
    is_moved_open: bool,
}

/// Where attributes were returned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReplyContext {
    /// When the call was sent: what it tells is no older.
    pub sent: Instant,
    pub now: Instant,
    /// Data of ours is on its way to the file, so that its size and time change by themselves.
    pub is_dirty: bool,
    /// The file is being opened: what was written elsewhere before is to be seen.
    pub is_open: bool,
}

impl Attributes {
    pub fn new(times: Times, max: usize) -> Self {
        Self {
            times,
            files: LruCache::unbounded(),
            max: max.max(1),
            versions: 0,
            renamed: None,
            server_time: OriginTime::default(),
            distinguished: None,
        }
    }

    /// The attributes, if they are good.
    pub fn good(&mut self, file: &FileHandle, now: Instant) -> Option<Fattr3> {
        self.good_for(file, now).map(|(attributes, _)| attributes)
    }

    /// The attributes, and for how long they are still good, which is more than nothing.
    pub fn good_for(&mut self, file: &FileHandle, now: Instant) -> Option<(Fattr3, Nanos)> {
        let known = self.files.get(file)?;
        if known.has_many_names() && known.is_before(self.renamed) {
            return None;
        }
        let left = (known.known_since + known.good_for).since(now);
        (left > Nanos::ZERO).then_some((known.attributes, left))
    }

    /// Whether a call that was sent within `span` before now returned them.
    pub fn is_known_for(&self, file: &FileHandle, span: Nanos, now: Instant) -> bool {
        self.files.peek(file).is_some_and(|known| now.since(known.known_since) < span)
    }

    /// The attributes, and when they were requested, if that was at `then` or later and no change
    /// of ours was under way since.
    pub fn known_since(&self, file: &FileHandle, then: Instant) -> Option<(Fattr3, Instant)> {
        let known = self.files.peek(file)?;
        let is_ours = known.changing > 0 || known.set >= then;
        (known.known_since >= then && !is_ours).then_some((known.attributes, known.known_since))
    }

    /// The attributes last returned, good or not.
    pub fn last(&self, file: &FileHandle) -> Option<Fattr3> {
        self.files.peek(file).map(|known| known.attributes)
    }

    /// The version of the file's data; none when nothing is known of it.
    pub fn version(&self, file: &FileHandle) -> Option<Version> {
        self.files.peek(file).map(|known| known.version)
    }

    /// The same, if all that was returned since is known to be ours. While calls of ours are under
    /// way nobody can say so of other states, and what was cached is not to be used.
    pub fn sure_version(&self, file: &FileHandle) -> Option<Version> {
        let known = self.files.peek(file)?;
        let is_sure =
            !known.ours.others_were_here() && known.knows(&WccAttr::from(&known.attributes));
        is_sure.then_some(known.version)
    }

    /// The attributes last returned, if the file's data are of exactly this state: all changes are
    /// known, and no call of ours that changes it is under way.
    pub fn sure(&self, file: &FileHandle) -> Option<Fattr3> {
        self.sure_version(file)?;
        self.files.peek(file).filter(|known| known.changing == 0).map(|known| known.attributes)
    }

    /// Whether what is requested now shows this state, or another one that can be distinguished
    /// from it. `wall`: what time it is, as far as we know.
    pub fn is_settled(&self, file: &FileHandle, now: Instant, wall: Time) -> bool {
        self.files.peek(file).is_some_and(|known| {
            let ctime = time_of(known.attributes.ctime);
            let known_for = now.since(known.seen);
            if self.tells_apart(&known.attributes) && known_for > APART {
                return true;
            }
            let known_for_ns = known_for.as_nanos();
            let now = Now { steady_ns: steady_ns(now), wall };
            self.server_time.is_settled(ctime, known_for_ns, now)
        })
    }

    /// Whether changes of the file system that follow each other have different times, as far as
    /// one that another client makes after it has heard of ours is concerned.
    fn tells_apart(&self, of: &Fattr3) -> bool {
        self.distinguished == Some(of.fsid)
    }

    /// The attributes last returned, if the file's data are of exactly this state, and whatever
    /// anybody has done to it since then has left others. By what is known of the server's clock by
    /// now.
    pub fn closed(&self, file: &FileHandle, then: Instant, wall: Time) -> Option<Fattr3> {
        let attributes = self.sure(file)?;
        let is_closed = self.tells_apart(&attributes) || self.is_settled(file, then, wall);
        is_closed.then_some(attributes)
    }

    /// It is to be known for certain whose changes of the file follow.
    pub fn begin_own(&mut self, file: &FileHandle) {
        if let Some(known) = self.files.peek_mut(file) {
            known.ours.begin();
        }
    }

    /// The attributes last returned, if nobody but us has changed the file since
    /// [`Attributes::begin_own`], and whatever anybody does to it now leaves others.
    pub fn own(&self, file: &FileHandle, now: Instant, wall: Time) -> Option<Fattr3> {
        let attributes = self.closed(file, now, wall)?;
        let tells_apart = self.tells_apart(&attributes);
        self.files.peek(file)?.ours.is_certain(tells_apart).then_some(attributes)
    }

    /// Attributes that a reply returned, not of a change of ours.
    pub fn observe(&mut self, file: &FileHandle, attributes: &Fattr3, reply: ReplyContext) {
        self.server_time.observe(time_of(attributes.ctime), steady_ns(reply.now));
        let Some(known) = self.files.get_mut(file) else {
            self.insert(file, attributes, reply);
            return;
        };
        if known.is_newer_than(attributes, reply.sent) {
            return;
        }
        let state = WccAttr::from(attributes);
        known.may_be_renamed(self.renamed);
        // While calls of ours are under way a state that we do not know may be theirs. Whoever
        // opens the file is promised more, and it costs no more than what is cached.
        let in_progress = reply.is_dirty || known.changing > 0 && !reply.is_open;
        let others = !in_progress
            && (known.ours.others_were_here()
                || !known.knows(&state)
                || reply.is_open && known.ours.others_may_have_been_here()
                || (reply.is_open || known.is_dir()) && known.may_hide_others());
        if others {
            self.versions += 1;
            known.version = Version(self.versions);
            known.ours.others_came();
        }
        if !in_progress {
            known.ours.reset(state);
            (known.is_moved, known.is_moved_open) = (false, false);
            if reply.is_open || known.is_dir() {
                known.looked = known.looked.max(reply.sent);
            }
        }
        known.refresh(attributes, reply, &self.times);
    }

    /// A call of ours begins that changes the file; [`Attributes::changed`] must follow. Gives its
    /// number if it is the only one under way.
    pub fn changing(&mut self, file: &FileHandle) -> Option<u64> {
        let known = self.files.get_mut(file)?;
        known.changing += 1;
        known.changes += 1;
        (known.changing == 1).then_some(known.changes)
    }

    /// Whether no other change of ours has begun since the one of this number.
    pub fn was_alone(&self, file: &FileHandle, number: u64) -> bool {
        self.files.peek(file).is_some_and(|known| known.changes == number)
    }

    /// Whether a call that was announced is under way.
    pub fn is_changing(&self, file: &FileHandle) -> bool {
        self.files.peek(file).is_some_and(|known| known.changing > 0)
    }

    /// The call that [`Attributes::changing`] announced has been answered, or not (`wcc` empty).
    pub fn changed(&mut self, file: &FileHandle, wcc: &WccData, reply: ReplyContext) {
        if let Some(known) = self.files.get_mut(file) {
            known.changing = known.changing.saturating_sub(1);
        }
        self.wrote(file, wcc, reply);
        if let Some(known) = self.files.get_mut(file) {
            known.set = reply.now;
        }
    }

    /// A reply to a SETATTR of ours that does not tell what it has found (version 2, and servers of
    /// version 3 that cannot know): what it has left as it was shows that. A state that was not
    /// known is somebody else's, and the one that it leaves tells of it.
    pub fn with_found(&self, file: &FileHandle, set: &Sattr3, wcc: &WccData) -> WccData {
        let after = wcc.after.filter(|_| wcc.before.is_none() && set.size.is_none());
        let known = self.files.peek(file).filter(|known| !known.is_dir());
        let (Some(after), Some(known)) = (after.as_ref().map(WccAttr::from), known) else {
            return *wcc;
        };
        let is_known = match set.mtime {
            SetTime::DontChange => known.ours.knows_data(&after),
            _ => known.ours.knows_size(after.size),
        };
        if is_known { *wcc } else { WccData { before: Some(after), ..*wcc } }
    }

    /// A COMMIT, which is not announced, has been answered. It changes nothing: what others write
    /// while it waits for a disk shows between the states that it tells, and is theirs.
    pub fn committed(&mut self, file: &FileHandle, wcc: &WccData, reply: ReplyContext) {
        if let Some(attributes) = &wcc.after {
            self.observe(file, attributes, reply);
        }
    }

    /// A WRITE, which is not announced, has been answered.
    pub fn wrote(&mut self, file: &FileHandle, wcc: &WccData, reply: ReplyContext) {
        if let Some(after) = &wcc.after {
            self.server_time.observe(time_of(after.ctime), steady_ns(reply.now));
            if wcc.before.is_some_and(|before| is_near(before.ctime, after.ctime)) {
                self.distinguished = Some(after.fsid);
            }
        }
        let Some(known) = self.files.get_mut(file) else {
            if let Some(attributes) = &wcc.after {
                self.insert(file, attributes, reply);
            }
            return;
        };
        known.may_be_renamed(self.renamed);
        let is_excused = !known.is_dir();
        let span = Span { sent: reply.sent, answered: reply.now, is_excused };
        match &wcc.before {
            // The name it was given, or lost, has changed its time.
            Some(before) if known.is_moved && known.ours.knows_data(before) => {
                let after = WccData { before: None, ..*wcc };
                known.ours.changed(&after, span);
            }
            _ => known.ours.changed(wcc, span),
        }
        let in_progress = reply.is_dirty || known.changing > 0;
        let hides_others = known.is_dir() && known.may_hide_others();
        if !in_progress && (known.ours.others_were_here() || hides_others) {
            self.versions += 1;
            known.version = Version(self.versions);
            known.ours.others_came();
            known.ours.reset(wcc.after.as_ref().unwrap_or(&known.attributes).into());
        }
        match &wcc.after {
            // Of two WRITEs within one tick of the server's clock, the one that leaves the file
            // longer was the later one, whichever reply comes first.
            Some(after) if !known.is_newer_than(after, reply.sent) || known.is_grown_to(after) => {
                known.refresh(after, reply, &self.times);
                known.set = known.set.max(reply.now);
            }
            Some(_) => {}
            // Something has changed, and no reply has what.
            None => known.good_for = Nanos::ZERO,
        }
    }

    /// Asks the server again before the attributes are used: a name of the file was made, moved or
    /// removed by us.
    pub fn expire(&mut self, file: &FileHandle) {
        if let Some(known) = self.files.peek_mut(file) {
            known.good_for = Nanos::ZERO;
            known.is_moved = true;
            known.is_moved_open |= known.pins > 0;
        }
    }

    /// As [`Attributes::expire`], of whichever file it was: those of several names are requested
    /// again, and of any the time of change may be another.
    pub fn expire_renamed(&mut self, now: Instant) {
        self.renamed = Some(now);
    }

    /// The handle leads nowhere, or the file is gone.
    pub fn forget(&mut self, file: &FileHandle) {
        self.files.pop(file);
    }

    /// Keeps the file in mind until [`Attributes::unpin`].
    pub fn pin(&mut self, file: &FileHandle) {
        if let Some(known) = self.files.get_mut(file) {
            known.pins += 1;
        }
    }

    pub fn unpin(&mut self, file: &FileHandle) {
        if let Some(known) = self.files.peek_mut(file) {
            known.pins = known.pins.saturating_sub(1);
        }
    }

    fn insert(&mut self, file: &FileHandle, attributes: &Fattr3, reply: ReplyContext) {
        self.versions += 1;
        let mut ours = Ours::default();
        ours.reset(attributes.into());
        let known = File {
            attributes: *attributes,
            received: reply.now,
            known_since: reply.sent,
            good_for: self.times.least(attributes.ftype),
            good_since: reply.sent,
            version: Version(self.versions),
            seen: reply.now,
            looked: reply.sent,
            ours,
            changing: 0,
            changes: 0,
            set: Instant::EPOCH,
            pins: 0,
            is_moved: false,
            is_moved_open: false,
        };
        self.files.put(*file, known);
        // What is pinned or being changed stays, and only so much is looked at for each file that
        // comes, so that the maximum can be exceeded by what is open.
        for _ in 0..4 {
            if self.files.len() <= self.max {
                break;
            }
            let Some((oldest, known)) = self.files.pop_lru() else { break };
            if known.pins > 0 || known.changing > 0 {
                self.files.put(oldest, known);
            }
        }
    }
}

impl File {
    /// Whether nothing has been learned of it since.
    fn is_before(&self, time: Option<Instant>) -> bool {
        time.is_some_and(|time| self.received <= time)
    }

    /// We have moved or taken a name then, of whichever file. One that is open was so then: an open
    /// learns something of it.
    fn may_be_renamed(&mut self, then: Option<Instant>) {
        if self.is_before(then) {
            self.is_moved = true;
            self.is_moved_open |= self.pins > 0;
        }
    }

    fn is_dir(&self) -> bool {
        self.attributes.ftype == FType::Dir
    }

    fn has_many_names(&self) -> bool {
        !self.is_dir() && self.attributes.nlink > 1
    }

    /// Whether others may have changed the file since they were last looked for, and left the state
    /// that is known. A whole second is what servers tell that keep nothing finer; of others it is
    /// one time in millions.
    fn may_hide_others(&self) -> bool {
        self.attributes.ctime.nseconds == 0 && self.looked < self.seen + COARSE_SETTLED
    }

    /// Whether this is a state of the file that we knew or made. One that a RENAME of ours has left
    /// is not: no reply tells it, and what another client has done may lie behind it. But programs
    /// that had it open must not become strangers to those that open it afterwards: what has the
    /// same data by size and time is the same for them.
    fn knows(&self, state: &WccAttr) -> bool {
        if self.is_moved_open { self.ours.knows_data(state) } else { self.ours.knows(state) }
    }

    /// Whether what we know is newer than `attributes`, which were requested at `sent`.
    fn is_newer_than(&self, attributes: &Fattr3, sent: Instant) -> bool {
        let has_moved_on = attributes.ctime < self.attributes.ctime;
        // The clocks of file systems tick in milliseconds: two states may have one time.
        let is_as_old = attributes.ctime == self.attributes.ctime && sent < self.set;
        sent < self.received && (has_moved_on || is_as_old)
    }

    fn is_grown_to(&self, attributes: &Fattr3) -> bool {
        attributes.ctime == self.attributes.ctime && attributes.size > self.attributes.size
    }

    fn refresh(&mut self, attributes: &Fattr3, reply: ReplyContext, times: &Times) {
        let (old, new) = (WccAttr::from(&self.attributes), WccAttr::from(attributes));
        let least = times.least(attributes.ftype);
        let most = times.most(attributes.ftype).max(least);
        self.known_since = self.known_since.max(reply.sent);
        let since = self.known_since;
        if old != new || self.attributes.ftype != attributes.ftype {
            self.seen = reply.now;
            (self.good_for, self.good_since) = (least, since);
        } else if since.since(self.good_since) >= self.good_for {
            // Unchanged for as long as was thought: it may be thought twice as long.
            (self.good_for, self.good_since) = ((self.good_for * 2).clamp(least, most), since);
        }
        self.attributes = *attributes;
        self.received = reply.now;
    }
}

/// Whether it is another time, and less than [`APART`] later.
fn is_near(before: NfsTime, after: NfsTime) -> bool {
    let nanos =
        |time: NfsTime| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nseconds);
    let between = nanos(after) - nanos(before);
    0 < between && between < i128::from(APART.as_nanos())
}

/// The type of a cache's maximum, which is at least one.
pub(crate) fn at_least_one(max: usize) -> NonZeroUsize {
    NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two that differ.
    pub(in crate::cache) fn versions() -> [Version; 2] {
        [Version(1), Version(2)]
    }

    fn second(seconds: u32) -> NfsTime {
        NfsTime { seconds, nseconds: 0 }
    }

    fn reply(sent: u64, now: u64) -> ReplyContext {
        let (sent, now) = (Instant::from_nanos(sent), Instant::from_nanos(now));
        ReplyContext { sent, now, is_dirty: false, is_open: false }
    }

    fn file() -> FileHandle {
        FileHandle::new(&[1]).unwrap()
    }

    #[test]
    fn what_another_client_writes_during_a_commit_of_ours_is_not_ours() {
        let (ours, theirs) = (Fattr3::of_file(4096, second(5)), Fattr3::of_file(4096, second(6)));
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &ours, reply(0, 1));
        let version = attributes.version(&file()).unwrap();
        let wcc = WccData { before: Some((&ours).into()), after: Some(theirs) };
        attributes.committed(&file(), &wcc, ReplyContext { is_dirty: true, ..reply(10, 20) });
        assert_eq!(attributes.last(&file()), Some(theirs));
        attributes.observe(&file(), &theirs, ReplyContext { is_open: true, ..reply(30, 40) });
        assert_ne!(attributes.version(&file()), Some(version), "at the next open");
    }

    #[test]
    fn what_we_have_made_is_known_where_the_next_change_would_show() {
        let time = |nseconds| NfsTime { seconds: 5, nseconds };
        let [old, new, later] = [1, 2, 3].map(|n| Fattr3::of_file(4096, time(n * 1_000_000)));
        let wall = Time { seconds: 1800, nanos: 0 };
        let at = |ms| Instant::EPOCH + Nanos::from_millis(ms);
        let wcc =
            |before: &Fattr3, after| WccData { before: Some(before.into()), after: Some(after) };
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &old, reply(0, 1));
        attributes.begin_own(&file());
        attributes.wrote(&file(), &wcc(&old, new), reply(10, 20));
        assert_eq!(attributes.own(&file(), at(1), wall), None, "within a tick of its clock");
        assert_eq!(attributes.own(&file(), at(60), wall), Some(new));
        // A server whose clock is seen to go faster.
        let finer = Fattr3::of_file(4096, time(3_000_100));
        attributes.wrote(&file(), &wcc(&new, later), reply(70, 71));
        attributes.wrote(&file(), &wcc(&later, finer), reply(72, 73));
        assert_eq!(attributes.own(&file(), at(0), wall), Some(finer));
        // Somebody else's.
        let [theirs, ours] = [7, 8].map(|n| Fattr3::of_file(4096, time(n * 1_000_000)));
        attributes.wrote(&file(), &wcc(&theirs, ours), reply(80, 81));
        assert_eq!(attributes.own(&file(), at(9000), wall), None);
    }

    #[test]
    fn attributes_are_good_from_when_they_were_requested() {
        let seconds = |seconds| Instant::EPOCH + Nanos::from_secs(seconds);
        let reply =
            |sent, now| ReplyContext { sent: seconds(sent), now: seconds(now), ..reply(0, 0) };
        let mut attributes = Attributes::new(Times::default(), 10);
        let (file, state) = (file(), Fattr3::of_file(0, second(5)));
        attributes.observe(&file, &state, reply(0, 1));
        assert_eq!(attributes.good(&file, seconds(2)), Some(state));
        // Another client may have changed the file at 2 s.
        attributes.observe(&file, &state, reply(1, 50));
        assert_eq!(attributes.good(&file, seconds(52)), None);
        // One that was requested before, and comes later, does not make them older.
        attributes.observe(&file, &state, reply(60, 61));
        attributes.observe(&file, &state, reply(55, 62));
        assert_eq!(attributes.good_for(&file, seconds(62)), Some((state, Nanos::from_secs(4))));
        // Nor does a change that was answered late tell the state of then.
        let after = Fattr3::of_file(1, second(6));
        let wcc = WccData { before: Some((&state).into()), after: Some(after) };
        attributes.wrote(&file, &wcc, reply(70, 100));
        assert_eq!(attributes.good(&file, seconds(101)), None);
    }

    /// A RENAME of ours has changed its ctime, to what no reply tells. Whoever writes to it and
    /// puts the mtime back leaves nothing else.
    #[test]
    fn what_has_another_ctime_after_a_rename_of_ours_may_be_somebody_elses() {
        let at = |nseconds| NfsTime { nseconds, ..second(5) };
        let state = |ctime| Fattr3 { ctime: at(ctime), ..Fattr3::of_file(4096, at(1)) };
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &state(1), reply(0, 1));
        let version = attributes.version(&file());
        attributes.expire(&file());
        attributes.observe(&file(), &state(1), ReplyContext { is_open: true, ..reply(10, 20) });
        assert_eq!(attributes.version(&file()), version, "it was not done");
        attributes.expire(&file());
        attributes.observe(&file(), &state(2), ReplyContext { is_open: true, ..reply(30, 40) });
        assert_ne!(attributes.version(&file()), version);
    }

    /// Who has a file open, renames it and opens it again has one file.
    #[test]
    fn what_we_have_renamed_while_it_was_open_is_what_it_was() {
        let at = |nseconds| NfsTime { nseconds, ..second(5) };
        let state = |ctime| Fattr3 { ctime: at(ctime), ..Fattr3::of_file(4096, at(1)) };
        let opened = |sent, now| ReplyContext { is_open: true, ..reply(sent, now) };
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &state(1), opened(0, 1));
        attributes.pin(&file());
        let version = attributes.version(&file());
        attributes.expire(&file());
        attributes.observe(&file(), &state(2), opened(10, 20));
        assert_eq!(attributes.version(&file()), version);
        // Once.
        attributes.observe(&file(), &state(3), opened(30, 40));
        assert_ne!(attributes.version(&file()), version);
        let version = attributes.version(&file());
        attributes.expire(&file());
        attributes.observe(&file(), &Fattr3 { size: 4097, ..state(4) }, opened(50, 60));
        assert_ne!(attributes.version(&file()), version);
    }

    /// The same where it was not known of which file the name was (version 2).
    #[test]
    fn what_we_may_have_renamed_while_it_was_open_is_what_it_was() {
        let at = |nseconds| NfsTime { nseconds, ..second(5) };
        let state = |ctime| Fattr3 { ctime: at(ctime), ..Fattr3::of_file(4096, at(1)) };
        for is_open in [true, false] {
            let mut attributes = Attributes::new(Times::default(), 10);
            attributes.observe(&file(), &state(1), reply(0, 1));
            let version = attributes.version(&file());
            if is_open {
                attributes.pin(&file());
            }
            attributes.expire_renamed(Instant::from_nanos(5));
            attributes.observe(&file(), &state(2), reply(10, 20));
            assert_eq!(attributes.version(&file()) == version, is_open);
        }
    }

    /// Which looks at one state, so many seconds after each other, take others to have been there.
    fn changes_seen(state: Fattr3, is_open: bool, looks: &[u64]) -> Vec<bool> {
        let at = |secs: u64| ReplyContext {
            is_open,
            ..reply(secs * 1_000_000_000, secs * 1_000_000_000)
        };
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &state, at(0));
        let mut look = |secs: &u64| {
            let before = attributes.version(&file());
            attributes.observe(&file(), &state, at(*secs));
            attributes.version(&file()) != before
        };
        looks.iter().map(&mut look).collect()
    }

    #[test]
    fn a_state_of_a_whole_second_may_be_two_until_it_is_two_seconds_old() {
        let coarse = Fattr3::of_file(4096, second(5));
        let fine = Fattr3::of_file(4096, NfsTime { nseconds: 1, ..second(5) });
        let looks = [1, 10, 20];
        assert_eq!(changes_seen(coarse, true, &looks), [true, true, false]);
        assert_eq!(changes_seen(coarse, false, &looks), [false; 3], "nobody opens it");
        assert_eq!(changes_seen(fine, true, &looks), [false; 3]);
        let dir = |state| Fattr3 { ftype: FType::Dir, ..state };
        assert_eq!(changes_seen(dir(coarse), false, &looks), [true, true, false], "its names");
        assert_eq!(changes_seen(dir(fine), false, &looks), [false; 3]);
    }

    /// It was known to have no other name, and another client has made one within the same second.
    #[test]
    fn a_change_of_ours_does_not_confirm_what_was_known_of_a_directory_of_that_second() {
        let dir = |seconds| Fattr3 { ftype: FType::Dir, ..Fattr3::of_file(0, second(seconds)) };
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &dir(5), reply(0, 1));
        let version = attributes.version(&file());
        attributes.changing(&file());
        let wcc = WccData { before: Some((&dir(5)).into()), after: Some(dir(9)) };
        attributes.changed(&file(), &wcc, reply(10, 20));
        assert_ne!(attributes.version(&file()), version);
    }

    #[test]
    fn replies_of_one_tick_that_come_in_another_order_leave_the_longer_file() {
        let tick = second(5);
        let at = |sent, now| ReplyContext { is_dirty: true, ..reply(sent, now) };
        let file = file();
        let wrote = |from, to| WccData {
            before: Some((&Fattr3::of_file(from, tick)).into()),
            after: Some(Fattr3::of_file(to, tick)),
        };
        // The second WRITE is the later one on the server, whichever is heard of first.
        let (first, second) = (wrote(0, 4096), wrote(4096, 8192));
        for order in [[(10, first), (11, second)], [(11, second), (10, first)]] {
            let mut attributes = Attributes::new(Times::default(), 10);
            attributes.observe(&file, &Fattr3::of_file(0, NfsTime::default()), at(0, 1));
            for (now, (sent, wcc)) in (20..).zip(order) {
                attributes.wrote(&file, &wcc, at(sent, now));
            }
            assert_eq!(attributes.last(&file).unwrap().size, 8192, "{order:?}");
        }
    }

    /// A GETATTR that was sent before our WRITE was answered, and whose reply comes later: of two
    /// states of one tick it tells the older one.
    #[test]
    fn a_state_of_before_our_write_that_comes_later_does_not_make_the_file_shorter() {
        let tick = second(5);
        let (before, after) = (Fattr3::of_file(0, tick), Fattr3::of_file(4096, tick));
        let mut attributes = Attributes::new(Times::default(), 10);
        attributes.observe(&file(), &before, reply(0, 1));
        let wcc = WccData { before: Some((&before).into()), after: Some(after) };
        attributes.wrote(&file(), &wcc, reply(10, 20));
        attributes.observe(&file(), &before, reply(11, 30));
        assert_eq!(attributes.last(&file()), Some(after));
    }
}
