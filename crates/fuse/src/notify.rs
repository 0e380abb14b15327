//! Telling the kernel what it should forget or know.
//!
//! What concerns data may have to wait: for a READ or a write-back of the same node, which holds
//! pages until the server has answered. What concerns a name may have to wait for whoever changes
//! another name of the directory, and who does so may wait for a notice of data. So threads notify
//! it of their own, those of names beside those of data, never by the one that reads requests, and
//! what waits for one file does not hold up the notices of another. A node has one notice of each
//! kind under way at a time. What concerns attributes only waits for nothing.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::abi::answer::{self, Notify};
use crate::device::Device;

/// Where notices are left; clones leave them at the same place.
#[derive(Clone, Debug)]
pub(crate) struct Notifier(Sender<Waiting>);

/// A notice, and who waits until the kernel is done: false when it knows no such node.
pub(crate) type Waiting = (Notice, oneshot::Sender<bool>);

#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Notice {
    /// Data from `offset` on is to be written back and forgotten: `length` bytes, or all for 0.
    Forget { node: u64, offset: u64, length: u64 },
    /// Attributes are to be requested when they are next needed; data stay.
    ForgetAttributes { node: u64 },
    /// A name is to be looked up when it is next used.
    ForgetName { dir: u64, name: Vec<u8> },
    /// These data follow what the kernel knows of a file.
    Store { node: u64, offset: u64, data: Bytes },
}

/// Threads that notify of data, and as many of names (guess). When the notices of so many nodes
/// wait for their servers, those of further nodes wait, too.
const THREADS_MAX: usize = 16;

impl Notice {
    fn node(&self) -> u64 {
        match self {
            Self::Forget { node, .. }
            | Self::ForgetAttributes { node }
            | Self::Store { node, .. } => *node,
            Self::ForgetName { dir, .. } => *dir,
        }
    }
}

impl Notifier {
    pub(crate) fn start(device: &Arc<Device>) -> io::Result<Self> {
        let device = Arc::clone(device);
        Self::telling(move |notice| notify(&device, notice))
    }

    /// The same, whoever gets it.
    fn telling(tell: impl Fn(&Notice) -> bool + Send + Sync + 'static) -> io::Result<Self> {
        let (notifier, notices) = Self::to();
        let tell: Arc<Tell> = Arc::new(tell);
        let [data, names] = [Desk::new(&tell), Desk::new(&tell)];
        thread::Builder::new().name("nfskit-notify".to_owned()).spawn(move || {
            for waiting in notices {
                match &waiting.0 {
                    Notice::ForgetAttributes { .. } => data.tell(waiting),
                    Notice::Forget { .. } | Notice::Store { .. } => data.leave(waiting),
                    Notice::ForgetName { .. } => names.leave(waiting),
                }
            }
            [data, names].iter().for_each(|desk| desk.close());
        })?;
        Ok(notifier)
    }

    /// Leaves them for whoever has the other end.
    pub(crate) fn to() -> (Self, Receiver<Waiting>) {
        let (sender, notices) = mpsc::channel();
        (Self(sender), notices)
    }

    /// Done when the kernel is. False when it knows no such node. Everyone who asks waits for the
    /// end of it, so that there are never more notices than requests.
    pub(crate) async fn notify(&self, notice: Notice) -> bool {
        let (done, answered) = oneshot::channel();
        match self.0.send((notice, done)) {
            Ok(()) => answered.await.unwrap_or(false),
            Err(_) => false,
        }
    }
}

/// Notifies the kernel. False when it knows no such node.
type Tell = dyn Fn(&Notice) -> bool + Send + Sync;

/// Where notices of data, or of names, wait for a thread.
struct Desk {
    tell: Arc<Tell>,
    /// Guards what waits.
    nodes: Mutex<Waits>,
    more: Condvar,
}

/// Bounded by those who wait for the notices.
#[derive(Debug, Default)]
struct Waits {
    /// The notices of each node after what is under way of it.
    nodes: HashMap<u64, VecDeque<Waiting>>,
    /// Nodes of which nothing is under way.
    ready: VecDeque<u64>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl Desk {
    fn new(tell: &Arc<Tell>) -> Arc<Self> {
        let tell = Arc::clone(tell);
        Arc::new(Self { tell, nodes: Mutex::default(), more: Condvar::new() })
    }

    fn tell(&self, (notice, done): Waiting) {
        // Nobody may be waiting any more.
        done.send((self.tell)(&notice)).ok();
    }

    fn leave(self: &Arc<Self>, waiting: Waiting) {
        let node = waiting.0.node();
        let mut waits = self.nodes.lock();
        if let Some(others) = waits.nodes.get_mut(&node) {
            others.push_back(waiting);
            return;
        }
        waits.nodes.insert(node, VecDeque::from([waiting]));
        waits.ready.push_back(node);
        if waits.idle >= waits.ready.len() || waits.threads >= THREADS_MAX {
            self.more.notify_one();
            return;
        }
        waits.threads += 1;
        drop(waits);
        let desk = Arc::clone(self);
        let work = move || desk.work();
        let started = thread::Builder::new().name("nfskit-forget".to_owned()).spawn(work);
        if started.is_err() {
            let mut waits = self.nodes.lock();
            waits.threads -= 1;
            let alone = waits.threads == 0;
            drop(waits);
            // The other threads come to it, or this one does by itself.
            if alone {
                self.empty();
            }
        }
    }

    /// Tells what waits, until the end.
    fn work(&self) {
        let mut waits = self.nodes.lock();
        loop {
            if let Some(node) = waits.ready.pop_front() {
                drop(waits);
                self.tell_next(node);
                waits = self.nodes.lock();
            } else if waits.is_closed {
                return;
            } else {
                waits.idle += 1;
                self.more.wait(&mut waits);
                waits.idle -= 1;
            }
        }
    }

    /// The same, until nothing waits.
    fn empty(&self) {
        while let Some(node) = { self.nodes.lock().ready.pop_front() } {
            self.tell_next(node);
        }
    }

    /// Tells what has waited longest of a node, which then is ready again if there is more.
    fn tell_next(&self, node: u64) {
        let next = self.nodes.lock().nodes.get_mut(&node).and_then(VecDeque::pop_front);
        if let Some(waiting) = next {
            self.tell(waiting);
        }
        let mut waits = self.nodes.lock();
        if waits.nodes.get(&node).is_some_and(VecDeque::is_empty) {
            waits.nodes.remove(&node);
        } else {
            waits.ready.push_back(node);
        }
    }

    fn close(&self) {
        self.nodes.lock().is_closed = true;
        self.more.notify_all();
    }
}

fn notify(device: &Device, notice: &Notice) -> bool {
    match notice {
        Notice::Forget { node, offset, length } => {
            device.notify(Notify::InvalInode, &answer::inval_inode(*node, *offset, *length), &[])
        }
        Notice::ForgetAttributes { node } => {
            // A negative offset: no data.
            device.notify(Notify::InvalInode, &answer::inval_inode(*node, u64::MAX, 0), &[])
        }
        Notice::ForgetName { dir, name } => {
            let length = u32::try_from(name.len()).unwrap_or(0);
            let name = [name.as_slice(), &[0]].concat();
            device.notify(Notify::InvalEntry, &answer::inval_entry(*dir, length), &name)
        }
        Notice::Store { node, offset, data } => {
            let count = u32::try_from(data.len()).unwrap_or(0);
            let body = answer::store(*node, *offset, count);
            device.notify(Notify::Store, &body, &data[..count as usize])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forget(node: u64) -> Notice {
        Notice::Forget { node, offset: 0, length: 0 }
    }

    /// A notifier whose kernel waits, for data of node 1, until it is let go on; and what it has
    /// heard.
    fn waiting_kernel() -> (Notifier, Sender<()>, Receiver<u64>) {
        let (go, may_go) = mpsc::channel::<()>();
        let (say, noticed) = mpsc::channel();
        let may_go = Mutex::new(may_go);
        let notifier = Notifier::telling(move |notice| {
            say.send(notice.node()).unwrap();
            if *notice == forget(1) {
                may_go.lock().recv().unwrap();
            }
            true
        });
        (notifier.unwrap(), go, noticed)
    }

    /// Leaves a notice, and waits for nothing.
    fn leave(notifier: &Notifier, notice: Notice) -> oneshot::Receiver<bool> {
        let (done, answered) = oneshot::channel();
        notifier.0.send((notice, done)).unwrap();
        answered
    }

    #[test]
    fn a_node_whose_pages_are_waited_for_holds_up_no_other() {
        let (notifier, go, noticed) = waiting_kernel();
        let mut first = leave(&notifier, forget(1));
        assert_eq!(noticed.recv().unwrap(), 1);
        let mut second = leave(&notifier, forget(1));
        for node in 2..200 {
            assert!(leave(&notifier, forget(node)).blocking_recv().unwrap());
        }
        let attributes = Notice::ForgetAttributes { node: 1 };
        assert!(leave(&notifier, attributes).blocking_recv().unwrap());
        assert!(noticed.try_iter().eq((2..200).chain([1])), "one of a node at a time");
        assert!(first.try_recv().is_err() && second.try_recv().is_err());
        go.send(()).unwrap();
        go.send(()).unwrap();
        assert!(first.blocking_recv().unwrap() && second.blocking_recv().unwrap());
    }

    #[test]
    fn more_nodes_than_threads_are_notified_one_after_the_other() {
        let notifier = Notifier::telling(|notice| {
            thread::yield_now();
            notice.node().is_multiple_of(2)
        });
        let notifier = notifier.unwrap();
        let mut answered = Vec::new();
        for at in 0..200 {
            answered.push(leave(&notifier, forget(at % 50)));
        }
        for (at, answered) in answered.into_iter().enumerate() {
            assert_eq!(answered.blocking_recv().unwrap(), at % 2 == 0);
        }
    }
}
