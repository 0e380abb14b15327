//! The arguments of every operation of NFS version 4, walked over: RFC 7531 for 4.0, RFC 5662 for
//! 4.1, RFC 7863 for 4.2, RFC 8276 for extended attributes.
//!
//! Most are of one length, or end with a name. What is of use of them is stored; where the number
//! is of none of them, the walk ends, and with it the list of operations.

use super::{HANDLE_LEN_MAX, NAME_LEN_MAX, Operation as Op};
use crate::partial::Arguments;
use crate::xdr::Reader;

/// Longest attribute list, data excepted.
const ATTRIBUTES_LEN_MAX: usize = 1 << 20;
/// Longest text of a link, token of a security mechanism, or pattern.
const TEXT_LEN_MAX: usize = 8192;
/// Longest list within an operation.
const LIST_LEN_MAX: u32 = 4096;

/// Walks over the arguments of an operation. Data at their end are not walked over: how many bytes
/// of them follow is returned. `None` where they were cut off, or cannot be.
pub(super) fn walk<'a>(
    operation: Op,
    r: &mut Reader<'a>,
    arguments: &mut Arguments<'a>,
) -> Option<usize> {
    match operation {
        Op::Getfh
        | Op::Lookupp
        | Op::Putpubfh
        | Op::Putrootfh
        | Op::Readlink
        | Op::Restorefh
        | Op::Savefh
        | Op::Illegal => {}
        Op::Commit => {
            arguments.offset = r.u64().ok()?;
            arguments.count = r.u32().ok()?;
        }
        Op::Read | Op::ReadPlus => {
            skip(r, 16)?;
            arguments.offset = r.u64().ok()?;
            arguments.count = r.u32().ok()?;
        }
        Op::Write => {
            skip(r, 16)?;
            arguments.offset = r.u64().ok()?;
            arguments.stable = r.u32().ok()?.try_into().unwrap_or(2);
            arguments.count = r.u32().ok()?;
            return Some((arguments.count as usize).next_multiple_of(4));
        }
        Op::Putfh => arguments.handle = r.opaque(HANDLE_LEN_MAX).ok()?,
        Op::Link | Op::Lookup | Op::Remove | Op::Secinfo => arguments.name = name(r)?,
        Op::Rename => {
            arguments.name = name(r)?;
            name(r)?;
        }
        Op::Create => create(r, arguments)?,
        Op::Open => open(r, arguments)?,
        Op::Getattr => bitmap(r)?,
        Op::Nverify | Op::Verify => attributes(r)?,
        Op::Setattr => {
            skip(r, 16)?;
            attributes(r)?;
        }
        Op::Readdir => {
            skip(r, 24)?;
            bitmap(r)?;
        }
        other => return walk_40(other, r),
    }
    Some(0)
}

/// The same of what 4.0 has for its state, and of which nothing is of use.
fn walk_40(operation: Op, r: &mut Reader<'_>) -> Option<usize> {
    match operation {
        Op::Lock => lock(r)?,
        Op::Lockt => {
            skip(r, 28)?; // type, offset, length, client
            name(r)?;
        }
        // Verifier and name; program, network and address; number
        Op::Setclientid => {
            skip(r, 8)?;
            name(r)?;
            skip(r, 4)?;
            name(r)?;
            name(r)?;
            skip(r, 4)?;
        }
        Op::ReleaseLockowner => {
            skip(r, 8)?;
            name(r)?;
        }
        later => return walk_41(later, r),
    }
    Some(0)
}

/// The same of operations that came with 4.1.
fn walk_41(operation: Op, r: &mut Reader<'_>) -> Option<usize> {
    match operation {
        Op::BackchannelCtl => {
            skip(r, 4)?;
            list(r, callback_security)?;
        }
        Op::ExchangeId => exchange_id(r)?,
        Op::CreateSession => {
            skip(r, 16)?;
            channel(r)?;
            channel(r)?;
            skip(r, 4)?;
            list(r, callback_security)?;
        }
        Op::GetDirDelegation => {
            skip(r, 4)?;
            bitmap(r)?;
            skip(r, 24)?;
            bitmap(r)?;
            bitmap(r)?;
        }
        Op::Getdeviceinfo => {
            skip(r, 24)?;
            bitmap(r)?;
        }
        Op::Layoutcommit => {
            skip(r, 36)?; // offset, length, reclaim, stateid
            optional(r, 8)?;
            optional(r, 12)?;
            skip(r, 4)?;
            return behind(r);
        }
        // Of a file its place and what the client has to say
        Op::Layoutreturn => {
            skip(r, 12)?;
            if r.u32().ok()? == 1 {
                skip(r, 32)?;
                return behind(r);
            }
        }
        Op::SetSsv => {
            text(r)?;
            text(r)?;
        }
        Op::TestStateid => list(r, |r| skip(r, 16))?,
        Op::WantDelegation => {
            skip(r, 4)?;
            if r.u32().ok()? == 1 {
                skip(r, 4)?;
            }
        }
        later => return walk_42(later, r),
    }
    Some(0)
}

/// The same of operations that came with 4.2, and of extended attributes.
fn walk_42(operation: Op, r: &mut Reader<'_>) -> Option<usize> {
    match operation {
        Op::Getxattr | Op::Removexattr => drop(name(r)?),
        Op::Copy => {
            skip(r, 32 + 24 + 8)?;
            list(r, location)?;
        }
        Op::CopyNotify => {
            skip(r, 16)?;
            location(r)?;
        }
        Op::IoAdvise => {
            skip(r, 32)?;
            bitmap(r)?;
        }
        Op::Layouterror => {
            skip(r, 32)?;
            list(r, |r| skip(r, 24))?;
        }
        // Place, stateid, what was read and written, device, type
        Op::Layoutstats => {
            skip(r, 32 + 32 + 16 + 4)?;
            return behind(r);
        }
        // Stateid, stability, a pattern and its places
        Op::WriteSame => {
            skip(r, 20 + 32 + 4 + 8)?;
            return behind(r);
        }
        Op::Setxattr => {
            skip(r, 4)?;
            name(r)?;
            return behind(r);
        }
        other => skip(r, fixed(other)?)?,
    }
    Some(0)
}

/// Bytes of the arguments that are of one length.
const fn fixed(operation: Op) -> Option<usize> {
    Some(match operation {
        Op::Access | Op::SecinfoNoName | Op::Openattr | Op::ReclaimComplete => 4,
        Op::Delegpurge | Op::Renew | Op::DestroyClientid => 8,
        Op::Listxattrs => 12,
        Op::Delegreturn
        | Op::SetclientidConfirm
        | Op::DestroySession
        | Op::FreeStateid
        | Op::OffloadCancel
        | Op::OffloadStatus => 16,
        Op::Close | Op::OpenConfirm => 20,
        Op::BindConnToSession | Op::Getdevicelist => 24,
        Op::OpenDowngrade | Op::Seek => 28,
        Op::Sequence | Op::Allocate | Op::Deallocate => 32,
        Op::Locku => 40,
        Op::Layoutget | Op::Clone => 56,
        _ => return None,
    })
}

fn skip(r: &mut Reader<'_>, bytes: usize) -> Option<()> {
    r.take(bytes).ok().map(|_| ())
}

fn name<'a>(r: &mut Reader<'a>) -> Option<&'a [u8]> {
    r.opaque(NAME_LEN_MAX).ok()
}

fn text(r: &mut Reader<'_>) -> Option<()> {
    r.opaque(TEXT_LEN_MAX).ok().map(|_| ())
}

/// The length of data that end the arguments.
fn behind(r: &mut Reader<'_>) -> Option<usize> {
    let len = r.u32().ok()? as usize;
    (len <= ATTRIBUTES_LEN_MAX).then(|| len.next_multiple_of(4))
}

/// A word that says whether so many bytes follow.
fn optional(r: &mut Reader<'_>, bytes: usize) -> Option<()> {
    match r.u32().ok()? {
        0 => Some(()),
        _ => skip(r, bytes),
    }
}

fn list<'a>(r: &mut Reader<'a>, mut each: impl FnMut(&mut Reader<'a>) -> Option<()>) -> Option<()> {
    let count = r.u32().ok()?;
    if count > LIST_LEN_MAX {
        return None;
    }
    (0..count).try_for_each(|_| each(r))
}

/// bitmap4
pub(super) fn bitmap(r: &mut Reader<'_>) -> Option<()> {
    let words = r.u32().ok()?.min(64) as usize;
    skip(r, words * 4)
}

/// fattr4
pub(super) fn attributes(r: &mut Reader<'_>) -> Option<()> {
    bitmap(r)?;
    r.opaque(ATTRIBUTES_LEN_MAX).ok().map(|_| ())
}

/// CREATE4args
fn create<'a>(r: &mut Reader<'a>, arguments: &mut Arguments<'a>) -> Option<()> {
    match r.u32().ok()? {
        3 | 4 => skip(r, 8)?, // a device
        5 => text(r)?,
        _ => {}
    }
    arguments.name = name(r)?;
    attributes(r)
}

/// OPEN4args
fn open<'a>(r: &mut Reader<'a>, arguments: &mut Arguments<'a>) -> Option<()> {
    skip(r, 20)?; // seqid, access, deny, clientid
    name(r)?; // owner
    if r.u32().ok()? == 1 {
        match r.u32().ok()? {
            0 | 1 => attributes(r)?,
            2 => skip(r, 8)?,
            3 => {
                skip(r, 8)?;
                attributes(r)?;
            }
            _ => return None,
        }
    }
    match r.u32().ok()? {
        0 | 3 => arguments.name = name(r)?,
        1 => skip(r, 4)?,
        2 => {
            skip(r, 16)?;
            arguments.name = name(r)?;
        }
        4 | 6 => {}
        5 => skip(r, 16)?,
        _ => return None,
    }
    Some(())
}

/// LOCK4args
fn lock(r: &mut Reader<'_>) -> Option<()> {
    skip(r, 24)?; // type, reclaim, offset, length
    match r.u32().ok()? {
        0 => skip(r, 20), // stateid, seqid
        _ => {
            skip(r, 4 + 16 + 4 + 8)?; // seqid, stateid, seqid, client
            name(r).map(|_| ())
        }
    }
}

/// EXCHANGE_ID4args
fn exchange_id(r: &mut Reader<'_>) -> Option<()> {
    skip(r, 8)?;
    name(r)?;
    skip(r, 4)?;
    match r.u32().ok()? {
        0 => {}
        1 => {
            bitmap(r)?;
            bitmap(r)?;
        }
        2 => {
            bitmap(r)?;
            bitmap(r)?;
            list(r, text)?;
            list(r, text)?;
            skip(r, 8)?;
        }
        _ => return None,
    }
    // Who made the client, and when.
    list(r, |r| {
        name(r)?;
        name(r)?;
        skip(r, 12)
    })
}

/// channel_attrs4
fn channel(r: &mut Reader<'_>) -> Option<()> {
    skip(r, 24)?;
    list(r, |r| skip(r, 4))
}

/// callback_sec_parms4
fn callback_security(r: &mut Reader<'_>) -> Option<()> {
    match r.u32().ok()? {
        0 => Some(()),
        1 => {
            skip(r, 4)?;
            name(r)?;
            skip(r, 8)?;
            list(r, |r| skip(r, 4))
        }
        6 => {
            skip(r, 4)?;
            text(r)?;
            text(r)
        }
        _ => None,
    }
}

/// netloc4
fn location(r: &mut Reader<'_>) -> Option<()> {
    match r.u32().ok()? {
        1 | 2 => text(r),
        3 => {
            text(r)?;
            text(r)
        }
        _ => None,
    }
}
