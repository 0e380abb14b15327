//! What a log calls files, and the files that it means.

use std::os::fd::{AsFd, OwnedFd};

use log::Key;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::store::dir::objects::Object;
use crate::store::dir::{handles, sys};

/// What the log calls a file: its kernel handle, without the seal, which is only for clients.
pub(super) fn key(object: &Object) -> Option<Key> {
    key_of(object.handle.as_bytes())
}

/// Of a handle as clients have it; none of one that is not the kernel's.
pub(super) fn key_of(handle: &[u8]) -> Option<Key> {
    handles::unsealed(handle).and_then(Key::new)
}

/// For looking at it only.
pub(super) fn find(root: &OwnedFd, key: &Key) -> Result<OwnedFd, Errno> {
    let handle = handles::kernel_handle(key.as_bytes()).ok_or(Errno::INVAL)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::open_by_handle(root.as_fd(), &handle, flags)
}
