//! What commands do in a cache that no process has.

use std::io;
use std::path::Path;

use crate::key::Name;
use crate::limits::Filled;
use crate::medium::Medium;
use crate::orders::Order;
use crate::pins;
use crate::place::{OpenError, Place};

/// Carries an order out; gives what was removed. What goes first of what is cleaned was changed
/// longest ago: which was used how often only the process knew that had it.
///
/// # Errors
/// [`OpenError::Busy`] if a process has it: an order is left to that.
pub fn carry_out(dir: &Path, folder: &str, order: Order) -> Result<Filled, OpenError> {
    let place = Place::open_existing(dir, folder)?;
    let at = place.path().to_owned();
    let failed = |error: io::Error| OpenError::System { path: at.clone(), error };
    let segments = place.folder()?;
    let mut found: Vec<(Name, u64)> = Vec::new();
    segments.list(&mut |listed| found.extend_from_slice(listed)).map_err(&failed)?;
    let all_bytes: u64 = found.iter().map(|(_, bytes)| bytes).sum();
    let mut left = Filled { bytes: all_bytes, files: found.len() as u64 };
    let pins = pins::read(place.dir()).map_err(|errno| failed(errno.into()))?.files;
    let mut removed = Filled::default();
    for (name, bytes) in found {
        let goes = match order {
            Order::Forget(file) => file.is_none_or(|file| file == name.file),
            Order::Clean(most) => left.bytes > most && !pins.contains_key(&name.file),
        };
        if goes {
            segments.remove(name).map_err(&failed)?;
            removed = Filled { bytes: removed.bytes + bytes, files: removed.files + 1 };
            left = Filled { bytes: left.bytes - bytes, files: left.files - 1 };
        }
    }
    segments.note(left);
    Ok(removed)
}
