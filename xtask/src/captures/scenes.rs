//! Captures of real traffic, each made and compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::compare::{compare, compare_operations};
use crate::host::child::{Service, finish, text};
use crate::host::ganesha::{self, Ganesha};
use crate::host::nfskit::{Address, Link, Server};
use crate::host::report::Report;

pub(super) const PEER: &str = "tshark";
/// For what a client does.
const WITHIN: Duration = Duration::from_secs(120);
/// For tcpdump to begin, and to write what it has.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// Plays all of them; true when NFS-Ganesha could be among them.
pub(super) fn play(report: &mut Report, scratch: &Path, nfskit: &Path) -> bool {
    let scene = Scene { scratch, nfskit };
    report.check(PEER, "our client and server, TCP", || scene.over_loopback("tcp", ""));
    report.check(PEER, "our client and server, UDP in fragments", || {
        scene.over_loopback("udp", "&proto=udp")
    });
    report.check(PEER, "a relay that loses, repeats and reorders, UDP", || scene.lossy());
    report.check(PEER, "TCP segments in another order", || scene.reordered());
    if let Err(why) = ganesha::programs().and_then(|()| ganesha::obstacle()) {
        report.skip(PEER, "our client and NFS-Ganesha", why);
        return false;
    }
    report.check(PEER, "our client and NFS-Ganesha, v3", || scene.of_ganesha("ganesha3", 3, ""));
    report.check(PEER, "our client and NFS-Ganesha, v3 over UDP", || {
        scene.of_ganesha("ganesha-udp", 3, "&proto=udp")
    });
    report.check(PEER, "libnfs and NFS-Ganesha, v4.0", || scene.of_ganesha("ganesha4", 4, ""));
    true
}

#[derive(Clone, Copy)]
struct Scene<'a> {
    scratch: &'a Path,
    nfskit: &'a Path,
}

impl Scene<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("{name}.pcap"))
    }

    /// The basic tests, each once.
    fn basic(&self, url: &str) -> Result<(), String> {
        let mut command = Command::new(self.nfskit);
        command.args(["bench", "basic", "-f", "--target", url]);
        finish(&mut command, WITHIN, text).map(|_| ())
    }

    /// Sequential writes, to have data on the way.
    fn writes(&self, url: &str) -> Result<(), String> {
        let mut command = Command::new(self.nfskit);
        command.args(["bench", "seqwrite", "--wire", "--size", "4M", "--call", "32K"]);
        command.args(["--repeats", "1", "--target", url]);
        finish(&mut command, WITHIN, text).map(|_| ())
    }

    fn server(&self) -> Result<Server, String> {
        Server::start_with(self.nfskit, Path::new("mem:"), &["--udp".to_owned()])
    }

    fn over_loopback(&self, name: &str, more: &str) -> Result<String, String> {
        let server = self.server()?;
        let url = format!("{}{more}", server.address.url(""));
        let file = self.file(name);
        captured("lo", &file, || {
            self.basic(&url)?;
            self.writes(&url)
        })?;
        server.stop()?;
        compare(self.nfskit, &file, 3)
    }

    fn lossy(&self) -> Result<String, String> {
        let server = self.server()?;
        let file = self.file("lossy");
        let path = file.display().to_string();
        let words = ["--udp", "--pcap", &path, "1ms/1g,loss=1%,duplicate=1%,reorder=1%:2ms,seed=7"];
        let link = Link::start(self.nfskit, server.address.nfs_port, &words)?;
        let through = Address::of(link.port);
        // A client may give up on such a link; what was sent until then is compared.
        let outcome = self.basic(&format!("{}&proto=udp", through.url("")));
        let ports = [link.port, server.address.nfs_port];
        link.stop()?;
        server.stop()?;
        // We count a call once that is seen on both sides of a relay; tshark has it twice.
        let [before, behind] = ports.map(|port| {
            let side = self.file(&format!("lossy-{port}"));
            let mut tshark = Command::new("tshark");
            tshark.args(["-F", "nsecpcap", "-Y", &format!("udp.port == {port}"), "-r"]);
            finish(tshark.arg(&file).arg("-w").arg(&side), WITHIN, text)?;
            compare(self.nfskit, &side, 3)
        });
        let alike = format!("before the relay {}; behind it {}", before?, behind?);
        Ok(match outcome {
            Ok(()) => alike,
            Err(why) => {
                let why = why.lines().next().unwrap_or_default();
                format!("{alike}; then the client gave up: {why}")
            }
        })
    }

    /// The capture of the first scene, with neighbours of one direction exchanged.
    fn reordered(&self) -> Result<String, String> {
        let failed = |cause: std::io::Error| cause.to_string();
        let bytes = std::fs::read(self.file("tcp")).map_err(failed)?;
        let file = self.file("reordered");
        std::fs::write(&file, exchanged(&bytes)).map_err(failed)?;
        compare(self.nfskit, &file, 3)
    }

    fn of_ganesha(&self, name: &str, version: u32, more: &str) -> Result<String, String> {
        let export = self.scratch.join("export");
        std::fs::create_dir_all(&export).map_err(|cause| cause.to_string())?;
        let ganesha = Ganesha::start(self.scratch, &export)?;
        let url = format!("{}{more}", ganesha.address.url(""));
        let file = self.file(name);
        captured("lo", &file, || match version {
            3 => self.basic(&url),
            _ => self.copied(&ganesha.address),
        })?;
        ganesha.stop()?;
        let calls = compare(self.nfskit, &file, version)?;
        match version {
            4 => Ok(format!("{calls}; {}", compare_operations(self.nfskit, &file)?)),
            _ => Ok(calls),
        }
    }

    /// A file from the server, and a list of its folder, by libnfs in version 4.
    fn copied(&self, address: &Address) -> Result<(), String> {
        let there = self.scratch.join("export/data");
        std::fs::write(&there, vec![0xa5; 3 << 20]).map_err(|cause| cause.to_string())?;
        let of = |name: &str| format!("{}&version=4", address.url(name));
        let back = self.scratch.join("back").display().to_string();
        finish(Command::new("nfs-cp").args([&of("data"), &back]), WITHIN, text)?;
        finish(Command::new("nfs-ls").arg(of("")), WITHIN, text).map(|_| ())
    }
}

/// What happens on an interface while `work` is done. Its packets are as on an Ethernet: with
/// 1,500 bytes, of which longer datagrams are fragments.
pub(super) fn captured(
    interface: &str,
    file: &Path,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let mut ip = Command::new("ip");
    finish(ip.args(["link", "set", interface, "mtu", "1500"]), SOON, text)?;
    let tcpdump = tcpdump(Command::new("tcpdump"), interface, file)?;
    let outcome = work();
    tcpdump.stop(SOON)?;
    outcome
}

/// tcpdump, by this command, when it listens.
pub(super) fn tcpdump(
    mut command: Command,
    interface: &str,
    file: &Path,
) -> Result<Service, String> {
    command.args(["-i", interface, "-s", "0", "-U", "-B", "65536", "--immediate-mode", "-w"]);
    command.arg(file);
    Service::start_until(command.args(["-Z", "root"]), SOON, "listening on")
}

/// A capture of pcap, in which every 20th packet with data comes behind the next one of its own
/// direction, if there is no other between them. Times stay in order.
fn exchanged(file: &[u8]) -> Vec<u8> {
    let (head, mut rest) = file.split_at(24.min(file.len()));
    let mut packets: Vec<Vec<u8>> = Vec::new();
    while let Some(len) = rest.get(8..12).and_then(|len| len.try_into().ok()) {
        let len = 16 + u32::from_le_bytes(len) as usize;
        let Some(packet) = rest.get(..len) else { break };
        packets.push(packet.to_vec());
        rest = &rest[len..];
    }
    // Ethernet, IPv4 without options: the ports.
    let ends = |packet: &[u8]| packet.get(16 + 14 + 12..16 + 14 + 24).map(<[u8]>::to_vec);
    let has_data = |packet: &[u8]| packet.len() > 16 + 14 + 20 + 32;
    for at in (10..packets.len().saturating_sub(1)).step_by(20) {
        let (one, two) = (&packets[at], &packets[at + 1]);
        if has_data(one) && has_data(two) && ends(one) == ends(two) {
            let times = [one[..8].to_vec(), two[..8].to_vec()];
            packets.swap(at, at + 1);
            packets[at][..8].copy_from_slice(&times[0]);
            packets[at + 1][..8].copy_from_slice(&times[1]);
        }
    }
    [head, &packets.concat()].concat()
}
