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
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use self::generate::{Kind, Made, generate};
use crate::guest::image::Image;
use crate::host::report::Report;
use crate::host::{build, is_ci, isolate, scratch, tools};
use crate::options;

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "captures-inside";

/// Sizes of captures: of real traffic, made up, or both.
const SMALL: &str = "small";
const LARGE: &str = "large";
const ONLY_LARGE: &str = "only-large";
/// None of them, but those that are judged.
const ONLY_VERDICTS: &str = "only-verdicts";

/// Compares `nfskit trace` with tshark, on captures made here.
#[derive(Parser)]
#[command(
    name = "captures",
    bin_name = "cargo xtask captures",
    args_conflicts_with_subcommands = true
)]
struct Options {
    /// Large captures that are made up, too.
    #[arg(long, conflicts_with_all = ["only_large", "only_verdicts"])]
    large: bool,
    /// The large captures alone.
    #[arg(long, conflicts_with = "only_verdicts")]
    only_large: bool,
    /// Only what slows a client down: the staged conversations.
    #[arg(long, conflicts_with = "kernelvm")]
    only_verdicts: bool,
    /// The scripts that make and run the guest, if they are not beside the checkout.
    #[arg(long, value_name = "DIR")]
    kernelvm: Option<PathBuf>,
    #[command(subcommand)]
    generate: Option<Generate>,
}

#[derive(Subcommand)]
enum Generate {
    /// Makes up a capture.
    Generate {
        kind: Kind,
        bytes: u64,
        /// A file, or - for the standard output.
        file: PathBuf,
    },
}

impl Options {
    fn size(&self) -> &'static str {
        match self {
            Self { large: true, .. } => LARGE,
            Self { only_large: true, .. } => ONLY_LARGE,
            Self { only_verdicts: true, .. } => ONLY_VERDICTS,
            _ => SMALL,
        }
    }
}

/// Runs the command.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = options::parse(words)?;
    let Some(Generate::Generate { kind, bytes, file }) = options.generate else {
        return compared(root, options.size(), options.kernelvm.as_deref());
    };
    let made = match file == Path::new("-") {
        true => written("-", kind, bytes, stdout().lock())?,
        false => make(kind, bytes, &file)?,
    };
    eprintln!("{} packets, {} bytes, {} calls", made.packets, made.bytes, made.calls);
    Ok(())
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
    // Made out here, where there is a network.
    let guest = match crate::guest::missing() {
        Some(why) => Err(why),
        None if [ONLY_LARGE, ONLY_VERDICTS].contains(&size) => Err("not requested".to_owned()),
        None => Image::provide(root, kernelvm),
    };
    let guest = match &guest {
        Ok(image) => image.scripts(),
        Err(why) => Path::new(why),
    };
    let words = [Path::new(INSIDE), scratch.path(), &nfskit, Path::new(size), guest];
    isolate::run_ourselves("captures", words)
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
    report.verdict(is_ci())
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
