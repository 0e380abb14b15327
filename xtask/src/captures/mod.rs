//! `cargo xtask captures`: what `nfskit trace` says, beside what tshark says.
//!
//! Captures are made here: our client and libnfs against our server and NFS-Ganesha, over TCP and
//! UDP, through a relay that loses and reorders, and with fragments. Calls and times of each
//! procedure must be those of `tshark -z rpc,srt`. With `--large` both then read large captures
//! that are made up, against the clock, and `nfskit trace` one of 20 GB that is never on a disk, in
//! bounded memory.
//!
//! Everything runs in namespaces of its own, as the interoperability tests do.

mod compare;
mod generate;
mod large;
mod scenes;

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

use self::generate::{Kind, Made, generate};
use crate::host::report::Report;
use crate::host::{build, isolate, scratch, tools};

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "captures-inside";

const USAGE: &str = "\
usage: cargo xtask captures [--large]          compare with tshark, also in speed
       cargo xtask captures generate writes|metadata BYTES FILE|-";

/// Runs the command.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), String> {
    match options {
        [] => compared(root, "small"),
        ["--large"] => compared(root, "large"),
        ["generate", kind, bytes, file] => {
            let kind = match *kind {
                "writes" => Kind::Writes,
                "metadata" => Kind::Metadata,
                _ => return Err(USAGE.to_owned()),
            };
            let bytes = bytes.parse().map_err(|_| USAGE.to_owned())?;
            let made = match *file {
                "-" => written("-", kind, bytes, stdout().lock())?,
                path => make(kind, bytes, path.as_ref())?,
            };
            eprintln!("{} packets, {} bytes, {} calls", made.packets, made.bytes, made.calls);
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn compared(root: &Path, size: &str) -> Result<(), String> {
    for (tool, package) in [("tshark", "tshark"), ("tcpdump", "tcpdump")] {
        tools::find(tool, package)?;
    }
    let nfskit = build::release(root, "captures", "nfskit", "nfskit")?;
    let scratch = scratch::make("captures")?;
    if !isolate::is_possible() {
        return Err("captures: no namespaces here; run it as root in a container that may make \
                    them"
            .to_owned());
    }
    let ourselves = std::env::current_exe()
        .map_err(|error| format!("our own program is not known: {error}"))?;
    let words = [Path::new(INSIDE), scratch.path(), &nfskit, Path::new(size)];
    match isolate::run(&ourselves, words)? {
        true => Ok(()),
        false => Err("captures failed, see above".to_owned()),
    }
}

/// Everything, in the namespaces, of which we are the first process.
pub(crate) fn run_inside(scratch: &Path, nfskit: &Path, size: &str) -> Result<(), String> {
    isolate::end_with_caller(scratch);
    let mut report = Report::new("captures");
    scenes::play(&mut report, scratch, nfskit);
    if size == "large" {
        large::measure(&mut report, scratch, nfskit);
    }
    println!("\n{report}");
    report.verdict(std::env::var("CI").is_ok_and(|ci| ci == "true"))
}

/// Makes a capture in a file.
fn make(kind: Kind, bytes: u64, path: &Path) -> Result<Made, String> {
    let name = path.display().to_string();
    let file = File::create(path).map_err(|cause| format!("{name}: {cause}"))?;
    written(&name, kind, bytes, file)
}

/// Writes a capture.
fn written(name: &str, kind: Kind, bytes: u64, out: impl Write) -> Result<Made, String> {
    let made = generate(kind, bytes, &mut BufWriter::with_capacity(1 << 20, out));
    made.map_err(|cause| format!("{name}: {cause}"))
}
