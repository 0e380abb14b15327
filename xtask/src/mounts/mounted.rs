//! A mount of ours, for the length of some steps.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::served::new_folder;
use crate::host::child::Service;
use crate::host::process;

/// Far above what a slow machine needs, far below what a person waits.
const MOUNT_WITHIN: Duration = Duration::from_secs(20);
const UNMOUNT_WITHIN: Duration = Duration::from_secs(60);

/// `nfskit mount`, and the folder that it is mounted on. Dropped, it is killed and unmounted.
#[derive(Debug)]
pub(super) struct Mounted {
    /// Always there until it is stopped.
    service: Option<Service>,
    pub(super) dir: PathBuf,
}

impl Mounted {
    /// Mounts `url` on a new folder called `name` under `scratch`.
    pub(super) fn start(
        nfskit: &Path,
        scratch: &Path,
        name: &str,
        url: &str,
        options: &[&str],
    ) -> Result<Self, String> {
        let dir = new_folder(scratch, name)?;
        let mut command = Command::new(nfskit);
        command.args(["mount", url]).arg(&dir).args(options);
        let service = Service::start(&mut command)?;
        let mut mounted = Self { service: Some(service), dir: dir.clone() };
        mounted.wait_for(MOUNT_WITHIN, |_| is_mounted(&dir).then_some(()))?;
        Ok(mounted)
    }

    /// Waits for lines that the mount prints.
    pub(super) fn wait_for<T>(
        &mut self,
        within: Duration,
        ready: impl FnMut(&[String]) -> Option<T>,
    ) -> Result<T, String> {
        match &mut self.service {
            Some(service) => service.wait_for(within, ready),
            None => Err("the mount was stopped".to_owned()),
        }
    }

    /// The newest lines that the mount printed, but the first two, which it always prints.
    pub(super) fn complaints(&self) -> Vec<String> {
        let lines = self.service.as_ref().map(Service::lines).unwrap_or_default();
        lines.into_iter().skip(2).collect()
    }

    /// Resident memory of its process.
    pub(super) fn resident_mib(&self) -> Result<u64, String> {
        let pid = self.service.as_ref().map(Service::pid).ok_or("the mount was stopped")?;
        process::resident_mib(pid).ok_or_else(|| "the mount has ended".to_owned())
    }

    /// Asks it to end; it must write back, unmount and exit with 0.
    pub(super) fn stop(self) -> Result<(), String> {
        self.end(UNMOUNT_WITHIN).and_then(|how| how)
    }

    /// Ends it. The outer error: it did not unmount; the inner one: it reported a failure.
    pub(super) fn end(mut self, within: Duration) -> Result<Result<(), String>, String> {
        let Some(service) = self.service.take() else { return Ok(Ok(())) };
        let ended = service.stop(within);
        match is_mounted(&self.dir) {
            true => Err(format!("it is still mounted; {ended:?}")),
            false => Ok(ended),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.service.take());
        if is_mounted(&self.dir) {
            // The daemon is gone: whoever waits for it fails now, and the mount can go.
            let mut umount = Command::new("umount");
            umount.arg("-l").arg(&self.dir).stdout(Stdio::null()).stderr(Stdio::null());
            umount.status().ok();
        }
    }
}

/// Whether the mount table has `dir`. The folder itself is not touched: it may not answer.
pub(super) fn is_mounted(dir: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let dir = dir.display().to_string();
    table.lines().any(|line| line.split(' ').nth(4) == Some(dir.as_str()))
}
