//! `cargo xtask mounts`: programs and exercises on `nfskit mount`.
//!
//! ```text
//!   nfskit serve ───────────────────┐
//!   NFS-Ganesha ────────────────────┤── nfskit mount ── basic, calls, tree, sqlite,
//!   nfskit serve over a lossy link ──┘                   close-to-open, fsx, seqwrite, memory,
//!                                                        suite13
//!   nfskit serve, in memory ─────────── nfskit mount, three times ── contests
//!   nfskit serve, killed ────────────── nfskit mount ── restart, gone-hard, gone-soft, refused
//!   a local folder ──────────────────────────────────── the same as above: the steps are right
//! ```
//!
//! Everything runs in namespaces of its own (loopback, processes, mounts), which end with the first
//! process: nothing stays mounted and nothing keeps running, however a run ends. No step takes
//! longer than its limit.

mod close_to_open;
mod contests;
mod memory;
mod mounted;
mod options;
mod outage;
mod refused;
mod served;
mod steps;

use std::fs;
use std::path::Path;
use std::time::Instant;

use self::contests::CONTESTS;
pub(crate) use self::steps::CLOSE_TO_OPEN;
use crate::guest::material;
use crate::host::report::Report;
use crate::host::{about, build, ganesha, is_ci, isolate, not_run, scratch, tools};
use mounted::Mounted;
use options::Options;
use served::{Kind, Served, new_folder};
use steps::{STEPS, Stage, is_wanted};

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "mounts-inside";

const SCRIPTS: [(&str, &str); 2] = [
    ("basic.py", include_str!("scripts/basic.py")),
    ("sqlite.py", include_str!("scripts/sqlite.py")),
];

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = crate::options::parse(words)?;
    if let Some(why) = missing() {
        return not_run("mounts", "no mount is tested", &why);
    }
    let nfskit = build::given_or_release(root, "mounts", options.nfskit.as_deref())?;
    let scratch = scratch::make("mounts")?;
    let material = material::make(root, scratch.path())?;
    let written = SCRIPTS.iter().try_for_each(|(name, text)| fs::write(material.join(name), text));
    written.map_err(about(&material))?;
    if options.wants("contests") {
        let player = build::tested_example(root, "mounts", "sim")?;
        fs::copy(&player, material.join(CONTESTS)).map_err(about(&player))?;
    }
    let places = [scratch.path(), &nfskit].map(|path| path.as_os_str().to_owned());
    let arguments = [INSIDE.into()].into_iter().chain(places);
    let arguments = arguments.chain(words.iter().map(Into::into));
    isolate::run_ourselves("mounts", arguments)
}

/// Runs every step in the namespaces, of which we are the first process.
pub(crate) fn run_inside(scratch: &Path, nfskit: &Path, words: &[&str]) -> Result<(), String> {
    isolate::end_with_caller_and_mounts();
    let options: Options = crate::options::parse(words)?;
    let began = Instant::now();
    let mut report = Report::new("mounts");
    for kind in options.servers.clone() {
        on(kind, &mut report, scratch, nfskit, &options);
    }
    if options.servers.contains(&Kind::Nfskit) {
        refused::check(&mut report, scratch, nfskit, &options);
        outage::check(&mut report, scratch, nfskit, &options);
    }
    println!("\n{report}\nmounts: {} s", began.elapsed().as_secs());
    report.verdict(is_ci())
}

/// Plays close-to-open as a program of its own.
pub(crate) fn run_close_to_open(words: &[&str]) -> Result<(), String> {
    let wrong = || format!("{CLOSE_TO_OPEN} takes two folders, a seed and a number of steps");
    let [first, second, seed, steps] = words else { return Err(wrong()) };
    let (Ok(seed), Ok(steps)) = (seed.parse(), steps.parse()) else { return Err(wrong()) };
    println!("{}", close_to_open::run(first.as_ref(), second.as_ref(), seed, steps)?);
    Ok(())
}

/// The steps on one server's mount.
fn on(kind: Kind, report: &mut Report, scratch: &Path, nfskit: &Path, options: &Options) {
    let peer = kind.name();
    let wanted = || STEPS.iter().filter(|(name, _)| is_wanted(name, kind, options));
    if wanted().count() == 0 {
        return;
    }
    if kind == Kind::Ganesha
        && let Err(why) = ganesha::obstacle()
    {
        return report.skip(peer, "all steps", why);
    }
    let started = report.make(peer, "serves", || {
        Ok((Served::start(kind, nfskit, scratch, options.seed)?, String::new()))
    });
    let Some(served) = started else { return };
    let url = served.as_ref().map(Served::url);
    let mut mounted = None;
    let is_mounted = match &url {
        None => true,
        Some(url) => report.check(peer, "mounts", || {
            let name = format!("mnt-{peer}");
            mounted = Some(Mounted::start(nfskit, scratch, &name, url, &[])?);
            Ok(url.clone())
        }),
    };
    if is_mounted {
        let local = new_folder(scratch, &format!("local-{peer}"));
        let place = match (&mounted, &local) {
            (Some(mounted), _) => mounted.dir.clone(),
            (None, Ok(local)) => local.clone(),
            (None, Err(why)) => return report.skip(peer, "all steps", why.clone()),
        };
        let material = scratch.join("material");
        let (place, url) = (place.as_path(), url.as_deref());
        let stage = Stage { kind, nfskit, material: &material, scratch, options, place, url };
        for (name, step) in wanted() {
            report.check(peer, *name, || {
                let complaints = || mounted.as_ref().map(Mounted::complaints).unwrap_or_default();
                let before = complaints().len();
                step(&stage).map_err(|why| match complaints().get(before..) {
                    None | Some([]) => why,
                    Some(lines) => format!("{why}; the mount says {lines:?}"),
                })
            });
        }
    }
    if let Some(mounted) = mounted {
        report.done(peer, "unmounts on SIGTERM", || mounted.stop());
    }
    if let Some(served) = served {
        report.done(peer, "ends on SIGTERM", || served.stop());
    }
    // The next server needs the room.
    let _ = fs::remove_dir_all(scratch.join(format!("export-{peer}")));
    let _ = fs::remove_dir_all(scratch.join(format!("local-{peer}")));
}

/// Why nothing can be mounted here.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("namespaces, and mounts in them, need root".to_owned());
    }
    if !Path::new("/dev/fuse").exists() {
        return Some("there is no /dev/fuse".to_owned());
    }
    if !isolate::is_possible() {
        return Some("no namespaces can be made here".to_owned());
    }
    let programs = [("python3", "python3"), ("dd", "coreutils"), ("bash", "bash"), ("git", "git")];
    programs.iter().find_map(|(name, package)| tools::find(name, package).err())
}
