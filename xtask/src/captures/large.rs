//! Large captures: how fast they are read, beside tshark, and in how much memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::compare::{by_tshark, by_us};
use super::{Kind, make, written};
use crate::host::report::Report;

const PEER: &str = "nfskit trace";
const SPEED_BYTES: u64 = 1_000_000_000;
const STREAM_BYTES: u64 = 20_000_000_000;
const MEMORY_MIB_MAX: u64 = 300;
const TIMES_TSHARK: f64 = 30.0;

/// Measures all of them.
pub(super) fn measure(report: &mut Report, scratch: &Path, nfskit: &Path) {
    report.check(PEER, "1 GB of WRITEs", || speed(scratch, nfskit, Kind::Writes));
    report.check(PEER, "1 GB of metadata", || speed(scratch, nfskit, Kind::Metadata));
    report.check(PEER, "20 GB from standard input, in 300 MiB", || memory(nfskit));
}

fn speed(scratch: &Path, nfskit: &Path, kind: Kind) -> Result<String, String> {
    let file = scratch.join("large.pcap");
    let made = make(kind, SPEED_BYTES, &file)?;
    let mut seconds: f64 = f64::INFINITY;
    for _ in 0..3 {
        let (found, taken) = by_us(nfskit, &file)?;
        if found["replies"] != made.calls {
            return Err(format!("{} calls were made, {} found", made.calls, found["replies"]));
        }
        seconds = seconds.min(taken);
    }
    let (_, theirs) = by_tshark(&file, 3)?;
    std::fs::remove_file(&file).map_err(|cause| cause.to_string())?;
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let (bytes, packets) = (made.bytes as f64 / 1e9, made.packets as f64 / 1e6);
    let said = format!(
        "{:.2} GB/s, {:.2} M packets/s, {:.0} times tshark's speed",
        bytes / seconds,
        packets / seconds,
        theirs / seconds
    );
    match theirs / seconds >= TIMES_TSHARK {
        true => Ok(said),
        false => Err(said),
    }
}

/// A capture that is made as it is read.
fn memory(nfskit: &Path) -> Result<String, String> {
    let mut command = Command::new(nfskit);
    command.args(["trace", "-", "--json", "-"]);
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("nfskit does not start: {error}"))?;
    let Some(input) = child.stdin.take() else { return Err("no input".to_owned()) };
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let mut watched = Watched { inner: input, status, peak_kib: &mut peak_kib, left: 0 };
    let made = written("-", Kind::Writes, STREAM_BYTES, &mut watched);
    drop(watched);
    let outcome = child.wait().map_err(|error| format!("waiting failed: {error}"))?;
    made?;
    let seconds = started.elapsed().as_secs_f64();
    let mib = peak_kib / 1024;
    let said = format!("{mib} MiB at most, {seconds:.0} s");
    match outcome.success() && mib > 0 && mib <= MEMORY_MIB_MAX {
        true => Ok(said),
        false => Err(said),
    }
}

/// A pipe to a program, whose memory is looked at now and then.
struct Watched<'p, W> {
    inner: W,
    status: String,
    peak_kib: &'p mut u64,
    left: usize,
}

/// Bytes between two looks.
const LOOK_BYTES: usize = 64 << 20;

impl<W: std::io::Write> std::io::Write for Watched<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.left = self.left.saturating_sub(written);
        if self.left == 0 {
            self.left = LOOK_BYTES;
            let status = std::fs::read_to_string(&self.status).unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = peak.and_then(|line| line.split_whitespace().next()?.parse().ok());
            *self.peak_kib = (*self.peak_kib).max(kib.unwrap_or(0));
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
