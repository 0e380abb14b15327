//! Which files are called most, under the names by which clients have looked them up.
//!
//! The [`FILES_MAX`] files that were called last have counters; one that was called before them has
//! to begin anew when it is called again. Names are learned from MNT, LOOKUP, CREATE and MKDIR as
//! they pass: of a handle that a client knew before this server was started there is none.
//!
//! A call takes a lock for it, and whoever may read the page sees names of files: it is there only
//! with `--metrics-files`.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use perf::units::Nanos;
use wire::rpc::{Call, CallHeader};
use wire::show::Hex;
use wire::xdr::{Decode, Reader};
use wire::{mount, nfs2, nfs3};

use super::procedures::Served;
use super::text::{Kind, Page};

/// Files that are distinguished.
pub const FILES_MAX: usize = 512;
/// Names that are remembered, of 255 bytes at most: of files, and of the directories above them.
const NAMES_MAX: usize = 8192;
/// Directories of a path that are shown, from the file upwards.
const DEPTH_MAX: usize = 8;
/// Bytes of a header before its status: RPC's, accepted and with an empty verifier.
const REPLY_STATUS_AT: usize = 24;

type Handle = Box<[u8]>;

/// Guards the table: taken by each call, and by readers.
pub(super) struct Files(Mutex<Table>);

struct Table {
    files: LruCache<Handle, Counts>,
    names: LruCache<Handle, Name>,
}

/// Where a file was found.
#[derive(Clone, Debug)]
struct Name {
    /// None of what was mounted.
    above: Option<Handle>,
    name: String,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Counts {
    calls: u64,
    received_bytes: u64,
    sent_bytes: u64,
    time: Nanos,
}

impl Files {
    pub(super) fn new() -> Self {
        let of = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        let (files, names) = (LruCache::new(of(FILES_MAX)), LruCache::new(of(NAMES_MAX)));
        Self(Mutex::new(Table { files, names }))
    }

    /// Counts a call by the handle that its arguments begin with, and learns what it names.
    pub(super) fn count(&self, record: &[u8], head: &[u8], served: &Served) {
        let Some(call) = FileCall::of(record) else { return };
        let found = call.name.and_then(|_| given(&call, head));
        let mut table = self.0.lock();
        if let Some(handle) = call.handle {
            let counts = match table.files.get_mut(handle) {
                Some(counts) => counts,
                None => table.files.get_or_insert_mut(handle.into(), Counts::default),
            };
            counts.calls += 1;
            counts.received_bytes += served.received_bytes;
            counts.sent_bytes += served.sent_bytes;
            counts.time += served.phases.total();
        }
        if let (Some(name), Some(found)) = (call.name, found)
            && table.names.get(found).is_none_or(|known| !known.is(call.handle, name))
        {
            let name = printable(name);
            table.names.put(found.into(), Name { above: call.handle.map(Into::into), name });
        }
    }

    /// The path of a call's file or directory, as on the page.
    pub(super) fn path(&self, record: &[u8]) -> Option<String> {
        let handle = FileCall::of(record)?.handle?;
        Some(self.0.lock().path(handle))
    }

    /// Writes what was counted of each.
    pub(super) fn write(&self, page: &mut Page) {
        let mut paths: BTreeMap<String, Counts> = BTreeMap::new();
        {
            let table = self.0.lock();
            for (handle, counts) in &table.files {
                // A file and one that has taken its place have the same path.
                paths.entry(table.path(handle)).or_default().add(counts);
            }
        }
        type Value = fn(&Counts) -> f64;
        let families: [(&str, &str, Value); 4] = [
            ("nfskit_file_calls_total", "Calls by file.", |of| of.calls as f64),
            ("nfskit_file_received_bytes_total", "Bytes of calls by file.", |of| {
                of.received_bytes as f64
            }),
            ("nfskit_file_sent_bytes_total", "Bytes of replies by file.", |of| {
                of.sent_bytes as f64
            }),
            ("nfskit_file_seconds_total", "Time until replies are there, by file.", |of| {
                of.time.as_secs_f64()
            }),
        ];
        for (name, help, value) in families {
            let mut family = page.family(name, Kind::Counter, help);
            for (path, counts) in &paths {
                family.sample(&[("file", path)], value(counts));
            }
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.time += other.time;
    }
}

impl Name {
    fn is(&self, above: Option<&[u8]>, name: &[u8]) -> bool {
        self.above.as_deref() == above && self.name.as_bytes() == name
    }
}

impl Table {
    /// As far up as names are known; of a file without a name, the end of its handle.
    fn path(&self, handle: &[u8]) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let mut at = Some(handle);
        while let Some(handle) = at {
            match self.names.peek(handle) {
                Some(known) if parts.len() < DEPTH_MAX => {
                    parts.push(known.name.trim_end_matches('/'));
                    at = known.above.as_deref();
                }
                _ if parts.is_empty() => {
                    let end = &handle[handle.len().saturating_sub(8)..];
                    return format!("handle ..{}", Hex(end));
                }
                _ => {
                    parts.push("..");
                    at = None;
                }
            }
        }
        parts.reverse();
        match parts.join("/") {
            path if path.is_empty() => "/".to_owned(),
            path => path,
        }
    }
}

/// Names may have any bytes in them.
fn printable(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace(char::is_control, "?")
}

/// What a call is about.
#[derive(Clone, Copy, Debug)]
struct FileCall<'a> {
    handle: Option<&'a [u8]>,
    /// What the reply gives the handle of.
    name: Option<&'a [u8]>,
    reply: Given,
}

/// Where a reply has the handle, behind its status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Given {
    /// 32 bytes, as in version 2.
    Fixed,
    /// With its length.
    Counted,
    /// With its length, behind a word that says whether there is one.
    Optional,
}

impl<'a> FileCall<'a> {
    fn of(record: &'a [u8]) -> Option<Self> {
        let mut r = Reader::new(record);
        let Ok(Call::Version2(header)) = Call::decode(&mut r) else { return None };
        let CallHeader { program, version, procedure, .. } = header;
        let is_two = version == nfs2::VERSION;
        match program {
            mount::PROGRAM => {
                let is_mnt = procedure == mount::Procedure::Mnt as u32;
                let path = is_mnt.then(|| r.opaque(mount::PATH_LEN_MAX).ok())??;
                let reply = if version < 3 { Given::Fixed } else { Given::Counted };
                Some(Self { handle: None, name: Some(path), reply })
            }
            // NULL has no arguments.
            nfs3::PROGRAM if procedure > 0 => {
                let handle = match is_two {
                    true => r.take(nfs2::HANDLE_LEN).ok()?,
                    false => r.opaque(nfs3::HANDLE_LEN_MAX).ok()?,
                };
                let reply = if is_two { given_by2(procedure) } else { given_by3(procedure) };
                let name = reply.and_then(|_| r.opaque(nfs3::NAME_LEN_MAX).ok());
                let is_one = |name: &&[u8]| !matches!(*name, b"." | b"..");
                let (name, reply) = (name.filter(is_one), reply.unwrap_or(Given::Fixed));
                Some(Self { handle: Some(handle), name, reply })
            }
            _ => None,
        }
    }
}

fn given_by2(procedure: u32) -> Option<Given> {
    use nfs2::Procedure::{Create, Lookup, Mkdir};
    let found = nfs2::Procedure::from_code(procedure)?;
    matches!(found, Lookup | Create | Mkdir).then_some(Given::Fixed)
}

fn given_by3(procedure: u32) -> Option<Given> {
    match nfs3::Procedure::from_code(procedure)? {
        nfs3::Procedure::Lookup => Some(Given::Counted),
        nfs3::Procedure::Create | nfs3::Procedure::Mkdir => Some(Given::Optional),
        _ => None,
    }
}

/// The handle of a reply that is a success.
fn given<'a>(call: &FileCall<'_>, head: &'a [u8]) -> Option<&'a [u8]> {
    let mut r = Reader::new(head.get(REPLY_STATUS_AT..)?);
    if r.u32().ok()? != 0 {
        return None;
    }
    match call.reply {
        Given::Fixed => r.take(nfs2::HANDLE_LEN).ok(),
        Given::Counted => r.opaque(nfs3::HANDLE_LEN_MAX).ok(),
        Given::Optional => match r.u32().ok()? {
            1 => r.opaque(nfs3::HANDLE_LEN_MAX).ok(),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use wire::Procedure;
    use wire::nfs3::{DirOp, FileHandle, Procedure as P};
    use wire::rpc::{OpaqueAuth, ReplyHeader};
    use wire::xdr::Encode;

    use super::*;
    use crate::metrics::phase::Phases;
    use crate::metrics::procedures::Slots;

    fn handle(number: u16) -> FileHandle {
        let [high, low] = number.to_be_bytes();
        FileHandle::new(&[7, 7, 7, 7, 7, 7, 7, 7, high, low]).unwrap()
    }

    fn call(procedure: P, args: &impl Encode) -> Vec<u8> {
        let mut record = Vec::new();
        CallHeader::new(1, Procedure::Nfs3(procedure), OpaqueAuth::NONE).encode(&mut record);
        args.encode(&mut record);
        record
    }

    /// A reply that is a success, and what follows its status.
    fn reply(results: &impl Encode) -> Vec<u8> {
        let mut head = Vec::new();
        ReplyHeader::success(1).encode(&mut head);
        0_u32.encode(&mut head);
        results.encode(&mut head);
        head
    }

    fn count(files: &Files, record: &[u8], head: &[u8]) {
        let served = Served {
            slot: Slots::new().of(record),
            failure: None,
            received_bytes: 100,
            sent_bytes: 50,
            phases: Phases { store: Nanos::from_millis(2), ..Phases::default() },
        };
        files.count(record, head, &served);
    }

    fn page(files: &Files) -> String {
        let mut page = Page::default();
        files.write(&mut page);
        page.into_string()
    }

    #[test]
    fn files_have_the_names_under_which_they_were_looked_up() {
        let files = Files::new();
        let (root, dir, file) = (handle(1), handle(2), handle(3));
        for (above, name, found) in [(root, &b"dir"[..], dir), (dir, b"a\nb", file)] {
            let call = call(P::Lookup, &DirOp { dir: above, name });
            count(&files, &call, &reply(&found));
        }
        for _ in 0..3 {
            count(&files, &call(P::Getattr, &file), &reply(&0_u32));
        }
        let path = |of| files.path(&call(P::Getattr, &of));
        assert_eq!(path(file).as_deref(), Some("../dir/a?b"));
        assert_eq!(path(handle(9)).as_deref(), Some("handle ..0707070707070009"));
        let page = page(&files);
        assert!(page.contains("nfskit_file_calls_total{file=\"../dir/a?b\"} 3"), "{page}");
        assert!(page.contains("nfskit_file_calls_total{file=\"../dir\"} 1"), "{page}");
        assert!(page.contains("nfskit_file_calls_total{file=\"handle ..070707070707"), "{page}");
        assert!(page.contains("nfskit_file_seconds_total{file=\"../dir/a?b\"} 0.006"), "{page}");
        assert!(page.contains("nfskit_file_received_bytes_total{file=\"../dir/a?b\"} 300"));
    }

    #[test]
    fn there_are_no_more_files_than_places_and_the_last_stay() {
        let files = Files::new();
        for number in 0..2000 {
            count(&files, &call(P::Getattr, &handle(number)), &reply(&0_u32));
            count(&files, &call(P::Getattr, &handle(9999)), &reply(&0_u32));
        }
        let page = page(&files);
        let rows = page.lines().filter(|line| line.starts_with("nfskit_file_calls_total{"));
        assert_eq!(rows.count(), FILES_MAX);
        assert!(page.contains("} 2000\n"), "the one that goes on has all its calls");
    }

    #[test]
    fn what_is_no_call_or_fails_teaches_nothing() {
        let files = Files::new();
        let call = call(P::Lookup, &DirOp { dir: handle(1), name: b"x" });
        let whole = reply(&handle(2));
        for end in 0..call.len() {
            count(&files, &call[..end], &whole);
        }
        for end in 0..whole.len() {
            count(&files, &call, &whole[..end]);
        }
        assert_eq!(files.0.lock().names.len(), 0);
        count(&files, &call, &whole);
        assert_eq!(files.0.lock().names.len(), 1);
    }
}
