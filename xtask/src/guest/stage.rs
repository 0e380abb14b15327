//! A network that the guest shares with servers of this host, and nobody else.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::image::Image;
use crate::host::about;
use crate::host::child::{Service, finish, text};
use crate::host::nfskit::{SERVES, START_WITHIN, TRUSTING};

/// The host's address on the guest's network.
pub(super) const ADDRESS: &str = "10.77.0.1";
const NAMESPACE_PREFIX: &str = "nfskit-guest-";
/// What waits in a log goes to the origin first.
const STOP_WITHIN: Duration = Duration::from_secs(40);
/// NFS-Ganesha, its portmapper and statd.
const GANESHA_WITHIN: Duration = Duration::from_secs(40);
/// The guest kills itself then.
const GUEST_SECONDS_MAX: u32 = 900;

/// Who a server of ours is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum User {
    Nobody,
    Root,
}

#[derive(Debug)]
pub(super) struct Stage<'a> {
    nfskit: &'a Path,
    image: &'a Image,
    namespace: String,
    folder: PathBuf,
    running: Vec<Service>,
    has_ganesha: bool,
}

impl<'a> Stage<'a> {
    /// The network; what servers export is made below `scratch`.
    pub(super) fn make(nfskit: &'a Path, image: &'a Image, scratch: &Path) -> Result<Self, String> {
        remove_left_over();
        let namespace = format!("{NAMESPACE_PREFIX}{}", std::process::id());
        let folder = scratch.join("exports");
        let stage =
            Self { nfskit, image, namespace, folder, running: Vec::new(), has_ganesha: false };
        let prepared = image.guest(&stage.namespace).arg("--prep").status();
        if !prepared.is_ok_and(|status| status.success()) {
            return Err("guest: the network namespace cannot be made".to_owned());
        }
        let open = |folder: &Path| fs::set_permissions(folder, Permissions::from_mode(0o755));
        fs::create_dir(&stage.folder).and_then(|()| open(scratch)).map_err(about(&stage.folder))?;
        Ok(stage)
    }

    /// Where what is exported lies.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command in the network.
    pub(super) fn inside(&self, user: User) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]);
        if user == User::Nobody {
            command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command
    }

    /// Serves a store on this port; its state is stored at `state`.
    pub(super) fn serve(
        &mut self,
        user: User,
        store: &OsStr,
        state: &Path,
        port: u16,
        options: &[String],
    ) -> Result<(), String> {
        let mut command = self.inside(user);
        command.arg(self.nfskit).arg("serve").arg(store).arg("--state").arg(state);
        command.args(["--listen", &format!("{ADDRESS}:{port}")]).args(TRUSTING).args(options);
        let service = Service::start_until(&mut command, START_WITHIN, SERVES)?;
        println!("{}", service.lines().join("\n"));
        self.running.push(service);
        Ok(())
    }

    /// An emulated link from a port to another.
    pub(super) fn link(&mut self, port: u16, to: u16, profile: &str) -> Result<(), String> {
        let mut command = self.inside(User::Root);
        command.arg(self.nfskit).args(["link", profile, "--insecure", "--uncalibrated"]);
        command.args(["--listen", &format!("{ADDRESS}:{port}")]);
        command.args(["--to", &format!("{ADDRESS}:{to}")]);
        let place = format!("{ADDRESS}:{port}");
        self.running.push(Service::start_until(&mut command, START_WITHIN, &place)?);
        Ok(())
    }

    /// NFS-Ganesha exports this folder as `/export`, on this port and with MOUNT on the next.
    pub(super) fn ganesha(&mut self, export: &Path, port: u16) -> Result<(), String> {
        self.has_ganesha = true;
        let mut command = self.ganesha_command("start");
        command.arg(export).arg(port.to_string());
        println!("{}", finish(&mut command, GANESHA_WITHIN, text)?.value.trim_end());
        Ok(())
    }

    fn ganesha_command(&self, word: &str) -> Command {
        let mut command = Command::new(self.image.scripts().join("ganesha.sh"));
        command.arg(word).env("NETNS", &self.namespace);
        command
    }

    /// Has the guest execute a script of `material`; what that leaves in `/out` comes to `out`.
    pub(super) fn play(
        &self,
        script: &Path,
        material: &Path,
        settings: &[(&str, String)],
        out: &Path,
    ) -> Result<(), String> {
        let mut command = self.image.guest(&self.namespace);
        command.args(["--timeout", &GUEST_SECONDS_MAX.to_string(), "--scratch", "1500"]);
        command.arg("--add").arg(format!("{}:material", material.display()));
        for (name, value) in settings {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        command.arg("--out").arg(out).arg(script).stdin(Stdio::null());
        let status = command.status();
        let status = status.map_err(|error| format!("the guest does not start: {error}"))?;
        match status.code() {
            Some(0) => Ok(()),
            Some(124) => Err("guest: the time was up".to_owned()),
            Some(70) => Err("guest: the guest's kernel died, see above".to_owned()),
            _ => Err(format!("guest: {status}, see above")),
        }
    }

    /// Ends what runs, the last that was started first: a proxy before its origin.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.running.drain(..).rev().try_for_each(|server| server.stop(STOP_WITHIN))
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.running.clear();
        if self.has_ganesha {
            // What stays disturbs nothing: the network is its own.
            let _ = self.ganesha_command("stop").status();
        }
        remove_namespace(&self.namespace);
    }
}

fn remove_namespace(name: &str) {
    // It disturbs nothing if it stays; the next run tries again.
    let _ = Command::new("ip").args(["netns", "delete", name]).status();
}

/// Removes namespaces whose run was interrupted.
fn remove_left_over() {
    let Ok(entries) = fs::read_dir("/run/netns") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(NAMESPACE_PREFIX);
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove_namespace(&name);
        }
    }
}
