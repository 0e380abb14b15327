//! Telling the kernel what it should forget or know. The kernel may wait for us before it is done
//! (it writes back what it drops), so that a thread of its own does it, never the one that reads
//! requests.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use bytes::Bytes;
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
    /// These data follow what the kernel knows of a file.
    Store { node: u64, offset: u64, data: Bytes },
}

impl Notifier {
    pub(crate) fn start(device: &Arc<Device>) -> io::Result<Self> {
        let (notifier, notices) = Self::to();
        let device = Arc::clone(device);
        thread::Builder::new().name("nfskit-notify".to_owned()).spawn(move || {
            for (notice, done) in notices {
                // Nobody may be waiting any more.
                done.send(notify(&device, &notice)).ok();
            }
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
        let (done, told) = oneshot::channel();
        match self.0.send((notice, done)) {
            Ok(()) => told.await.unwrap_or(false),
            Err(_) => false,
        }
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
        Notice::Store { node, offset, data } => {
            let count = u32::try_from(data.len()).unwrap_or(0);
            let body = answer::store(*node, *offset, count);
            device.notify(Notify::Store, &body, &data[..count as usize])
        }
    }
}
