//! What is measured, on whom, and what is to be reached.

use super::client::jobs::small::Kind;
use super::servers::Name;

/// One line of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    /// Calls outstanding.
    pub(crate) window: usize,
    pub(crate) unit: Unit,
    /// Whom it is measured on, in the order of the first run; the first is ours.
    pub(crate) peers: &'static [Name],
    pub(crate) target: Target,
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Small(Kind),
    Read {
        block_bytes: u32,
    },
    /// UNSTABLE, and a COMMIT at the end.
    Write {
        block_bytes: u32,
    },
    /// FILE_SYNC of 4 KiB.
    FileSync {
        files: usize,
    },
    /// The same, UNSTABLE: what the processor takes of it, for whatever makes it stable.
    Unstable {
        files: usize,
    },
    CreateRemove,
    List(Cache),
}

/// What was read of a directory before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cache {
    /// Nothing by a fresh server; the kernel's caches are dropped, where that is allowed.
    Cold,
    Warm,
}

/// What a rate counts, and what CPU time is divided by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    Bytes,
    Calls,
    Entries,
}

/// What is to be reached; what is None has no target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Target {
    /// Throughput, ours to Ganesha's, at least.
    pub(crate) throughput: Option<f64>,
    /// The same on two cores, where it differs.
    pub(crate) throughput_unpinned: Option<f64>,
    /// Server CPU for each unit, ours to Ganesha's, at most.
    pub(crate) cpu: Option<f64>,
    /// Server CPU for each unit, ours to unfs3's, at most.
    pub(crate) cpu_of_unfs3: Option<f64>,
    /// Median response time, ours to Ganesha's, at most.
    pub(crate) p50: Option<f64>,
    /// unfs3's server CPU on a machine of two cores of an AMD EPYC, measured on one of them: us
    /// for each call. It stands in where unfs3 cannot be installed.
    pub(crate) unfs3_us: Option<f64>,
    /// Throughput, ours to that of local system calls, at least.
    pub(crate) of_local: Option<f64>,
    /// Throughput, with a write log to without one, at least.
    pub(crate) of_plain: Option<f64>,
    /// Calls a second, at least.
    pub(crate) rate: Option<f64>,
    /// Server CPU: us for each call, or s for each GiB, at most.
    pub(crate) cpu_each: Option<f64>,
}

const NONE: Target = Target {
    throughput: None,
    throughput_unpinned: None,
    cpu: None,
    cpu_of_unfs3: None,
    unfs3_us: None,
    p50: None,
    of_local: None,
    of_plain: None,
    rate: None,
    cpu_each: None,
};
const SMALL_64: Target = Target {
    throughput: Some(3.0),
    throughput_unpinned: Some(4.0),
    cpu: Some(0.25),
    cpu_of_unfs3: Some(1.0),
    ..NONE
};
const NULL_64: Target = Target { unfs3_us: Some(1.4), ..SMALL_64 };
const GETATTR_64: Target = Target { unfs3_us: Some(8.0), ..SMALL_64 };
const SMALL_1: Target = Target { throughput: Some(1.3), p50: Some(0.75), cpu: Some(0.5), ..NONE };
const READ: Target = Target { throughput: Some(1.7), cpu: Some(0.45), ..NONE };
const WRITE: Target =
    Target { throughput: Some(1.3), cpu: Some(0.45), of_local: Some(0.9), ..NONE };
const FILE_SYNC: Target = Target { throughput: Some(4.0), cpu: Some(0.3), ..NONE };
const LOGGED: Target = Target { throughput: Some(6.0), cpu: Some(0.3), ..NONE };
const LOGGED_1: Target = Target { throughput: Some(1.3), ..NONE };
const BESIDE_LOG: Target = Target { of_plain: Some(0.97), ..NONE };
const CREATE_REMOVE_1: Target = Target { throughput: Some(0.4), ..NONE };
const CREATE_REMOVE: Target = Target { throughput: Some(2.5), cpu: Some(0.4), ..NONE };
const LIST_COLD: Target = Target { throughput: Some(0.5), ..NONE };
const LIST_WARM: Target = Target { throughput: Some(1.0), cpu: Some(1.0), ..NONE };
const MEMORY_SMALL: Target = Target { rate: Some(250_000.0), cpu_each: Some(2.0), ..NONE };
const MEMORY_BULK: Target = Target { cpu_each: Some(0.35), ..NONE };

const SERVERS: &[Name] = &[Name::Ours, Name::Ganesha, Name::Unfs3];
const AND_LOCAL: &[Name] = &[Name::Ours, Name::Ganesha, Name::Unfs3, Name::Local];
const UNSYNCED: &[Name] = &[Name::OursUnsynced, Name::Ganesha, Name::Unfs3];
const WITH_LOG: &[Name] = &[Name::OursLog, Name::Ganesha, Name::Ours];
const MEMORY: &[Name] = &[Name::OursMemory];

const KIB_64: u32 = 64 << 10;
const MIB: u32 = 1 << 20;

/// All rows. The cold listing comes first, before its server has seen the directory.
pub(crate) const ROWS: &[Row] = &[
    list("READDIRPLUS cold", Cache::Cold, LIST_COLD),
    list("READDIRPLUS warm", Cache::Warm, LIST_WARM),
    small("NULL x64", Kind::Null, 64, NULL_64),
    small("GETATTR x64", Kind::Getattr, 64, GETATTR_64),
    small("ACCESS x64", Kind::Access, 64, SMALL_64),
    small("LOOKUP x64", Kind::Lookup, 64, SMALL_64),
    small("NULL x1", Kind::Null, 1, SMALL_1),
    small("GETATTR x1", Kind::Getattr, 1, SMALL_1),
    small("ACCESS x1", Kind::Access, 1, SMALL_1),
    small("LOOKUP x1", Kind::Lookup, 1, SMALL_1),
    bulk("READ 64 KiB x16", Work::Read { block_bytes: KIB_64 }, SERVERS, READ),
    bulk("READ 1 MiB x16", Work::Read { block_bytes: MIB }, SERVERS, READ),
    bulk("WRITE 64 KiB x16 + COMMIT", Work::Write { block_bytes: KIB_64 }, AND_LOCAL, WRITE),
    bulk("WRITE 1 MiB x16 + COMMIT", Work::Write { block_bytes: MIB }, AND_LOCAL, WRITE),
    bulk(
        "WRITE 64 KiB x16 + COMMIT, write log",
        Work::Write { block_bytes: KIB_64 },
        WITH_LOG,
        BESIDE_LOG,
    ),
    bulk(
        "WRITE 1 MiB x16 + COMMIT, write log",
        Work::Write { block_bytes: MIB },
        WITH_LOG,
        BESIDE_LOG,
    ),
    stable("FILE_SYNC 4 KiB x16, 1 file", 1),
    stable("FILE_SYNC 4 KiB x16, 16 files", 16),
    logged("FILE_SYNC 4 KiB x16, 1 file, write log", 1, 16, LOGGED),
    logged("FILE_SYNC 4 KiB x16, 16 files, write log", 16, 16, LOGGED),
    logged("FILE_SYNC 4 KiB x1, write log", 1, 1, LOGGED_1),
    Row {
        work: Work::Unstable { files: 16 },
        target: NONE,
        ..logged("UNSTABLE 4 KiB x16, 16 files, write log", 16, 16, LOGGED)
    },
    names("CREATE+REMOVE x16", SERVERS),
    Row { window: 1, target: CREATE_REMOVE_1, ..names("CREATE+REMOVE x1", SERVERS) },
    names("CREATE+REMOVE x16, metadata sync off", UNSYNCED),
    Row { peers: MEMORY, ..small("memory: NULL x64", Kind::Null, 64, MEMORY_SMALL) },
    Row { peers: MEMORY, ..small("memory: GETATTR x64", Kind::Getattr, 64, MEMORY_SMALL) },
    bulk("memory: READ 64 KiB x16", Work::Read { block_bytes: KIB_64 }, MEMORY, MEMORY_BULK),
    bulk("memory: WRITE 64 KiB x16", Work::Write { block_bytes: KIB_64 }, MEMORY, MEMORY_BULK),
];

/// Rows that are also measured with two connections on two cores.
pub(crate) const SCALED: &[&str] = &["NULL x64", "GETATTR x64", "READ 64 KiB x16"];
/// Two cores and two connections to one of each, at least.
pub(crate) const SCALING_TARGET: f64 = 1.7;

const fn small(name: &'static str, kind: Kind, window: usize, target: Target) -> Row {
    Row { name, work: Work::Small(kind), window, unit: Unit::Calls, peers: SERVERS, target }
}

const fn bulk(name: &'static str, work: Work, peers: &'static [Name], target: Target) -> Row {
    Row { name, work, window: 16, unit: Unit::Bytes, peers, target }
}

const fn stable(name: &'static str, files: usize) -> Row {
    let work = Work::FileSync { files };
    Row { name, work, window: 16, unit: Unit::Calls, peers: SERVERS, target: FILE_SYNC }
}

const fn logged(name: &'static str, files: usize, window: usize, target: Target) -> Row {
    Row { peers: WITH_LOG, window, target, ..stable(name, files) }
}

const fn names(name: &'static str, peers: &'static [Name]) -> Row {
    let (work, target) = (Work::CreateRemove, CREATE_REMOVE);
    Row { name, work, window: 16, unit: Unit::Calls, peers, target }
}

const fn list(name: &'static str, cache: Cache, target: Target) -> Row {
    let work = Work::List(cache);
    Row { name, work, window: 1, unit: Unit::Entries, peers: SERVERS, target }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_target() {
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        assert!(SCALED.iter().all(|name| names.contains(name)));
        for Row { name, target, .. } in ROWS {
            let has_one = target.throughput.or(target.cpu_each).or(target.of_plain).is_some();
            let is_floor = name.starts_with("UNSTABLE");
            assert!(has_one != is_floor, "{name}");
        }
    }
}
