//! `cargo xtask captures`: what `nfskit trace` says, beside what tshark says.

mod generate;

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

use self::generate::{Kind, generate};

const USAGE: &str = "\
usage: cargo xtask captures generate writes|metadata BYTES FILE|-";

/// Runs the command.
pub(crate) fn run(_root: &Path, options: &[&str]) -> Result<(), String> {
    match options {
        ["generate", kind, bytes, file] => {
            let kind = match *kind {
                "writes" => Kind::Writes,
                "metadata" => Kind::Metadata,
                _ => return Err(USAGE.to_owned()),
            };
            let bytes = bytes.parse().map_err(|_| USAGE.to_owned())?;
            make(kind, bytes, file)
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn make(kind: Kind, bytes: u64, file: &str) -> Result<(), String> {
    let out: Box<dyn Write> = match file {
        "-" => Box::new(stdout().lock()),
        path => Box::new(File::create(path).map_err(|cause| format!("{path}: {cause}"))?),
    };
    let made = generate(kind, bytes, &mut BufWriter::with_capacity(1 << 20, out));
    let made = made.map_err(|cause| format!("{file}: {cause}"))?;
    eprintln!("{} packets, {} bytes, {} calls", made.packets, made.bytes, made.calls);
    Ok(())
}
