//! File handles of NFS version 2, which have 32 bytes whatever is in them.
//!
//! ```text
//!   | format: 2 | length: 1 | export: 4 | store's handle: 0..26 | zeros |
//!   | format: 3 | length: 1 | export: 4 | a bit for each byte not 0 | those bytes | zeros |
//! ```
//!
//! Kernel handles have 18 bytes on ext4, those of the memory store 16. Longer ones are written
//! without their zeros, so that the 33 bytes of a table's handle fit unless more than 21 of them
//! are something else: device, inode and birth are small numbers in large fields. What does not fit
//! all the same goes by a shorter name, if the store has one (the store of another server does), or
//! has no handle in version 2.

use wire::nfs2::{FHandle, HANDLE_LEN};

use crate::store::Store;
use crate::types::{Handle, Status};

/// Others than that of version 3, so that neither is ever taken for the other.
const FORMAT_PLAIN: u8 = 2;
const FORMAT_PACKED: u8 = 3;

const PREFIX_LEN: usize = 6;

/// Bytes behind the prefix.
const BODY_LEN: usize = HANDLE_LEN - PREFIX_LEN;

/// The file handle, made of the store's own or of a shorter one that it has for the file; none when
/// either is too long.
pub(crate) fn name2<S: Store>(store: &S, export: u32, handle: &Handle) -> Option<FHandle> {
    wrap2(export, handle).or_else(|| wrap2(export, &store.brief(handle)?))
}

/// The file handle; none when the store's is too long.
pub(crate) fn wrap2(export: u32, handle: &Handle) -> Option<FHandle> {
    let store = handle.as_bytes();
    let mut bytes = [0; HANDLE_LEN];
    bytes[1] = u8::try_from(store.len()).ok()?;
    bytes[2..PREFIX_LEN].copy_from_slice(&export.to_be_bytes());
    let body = &mut bytes[PREFIX_LEN..];
    let format = match body.get_mut(..store.len()) {
        Some(body) => {
            body.copy_from_slice(store);
            FORMAT_PLAIN
        }
        None => {
            let (marks, rest) = body.split_at_mut(store.len().div_ceil(8));
            let mut places = rest.iter_mut();
            for (at, &byte) in store.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                marks[at / 8] |= 1 << (at % 8);
                *places.next()? = byte;
            }
            FORMAT_PACKED
        }
    };
    bytes[0] = format;
    Some(FHandle(bytes))
}

/// The export's id and the store's handle in a file handle.
///
/// # Errors
/// `BadHandle` when the engine did not make it.
pub(crate) fn unwrap2(file_handle: &FHandle) -> Result<(u32, Handle), Status> {
    let [format, len, e0, e1, e2, e3, body @ ..] = file_handle.as_bytes();
    let export = u32::from_be_bytes([*e0, *e1, *e2, *e3]);
    let len = usize::from(*len);
    let handle = match *format {
        FORMAT_PLAIN => body.get(..len).and_then(Handle::new),
        FORMAT_PACKED => unpack(len, body),
        _ => None,
    };
    // There is one way to write a handle, and no room for anything else.
    let made = |handle: &Handle| wrap2(export, handle) == Some(*file_handle);
    let handle = handle.filter(made).ok_or(Status::BadHandle)?;
    Ok((export, handle))
}

fn unpack(len: usize, body: &[u8; BODY_LEN]) -> Option<Handle> {
    let (marks, rest) = body.split_at_checked(len.div_ceil(8))?;
    let mut store = [0; Handle::BYTES_MAX];
    let store = store.get_mut(..len)?;
    let mut bytes = rest.iter();
    for (at, place) in store.iter_mut().enumerate() {
        if marks[at / 8] & (1 << (at % 8)) != 0 {
            *place = *bytes.next()?;
        }
    }
    Handle::new(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handle of this length of which so many bytes are not zero.
    fn handle(len: usize, filled: usize) -> Handle {
        let mut bytes = [0; Handle::BYTES_MAX];
        (0..filled).for_each(|at| bytes[7 * at % len] = 7); // no length has a divisor of 7
        Handle::new(&bytes[..len]).unwrap()
    }

    #[test]
    fn handles_come_back_as_they_were() {
        for (len, filled) in [(0, 0), (16, 16), (26, 26), (33, 0), (33, 1), (33, 17), (48, 16)] {
            let handle = handle(len, filled);
            let wrapped = wrap2(0x0102_0304, &handle).unwrap();
            assert_eq!(wrapped.as_bytes()[2..6], [1, 2, 3, 4]);
            assert_eq!(wrapped.as_bytes()[0] == FORMAT_PLAIN, len <= 26);
            assert_eq!(unwrap2(&wrapped), Ok((0x0102_0304, handle)));
        }
    }

    #[test]
    fn a_handle_that_does_not_fit_is_none() {
        let mut bytes = [0; 33];
        bytes[..21].fill(7);
        let fits = Handle::new(&bytes).unwrap();
        assert_eq!(unwrap2(&wrap2(1, &fits).unwrap()), Ok((1, fits)));
        bytes[32] = 7;
        assert_eq!(wrap2(1, &Handle::new(&bytes).unwrap()), None);
        assert_eq!(wrap2(1, &Handle::new(&[7; 48]).unwrap()), None);
    }

    #[test]
    fn handles_that_were_never_made_are_bad() {
        let bad = |of: Handle, change: fn(&mut [u8; HANDLE_LEN])| {
            let mut bytes = wrap2(1, &of).unwrap().0;
            change(&mut bytes);
            assert_eq!(unwrap2(&FHandle(bytes)), Err(Status::BadHandle));
        };
        let short = Handle::new(&[7; 4]).unwrap();
        bad(short, |bytes| bytes[0] = 1);
        bad(short, |bytes| bytes[0] = FORMAT_PACKED);
        bad(short, |bytes| bytes[1] = 3); // another byte than zero behind it
        bad(short, |bytes| bytes[1] = 27);
        bad(short, |bytes| bytes[1] = 255);
        bad(short, |bytes| bytes[31] = 1);
        let long = handle(33, 10);
        bad(long, |bytes| bytes[0] = FORMAT_PLAIN);
        bad(long, |bytes| bytes[1] = 49);
        bad(long, |bytes| bytes[1] = 255);
        bad(long, |bytes| bytes[10] = 0x80); // a mark behind the end
        bad(long, |bytes| bytes[11] = 0); // a zero that claims to be none
        bad(long, |bytes| bytes[31] = 1);
        assert_eq!(unwrap2(&FHandle([0; HANDLE_LEN])), Err(Status::BadHandle));
    }
}
