//! The servers under test, in a network namespace with the guest, and what they have on disk.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::image::Image;
use crate::host::child::Service;
use crate::host::nfskit::{START_WITHIN, STOP_WITHIN, TRUSTING};

/// The host's address on the guest's network, which is nobody else's.
const ADDRESS: &str = "10.77.0.1";
/// From a proxy's port to that of the server behind it.
const BEHIND: u16 = 100;
const NAMESPACE_PREFIX: &str = "nfskit-guest-";
/// Reading 5 GiB from a slow disk.
const MANIFEST_WITHIN: Duration = Duration::from_secs(300);
const NOBODY: u32 = 65_534;

/// One mount of the guest.
#[derive(Clone, Copy, Debug)]
struct Mount {
    name: &'static str,
    port: u16,
    version: u8,
    /// `all`, or `checks` without the tree and the large file.
    scope: &'static str,
    /// What the server is, for `checks.py`.
    checks: &'static str,
    privileged: bool,
}

const MOUNTS: [Mount; 3] = [
    Mount {
        name: "root",
        port: 2049,
        version: 3,
        scope: "all",
        checks: "--callers --privileged",
        privileged: true,
    },
    Mount {
        name: "version2",
        port: 2051,
        version: 2,
        scope: "all",
        checks: "--callers --privileged",
        privileged: true,
    },
    Mount {
        name: "nobody",
        port: 2050,
        version: 3,
        scope: "checks",
        checks: "--squashed-to 65534 --only special_files,modes_and_owners,users,links",
        privileged: false,
    },
];

#[derive(Debug)]
pub(super) struct Servers {
    namespace: String,
    folder: PathBuf,
    running: Vec<Service>,
}

impl Servers {
    /// Starts them, each with a proxy before it if `proxied`.
    pub(super) fn start(
        nfskit: &Path,
        image: &Image,
        scratch: &Path,
        proxied: bool,
    ) -> Result<Self, String> {
        remove_left_over();
        let namespace = format!("{NAMESPACE_PREFIX}{}", std::process::id());
        let folder = scratch.join("exports");
        let mut servers = Self { namespace, folder, running: Vec::new() };
        let prepared = image.guest(&servers.namespace).arg("--prep").status();
        if !prepared.is_ok_and(|status| status.success()) {
            return Err("guest: the network namespace cannot be made".to_owned());
        }
        let open = |folder: &Path| fs::set_permissions(folder, Permissions::from_mode(0o755));
        fs::create_dir(&servers.folder)
            .and_then(|()| open(scratch))
            .map_err(|error| format!("{}: {error}", servers.folder.display()))?;
        for mount in MOUNTS {
            servers.serve(nfskit, mount, proxied)?;
        }
        Ok(servers)
    }

    fn serve(&mut self, nfskit: &Path, mount: Mount, proxied: bool) -> Result<(), String> {
        let export = self.folder.join(mount.name);
        let state = self.folder.join(format!("{}.state", mount.name));
        for folder in [&export, &state] {
            let owner = (!mount.privileged).then_some(NOBODY);
            let made = fs::create_dir(folder).and_then(|()| chown(folder, owner, owner));
            made.map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let port = if proxied { mount.port + BEHIND } else { mount.port };
        self.listen(nfskit, mount, export.as_os_str(), &state, port)?;
        if proxied {
            let version = mount.version;
            let origin =
                format!("nfs://{ADDRESS}/?version={version}&nfsport={port}&mountport={port}");
            self.listen(nfskit, mount, origin.as_ref(), &state, mount.port)?;
        }
        Ok(())
    }

    fn listen(
        &mut self,
        nfskit: &Path,
        mount: Mount,
        store: &OsStr,
        state: &Path,
        port: u16,
    ) -> Result<(), String> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]);
        if !mount.privileged {
            command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command.arg(nfskit).arg("serve").arg(store).arg("--state").arg(state);
        command.args(["--listen", &format!("{ADDRESS}:{port}")]).args(TRUSTING);
        let mut service = Service::start(&mut command)?;
        let banner = |lines: &[String]| {
            let mounts = lines.iter().any(|line| line.contains("mount -t nfs"));
            mounts.then(|| lines.join("\n"))
        };
        println!("{}", service.wait_for(START_WITHIN, banner)?);
        self.running.push(service);
        Ok(())
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The mounts as `workload.sh` reads them.
    pub(super) fn lines(&self) -> String {
        let line = |mount: &Mount| {
            let Mount { name, port, version, scope, checks, .. } = mount;
            format!("{name} {port} {version} {scope} {checks}")
        };
        MOUNTS.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Compares what the guest saw through each mount with what is on disk.
    pub(super) fn compare(&self, material: &Path, scratch: &Path) -> Result<(), String> {
        for mount in MOUNTS {
            let seen = read(&scratch.join(format!("out/{}.manifest", mount.name)))?;
            let mut manifest = Command::new("bash");
            manifest.arg(material.join("manifest.sh")).arg(self.folder.join(mount.name));
            if mount.version == 3 {
                // Version 2 rounds them.
                manifest.arg("times");
            }
            let there = output(&mut manifest)?;
            difference(&seen, &there).map_err(|what| format!("guest: {}: {what}", mount.name))?;
            println!("guest: {}: {} lines are those on disk", mount.name, there.lines().count());
            if mount.scope == "all" && mount.version == 3 {
                let written = read(&scratch.join(format!("out/{}.large", mount.name)))?;
                let large = self.folder.join(mount.name).join("large");
                let there = output(Command::new("sha256sum").arg(large))?;
                if there.split_whitespace().next() != Some(written.trim()) {
                    return Err(format!("guest: {}: the 5 GiB differ: {there}", mount.name));
                }
                println!("guest: {}: the 5 GiB on disk are those written", mount.name);
            }
        }
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Result<(), String> {
        // A proxy before its origin.
        self.running.drain(..).rev().try_for_each(|server| server.stop(STOP_WITHIN))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.running.clear();
        remove_namespace(&self.namespace);
    }
}

fn remove_namespace(name: &str) {
    // It is in nobody's way if it stays; the next run tries again.
    let _ = Command::new("ip").args(["netns", "delete", name]).status();
}

/// Removes namespaces whose run was interrupted.
fn remove_left_over() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(NAMESPACE_PREFIX);
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove_namespace(&name);
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    // Names need not be UTF-8; what is not is replaced alike on both sides.
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn output(command: &mut Command) -> Result<String, String> {
    let read = |stdout| crate::host::child::text(stdout);
    crate::host::child::finish(command, MANIFEST_WITHIN, read).map(|finished| finished.value)
}

/// The first lines that only one side has.
fn difference(seen: &str, there: &str) -> Result<(), String> {
    if seen == there && !seen.is_empty() {
        return Ok(());
    }
    let only = |of: &str, other: &str| {
        let other: std::collections::BTreeSet<&str> = other.lines().collect();
        let lines = of.lines().filter(|line| !other.contains(line)).take(5);
        lines.map(|line| format!("\n    {line}")).collect::<String>()
    };
    Err(format!(
        "{} lines seen, {} there; only seen:{}\n  only there:{}",
        seen.lines().count(),
        there.lines().count(),
        only(seen, there),
        only(there, seen)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_from_both_sides_and_nothing_is_a_difference() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), Ok(()));
        assert!(difference("", "").is_err());
        let told = difference("a\nx\n", "a\ny\n").unwrap_err();
        assert!(
            told.contains("only seen:\n    x") && told.contains("only there:\n    y"),
            "{told}"
        );
    }
}
