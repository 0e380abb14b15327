//! File handles on the wire: what the engine puts before a store's own handle.
//!
//! ```text
//!   | format: 1 | export: 4 | store's handle: 0..48 |
//! ```

use wire::nfs3::FileHandle;

use crate::types::{Handle, Status};

/// Changes when the layout does, so that older handles are refused instead of misread.
const FORMAT: u8 = 1;

const PREFIX_LEN: usize = 5;

/// Bytes of a file handle with `handle` in it.
pub(crate) fn wire_len(handle: &Handle) -> usize {
    PREFIX_LEN + handle.as_bytes().len()
}

pub(crate) fn wrap(export: u32, handle: &Handle) -> FileHandle {
    let mut bytes = [0; PREFIX_LEN + Handle::BYTES_MAX];
    let store = handle.as_bytes();
    let len = wire_len(handle);
    bytes[0] = FORMAT;
    bytes[1..PREFIX_LEN].copy_from_slice(&export.to_be_bytes());
    bytes[PREFIX_LEN..len].copy_from_slice(store);
    FileHandle::new(&bytes[..len]).expect("5 + 48 bytes are less than the 64 of a file handle")
}

/// The export's id and the store's handle in a file handle.
///
/// # Errors
/// `BadHandle` when the engine did not make it.
pub(crate) fn unwrap(handle: &FileHandle) -> Result<(u32, Handle), Status> {
    let (prefix, store) =
        handle.as_bytes().split_first_chunk::<PREFIX_LEN>().ok_or(Status::BadHandle)?;
    let [format, id @ ..] = *prefix;
    if format != FORMAT {
        return Err(Status::BadHandle);
    }
    Ok((u32::from_be_bytes(id), Handle::new(store).ok_or(Status::BadHandle)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_as_they_were() {
        for len in [0, 16, Handle::BYTES_MAX] {
            let handle = Handle::new(&[7; Handle::BYTES_MAX][..len]).unwrap();
            let wrapped = wrap(0x0102_0304, &handle);
            assert_eq!(wrapped.as_bytes()[..5], [1, 1, 2, 3, 4]);
            assert_eq!(wrapped.as_bytes().len(), wire_len(&handle));
            assert_eq!(unwrap(&wrapped), Ok((0x0102_0304, handle)));
        }
    }

    #[test]
    fn foreign_handles_are_bad() {
        let refused = |bytes: &[u8]| unwrap(&FileHandle::new(bytes).unwrap());
        assert_eq!(refused(&[]), Err(Status::BadHandle));
        assert_eq!(refused(&[1, 0, 0, 0]), Err(Status::BadHandle));
        assert_eq!(refused(&[2, 0, 0, 0, 1, 9]), Err(Status::BadHandle));
        let mut long = [0; 64];
        long[..5].copy_from_slice(&[1, 0, 0, 0, 1]);
        assert_eq!(refused(&long), Err(Status::BadHandle));
    }
}
