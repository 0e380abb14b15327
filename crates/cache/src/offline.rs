//! What commands do in a cache that no process has.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::key::{FileHash, Name};
use crate::limits::Filled;
use crate::medium::Medium;
use crate::orders::{self, Order};
use crate::pins;
use crate::place::{OpenError, Place};

/// Carries orders out; gives what was removed. What goes first of what is cleaned was changed
/// longest ago: which was used how often only the process knew that had it.
///
/// # Errors
/// [`OpenError::Busy`] if a process has it, which may be another command: an order is left to that.
pub fn carry_out(dir: &Path, folder: &str, orders: &[Order]) -> Result<Filled, OpenError> {
    let place = Place::open_existing(dir, folder)?;
    let at = place.path().to_owned();
    let failed = |error: io::Error| OpenError::System { path: at.clone(), error };
    orders::sweep(place.dir());
    let segments = place.folder()?;
    let mut found: Vec<(Name, u64)> = Vec::new();
    segments.list(&mut |listed| found.extend_from_slice(listed)).map_err(&failed)?;
    let all_bytes: u64 = found.iter().map(|(_, bytes)| bytes).sum();
    let mut left = Filled { bytes: all_bytes, files: found.len() as u64 };
    let pins = pins::read(place.dir()).map_err(|errno| failed(errno.into()))?.files;
    let wanted = Wanted::of(orders);
    let mut removed = Filled::default();
    for (name, bytes) in found {
        let is_over = left.bytes > wanted.bytes_max && !pins.contains_key(&name.file);
        if is_over || wanted.is_forgotten(name.file) {
            segments.remove(name).map_err(&failed)?;
            removed = Filled { bytes: removed.bytes + bytes, files: removed.files + 1 };
            left = Filled { bytes: left.bytes - bytes, files: left.files - 1 };
        }
    }
    segments.note(left);
    Ok(removed)
}

/// What some orders come to.
struct Wanted {
    forgets_all: bool,
    forgotten: BTreeSet<FileHash>,
    bytes_max: u64,
}

impl Wanted {
    fn of(orders: &[Order]) -> Self {
        let mut all = Self { forgets_all: false, forgotten: BTreeSet::new(), bytes_max: u64::MAX };
        for order in orders {
            match *order {
                Order::Forget(None) => all.forgets_all = true,
                Order::Forget(Some(file)) => drop(all.forgotten.insert(file)),
                Order::Clean(most) => all.bytes_max = all.bytes_max.min(most),
            }
        }
        all
    }

    fn is_forgotten(&self, file: FileHash) -> bool {
        self.forgets_all || self.forgotten.contains(&file)
    }
}
