//! The same capture read by tshark and by us.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::calls;
use crate::host::child::{finish, text};

/// For both programs and the largest capture.
pub(super) const WITHIN: Duration = Duration::from_secs(600);
/// tshark prints microseconds.
const ROUNDING_US: f64 = 0.6;

/// What is known of a procedure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    calls: u64,
    min_us: f64,
    max_us: f64,
    mean_us: f64,
}

type Rows = BTreeMap<String, Row>;

/// The options with which tshark finds all that there is. A port of a client may be one that it
/// knows for something else (802 for TLS, 873 for rsync): it is to look first at what is sent
/// there.
pub(super) fn tshark() -> Command {
    let mut command = Command::new("tshark");
    command.arg("-n");
    let options =
        ["tcp.reassemble_out_of_order", "tcp.try_heuristic_first", "udp.try_heuristic_first"];
    options.iter().for_each(|option| {
        command.arg("-o").arg(format!("{option}:TRUE"));
    });
    command
}

/// What tshark finds.
fn by_tshark(capture: &Path, version: u32) -> Result<Rows, String> {
    let mut command = tshark();
    command.args(["-q", "-r"]).arg(capture);
    // It counts replies that come twice, too, by default.
    command.args(["-z", &format!("rpc,srt,100003,{version},not rpc.dup")]);
    Ok(table(&timed(&mut command)?.0))
}

/// The seconds that tshark takes for the same, without the words that make it exact.
pub(super) fn seconds_of_tshark(capture: &Path) -> Result<f64, String> {
    let mut command = Command::new("tshark");
    command.args(["-q", "-n", "-r"]).arg(capture).args(["-z", "rpc,srt,100003,3"]);
    timed(&mut command).map(|(_, seconds)| seconds)
}

/// What a program prints, and the seconds until it closed its output.
fn timed(command: &mut Command) -> Result<(String, f64), String> {
    let start = Instant::now();
    let finished = finish(command, WITHIN, |output| (text(output), start.elapsed()))?;
    let (text, taken) = finished.value;
    Ok((text, taken.as_secs_f64()))
}

/// The lines of tshark's table: index, procedure, calls, shortest, longest, mean, sum, in seconds.
fn table(text: &str) -> Rows {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, name, calls, min, max, mean, ..] = words[..] else { return None };
        let us = |word: &str| word.parse::<f64>().ok().map(|seconds| seconds * 1e6);
        let row = Row {
            calls: calls.parse().ok()?,
            min_us: us(min)?,
            max_us: us(max)?,
            mean_us: us(mean)?,
        };
        Some((name.to_owned(), row))
    });
    rows.collect()
}

/// What we find.
pub(super) fn by_us<F: AsRef<OsStr>>(
    nfskit: &Path,
    captures: impl IntoIterator<Item = F>,
) -> Result<(Value, f64), String> {
    let mut command = Command::new(nfskit);
    command.arg("trace").args(captures).args(["--json", "-"]);
    let (text, seconds) = timed(&mut command)?;
    let value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    Ok((value, seconds))
}

/// Our rows of a version of NFS.
fn rows(found: &Value, version: u32) -> Rows {
    let program = format!("NFS v{version}");
    let all = found["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = all.iter().filter(|row| row["program"] == *program && row["replies"] != 0);
    own.map(|row| {
        let number = |name: &str| row["latency_us"][name].as_f64().unwrap_or(f64::NAN);
        let name = row["operation"].as_str().unwrap_or("?").to_owned();
        let calls = row["replies"].as_u64().unwrap_or(0);
        let [min_us, max_us, mean_us] = ["min", "max", "mean"].map(number);
        (name, Row { calls, min_us, max_us, mean_us })
    })
    .collect()
}

/// All COMPOUNDs of version 4 as the one procedure that they are.
fn compounds(rows: Rows) -> Rows {
    let (null, others): (Rows, Rows) = rows.into_iter().partition(|(name, _)| name == "NULL");
    let mut joined = null;
    let calls: u64 = others.values().map(|row| row.calls).sum();
    if calls > 0 {
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let sum: f64 = others.values().map(|row| row.mean_us * row.calls as f64).sum();
        let row = Row {
            calls,
            min_us: others.values().map(|row| row.min_us).fold(f64::INFINITY, f64::min),
            max_us: others.values().map(|row| row.max_us).fold(0.0, f64::max),
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            mean_us: sum / calls as f64,
        };
        joined.insert("COMPOUND".to_owned(), row);
    }
    joined
}

/// Compares both; says how many calls of how many procedures were alike.
pub(super) fn compare(nfskit: &Path, capture: &Path, version: u32) -> Result<String, String> {
    let theirs = by_tshark(capture, version)?;
    let (found, _) = by_us(nfskit, [capture])?;
    let mut ours = rows(&found, version);
    if version == 4 {
        ours = compounds(ours);
    }
    if theirs.is_empty() {
        return Err("tshark found no call".to_owned());
    }
    let differing: Vec<String> = theirs
        .keys()
        .chain(ours.keys().filter(|name| !theirs.contains_key(*name)))
        .filter(|name| !are_alike(theirs.get(*name), ours.get(*name)))
        .map(|name| format!("{name}: tshark {:?}, we {:?}", theirs.get(name), ours.get(name)))
        .collect();
    if !differing.is_empty() {
        return Err(differing.join("; "));
    }
    let count: u64 = ours.values().map(|row| row.calls).sum();
    let alone = calls::compare(nfskit, capture)?;
    Ok(format!("{count} calls of {} procedures, {alone}", ours.len()))
}

fn are_alike(theirs: Option<&Row>, ours: Option<&Row>) -> bool {
    let (Some(theirs), Some(ours)) = (theirs, ours) else { return false };
    let near = |a: f64, b: f64| (a - b).abs() <= ROUNDING_US;
    theirs.calls == ours.calls
        && near(theirs.min_us, ours.min_us)
        && near(theirs.max_us, ours.max_us)
        && near(theirs.mean_us, ours.mean_us)
}

/// The operations inside COMPOUNDs, by tshark's fields and by us.
pub(super) fn compare_operations(nfskit: &Path, capture: &Path) -> Result<String, String> {
    let mut command = tshark();
    command.arg("-r").arg(capture);
    command.args(["-Y", "rpc.msgtyp == 0 && nfs.procedure_v4 == 1", "-T", "fields"]);
    command.args(["-E", "occurrence=a", "-e", "nfs.opcode"]);
    let finished = finish(&mut command, WITHIN, text)?;
    let mut theirs: BTreeMap<u64, u64> = BTreeMap::new();
    let words = finished.value.split(|c: char| !c.is_ascii_digit());
    for number in words.filter_map(|word| word.parse().ok()) {
        *theirs.entry(number).or_default() += 1;
    }
    let (found, _) = by_us(nfskit, [capture])?;
    let counts = found["v4_operations"].as_object();
    let counts = counts.map(|counts| counts.values().filter_map(Value::as_u64).collect());
    // Ours have names, theirs numbers: of each sort as many.
    let mut ours: Vec<u64> = counts.unwrap_or_default();
    let mut of_theirs: Vec<u64> = theirs.values().copied().collect();
    ours.sort_unstable();
    of_theirs.sort_unstable();
    match of_theirs == ours && !ours.is_empty() {
        true => Ok(format!("{} operations of {} sorts", ours.iter().sum::<u64>(), ours.len())),
        false => Err(format!("tshark {theirs:?} operations, we {}", found["v4_operations"])),
    }
}
