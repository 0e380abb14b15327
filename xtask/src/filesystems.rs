//! `cargo xtask filesystems`: the server's tests on other file systems than the developer's.
//!
//! Each is made in memory, in a namespace of its own that it goes away with, and the tests'
//! temporary directories (TMPDIR) lie on it. It needs root, and what makes and mounts the file
//! systems (`.ci/packages full`).

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
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
    /// Tests that cannot hold there.
    cannot: &'static [Exception],
}

/// A test of a rule of docs/semantics.md that a file system does not let hold.
struct Exception {
    rule: u32,
    test: &'static str,
    why: &'static str,
    /// Whether it is tried all the same, and reported when it passes.
    is_tried: bool,
}

const fn cannot(rule: u32, test: &'static str, why: &'static str) -> Exception {
    Exception { rule, test, why, is_tried: true }
}

const HANDLES_END: &str = "on FUSE handles end with the process";

/// What is not so on fuse2fs, which keeps files by their paths (the high level of libfuse 2).
const NOT_ON_FUSE: &[Exception] = &[
    Exception {
        is_tried: false,
        ..cannot(
            17,
            "store::dir::tests::up::\
             a_deep_directory_has_the_one_above_and_the_serving_thread_does_not_climb",
            "libfuse walks the whole path for each call: 3,000 levels take longer than \
             anybody waits",
        )
    },
    Exception {
        is_tried: false,
        ..cannot(
            25,
            "store::dir::tests::twin::the_store_decides_as_the_kernel_does",
            "what is removed while it is open stays, under a name that libfuse makes \
             (.fuse_hidden...)",
        )
    },
    cannot(
        15,
        "store::dir::tests::names::rights_that_a_default_acl_withholds_are_given_to_nobody",
        "fuse2fs keeps ACLs, and does not apply them",
    ),
    cannot(
        25,
        "store::dir::tests::callers::what_is_made_in_a_set_group_id_directory_has_its_group",
        "fuse2fs gives it the caller's group",
    ),
    cannot(
        29,
        "store::dir::tests::data::attributes_of_a_read_are_never_newer_than_its_data",
        "the kernel fetches a size with what it reads, and may show it before the bytes",
    ),
    cannot(
        23,
        "store::dir::tests::handles::what_others_did_while_the_server_was_away_is_found_or_stale",
        "a file's number is its path's, and another one when the kernel has forgotten it",
    ),
    cannot(
        23,
        "store::dir::tests::handles::the_roots_handle_survives_a_restart_and_kernel_handles_do_too",
        HANDLES_END,
    ),
    cannot(
        23,
        "store::dir::tests::handles::a_key_from_outside_makes_handles_survive_without_an_attribute",
        HANDLES_END,
    ),
    cannot(
        23,
        "store::dir::tests::handles::a_handle_of_one_root_is_stale_in_a_copy_that_has_its_key",
        HANDLES_END,
    ),
    cannot(
        23,
        "store::dir::tests::handles::a_table_that_is_stored_knows_its_handles_after_a_restart",
        HANDLES_END,
    ),
    cannot(
        23,
        "store::dir::tests::systems::\
         a_file_whose_known_name_is_gone_is_found_by_another_however_wide_the_tree",
        "each name of a file has a number of its own",
    ),
    cannot(
        21,
        "nfs2::hostile::handles_of_deleted_files_are_stale",
        "a removed directory that is open goes on having links",
    ),
    cannot(
        41,
        "reference::the_engine_over_a_directory_is_like_a_map_of_paths",
        "each name of a file has attributes of its own: the number of links is stale",
    ),
    cannot(
        46,
        "nfs2::data::attributes_are_set_and_minus_one_keeps_them",
        "fuse2fs keeps times until 2038",
    ),
];

const FILE_SYSTEMS: &[FileSystem] = &[
    FileSystem {
        name: "ext4-128",
        make: "mkfs.ext4 -q -F -I 128 image 2>/dev/null && mount -o loop image mnt",
        cannot: &[],
    },
    FileSystem {
        name: "ext4-256",
        make: "mkfs.ext4 -q -F -I 256 image && mount -o loop image mnt",
        cannot: &[],
    },
    FileSystem { name: "xfs", make: "mkfs.xfs -q image && mount -o loop image mnt", cannot: &[] },
    FileSystem {
        name: "btrfs",
        make: "mkfs.btrfs -q image && mount -o loop image mnt",
        cannot: &[],
    },
    FileSystem { name: "tmpfs", make: "mount -t tmpfs tmpfs mnt", cannot: &[] },
    FileSystem {
        name: "overlayfs",
        make: "mkfs.ext4 -q -F image && mount -o loop image under && \
               mkdir under/lower under/upper under/work && \
               mount -t overlay -o lowerdir=under/lower,upperdir=under/upper,workdir=under/work \
               overlay mnt",
        cannot: &[],
    },
    FileSystem {
        name: "fuse",
        // The kernel decides who may do what, and the program asks nobody for it again (fakeroot).
        make: "mkfs.ext4 -q -F image && \
               fuse2fs -o allow_other,default_permissions,fakeroot image mnt",
        cannot: NOT_ON_FUSE,
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
    /// These: ext4-128, ext4-256, xfs, btrfs, tmpfs, overlayfs, fuse.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = find)]
    only: Vec<&'static FileSystem>,
    /// Tests whose names have this in them, not all.
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
}

impl Options {
    fn chosen(&self) -> Vec<&'static FileSystem> {
        match self.only.is_empty() {
            true => FILE_SYSTEMS.iter().collect(),
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
    succeeds(test(root, None, &["--no-run"], Command::status)?)?;
    let mut failed = Vec::new();
    for file_system in options.chosen() {
        println!("filesystems: {}: {}", file_system.name, file_system.make);
        let begin = Instant::now();
        if let Err(error) = try_out(root, file_system, &options.tests) {
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

/// All tests on a file system; those that cannot hold there apart.
fn try_out(root: &Path, on: &'static FileSystem, tests: &[String]) -> Result<(), String> {
    let mut words: Vec<&str> = tests.iter().map(String::as_str).collect();
    words.push("--");
    for Exception { rule, test, why, .. } in on.cannot {
        println!("filesystems: {}: rule {rule} does not hold, {test}: {why}", on.name);
        words.extend(["--skip", test]);
    }
    succeeds(test(root, Some(on), &words, Command::status)?)?;
    let tried = on.cannot.iter().filter(|exception| exception.is_tried);
    let tried: Vec<&str> = tried.map(|exception| exception.test).collect();
    if tried.is_empty() || !tests.is_empty() {
        return Ok(());
    }
    let words = [&["--", "--exact"][..], &tried].concat();
    let output = test(root, Some(on), &words, |command| command.stderr(Stdio::null()).output())?;
    for name in passed(&String::from_utf8_lossy(&output.stdout)) {
        println!("filesystems: {}: {name} passes, though its rule need not hold here", on.name);
    }
    Ok(())
}

/// The names of tests that their output says have passed.
fn passed(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"))
}

/// Calls the server's tests, on this file system or where they are; what that gives.
fn test<T>(
    root: &Path,
    on: Option<&FileSystem>,
    words: &[&str],
    call: impl FnOnce(&mut Command) -> io::Result<T>,
) -> Result<T, String> {
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
    let called = call(command.args(words).current_dir(root));
    called.map_err(|error| format!("{}: {error}", command.get_program().display()))
}

fn succeeds(status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(status.to_string()) }
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
        assert_eq!(names(&[]).unwrap().0.split(' ').count(), FILE_SYSTEMS.len());
        let chosen = names(&["--only", "xfs,tmpfs", "handles"]);
        assert_eq!(chosen, Ok(("xfs tmpfs".to_owned(), "handles".to_owned())));
        assert!(names(&["--only", "zfs"]).is_err() && names(&["--list"]).is_err());
    }

    #[test]
    fn what_passes_is_read_off_the_tests_output() {
        let output = "running 3 tests
test a::b ... ok
test c ... FAILED
test d ... ok <0.1s>
";
        assert_eq!(passed(output).collect::<Vec<_>>(), ["a::b"]);
    }

    #[test]
    fn what_cannot_hold_is_a_test_of_the_server() {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/server");
        for Exception { test, .. } in FILE_SYSTEMS.iter().flat_map(|one| one.cannot) {
            let (module, name) = test.rsplit_once("::").unwrap();
            let file = format!("{}.rs", module.replace("::", "/"));
            let paths = ["src", "tests/it"].map(|folder| server.join(folder).join(&file));
            let text = paths.iter().find_map(|path| std::fs::read_to_string(path).ok());
            assert!(text.is_some_and(|text| text.contains(&format!("fn {name}("))), "{test}");
        }
    }
}
