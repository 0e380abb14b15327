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
//! With `--proxy` a second `nfskit serve` stands before each, and is what the guest mounts.
//!
//! The kernel and its root disk are made from Debian packages by the scripts of `kernelvm`, which
//! lie beside this checkout. That takes a minute, and is kept in cargo's target folder until the
//! scripts or our list of packages change.
//!
//! What works in the guest is in `scripts`: `workload.sh` is the whole run; `checks.py` has the
//! system calls, one sort at a time; `tree.sh` is what people do, and what it leaves must be equal
//! on NFS and on a local disk.

pub(crate) mod image;
pub(crate) mod material;
mod options;
mod servers;
pub(crate) mod shell;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::host::{build, scratch, tools};
use image::Image;
use options::Options;
use servers::Servers;

/// Seconds that the guest may take; it kills itself then.
const GUEST_SECONDS_MAX: u32 = 900;
/// The disk for the same work without NFS.
const LOCAL_DISK_MB: &str = "1500";

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = crate::options::parse(words)?;
    if let Some(why) = missing() {
        return match std::env::var("CI").is_ok_and(|ci| ci == "true") {
            true => Err(format!("guest: NOT RUN, and CI=true: {why}")),
            false => {
                println!("guest: NOT RUN, the kernel's client is not tested: {why}");
                Ok(())
            }
        };
    }
    let began = Instant::now();
    let nfskit = build::release(root, "guest", "nfskit", "nfskit")?;
    let image = Image::provide(root, options.kernelvm.as_deref())?;
    println!("guest: image after {} s", began.elapsed().as_secs());
    let scratch = scratch::make("guest")?;
    let material = material::make(root, scratch.path())?;
    let mut servers = Servers::start(&nfskit, &image, scratch.path(), options.proxy)?;
    let outcome = work(&image, &servers, &material, scratch.path());
    let compared = outcome.and_then(|()| servers.compare(&material, scratch.path()));
    let stopped = servers.stop();
    println!("guest: {} s", began.elapsed().as_secs());
    compared.and(stopped)
}

/// Runs the workload in the guest; its output is ours.
fn work(image: &Image, servers: &Servers, material: &Path, scratch: &Path) -> Result<(), String> {
    let out = scratch.join("out");
    let status = image
        .guest(servers.namespace())
        .args(["--timeout", &GUEST_SECONDS_MAX.to_string(), "--scratch", LOCAL_DISK_MB])
        .arg("--add")
        .arg(format!("{}:material", material.display()))
        .arg("--set")
        .arg(format!("SERVERS={}", servers.lines()))
        .arg("--out")
        .arg(&out)
        .arg(material.join("workload.sh"))
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("the guest does not start: {error}"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(124) => Err("guest: the time was up".to_owned()),
        Some(70) => Err("guest: the guest's kernel died, see above".to_owned()),
        _ => Err(format!("guest: {status}, see above")),
    }
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
