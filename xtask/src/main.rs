//! All automation of the workspace, in the language of the workspace.
//!
//! `cargo xtask check` is what a change must pass; continuous integration runs the same code.

#![expect(clippy::disallowed_methods, reason = "automation runs in real time, outside every world")]

mod attacks;
mod captures;
mod check;
mod deny;
mod drill;
mod filesystems;
mod full;
mod generator;
mod guest;
mod host;
mod interop;
mod mounts;
mod nfs;
mod options;
mod packages;
mod peers;
mod powercut;
mod ranks;
mod rpc;
mod sim;
mod stress;
mod tidy;
mod unprivileged;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  attacks [OPTION]...     what clients with bad manners cost one that behaves
  captures [OPTION]...    nfskit trace against tshark, on captures made here
  check [--skip STEP]...  fmt, tidy, deny, clippy, test, doc: what every change must pass
  deny                    licences and sources of all crates, by deny.toml
  drill [OPTION]...       faults that are staged, and what `nfskit doctor` says of them
  filesystems [OPTION]... the server's tests on ext4, xfs, btrfs, tmpfs, overlayfs and FUSE
  full [OPTION]...        what takes long: before a release (--list names it)
  tidy [--functions]      what the compiler does not see: crate edges, links, manifests, wording
                          (--functions: how long the functions of each crate are)
  generator [OPTION]...   processor time of `bench curve` beside libnfs and fio
  interop                 the release binary against libnfs and NFS-Ganesha
  guest [OPTION]          the Linux kernel's client, in a guest, against the release binary
  mounts [OPTION]...      programs and exercises on `nfskit mount`; servers good, lossy and dead
  packages                packages made, installed on a clean Debian, used and removed
  peers [OPTION]...       nfskit serve measured side by side with NFS-Ganesha and unfs3
  powercut [OPTION]...    servers on a machine whose power is cut under load
  ranks                   `bench curve` as two processes of mpirun, beside one
  sim [OPTION]...         random plans with faults, in worlds, against the reference
  stress [OPTION]...      the release binary killed again and again under load, for 5 minutes
  unprivileged            every command as an ordinary user, attacked by another
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = workspace_root().and_then(|root| match words.as_slice() {
        ["attacks", options @ ..] => attacks::run(&root, options),
        [attacks::INSIDE, nfskit, options @ ..] => attacks::run_inside(nfskit.as_ref(), options),
        ["captures", options @ ..] => captures::run(&root, options),
        [captures::INSIDE, scratch, nfskit, size, guest] => {
            captures::run_inside(scratch.as_ref(), nfskit.as_ref(), size, guest)
        }
        ["check", options @ ..] => check::run(&root, options),
        ["deny"] => deny::run(&root),
        ["drill", options @ ..] => drill::run(&root, options),
        [drill::INSIDE, words @ ..] => drill::run_inside(words),
        ["filesystems", options @ ..] => filesystems::run(&root, options),
        ["full", options @ ..] => full::run(&root, options),
        ["tidy"] => tidy::run(&root),
        ["tidy", "--functions"] => tidy::print_functions(&root),
        ["generator", options @ ..] => generator::run(&root, options),
        ["interop"] => interop::run(&root),
        [interop::INSIDE, scratch, nfskit] => {
            interop::run_inside(scratch.as_ref(), nfskit.as_ref())
        }
        ["packages"] => packages::run(&root),
        ["peers", options @ ..] => peers::run(&root, options),
        [peers::INSIDE, scratch, nfskit, options @ ..] => {
            peers::run_inside(scratch.as_ref(), nfskit.as_ref(), options)
        }
        ["guest", options @ ..] => guest::run(&root, options),
        ["mounts", options @ ..] => mounts::run(&root, options),
        [mounts::INSIDE, scratch, nfskit, options @ ..] => {
            mounts::run_inside(scratch.as_ref(), nfskit.as_ref(), options)
        }
        [mounts::CLOSE_TO_OPEN, words @ ..] => mounts::run_close_to_open(words),
        ["powercut", options @ ..] => powercut::run(&root, options),
        [powercut::INSIDE, words @ ..] => powercut::run_inside(words),
        ["ranks"] => ranks::run(&root),
        ["sim", options @ ..] => sim::run(&root, options),
        ["stress", options @ ..] => stress::run(&root, options),
        ["unprivileged", options @ ..] => unprivileged::run(&root, options),
        [unprivileged::INSIDE, scratch, nfskit] => {
            unprivileged::run_inside(scratch.as_ref(), nfskit.as_ref())
        }
        [unprivileged::ATTACK, victim] => unprivileged::run_attack(victim),
        _ => Err(USAGE.to_owned()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// The folder of the root manifest, from cargo's environment for the programs that it runs.
fn workspace_root() -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package
        .and_then(|xtask| xtask.parent().map(PathBuf::from))
        .ok_or_else(|| "run me as `cargo xtask`".to_owned())
}
