//! The system calls that rustix does not have: kernel file handles, early writeback, file system
//! ids, access checks of an open file, and a signal's handler.
//!
//! With `replies/file.rs` this is the only file of the crate with unsafe code. Each function passes
//! pointers into memory that it owns for the length of the call, and takes descriptors that are
//! borrowed for it.

#![allow(unsafe_code, reason = "these calls exist only as C functions or numbers")]

use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{Access, OFlags};
use rustix::io::Errno;

use super::beneath::Component;

/// Most bytes of a kernel handle that we ask for (MAX_HANDLE_SZ is 128; ours must fit a
/// [`crate::types::Handle`] together with a marker and a seal).
pub(super) const KERNEL_HANDLE_BYTES_MAX: u8 = 38;

const BYTES_MAX: usize = KERNEL_HANDLE_BYTES_MAX as usize;

/// A file's name in the kernel's own words: the file system's type tag and opaque bytes, among
/// them the inode's generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelHandle {
    pub(super) tag: i32,
    /// How many of `bytes` count.
    pub(super) len: u8,
    pub(super) bytes: [u8; BYTES_MAX],
}

/// `struct file_handle` with room behind it.
#[repr(C)]
struct Raw {
    len: u32,
    tag: c_int,
    bytes: [u8; BYTES_MAX],
}

/// Names the file open at `fd` (O_PATH will do) and gives the identity of its mount. Needs no
/// privilege. `OVERFLOW`: the file system's handles are longer than ours.
pub(super) fn name_to_handle(fd: BorrowedFd<'_>) -> Result<(KernelHandle, i32), Errno> {
    name_to_handle_with(fd, b"", 0)
}

/// The same of what is called `name` in the directory `dir`, be it a link; nothing is opened.
pub(super) fn name_to_handle_in(
    dir: BorrowedFd<'_>,
    name: Component<'_>,
) -> Result<(KernelHandle, i32), Errno> {
    name_to_handle_with(dir, name.as_bytes(), 0)
}

/// Names it for comparison only: every file system can from Linux 6.5 on.
pub(super) fn name_to_file_id(fd: BorrowedFd<'_>) -> Result<KernelHandle, Errno> {
    const AT_HANDLE_FID: c_int = 0x200;
    name_to_handle_with(fd, b"", AT_HANDLE_FID).map(|(handle, _)| handle)
}

/// `name` has no NUL and at most 255 bytes.
fn name_to_handle_with(
    fd: BorrowedFd<'_>,
    name: &[u8],
    flags: c_int,
) -> Result<(KernelHandle, i32), Errno> {
    let mut path = [0_u8; 256];
    path.get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name);
    // The last byte ends the longest name, too.
    path[255] = 0;
    let mut raw = Raw { len: u32::from(KERNEL_HANDLE_BYTES_MAX), tag: 0, bytes: [0; BYTES_MAX] };
    let mut mount: c_int = 0;
    // SAFETY: `raw` has the layout of file_handle followed by the `len` bytes it announces, and
    // lives, like `mount` and `path`, which ends in a NUL, until the call returns.
    let result = unsafe {
        libc::name_to_handle_at(
            fd.as_raw_fd(),
            path.as_ptr().cast(),
            (&raw mut raw).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH | flags,
        )
    };
    check(result)?;
    let handle = KernelHandle {
        tag: raw.tag,
        len: u8::try_from(raw.len).map_err(|_| Errno::OVERFLOW)?,
        bytes: raw.bytes,
    };
    Ok((handle, mount))
}

/// Opens a file by its kernel handle, on the mount that `mount` lies on. Needs
/// CAP_DAC_READ_SEARCH. `STALE`: no such file any more.
pub(super) fn open_by_handle(
    mount: BorrowedFd<'_>,
    handle: &KernelHandle,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let mut raw = Raw {
        len: u32::from(handle.len.min(KERNEL_HANDLE_BYTES_MAX)),
        tag: handle.tag,
        bytes: handle.bytes,
    };
    // SAFETY: `raw` has the layout of file_handle and at least the `len` bytes it announces; it
    // lives until the call returns. The kernel checks the bytes.
    let fd = unsafe {
        libc::open_by_handle_at(
            mount.as_raw_fd(),
            (&raw mut raw).cast(),
            flags.bits().cast_signed(),
        )
    };
    check(fd)?;
    // SAFETY: the call succeeded, so `fd` is open, and nothing else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The id of the file system on which `fd`, which is not O_PATH, is open (Linux 6.9).
pub(super) fn file_system_uuid(fd: BorrowedFd<'_>) -> Result<[u8; 16], Errno> {
    /// `struct fsuuid2`.
    #[repr(C)]
    struct Uuid {
        len: u8,
        bytes: [u8; 16],
    }
    /// `_IOR(0x15, 0, struct fsuuid2)`.
    const GET_FS_UUID: libc::c_ulong = 0x8011_1500;
    let mut uuid = Uuid { len: 0, bytes: [0; 16] };
    // SAFETY: `uuid` has the layout that this request fills in, and lives until the call returns.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), GET_FS_UUID as _, &raw mut uuid) })?;
    if uuid.len == 16 { Ok(uuid.bytes) } else { Err(Errno::OPNOTSUPP) }
}

/// Starts writing a range's dirty pages to the disk without waiting for them. May still block
/// when the device's queue is full, so it belongs on a thread of its own.
pub(super) fn start_writeback(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), Errno> {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return Err(Errno::INVAL);
    };
    // SAFETY: takes no pointers; `fd` is open for the length of the call.
    check(unsafe {
        libc::sync_file_range(fd.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
    })
}

/// Sets this thread's file system uid. The call itself does not say whether it worked, so the
/// kernel is called again; an id that is none changes nothing and answers.
pub(super) fn set_fs_uid(uid: u32) -> Result<(), Errno> {
    // SAFETY: takes no pointers, and concerns this thread's credentials alone.
    let now = unsafe {
        libc::syscall(libc::SYS_setfsuid, uid);
        libc::syscall(libc::SYS_setfsuid, u32::MAX)
    };
    is_id(now, uid)
}

/// Whether this thread's file system uid is not the one it would have by itself.
pub(super) fn is_somebody_else() -> bool {
    // SAFETY: as above.
    let now = unsafe { libc::syscall(libc::SYS_setfsuid, u32::MAX) };
    is_id(now, rustix::process::geteuid().as_raw()).is_err()
}

/// [`set_fs_uid`] for the file system gid.
pub(super) fn set_fs_gid(gid: u32) -> Result<(), Errno> {
    // SAFETY: as above.
    let now = unsafe {
        libc::syscall(libc::SYS_setfsgid, gid);
        libc::syscall(libc::SYS_setfsgid, u32::MAX)
    };
    is_id(now, gid)
}

/// Ids are of 32 bits, however wide the register in which they come back.
fn is_id(now: libc::c_long, wanted: u32) -> Result<(), Errno> {
    let now = now & 0xffff_ffff;
    if wanted != u32::MAX && now == i64::from(wanted) { Ok(()) } else { Err(Errno::PERM) }
}

/// Asks whether this thread's ids may; `fd` may be O_PATH (faccessat2, Linux 5.8).
pub(super) fn may_access(fd: BorrowedFd<'_>, access: Access) -> Result<(), Errno> {
    // SAFETY: the empty literal path lives until the call returns, `fd` is open that long.
    let result = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            fd.as_raw_fd(),
            c"".as_ptr(),
            access.bits(),
            libc::AT_EMPTY_PATH | libc::AT_EACCESS,
        )
    };
    check(if result == 0 { 0 } else { -1 })
}

/// Lets a write beyond RLIMIT_FSIZE fail with FBIG. The signal that comes with it would else end
/// the process, and so any client could. A handler that does nothing, since what is ignored would
/// be ignored by our children too; one that somebody has set stays.
pub(super) fn outlive_file_size_limit() {
    extern "C" fn nothing(_: c_int) {}
    let handler: extern "C" fn(c_int) = nothing;
    // SAFETY: `old` and `new` are plain data for which zeros are a valid value (SIG_DFL, no flags,
    // an empty mask) and live until the calls return; the handler does nothing, which is safe in a
    // signal.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == libc::SIG_DFL
        {
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = handler as libc::sighandler_t;
            new.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXFSZ, &raw const new, std::ptr::null_mut());
        }
    }
}

fn check(result: c_int) -> Result<(), Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}
