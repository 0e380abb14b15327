//! Captures of what a guest does: the kernel's client and ours, on a network that may lose packets
//! and bring them late.
//!
//! ```text
//!   guest: mount or nfskit bench ── netem, both ways ── tap ── tcpdump ── servers, here
//! ```
//!
//! So what tcpdump sees of the guest's packets are those that were not lost, and of the servers'
//! packets all, with those among them that the guest never got.
//!
//! The kernel's client of Debian speaks NFS over TCP alone (`CONFIG_NFS_DISABLE_UDP_SUPPORT`).

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::compare::{compare, compare_operations};
use super::scenes::{PEER, SOON, captured};
use crate::guest::image::Image;
use crate::guest::shell::{self, Shell};
use crate::host::about;
use crate::host::child::Service;
use crate::host::ganesha::Ganesha;
use crate::host::nfskit::{SERVES, START_WITHIN, STOP_WITHIN, TRUSTING};
use crate::host::report::Report;

const WORK: &str = include_str!("scripts/work.py");
/// For what is done in one scene.
const WITHIN: Duration = Duration::from_secs(120);
/// Our own network, by a name that the guest's scripts can be given.
const NAMESPACE: &str = "nfskit-captures";
/// This side of the tap, which those scripts make.
const HOST: &str = "10.77.0.1";
const TAP: &str = "tap0";
/// What is reordered in the guest, to it and from it: one packet in 20 comes a millisecond late,
/// behind those that follow it.
const NETEM: &str = "netem delay 1ms reorder 95%";
/// How many packets are lost there. Datagrams of UDP are up to 23 packets each, and our client
/// waits 1.1 s before it sends one again.
const LOST_OF_TCP: &str = "1%";
const LOST_OF_UDP: &str = "0.4%";

/// Who works in the guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Client {
    /// The kernel's, in this version.
    Kernel(&'static str),
    /// Ours, with this at the end of the target.
    Ours(&'static str),
}

#[derive(Clone, Copy, Debug)]
struct Scene {
    client: Client,
    is_lossy: bool,
}

const OF_OURS: [Scene; 5] = [
    Scene { client: Client::Kernel("3"), is_lossy: false },
    Scene { client: Client::Kernel("2"), is_lossy: false },
    Scene { client: Client::Kernel("3"), is_lossy: true },
    Scene { client: Client::Ours(""), is_lossy: true },
    Scene { client: Client::Ours("&proto=udp"), is_lossy: true },
];

const OF_GANESHA: [Scene; 4] = [
    Scene { client: Client::Kernel("3"), is_lossy: false },
    Scene { client: Client::Kernel("4.1"), is_lossy: false },
    Scene { client: Client::Kernel("3"), is_lossy: true },
    Scene { client: Client::Kernel("4.1"), is_lossy: true },
];

impl Scene {
    /// What the check is called.
    fn name(self, target: &str) -> String {
        let loss = if self.is_lossy { ", loss" } else { "" };
        match self.client {
            Client::Kernel(version) => format!("Linux and {target}, v{version}{loss}"),
            Client::Ours("") => format!("our client and {target}, TCP{loss}"),
            Client::Ours(_) => format!("our client and {target}, UDP{loss}"),
        }
    }
}

/// A server that the guest reaches.
#[derive(Clone, Copy, Debug)]
struct Target {
    name: &'static str,
    export: &'static str,
    nfs_port: u16,
    mount_port: u16,
}

/// Plays all scenes; `with_ganesha` is false where it does not run.
pub(super) fn play(
    report: &mut Report,
    scratch: &Path,
    nfskit: &Path,
    image: &Image,
    with_ganesha: bool,
) {
    let guest = report.make(PEER, "a guest", || Ok((boot(image, scratch)?, String::new())));
    let Some(shell) = guest else { return };
    let mut stage = Stage { shell, scratch, nfskit };
    if let Err(why) = stage.our_server(report) {
        report.check(PEER, "our server for a guest", || Err(why));
    }
    if with_ganesha && let Err(why) = stage.ganesha(report) {
        report.check(PEER, "NFS-Ganesha for a guest", || Err(why));
    }
    report.done(PEER, "the guest's end", || stage.shell.end());
}

/// The namespace gets a name and a tap, and the guest its commands.
fn boot(image: &Image, scratch: &Path) -> Result<Shell, String> {
    shell::attach(image, NAMESPACE)?;
    let work = scratch.join("work.py");
    std::fs::write(&work, WORK).map_err(about(&work))?;
    Shell::boot(image, NAMESPACE, &scratch.join("guest"))
}

struct Stage<'a> {
    shell: Shell,
    scratch: &'a Path,
    nfskit: &'a Path,
}

impl Stage<'_> {
    fn our_server(&mut self, report: &mut Report) -> Result<(), String> {
        // The network is ours alone.
        let target = Target { name: "our server", export: "/", nfs_port: 2049, mount_port: 2049 };
        let mut command = Command::new(self.nfskit);
        command.args(["serve", "mem:", "--udp", "--listen"]).arg(format!("{HOST}:2049"));
        command.args(TRUSTING);
        let service = Service::start_until(&mut command, START_WITHIN, SERVES)?;
        OF_OURS.iter().for_each(|scene| self.play(report, *scene, target));
        service.stop(STOP_WITHIN)
    }

    fn ganesha(&mut self, report: &mut Report) -> Result<(), String> {
        let export = self.scratch.join("export");
        std::fs::create_dir_all(&export).map_err(|cause| cause.to_string())?;
        let ganesha = Ganesha::start(self.scratch, &export)?;
        let address = ganesha.address;
        let target = Target {
            name: "NFS-Ganesha",
            export: address.export,
            nfs_port: address.nfs_port,
            mount_port: address.mount_port,
        };
        OF_GANESHA.iter().for_each(|scene| self.play(report, *scene, target));
        ganesha.stop()
    }

    fn play(&mut self, report: &mut Report, scene: Scene, target: Target) {
        let name = scene.name(target.name);
        report.check(PEER, name.clone(), || {
            let file = self.scratch.join(format!("{}.pcap", name.replace([' ', ',', '.'], "-")));
            self.impairments(scene.is_lossy.then_some(scene.client))?;
            let outcome = captured(TAP, &file, || {
                self.shell.run(&self.command(scene, target), WITHIN).map(|_| ())
            });
            self.impairments(None)?;
            let gave_up = match (scene.client, outcome) {
                (_, Ok(())) => String::new(),
                // UDP may be given up. What was sent until then is compared.
                (Client::Ours(more), Err(why)) if scene.is_lossy && !more.is_empty() => {
                    let why = why.lines().find(|line| line.starts_with("nfskit:"));
                    format!("; then the client gave up: {}", why.unwrap_or_default())
                }
                (_, Err(why)) => return Err(why),
            };
            let version = match scene.client {
                Client::Kernel("2") => 2,
                Client::Kernel("4.1") => 4,
                _ => 3,
            };
            let alike = compare(self.nfskit, &file, version)?;
            let operations = match version {
                4 => format!("; {}", compare_operations(self.nfskit, &file)?),
                _ => String::new(),
            };
            Ok(format!("{alike}{operations}{gave_up}"))
        });
    }

    /// Loss and late packets, as this client is to have them, or none.
    fn impairments(&mut self, client: Option<Client>) -> Result<(), String> {
        let device = "dev=$(ls /sys/class/net | grep ^vec)";
        let bad = |lost: &str| {
            format!(
                "{device}; modprobe -a sch_netem sch_ingress cls_matchall act_mirred; \
                 modprobe ifb numifbs=1 && ip link set ifb0 up && \
                 tc qdisc add dev $dev root {NETEM} loss {lost} && \
                 tc qdisc add dev $dev ingress && \
                 tc filter add dev $dev parent ffff: matchall action mirred egress redirect \
                 dev ifb0 && tc qdisc add dev ifb0 root {NETEM} loss {lost}"
            )
        };
        let command = match client {
            Some(Client::Ours("&proto=udp")) => bad(LOST_OF_UDP),
            Some(_) => bad(LOST_OF_TCP),
            None => format!(
                "{device}; tc qdisc del dev $dev root; tc qdisc del dev $dev ingress; \
                 tc qdisc del dev ifb0 root; true"
            ),
        };
        self.shell.run(&command, SOON).map(|_| ())
    }

    /// What the guest is to do.
    fn command(&self, scene: Scene, target: Target) -> String {
        let Target { export, nfs_port, mount_port, .. } = target;
        let (scratch, nfskit) = (self.scratch.display(), self.nfskit.display());
        match scene.client {
            Client::Kernel(version) => {
                // The helper of mount knows version 2 no more; the kernel does.
                let mount = match version {
                    "2" => format!(
                        "nfsmods; modprobe nfsv2; mkdir -p /mnt; mount -i -t nfs -o vers=2,\
                         proto=tcp,nolock,port={nfs_port},mountport={mount_port},mountproto=tcp,\
                         mountvers=1,addr={HOST},mountaddr={HOST} {HOST}:{export} /mnt"
                    ),
                    _ => "mnt /mnt".to_owned(),
                };
                format!(
                    "HOST={HOST} PORT={nfs_port} MOUNTPORT={mount_port} EXPORT={export} \
                     VERS={version}\n{mount} || exit\n\
                     python3 /host{scratch}/work.py /mnt/work\nstatus=$?\n\
                     umount /mnt && exit $status\n"
                )
            }
            Client::Ours(more) => format!(
                "/host{nfskit} bench basic -f --target \
                 'nfs://{HOST}{export}?nfsport={nfs_port}&mountport={mount_port}{more}'\n"
            ),
        }
    }
}
