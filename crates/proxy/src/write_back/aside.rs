//! What the origin refuses for good does not hold up what is behind it. It is set aside: the bytes
//! that clients have written go to a file of this host beside the log, which is reported like a
//! conflict, and clients see the origin's version again. No bytes are lost, and none are where the
//! origin does not want them.
//!
//! A refusal counts as one for good when the origin has given it for [`GIVE_UP`], and for a reason
//! that time does not mend. A file system that is full, or read-only, is waited for.

use perf::units::Nanos;
use server::store::Store;
use server::types::{FileKind, Handle, Status};

use super::Inner;
use super::came::Came;
use super::describe::{describe, printable};
use super::events::Event;
use super::nodes::Aside;
use super::record::{Change, Entry};

/// As long as a person needs who has just changed a mode by mistake; guess.
pub(super) const GIVE_UP: Nanos = Nanos::from_secs(60);

/// Whether a change that is refused with this will be refused again, as far as that is known.
pub(super) fn is_for_good(status: Status) -> bool {
    use Status::{Away, Io, Jukebox, NoDevice, NoSpace, Quota, ReadOnly, ServerFault};
    !matches!(status, Away | Io | Jukebox | NoDevice | NoSpace | Quota | ReadOnly | ServerFault)
}

impl<S: Store> Inner<S> {
    /// Whether a change is of a file whose bytes go aside already.
    pub(super) fn goes_aside(&self, number: u64) -> bool {
        let state = self.state.lock();
        let file = state.ops.get(&number).and_then(|op| super::touches::file(&op.entry.change));
        let node = file.and_then(|file| state.nodes.find(&file));
        node.is_some_and(|node| node.aside.is_some())
    }

    /// A change is set aside; none: this host does not take its bytes either, and it waits.
    /// `status`: the origin's reason, if it was called.
    pub(super) async fn set_aside(&self, number: u64, status: Option<Status>) -> Option<Came> {
        let (entry, _) = self.entry(number)?;
        let made = self.state.lock().identity(number).0;
        let file = match &entry.change {
            Change::Write { file, .. } | Change::Set { file, .. } => Some(*file),
            Change::Make { .. } => Some(made),
            Change::Remove { .. } | Change::Rename { .. } => None,
        };
        match file.filter(|_| has_bytes(&entry.change) || self.goes_aside(number)) {
            Some(file) => self.keep_aside(&entry, number, &file, status).await?,
            None => {
                let reported = self.report_aside(&entry.change, file.as_ref(), status, None);
                self.unless_not_stored(reported)?;
            }
        }
        let dropped = matches!(entry.change, Change::Make { .. }).then_some(made);
        Some(Came { dropped, differs: true, is_lost: true, ..Came::default() })
    }

    /// Keeps what clients see in a file of what the origin does not have, unless that is done
    /// already.
    async fn keep_aside(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        status: Option<Status>,
    ) -> Option<()> {
        let (keeping, newest, status) = {
            let mut state = self.state.lock();
            let newest = state.journal.next_record().saturating_sub(1);
            let name = state.called(file);
            match state.nodes.find_mut(file) {
                Some(node) => {
                    let aside = node.aside.clone();
                    if aside.as_ref().is_some_and(|aside| aside.number >= number) {
                        return Some(());
                    }
                    let copy = || self.beside_name(&name, number, 1);
                    let first = || Aside { copy: copy(), number: 0, status };
                    // From now on others of its changes go there, too.
                    let aside = aside.unwrap_or_else(first);
                    let (copy, status) = (aside.copy.clone(), aside.status);
                    node.aside = Some(aside);
                    let pieces = node.extents.pieces().map(|(at, data)| (at, data.clone()));
                    let is_file = node.attr.kind == FileKind::Regular;
                    // The last one that is begun here is the last one on the disk.
                    let keep = || self.device.keep(copy, node.attr.size, pieces.collect());
                    (is_file.then(keep), newest, status)
                }
                // The proxy that had it was killed: of the file nothing is known but this.
                None => match &entry.change {
                    Change::Write { offset, data, .. } => {
                        let copy = self.beside_name(&name, number, 1);
                        let (size, piece) = (offset + data.len() as u64, (*offset, data.clone()));
                        (Some(self.device.keep(copy, size, vec![piece])), number, status)
                    }
                    _ => (None, number, status),
                },
            }
        };
        let stored = match keeping {
            Some(keeping) => keeping.await.map(Some),
            None => Ok(None),
        };
        let is_first = {
            let mut state = self.state.lock();
            let node = state.nodes.find_mut(file);
            match (node.map(|node| &mut node.aside), &stored) {
                (Some(Some(aside)), Ok(_)) => {
                    let is_first = aside.number == 0;
                    aside.number = aside.number.max(newest);
                    is_first
                }
                (Some(aside), Err(_)) => {
                    // It is tried at the origin again, and reported when it is stored.
                    aside.take_if(|aside| aside.number == 0);
                    false
                }
                _ => true,
            }
        };
        let stored = stored.map_err(|why| why.to_string());
        let reported = stored.and_then(|copy| match is_first {
            true => self.report_first(&entry.change, file, status, copy),
            false => Ok(()),
        });
        self.unless_not_stored(reported)
    }

    /// Reports where a file's bytes are, or will be by the next that is set aside.
    fn report_first(
        &self,
        change: &Change,
        file: &Handle,
        status: Option<Status>,
        copy: Option<String>,
    ) -> Result<(), String> {
        let reported = self.report_aside(change, Some(file), status, copy);
        if reported.is_err()
            && let Some(node) = self.state.lock().nodes.find_mut(file)
            && let Some(aside) = &mut node.aside
        {
            aside.number = 0;
        }
        reported
    }

    /// What cannot be stored or recorded waits, and that is reported.
    fn unless_not_stored(&self, outcome: Result<(), String>) -> Option<()> {
        let report = |why| (self.options.hear)(&Event::NotStored { why }).ok();
        outcome.map_err(report).ok()
    }

    /// As much of the path of what is changed as is known here.
    pub(super) fn path_of(&self, change: &Change, file: Option<&Handle>) -> String {
        let place = match change {
            Change::Write { .. } | Change::Set { .. } => {
                let state = self.state.lock();
                file.and_then(|file| state.place(file).cloned())
            }
            Change::Make { dir, name, .. } | Change::Remove { dir, name, .. } => {
                Some((*dir, name.clone()))
            }
            Change::Rename { from, .. } => Some(from.clone()),
        };
        place.map_or_else(String::new, |(dir, name)| self.path(&dir, &name))
    }

    fn report_aside(
        &self,
        change: &Change,
        file: Option<&Handle>,
        status: Option<Status>,
        copy: Option<String>,
    ) -> Result<(), String> {
        let path = self.path_of(change, file);
        let (status, copy) = (status.unwrap_or(Status::ServerFault), copy.as_deref());
        let copy = copy.map(|copy| printable(copy.as_bytes()));
        self.conflict(&Event::SetAside { change: describe(change), path, status, copy })?;
        self.state.lock().counts.set_aside += 1;
        Ok(())
    }
}

/// Whether a change is of a file's bytes: what comes after it of the same file goes where it goes.
pub(super) fn has_bytes(change: &Change) -> bool {
    match change {
        Change::Write { .. } | Change::Make { .. } => true,
        Change::Set { set, .. } => set.size.is_some(),
        Change::Remove { .. } | Change::Rename { .. } => false,
    }
}
