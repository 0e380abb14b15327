//! Whether a mount gives its memory back when the load is over.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::mounted::Mounted;
use super::steps::Stage;

use crate::host::about;

/// What may stay: what the allocator keeps in pieces, and what is in use.
const LEFT_MIB_MAX: u64 = 32;

/// Five quiet looks, one a second, with room for a busy machine.
const WITHIN: Duration = Duration::from_secs(30);

/// Writes and reads much, and waits until what that took is given back.
pub(super) fn play(stage: &Stage<'_>) -> Result<String, String> {
    let Some(url) = stage.url else { return Ok("no mount".to_owned()) };
    let name = format!("memory-{}", stage.kind.name());
    let mounted = Mounted::start(stage.nfskit, stage.scratch, &name, url, &[])?;
    let before = mounted.resident_mib()?;
    let size_mib = if stage.is_quick() { 256 } else { 1024 };
    let file = mounted.dir.join("memory");
    let worked = load(&file, size_mib);
    let loaded = mounted.resident_mib()?;
    fs::remove_file(&file).ok();
    worked.map_err(about(&file))?;
    let begin = Instant::now();
    loop {
        let now = mounted.resident_mib()?;
        let took = begin.elapsed();
        let sizes = format!("{before} MiB before {size_mib} MiB both ways, {loaded} after, {now}");
        if now <= before + LEFT_MIB_MAX && took >= Duration::from_secs(6) {
            mounted.stop()?;
            return Ok(format!("{sizes} {:.0} s later", took.as_secs_f64()));
        }
        if took > WITHIN {
            return Err(format!("{sizes} still"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Writes a file, and reads it without the kernel's pages.
fn load(path: &Path, size_mib: u64) -> io::Result<()> {
    let mut piece = vec![7; 1 << 20];
    let mut file = File::create(path)?;
    for _ in 0..size_mib {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let mut file = File::open(path)?;
    for _ in 0..size_mib {
        file.read_exact(&mut piece)?;
    }
    Ok(())
}
