//! What is exported, and the file handles that name it.
//!
//! ```text
//! byte 0     format, 1
//! byte 1-4   the export's id
//! byte 5-    the store's own handle, at most 48 bytes
//! ```

use wire::nfs3::{FileHandle, NfsStat3};

use crate::types::{Caller, Handle};

/// A tree under a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Export {
    /// The path that MOUNT knows it by; begins with a slash and has none at its end.
    pub path: String,
    /// Tells handles of different exports apart; must not change between restarts.
    pub id: u32,
    /// Every change is refused.
    pub read_only: bool,
    pub squash: Squash,
}

/// On whose behalf calls are executed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Squash {
    /// Everyone is this user.
    All(Caller),
    /// AUTH_SYS callers are who they say they are; the others are this user.
    None(Caller),
}

const FORMAT: u8 = 1;
const PREFIX_BYTES: usize = 5;

impl Export {
    /// The handle that clients are given; `None` if the store's own does not fit, which its type
    /// rules out.
    pub(crate) fn wrap(&self, handle: &Handle) -> Option<FileHandle> {
        let own = handle.as_bytes();
        let mut bytes = [0; PREFIX_BYTES + Handle::BYTES_MAX];
        bytes[0] = FORMAT;
        bytes[1..PREFIX_BYTES].copy_from_slice(&self.id.to_be_bytes());
        bytes[PREFIX_BYTES..PREFIX_BYTES + own.len()].copy_from_slice(own);
        FileHandle::new(&bytes[..PREFIX_BYTES + own.len()])
    }

    /// The store's handle in one that a client sent. What we never made is NFS3ERR_BADHANDLE;
    /// what belongs to an export that is no longer here is NFS3ERR_STALE.
    pub(crate) fn unwrap(&self, handle: &FileHandle) -> Result<Handle, NfsStat3> {
        let Some((&[format, id @ ..], own)) =
            handle.as_bytes().split_first_chunk::<PREFIX_BYTES>()
        else {
            return Err(NfsStat3::BadHandle);
        };
        match (format == FORMAT, u32::from_be_bytes(id) == self.id) {
            (true, true) => Handle::new(own).ok_or(NfsStat3::BadHandle),
            (true, false) => Err(NfsStat3::Stale),
            (false, _) => Err(NfsStat3::BadHandle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(id: u32) -> Export {
        let nobody = Caller { uid: 65534, gid: 65534, gids: Vec::new() };
        Export { path: "/".to_owned(), id, read_only: false, squash: Squash::All(nobody) }
    }

    #[test]
    fn a_handle_comes_back_as_it_was_given_and_only_to_its_export() {
        let own = Handle::new(&[7; Handle::BYTES_MAX]).unwrap();
        let handle = export(1).wrap(&own).unwrap();
        assert_eq!(export(1).unwrap(&handle), Ok(own));
        assert_eq!(export(2).unwrap(&handle), Err(NfsStat3::Stale));
    }

    #[test]
    fn what_we_never_made_is_a_bad_handle() {
        let too_long = [&[1, 0, 0, 0, 1][..], &[0; 59]].concat();
        for bytes in [&b""[..], b"\x01", b"\x01\0\0\0", b"\x02\0\0\0\x01xxxx", &too_long] {
            let crafted = FileHandle::new(bytes).unwrap();
            assert_eq!(export(1).unwrap(&crafted), Err(NfsStat3::BadHandle), "{bytes:?}");
        }
    }
}
