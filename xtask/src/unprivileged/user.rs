//! A user who has a home, a PATH, and nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::about;

/// See the module's head.
#[derive(Debug)]
pub(super) struct User {
    pub(super) uid: u32,
    /// Nobody else may look into it.
    pub(super) home: PathBuf,
    is_this: bool,
}

impl User {
    /// With a new home below `scratch`; takes root.
    pub(super) fn with_home(uid: u32, scratch: &Path) -> Result<Self, String> {
        let home = scratch.join(format!("home-{uid}"));
        let made = fs::create_dir(&home)
            .and_then(|()| fs::set_permissions(&home, fs::Permissions::from_mode(0o700)))
            .and_then(|()| chown(&home, Some(uid), Some(uid)));
        made.map_err(about(&home))?;
        Ok(Self { uid, home, is_this: false })
    }

    /// Whoever runs us.
    pub(super) fn this(scratch: &Path) -> Result<Self, String> {
        let home = scratch.join("home");
        fs::create_dir(&home).map_err(about(&home))?;
        Ok(Self { uid: rustix::process::getuid().as_raw(), home, is_this: true })
    }

    /// A program as this user runs it: without groups, capabilities or environment.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.home).env_clear().env("HOME", &self.home);
        command.env("TMPDIR", &self.home).env("PATH", "/usr/bin:/bin");
        // Whether this machine's timers are exact enough for a link is not tested here.
        command.env("NFSKIT_UNCALIBRATED", "1");
        if !self.is_this {
            // Clears the groups, too.
            command.uid(self.uid).gid(self.uid);
        }
        command
    }
}
