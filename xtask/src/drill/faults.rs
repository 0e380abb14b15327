//! Faults that the guest's kernel has as a client.

use super::answer;
use super::options::Options;
use super::outcome::{Fault, Gain, Outcome};
use super::scene::{HEALTHY, Scene, Setup, load, staged};
use super::stage::Stage;

/// netem at the guest's side of the tap: what it sends.
macro_rules! netem {
    ($what:literal) => {
        [concat!("tc qdisc add dev vec0 root netem ", $what), "tc qdisc del dev vec0 root"]
    };
}

const READS: Setup = Setup { load: load("read-direct", 8, 65_536), ..HEALTHY };
const FEW_SLOTS: Setup = Setup {
    guest: [
        "nfsmods; sysctl -qw sunrpc.tcp_slot_table_entries=2 sunrpc.tcp_max_slot_table_entries=2; \
         tc qdisc add dev vec0 root netem delay 5ms",
        "sysctl -qw sunrpc.tcp_max_slot_table_entries=65536; tc qdisc del dev vec0 root",
    ],
    ..READS
};
const SMALL_BUFFER: Setup = Setup {
    guest: [
        "sysctl -qw 'net.ipv4.tcp_wmem=4096 4096 8192'; tc qdisc add dev vec0 root netem delay 3ms",
        "sysctl -qw 'net.ipv4.tcp_wmem=4096 16384 4194304'; tc qdisc del dev vec0 root",
    ],
    load: load("write-direct", 8, 65_536),
    ..HEALTHY
};
const CREATES: Setup = Setup {
    serve: &["sim:rate=200MB/s,seek=0,sync=3ms"],
    load: load("create", 1, 4096),
    ..HEALTHY
};
const SMALL_READS: Setup =
    Setup { guest: netem!("delay 2ms"), load: load("read-direct", 1, 1 << 20), ..HEALTHY };
const SYNC: Setup = Setup {
    serve: &["sim:rate=200MB/s,seek=0,sync=2ms"],
    mount: "sync",
    load: load("write", 1, 65_536),
    ..HEALTHY
};
const READ_AHEAD: Setup =
    Setup { guest: netem!("delay 2ms"), load: load("read", 1, 16_384), ..HEALTHY };
const LINKS: Setup = Setup { guest: netem!("delay 1ms"), load: load("links", 1, 1), ..HEALTHY };

pub(super) const ALL: &[Scene] = &[
    Scene {
        staged: staged("latency", "a way of 20 ms", "network", &["latency-bound"]),
        setup: Setup { guest: netem!("delay 20ms"), load: load("read-direct", 1, 8192), ..HEALTHY },
        remedied: Some((
            "a way of 10 ms",
            Setup { guest: netem!("delay 10ms"), load: load("read-direct", 1, 8192), ..HEALTHY },
        )),
    },
    Scene {
        staged: staged(
            "latency-of-names",
            "a tree that is walked through, 10 ms away",
            "network",
            &["latency-bound"],
        ),
        setup: Setup { guest: netem!("delay 10ms"), load: load("walk", 1, 100), ..HEALTHY },
        remedied: Some((
            "a way of 5 ms",
            Setup { guest: netem!("delay 5ms"), load: load("walk", 1, 100), ..HEALTHY },
        )),
    },
    Scene {
        staged: staged("loss", "2 % of what the client sends is lost", "network", &["tcp-loss"]),
        setup: Setup {
            guest: netem!("delay 1ms loss 2%"),
            load: load("write-direct", 4, 65_536),
            ..HEALTHY
        },
        remedied: None,
    },
    Scene {
        staged: staged("rate", "a link of 40 Mbit/s", "network", &["full-path"]),
        setup: Setup {
            guest: netem!("rate 40mbit limit 2000"),
            load: load("write-direct", 4, 262_144),
            ..HEALTHY
        },
        remedied: Some((
            "a link of 80 Mbit/s",
            Setup {
                guest: netem!("rate 80mbit limit 2000"),
                load: load("write-direct", 4, 262_144),
                ..HEALTHY
            },
        )),
    },
    Scene {
        staged: staged(
            "server-overhead",
            "4 ms of the server's processor for each message",
            "server",
            &["slow-server"],
        ),
        setup: Setup {
            serve: &["mem:", "--link", "none,o=4ms"],
            load: load("open", 4, 4096),
            ..HEALTHY
        },
        remedied: None,
    },
    Scene {
        staged: staged(
            "server-stopped",
            "a server that does not answer any more",
            "server",
            &["no-replies"],
        ),
        setup: Setup { server_stops: true, load: load("open", 1, 4096), ..HEALTHY },
        remedied: None,
    },
    Scene {
        staged: staged(
            "slow-storage",
            "a disk that takes 3 ms to be stable",
            "storage",
            &["slow-commit"],
        ),
        setup: CREATES,
        remedied: Some((
            "storage that is stable at once",
            Setup { serve: &["sim:rate=200MB/s,seek=0,sync=0"], ..CREATES },
        )),
    },
    Scene {
        staged: staged(
            "client-queue",
            "a send buffer of 8 KiB, 3 ms away",
            "client",
            &["client-queue"],
        ),
        setup: SMALL_BUFFER,
        remedied: Some((
            "a send buffer of 4 MiB",
            Setup { guest: netem!("delay 3ms"), ..SMALL_BUFFER },
        )),
    },
    Scene {
        staged: staged("slots", "2 slots for 8 programs, 5 ms away", "client", &["slot-limit"]),
        setup: FEW_SLOTS,
        remedied: Some((
            "65536 slots",
            Setup {
                guest: [
                    "sysctl -qw sunrpc.tcp_max_slot_table_entries=65536; \
                     tc qdisc add dev vec0 root netem delay 5ms",
                    "tc qdisc del dev vec0 root",
                ],
                ..READS
            },
        )),
    },
    Scene {
        staged: staged(
            "dirty-limit",
            "600 MB may be held back, for a server that takes 20 MB/s",
            "client",
            &["dirty-limit"],
        ),
        setup: Setup {
            serve: &["sim:rate=20MB/s,seek=0"],
            guest: [
                "sysctl -qw vm.dirty_bytes=600000000 vm.dirty_background_bytes=200000000",
                "sysctl -qw vm.dirty_ratio=20 vm.dirty_background_ratio=10",
            ],
            mount: "wsize=262144",
            load: load("write-on", 1, 1 << 20),
            ..HEALTHY
        },
        remedied: None,
    },
    Scene {
        staged: staged("noac", "a mount with noac", "client", &["attribute-caching-off"]),
        setup: Setup { mount: "noac", load: load("look", 1, 4096), ..HEALTHY },
        remedied: None,
    },
    Scene {
        staged: staged(
            "tiny-transfers",
            "rsize=8192,wsize=8192, 2 ms away",
            "client",
            &["small-transfers"],
        ),
        setup: Setup { mount: "rsize=8192,wsize=8192", ..SMALL_READS },
        remedied: None,
    },
    Scene {
        staged: staged(
            "attribute-storm",
            "a program that opens files again and again",
            "application",
            &["attribute-storm"],
        ),
        setup: Setup { load: load("open", 1, 4096), ..HEALTHY },
        remedied: None,
    },
    Scene {
        staged: staged(
            "symlink-storm",
            "a program that goes through symbolic links",
            "application",
            &["symbolic-links"],
        ),
        setup: Setup { guest: ["", ""], ..LINKS },
        remedied: Some((
            "paths without links",
            Setup { guest: ["", ""], load: load("no-links", 1, 1), ..LINKS },
        )),
    },
    Scene {
        staged: staged("sync-mount", "a mount with sync", "client", &["sync-mount"]),
        setup: SYNC,
        remedied: None,
    },
    Scene {
        staged: staged(
            "sync-writes",
            "a program that wants each 4 KiB to be stable",
            "application",
            &["small-calls"],
        ),
        setup: Setup { load: load("write-stable", 1, 4096), ..HEALTHY },
        remedied: None,
    },
    Scene {
        staged: staged("read-ahead", "16 KiB of read-ahead, 2 ms away", "client", &["read-ahead"]),
        setup: Setup { read_ahead_kib: 16, ..READ_AHEAD },
        remedied: None,
    },
];

/// Plays those that are wanted.
pub(super) fn play(outcome: &mut Outcome, stage: &mut Stage<'_>, options: &Options) {
    for scene in ALL.iter().filter(|scene| options.wants(scene.staged.name)) {
        match played(stage, scene) {
            Ok(fault) => outcome.fault(fault),
            Err(why) => outcome.failed(scene.staged.name, &why),
        }
    }
}

fn played(stage: &mut Stage<'_>, scene: &Scene) -> Result<Fault, String> {
    let before = stage.play(&scene.setup)?;
    let answer = answer::first(&before.report);
    let gain = match scene.remedied {
        Some((remedy, setup)) => {
            let after = stage.play(&setup)?;
            let predicted = answer.as_ref().and_then(|answer| answer.gain);
            Some(Gain { remedy, predicted, measured: after.rate / before.rate })
        }
        None => None,
    };
    Ok(Fault { staged: scene.staged, answer, gain })
}
