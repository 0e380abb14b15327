//! What a directory and all beneath it must be like after a crash, by what was answered before it.
//!
//! One caller works in a tree, several calls at a time that have nothing to do with each other: a
//! name, or a file as a whole, is in one call at once, and WRITEs to one file do not overlap. A
//! call that was not answered, or not with success, may have been done or not. Names that it was
//! about are left alone from then on, and each of the two outcomes is right for good: what a server
//! shows after a restart need not be stable.

use std::collections::BTreeMap;

use wire::nfs3::{FileHandle, StableHow};

use super::content::{Content, Verifier};
use super::object::{Body, Object, Uses};
use super::operation::{How, Key, Number, Operation};

/// What the tree is in.
pub const ROOT: Number = 0;

/// A call that has been sent.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub number: u64,
    pub operation: Operation,
}

/// What a server has answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    Written {
        count: u32,
        committed: StableHow,
        verifier: Verifier,
    },
    Committed {
        verifier: Verifier,
    },
    /// CREATE, MKDIR and SYMLINK.
    Made {
        handle: FileHandle,
        fileid: Option<u64>,
    },
    Done,
}

/// Names as they are before or after a call.
pub(super) type Names = Vec<(Key, Option<Number>)>;

/// A change of names whose outcome is not known.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    pub(super) number: u64,
    pub(super) operation: Operation,
    pub(super) before: Names,
    pub(super) after: Names,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(super) objects: BTreeMap<Number, Object>,
    pub(super) names: BTreeMap<Key, Number>,
    pub(super) doubts: Vec<Doubt>,
    next: Number,
    events: u64,
}

impl Tree {
    /// An empty directory.
    pub fn new(handle: FileHandle) -> Self {
        let root = Object { handle: Some(handle), ..Object::new(Body::Dir, None) };
        Self {
            objects: BTreeMap::from([(ROOT, root)]),
            names: BTreeMap::new(),
            doubts: Vec::new(),
            next: 1,
            events: 0,
        }
    }

    pub fn object(&self, number: Number) -> Option<&Object> {
        self.objects.get(&number)
    }

    pub fn object_mut(&mut self, number: Number) -> Option<&mut Object> {
        self.objects.get_mut(&number)
    }

    pub fn named(&self, key: Key) -> Option<Number> {
        self.names.get(&key).copied()
    }

    /// Names that calls may be about, with their objects.
    pub fn settled(&self) -> impl Iterator<Item = (Key, Number, &Object)> {
        let free = self
            .names
            .iter()
            .filter(|(key, number)| !self.is_doubted(**key) && !self.doubts_object(**number));
        free.filter_map(|(key, number)| Some((*key, *number, self.objects.get(number)?)))
    }

    /// Directories that calls may be about.
    pub fn dirs(&self) -> Vec<Number> {
        let below = self.settled().filter(|(.., object)| matches!(object.body, Body::Dir));
        let idle = below.filter(|(.., object)| !object.uses.is_exclusive);
        [ROOT].into_iter().chain(idle.map(|(_, number, _)| number)).collect()
    }

    /// Whether a name has an outcome that is not known.
    pub fn is_doubted(&self, key: Key) -> bool {
        self.doubts.iter().any(|doubt| doubt.keys().any(|other| other == key))
    }

    pub(super) fn doubts_object(&self, number: Number) -> bool {
        let mut about = self.doubts.iter().flat_map(Doubt::objects);
        about.any(|other| other == number)
    }

    /// Whether a directory has nothing in it and never may have.
    pub fn is_empty(&self, dir: Number) -> bool {
        let mut keys = self.names.keys().copied().chain(self.doubts.iter().flat_map(Doubt::keys));
        !keys.any(|key| key.dir == dir)
    }

    /// A call is sent.
    pub fn begin(&mut self, operation: Operation) -> Ticket {
        self.events += 1;
        let number = self.events;
        self.claim(&operation, true);
        match &operation {
            Operation::Write { file, offset, bytes, generation, .. } => {
                let span = *offset..offset + u64::from(*bytes);
                if let Some(object) = self.objects.get_mut(file) {
                    object.times.clear();
                    object.uses.spans.push(span.clone());
                    if let Body::File(content) = &mut object.body {
                        content.write(span, *generation);
                    }
                }
            }
            Operation::Truncate { file, size } => {
                if let Some(object) = self.objects.get_mut(file) {
                    object.times.clear();
                    if let Body::File(content) = &mut object.body {
                        content.truncate(*size);
                    }
                }
            }
            Operation::SetMode { object, mode } => self.may_be(*object, *mode, |of| &mut of.modes),
            Operation::SetTime { object, seconds } => {
                self.may_be(*object, *seconds, |of| &mut of.times);
            }
            Operation::Read { file, offset, bytes } => {
                let span = *offset..offset + u64::from(*bytes);
                if let Some(object) = self.objects.get_mut(file) {
                    object.uses.spans.push(span);
                }
            }
            Operation::Commit { .. } => {}
            _ => self.doubt(number, &operation),
        }
        Ticket { number, operation }
    }

    /// One more value may be found, if any was promised.
    fn may_be(&mut self, number: Number, value: u32, of: impl Fn(&mut Object) -> &mut Vec<u32>) {
        if let Some(values) = self.objects.get_mut(&number).map(of)
            && !values.is_empty()
        {
            values.push(value);
        }
    }

    /// A call that changes names is sent.
    fn doubt(&mut self, number: u64, operation: &Operation) {
        let mut before: Names = operation.keys().map(|key| (key, self.named(key))).collect();
        before.dedup();
        let made = made_by(operation).map(|object| {
            self.objects.insert(self.next, object);
            self.next += 1;
            self.next - 1
        });
        let after = match operation {
            Operation::Link { file, name } => vec![(*name, Some(*file))],
            Operation::Rename { from, to } => vec![(*from, None), (*to, self.named(*from))],
            _ => before.iter().map(|(key, _)| (*key, made)).collect(),
        };
        let operation = operation.clone();
        self.doubts.push(Doubt { number, operation, before, after });
    }

    /// It was answered with success.
    pub fn answered(&mut self, ticket: &Ticket, answer: Answer) {
        self.events += 1;
        let at = self.events;
        self.claim(&ticket.operation, false);
        match (&ticket.operation, answer) {
            (
                Operation::Write { file, offset, bytes, generation, .. },
                Answer::Written { count, committed, verifier },
            ) => {
                let span = *offset..offset + u64::from(count.min(*bytes));
                let Some(object) = self.objects.get_mut(file) else { return };
                object.uses.spans.retain(|other| other.start != *offset);
                let Body::File(content) = &mut object.body else { return };
                match committed {
                    StableHow::Unstable => content.written(span, *generation, verifier, at),
                    _ => content.stored(span, *generation),
                }
            }
            (Operation::Commit { file, offset, bytes }, Answer::Committed { verifier }) => {
                let end = if *bytes == 0 { u64::MAX } else { offset + u64::from(*bytes) };
                if let Some(content) = self.objects.get_mut(file).and_then(Object::content_mut) {
                    content.committed(*offset..end, verifier, ticket.number);
                }
            }
            (Operation::Read { file, offset, .. }, _) => {
                let Some(object) = self.objects.get_mut(file) else { return };
                object.uses.spans.retain(|other| other.start != *offset);
            }
            (Operation::Truncate { file, size }, _) => {
                if let Some(content) = self.objects.get_mut(file).and_then(Object::content_mut) {
                    content.truncated(*size);
                }
            }
            (Operation::SetMode { object, mode }, _) => {
                self.objects.entry(*object).and_modify(|object| object.modes = vec![*mode]);
            }
            (Operation::SetTime { object, seconds }, _) => {
                self.objects.entry(*object).and_modify(|object| object.times = vec![*seconds]);
            }
            _ => self.changed(ticket.number, answer),
        }
    }

    /// Names are as after the call.
    fn changed(&mut self, number: u64, answer: Answer) {
        let Some(at) = self.doubts.iter().position(|doubt| doubt.number == number) else { return };
        let Doubt { before, after, .. } = self.doubts.remove(at);
        for (key, object) in after {
            match object {
                Some(object) => self.names.insert(key, object),
                None => self.names.remove(&key),
            };
            if let (Some(object), Answer::Made { handle, fileid }) = (object, answer)
                && let Some(object) = self.objects.get_mut(&object)
            {
                (object.handle, object.fileid) = (Some(handle), fileid);
            }
        }
        for (_, object) in before {
            let is_named = |object| {
                self.names.values().any(|other| *other == object) || self.doubts_object(object)
            };
            if let Some(object) = object.filter(|object| !is_named(*object)) {
                self.objects.remove(&object);
            }
        }
    }

    /// Objects and directories that a call is about are used by it, or not any more.
    fn claim(&mut self, operation: &Operation, begins: bool) {
        let alone: Vec<Number> = match operation {
            Operation::Write { .. } | Operation::Commit { .. } | Operation::Read { .. } => {
                Vec::new()
            }
            Operation::Truncate { file, .. } => vec![*file],
            Operation::SetMode { object, .. } | Operation::SetTime { object, .. } => vec![*object],
            Operation::Link { file, .. } => vec![*file],
            _ => operation.keys().filter_map(|key| self.named(key)).collect(),
        };
        let shared: Vec<Number> = match operation {
            Operation::Write { file, .. }
            | Operation::Commit { file, .. }
            | Operation::Read { file, .. } => vec![*file],
            _ => operation.keys().map(|key| key.dir).collect(),
        };
        for number in alone {
            if let Some(object) = self.objects.get_mut(&number) {
                object.uses.is_exclusive = begins;
            }
        }
        for number in shared {
            if let Some(Object { uses: Uses { shared, .. }, .. }) = self.objects.get_mut(&number) {
                *shared = if begins { *shared + 1 } else { shared.saturating_sub(1) };
            }
        }
    }

    /// The same as another server has it that serves the same: handles and numbers are its own.
    pub(super) fn elsewhere(&self) -> Self {
        let mut tree = self.clone();
        tree.objects.values_mut().for_each(|object| (object.handle, object.fileid) = (None, None));
        tree
    }

    /// Nothing is under way any more; what was not answered stays open.
    pub fn settle(&mut self) {
        self.objects.values_mut().for_each(|object| object.uses = Uses::default());
    }
}

impl Doubt {
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.operation.keys()
    }

    fn objects(&self) -> impl Iterator<Item = Number> {
        self.before.iter().chain(&self.after).filter_map(|(_, number)| *number)
    }
}

impl Operation {
    /// Names that the call is about.
    pub fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        let (first, second) = match self {
            Self::Create { name, .. }
            | Self::MakeDir { name, .. }
            | Self::Symlink { name, .. }
            | Self::Link { name, .. }
            | Self::Remove { name }
            | Self::RemoveDir { name } => (Some(*name), None),
            Self::Rename { from, to } => (Some(*from), Some(*to)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// The object that an operation makes, if it makes one.
fn made_by(operation: &Operation) -> Option<Object> {
    match operation {
        Operation::Create { how, mode, .. } => {
            let mode = (*how != How::Exclusive).then_some(*mode);
            Some(Object::new(Body::File(Content::default()), mode))
        }
        Operation::MakeDir { mode, .. } => Some(Object::new(Body::Dir, Some(*mode))),
        Operation::Symlink { target, .. } => Some(Object::new(Body::Symlink(target.clone()), None)),
        _ => None,
    }
}
