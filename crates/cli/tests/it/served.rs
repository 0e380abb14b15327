//! `nfskit serve` in the background, on a free port of the loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use client::mount::{self, Mounted};
use client::session::Credential;
use net::clock::Clock;
use perf::units::Nanos;
use rustix::process::Signal;

use crate::program::{Program, appears, names, nfskit, scratch_appears};

/// A server, and a directory of its own if that is what it serves.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    folder: Option<tempfile::TempDir>,
}

/// Options that let the tests' own clients be who they say, root too and over UDP, where `options`
/// say nothing else.
fn trusting(options: &[&str]) -> &'static [&'static str] {
    match options.contains(&"--export") {
        true => &[],
        false => &["--export", "/=no_root_squash,insecure"],
    }
}

impl Served {
    /// Serves a new directory.
    pub(crate) fn folder(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = nfskit(["serve"]);
        command.arg(folder.path());
        command.args(trusting(options)).args(options);
        Self { folder: Some(folder), ..Self::start(command, "127.0.0.1:0") }
    }

    /// Serves from memory.
    pub(crate) fn memory(options: &[&str]) -> Self {
        let mut command = nfskit(["serve", "mem:"]);
        command.args(trusting(options)).args(options);
        Self::start(command, "127.0.0.1:0")
    }

    /// Runs a command that runs the server.
    pub(crate) fn start(mut command: Command, listen: &str) -> Self {
        let program = Program::start(command.args(["--listen", listen]));
        let port = program.wait_for(port);
        let ip = listen.parse::<SocketAddr>().unwrap().ip();
        Self { program, address: SocketAddr::new(ip, port), folder: None }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self) -> String {
        url(self.port(), "/")
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.as_ref().expect("it serves a directory").path()
    }

    /// Waits until a run has made its scratch directory here, and in it a file whose name begins
    /// like this.
    pub(crate) fn is_written_to(&self, prefix: &str) {
        appears(&scratch_appears(self.path()), |name| name.starts_with(prefix));
    }

    /// The scratch directories that are still there, read over NFS.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let target = self.url().parse().unwrap();
        let listed = net::runtime::block_on(async {
            let machine_name = "test".to_owned();
            let credential = Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() };
            let options = mount::Options {
                connect_limit: Nanos::from_secs(20),
                persistence: None,
                ..mount::Options::persistent(credential)
            };
            let Mounted { session, .. } =
                mount::mount(&Clock::real(), &target, &options).await.unwrap();
            session.readdir(session.root(), 0, [0; 8], 64 << 10).await.unwrap()
        });
        let names = listed.unwrap().entries.into_iter().map(|entry| entry.name);
        let names = names.map(|name| String::from_utf8(name).unwrap());
        names.filter(|name| name.starts_with(load::scratch::PREFIX)).collect()
    }

    /// Asks it to end, which it does in good order.
    pub(crate) fn stop(self) {
        if let Some(folder) = &self.folder {
            let scratch = names(folder.path());
            assert!(!scratch.iter().any(|name| name.starts_with(load::scratch::PREFIX)));
        }
        self.program.signal(Signal::TERM);
        let finished = self.program.finish();
        // Records over the limit are logged, which is all that there may be to say.
        let mut lines = finished.stderr.lines();
        let is_quiet = lines.all(|line| line.contains(" WARN records_too_long "));
        assert!(is_quiet && finished.code == Some(0), "{finished:?}");
    }
}

/// A target on the loopback, both services on one port.
pub(crate) fn url(port: u16, path: &str) -> String {
    format!("nfs://127.0.0.1{path}?nfsport={port}&mountport={port}")
}

/// The port in the banner's complete `url` line.
fn port(banner: &str) -> Option<u16> {
    let line = banner.lines().find(|line| line.trim_start().starts_with("url "))?;
    let (_, digits) = line.split_once("mountport=")?;
    banner.contains("macOS").then(|| digits.parse().unwrap())
}
