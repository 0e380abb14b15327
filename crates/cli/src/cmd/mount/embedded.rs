//! A mount inside a command that does something else with it, at a directory of its own.

use std::path::{Path, PathBuf};

use client::files::Files;
use client::url::Version;
use mount::session::{Mount, Options, Unmounted, check};
use net::clock::Clock;
use perf::units::Nanos;

use super::reach::{self, Reached};
use super::settings::{Settings, split};
use super::voice::Voice;
use super::{failures, metrics};
use crate::args::Verbosity;
use crate::exit::Failure;

/// A server's file system, mounted or between two mounts.
#[derive(Debug)]
pub(crate) struct Embedded {
    settings: Settings,
    at: PathBuf,
    mounted: Option<(Mount, Files)>,
    /// What is spoken with the server, in words.
    pub(crate) spoken: String,
}

/// Why nothing can be mounted here, as far as that is to be seen before.
pub(crate) fn obstacle() -> Option<Failure> {
    let device = Path::new("/dev/fuse");
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(device);
    let cause = opened.err()?;
    let is_for_root = cause.kind() == std::io::ErrorKind::PermissionDenied;
    let error = mount::session::MountError::NoDevice(cause);
    // Where only root may open it, fusermount3 does it for everybody.
    (!is_for_root).then(|| failures::not_mounted(&error))
}

impl Embedded {
    /// Nothing is mounted yet. `words` are options as of `mount -o`.
    pub(crate) fn new(url: &str, words: &str, at: PathBuf) -> Result<Self, Failure> {
        let usage = |what: String| Failure::usage(what, "`nfskit mount --help`");
        let mut settings = Settings::of(url).map_err(usage)?;
        // A server that is gone has to end what works on the mount.
        settings.soft = true;
        for word in split(words) {
            settings.word(&word).map_err(usage)?;
        }
        settings.flags.allow_other |= rustix::process::geteuid().is_root();
        Ok(Self { settings, at, mounted: None, spoken: String::new() })
    }

    pub(crate) fn target(&self) -> &client::url::Target {
        &self.settings.target
    }

    pub(crate) fn at(&self) -> &Path {
        &self.at
    }

    /// Connects and mounts.
    pub(crate) async fn mount(&mut self, clock: &Clock) -> Result<(), Failure> {
        let at = check(&self.at, false).map_err(failures::directory)?;
        let voice = Voice::new(Verbosity::Quiet);
        let Reached { files, credential, spoken } =
            reach::reach(clock, &self.settings, &voice).await?;
        let options = Options {
            flags: self.settings.flags.clone(),
            cache: self.settings.kernel_cache(),
            credential,
            all_are_one: self.settings.target.uid.is_some(),
        };
        let mount = Mount::start(clock, files.clone(), &at, options)
            .map_err(|error| failures::not_mounted(&error))?;
        self.mounted = Some((mount, files));
        self.spoken = spoken;
        Ok(())
    }

    /// Writes back and unmounts, and forgets everything that was cached; by force if need be.
    pub(crate) async fn unmount(&mut self, limit: Nanos) -> Result<(), Failure> {
        let Some((mount, _)) = self.mounted.take() else { return Ok(()) };
        let ended = mount.end(limit).await;
        let at = self.at.display();
        if let Unmounted::Not(cause) = ended.unmounted {
            let what = format!("{at} could not be unmounted: {cause}");
            return Err(Failure::environment(what, format!("umount -l {at}")));
        }
        match ended.losses {
            Some(losses) if losses.is_empty() => Ok(()),
            _ => Err(Failure::environment(
                format!("not everything that was written to {at} could be written back"),
                "see whether the server is alive, and its disk",
            )),
        }
    }

    /// Calls that have ended since it was mounted, by the names of their procedures.
    pub(crate) fn calls(&self) -> Vec<(String, u64)> {
        let Some((_, files)) = &self.mounted else { return Vec::new() };
        let counters = files.session().rpc().counters();
        let version: Version = files.session().version();
        let procedures = counters.procedures.iter().enumerate();
        let calls = procedures.map(|(number, one)| (metrics::named(number, version), one.ops));
        calls.filter(|(_, calls)| *calls > 0).collect()
    }
}
