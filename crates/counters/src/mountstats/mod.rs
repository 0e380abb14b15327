//! `/proc/self/mountstats`: each NFS mount of this host by itself, with bytes, events, transports,
//! and of each procedure its calls, bytes and times.
//!
//! - [`event`]: what the mount's inodes and pages have seen.
//! - [`transport`]: connections and their queues.
//! - [`mod@operation`]: its procedures.
//! - [`printed`]: what the program of that name makes of it.
//!
//! A head says how old the format is (`statvers=1.0` or `1.1`); what that adds is read by its
//! presence. Mounts of other file systems have a head only, and are left out.

pub mod event;
pub mod operation;
pub mod printed;
pub mod transport;

use std::collections::BTreeMap;

pub use event::{Bytes, Event, Events};
pub use operation::Operation;
pub use transport::Transport;

use super::fields::{Line, Word};
use super::problem::{Found, Problem, Wrong};
use super::rpc::{NUMBERS_MAX, bounded};

/// NFS mounts of one text, at most.
pub const MOUNTS_MAX: usize = 16_384;

/// Transports and operations of one mount, at most: `nconnect` ends at 16, and version 4.2 has
/// fewer than 80 operations.
pub const EACH_MAX: usize = 512;

/// One NFS mount since it was made.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Mount {
    /// `server:/path`.
    pub device: String,
    /// Where it is mounted, without the kernel's escapes.
    pub point: String,
    /// `nfs` or `nfs4`.
    pub kind: String,
    /// Of the text: `1.0` or `1.1`.
    pub format: String,
    pub options: Vec<String>,
    pub age_s: Option<u64>,
    /// `sec:` and `caps:` as they are.
    pub security: Option<String>,
    pub capabilities: Option<String>,
    pub events: Option<Events>,
    pub bytes: Option<Bytes>,
    /// `fsc:`: what the cache on a local disk has done.
    pub local_cache: Option<Vec<u64>>,
    /// Program and version, as `100003/3`.
    pub program: Option<(u64, u64)>,
    /// One for each connection.
    pub transports: Vec<Transport>,
    /// By the names in the text (`GETATTR`), in its order.
    pub operations: Vec<Operation>,
}

impl Mount {
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name.eq_ignore_ascii_case(name))
    }

    /// The value of an option (`rsize`), empty for one without (`hard`).
    pub fn option(&self, name: &str) -> Option<&str> {
        let with = |option: &'_ String| {
            let (key, _) = option.split_once('=').unwrap_or((option, ""));
            key == name
        };
        let found = self.options.iter().find(|option| with(option))?;
        Some(found.split_once('=').map_or("", |(_, value)| value))
    }

    /// Whether it is what the program `mountstats` has printed, which shows one of the connections.
    pub fn is_printed(&self) -> bool {
        self.format == printed::FORMAT
    }

    /// The version of NFS: what the calls are made in, or what the options say.
    pub fn version(&self) -> Option<u64> {
        let of_options = || self.option("vers")?.split('.').next()?.parse().ok();
        self.program.map(|(_, version)| version).or_else(of_options)
    }

    /// What the procedures have done since `before`, which is the same mount some time ago.
    pub fn operations_since(&self, before: &Self) -> Vec<Operation> {
        let older: BTreeMap<&str, &Operation> =
            before.operations.iter().map(|one| (one.name.as_str(), one)).collect();
        let since = |now: &Operation| match older.get(now.name.as_str()) {
            Some(before) => now.since(before),
            None => now.clone(),
        };
        self.operations.iter().map(since).collect()
    }
}

/// The mount that a path is the mount point of; of several on each other the last, which covers the
/// others.
pub fn at<'a>(mounts: &'a [Mount], point: &str) -> Option<&'a Mount> {
    let bare = |path: &str| match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    };
    let wanted = bare(point);
    mounts.iter().rev().find(|mount| bare(&mount.point) == wanted)
}

/// Reads the file's content. A host without NFS mounts gives none.
///
/// # Errors
/// The first line of an NFS mount that is broken; [`Wrong::Nothing`] where there is not even
/// another mount.
pub fn read(text: &[u8]) -> Result<Vec<Mount>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut reader = Reader::default();
    for line in Line::all(&text) {
        bounded(&line)?;
        reader.take(line)?;
    }
    if !reader.has_heads {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(reader.mounts)
}

#[derive(Debug, Default)]
struct Reader {
    mounts: Vec<Mount>,
    has_heads: bool,
    /// The lines belong to the last of `mounts`.
    is_inside: bool,
    /// After `per-op statistics`.
    in_operations: bool,
}

impl Reader {
    fn take(&mut self, line: Line<'_>) -> Result<(), Problem> {
        let mut words = line;
        let first = words.word();
        let is_head =
            matches!(first.text, "device" | "no") && words.trimmed().contains(" with fstype");
        if is_head {
            return self.head(words);
        }
        let Some(mount) = self.mounts.last_mut().filter(|_| self.is_inside) else { return Ok(()) };
        if self.in_operations {
            // What follows the operations some day is no operation.
            if let Some(name) = first.text.strip_suffix(':') {
                room(&mount.operations, "operations of a mount", first)?;
                mount.operations.push(Operation::read(name, &mut words)?);
            }
            return Ok(());
        }
        match first.text {
            "opts:" => mount.options = split(words.trimmed()),
            "age:" => mount.age_s = Some(words.number()?),
            "sec:" => mount.security = Some(words.trimmed().to_owned()),
            "caps:" => mount.capabilities = Some(words.trimmed().to_owned()),
            "events:" => mount.events = Some(Events::read(&mut words)?),
            "bytes:" => mount.bytes = Some(Bytes::read(&mut words)?),
            "fsc:" => mount.local_cache = Some(words.numbers("fsc", 0, NUMBERS_MAX)?),
            "RPC" => mount.program = program(&mut words)?,
            "xprt:" => {
                room(&mount.transports, "transports of a mount", first)?;
                mount.transports.push(Transport::read(&mut words)?);
            }
            "per-op" => self.in_operations = true,
            _ => {}
        }
        Ok(())
    }

    /// `device SERVER:/PATH mounted on /POINT with fstype nfs statvers=1.1`; a rootfs has `no
    /// device` instead.
    fn head(&mut self, mut words: Line<'_>) -> Result<(), Problem> {
        (self.has_heads, self.is_inside, self.in_operations) = (true, false, false);
        let device = words.word();
        for (text, expected) in [("mounted", "`mounted on`"), ("on", "`mounted on`")] {
            let word = words.word();
            if word.text != text {
                return Err(word.unexpected(expected));
            }
        }
        let point = words.word();
        let [_, _, kind] = [words.word(), words.word(), words.word()];
        if !matches!(kind.text, "nfs" | "nfs4") {
            return Ok(());
        }
        let format = words.word();
        let Some(format) = format.text.strip_prefix("statvers=") else {
            return Err(format.unexpected("statvers="));
        };
        if self.mounts.len() == MOUNTS_MAX {
            return Err(device.wrong(Wrong::TooMany { what: "NFS mounts", max: MOUNTS_MAX }));
        }
        self.mounts.push(Mount {
            device: unescape(device.text),
            point: unescape(point.text),
            kind: kind.text.to_owned(),
            format: format.to_owned(),
            ..Mount::default()
        });
        self.is_inside = true;
        Ok(())
    }
}

/// Refuses one more than a mount may have.
fn room<T>(list: &[T], what: &'static str, at: Word<'_>) -> Result<(), Problem> {
    match list.len() {
        EACH_MAX.. => Err(at.wrong(Wrong::TooMany { what, max: EACH_MAX })),
        _ => Ok(()),
    }
}

pub(super) fn split(list: &str) -> Vec<String> {
    list.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// `iostats version: 1.0  p/v: 100003/3 (nfs)`.
fn program(words: &mut Line<'_>) -> Result<Option<(u64, u64)>, Problem> {
    while let Some(word) = words.next() {
        if word.text != "p/v:" {
            continue;
        }
        let both = words.word();
        let parsed = both
            .text
            .split_once('/')
            .and_then(|(program, version)| Some((program.parse().ok()?, version.parse().ok()?)));
        return parsed.map(Some).ok_or_else(|| both.unexpected("PROGRAM/VERSION"));
    }
    Err(Problem {
        line: words.number,
        column: 1,
        wrong: Wrong::Unexpected { expected: "p/v: PROGRAM/VERSION", found: Found::End },
    })
}

/// Undoes the octal escapes of blanks and backslashes.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match octal.filter(|_| *first == b'\\') {
            Some(byte) => {
                plain.push(byte);
                rest = &tail[3..];
            }
            None => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests;
