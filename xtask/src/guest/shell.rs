//! A guest that does one command after the other, while we do something else beside it.
//!
//! It sees our files under `/host`. A command is a file in a folder there, and so are what it
//! printed and its status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::image::Image;
use crate::host::about;
use crate::host::child::{Service, finish, text};

const SCRIPT: &str = include_str!("scripts/shell.sh");
/// It takes 3 s.
const BOOT_WITHIN: Duration = Duration::from_secs(60);
const END_WITHIN: Duration = Duration::from_secs(20);
/// For what takes moments.
const SOON: Duration = Duration::from_secs(30);
/// All commands together; it kills itself then.
const GUEST_SECONDS_MAX: u32 = 1800;

/// Gives the network namespace that we are alone in a name, for the guest's scripts, and a tap.
pub(crate) fn attach(image: &Image, namespace: &str) -> Result<(), String> {
    let pid = std::process::id().to_string();
    finish(Command::new("ip").args(["netns", "attach", namespace, &pid]), SOON, text)?;
    finish(image.guest(namespace).arg("--prep"), SOON, text).map(drop)
}

#[derive(Debug)]
pub(crate) struct Shell {
    service: Service,
    folder: PathBuf,
    turn: u32,
}

impl Shell {
    /// Boots a guest in the network namespace of this name, with a folder for commands.
    pub(crate) fn boot(image: &Image, namespace: &str, folder: &Path) -> Result<Self, String> {
        let script = folder.join("shell.sh");
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&script, SCRIPT));
        written.map_err(about(folder))?;
        let mut command = image.guest(namespace);
        command.args(["--timeout", &GUEST_SECONDS_MAX.to_string()]);
        command.arg("--set").arg(format!("FOLDER={}", folder.display())).arg(script);
        let service = Service::start_until(&mut command, BOOT_WITHIN, "ready for commands")?;
        Ok(Self { service, folder: folder.to_owned(), turn: 0 })
    }

    /// Does a command of bash, and returns what it printed; fails unless its status is 0.
    pub(crate) fn run(&mut self, command: &str, within: Duration) -> Result<String, String> {
        self.turn += 1;
        let file = |kind: &str| self.folder.join(format!("{}.{kind}", self.turn));
        let [draft, status, log] = ["draft", "status", "log"].map(file);
        // It must not be seen before it is whole.
        fs::write(&draft, command)
            .and_then(|()| fs::rename(&draft, file("command")))
            .map_err(about(&draft))?;
        let ended = self.service.wait_for(within, |_| fs::read_to_string(&status).ok());
        let log = fs::read_to_string(log).unwrap_or_default();
        match ended?.trim() {
            "0" => Ok(log),
            status => Err(format!("in the guest: status {status}: {}", log.trim_end())),
        }
    }

    /// Lets it end.
    pub(crate) fn end(self) -> Result<(), String> {
        let end = self.folder.join("end");
        fs::write(&end, "").map_err(about(&end))?;
        self.service.wait(END_WITHIN)
    }
}
