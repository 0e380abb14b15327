//! What messages that were cut off say of files: handles, names, places and sizes.
//!
//! Read as far as the bytes reach: what was cut off is not known, and no error. [`crate::nfs4`]
//! gives the same of a COMPOUND.

use crate::xdr::Reader;
use crate::{nfs2, nfs3};

/// Longest name that is stored.
const NAME_LEN_MAX: usize = 255;

/// Of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Arguments<'a> {
    /// The file, or the directory in which `name` is.
    pub handle: &'a [u8],
    pub name: &'a [u8],
    pub offset: u64,
    /// Bytes to read, or in the call to be written.
    pub count: u32,
    /// `stable_how` of a WRITE.
    pub stable: u8,
    /// All of these were captured; otherwise those that were not are empty and 0.
    pub is_whole: bool,
}

/// Of a reply.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Results<'a> {
    /// `nfsstat3` and its kin; none in programs without one, or cut off.
    pub status: Option<u32>,
    /// Of the file that the call named or made.
    pub handle: &'a [u8],
    /// Bytes read or written, if it says.
    pub count: Option<u32>,
    /// `stable_how` that the server reached.
    pub committed: Option<u8>,
}

/// Of the arguments of a procedure of version 3.
pub fn nfs3_args(procedure: nfs3::Procedure, args: &[u8]) -> Arguments<'_> {
    use nfs3::Procedure as P;
    let mut arguments = Arguments::default();
    let mut r = Reader::new(args);
    let mut read = || -> Option<()> {
        if procedure == P::Null {
            return None;
        }
        arguments.handle = handle(&mut r)?;
        match procedure {
            P::Lookup
            | P::Create
            | P::Mkdir
            | P::Symlink
            | P::Mknod
            | P::Remove
            | P::Rmdir
            | P::Rename => arguments.name = r.opaque(NAME_LEN_MAX).ok()?,
            P::Read | P::Commit => {
                arguments.offset = r.u64().ok()?;
                arguments.count = r.u32().ok()?;
            }
            P::Write => {
                arguments.offset = r.u64().ok()?;
                arguments.count = r.u32().ok()?;
                arguments.stable = r.u32().ok()?.try_into().unwrap_or(2);
            }
            _ => {}
        }
        Some(())
    };
    let is_whole = read().is_some();
    Arguments { is_whole, ..arguments }
}

/// Of the arguments of a procedure of version 2.
pub fn nfs2_args(procedure: nfs2::Procedure, args: &[u8]) -> Arguments<'_> {
    use nfs2::Procedure as P;
    let mut arguments = Arguments::default();
    let mut r = Reader::new(args);
    let mut read = || -> Option<()> {
        if !has_status(procedure) {
            return None;
        }
        arguments.handle = r.take(nfs2::HANDLE_LEN).ok()?;
        match procedure {
            P::Lookup | P::Create | P::Remove | P::Rename | P::Symlink | P::Mkdir | P::Rmdir => {
                arguments.name = r.opaque(NAME_LEN_MAX).ok()?
            }
            P::Read => {
                arguments.offset = u64::from(r.u32().ok()?);
                arguments.count = r.u32().ok()?;
            }
            P::Write => {
                r.u32().ok()?; // beginoffset
                arguments.offset = u64::from(r.u32().ok()?);
                r.u32().ok()?; // totalcount
                arguments.count = r.u32().ok()?;
                arguments.stable = 2; // RFC 1094 section 2.2.9: stable before the reply
            }
            _ => {}
        }
        Some(())
    };
    let is_whole = read().is_some();
    Arguments { is_whole, ..arguments }
}

/// Of the arguments of NFSACL, all of which begin with a handle.
pub fn acl_args(args: &[u8]) -> Arguments<'_> {
    let found = handle(&mut Reader::new(args));
    let is_whole = found.is_some();
    Arguments { handle: found.unwrap_or_default(), is_whole, ..Arguments::default() }
}

/// Of the results of a procedure of version 3.
pub fn nfs3_results(procedure: nfs3::Procedure, results: &[u8]) -> Results<'_> {
    use nfs3::Procedure as P;
    if procedure == P::Null {
        return Results::default();
    }
    let mut answered = status(results);
    let mut r = Reader::new(results.get(4..).unwrap_or_default());
    let mut read = || -> Option<()> {
        match procedure {
            P::Lookup => answered.handle = handle(&mut r)?,
            P::Read => {
                post_op_attr(&mut r)?;
                answered.count = Some(r.u32().ok()?);
            }
            P::Write => {
                wcc_data(&mut r)?;
                answered.count = Some(r.u32().ok()?);
                answered.committed = r.u32().ok()?.try_into().ok();
            }
            // post_op_fh3
            P::Create | P::Mkdir | P::Symlink | P::Mknod if r.u32().ok()? == 1 => {
                answered.handle = handle(&mut r)?;
            }
            _ => {}
        }
        Some(())
    };
    if answered.status == Some(0) {
        read();
    }
    answered
}

/// Of the results of a procedure of version 2.
pub fn nfs2_results(procedure: nfs2::Procedure, results: &[u8]) -> Results<'_> {
    use nfs2::Procedure as P;
    if !has_status(procedure) {
        return Results::default();
    }
    let mut answered = status(results);
    let mut r = Reader::new(results.get(4..).unwrap_or_default());
    let mut read = || -> Option<()> {
        match procedure {
            P::Lookup | P::Create | P::Mkdir => {
                answered.handle = r.take(nfs2::HANDLE_LEN).ok()?;
            }
            P::Read => {
                r.take(68).ok()?; // fattr
                answered.count = Some(r.u32().ok()?);
            }
            _ => {}
        }
        Some(())
    };
    if answered.status == Some(0) {
        read();
    }
    answered
}

/// Of results that begin with a status: NFSACL's, and MNT's.
pub fn status(results: &[u8]) -> Results<'_> {
    Results { status: Reader::new(results).u32().ok(), ..Results::default() }
}

/// Procedures of version 2 have a handle and a status, but for those that do nothing.
const fn has_status(procedure: nfs2::Procedure) -> bool {
    use nfs2::Procedure as P;
    !matches!(procedure, P::Null | P::Root | P::Writecache)
}

/// Calls `each` with the name and handle of every entry of a READDIRPLUS reply that has both.
pub fn listed<'a>(results: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) {
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
