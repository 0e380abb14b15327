//! What a COMPOUND is for, and what it says of files: its operations, of which one is the main one.

use super::arguments::{attributes, bitmap, walk};
use super::{Callback, HANDLE_LEN_MAX, NAME_LEN_MAX, Operation as Op};
use crate::partial::{Arguments, Results};
use crate::xdr::Reader;

/// Operations of a COMPOUND that are looked at. Servers take a few dozen.
const OPERATIONS_MAX: u32 = 64;
/// Longest tag.
const TAG_LEN_MAX: usize = 1024;

/// What a COMPOUND asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Compound<'a> {
    /// The number of the operation that the others are there for; 0 without any, and where what
    /// was cut off may have another.
    pub main: u32,
    /// Of the operations that decide it some were cut off.
    pub is_cut: bool,
    pub arguments: Arguments<'a>,
    pub minor: u32,
}

/// A call of which what is between may be missing.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// From the start of the arguments.
    pub head: &'a [u8],
    /// The last bytes of the arguments, if there are some that `head` does not have.
    pub tail: &'a [u8],
    /// Bytes of arguments that there were.
    pub len: usize,
}

/// Reads a COMPOUND's arguments, and calls `each` with the number of each operation.
pub fn call<'a>(args: Piece<'a>, mut each: impl FnMut(u32)) -> Compound<'a> {
    let mut compound = Compound::default();
    let mut r = Reader::new(args.head);
    let (mut current, mut left): (&[u8], _) = (&[], OPERATIONS_MAX);
    let read = || -> Option<()> {
        r.opaque(TAG_LEN_MAX).ok()?;
        compound.minor = r.u32().ok()?;
        left = r.u32().ok()?.min(OPERATIONS_MAX);
        while left > 0 {
            let number = r.u32().ok()?;
            left -= 1;
            each(number);
            if rank(number) > rank(compound.main) {
                compound.main = number;
                compound.arguments = Arguments { handle: current, ..Arguments::default() };
            }
            let operation = Op::from_code(number)?;
            let is_main = compound.main == number;
            let mut found = Arguments::default();
            let walked = walk(operation, &mut r, &mut found);
            if operation == Op::Putfh {
                current = found.handle;
            } else if is_main {
                let handle = compound.arguments.handle;
                let is_whole = walked.is_some();
                compound.arguments = Arguments { handle, is_whole, ..found };
            }
            let behind = walked?;
            if behind > 0 {
                r = args.skip(r, behind)?;
            }
        }
        Some(())
    };
    read();
    compound.is_cut = left > 0 && args.head.len() < args.len && rank(compound.main) < MAIN;
    if compound.is_cut {
        compound.main = 0;
        compound.arguments = Arguments { handle: current, ..Arguments::default() };
    }
    compound
}

impl<'a> Piece<'a> {
    /// The reader behind `behind` bytes of data, which may lie between what was stored.
    fn skip(self, mut r: Reader<'a>, behind: usize) -> Option<Reader<'a>> {
        if r.take(behind).is_ok() {
            return Some(r);
        }
        // In bytes from the end: what is left of the head stands before its end.
        let to_end = self.len.checked_sub(self.head.len())? + r.rest().len();
        let left = to_end.checked_sub(behind)?;
        let start = self.tail.len().checked_sub(left)?;
        Some(Reader::new(&self.tail[start..]))
    }
}

/// What a COMPOUND is for, whatever else is in it.
const MAIN: u8 = 5;

/// How much an operation says about what a COMPOUND is for.
const fn rank(number: u32) -> u8 {
    let Some(operation) = Op::from_code(number) else {
        return if number < Op::Access.code() { 0 } else { MAIN };
    };
    match operation {
        Op::Putfh | Op::Putpubfh | Op::Putrootfh | Op::Savefh | Op::Restorefh | Op::Getfh => 0,
        Op::Sequence => 1,
        Op::Getattr => 2,
        Op::Access | Op::Nverify | Op::Verify => 3,
        // LAYOUTCOMMIT, LAYOUTGET and LAYOUTRETURN go along with OPEN, CLOSE and DELEGRETURN.
        Op::Layoutcommit | Op::Layoutget | Op::Layoutreturn => 4,
        _ => MAIN,
    }
}

/// The main operation of a CB_COMPOUND (RFC 5662): the first that is not CB_SEQUENCE, if we know
/// it.
pub fn callback(args: &[u8]) -> Option<Callback> {
    let mut r = Reader::new(args);
    let mut read = || -> Option<u32> {
        r.opaque(TAG_LEN_MAX).ok()?;
        r.take(8).ok()?; // minor version, number of the client
        let count = r.u32().ok()?;
        let first = r.u32().ok()?;
        if first != Callback::Sequence.code() || count < 2 {
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
    read().and_then(Callback::from_code)
}

/// Reads a COMPOUND's results as far as its main operation, for what that says.
pub fn reply<'a>(results: &'a [u8], main: Option<Op>) -> Results<'a> {
    let mut answered = Results::default();
    let mut r = Reader::new(results);
    let mut read = || -> Option<()> {
        answered.status = Some(r.u32().ok()?);
        r.opaque(TAG_LEN_MAX).ok()?;
        let count = r.u32().ok()?;
        for _ in 0..count.min(OPERATIONS_MAX) {
            let operation = Op::from_code(r.u32().ok()?)?;
            if r.u32().ok()? != 0 {
                return None;
            }
            result(operation, main, &mut r, &mut answered)?;
        }
        Some(())
    };
    read();
    answered
}

/// The result of one operation that succeeded. None where nothing of use follows it.
fn result<'a>(
    operation: Op,
    main: Option<Op>,
    r: &mut Reader<'a>,
    answered: &mut Results<'a>,
) -> Option<()> {
    match operation {
        Op::Read => {
            r.u32().ok()?; // eof
            let count = r.u32().ok()?;
            answered.count = Some(count);
            return None; // what follows the data is not needed
        }
        Op::ReadPlus => {
            r.u32().ok()?; // eof
            // Data, and holes that are none. Of several parts the requested length counts.
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
        Op::Write => {
            answered.count = Some(r.u32().ok()?);
            answered.committed = r.u32().ok()?.try_into().ok();
            r.take(8).ok()?;
        }
        Op::Getfh => {
            let handle = r.opaque(HANDLE_LEN_MAX).ok()?;
            if matches!(main, Some(Op::Lookup | Op::Open | Op::Create)) {
                answered.handle = handle;
            }
        }
        Op::Putfh
        | Op::Putrootfh
        | Op::Putpubfh
        | Op::Lookup
        | Op::Lookupp
        | Op::Savefh
        | Op::Restorefh => {}
        Op::Access | Op::Commit => drop(r.take(8).ok()?),
        Op::Close => drop(r.take(16).ok()?),
        Op::Delegpurge | Op::Delegreturn | Op::Nverify | Op::Renew | Op::Verify => {}
        Op::Getattr => attributes(r)?,
        Op::Create => {
            r.take(20).ok()?;
            bitmap(r)?;
        }
        Op::Setattr => bitmap(r)?,
        Op::Sequence => drop(r.take(36).ok()?),
        Op::Open => open_results(r)?,
        _ => return None,
    }
    Some(())
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
