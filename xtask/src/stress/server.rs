//! The server that is killed: the release binary, on one port for all its lives.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::options::Options;
use crate::host::child::Service;
use crate::host::free_port;
use crate::host::nfskit::TRUSTING;

const START_WITHIN: Duration = Duration::from_secs(20);
const STOP_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Server {
    command: PathBuf,
    arguments: Vec<String>,
    pub(super) address: SocketAddr,
    service: Option<Service>,
    /// The longest time from the start to the first connection.
    pub(super) slowest_start: Duration,
}

impl Server {
    /// A server of `folder` on a free port, not yet started, which keeps what it must remember in
    /// `scratch/state`. Unprivileged, it runs as `nobody`.
    pub(super) fn new(
        nfskit: &Path,
        folder: &Path,
        scratch: &Path,
        options: &Options,
    ) -> Result<Self, String> {
        // Free now, and nobody else's in the short time until it is ours.
        let port = free_port().map_err(|error| error.to_string())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut words = Vec::new();
        let bounds = options.capabilities.as_ref().map(|list| {
            let given = list.split(',').map(|capability| format!(",+{capability}"));
            format!("--bounding-set=-all{}", given.collect::<String>())
        });
        if let Some(bounds) = &bounds {
            words.extend(["setpriv", bounds]);
        }
        if options.unprivileged {
            words.extend(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        let (program, folder) = (nfskit.display().to_string(), folder.display().to_string());
        let (listen, state) = (address.to_string(), scratch.join("state").display().to_string());
        words.extend([&program, "serve", &folder, "--listen", &listen, "--state", &state]);
        words.extend(TRUSTING);
        let mut words = words.into_iter().map(str::to_owned);
        let command = words.next().map(PathBuf::from).unwrap_or_default();
        let arguments = words.collect();
        let slowest_start = Duration::ZERO;
        Ok(Self { command, arguments, address, service: None, slowest_start })
    }

    /// Starts it, and waits until it takes connections.
    pub(super) fn start(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let mut service = Service::start(Command::new(&self.command).args(&self.arguments))?;
        service.wait_for(START_WITHIN, |_| TcpStream::connect(self.address).ok())?;
        self.service = Some(service);
        self.slowest_start = self.slowest_start.max(began.elapsed());
        Ok(())
    }

    /// `kill -9`; an end of its own before that is an error.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        let Some(mut service) = self.service.take() else { return Ok(()) };
        if service.has_ended() {
            return Err(format!("the server ended by itself; it printed: {:?}", service.lines()));
        }
        drop(service);
        Ok(())
    }

    /// SIGTERM: it must end by itself, with 0, in time.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.service.take().map_or(Ok(()), |service| service.stop(STOP_WITHIN))
    }
}
