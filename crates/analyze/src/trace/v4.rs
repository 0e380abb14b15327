//! COMPOUNDs of NFS version 4 (RFC 7530, RFC 8881, RFC 7862) by their operations.
//!
//! To find the next operation, the length of each one's arguments has to be known. Those that
//! occur in ordinary traffic are; at one that is not, the list ends.

use wire::xdr::Reader;

use super::facts::{Answered, Asked};
use super::operation::v4;
use super::stream::Record;

/// Operations of a COMPOUND that are looked at. Servers take a few dozen.
const OPERATIONS_MAX: u32 = 64;
/// Longest tag.
const TAG_LEN_MAX: usize = 1024;
const NAME_LEN_MAX: usize = 1024;
const HANDLE_LEN_MAX: usize = 128;
/// Longest attribute list, data excepted.
const ATTRIBUTES_LEN_MAX: usize = 1 << 20;

/// What a COMPOUND asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Compound<'a> {
    pub(super) main: u32,
    pub(super) asked: Asked<'a>,
    pub(super) minor: u32,
}

/// Reads a COMPOUND's arguments, which begin at `at`, and calls `each` with each operation.
pub(super) fn call<'a>(record: &Record<'a>, at: usize, mut each: impl FnMut(u32)) -> Compound<'a> {
    let mut compound = Compound::default();
    let Some(args) = record.head.get(at..) else { return compound };
    let mut r = Reader::new(args);
    let walk = || -> Option<()> {
        r.opaque(TAG_LEN_MAX).ok()?;
        compound.minor = r.u32().ok()?;
        let count = r.u32().ok()?;
        let mut current: &[u8] = &[];
        for _ in 0..count.min(OPERATIONS_MAX) {
            let operation = r.u32().ok()?;
            each(operation);
            if rank(operation) > rank(compound.main) {
                compound.main = operation;
                compound.asked = Asked { handle: current, ..Asked::default() };
            }
            let is_main = compound.main == operation;
            let mut found = Asked::default();
            let walked = args_of(operation, &mut r, &mut found);
            if operation == v4::PUTFH {
                current = found.handle;
            } else if is_main {
                let handle = compound.asked.handle;
                compound.asked = Asked { handle, ..found };
            }
            let behind = walked?;
            if behind > 0 {
                r = skip(record, r, behind)?;
            }
        }
        Some(())
    };
    walk();
    compound
}

/// The reader behind `behind` bytes of data, which may lie between what was kept.
fn skip<'a>(record: &Record<'a>, mut r: Reader<'a>, behind: usize) -> Option<Reader<'a>> {
    if r.take(behind).is_ok() {
        return Some(r);
    }
    // In bytes from the end of the record: what is left of the head stands before its end.
    let to_end = (record.len as usize).checked_sub(record.head.len())? + r.rest().len();
    let left = to_end.checked_sub(behind)?;
    let start = record.tail.len().checked_sub(left)?;
    Some(Reader::new(&record.tail[start..]))
}

/// How much an operation says about what a COMPOUND is for.
const fn rank(operation: u32) -> u8 {
    match operation {
        0..=2 | v4::PUTFH | 23 | v4::PUTROOTFH | v4::SAVEFH | v4::RESTOREFH | v4::GETFH => 0,
        v4::SEQUENCE => 1,
        v4::GETATTR => 2,
        v4::ACCESS | 17 | 37 => 3,
        _ => 4,
    }
}

/// Walks over the arguments of an operation. Data at their end are not walked over: how many bytes
/// of them follow is returned.
fn args_of<'a>(operation: u32, r: &mut Reader<'a>, asked: &mut Asked<'a>) -> Option<usize> {
    match operation {
        v4::ACCESS | 52 => drop(r.u32().ok()?),
        v4::CLOSE | 21 => {
            r.take(if operation == 21 { 28 } else { 20 }).ok()?;
        }
        v4::COMMIT => {
            asked.offset = r.u64().ok()?;
            asked.count = r.u32().ok()?;
        }
        v4::CREATE => {
            match r.u32().ok()? {
                3 | 4 => drop(r.take(8).ok()?),
                5 => drop(r.opaque(NAME_LEN_MAX * 8).ok()?),
                _ => {}
            }
            asked.name = r.opaque(NAME_LEN_MAX).ok()?;
            attributes(r)?;
        }
        7 | 30 | 57 => drop(r.take(8).ok()?),
        8 | 44 | 45 => drop(r.take(16).ok()?),
        v4::GETATTR => bitmap(r)?,
        v4::GETFH | 16 | 23 | v4::PUTROOTFH | v4::READLINK | v4::RESTOREFH | v4::SAVEFH => {}
        v4::LINK | v4::LOOKUP | v4::REMOVE | 33 => asked.name = r.opaque(NAME_LEN_MAX).ok()?,
        17 | 37 => attributes(r)?,
        v4::OPEN => open(r, asked)?,
        19 | 58 => drop(r.u32().ok()?),
        20 => drop(r.take(20).ok()?),
        v4::PUTFH => asked.handle = r.opaque(HANDLE_LEN_MAX).ok()?,
        v4::READ | 68 => {
            r.take(16).ok()?;
            asked.offset = r.u64().ok()?;
            asked.count = r.u32().ok()?;
        }
        v4::READDIR => {
            r.take(24).ok()?;
            bitmap(r)?;
        }
        v4::RENAME => {
            asked.name = r.opaque(NAME_LEN_MAX).ok()?;
            r.opaque(NAME_LEN_MAX).ok()?;
        }
        v4::SETATTR => {
            r.take(16).ok()?;
            attributes(r)?;
        }
        35 => {
            r.take(8).ok()?;
            r.opaque(NAME_LEN_MAX).ok()?;
            r.u32().ok()?;
            r.opaque(NAME_LEN_MAX).ok()?;
            r.opaque(NAME_LEN_MAX).ok()?;
            r.u32().ok()?;
        }
        36 => drop(r.take(16).ok()?),
        v4::WRITE => {
            r.take(16).ok()?;
            asked.offset = r.u64().ok()?;
            asked.stable = r.u32().ok()?.try_into().unwrap_or(2);
            asked.count = r.u32().ok()?;
            return Some((asked.count as usize).next_multiple_of(4));
        }
        v4::SEQUENCE => drop(r.take(32).ok()?),
        41 => drop(r.take(24).ok()?),
        59 | 62 => drop(r.take(32).ok()?),
        69 => drop(r.take(28).ok()?),
        71 => drop(r.take(56).ok()?),
        _ => return None,
    }
    Some(0)
}

/// OPEN4args
fn open<'a>(r: &mut Reader<'a>, asked: &mut Asked<'a>) -> Option<()> {
    r.take(20).ok()?; // seqid, access, deny, clientid
    r.opaque(NAME_LEN_MAX).ok()?; // owner
    if r.u32().ok()? == 1 {
        match r.u32().ok()? {
            0 | 1 => attributes(r)?,
            2 => drop(r.take(8).ok()?),
            3 => {
                r.take(8).ok()?;
                attributes(r)?;
            }
            _ => return None,
        }
    }
    match r.u32().ok()? {
        0 => asked.name = r.opaque(NAME_LEN_MAX).ok()?,
        1 => drop(r.u32().ok()?),
        2 => {
            r.take(16).ok()?;
            asked.name = r.opaque(NAME_LEN_MAX).ok()?;
        }
        3 => asked.name = r.opaque(NAME_LEN_MAX).ok()?,
        4 => {}
        5 => drop(r.take(16).ok()?),
        6 => {}
        _ => return None,
    }
    Some(())
}

fn bitmap(r: &mut Reader<'_>) -> Option<()> {
    let words = r.u32().ok()?.min(64) as usize;
    r.take(words * 4).ok().map(|_| ())
}

fn attributes(r: &mut Reader<'_>) -> Option<()> {
    bitmap(r)?;
    r.opaque(ATTRIBUTES_LEN_MAX).ok().map(|_| ())
}

/// Reads a COMPOUND's results as far as its main operation, for what that says.
pub(super) fn reply<'a>(results: &'a [u8], main: u32) -> Answered<'a> {
    let mut answered = Answered::default();
    let mut r = Reader::new(results);
    let mut walk = || -> Option<()> {
        answered.status = Some(r.u32().ok()?);
        r.opaque(TAG_LEN_MAX).ok()?;
        let count = r.u32().ok()?;
        for _ in 0..count.min(OPERATIONS_MAX) {
            let operation = r.u32().ok()?;
            if r.u32().ok()? != 0 {
                return None;
            }
            match operation {
                v4::READ => {
                    r.u32().ok()?; // eof
                    let count = r.u32().ok()?;
                    answered.count = Some(count);
                    return None; // what follows the data is not needed
                }
                v4::WRITE => {
                    answered.count = Some(r.u32().ok()?);
                    answered.committed = r.u32().ok()?.try_into().ok();
                    r.take(8).ok()?;
                }
                v4::GETFH => {
                    let handle = r.opaque(HANDLE_LEN_MAX).ok()?;
                    if matches!(main, v4::LOOKUP | v4::OPEN | v4::CREATE) {
                        answered.handle = handle;
                    }
                }
                v4::PUTFH | v4::PUTROOTFH | 23 | v4::LOOKUP | 16 | v4::SAVEFH | v4::RESTOREFH => {}
                v4::ACCESS => drop(r.take(8).ok()?),
                v4::COMMIT => drop(r.take(8).ok()?),
                v4::CLOSE => drop(r.take(16).ok()?),
                v4::GETATTR => attributes(&mut r)?,
                v4::CREATE => {
                    r.take(20).ok()?;
                    bitmap(&mut r)?;
                }
                v4::SETATTR => bitmap(&mut r)?,
                v4::SEQUENCE => drop(r.take(36).ok()?),
                v4::OPEN => open_results(&mut r)?,
                _ => return None,
            }
        }
        Some(())
    };
    walk();
    answered
}

/// OPEN4resok
fn open_results(r: &mut Reader<'_>) -> Option<()> {
    r.take(16 + 20 + 4).ok()?; // stateid, change_info4, rflags
    bitmap(r)?;
    match r.u32().ok()? {
        0 => Some(()),
        1 => {
            r.take(20).ok()?;
            ace(r)
        }
        2 => {
            r.take(20).ok()?;
            match r.u32().ok()? {
                1 => drop(r.take(8).ok()?),
                _ => drop(r.take(8).ok()?),
            }
            ace(r)
        }
        3 => {
            match r.u32().ok()? {
                1 | 2 => drop(r.u32().ok()?),
                _ => {}
            }
            Some(())
        }
        _ => None,
    }
}

/// nfsace4
fn ace(r: &mut Reader<'_>) -> Option<()> {
    r.take(12).ok()?;
    r.opaque(NAME_LEN_MAX).ok().map(|_| ())
}
