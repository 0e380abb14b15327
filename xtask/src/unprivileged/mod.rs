//! `cargo xtask unprivileged`: the binary as an ordinary user has it, and what another user of the
//! same host gets from it, which is nothing.
//!
//! ```text
//!   uid 1000   study, policies, papers, serve, bench, probe, link, trace, mount ... : each works
//!              │ looks for what listens, and tries
//!   uid 1001   mounts as uid 1000 and as root, over TCP and UDP; makes a set-uid file: never
//! ```
//!
//! It takes root to be several users, and namespaces, so that no process of somebody else's is
//! attacked. Where there is none, the commands run as whoever runs this, and nobody attacks.

mod attack;
mod steps;
mod user;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::host::report::Report;
use crate::host::{about, build, is_ci, isolate, scratch};
use steps::Stage;
use user::User;

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "unprivileged-inside";
/// The command by which a step calls us again as the other user.
pub(crate) const ATTACK: &str = "unprivileged-attack";

/// Every command as an ordinary user, attacked by another.
#[derive(Debug, Parser)]
#[command(name = "unprivileged", bin_name = "cargo xtask unprivileged")]
struct Options {
    /// A binary that is there already, instead of a release build.
    #[arg(long, value_name = "PROGRAM")]
    nfskit: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let Options { nfskit } = crate::options::parse(words)?;
    let nfskit = build::given_or_release(root, "unprivileged", nfskit.as_deref())?;
    let scratch = scratch::make("unprivileged")?;
    let (nfskit, own) = copied(scratch.path(), &nfskit)?;
    if isolate::is_possible() {
        let words = [INSIDE.as_ref(), scratch.path().as_os_str(), nfskit.as_os_str()];
        return isolate::run("unprivileged", &own, words);
    }
    let why = "it takes root, and namespaces, to be several users";
    if is_ci() {
        return Err(format!("unprivileged: NOT RUN, and CI=true: {why}"));
    }
    println!("unprivileged: NOBODY ATTACKS, and all runs as this user: {why}");
    play(&Stage { nfskit, xtask: own, owner: User::this(scratch.path())?, stranger: None })
}

/// Inside the namespaces: as the two users.
pub(crate) fn run_inside(scratch: &Path, nfskit: &Path) -> Result<(), String> {
    isolate::end_with_caller(scratch);
    give_everybody_fuse();
    let xtask = std::env::current_exe().map_err(|error| error.to_string())?;
    let owner = User::with_home(1000, scratch)?;
    let stranger = Some(User::with_home(1001, scratch)?);
    play(&Stage { nfskit: nfskit.to_owned(), xtask, owner, stranger })
}

/// The device as most systems have it, in our namespace only: containers often keep it for root.
fn give_everybody_fuse() {
    let script = "test -c /dev/fuse && mknod -m 666 /run/fuse c 10 229 && \
                  mount --bind /run/fuse /dev/fuse";
    let given = std::process::Command::new("sh").args(["-c", script]).status();
    if !given.is_ok_and(|status| status.success()) {
        println!("unprivileged: there is no /dev/fuse: mount can only say so");
    }
}

/// As the other user, against the one with this user id.
pub(crate) fn run_attack(victim: &str) -> Result<(), String> {
    attack::run(victim)
}

fn play(stage: &Stage) -> Result<(), String> {
    let mut report = Report::new("unprivileged");
    stage.play(&mut report);
    report.verdict(stage.stranger.is_some())
}

/// The programs where every user may run them: a build folder may lie in somebody's home.
fn copied(scratch: &Path, nfskit: &Path) -> Result<(PathBuf, PathBuf), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let copy = |from: &Path, name: &str| {
        let to = scratch.join(name);
        fs::copy(from, &to)
            .and_then(|_| fs::set_permissions(&to, fs::Permissions::from_mode(0o755)))
            .map_err(about(from))?;
        Ok::<_, String>(to)
    };
    let entered = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scratch, entered).map_err(|error| error.to_string())?;
    Ok((copy(nfskit, "nfskit")?, copy(&own, "xtask")?))
}
