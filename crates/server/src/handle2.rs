//! File handles of NFS version 2, which have 32 bytes whatever is in them.
//!
//! ```text
//!   | format: 2 | length: 1 | export: 4 | store's handle: 0..26 | zeros |
//! ```
//!
//! A store's handle of more than 26 bytes does not fit: such a file has no handle in version 2.
//! Kernel handles have 18 bytes on ext4, those of the memory store 16.

use wire::nfs2::{FHandle, HANDLE_LEN};

use crate::types::{Handle, Status};

/// Another than that of version 3, so that neither is ever taken for the other.
const FORMAT: u8 = 2;

const PREFIX_LEN: usize = 6;

/// Most bytes of a store's handle.
const STORE_LEN_MAX: usize = HANDLE_LEN - PREFIX_LEN;

/// The file handle; none when the store's is too long.
pub(crate) fn wrap2(export: u32, handle: &Handle) -> Option<FHandle> {
    let store = handle.as_bytes();
    let len = u8::try_from(store.len()).ok().filter(|&len| usize::from(len) <= STORE_LEN_MAX)?;
    let mut bytes = [0; HANDLE_LEN];
    bytes[0] = FORMAT;
    bytes[1] = len;
    bytes[2..PREFIX_LEN].copy_from_slice(&export.to_be_bytes());
    bytes[PREFIX_LEN..PREFIX_LEN + store.len()].copy_from_slice(store);
    Some(FHandle(bytes))
}

/// The export's id and the store's handle in a file handle.
///
/// # Errors
/// `BadHandle` when the engine did not make it.
pub(crate) fn unwrap2(handle: &FHandle) -> Result<(u32, Handle), Status> {
    let [FORMAT, len, e0, e1, e2, e3, store @ ..] = handle.as_bytes() else {
        return Err(Status::BadHandle);
    };
    let (store, filling) = store.split_at_checked(usize::from(*len)).ok_or(Status::BadHandle)?;
    if filling.iter().any(|&byte| byte != 0) {
        return Err(Status::BadHandle);
    }
    let export = u32::from_be_bytes([*e0, *e1, *e2, *e3]);
    Ok((export, Handle::new(store).ok_or(Status::BadHandle)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_as_they_were() {
        for len in [0, 16, STORE_LEN_MAX] {
            let handle = Handle::new(&[7; STORE_LEN_MAX][..len]).unwrap();
            let wrapped = wrap2(0x0102_0304, &handle).unwrap();
            assert_eq!(wrapped.as_bytes()[2..6], [1, 2, 3, 4]);
            assert_eq!(unwrap2(&wrapped), Ok((0x0102_0304, handle)));
        }
    }

    #[test]
    fn a_handle_that_does_not_fit_is_none() {
        let handle = Handle::new(&[7; STORE_LEN_MAX + 1]).unwrap();
        assert_eq!(wrap2(1, &handle), None);
    }

    #[test]
    fn handles_that_were_never_made_are_bad() {
        let bad = |change: fn(&mut [u8; HANDLE_LEN])| {
            let mut bytes = wrap2(1, &Handle::new(&[7; 4]).unwrap()).unwrap().0;
            change(&mut bytes);
            assert_eq!(unwrap2(&FHandle(bytes)), Err(Status::BadHandle));
        };
        bad(|bytes| bytes[0] = 1);
        bad(|bytes| bytes[1] = 3); // another byte than zero behind it
        bad(|bytes| bytes[1] = 27);
        bad(|bytes| bytes[1] = 255);
        bad(|bytes| bytes[31] = 1);
        assert_eq!(unwrap2(&FHandle([0; HANDLE_LEN])), Err(Status::BadHandle));
    }
}
