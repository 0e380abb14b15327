//! Our cache on a disk beside the kernel's FS-Cache, before one server that is 10 ms away: what a
//! first read costs, one again, one by a new mount, one after a new boot, and one after a power cut
//! in the midst of filling.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::stage::{ADDRESS, Stage, User};
use crate::host::about;
use crate::host::child::{finish, text};

const PORT: u16 = 2049;
const METRICS: u16 = 9100;
const DISK: &str = "1G";
const SOON: Duration = Duration::from_secs(120);

/// Files older than any tick, of which each cache keeps what it reads.
const FILES: &str = "set -e; cd \"$1\"; python3 \"$2/small.py\" tree; \
    head -c 64M /dev/urandom >big; mkdir more; \
    for n in $(seq 100); do head -c 1M /dev/urandom >more/$n; done; \
    find . -exec touch -d '2 hours ago' {} +; \
    find big tree -type f -print0 | sort -z | xargs -0 sha256sum >\"$3/sums\"; \
    sha256sum more/* >\"$3/more.sums\"; sleep 3; \
    for cache in fscache ours; do truncate -s \"$4\" \"$3/$cache.img\"; \
    mke2fs -q -F -t ext4 \"$3/$cache.img\"; done";

pub(super) fn play(mut stage: Stage<'_>, material: &Path, scratch: &Path) -> Result<(), String> {
    let [export, state] = ["data", "state"].map(|name| stage.folder().join(name));
    let persist = scratch.join("persist");
    for folder in [&export, &state, &persist] {
        fs::create_dir(folder).map_err(about(folder))?;
    }
    let mut making = Command::new("bash");
    making.args(["-c", FILES, "bash"]).args([&export, material, &persist]).arg(DISK);
    finish(&mut making, SOON, text)?;
    let options = ["--metrics", &format!("{ADDRESS}:{METRICS}"), "--link", "wan-10ms"];
    stage.serve(User::Root, export.as_os_str(), &state, PORT, &options.map(str::to_owned))?;
    println!("| | | READs | calls | seconds | wrong files |\n|---|---|---|---|---|---|");
    for boot in ["first", "again", "cut"] {
        let out = scratch.join(format!("out-{boot}"));
        let settings = [
            ("METRICS", METRICS.to_string()),
            ("PERSIST", persist.display().to_string()),
            ("BOOT", boot.to_owned()),
        ];
        let played = stage.play(&material.join("fscache.sh"), material, &settings, &out);
        let lines = fs::read_to_string(out.join("calls")).unwrap_or_default();
        for line in lines.lines() {
            println!("| {} |", line.split_whitespace().collect::<Vec<_>>().join(" | "));
        }
        played?;
    }
    stage.stop()
}
