//! `cargo xtask guest`: the Linux kernel's client against the release binary.
//!
//! ```text
//!   this machine                                      user-mode Linux, one CPU
//!   nfskit serve (root)   ── tap in a namespace ──    mount, checks.py, tree.sh, 5 GiB, umount
//!   nfskit serve (nobody)                             the same on a local disk
//!        │                                                 │
//!        └─ manifest of the directory  ── equal? ──  manifest of the mount
//! ```
//!
//! With `--proxy` a second `nfskit serve` stands before each, and is what the guest mounts; with
//! `--ganesha` its origin is NFS-Ganesha, and with `--write-back` it answers changes from a log.
//! Other plays are `calls` (of programs, beside our mount), `fscache` (caches on a disk),
//! `behind` (proxies, 10 ms from their origin) and `write-log` (what a log saves a disk).
//!
//! The kernel and its root disk are made from Debian packages by the scripts of `kernelvm`, which
//! lie beside this checkout. That takes a minute, and stays in cargo's target folder until the
//! scripts or our list of packages change.
//!
//! What works in the guest is in `scripts`: `workload.sh` is the whole run; `checks.py` has the
//! system calls, one sort at a time; `tree.sh` is what people do, and what it leaves must be equal
//! on NFS and on a local disk.

mod behind;
mod calls;
mod fscache;
pub(crate) mod image;
pub(crate) mod material;
mod options;
mod servers;
pub(crate) mod shell;
mod stage;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::host::{build, not_run, scratch, tools};
use image::Image;
use options::{Options, Play};
use servers::Servers;
use stage::Stage;

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = crate::options::parse(words)?;
    if let Some(why) = missing() {
        return not_run("guest", "the kernel's client is not tested", &why);
    }
    let began = Instant::now();
    let nfskit = build::given_or_release(root, "guest", options.nfskit.as_deref())?;
    let image = Image::provide(root, options.kernelvm.as_deref())?;
    println!("guest: image after {} s", began.elapsed().as_secs());
    let scratch = scratch::make("guest")?;
    let material = material::make(root, scratch.path())?;
    // Our mount works in the guest, too.
    fs::copy(&nfskit, material.join("nfskit")).map_err(|error| format!("guest: {error}"))?;
    let stage = Stage::make(&nfskit, &image, scratch.path())?;
    let played = match options.play {
        Play::Work => work(stage, &options, &material, scratch.path()),
        Play::Calls => calls::play(stage, &material, scratch.path()),
        Play::Fscache => fscache::play(stage, &material, scratch.path()),
        Play::WriteLog => {
            stage.play(&material.join("writelog.sh"), &material, &[], &scratch.path().join("out"))
        }
        Play::Behind | Play::Seen => behind::play(stage, &options, &material, scratch.path()),
    };
    println!("guest: {} s", began.elapsed().as_secs());
    played
}

/// Runs the workload in the guest, and compares what it saw with what is on disk.
fn work(
    stage: Stage<'_>,
    options: &Options,
    material: &Path,
    scratch: &Path,
) -> Result<(), String> {
    let mut servers = Servers::start(stage, options)?;
    let settings = [("SERVERS", servers.lines())];
    let script = material.join("workload.sh");
    let played = servers.stage().play(&script, material, &settings, &scratch.join("out"));
    // What is on its way to an origin comes there at the end.
    let stopped = servers.stop();
    played.and_then(|()| servers.compare(material, scratch)).and(stopped)
}

/// Why the guest cannot run here.
pub(crate) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("user-mode Linux and its network need root".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    let programs = [
        ("mmdebstrap", "mmdebstrap"),
        ("busybox", "busybox-static"),
        ("cpio", "cpio"),
        ("strip", "binutils"),
        ("ip", "iproute2"),
        ("git", "git"),
        ("mke2fs", "e2fsprogs"),
    ];
    let missing = programs.iter().find_map(|(name, package)| tools::find(name, package).err());
    let namespaces = || Command::new("ip").args(["netns", "list"]).output();
    missing.or_else(|| {
        let works = namespaces().is_ok_and(|output| output.status.success());
        (!works).then(|| "ip netns does not work".to_owned())
    })
}
