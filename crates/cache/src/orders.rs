//! What commands want of the process that has a cache: files in its folder, which the keeper looks
//! for each second. No socket has to be guarded.
//!
//! `orders/COMMAND-N` is a line that is carried out once: `forget`, `forget FILE`, `clean BYTES`.
//! It is `orders/COMMAND-N.taken` while it is carried out, and removed afterwards.
//! `orders/COMMAND.lock` is locked for as long as the command waits: what nobody waits for is not
//! carried out.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::key::FileHash;
use crate::texts::{FOR_OWNER, TEXT_BYTES_MAX, names, open_dir, read_text, unfinished, write_text};

const ORDERS: &str = "orders";
const TAKEN: &str = ".taken";
const LOCK: &str = ".lock";

/// Orders that are taken at once.
const ORDERS_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    Forget(Option<FileHash>),
    /// Down to so many bytes.
    Clean(u64),
}

impl Order {
    fn text(self) -> String {
        match self {
            Self::Forget(None) => "forget\n".to_owned(),
            Self::Forget(Some(file)) => format!("forget {file}\n"),
            Self::Clean(bytes) => format!("clean {bytes}\n"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let order = match (words.next()?, words.next()) {
            ("forget", None) => Self::Forget(None),
            ("forget", Some(file)) => Self::Forget(Some(FileHash::parse(file)?)),
            ("clean", Some(bytes)) => Self::Clean(bytes.parse().ok()?),
            _ => return None,
        };
        words.next().is_none().then_some(order)
    }
}

/// A command with orders in a folder. They are withdrawn when it is dropped. When its process dies
/// its lock goes, and those that are not begun are removed.
#[derive(Debug)]
pub struct Command {
    orders: OwnedFd,
    name: String,
    lock: OwnedFd,
    /// Orders that were left, and those of them that are not known to be carried out.
    count: usize,
    left: Vec<String>,
}

impl Command {
    /// # Errors
    /// As the file system says.
    pub fn begin(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        match rustix::fs::mkdirat(dir, ORDERS, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let orders = open_dir(dir, ORDERS)?;
        let name = format!("{}-{:016x}", std::process::id(), RandomState::new().hash_one(()));
        let lock = locked(&orders, &format!("{name}{LOCK}"))?;
        Ok(Self { orders, name, lock, count: 0, left: Vec::new() })
    }

    /// Leaves an order for whoever has the folder.
    ///
    /// # Errors
    /// As the file system says.
    pub fn leave(&mut self, order: Order) -> Result<(), Errno> {
        let name = format!("{}-{}", self.name, self.count);
        write_text(self.orders.as_fd(), &name, &order.text())?;
        self.count += 1;
        self.left.push(name);
        Ok(())
    }

    /// How many orders are not carried out yet, and were not lost with the process that took them.
    pub fn look(&mut self) -> usize {
        let orders = &self.orders;
        // In the order in which a name changes.
        self.left
            .retain(|name| is_there(orders, name) || is_there(orders, &format!("{name}{TAKEN}")));
        self.left.len()
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        for name in &self.left {
            remove(&self.orders, name);
            remove(&self.orders, &format!("{name}{TAKEN}"));
        }
        remove(&self.orders, &format!("{}{LOCK}", self.name));
        // A process that is just being started may have it for a moment.
        rustix::fs::flock(&self.lock, FlockOperation::Unlock).ok();
    }
}

/// Makes a file that has its name only when it is locked.
fn locked(orders: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let new = unfinished(name);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(orders, &new, flags, FOR_OWNER)?;
    let named = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .and_then(|()| rustix::fs::renameat(orders, &new, orders, name));
    named.inspect_err(|_| remove(orders, &new))?;
    Ok(lock)
}

/// Takes what was ordered; [`finish`] follows when it was carried out. Renamed first: an order that
/// kills us is not carried out again.
pub(crate) fn take(dir: BorrowedFd<'_>) -> Vec<Order> {
    // What another process has taken and not finished is gone.
    finish(dir);
    let Ok(orders) = open_dir(dir, ORDERS) else { return Vec::new() };
    let mut taken = Vec::new();
    for name in swept(&orders).iter().filter(|name| !name.ends_with(TAKEN)).take(ORDERS_MAX) {
        let text = read_text(orders.as_fd(), name, TEXT_BYTES_MAX).ok().flatten();
        if rustix::fs::renameat(&orders, name, &orders, format!("{name}{TAKEN}")).is_ok() {
            taken.extend(text.as_deref().and_then(Order::parse));
        }
    }
    taken
}

/// Removes what was taken: it was carried out.
pub(crate) fn finish(dir: BorrowedFd<'_>) {
    let Ok(orders) = open_dir(dir, ORDERS) else { return };
    let names = names(orders.as_fd()).unwrap_or_default();
    names.iter().filter(|name| name.ends_with(TAKEN)).for_each(|name| remove(&orders, name));
}

/// Removes what commands have left that are gone.
pub(crate) fn sweep(dir: BorrowedFd<'_>) {
    open_dir(dir, ORDERS).map(|orders| drop(swept(&orders))).ok();
}

/// The same; gives the orders that somebody waits for.
fn swept(orders: &OwnedFd) -> Vec<String> {
    let names = names(orders.as_fd()).unwrap_or_default();
    let (locks, left): (Vec<_>, Vec<_>) = names
        .into_iter()
        // One that is just being made is not locked yet.
        .filter(|name| !name.ends_with(&unfinished(LOCK)))
        .partition(|name| name.ends_with(LOCK));
    let (live, dead): (Vec<_>, Vec<_>) =
        locks.into_iter().partition(|lock| is_locked(orders, lock));
    let live: BTreeSet<_> = live.iter().filter_map(|lock| lock.strip_suffix(LOCK)).collect();
    let is_waited_for =
        |order: &String| order.rsplit_once('-').is_some_and(|(command, _)| live.contains(command));
    let (waited_for, gone): (Vec<_>, Vec<_>) = left.into_iter().partition(is_waited_for);
    // A listing is no snapshot: it may have an order, and not the lock that was made before it.
    let is_dead = |order: &&String| {
        let command = order.rsplit_once('-').map(|(command, _)| format!("{command}{LOCK}"));
        command.is_none_or(|lock| !is_locked(orders, &lock))
    };
    gone.iter().filter(is_dead).chain(&dead).for_each(|name| remove(orders, name));
    waited_for.into_iter().filter(|name| !name.ends_with(&unfinished(""))).collect()
}

fn is_locked(orders: &OwnedFd, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let lock = rustix::fs::openat(orders, name, flags, Mode::empty());
    lock.is_ok_and(|lock| {
        rustix::fs::flock(lock, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    })
}

fn is_there(orders: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(orders, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn remove(orders: &OwnedFd, name: &str) {
    rustix::fs::unlinkat(orders, name, AtFlags::empty()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let file = FileHash::from_bytes([9; 16]);
        for order in [Order::Forget(None), Order::Forget(Some(file)), Order::Clean(u64::MAX)] {
            assert_eq!(Order::parse(&order.text()), Some(order));
        }
        for wrong in ["", "forget x", "clean", "clean -1", "clean 1 2", "drop"] {
            assert_eq!(Order::parse(wrong), None, "{wrong}");
        }
    }
    /// A command that has left an order, in a folder of its own.
    fn with_order() -> (tempfile::TempDir, OwnedFd, Command) {
        let base = tempfile::tempdir().unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = rustix::fs::open(base.path(), flags, Mode::empty()).unwrap();
        let mut command = Command::begin(dir.as_fd()).unwrap();
        command.leave(Order::Clean(7)).unwrap();
        (base, dir, command)
    }

    fn left(base: &tempfile::TempDir) -> usize {
        std::fs::read_dir(base.path().join(ORDERS)).unwrap().count()
    }

    #[test]
    fn an_order_is_carried_out_while_its_command_waits_and_withdrawn_with_it() {
        let (base, dir, mut command) = with_order();
        sweep(dir.as_fd());
        assert_eq!(command.look(), 1);
        assert_eq!(take(dir.as_fd()), [Order::Clean(7)]);
        assert_eq!((command.look(), take(dir.as_fd()).len()), (1, 0), "it is taken");
        finish(dir.as_fd());
        assert_eq!(command.look(), 0);
        command.leave(Order::Forget(None)).unwrap();
        drop(command);
        assert_eq!((left(&base), take(dir.as_fd()).len()), (0, 0));
    }

    #[test]
    fn what_a_command_has_left_that_was_killed_is_not_carried_out() {
        for is_taken in [true, false] {
            let (base, dir, mut command) = with_order();
            // As the end of its process does.
            rustix::fs::flock(&command.lock, FlockOperation::Unlock).unwrap();
            match is_taken {
                true => assert_eq!(take(dir.as_fd()), []),
                false => sweep(dir.as_fd()),
            }
            assert_eq!((left(&base), command.look()), (0, 0));
        }
    }
}
