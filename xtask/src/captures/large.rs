//! Large captures: how fast they are read, beside tshark, and in how much memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::compare::{by_us, seconds_of_tshark};
use super::{Kind, Made, make, written};
use crate::host::report::Report;

const PEER: &str = "nfskit trace";
const WRITES_BYTES: u64 = 1_000_000_000;
/// tshark takes a minute for it.
const METADATA_BYTES: u64 = 300_000_000;
const STREAM_BYTES: u64 = 20_000_000_000;
const MEMORY_MIB_MAX: u64 = 300;
/// What is wanted: bytes and packets a second, and how many times tshark's speed.
const WRITES_MIN: Speed = Speed { gigabytes: 1.0, megapackets: 0.0, tsharks: 30.0 };
const METADATA_MIN: Speed = Speed { gigabytes: 0.0, megapackets: 3.0, tsharks: 30.0 };
/// The best of so many runs counts, and of one of tshark, which takes long.
const RUNS: usize = 5;

/// Measures all of them.
pub(super) fn measure(report: &mut Report, scratch: &Path, nfskit: &Path) {
    let file = scratch.join("large.pcap");
    report.check(PEER, "1 GB of WRITEs", || {
        let made = make(Kind::Writes, WRITES_BYTES, &file)?;
        speed(nfskit, &file, made, WRITES_MIN)
    });
    report.check(PEER, "0.3 GB of metadata", || {
        let made = make(Kind::Metadata, METADATA_BYTES, &file)?;
        speed(nfskit, &file, made, METADATA_MIN)
    });
    report.check(PEER, "20 GB from standard input, in 300 MiB", || memory(nfskit));
}

/// In a second, and beside tshark.
#[derive(Clone, Copy, Debug)]
struct Speed {
    gigabytes: f64,
    megapackets: f64,
    tsharks: f64,
}

fn speed(nfskit: &Path, file: &Path, made: Made, least: Speed) -> Result<String, String> {
    let mut seconds: f64 = f64::INFINITY;
    for _ in 0..RUNS {
        let (found, taken) = by_us(nfskit, [file])?;
        if found["replies"] != made.calls {
            return Err(format!("{} calls were made, {} found", made.calls, found["replies"]));
        }
        seconds = seconds.min(taken);
    }
    let theirs = seconds_of_tshark(file)?;
    std::fs::remove_file(file).map_err(|cause| cause.to_string())?;
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let found = Speed {
        gigabytes: made.bytes as f64 / 1e9 / seconds,
        megapackets: made.packets as f64 / 1e6 / seconds,
        tsharks: theirs / seconds,
    };
    let sizes = format!(
        "{:.2} GB/s, {:.2} M packets/s, {:.1} times tshark's speed ({theirs:.1} s)",
        found.gigabytes, found.megapackets, found.tsharks
    );
    let is_enough = found.gigabytes >= least.gigabytes
        && found.megapackets >= least.megapackets
        && found.tsharks >= least.tsharks;
    match is_enough {
        true => Ok(sizes),
        false => Err(sizes),
    }
}

/// A capture that is made as it is read, with more files and connections than are distinguished.
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
    let made = written("-", Kind::Changing, STREAM_BYTES, &mut watched);
    drop(watched);
    let outcome = child.wait().map_err(|error| format!("waiting failed: {error}"))?;
    let made = made?;
    let seconds = started.elapsed().as_secs_f64();
    let mib = peak_kib / 1024;
    let (packets, calls) = (made.packets, made.calls);
    let sizes = format!("{packets} packets, {calls} calls: {mib} MiB at most, {seconds:.0} s");
    match outcome.success() && mib > 0 && mib <= MEMORY_MIB_MAX {
        true => Ok(sizes),
        false => Err(sizes),
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
