//! Faults between a client and a server that is not mounted: the guest's server, checked phase by
//! phase from a host behind a router.
//!
//! ```text
//!   c0, doctor ── c1, a router, tap0 ── guest
//! ```

use std::process::Command;

use super::answer::{self, Answer};
use super::options::Options;
use super::outcome::{Fault, Outcome};
use super::scene::{Staged, staged, well};
use super::stage::{GUEST, HOST, Stage, here};
use crate::host::child::text;

const NETWORK: &str = "
sysctl -qw net.ipv4.ip_forward=1
ip netns add c
ip link add c0 type veth peer name c1
ip link set c0 gso_max_segs 1
ip link set c1 gso_max_segs 1
ip link set c0 netns c
ip -n c link set lo up
ip -n c addr add 10.78.0.2/24 dev c0
ip addr add 10.78.0.1/24 dev c1
ip link set c1 up
ip -n c link set c0 up
ip -n c route add default via 10.78.0.1
";

#[derive(Clone, Copy, Debug)]
struct Scene {
    staged: Staged,
    /// What the router does, and how that is undone.
    router: [&'static str; 2],
    guest: [&'static str; 2],
    export: &'static str,
}

const WELL: Scene =
    Scene { staged: well("phases"), router: ["", ""], guest: ["", ""], export: "/srv/t" };

const ALLOW: &str = "iptables -F FORWARD";

/// The guest's clock, five minutes from where it is.
macro_rules! clock {
    ($direction:literal) => {
        concat!("python3 -c 'import time; time.clock_settime(0, time.time() ", $direction, " 300)'")
    };
}

const FAULTS: &[Scene] = &[
    Scene {
        staged: staged(
            "firewall-portmap",
            "a firewall drops what goes to port 111",
            "network",
            &["portmapper"],
        ),
        router: [
            "iptables -A FORWARD -p tcp --dport 111 -j DROP; \
             iptables -A FORWARD -p udp --dport 111 -j DROP",
            ALLOW,
        ],
        ..WELL
    },
    Scene {
        staged: staged(
            "firewall-mount",
            "a firewall drops what goes to mountd",
            "network",
            &["MOUNT program"],
        ),
        router: ["iptables -A FORWARD -p tcp --dport 20048 -j DROP", ALLOW],
        ..WELL
    },
    Scene {
        staged: staged(
            "firewall-nfs",
            "a firewall drops what goes to port 2049",
            "network",
            &["connect"],
        ),
        router: ["iptables -A FORWARD -p tcp --dport 2049 -j DROP", ALLOW],
        ..WELL
    },
    Scene {
        staged: staged(
            "mtu",
            "an interface of 1300 bytes on a way of 1500, and ICMP is dropped",
            "network",
            &["READ", "WRITE"],
        ),
        router: [
            "ip link set c1 mtu 1300; iptables -A OUTPUT -p icmp -j DROP",
            "ip link set c1 mtu 1500; iptables -F OUTPUT",
        ],
        ..WELL
    },
    Scene {
        staged: staged("full-disk", "a file system without space", "storage", &["WRITE"]),
        export: "/srv/full",
        ..WELL
    },
    Scene {
        staged: staged("clock", "the server's clock is five minutes ahead", "server", &["clock"]),
        guest: [clock!("+"), clock!("-")],
        ..WELL
    },
];

pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    FAULTS.iter().chain([&WELL]).map(|scene| scene.staged.name)
}

/// Plays those that are wanted, in the network of the guest that serves.
pub(super) fn play(
    outcome: &mut Outcome,
    stage: &mut Stage<'_>,
    options: &Options,
) -> Result<(), String> {
    here(NETWORK)?;
    stage.guest(&format!("ip route add default via {HOST}"))?;
    for scene in FAULTS.iter().filter(|scene| options.wants(scene.staged.name)) {
        let staged = scene.staged;
        match played(stage, scene) {
            Ok(answer) => outcome.fault(Fault { staged, answer, gain: None }),
            Err(why) => outcome.failed(staged.name, &why),
        }
    }
    if options.wants(WELL.staged.name) {
        match played(stage, &WELL) {
            Ok(answer) => {
                outcome.healthy(WELL.staged.name, answer.map(|one| one.what).into_iter().collect())
            }
            Err(why) => outcome.failed(WELL.staged.name, &why),
        }
    }
    Ok(())
}

fn played(stage: &mut Stage<'_>, scene: &Scene) -> Result<Option<Answer>, String> {
    stage.guest(&format!("{}\ntrue", scene.guest[0]))?;
    here(scene.router[0])?;
    let mut doctor = Command::new("ip");
    doctor.args(["netns", "exec", "c"]).arg(stage.nfskit).arg("doctor");
    doctor.arg(format!("nfs://{GUEST}{}", scene.export));
    doctor.args(["--write", "--limit", "1s", "-q", "--json", "-"]);
    // Its exit code is what it has found; its limit is its own.
    let output = doctor.output().map_err(|cause| format!("doctor does not start: {cause}"));
    here(scene.router[1])?;
    stage.guest(&format!("{}\ntrue", scene.guest[1]))?;
    let output = output?;
    let json = serde_json::from_slice(&output.stdout)
        .map_err(|cause| format!("{cause}: {}", text(&output.stderr[..])))?;
    Ok(answer::of_phases(&json))
}
