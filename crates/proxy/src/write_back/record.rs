//! What a record of the log says: a change, whose it is, and what was known of its file. In XDR;
//! `docs/formats/write-back.md` has the bytes.

use bytes::Bytes;
use server::types::{Before, Caller, Handle, SetAttr, SetTime, Time};
use wire::nfs3::Sattr3;
use wire::xdr::{Decode, DecodeError, DecodeErrorKind, Encode, Reader, put_len};

use crate::neutral;

/// Most bytes of data in one record: larger WRITEs have several.
pub(crate) const DATA_BYTES_MAX: usize = 128 << 10;

/// Most groups of a caller: what AUTH_SYS carries.
const GIDS_MAX: usize = 16;

/// Most bytes of a name, and of what a symbolic link leads to.
const NAME_BYTES_MAX: usize = 255;
const TARGET_BYTES_MAX: usize = 4096;

/// A change that a client was answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub(crate) caller: Caller,
    /// When, as in the reply to the client.
    pub(crate) at: Time,
    /// What the origin's file was when its first change that is still to come there was made.
    pub(crate) base: Option<Before>,
    /// The modification time that the origin's file is still to get after it.
    pub(crate) owed: Option<Time>,
    pub(crate) change: Change,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    Write {
        file: Handle,
        offset: u64,
        data: Bytes,
    },
    Set {
        file: Handle,
        set: SetAttr,
    },
    Make {
        dir: Handle,
        name: Bytes,
        what: Made,
        set: SetAttr,
    },
    Remove {
        dir: Handle,
        name: Bytes,
        file: Handle,
        is_dir: bool,
    },
    /// `over` is what had the name.
    Rename {
        from: (Handle, Bytes),
        to: (Handle, Bytes),
        file: Handle,
        over: Option<Handle>,
    },
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Made {
    /// By an exclusive CREATE, if it has a verifier.
    File(Option<[u8; 8]>),
    Directory,
    Symlink(Bytes),
}

/// What came of a change.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) file: Option<Handle>,
    /// The origin's file after it.
    pub(crate) after: Option<Before>,
}

const WRITE: u32 = 1;
const SET: u32 = 2;
const MAKE: u32 = 3;
const REMOVE: u32 = 4;
const RENAME: u32 = 5;

impl Entry {
    /// The bytes; of a WRITE the data are the end of them.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(256);
        self.caller.uid.encode(&mut out);
        self.caller.gid.encode(&mut out);
        let gids = &self.caller.gids[..self.caller.gids.len().min(GIDS_MAX)];
        put_len(&mut out, gids.len());
        gids.iter().for_each(|gid| gid.encode(&mut out));
        put_time(&mut out, self.at);
        put_state(&mut out, self.base.as_ref());
        self.owed.is_some().encode(&mut out);
        self.owed.iter().for_each(|owed| put_time(&mut out, *owed));
        match &self.change {
            Change::Write { file, offset, data } => {
                WRITE.encode(&mut out);
                put_handle(&mut out, file);
                offset.encode(&mut out);
                out.extend_from_slice(data);
            }
            Change::Set { file, set } => {
                SET.encode(&mut out);
                put_handle(&mut out, file);
                put_set(&mut out, set);
            }
            Change::Make { dir, name, what, set } => {
                MAKE.encode(&mut out);
                put_name(&mut out, dir, name);
                put_made(&mut out, what);
                put_set(&mut out, set);
            }
            Change::Remove { dir, name, file, is_dir } => {
                REMOVE.encode(&mut out);
                put_name(&mut out, dir, name);
                put_handle(&mut out, file);
                is_dir.encode(&mut out);
            }
            Change::Rename { from, to, file, over } => {
                RENAME.encode(&mut out);
                put_name(&mut out, &from.0, &from.1);
                put_name(&mut out, &to.0, &to.1);
                put_handle(&mut out, file);
                over.is_some().encode(&mut out);
                over.iter().for_each(|over| put_handle(&mut out, over));
            }
        }
        Bytes::from(out)
    }

    /// Whether one SETATTR does what this one and `next`, which follows it, do. Not with bits that
    /// a change of the owner takes, nor with a size, which moves the time of the last change.
    pub(crate) fn goes_with(&self, next: &Self) -> bool {
        let is_plain = |set: &SetAttr| set.size.is_none() && set.mode.unwrap_or(0) & !0o777 == 0;
        match (&self.change, &next.change) {
            (Change::Set { set, .. }, Change::Set { set: then, .. }) => {
                self.caller == next.caller && is_plain(set) && is_plain(then)
            }
            _ => false,
        }
    }

    /// Both in one.
    pub(crate) fn join(&mut self, next: &Self) {
        let Change::Set { set: then, .. } = &next.change else { return };
        let Change::Set { set, .. } = &mut self.change else { return };
        let time = |old, new| if new == SetTime::Keep { old } else { new };
        *set = SetAttr {
            mode: then.mode.or(set.mode),
            uid: then.uid.or(set.uid),
            gid: then.gid.or(set.gid),
            size: None,
            accessed: time(set.accessed, then.accessed),
            modified: time(set.modified, then.modified),
        };
        (self.at, self.owed) = (next.at, next.owed);
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let (uid, gid) = (r.u32()?, r.u32()?);
        let count = r.u32()? as usize;
        if count > GIDS_MAX {
            return Err(wrong(&r));
        }
        let gids = (0..count).map(|_| r.u32()).collect::<Result<_, _>>()?;
        let caller = Caller { uid, gid, gids };
        let (at, base) = (time(&mut r)?, state(&mut r)?);
        let owed = bool::decode(&mut r)?.then(|| time(&mut r)).transpose()?;
        let change = change(&mut r, bytes)?;
        Ok(Self { caller, at, base, owed, change })
    }
}

fn change(r: &mut Reader<'_>, bytes: &Bytes) -> Result<Change, DecodeError> {
    let kind = r.u32()?;
    let change = match kind {
        WRITE => {
            let (file, offset) = (handle(r)?, r.u64()?);
            let data = bytes.slice_ref(r.rest());
            let end = offset.checked_add(data.len() as u64);
            let is_sound = end.is_some_and(|end| i64::try_from(end).is_ok());
            if !is_sound || data.len() > DATA_BYTES_MAX {
                return Err(wrong(r));
            }
            return Ok(Change::Write { file, offset, data });
        }
        SET => Change::Set { file: handle(r)?, set: set(r)? },
        MAKE => {
            let (dir, name) = name(r)?;
            Change::Make { dir, name, what: made(r)?, set: set(r)? }
        }
        REMOVE => {
            let (dir, name) = name(r)?;
            Change::Remove { dir, name, file: handle(r)?, is_dir: bool::decode(r)? }
        }
        RENAME => {
            let (from, to, file) = (name(r)?, name(r)?, handle(r)?);
            let over = bool::decode(r)?.then(|| handle(r)).transpose()?;
            Change::Rename { from, to, file, over }
        }
        _ => return Err(wrong(r)),
    };
    match r.rest().is_empty() {
        true => Ok(change),
        false => Err(wrong(r)),
    }
}

impl Outcome {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.file.is_some().encode(&mut out);
        self.file.iter().for_each(|file| put_handle(&mut out, file));
        put_state(&mut out, self.after.as_ref());
        Bytes::from(out)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let file = bool::decode(&mut r)?.then(|| handle(&mut r)).transpose()?;
        let after = state(&mut r)?;
        r.finish()?;
        Ok(Self { file, after })
    }
}

fn wrong(r: &Reader<'_>) -> DecodeError {
    let value = u32::try_from(r.rest().len()).unwrap_or(u32::MAX);
    DecodeErrorKind::BadEnum { value }.at(0).in_field("change")
}

fn put_time(out: &mut Vec<u8>, time: Time) {
    time.secs.cast_unsigned().encode(out);
    time.nanos.encode(out);
}

fn time(r: &mut Reader<'_>) -> Result<Time, DecodeError> {
    Ok(Time { secs: r.u64()?.cast_signed(), nanos: r.u32()? })
}

fn put_state(out: &mut Vec<u8>, state: Option<&Before>) {
    state.is_some().encode(out);
    if let Some(Before { size, modified, changed }) = state {
        size.encode(out);
        put_time(out, *modified);
        put_time(out, *changed);
    }
}

fn state(r: &mut Reader<'_>) -> Result<Option<Before>, DecodeError> {
    let is_there = bool::decode(r)?;
    let mut state = || {
        let (size, modified, changed) = (r.u64()?, time(r)?, time(r)?);
        Ok(Before { size, modified, changed })
    };
    is_there.then(&mut state).transpose()
}

fn put_handle(out: &mut Vec<u8>, handle: &Handle) {
    handle.as_bytes().encode(out);
}

fn handle(r: &mut Reader<'_>) -> Result<Handle, DecodeError> {
    let bytes = r.opaque(Handle::BYTES_MAX)?;
    Handle::new(bytes).ok_or_else(|| wrong(r))
}

fn put_name(out: &mut Vec<u8>, dir: &Handle, name: &[u8]) {
    put_handle(out, dir);
    name.encode(out);
}

fn name(r: &mut Reader<'_>) -> Result<(Handle, Bytes), DecodeError> {
    let dir = handle(r)?;
    Ok((dir, Bytes::copy_from_slice(r.opaque(NAME_BYTES_MAX)?)))
}

fn put_set(out: &mut Vec<u8>, set: &SetAttr) {
    neutral::sattr(set).encode(out);
}

fn set(r: &mut Reader<'_>) -> Result<SetAttr, DecodeError> {
    Ok(neutral::set_attr(&Sattr3::decode(r)?))
}

fn put_made(out: &mut Vec<u8>, what: &Made) {
    match what {
        Made::File(verifier) => {
            0_u32.encode(out);
            verifier.encode(out);
        }
        Made::Directory => 1_u32.encode(out),
        Made::Symlink(target) => {
            2_u32.encode(out);
            (&target[..]).encode(out);
        }
    }
}

fn made(r: &mut Reader<'_>) -> Result<Made, DecodeError> {
    Ok(match r.u32()? {
        0 => Made::File(Option::decode(r)?),
        1 => Made::Directory,
        2 => Made::Symlink(Bytes::copy_from_slice(r.opaque(TARGET_BYTES_MAX)?)),
        _ => return Err(wrong(r)),
    })
}

/// The times that a client asks for are those of now, wherever that is.
pub(crate) fn timed(set: SetAttr, now: Time) -> SetAttr {
    let at = |time| match time {
        SetTime::ToServer => SetTime::To(now),
        time => time,
    };
    SetAttr { accessed: at(set.accessed), modified: at(set.modified), ..set }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(fill: u8) -> Handle {
        Handle::new(&[fill; 17]).unwrap()
    }

    fn entries() -> Vec<Entry> {
        let name = Bytes::from_static(b"name");
        let at = Time { secs: 1 << 33, nanos: 999_999_999 };
        let set = SetAttr {
            mode: Some(0o640),
            size: Some(7),
            modified: SetTime::To(Time { secs: 5, nanos: 6 }),
            ..SetAttr::default()
        };
        let make = |what| Change::Make { dir: handle(1), name: name.clone(), what, set };
        let from = (handle(1), name.clone());
        let rename = |over| Change::Rename {
            from: from.clone(),
            to: (handle(2), Bytes::from_static(b"other")),
            file: handle(3),
            over,
        };
        let changes = [
            Change::Write { file: handle(9), offset: 1 << 40, data: Bytes::from_static(b"12345") },
            Change::Write { file: handle(9), offset: 0, data: Bytes::new() },
            Change::Set { file: handle(9), set },
            make(Made::File(None)),
            make(Made::File(Some([7; 8]))),
            make(Made::Directory),
            make(Made::Symlink(Bytes::from_static(b"/to"))),
            Change::Remove { dir: handle(1), name: name.clone(), file: handle(2), is_dir: true },
            rename(None),
            rename(Some(handle(4))),
        ];
        let base = Before { size: 3, modified: at, changed: at };
        let entry = |(number, change)| Entry {
            caller: Caller { uid: 1000, gid: 100, gids: vec![4; number] },
            at,
            base: (number % 2 == 0).then_some(base),
            owed: (number % 3 == 0).then_some(at),
            change,
        };
        changes.into_iter().enumerate().map(entry).collect()
    }

    #[test]
    fn what_goes_in_comes_out() {
        for entry in entries() {
            assert_eq!(Entry::decode(&entry.encode()).unwrap(), entry);
        }
        let after = entries()[0].base;
        for outcome in [Outcome::default(), Outcome { file: Some(handle(3)), after }] {
            assert_eq!(Outcome::decode(&outcome.encode()).unwrap(), outcome);
        }
    }

    #[test]
    fn one_call_sets_what_several_set_but_for_sizes_and_bits_that_a_new_owner_loses() {
        let entry = |uid, set| Entry {
            caller: Caller { uid, gid: 1, gids: Vec::new() },
            at: Time { secs: 9, nanos: 0 },
            base: None,
            owed: None,
            change: Change::Set { file: handle(1), set },
        };
        let [early, late] = [5, 6].map(|secs| SetTime::To(Time { secs, nanos: 0 }));
        let first = SetAttr { mode: Some(0o600), uid: Some(3), ..SetAttr::default() };
        let times = SetAttr { accessed: early, modified: early, ..SetAttr::default() };
        let last = SetAttr { mode: Some(0o644), modified: late, ..SetAttr::default() };
        let mut all = entry(0, first);
        for next in [times, last].map(|set| entry(0, set)) {
            assert!(all.goes_with(&next));
            all.join(&next);
        }
        let set = SetAttr {
            mode: Some(0o644),
            uid: Some(3),
            accessed: early,
            modified: late,
            ..SetAttr::default()
        };
        assert_eq!(all, entry(0, set));
        let size = SetAttr { size: Some(0), ..SetAttr::default() };
        let bits = SetAttr { mode: Some(0o4755), ..SetAttr::default() };
        for other in [entry(1, times), entry(0, size), entry(0, bits)] {
            assert!(!all.goes_with(&other) && !other.goes_with(&all), "{other:?}");
        }
        let change = Change::Write { file: handle(1), offset: 0, data: Bytes::new() };
        assert!(!all.goes_with(&Entry { change, ..entry(0, times) }));
    }

    #[test]
    fn with_any_byte_changed_it_is_another_record_or_none() {
        for entry in entries() {
            let whole = entry.encode();
            for (at, value) in
                (0..whole.len()).flat_map(|at| [1, 0x80, 0xff].map(|bits| (at, bits)))
            {
                let mut bytes = whole.to_vec();
                bytes[at] ^= value;
                crate::fuzzing::write_back(&bytes);
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_no_record() {
        for entry in entries() {
            let whole = entry.encode();
            for len in 0..whole.len() {
                let part = Entry::decode(&whole.slice(..len));
                // Where the data of a WRITE end is known by the record around it.
                let is_write = matches!(entry.change, Change::Write { .. });
                assert!(part.is_err() || is_write, "{len} bytes of {entry:?}");
            }
        }
        let long = Bytes::from(vec![0; DATA_BYTES_MAX + 1]);
        let change = Change::Write { file: handle(1), offset: 0, data: long };
        let entry = Entry { change, ..entries().remove(0) };
        assert!(Entry::decode(&entry.encode()).is_err());
    }
}
