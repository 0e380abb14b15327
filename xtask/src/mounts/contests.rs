//! Programs of three mounts of one server compete: for names, files, logs and locks.
//!
//! In the first run nothing goes wrong but what programs do to one another; in the second the
//! server is killed and started again, over and over; in the third its disk is full now and then.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use super::mounted::Mounted;
use super::served::{Kind, Ours, new_folder};
use super::steps::Stage;
use crate::host::about;
use crate::host::child::{finish, text};

/// From one trouble to the next, and how long it lasts.
const PEACE: Duration = Duration::from_millis(700);
const TROUBLE: Duration = Duration::from_millis(300);

const UNMOUNT_WITHIN: Duration = Duration::from_secs(60);

/// More than the export's file system has.
const FILLING: usize = 80 << 20;

/// What happens to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Trouble {
    None,
    Killed,
    Full,
}

/// What is exported: a file system in memory, which does not use a file's number again.
struct Memory(PathBuf);

impl Memory {
    fn mount(folder: PathBuf) -> Result<Self, String> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64m", "contests"]).arg(&folder);
        finish(&mut mount, Duration::from_secs(10), text)?;
        Ok(Self(folder))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

/// The step: each trouble that the server can have.
pub(super) fn play(stage: &Stage<'_>) -> Result<String, String> {
    let troubles = match stage.kind {
        Kind::Local => &[Trouble::None][..],
        _ => &[Trouble::None, Trouble::Killed, Trouble::Full],
    };
    let summary = troubles.iter().map(|&trouble| {
        play_with(stage, trouble).map_err(|why| format!("{trouble:?}: {why}")).map(|summary| {
            match trouble {
                Trouble::None => summary,
                Trouble::Killed => format!("killed: {summary}"),
                Trouble::Full => format!("full: {summary}"),
            }
        })
    });
    Ok(summary.collect::<Result<Vec<_>, _>>()?.join("; "))
}

fn play_with(stage: &Stage<'_>, trouble: Trouble) -> Result<String, String> {
    let name = |what: &str| format!("{what}-{}-{trouble:?}", stage.kind.name());
    let memory = Memory::mount(new_folder(stage.scratch, &name("memory"))?)?;
    let export = memory.0.as_path();
    let mut served = match stage.kind {
        Kind::Local => None,
        _ => Some(Ours::start(stage.nfskit, stage.scratch, export, &[])?),
    };
    let mut mounts = Vec::new();
    let mut player = Command::new(stage.material.join(CONTESTS));
    for (mount, folder, options) in [
        ("usual", "--live", &["-o", "timeo=10"][..]),
        ("forgetful", "--live-unremembering", &["-o", "timeo=10,acdirmin=0,acdirmax=0"]),
        ("writethrough", "--live", &["-o", "timeo=10,kernel_cache=writethrough"]),
    ] {
        match &served {
            None => player.arg(folder).arg(export),
            Some(server) => {
                let (nfskit, url) = (stage.nfskit, server.url());
                let mounted = Mounted::start(nfskit, stage.scratch, &name(mount), &url, options)?;
                player.arg(folder).arg(&mounted.dir);
                mounts.push(mounted);
                &mut player
            }
        };
    }
    let seeds = match (stage.is_quick(), trouble) {
        (true, _) => "10",
        (false, Trouble::None) => "60",
        (false, _) => "30",
    };
    player.arg("--server").arg(export).args(["--seed", &stage.options.seed.to_string()]);
    player.args(["--count", seeds]);
    if trouble == Trouble::Full {
        player.arg("--may-be-full");
    }
    let within = stage.within(60, 180);
    let played = thread::scope(|scope| {
        let playing = scope.spawn(|| finish(&mut player, within, text));
        let mut troubles = 0;
        while trouble != Trouble::None && !playing.is_finished() {
            thread::sleep(PEACE);
            match trouble {
                Trouble::None => {}
                Trouble::Killed => {
                    let dead = served.take().map(Ours::kill);
                    thread::sleep(TROUBLE);
                    served = dead.map(|dead| dead.revive()).transpose()?;
                }
                Trouble::Full => fill(&export.join("filling"))?,
            }
            troubles += 1;
        }
        let played = playing.join().map_err(|_| "the player panicked".to_owned())??;
        let summary = played.value.lines().last().unwrap_or_default().replace("live: ", "");
        Ok::<_, String>(match trouble {
            Trouble::None => summary,
            _ => format!("{summary}, {troubles} times"),
        })
    })?;
    for mounted in mounts {
        let how = mounted.end(UNMOUNT_WITHIN)?;
        // A program that did not sync its bytes gets no error before.
        if trouble != Trouble::Full {
            how.map_err(|why| format!("one of its mounts: {why}"))?;
        }
    }
    if let Some(server) = served {
        server.stop()?;
    }
    Ok(played)
}

/// Takes all the room that there is, for a while.
fn fill(file: &Path) -> Result<(), String> {
    // It is too large: what can be written is.
    fs::write(file, vec![0; FILLING]).err();
    thread::sleep(TROUBLE);
    fs::remove_file(file).map_err(about(file))
}

/// What plays contests, beside the scripts.
pub(crate) const CONTESTS: &str = "contests";
