//! What commands want of the process that has a cache: files in its folder, which the keeper looks
//! for each second. A command need not wait for a lock, and no socket has to be guarded.
//!
//! `orders/NAME` is a line that is carried out once: `forget`, `forget FILE`, `clean BYTES`. It is
//! `orders/NAME.taken` while it is carried out, and removed afterwards.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use crate::key::FileHash;
use crate::texts::{TEXT_BYTES_MAX, names, open_dir, read_text, write_text};

const ORDERS: &str = "orders";
const TAKEN: &str = ".taken";

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

/// Leaves an order for whoever has the folder; [`is_done`] tells when it was carried out.
///
/// # Errors
/// As the file system says.
pub fn leave(dir: BorrowedFd<'_>, name: &str, order: Order) -> Result<(), Errno> {
    match rustix::fs::mkdirat(dir, ORDERS, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let orders = open_dir(dir, ORDERS)?;
    write_text(orders.as_fd(), name, &order.text())
}

/// Whether the order of this name was carried out, or was lost with the process that took it.
pub fn is_done(dir: BorrowedFd<'_>, name: &str) -> bool {
    let is_there = |path: String| rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    // In the order in which a name changes.
    !is_there(format!("{ORDERS}/{name}")) && !is_there(format!("{ORDERS}/{name}{TAKEN}"))
}

/// Takes what was ordered; [`finish`] follows when it was carried out. Renamed first: an order that
/// kills us is not carried out again.
pub(crate) fn take(dir: BorrowedFd<'_>) -> Vec<Order> {
    let Ok(orders) = open_dir(dir, ORDERS) else { return Vec::new() };
    let found = names(orders.as_fd()).unwrap_or_default();
    // What another process has taken and not finished is gone.
    remove_taken(&orders, &found);
    let is_order = |name: &&String| !name.ends_with(".new") && !name.ends_with(TAKEN);
    let mut taken = Vec::new();
    for name in found.iter().filter(is_order).take(ORDERS_MAX) {
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
    remove_taken(&orders, &names(orders.as_fd()).unwrap_or_default());
}

fn remove_taken(orders: &OwnedFd, names: &[String]) {
    for name in names.iter().filter(|name| name.ends_with(TAKEN)) {
        rustix::fs::unlinkat(orders, name, AtFlags::empty()).ok();
    }
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
}
