//! What a server does before it says that something is stable: its sync calls, as strace sees
//! them, beside the calls that it got.
//!
//! Sync operations of an io_uring are no system calls, and not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use wire::nfs3::StableHow;

use super::client::jobs::bulk::{Span, Write};
use super::client::jobs::names::CreateRemove;
use super::client::pipeline::Until;
use super::fixture::Site;
use super::measure::write_whole;
use super::servers::Peer;
use crate::host::child::Service;
use crate::host::nfskit::{START_WITHIN, STOP_WITHIN};
use crate::host::tools;

const WATCHED: &str = "trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync,pwritev2,pwrite64";
/// Of a file whose writes are stable when they return (O_DSYNC in fdinfo's octal flags).
const DSYNC: u32 = 0o10_000;
const WINDOW: usize = 16;
const MIB: u64 = 1 << 20;

/// What was called, how often, and the syncs that it led to.
#[derive(Debug)]
pub(crate) struct Syncs {
    server: &'static str,
    requests: &'static str,
    calls: u64,
    by_name: BTreeMap<String, u64>,
}

impl Syncs {
    pub(crate) fn line(&self) -> String {
        let counts: Vec<String> =
            self.by_name.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let counts = if counts.is_empty() { "no sync".to_owned() } else { counts.join(", ") };
        format!("{:<14} {:<32} {:>4} calls: {counts}", self.server, self.requests, self.calls)
    }

    pub(crate) fn to_json(&self) -> Value {
        let Self { server, requests, calls, by_name } = self;
        json!({ "server": server, "asked": requests, "calls": calls, "syncs": by_name })
    }
}

/// Watches a server through the three kinds of change.
pub(crate) fn watch(peer: &Peer, site: &mut Site, scratch: &Path) -> Result<Vec<Syncs>, String> {
    let strace = tools::find("strace", "strace")?;
    let span = |block_bytes, stable| Span { block_bytes, file_bytes: MIB, stable, again: false };
    let file = site.session.create(site.work, "watched")?;
    // All blocks are there, so that a stable write has its data to sync and little else.
    write_whole(&mut site.pipeline, file, span(64 << 10, StableHow::Unstable), WINDOW)?;
    let mut found = Vec::new();
    let mut see = |requests, work: &mut dyn FnMut(&mut Site) -> Result<u64, String>| {
        let log = scratch.join("strace.log");
        let mut command = Command::new(&strace);
        command.args(["-f", "-e", WATCHED, "-o"]).arg(&log).args(["-p", &peer.pid.to_string()]);
        let service = Service::start_until(&mut command, START_WITHIN, "attached")?;
        let calls = work(site)?;
        // It ends by the signal that we send, which is no failure.
        let _ = service.stop(STOP_WITHIN);
        let text = fs::read_to_string(&log).map_err(|error| format!("strace: {error}"))?;
        let by_name = counts(&text, &synced_descriptors(peer.pid));
        found.push(Syncs { server: peer.name.label(), requests, calls, by_name });
        Ok::<_, String>(())
    };
    see("WRITE 4 KiB FILE_SYNC x16", &mut |site| {
        let mut job = Write::new(&[file], span(4 << 10, StableHow::FileSync));
        Ok(site.pipeline.run(&mut job, WINDOW, Until::Done)?.amount)
    })?;
    see("WRITE 64 KiB UNSTABLE x16, COMMIT", &mut |site| {
        let span = span(64 << 10, StableHow::Unstable);
        write_whole(&mut site.pipeline, file, span, WINDOW)?;
        Ok(span.file_bytes / u64::from(span.block_bytes) + 1)
    })?;
    see("CREATE and REMOVE x16", &mut |site| {
        let mut job = CreateRemove::new(site.work);
        let some = Until::Elapsed(Duration::from_millis(50));
        let run = site.pipeline.run(&mut job, WINDOW, some)?;
        job.end();
        Ok(run.amount + site.pipeline.run(&mut job, WINDOW, Until::Done)?.amount)
    })?;
    site.session.remove(site.work, "watched")?;
    Ok(found)
}

/// Descriptors whose every write is a sync.
fn synced_descriptors(pid: u32) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let is_synced = |entry: &fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| flags & DSYNC != 0)
    };
    entries.filter(is_synced).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Calls by name in a log of strace; of writes only those that sync.
fn counts(log: &str, synced: &BTreeSet<String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let Some((name, rest)) = call.split_once('(') else { continue };
        let is_call = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let descriptor = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let (syncs, how) = match name {
            "pwritev2" => (rest.contains("RWF_SYNC") || rest.contains("RWF_DSYNC"), ""),
            "pwrite64" => (synced.contains(descriptor), " to O_DSYNC"),
            _ => (true, ""),
        };
        if is_call && syncs {
            *counts.entry(format!("{name}{how}")).or_insert(0) += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_interrupted_in_the_log_counts_once() {
        let log = "12 fdatasync(7 <unfinished ...>\n\
                   13 fsync(9)                        = 0\n\
                   12 <... fdatasync resumed>)          = 0\n\
                   12 pwritev2(7, [], 1, 0, 0) = 1\n\
                   12 pwritev2(7, [], 1, 0, RWF_DSYNC) = 1\n\
                   12 pwrite64(7, \"\", 1, 0)         = 1\n\
                   12 pwrite64(17, \"\", 1, 0)        = 1\n\
                   14 +++ exited with 0 +++\n";
        let expected =
            [("fdatasync", 1), ("fsync", 1), ("pwrite64 to O_DSYNC", 1), ("pwritev2", 1)];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        let synced = BTreeSet::from(["17".to_owned()]);
        assert_eq!(counts(log, &synced), BTreeMap::from(expected));
    }
}
