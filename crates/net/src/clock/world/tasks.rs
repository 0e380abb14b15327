//! The tasks of a world: which can run, and which belong together.
//!
//! Tasks live in numbered slots that are used again; a task's identity is its slot and a number
//! that no other task has. A group is what ends together. It may lie in another group, which then
//! ends it too. What a task spawns through a clock without a group belongs to the task's own group,
//! so that no child of a host survives its crash.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::TaskWaker;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::clock) struct TaskId {
    slot: usize,
    number: u64,
}

/// Index of a group; groups are few (one for each life of a host) and never forgotten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct GroupId(usize);

impl GroupId {
    /// Where no group was requested. It cannot be killed.
    pub(super) const NONE: Self = Self(0);
}

pub(in crate::clock) type BoxedWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that is not running.
pub(super) struct Parked {
    pub(super) work: BoxedWork,
    pub(super) waker: Arc<TaskWaker>,
}

struct Slot {
    number: u64,
    group: GroupId,
    state: SlotState,
}

enum SlotState {
    Free,
    Parked(Parked),
    Running,
}

#[derive(Default)]
struct Group {
    parent: Option<GroupId>,
    polls: u64,
    kill_at_poll: Option<u64>,
    is_dead: bool,
    /// Who wants to know of its end.
    waiting: Vec<Waker>,
}

pub(super) struct Tasks {
    slots: Vec<Slot>,
    free: Vec<usize>,
    ready: VecDeque<TaskId>,
    groups: Vec<Group>,
    /// Of the task that runs.
    current: GroupId,
    spawned: u64,
    len: usize,
    has_ended: bool,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            groups: vec![Group::default()],
            current: GroupId::NONE,
            spawned: 0,
            len: 0,
            has_ended: false,
        }
    }
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn polls(&self) -> u64 {
        self.groups[GroupId::NONE.0].polls
    }

    /// Gives a task its place. What cannot live any more (its group or the world has ended) comes
    /// back, for the caller to drop outside of the lock.
    pub(super) fn spawn(
        &mut self,
        group: GroupId,
        park: impl FnOnce(TaskId) -> Parked,
    ) -> (TaskId, Option<Parked>) {
        self.spawned += 1;
        let number = self.spawned;
        let group = if group == GroupId::NONE { self.current } else { group };
        if self.has_ended || self.is_dead(group) {
            let id = TaskId { slot: usize::MAX, number };
            return (id, Some(park(id)));
        }
        let slot = self.free.pop().unwrap_or(self.slots.len());
        let id = TaskId { slot, number };
        let taken = Slot { number, group, state: SlotState::Parked(park(id)) };
        match self.slots.get_mut(slot) {
            Some(free) => *free = taken,
            None => self.slots.push(taken),
        }
        self.len += 1;
        self.ready.push_back(id);
        (id, None)
    }

    pub(super) fn ready(&mut self, id: TaskId) {
        self.ready.push_back(id);
    }

    /// The first task that can run; it is to be put back.
    pub(super) fn take(&mut self) -> Option<(TaskId, Parked)> {
        loop {
            let id = self.ready.pop_front()?;
            let Some(slot) = self.slots.get_mut(id.slot).filter(|slot| slot.number == id.number)
            else {
                continue;
            };
            match std::mem::replace(&mut slot.state, SlotState::Running) {
                SlotState::Parked(task) => {
                    self.current = slot.group;
                    return Some((id, task));
                }
                other => slot.state = other,
            }
        }
    }

    /// Takes back what was polled: the task if it is not needed any more, for the caller to drop,
    /// and the group whose end this poll was.
    pub(super) fn put_back(
        &mut self,
        id: TaskId,
        task: Parked,
        poll: Poll<()>,
    ) -> (Option<Parked>, Option<GroupId>) {
        let killed = self.count_poll(self.current);
        self.current = GroupId::NONE;
        let slot = self.slots.get_mut(id.slot).filter(|slot| slot.number == id.number);
        let finished = match (slot, poll) {
            (Some(slot), Poll::Pending) => {
                slot.state = SlotState::Parked(task);
                None
            }
            (Some(_), Poll::Ready(())) => {
                self.remove(id);
                Some(task)
            }
            // Aborted while it ran.
            (None, _) => Some(task),
        };
        (finished, killed)
    }

    /// Frees a task's slot; the task, unless it runs, is for the caller to drop.
    pub(super) fn remove(&mut self, id: TaskId) -> Option<Parked> {
        let slot = self.slots.get_mut(id.slot).filter(|slot| slot.number == id.number)?;
        slot.number = 0;
        self.len -= 1;
        self.free.push(id.slot);
        match std::mem::replace(&mut slot.state, SlotState::Free) {
            SlotState::Parked(task) => Some(task),
            SlotState::Running | SlotState::Free => None,
        }
    }

    /// Ends everything, for good.
    pub(super) fn end(&mut self) -> Vec<Parked> {
        self.has_ended = true;
        self.remove_all(|_, _| true)
    }

    fn remove_all(&mut self, which: impl Fn(&Self, GroupId) -> bool) -> Vec<Parked> {
        let ids = self.slots.iter().enumerate().filter(|(_, slot)| slot.number != 0);
        let ids = ids.filter(|(_, slot)| which(self, slot.group));
        let ids: Vec<_> = ids.map(|(slot, task)| TaskId { slot, number: task.number }).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    pub(super) fn group(&mut self, parent: GroupId) -> GroupId {
        self.groups.push(Group { parent: Some(parent), ..Group::default() });
        GroupId(self.groups.len() - 1)
    }

    /// Whether `group` is `outer` or lies in it.
    fn is_within(&self, group: GroupId, outer: GroupId) -> bool {
        self.chain(group).any(|id| id == outer)
    }

    fn is_dead(&self, group: GroupId) -> bool {
        self.chain(group).any(|id| self.groups[id.0].is_dead)
    }

    /// A group and those around it.
    fn chain(&self, group: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        std::iter::successors(Some(group), |id| self.groups[id.0].parent)
    }

    /// The tasks that end with the group and who is to be woken for it.
    pub(super) fn kill(&mut self, group: GroupId) -> (Vec<Parked>, Vec<Waker>) {
        if group == GroupId::NONE {
            return (Vec::new(), Vec::new());
        }
        self.groups[group.0].is_dead = true;
        let mut waiting = Vec::new();
        for id in (0..self.groups.len()).map(GroupId) {
            if self.is_within(id, group) {
                waiting.append(&mut self.groups[id.0].waiting);
            }
        }
        let tasks = self.remove_all(|tasks, of| tasks.is_within(of, group));
        (tasks, waiting)
    }

    /// Counts a poll of one of the group's tasks. `Some` when it was the last of a group around.
    fn count_poll(&mut self, group: GroupId) -> Option<GroupId> {
        let (mut next, mut killed) = (Some(group), None);
        while let Some(id) = next {
            let group = &mut self.groups[id.0];
            group.polls += 1;
            if !group.is_dead && group.kill_at_poll.is_some_and(|at| group.polls >= at) {
                killed = Some(id);
            }
            next = group.parent;
        }
        killed
    }

    pub(super) fn group_polls(&self, group: GroupId) -> u64 {
        self.groups[group.0].polls
    }

    /// Whether so many polls have been already.
    pub(super) fn kill_at_poll(&mut self, group: GroupId, polls: u64) -> bool {
        let group = &mut self.groups[group.0];
        group.kill_at_poll = Some(polls);
        group.polls >= polls
    }

    pub(super) fn poll_killed(&mut self, group: GroupId, cx: &Context<'_>) -> Poll<()> {
        if self.is_dead(group) {
            return Poll::Ready(());
        }
        let waiting = &mut self.groups[group.0].waiting;
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
