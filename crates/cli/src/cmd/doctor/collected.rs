//! `--collect`: the evidence of this host in a file, for somebody else.

use std::path::Path;

use doctor::collect::{Files, masked, pack};
use harness::exit::Failure;
use harness::hints;
use harness::output;
use harness::sink::Sink;
use harness::verbosity::Verbosity;
use net::clock::Clock;

/// Lists what will be in the file, and writes it.
pub(super) fn write(
    files: &Files,
    path: &Path,
    is_masked: bool,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let files = if is_masked { &masked(files) } else { files };
    if files.is_empty() {
        return Err(Failure::environment(
            "this host has no counters to collect",
            "a host with /proc mounted",
        ));
    }
    if verbosity > Verbosity::Quiet && path != Path::new("-") {
        output::print(&listed(files, path, is_masked))?;
    }
    let now_s = Clock::real().since_1970().as_secs();
    let written = Sink::create(path).and_then(|mut sink| {
        pack(files, now_s, &mut sink)?;
        sink.end()
    });
    written.map_err(|cause| {
        let what = format!("cannot write {}: {cause}", path.display());
        Failure::environment(what, hints::writing(&cause))
    })
}

fn listed(files: &Files, path: &Path, is_masked: bool) -> String {
    let mut out = format!("{} will have in it:\n", path.display());
    for (path, text) in files.all() {
        out.push_str(&format!("  {:>8} bytes  {path}\n", text.len()));
    }
    for note in &files.notes {
        out.push_str(&format!("  not in it: {}: {}\n", note.path, note.why));
    }
    out.push_str(match is_masked {
        true => {
            "Addresses and host names are masked, also in paths of mounts and exports; the rest of \
             these is not.\n"
        }
        false => {
            "Addresses, host names, and paths of mounts and exports are in it \
             (--mask-addresses masks the first two).\n"
        }
    });
    out
}
