//! The servers side by side, each on the same directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::fixture;
use crate::host::child::{Service, finish, text};
use crate::host::ganesha::Ganesha;
use crate::host::nfskit::{Address, START_WITHIN, STOP_WITHIN, Server};
use crate::host::{free_port, tools};

const WRITE_LOG: &str = "--write-log";

/// Who is measured.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Name {
    Ours,
    /// `--write-log`, with a directory of its own: no other server may have that.
    OursLog,
    /// `--metadata-sync never`: names and attributes reach the disk when the kernel likes.
    OursUnsynced,
    /// `mem:`
    OursMemory,
    Ganesha,
    Unfs3,
    /// System calls of our own, on the same file system.
    Local,
}

impl Name {
    pub(crate) const ALL: [Self; 7] = [
        Self::Ours,
        Self::OursLog,
        Self::OursUnsynced,
        Self::OursMemory,
        Self::Ganesha,
        Self::Unfs3,
        Self::Local,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursLog => "ours-log",
            Self::OursUnsynced => "ours-unsynced",
            Self::OursMemory => "ours-memory",
            Self::Ganesha => "ganesha",
            Self::Unfs3 => "unfs3",
            Self::Local => "local",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::OursLog | Self::OursUnsynced | Self::OursMemory)
    }
}

/// What is needed to start any of them.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) nfskit: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) export: PathBuf,
    /// More arguments for `nfskit serve`.
    pub(crate) serve: Vec<String>,
    can_unsync: bool,
    /// `--write-log` is among `serve`: names are synced then, and memory has no log.
    is_logged: bool,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: Name,
    pub(crate) address: Address,
    pub(crate) pid: u32,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Nfskit(Server),
    Ganesha(Ganesha),
    Unfs3(Service),
}

impl Stage {
    pub(crate) fn new(
        nfskit: &Path,
        scratch: &Path,
        export: PathBuf,
        serve: Vec<String>,
    ) -> Result<Self, String> {
        let mut command = Command::new(nfskit);
        let help = finish(command.args(["serve", "--help"]), START_WITHIN, text)?.value;
        let can_unsync = help.contains("--metadata-sync");
        let is_logged = serve.iter().any(|word| word.starts_with(WRITE_LOG));
        let (nfskit, scratch) = (nfskit.to_owned(), scratch.to_owned());
        Ok(Self { nfskit, scratch, export, serve, can_unsync, is_logged })
    }

    /// Why it cannot run here; an empty line when it can.
    pub(crate) fn obstacle(&self, name: Name) -> Result<(), String> {
        match name {
            Name::OursLog | Name::OursUnsynced | Name::OursMemory if self.is_logged => {
                Err(format!("{WRITE_LOG} is given for all"))
            }
            Name::Ours | Name::OursLog | Name::OursMemory | Name::Local => Ok(()),
            Name::OursUnsynced if self.can_unsync => Ok(()),
            Name::OursUnsynced => Err("`nfskit serve` has no --metadata-sync".to_owned()),
            Name::Ganesha => crate::host::ganesha::obstacle(),
            Name::Unfs3 => tools::find("unfsd", "unfs3").map(drop),
        }
    }

    /// Starts it where this thread may run; None for what is no server.
    pub(crate) fn start(&self, name: Name) -> Result<Option<Peer>, String> {
        let nfskit = |target: &Path, more: &[&str]| {
            let mut options = self.serve.clone();
            options.extend(more.iter().map(|&word| word.to_owned()));
            let server = Server::start_with(&self.nfskit, target, &options)?;
            let (address, pid) = (server.address, server.pid());
            Ok::<_, String>(Peer { name, address, pid, running: Running::Nfskit(server) })
        };
        match name {
            Name::Ours => nfskit(&self.export, &[]).map(Some),
            Name::OursLog => {
                let log = format!("{WRITE_LOG}={}", self.scratch.join("write.log").display());
                nfskit(&fixture::logged_dir(&self.export), &[&log]).map(Some)
            }
            Name::OursUnsynced => nfskit(&self.export, &["--metadata-sync", "never"]).map(Some),
            Name::OursMemory => nfskit(Path::new("mem:"), &[]).map(Some),
            Name::Ganesha => {
                let ganesha = Ganesha::start(&self.scratch, &self.export)?;
                let (address, pid) = (ganesha.address, ganesha.pid());
                Ok(Some(Peer { name, address, pid, running: Running::Ganesha(ganesha) }))
            }
            Name::Unfs3 => self.start_unfs3().map(Some),
            Name::Local => Ok(None),
        }
    }

    /// unfsd without a portmapper, over TCP alone.
    fn start_unfs3(&self) -> Result<Peer, String> {
        let failed = |error: std::io::Error| format!("unfsd: {error}");
        let exports = self.scratch.join("unfs3.exports");
        let line = format!("{} (rw,no_root_squash)\n", self.export.display());
        std::fs::write(&exports, line).map_err(failed)?;
        let port = free_port().map_err(failed)?;
        let text = port.to_string();
        let mut command = Command::new(tools::find("unfsd", "unfs3")?);
        command.args(["-d", "-p", "-t", "-l", "127.0.0.1", "-n", &text, "-m", &text]);
        command.arg("-e").arg(exports).arg("-i").arg(self.scratch.join("unfs3.pid"));
        let mut service = Service::start(&mut command)?;
        let is_up = |_: &[String]| std::net::TcpStream::connect(("127.0.0.1", port)).ok();
        service.wait_for(START_WITHIN, is_up)?;
        // It knows exports by their path alone; the address keeps it for the whole run.
        let export: &'static str = Box::leak(self.export.display().to_string().into_boxed_str());
        let address = Address { export, nfs_port: port, mount_port: port };
        let pid = service.pid();
        Ok(Peer { name: Name::Unfs3, address, pid, running: Running::Unfs3(service) })
    }
}

impl Peer {
    pub(crate) fn stop(self) -> Result<(), String> {
        match self.running {
            Running::Nfskit(server) => server.stop(),
            Running::Ganesha(ganesha) => ganesha.stop(),
            Running::Unfs3(service) => service.stop(STOP_WITHIN),
        }
    }
}
