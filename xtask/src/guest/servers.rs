//! The servers under test, in a network namespace with the guest, and what they have on disk.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::options::Options;
use super::stage::{ADDRESS, Stage, User};
use crate::host::about;
use crate::host::child::{finish, text};

/// From a proxy's port to that of the server behind it.
const BEHIND: u16 = 100;
/// Where NFS-Ganesha listens, and its MOUNT service one above.
const GANESHA: u16 = 2249;
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

/// The servers of all mounts, on a stage.
#[derive(Debug)]
pub(super) struct Servers<'a> {
    stage: Stage<'a>,
    options: &'a Options,
}

impl<'a> Servers<'a> {
    /// Starts them, each with a proxy before it if the options say so.
    pub(super) fn start(stage: Stage<'a>, options: &'a Options) -> Result<Self, String> {
        let mut servers = Self { stage, options };
        if options.ganesha {
            let folder = servers.stage.folder().to_owned();
            servers.stage.ganesha(&folder, GANESHA)?;
        }
        for mount in servers.mounts() {
            servers.serve(mount)?;
        }
        Ok(servers)
    }

    /// Behind Ganesha, whose exports are root's, nobody serves anything.
    fn mounts(&self) -> impl Iterator<Item = Mount> + use<> {
        let all = !self.options.ganesha;
        MOUNTS.into_iter().filter(move |mount| all || mount.privileged)
    }

    fn serve(&mut self, mount: Mount) -> Result<(), String> {
        let Options { proxy, ganesha, write_back, .. } = *self.options;
        let export = self.export(mount);
        let state = self.stage.folder().join(format!("{}.state", mount.name));
        for folder in [&export, &state] {
            let owner = (!mount.privileged).then_some(NOBODY);
            let made = fs::create_dir(folder).and_then(|()| chown(folder, owner, owner));
            made.map_err(about(folder))?;
        }
        let user = if mount.privileged { User::Root } else { User::Nobody };
        let port = if proxy { mount.port + BEHIND } else { mount.port };
        if !ganesha {
            self.stage.serve(user, export.as_os_str(), &state, port, &[])?;
        }
        if !proxy {
            return Ok(());
        }
        let version = if ganesha { 3 } else { mount.version };
        let origin = match ganesha {
            true => format!(
                "nfs://{ADDRESS}/export/{}?version=3&nfsport={GANESHA}&mountport={}",
                mount.name,
                GANESHA + 1
            ),
            false => format!("nfs://{ADDRESS}/?version={version}&nfsport={port}&mountport={port}"),
        };
        let mut options = Vec::new();
        if write_back && mount.privileged && version == 3 {
            let log = self.stage.folder().join(format!("{}.wal", mount.name));
            options = vec!["--write-back".to_owned(), log.display().to_string()];
        }
        self.stage.serve(user, origin.as_ref(), &state, mount.port, &options)
    }

    fn export(&self, mount: Mount) -> PathBuf {
        self.stage.folder().join(mount.name)
    }

    pub(super) fn stage(&self) -> &Stage<'a> {
        &self.stage
    }

    /// The mounts as `workload.sh` reads them.
    pub(super) fn lines(&self) -> String {
        let line = |mount: &Mount| {
            let Mount { name, port, version, scope, checks, .. } = mount;
            format!("{name} {port} {version} {scope} {checks}")
        };
        self.mounts().map(|mount| line(&mount)).collect::<Vec<_>>().join("\n")
    }

    /// Compares what the guest saw through each mount with what is on disk.
    pub(super) fn compare(&self, material: &Path, scratch: &Path) -> Result<(), String> {
        for mount in self.mounts() {
            let seen = read(&scratch.join(format!("out/{}.manifest", mount.name)))?;
            let mut manifest = Command::new("bash");
            manifest.arg(material.join("manifest.sh")).arg(self.export(mount));
            if mount.version == 3 {
                // Version 2 rounds them.
                manifest.arg("times");
            }
            let there = output(&mut manifest)?;
            difference(&seen, &there).map_err(|what| format!("guest: {}: {what}", mount.name))?;
            println!("guest: {}: {} lines are those on disk", mount.name, there.lines().count());
            if mount.scope == "all" && mount.version == 3 {
                let written = read(&scratch.join(format!("out/{}.large", mount.name)))?;
                let large = self.export(mount).join("large");
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
        self.stage.stop()
    }
}

fn read(path: &Path) -> Result<String, String> {
    // Names need not be UTF-8; what is not is replaced alike on both sides.
    let bytes = fs::read(path).map_err(about(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn output(command: &mut Command) -> Result<String, String> {
    finish(command, MANIFEST_WITHIN, text).map(|finished| finished.value)
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
        let text = difference("a\nx\n", "a\ny\n").unwrap_err();
        assert!(
            text.contains("only seen:\n    x") && text.contains("only there:\n    y"),
            "{text}"
        );
    }
}
