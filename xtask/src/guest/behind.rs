//! Proxies before a server that is 10 ms away, ours or NFS-Ganesha: how much faster a tree is
//! unpacked through one that answers from a log, and whether clients of two proxies and of the
//! origin see each other's changes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::options::{Options, Play};
use super::stage::{ADDRESS, Stage, User};
use crate::host::about;
use crate::host::child::{finish, text};

const LINK: &str = "wan-10ms";
const GANESHA: u16 = 2249;
const COMPARED_WITHIN: Duration = Duration::from_secs(60);

/// The proxies: port, which of the origins, and whether it has a log.
const PROXIES: [(u16, usize, bool); 4] =
    [(2051, 0, false), (2052, 0, false), (2053, 1, true), (2054, 1, false)];

/// How an origin is reached.
struct Origin {
    export: String,
    port: u16,
    mount_port: u16,
}

pub(super) fn play(
    mut stage: Stage<'_>,
    options: &Options,
    material: &Path,
    scratch: &Path,
) -> Result<(), String> {
    let made = |folder: &Path| fs::create_dir(folder).map_err(about(folder));
    let folder = stage.folder().to_owned();
    made(&folder.join("state"))?;
    if options.ganesha {
        stage.ganesha(&folder, GANESHA)?;
    }
    let mut origins = Vec::new();
    for (name, port) in [("one", 2149), ("two", 2150)] {
        let export = folder.join(name);
        made(&export)?;
        origins.push(match options.ganesha {
            true => {
                stage.link(port, GANESHA, LINK)?;
                Origin { export: format!("/export/{name}"), port, mount_port: GANESHA + 1 }
            }
            false => {
                let link = ["--link", LINK].map(str::to_owned);
                stage.serve(User::Root, export.as_os_str(), &folder.join("state"), port, &link)?;
                Origin { export: "/".to_owned(), port, mount_port: port }
            }
        });
    }
    for (port, origin, has_log) in PROXIES {
        let Origin { export, port: behind, mount_port } = &origins[origin];
        let url = format!("nfs://{ADDRESS}{export}?nfsport={behind}&mountport={mount_port}");
        let log = folder.join(format!("{port}.wal")).display().to_string();
        let log = ["--write-back".to_owned(), log];
        let words = if has_log { &log[..] } else { &[] };
        stage.serve(User::Root, url.as_ref(), &folder.join("state"), port, words)?;
    }
    let origin_of =
        |Origin { export, port, mount_port }: &Origin| format!("{export} {port} {mount_port}");
    let part = if options.play == Play::Behind { "untar" } else { "seen" };
    let settings = [
        ("ORIGINS", origins.iter().map(origin_of).collect::<Vec<_>>().join(" ")),
        ("PART", part.to_owned()),
    ];
    let script = material.join("behind.sh");
    let played = stage.play(&script, material, &settings, &scratch.join("out"));
    // What is on its way comes to the origin.
    let stopped = stage.stop();
    played.and(stopped)?;
    if options.play == Play::Behind {
        for other in ["plain", "log1", "log2", "log3"] {
            let trees = ["direct", other].map(|name| folder.join("two").join(name));
            finish(Command::new("diff").arg("-r").args(&trees), COMPARED_WITHIN, text)
                .map_err(|what| format!("guest: {other}: {what}"))?;
        }
        println!("guest: the origin has the same tree of all");
    }
    Ok(())
}
