//! `cargo xtask captures`: what `nfskit trace` says, beside what tshark says.
//!
//! Captures are made here: our client, libnfs and the kernel's client against our server and
//! NFS-Ganesha, over TCP and UDP, through a relay and in a guest whose network loses and reorders,
//! and with fragments. Calls and times of each procedure must be those of `tshark -z rpc,srt`, and
//! each call must have taken what tshark says it took. With `--large` both then read large captures
//! that are made up, against the clock, and `nfskit trace` one of 20 GB that is never on a disk, in
//! bounded memory.
//!
//! Twelve conversations are staged, too, each with one thing that slows it down, which the verdict
//! has to be.
//!
//! Everything runs in namespaces of its own, as the interoperability tests do.

mod calls;
mod compare;
mod generate;
mod guest;
mod large;
mod scenes;
mod verdicts;

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

use self::generate::{Kind, Made, generate};
use crate::guest::image::Image;
use crate::host::report::Report;
use crate::host::{build, isolate, scratch, tools};

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "captures-inside";

/// Sizes of captures: of real traffic, made up, or both.
const SMALL: &str = "small";
const LARGE: &str = "large";
const ONLY_LARGE: &str = "only-large";
/// None of them, but those that are judged.
const ONLY_VERDICTS: &str = "only-verdicts";

const USAGE: &str = "\
usage: cargo xtask captures [--large|--only-large] [--kernelvm DIR]   compare with tshark
       cargo xtask captures --only-verdicts                           what slows a client down
       cargo xtask captures generate writes|metadata|changing BYTES FILE|-";

/// Runs the command.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), String> {
    match options {
        ["--large", options @ ..] => compared(root, LARGE, kernelvm(options)?),
        ["--only-large", options @ ..] => compared(root, ONLY_LARGE, kernelvm(options)?),
        ["--only-verdicts"] => compared(root, ONLY_VERDICTS, None),
        ["generate", kind, bytes, file] => {
            let kind = match *kind {
                "writes" => Kind::Writes,
                "metadata" => Kind::Metadata,
                "changing" => Kind::Changing,
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
        options => compared(root, SMALL, kernelvm(options)?),
    }
}

/// The scripts that make and run the guest, if they are not beside the checkout.
fn kernelvm<'w>(options: &[&'w str]) -> Result<Option<&'w Path>, String> {
    match options {
        [] => Ok(None),
        ["--kernelvm", folder] => Ok(Some(Path::new(*folder))),
        _ => Err(USAGE.to_owned()),
    }
}

fn compared(root: &Path, size: &str, kernelvm: Option<&Path>) -> Result<(), String> {
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
    // Made out here, where there is a network.
    let guest = match crate::guest::missing() {
        Some(why) => Err(why),
        None if [ONLY_LARGE, ONLY_VERDICTS].contains(&size) => Err("not asked for".to_owned()),
        None => Image::provide(root, kernelvm),
    };
    let guest = match &guest {
        Ok(image) => image.scripts(),
        Err(why) => Path::new(why),
    };
    let words = [Path::new(INSIDE), scratch.path(), &nfskit, Path::new(size), guest];
    match isolate::run(&ourselves, words)? {
        true => Ok(()),
        false => Err("captures failed, see above".to_owned()),
    }
}

/// Everything, in the namespaces, of which we are the first process. `guest` is the absolute path
/// of the guest's scripts, or why there is none.
pub(crate) fn run_inside(
    scratch: &Path,
    nfskit: &Path,
    size: &str,
    guest: &str,
) -> Result<(), String> {
    isolate::end_with_caller(scratch);
    let mut report = Report::new("captures");
    if size != ONLY_LARGE {
        verdicts::play(&mut report, scratch, nfskit);
    }
    if ![ONLY_LARGE, ONLY_VERDICTS].contains(&size) {
        let with_ganesha = scenes::play(&mut report, scratch, nfskit);
        match Path::new(guest) {
            path if path.is_absolute() => {
                let image = Image::built(path);
                guest::play(&mut report, scratch, nfskit, &image, with_ganesha);
            }
            _ => report.skip(scenes::PEER, "Linux in a guest", guest.to_owned()),
        }
    }
    if [LARGE, ONLY_LARGE].contains(&size) {
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
