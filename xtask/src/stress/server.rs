//! The server that is killed: the release binary, on one port for all its lives.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::options::Options;
use crate::host::about;
use crate::host::nfskit::TRUSTING;

const POLL: Duration = Duration::from_millis(2);
const START_WITHIN: Duration = Duration::from_secs(20);
const STOP_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Server {
    command: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    pub(super) address: SocketAddr,
    child: Option<Child>,
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
        let error = |error: std::io::Error| error.to_string();
        // Free now, and nobody else's in the short time until it is ours.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr());
        let address = address.map_err(error)?;
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
        let log = scratch.join("server.log");
        let arguments = words.collect();
        let slowest_start = Duration::ZERO;
        Ok(Self { command, arguments, log, address, child: None, slowest_start })
    }

    /// Starts it, and waits until it takes connections.
    pub(super) fn start(&mut self) -> Result<(), String> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(about(&self.log))?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let began = Instant::now();
        let child = Command::new(&self.command)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", self.command.display()))?;
        let child = self.child.insert(child);
        while TcpStream::connect(self.address).is_err() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("the server ended: {status}: {}", self.last_words()));
            }
            if began.elapsed() > START_WITHIN {
                return Err(format!("the server takes no connections: {}", self.last_words()));
            }
            thread::sleep(POLL);
        }
        self.slowest_start = self.slowest_start.max(began.elapsed());
        Ok(())
    }

    /// `kill -9`; an end of its own before that is an error.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("the server ended by itself: {status}: {}", self.last_words()));
        }
        let ended = child.kill().and_then(|()| child.wait());
        ended.map(drop).map_err(|error| format!("the server cannot be killed: {error}"))
    }

    /// SIGTERM: it must end by itself, with 0, in time.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| format!("SIGTERM does not reach the server: {error}"))?;
        let begun = Instant::now();
        while begun.elapsed() < STOP_WITHIN {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(format!("after SIGTERM: {status}: {}", self.last_words()));
                }
                _ => thread::sleep(POLL),
            }
        }
        let _ = child.kill().and_then(|()| child.wait());
        Err("the server does not end on SIGTERM".to_owned())
    }

    /// What it printed last.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" | ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only for a child that has ended, which is what we want.
        let _ = self.kill();
    }
}
