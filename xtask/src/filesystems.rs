//! `cargo xtask filesystems`: the server's tests on other file systems than the developer's.
//!
//! Each is made in memory, in a namespace of its own that it goes away with, and the tests'
//! temporary directories (TMPDIR) lie on it. It needs root, and what makes and mounts the file
//! systems (`.ci/packages full`).

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::Parser;

use crate::check::cargo_program;
use crate::host::scratch;
use crate::options;

/// A file system, and how the shell makes and mounts it at `mnt`. `image` is an empty file, `under`
/// a directory on the machine's own file system.
struct FileSystem {
    name: &'static str,
    make: &'static str,
}

/// Only when asked for: eight of the tests of callers, handles and listings fail on it.
const FUSE: &str = "fuse";

const FILE_SYSTEMS: &[FileSystem] = &[
    FileSystem {
        name: "ext4-128",
        make: "mkfs.ext4 -q -F -I 128 image 2>/dev/null && mount -o loop image mnt",
    },
    FileSystem {
        name: "ext4-256",
        make: "mkfs.ext4 -q -F -I 256 image && mount -o loop image mnt",
    },
    FileSystem { name: "xfs", make: "mkfs.xfs -q image && mount -o loop image mnt" },
    FileSystem { name: "btrfs", make: "mkfs.btrfs -q image && mount -o loop image mnt" },
    FileSystem { name: "tmpfs", make: "mount -t tmpfs tmpfs mnt" },
    FileSystem {
        name: "overlayfs",
        make: "mkfs.ext4 -q -F image && mount -o loop image under && \
               mkdir under/lower under/upper under/work && \
               mount -t overlay -o lowerdir=under/lower,upperdir=under/upper,workdir=under/work \
               overlay mnt",
    },
    FileSystem {
        name: FUSE,
        make: "mkfs.ext4 -q -F image && fuse2fs -o allow_other,default_permissions image mnt",
    },
];

/// `$1` is the scratch folder, `$2` makes and mounts, `$3` is where to run what follows. All of it
/// lies in memory: what is tested is how file systems behave, not how fast a disk is.
const IN_NAMESPACE: &str = "\
    mount -t tmpfs tmpfs \"$1\" && cd \"$1\" && mkdir mnt under && truncate -s 2G image && \
    eval \"$2\" && chmod 755 . && chmod 1777 mnt && export TMPDIR=\"$1/mnt\" && \
    cd \"$3\" && shift 3 && exec \"$@\"";

/// The server's tests on other file systems.
#[derive(Parser)]
#[command(name = "filesystems", bin_name = "cargo xtask filesystems")]
struct Options {
    /// These: ext4-128, ext4-256, xfs, btrfs, tmpfs, overlayfs; or fuse, which is not among them by
    /// default.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = find)]
    only: Vec<&'static FileSystem>,
    /// Tests whose names have this in them, not all.
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
}

impl Options {
    fn chosen(&self) -> Vec<&'static FileSystem> {
        match self.only.is_empty() {
            true => FILE_SYSTEMS.iter().filter(|one| one.name != FUSE).collect(),
            false => self.only.clone(),
        }
    }
}

fn find(name: &str) -> Result<&'static FileSystem, String> {
    options::find(name, FILE_SYSTEMS.iter().map(|one| (one.name, one)))
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = options::parse(words)?;
    if !rustix::process::geteuid().is_root() {
        return Err("filesystems: only root mounts file systems; try it as root".to_owned());
    }
    // Compiled where there is room, and once.
    test(root, None, &["--no-run".to_owned()])?;
    let mut failed = Vec::new();
    for file_system in options.chosen() {
        println!("filesystems: {}: {}", file_system.name, file_system.make);
        let begin = Instant::now();
        if let Err(error) = test(root, Some(file_system), &options.tests) {
            println!("filesystems: {}: {error}", file_system.name);
            failed.push(file_system.name);
        }
        println!("filesystems: {} took {} s", file_system.name, begin.elapsed().as_secs());
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(format!("filesystems: tests fail on {}", names.join(", "))),
    }
}

/// Runs the server's tests, on this file system or where they are.
fn test(root: &Path, on: Option<&FileSystem>, words: &[String]) -> Result<(), String> {
    let cargo = [&cargo_program()[..], "test", "--package", "nfskit-server", "--no-fail-fast"];
    let (mut command, _scratch) = match on {
        None => {
            let mut command = Command::new(cargo[0]);
            command.args(&cargo[1..]);
            (command, None)
        }
        Some(file_system) => {
            let scratch = scratch::make("filesystems")?;
            let mut command = Command::new("unshare");
            // The end of its first process is that of a FUSE server, too.
            command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
            command.args(["sh", "-c", IN_NAMESPACE, "sh"]);
            command.arg(scratch.path()).arg(file_system.make).arg(root).args(cargo);
            (command, Some(scratch))
        }
    };
    let ran = command.args(words).current_dir(root).status();
    let status = ran.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_chosen_by_name() {
        let names = |words: &[&str]| {
            let options: Options = options::parse(words)?;
            let (chosen, tests) = (options.chosen(), options.tests);
            let names: Vec<&str> = chosen.iter().map(|file_system| file_system.name).collect();
            Ok::<_, String>((names.join(" "), tests.join(" ")))
        };
        assert_eq!(names(&[]).unwrap().0.split(' ').count(), FILE_SYSTEMS.len() - 1);
        let chosen = names(&["--only", "xfs,tmpfs", "handles"]);
        assert_eq!(chosen, Ok(("xfs tmpfs".to_owned(), "handles".to_owned())));
        assert!(names(&["--only", "zfs"]).is_err() && names(&["--list"]).is_err());
    }
}
