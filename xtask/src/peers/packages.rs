//! The Debian packages of the peers, installed where they are missing.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::host::{ganesha, tools};

/// Debian's scripts call it to learn whether a service may start; 101 means no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &[u8] = b"#!/bin/sh\nexit 101\n";

/// Installs what is missing. What cannot be installed is reported later, by who needs it.
pub(crate) fn install() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("peers: needs root, for namespaces, packages and handles of files".to_owned());
    }
    let mut missing = Vec::new();
    if ganesha::programs().is_err() {
        missing.extend(["nfs-ganesha", "nfs-ganesha-vfs", "rpcbind"]);
    }
    for (program, package) in [("ip", "iproute2"), ("strace", "strace"), ("unfsd", "unfs3")] {
        if tools::find(program, package).is_err() {
            missing.push(package);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    println!("peers: apt-get install {}", missing.join(" "));
    forbid_services().map_err(|error| format!("{POLICY}: {error}"))?;
    if missing != ["unfs3"] {
        // Fails offline, where the packages may be in the cache all the same.
        let _ = apt(&["update"]);
    }
    for package in missing {
        if !apt(&["install", "-y", "--no-install-recommends", package])? {
            println!("peers: {package} cannot be installed here");
        }
    }
    Ok(())
}

/// No service of an installed package starts by itself, if nobody has decided on that before.
fn forbid_services() -> std::io::Result<()> {
    if Path::new(POLICY).exists() {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY);
    file.and_then(|mut file| file.write_all(POLICY_TEXT))
        .inspect_err(|_| drop(fs::remove_file(POLICY)))
}

/// True when it succeeded.
fn apt(arguments: &[&str]) -> Result<bool, String> {
    let status = Command::new("apt-get")
        .arg("-qq")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("apt-get does not start: {error}"))?;
    Ok(status.success())
}
