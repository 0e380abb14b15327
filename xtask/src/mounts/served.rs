//! The servers that are mounted, each with a folder of its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::child::Service;
use crate::host::ganesha::{self, Ganesha};
use crate::host::nfskit::{Address, Link, START_WITHIN, STOP_WITHIN, TRUSTING};
use crate::host::{about, free_port};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// No server: a local folder, which shows that the steps themselves are right.
    Local,
    Nfskit,
    Ganesha,
    /// Ours over UDP, one packet in a hundred lost in each direction.
    LossyUdp,
}

/// Of 100 packets of an Ethernet one gets lost, and with it its datagram: a large WRITE over UDP
/// meets what it meets on a real wire.
const LOSSY: &str = "loss=1%,mtu=1500";

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Local, Self::Nfskit, Self::Ganesha, Self::LossyUdp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Nfskit => "nfskit",
            Self::Ganesha => "ganesha",
            Self::LossyUdp => "lossy-udp",
        }
    }

    pub(super) fn parse(name: &str) -> Result<Self, String> {
        crate::options::find(name, Self::ALL.map(|kind| (kind.name(), kind)))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A server that runs, and where it is reached.
#[derive(Debug)]
pub(super) enum Served {
    Nfskit(Ours),
    Ganesha(Ganesha),
    Lossy { link: Link, server: Ours },
}

impl Served {
    /// Starts a server on a new folder under `scratch`; `None` for the local folder.
    pub(super) fn start(
        kind: Kind,
        nfskit: &Path,
        scratch: &Path,
        seed: u64,
    ) -> Result<Option<Self>, String> {
        let folder = new_folder(scratch, &format!("export-{}", kind.name()))?;
        Ok(match kind {
            Kind::Local => None,
            Kind::Nfskit => Some(Self::Nfskit(Ours::start(nfskit, scratch, &folder, &[])?)),
            Kind::Ganesha => {
                ganesha::obstacle()?;
                Some(Self::Ganesha(Ganesha::start(scratch, &folder)?))
            }
            Kind::LossyUdp => {
                let server = Ours::start(nfskit, scratch, &folder, &["--udp"])?;
                let words = format!("{LOSSY},seed={seed}");
                let link = Link::start(nfskit, server.port, &["--udp", &words])?;
                Some(Self::Lossy { link, server })
            }
        })
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Nfskit(server) => server.url(),
            Self::Ganesha(server) => server.address.url(""),
            Self::Lossy { link, .. } => {
                format!("{}&proto=udp", Address::of(link.port).url(""))
            }
        }
    }

    pub(super) fn stop(self) -> Result<(), String> {
        match self {
            Self::Nfskit(server) => server.stop(),
            Self::Ganesha(server) => server.stop(),
            Self::Lossy { link, server } => link.stop().and_then(|()| server.stop()),
        }
    }
}

/// `nfskit serve` on a port that it keeps, so that it can be killed and started again.
#[derive(Debug)]
pub(super) struct Ours {
    service: Service,
    nfskit: PathBuf,
    pub(super) folder: PathBuf,
    arguments: Vec<String>,
    pub(super) port: u16,
}

impl Ours {
    pub(super) fn start(
        nfskit: &Path,
        scratch: &Path,
        folder: &Path,
        options: &[&str],
    ) -> Result<Self, String> {
        // Nobody else is in our namespace to take the port before the server does.
        let port = free_port().map_err(|error| format!("no port: {error}"))?;
        let state = scratch.join(format!("state-{port}"));
        let mut arguments = vec!["serve".to_owned(), folder.display().to_string()];
        arguments.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        arguments.extend(["--state".to_owned(), state.display().to_string()]);
        // One store has one name, and with it its rules.
        let rules = if options.contains(&"--export") { &[][..] } else { &TRUSTING[..] };
        arguments.extend(rules.iter().chain(options).map(|option| (*option).to_owned()));
        let service = serve(nfskit, &arguments)?;
        let (nfskit, folder) = (nfskit.to_owned(), folder.to_owned());
        Ok(Self { service, nfskit, folder, arguments, port })
    }

    pub(super) fn url(&self) -> String {
        Address::of(self.port).url("")
    }

    /// Kills it without a word.
    pub(super) fn kill(self) -> Dead {
        let Self { service, nfskit, folder, arguments, port } = self;
        drop(service);
        Dead { nfskit, folder, arguments, port }
    }

    pub(super) fn stop(self) -> Result<(), String> {
        self.service.stop(STOP_WITHIN)
    }
}

/// A server that was killed.
#[derive(Debug)]
pub(super) struct Dead {
    nfskit: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
    port: u16,
}

impl Dead {
    /// Starts it again where it was.
    pub(super) fn revive(self) -> Result<Ours, String> {
        let Self { nfskit, folder, arguments, port } = self;
        let service = serve(&nfskit, &arguments)?;
        Ok(Ours { service, nfskit, folder, arguments, port })
    }
}

fn serve(nfskit: &Path, arguments: &[String]) -> Result<Service, String> {
    Service::start_until(Command::new(nfskit).args(arguments), START_WITHIN, "nfs://")
}

/// A folder that was not there before.
pub(super) fn new_folder(scratch: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = scratch.join(name);
    std::fs::create_dir(&folder).map_err(about(&folder))?;
    Ok(folder)
}
