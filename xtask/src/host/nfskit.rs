//! `nfskit serve` in the background, and where a server on the loopback is reached.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::child::Service;

/// Far above what a slow machine needs, far below what a person waits.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(20);
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Options for a server that takes its clients' word, as our checks need it: root is root, and any
/// port will do.
pub(crate) const TRUSTING: [&str; 2] = ["--export", "/=no_root_squash,insecure"];

/// What `nfskit serve` prints when it serves.
pub(crate) const SERVES: &str = "mount -t nfs";

/// `nfskit serve` in the background.
#[derive(Debug)]
pub(crate) struct Server {
    service: Service,
    pub(crate) address: Address,
}

impl Server {
    pub(crate) fn start(nfskit: &Path, folder: &Path) -> Result<Self, String> {
        Self::start_with(nfskit, folder, &[])
    }

    /// Serves `folder`, or `mem:`, with more options, of which `--export` may be one.
    pub(crate) fn start_with(
        nfskit: &Path,
        folder: &Path,
        options: &[String],
    ) -> Result<Self, String> {
        let mut command = Command::new(nfskit);
        command.arg("serve").arg(folder).args(["--listen", "127.0.0.1:0"]).args(options);
        if !options.iter().any(|option| option == TRUSTING[0]) {
            command.args(TRUSTING);
        }
        let mut service = Service::start(&mut command)?;
        let address = Address::of(wait_for_port(&mut service, START_WITHIN)?);
        Ok(Self { service, address })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.service.pid()
    }

    /// What it has printed so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.service.lines()
    }

    pub(crate) fn stop(self) -> Result<(), String> {
        self.service.stop(STOP_WITHIN)
    }
}

/// `nfskit link` in the background, in front of a port of the loopback.
#[derive(Debug)]
pub(crate) struct Link {
    service: Service,
    pub(crate) port: u16,
}

impl Link {
    pub(crate) fn start(nfskit: &Path, server: u16, words: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(nfskit);
        command.args(["link", "--to", &format!("127.0.0.1:{server}")]).args(words);
        let mut service = Service::start(&mut command)?;
        let port = wait_for_port(&mut service, START_WITHIN)?;
        Ok(Self { service, port })
    }

    pub(crate) fn stop(self) -> Result<(), String> {
        self.service.stop(STOP_WITHIN)
    }
}

/// A server on the loopback, one of its exports, and the ports that no portmapper needs to tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    /// Begins with `/`.
    pub(crate) export: &'static str,
    pub(crate) nfs_port: u16,
    pub(crate) mount_port: u16,
}

impl Address {
    /// A server's of ours, which has one port for all, or a relay's before it.
    pub(crate) const fn of(port: u16) -> Self {
        Self { export: "/", nfs_port: port, mount_port: port }
    }

    /// The URL of a file in the export, or of the export itself for an empty name.
    pub(crate) fn url(&self, name: &str) -> String {
        let slash = if name.is_empty() || self.export.ends_with('/') { "" } else { "/" };
        let (export, nfs, mount) = (self.export, self.nfs_port, self.mount_port);
        format!("nfs://127.0.0.1{export}{slash}{name}?nfsport={nfs}&mountport={mount}")
    }
}

/// Waits until a server or a relay of ours prints its URL; the port in it.
pub(crate) fn wait_for_port(service: &mut Service, within: Duration) -> Result<u16, String> {
    service.wait_for(within, |lines| lines.iter().find_map(|line| port(line)))
}

/// The port in a URL of the banner: `nfs://127.0.0.1/?nfsport=PORT` or `nfs://127.0.0.1:PORT/`.
pub(crate) fn port(line: &str) -> Option<u16> {
    let (_, url) = line.split_once("nfs://127.0.0.1")?;
    let rest = match url.strip_prefix(':') {
        Some(rest) => rest,
        None => url.split_once("nfsport=")?.1,
    };
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_banner() {
        assert_eq!(port("  nfskit study --target nfs://127.0.0.1:40213/"), Some(40_213));
        let query = "  url  nfs://127.0.0.1/?nfsport=33027&mountport=33027";
        assert_eq!(port(query), Some(33_027));
        assert_eq!(port("serving on nfs://127.0.0.1/"), None);
        assert_eq!(port("mount -t nfs -o port=2049 127.0.0.1:/ /mnt"), None);
    }

    #[test]
    fn a_url_names_export_file_and_ports() {
        let address = |export| Address { export, nfs_port: 1, mount_port: 2 };
        assert_eq!(address("/").url("x"), "nfs://127.0.0.1/x?nfsport=1&mountport=2");
        assert_eq!(address("/e").url("x"), "nfs://127.0.0.1/e/x?nfsport=1&mountport=2");
        assert_eq!(address("/e").url(""), "nfs://127.0.0.1/e?nfsport=1&mountport=2");
    }
}
