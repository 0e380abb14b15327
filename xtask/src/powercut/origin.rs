//! A server of ours outside of the guest, which stays: proxies and mounts in the guest are before
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::machine::HOST;
use crate::host::about;
use crate::host::child::Service;
use crate::host::nfskit::{SERVES, START_WITHIN, STOP_WITHIN, TRUSTING};

/// Behind its host, in a URL.
pub(super) const PLACE: &str = "/?nfsport=2149&mountport=2149";
const PORT: u16 = 2149;
/// What a log had when the last round was over.
const EMPTY_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// What a proxy with a log has there while it runs.
const LEASE: &str = ".nfskit-write-back";

/// See the module's head.
#[derive(Debug)]
pub(super) struct Origin {
    service: Service,
    export: PathBuf,
}

pub(super) fn url() -> String {
    format!("nfs://{HOST}{PLACE}")
}

impl Origin {
    /// `link`: an emulated one to it, so that what a proxy has answered is its own for a while.
    pub(super) fn start(nfskit: &Path, folder: &Path, link: Option<&str>) -> Result<Self, String> {
        let (export, state) = (folder.join("origin"), folder.join("origin-state"));
        for made in [&export, &state] {
            fs::create_dir_all(made).map_err(about(made))?;
        }
        let mut command = Command::new(nfskit);
        command.arg("serve").arg(&export).arg("--state").arg(state).args(TRUSTING);
        command.args(["--listen", &format!("{HOST}:{PORT}")]);
        if let Some(link) = link {
            command.args(["--link", link]);
        }
        let service = Service::start_until(&mut command, START_WITHIN, SERVES)?;
        Ok(Self { service, export })
    }

    pub(super) fn export(&self) -> &Path {
        &self.export
    }

    /// Waits until everything that was removed is gone here, too.
    pub(super) fn await_empty(&self) -> Result<(), String> {
        let until = Instant::now() + EMPTY_WITHIN;
        loop {
            let names = names(&self.export)?;
            let left: Vec<_> = names.into_iter().filter(|name| name != LEASE).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(format!("the origin still has {}", left.join(", ")));
            }
            thread::sleep(POLL);
        }
    }

    pub(super) fn stop(self) -> Result<(), String> {
        self.service.stop(STOP_WITHIN)
    }
}

fn names(folder: &Path) -> Result<Vec<String>, String> {
    let failed = about(folder);
    let entries = fs::read_dir(folder).map_err(failed)?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).map_err(failed)).collect()
}
