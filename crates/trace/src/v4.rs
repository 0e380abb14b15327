//! COMPOUNDs of NFS version 4 (RFC 7530, RFC 8881, RFC 7862) by their operations.
//!
//! To find the next operation, the length of each one's arguments has to be known: `v4_args.rs`.

use wire::xdr::Reader;

use super::facts::{Answered, Asked};
use super::operation::v4;
use super::stream::Record;
use super::v4_args::{HANDLE_LEN_MAX, NAME_LEN_MAX, attributes, bitmap, walk as args_of};

/// Operations of a COMPOUND that are looked at. Servers take a few dozen.
const OPERATIONS_MAX: u32 = 64;
/// Longest tag.
const TAG_LEN_MAX: usize = 1024;

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
        // LAYOUTCOMMIT, LAYOUTGET and LAYOUTRETURN go along with OPEN, CLOSE and DELEGRETURN.
        49..=51 => 4,
        _ => 5,
    }
}

/// The main operation of a CB_COMPOUND (RFC 5662): the first that is not CB_SEQUENCE, or 1 when
/// there is none that we know.
pub(super) fn callback(args: &[u8]) -> u32 {
    const CB_SEQUENCE: u32 = 11;
    let mut r = Reader::new(args);
    let mut walk = || -> Option<u32> {
        r.opaque(TAG_LEN_MAX).ok()?;
        r.take(8).ok()?; // minor version, number of the client
        let count = r.u32().ok()?;
        let first = r.u32().ok()?;
        if first != CB_SEQUENCE || count < 2 {
            return Some(first);
        }
        r.take(32).ok()?;
        // Calls that it refers to, by session.
        for _ in 0..r.u32().ok()?.min(OPERATIONS_MAX) {
            r.take(16).ok()?;
            let calls = r.u32().ok()?.min(1024) as usize;
            r.take(calls * 8).ok()?;
        }
        r.u32().ok()
    };
    walk().filter(|operation| (3..16).contains(operation)).unwrap_or(1)
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
                v4::READ_PLUS => {
                    r.u32().ok()?; // eof
                    // Data, and holes that are none. With several parts, what was asked for counts.
                    answered.count = match r.u32().ok()? {
                        0 => Some(0),
                        1 if r.u32().ok()? == 0 => {
                            r.u64().ok()?;
                            Some(r.u32().ok()?)
                        }
                        1 => Some(0),
                        _ => None,
                    };
                    return None;
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
                // DELEGPURGE, DELEGRETURN, NVERIFY, RENEW, VERIFY
                v4::DELEGPURGE | v4::DELEGRETURN | 17 | 30 | 37 => {}
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
