//! What of a call's arguments and a reply's results is of use: handles, names, places and sizes.
//!
//! Read with the walk of [`wire::xdr::Reader`], so far as the bytes reach: what was cut off is not
//! known, and no error.

use wire::nfs3;
use wire::xdr::Reader;

use super::operation::{Kind, Operation, Program};

/// Longest name that is kept.
const NAME_LEN_MAX: usize = 255;

/// Of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Asked<'a> {
    /// The file, or the directory in which `name` is.
    pub(super) handle: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) offset: u64,
    /// Bytes to read, or in the call to be written.
    pub(super) count: u32,
    /// `stable_how` of a WRITE.
    pub(super) stable: u8,
}

/// Of a reply.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Answered<'a> {
    /// `nfsstat3` and its kin; none in programs without one, or cut off.
    pub(super) status: Option<u32>,
    /// Of the file that the call named or made.
    pub(super) handle: &'a [u8],
    /// Bytes read or written, if it says.
    pub(super) count: Option<u32>,
    /// `stable_how` that the server reached.
    pub(super) committed: Option<u8>,
}

/// Reads the arguments of anything but a COMPOUND.
pub(super) fn asked<'a>(operation: Operation, args: &'a [u8]) -> Asked<'a> {
    let mut asked = Asked::default();
    let mut r = Reader::new(args);
    let read = match operation.program {
        Program::Nfs3 if operation.code > 0 => asked_v3(operation, &mut r, &mut asked),
        Program::Nfs2 if !matches!(operation.code, 0 | 3 | 7) => {
            asked_v2(operation, &mut r, &mut asked)
        }
        Program::NfsAcl if operation.code > 0 => handle(&mut r).map(|found| asked.handle = found),
        _ => None,
    };
    // What was read before the bytes ended is kept.
    let _ = read;
    asked
}

fn asked_v3<'a>(operation: Operation, r: &mut Reader<'a>, asked: &mut Asked<'a>) -> Option<()> {
    asked.handle = handle(r)?;
    match operation.code {
        // LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME
        3 | 8..=14 => asked.name = r.opaque(NAME_LEN_MAX).ok()?,
        // READ, COMMIT
        6 | 21 => {
            asked.offset = r.u64().ok()?;
            asked.count = r.u32().ok()?;
        }
        7 => {
            asked.offset = r.u64().ok()?;
            asked.count = r.u32().ok()?;
            asked.stable = r.u32().ok()?.try_into().unwrap_or(2);
        }
        _ => {}
    }
    Some(())
}

fn asked_v2<'a>(operation: Operation, r: &mut Reader<'a>, asked: &mut Asked<'a>) -> Option<()> {
    asked.handle = r.take(32).ok()?;
    match operation.code {
        // LOOKUP, CREATE, REMOVE, RENAME, SYMLINK, MKDIR, RMDIR
        4 | 9..=11 | 13..=15 => asked.name = r.opaque(NAME_LEN_MAX).ok()?,
        6 => {
            asked.offset = u64::from(r.u32().ok()?);
            asked.count = r.u32().ok()?;
        }
        8 => {
            r.u32().ok()?; // beginoffset
            asked.offset = u64::from(r.u32().ok()?);
            r.u32().ok()?; // totalcount
            asked.count = r.u32().ok()?;
            asked.stable = 2; // RFC 1094 section 2.2.9: stable before the reply
        }
        _ => {}
    }
    Some(())
}

/// Reads the results of anything but a COMPOUND.
pub(super) fn answered<'a>(operation: Operation, results: &'a [u8]) -> Answered<'a> {
    let mut answered = Answered::default();
    let mut r = Reader::new(results);
    let has_status = match operation.program {
        Program::Nfs3 | Program::NfsAcl => operation.code > 0,
        Program::Nfs2 => !matches!(operation.code, 0 | 3 | 7),
        Program::Mount => operation.code == 1,
        _ => false,
    };
    if !has_status {
        return answered;
    }
    let Ok(status) = r.u32() else { return answered };
    answered.status = Some(status);
    if status == 0 {
        let read = match operation.program {
            Program::Nfs3 => answered_v3(operation, &mut r, &mut answered),
            Program::Nfs2 => answered_v2(operation, &mut r, &mut answered),
            _ => None,
        };
        let _ = read;
    }
    answered
}

fn answered_v3<'a>(
    operation: Operation,
    r: &mut Reader<'a>,
    answered: &mut Answered<'a>,
) -> Option<()> {
    match operation.code {
        3 => answered.handle = handle(r)?,
        6 => {
            post_op_attr(r)?;
            answered.count = Some(r.u32().ok()?);
        }
        7 => {
            wcc_data(r)?;
            answered.count = Some(r.u32().ok()?);
            answered.committed = r.u32().ok()?.try_into().ok();
        }
        // CREATE, MKDIR, SYMLINK, MKNOD: post_op_fh3
        8..=11 if r.u32().ok()? == 1 => answered.handle = handle(r)?,
        _ => {}
    }
    Some(())
}

fn answered_v2<'a>(
    operation: Operation,
    r: &mut Reader<'a>,
    answered: &mut Answered<'a>,
) -> Option<()> {
    match operation.code {
        4 | 9 | 14 => answered.handle = r.take(32).ok()?,
        6 => {
            r.take(68).ok()?; // fattr
            answered.count = Some(r.u32().ok()?);
        }
        _ => {}
    }
    Some(())
}

/// Calls `each` with the name and handle of every entry of a READDIRPLUS reply that has both.
pub(super) fn listed<'a>(results: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) {
    let mut r = Reader::new(results);
    let mut walk = || -> Option<()> {
        if r.u32().ok()? != 0 {
            return None;
        }
        post_op_attr(&mut r)?;
        r.take(8).ok()?; // cookieverf
        while r.u32().ok()? == 1 {
            r.u64().ok()?; // fileid
            let name = r.opaque(nfs3::NAME_LEN_MAX).ok()?;
            r.u64().ok()?; // cookie
            post_op_attr(&mut r)?;
            if r.u32().ok()? == 1 {
                let handle = handle(&mut r)?;
                if name != b"." && name != b".." {
                    each(name, handle);
                }
            }
        }
        Some(())
    };
    walk();
}

/// Whether the results of an operation have names in them.
pub(super) fn is_listing(operation: Operation) -> bool {
    operation.kind() == Kind::Listing
}

fn handle<'a>(r: &mut Reader<'a>) -> Option<&'a [u8]> {
    r.opaque(nfs3::HANDLE_LEN_MAX).ok()
}

fn post_op_attr(r: &mut Reader<'_>) -> Option<()> {
    match r.u32().ok()? {
        0 => Some(()),
        _ => r.take(84).ok().map(|_| ()), // fattr3
    }
}

fn wcc_data(r: &mut Reader<'_>) -> Option<()> {
    if r.u32().ok()? != 0 {
        r.take(24).ok()?; // wcc_attr
    }
    post_op_attr(r)
}
