//! What the kernel knows by number: nodes. Each is a file of the server and one *incarnation* of
//! it.
//!
//! A kernel that writes back keeps size and time of a file for itself, for as long as it knows the
//! node; whatever we say, it would not see what another client did to the file. So a file whose
//! data somebody else has changed becomes another node, the next time its name is looked up; who
//! opens the old one gets ESTALE, at which the kernel looks the name up again and opens the new
//! one. What stat(2) shows as the inode's number is the server's, the same for all incarnations.
//!
//! Two nodes of one file have two page caches and two ends, and programs that write through them
//! overwrite each other's bytes. So a file that programs here have open for writing stays one node,
//! whose data and size follow, unless others have made it shorter ([`Nodes::staying`]).
//!
//! The table holds what the kernel holds, no more: nodes go when it forgets them.

use std::collections::{HashMap, VecDeque};

use client::cache::attributes::Version;
use wire::nfs3::{FileHandle, NfsTime};

use crate::abi::ROOT;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: HashMap<u64, Node>,
    /// The nodes of each file, the newest last.
    files: HashMap<FileHandle, Vec<u64>>,
    last: u64,
    /// Which files threads were refused to open, the newest last. The kernel tries once more, and
    /// may have forgotten the nodes until then.
    refused: VecDeque<(FileHandle, u32)>,
    /// How often names were changed, and when last that of a file that is not known.
    name_changes: u64,
    unknown_name_change: u64,
}

/// Opens that were refused and not tried again yet (guess); of more, one is refused once more, and
/// its program got ESTALE without need.
const REFUSED_MAX: usize = 256;

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) file: FileHandle,
    /// Which data of the file the kernel may have; none for what has no data.
    pub(crate) version: Option<Version>,
    /// Which of them it has, where it forgot some for those of another client while a program had
    /// the file open.
    pub(crate) data: Option<Version>,
    /// The size that the kernel believes in, but for what it has not sent us yet. One that does not
    /// write back takes that of each reply, if it is not overtaken: it believes in no smaller one.
    pub(crate) size: u64,
    /// A time of modification that the kernel has and the server does not have.
    pub(crate) mtime: Option<NfsTime>,
    /// The one that the kernel believes in, where it keeps times for itself.
    pub(crate) kernel_mtime: NfsTime,
    /// The kernel has written data back since it sent a time, or a program set one. Data of the
    /// tick of its clock that its time is of it sends without a time.
    pub(crate) owes_time: bool,
    /// The last change of a name of the file, and of all names when the kernel has sent its time.
    name_change: u64,
    time_sent: u64,
    /// Opens, and how many of them can write.
    pub(crate) opens: u32,
    pub(crate) writers: u32,
    /// And how many write at the end (O_APPEND).
    pub(crate) appenders: u32,
    /// Everything of ours is stable: before the next append a GETATTR returns where the end is.
    pub(crate) asks_to_append: bool,
    /// The kernel has read some of it into its cache.
    pub(crate) has_pages: bool,
    /// The kernel has written some of it from its cache.
    pub(crate) wrote_pages: bool,
    /// Programs have written through it, past that cache or not.
    pub(crate) is_written: bool,
    /// Others have changed the file, and the node has stayed: its times are the kernel's own.
    has_own_times: bool,
    lookups: u64,
}

/// A file that a reply is to name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) file: FileHandle,
    /// Where the kernel writes back, and it is a regular file.
    pub(crate) version: Option<Version>,
    pub(crate) size: u64,
    pub(crate) mtime: NfsTime,
}

impl Nodes {
    pub(crate) fn new(root: FileHandle) -> Self {
        let node =
            Node::new(Named { file: root, version: None, size: 0, mtime: NfsTime::default() });
        Self {
            nodes: HashMap::from([(ROOT, node)]),
            files: HashMap::from([(root, vec![ROOT])]),
            last: ROOT,
            refused: VecDeque::new(),
            name_changes: 0,
            unknown_name_change: 0,
        }
    }

    pub(crate) fn find(&self, id: u64) -> Option<&Node> {
        self.nodes.get(&id)
    }

    pub(crate) fn find_mut(&mut self, id: u64) -> Option<&mut Node> {
        self.nodes.get_mut(&id)
    }

    /// The nodes of a file if the newest is of other data than is known now: they have to be
    /// written back before there may be another.
    pub(crate) fn outdated(&self, named: &Named) -> impl Iterator<Item = (u64, &Node)> {
        let newest = self.newest(&named.file).and_then(|id| self.nodes.get(&id));
        let is_outdated = |newest: &Node| newest.version != named.version;
        let has_others = named.version.is_some() && newest.is_some_and(is_outdated);
        let ids = self.files.get(&named.file).filter(|_| has_others).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.nodes.get(id)?)))
    }

    /// The node of a file of this size that stays the newest, though others have changed the data:
    /// programs here have it open for writing. By another node the kernel would have pages and an
    /// end of their own, and these programs would overwrite what is written through it. Where the
    /// file is shorter than the kernel believes there has to be another: nothing makes it shorter.
    pub(crate) fn staying(&self, file: &FileHandle, size: u64) -> Option<u64> {
        let id = self.newest(file)?;
        let node = self.nodes.get(&id)?;
        // Of no data that there are: its size may be wrong as well.
        let is_lost = node.version == Some(Version::default());
        (node.writers > 0 && !is_lost && node.size <= size).then_some(id)
    }

    /// The kernel has forgotten the data of a node that others have changed, and has from now on
    /// those of this version. Its times it may keep.
    pub(crate) fn caught_up(&mut self, id: u64, version: Option<Version>, keeps_times: bool) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.version = version;
            node.data = version;
            node.has_own_times |= keeps_times;
        }
    }

    /// A LINK of ours has made another version of a file, and the data are those of the version
    /// before: the newest node has both, and stays the newest. One node has one number of links.
    pub(crate) fn linked(&mut self, file: &FileHandle, before: Option<Version>, after: Version) {
        let newest = self.newest(file).and_then(|id| self.nodes.get_mut(&id));
        if let Some(node) = newest.filter(|node| node.version.is_some() && node.version == before) {
            if node.data == before {
                node.data = Some(after);
            }
            node.version = Some(after);
        }
    }

    /// The node of a file that a reply names; counts it as looked up once more.
    pub(crate) fn name(&mut self, named: Named) -> u64 {
        let staying = self.staying(&named.file, named.size);
        if let Some(id) = self.newest(&named.file)
            && let Some(node) = self.nodes.get_mut(&id)
            && (named.version.is_none() || node.version == named.version || staying == Some(id))
        {
            if id != ROOT {
                node.lookups += 1;
            }
            if named.version.is_none() {
                node.size = node.size.min(named.size);
            }
            return id;
        }
        self.last += 1;
        let node = Node { lookups: 1, time_sent: self.name_changes, ..Node::new(named) };
        self.nodes.insert(self.last, node);
        self.files.entry(named.file).or_default().push(self.last);
        self.last
    }

    fn newest(&self, file: &FileHandle) -> Option<u64> {
        self.files.get(file)?.last().copied()
    }

    /// Whether the kernel knows the file of a node by another node, too.
    pub(crate) fn has_others(&self, id: u64) -> bool {
        let file = self.nodes.get(&id).map(|node| node.file);
        file.and_then(|file| self.files.get(&file)).is_some_and(|ids| ids.len() > 1)
    }

    /// A file is opened by a node. Gives whether it may be cached: not what is to be written while
    /// programs write to the file through another node.
    pub(crate) fn opened(&mut self, id: u64, writes: bool, appends: bool) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        node.opens += 1;
        node.writers += u32::from(writes);
        node.appenders += u32::from(appends);
        !writes || self.others(id).iter().all(|(_, other)| other.writers == 0)
    }

    /// It is closed.
    pub(crate) fn closed(&mut self, id: u64, writes: bool, appends: bool) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.opens = node.opens.saturating_sub(1);
        node.writers = node.writers.saturating_sub(u32::from(writes));
        node.appenders = node.appenders.saturating_sub(u32::from(appends));
        if node.writers == 0 && std::mem::take(&mut node.has_own_times) {
            // Whoever looks the name up gets the server's times by another node.
            node.version = node.version.map(|_| Version::default());
        }
    }

    /// The other nodes of its file.
    pub(crate) fn others(&self, id: u64) -> Vec<(u64, Node)> {
        let ids = self.nodes.get(&id).and_then(|node| self.files.get(&node.file));
        let others = ids.into_iter().flatten().filter(|other| **other != id);
        others.filter_map(|other| Some((*other, *self.nodes.get(other)?))).collect()
    }

    /// The kernel has forgotten so many lookups of a node.
    pub(crate) fn forget(&mut self, id: u64, lookups: u64) {
        let Some(node) = self.nodes.get_mut(&id).filter(|_| id != ROOT) else {
            return;
        };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups == 0 {
            let file = node.file;
            self.nodes.remove(&id);
            if let Some(ids) = self.files.get_mut(&file) {
                ids.retain(|of_file| *of_file != id);
                if ids.is_empty() {
                    self.files.remove(&file);
                }
            }
        }
    }

    /// Data of a file were changed through a node of it. What the kernel has of the file by
    /// another node is of before, and no reply of ours would tell it: whoever opens that one looks
    /// the name up again.
    pub(crate) fn changed(&mut self, id: u64) {
        let Some(file) = self.nodes.get(&id).map(|node| node.file) else { return };
        if let Some(newest) = self.newest(&file).filter(|newest| *newest != id)
            && let Some(other) = self.nodes.get_mut(&newest)
        {
            // Of no data that there are.
            other.version = other.version.map(|_| Version::default());
        }
    }

    /// Data of a file that the kernel has written are lost, or it has not heard of a change that it
    /// has requested. What it has of its nodes is not the file's: whoever opens one looks the name
    /// up again. Gives those that somebody has open.
    pub(crate) fn lost(&mut self, file: &FileHandle) -> Vec<u64> {
        let mut open = Vec::new();
        for id in self.files.get(file).into_iter().flatten() {
            if let Some(node) = self.nodes.get_mut(id) {
                node.version = node.version.map(|_| Version::default());
                open.extend((node.opens > 0).then_some(*id));
            }
        }
        open
    }

    /// Data up to `end` were written through a node. Gives whether the kernel may have pages of it.
    pub(crate) fn wrote(&mut self, id: u64, end: u64) -> bool {
        self.changed(id);
        self.nodes.get_mut(&id).is_some_and(|node| {
            node.is_written = true;
            // What another program writes in place says nothing of the end.
            node.asks_to_append &= end <= node.size;
            node.size = node.size.max(end);
            node.has_pages
        })
    }

    /// The kernel has changed a name of this file, or of one that is not known: it sends the time
    /// that it has of the file.
    pub(crate) fn name_changed(&mut self, file: Option<FileHandle>) {
        self.name_changes += 1;
        match file {
            None => self.unknown_name_change = self.name_changes,
            Some(file) => {
                for id in self.files.get(&file).into_iter().flatten() {
                    if let Some(node) = self.nodes.get_mut(id) {
                        node.name_change = self.name_changes;
                    }
                }
            }
        }
    }

    /// The kernel has sent a time of a node. Whether that is because a name was changed, and of
    /// no program's: it does so once.
    pub(crate) fn sends_time(&mut self, id: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        let before = std::mem::replace(&mut node.time_sent, self.name_changes);
        node.name_change.max(self.unknown_name_change) > before
    }

    /// What was written through a node is stable. Whether somebody may append through it, and then
    /// asks the server first.
    pub(crate) fn must_ask_to_append(&mut self, id: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        node.asks_to_append = node.appenders > 0;
        node.asks_to_append
    }

    /// Whether a GETATTR is needed now, before what may be an append.
    pub(crate) fn asks_to_append(&self, id: u64) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.asks_to_append)
    }

    /// An open of a file is refused to a thread.
    pub(crate) fn refuse(&mut self, file: FileHandle, thread: u32) {
        // It opens one file at a time; those of other name spaces are all 0.
        self.refused.retain(|(of, by)| *by != thread || thread == 0 && *of != file);
        if self.refused.len() >= REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back((file, thread));
    }

    /// Whether it was refused when the thread opened the file last.
    pub(crate) fn was_refused(&mut self, file: FileHandle, thread: u32) -> bool {
        let at = self.refused.iter().position(|refused| *refused == (file, thread));
        at.and_then(|at| self.refused.remove(at)).is_some()
    }

    /// Whether the kernel may have data of a node that are of this version of its file.
    pub(crate) fn has_data(&self, id: u64, version: Option<Version>) -> bool {
        let node = self.nodes.get(&id).filter(|node| node.version == version);
        node.is_some_and(|node| node.has_pages || node.wrote_pages)
    }

    /// Nodes that are open for writing.
    pub(crate) fn written(&self) -> Vec<u64> {
        self.nodes.iter().filter(|(_, node)| node.writers > 0).map(|(id, _)| *id).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

impl Node {
    fn new(named: Named) -> Self {
        Self {
            file: named.file,
            version: named.version,
            data: named.version,
            size: named.size,
            mtime: None,
            kernel_mtime: named.mtime,
            owes_time: false,
            name_change: 0,
            time_sent: 0,
            opens: 0,
            writers: 0,
            appenders: 0,
            asks_to_append: false,
            has_pages: false,
            wrote_pages: false,
            is_written: false,
            has_own_times: false,
            lookups: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use client::cache::attributes::{Attributes, ReplyContext, Times};
    use perf::units::Instant;
    use wire::nfs3::{Fattr3, NfsTime};

    use super::*;

    fn handle(number: u8) -> FileHandle {
        FileHandle::new(&[number; 8]).unwrap()
    }

    const TIME: NfsTime = NfsTime { seconds: 0, nseconds: 0 };
    const ATTRIBUTES: Fattr3 = Fattr3::of_file(0, TIME);

    /// Two versions that differ.
    fn versions() -> [Version; 2] {
        let mut attributes = Attributes::new(Times::default(), 10);
        let (sent, now) = (Instant::EPOCH, Instant::EPOCH);
        let reply = ReplyContext { sent, now, is_dirty: false, is_open: false };
        [1, 2].map(|number| {
            attributes.observe(&handle(number), &ATTRIBUTES, reply);
            attributes.version(&handle(number)).unwrap()
        })
    }

    fn named(number: u8, version: Version) -> Named {
        Named { file: handle(number), version: Some(version), size: 0, mtime: TIME }
    }

    fn outdated(nodes: &Nodes, version: Version) -> Vec<u64> {
        nodes.outdated(&named(1, version)).map(|(id, _)| id).collect()
    }

    #[test]
    fn what_is_changed_through_an_older_node_makes_the_newer_one_old() {
        let [old, new] = versions();
        let mut nodes = Nodes::new(handle(0));
        let first = nodes.name(named(1, old));
        let second = nodes.name(named(1, new));
        nodes.changed(second);
        assert_eq!(nodes.name(named(1, new)), second, "its own changes it knows");
        nodes.changed(first);
        assert_eq!(outdated(&nodes, new), [first, second]);
        assert_ne!(nodes.name(named(1, new)), second);
    }

    #[test]
    fn a_file_is_one_node_until_somebody_else_changes_it() {
        let [old, new] = versions();
        let mut nodes = Nodes::new(handle(0));
        let first = nodes.name(named(1, old));
        assert_eq!(nodes.name(named(1, old)), first);
        assert!(outdated(&nodes, old).is_empty());
        assert_eq!(outdated(&nodes, new), [first]);
        let second = nodes.name(named(1, new));
        assert_ne!(second, first);
    }

    #[test]
    fn who_was_refused_is_known_once_whatever_becomes_of_the_nodes() {
        let [old, _] = versions();
        let mut nodes = Nodes::new(handle(0));
        let first = nodes.name(named(1, old));
        for file in [2, 1, 1] {
            nodes.refuse(handle(file), 7);
        }
        nodes.forget(first, 1);
        assert!(!nodes.was_refused(handle(1), 8) && !nodes.was_refused(handle(2), 7));
        assert!(nodes.was_refused(handle(1), 7));
        assert!(!nodes.was_refused(handle(1), 7));
        (0..=256).for_each(|thread| nodes.refuse(handle(1), thread));
        assert!(!nodes.was_refused(handle(1), 0) && nodes.was_refused(handle(1), 1));
    }

    #[test]
    fn a_node_goes_with_its_last_lookup_and_its_number_never_comes_back() {
        let [version, _] = versions();
        let mut nodes = Nodes::new(handle(0));
        let first = nodes.name(named(1, version));
        nodes.name(named(1, version));
        nodes.forget(first, 1);
        assert_eq!(nodes.len(), 2);
        nodes.forget(first, 7);
        assert_eq!(nodes.len(), 1);
        nodes.forget(first, 1);
        assert!(nodes.name(named(1, version)) > first);
        nodes.forget(ROOT, 100);
        assert!(nodes.find(ROOT).is_some());
    }

    #[test]
    fn an_old_incarnation_that_is_forgotten_leaves_the_new_one() {
        let [old, new] = versions();
        let mut nodes = Nodes::new(handle(0));
        let (first, second) = (nodes.name(named(1, old)), nodes.name(named(1, new)));
        nodes.forget(first, 1);
        assert_eq!(nodes.name(named(1, new)), second);
    }

    #[test]
    fn a_new_incarnation_that_is_forgotten_leaves_the_old_one() {
        let [old, new] = versions();
        let mut nodes = Nodes::new(handle(0));
        let (first, second) = (nodes.name(named(1, old)), nodes.name(named(1, new)));
        nodes.forget(second, 1);
        assert_eq!(outdated(&nodes, new), [first]);
        assert!(!nodes.has_others(first));
    }
}
