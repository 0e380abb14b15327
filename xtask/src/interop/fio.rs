//! `nfskit serve` and fio's nfs engine (libnfs inside): many reads and writes outstanding, at
//! random and in sequence, each block with a checksum of its own.
//!
//! Three habits of the engine decide how it is used. It knows no fsync, so that fio can not write
//! and verify in one run. At the end of a run it gives up the calls that are still outstanding: so
//! the file is first written with one call at a time, and last read so; between, whatever came of
//! such calls, each block must be whole. And having given up calls, libnfs sometimes never ends its
//! unmount: it connects to the mount service, is answered, and sends nothing more. Such a run is
//! made again; that it happened is reported.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::host::child::{NO_END, finish, text};
use crate::host::nfskit::Server;
use crate::host::report::Report;
use crate::host::{last_lines, tools};

const PEER: &str = "fio";
/// Where, in the scratch folder, `provide` leaves the name of the engine for `check`.
const ENGINE: &str = "fio-engine";
/// Longer than a run takes, by far; all processes of a run are ended then.
const RUN_WITHIN: Duration = Duration::from_secs(20);
/// How often a run is made whose end does not come.
const ATTEMPTS: usize = 6;
const BUILD: &str = include_str!("scripts/fio-engine.sh");
/// The size of the file, and of the blocks that carry a checksum.
const COMMON: [&str; 6] = [
    "--name=nfskit",
    "--size=128m",
    "--filename=file",
    "--verify=crc32c",
    "--verify_interval=4096",
    "--output-format=json",
];

/// What each run does, and its own arguments; those that write do not read back at once.
const RUNS: [(&str, &[&str]); 6] = [
    ("writes, 1 outstanding", &["--rw=write", "--do_verify=0", "--bs=256k", "--iodepth=1"]),
    ("writes, 16 outstanding", &["--rw=write", "--do_verify=0", "--bs=64k", "--iodepth=16"]),
    ("random writes, 16", &["--rw=randwrite", "--do_verify=0", "--bs=4k", "--iodepth=16"]),
    ("reads and verifies, 16", &["--rw=read", "--bs=64k", "--iodepth=16"]),
    ("random reads, verifies, 16", &["--rw=randread", "--bs=4k", "--iodepth=16"]),
    ("reads and verifies all, 1", &["--rw=read", "--bs=256k", "--iodepth=1"]),
];

/// Finds or makes the engine; to be called where there is a network.
pub(super) fn provide(root: &Path, scratch: &Path) -> Result<(), String> {
    let engine = engine(root).unwrap_or_else(|why| format!("missing {why}"));
    std::fs::write(scratch.join(ENGINE), engine).map_err(|error| error.to_string())
}

/// The word by which fio finds the engine, which is built if there is none.
pub(crate) fn engine(root: &Path) -> Result<String, String> {
    let fio = tools::find("fio", "fio")?;
    let own = Command::new(&fio).arg("--enghelp").output().map_err(|error| error.to_string())?;
    if String::from_utf8_lossy(&own.stdout).lines().any(|line| line.trim() == "nfs") {
        return Ok("nfs".to_owned());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = target.unwrap_or_else(|| root.join("target")).join("fio");
    let library = folder.join("nfs.so");
    if !library.exists() {
        println!("interop: this fio has no nfs engine: building it from the package's source");
        let mut build = Command::new("bash");
        build.args(["-c", BUILD, "fio-engine.sh"]).arg(&folder).stdin(Stdio::null());
        let built = build.output().map_err(|error| error.to_string())?;
        if !built.status.success() {
            let complaint = String::from_utf8_lossy(&built.stderr);
            let last = last_lines(&complaint, 3).join("; ");
            return Err(format!("fio's nfs engine does not build: {last}"));
        }
    }
    Ok(format!("external:{}", library.display()))
}

/// Everything that fio does with our server.
pub(super) fn check(report: &mut Report, scratch: &Path, nfskit: &Path) {
    let engine = std::fs::read_to_string(scratch.join(ENGINE)).unwrap_or_default();
    if let Some(why) = engine.strip_prefix("missing ") {
        return report.skip(PEER, "reads and writes", why.to_owned());
    }
    let folder = scratch.join("fio");
    let made = std::fs::create_dir(&folder).map_err(|error| error.to_string());
    let server = report.make(PEER, "nfskit serve starts", || {
        made?;
        Ok((Server::start(nfskit, &folder)?, String::new()))
    });
    let Some(server) = server else { return };
    let url = server.address.url("");
    for (what, arguments) in RUNS {
        report.check(PEER, what, || {
            let output = scratch.join("fio.json");
            let run = || {
                let mut command = Command::new("fio");
                command.args(COMMON).args(arguments);
                command.arg(format!("--ioengine={engine}")).arg(format!("--nfs_url={url}"));
                // It leaves files beside it.
                command.arg("--output").arg(&output).current_dir(scratch);
                finish(&mut command, RUN_WITHIN, text)
            };
            let mut attempts = 1;
            while let Err(why) = run() {
                if attempts == ATTEMPTS || !why.contains(NO_END) {
                    return Err(format!("attempt {attempts}: {why}"));
                }
                attempts += 1;
            }
            let read = std::fs::read_to_string(&output).map_err(|error| error.to_string())?;
            let rates = rates(&read)?;
            Ok(if attempts == 1 { rates } else { format!("{rates}, attempt {attempts}") })
        });
    }
    report.done(PEER, "nfskit serve ends on SIGTERM", || server.stop());
    // The next checks need the room.
    let _ = std::fs::remove_dir_all(&folder);
}

/// What was read and written how fast, from fio's own account; fails if it reports an error.
fn rates(json: &str) -> Result<String, String> {
    // Notes of the engine may stand before it.
    let start = json.find('{').ok_or("fio wrote no result")?;
    let result: serde_json::Value =
        serde_json::from_str(&json[start..]).map_err(|error| format!("fio's result: {error}"))?;
    let job = &result["jobs"][0];
    match job["error"].as_i64() {
        Some(0) => {}
        error => return Err(format!("fio's error is {error:?}")),
    }
    let rates = ["read", "write"].map(|way| {
        let (bytes, kib) = (job[way]["io_bytes"].as_u64(), job[way]["bw"].as_u64());
        (bytes > Some(0)).then(|| format!("{way} {} MiB/s", kib.unwrap_or(0) >> 10))
    });
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    match rates.is_empty() {
        true => Err("fio did nothing".to_owned()),
        false => Ok(rates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_from_the_account_and_errors_from_it_too() {
        let account = |error: i32, bytes: u64| {
            format!(
                "nfs: a note\n{{\"jobs\":[{{\"error\":{error},\
                 \"read\":{{\"io_bytes\":0,\"bw\":0}},\
                 \"write\":{{\"io_bytes\":{bytes},\"bw\":2048}}}}]}}"
            )
        };
        assert_eq!(rates(&account(0, 5)), Ok("write 2 MiB/s".to_owned()));
        assert!(rates(&account(84, 5)).is_err());
        assert!(rates(&account(0, 0)).is_err());
        assert!(rates("").is_err());
    }
}
