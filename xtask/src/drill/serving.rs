//! Faults that the guest's kernel has as a server: the load comes from this side.

use std::process::Command;
use std::time::Duration;

use super::answer;
use super::options::Options;
use super::outcome::{Fault, Outcome};
use super::scene::{Staged, staged, well};
use super::stage::{GUEST, HOST, SOON, Stage};
use crate::host::about;
use crate::host::child::Service;

const DISK: &str = include_str!("scripts/disk.py");
const DISK_MIB: u32 = 64;
/// Two disks: number and port, delay of a request in ms, and whether they wait for each other.
const DISKS: [(u32, u16, &str, &str); 2] =
    [(0, 10_809, "0.3", "parallel"), (1, 10_810, "20", "serial")];
/// For what the load does.
const WITHIN: Duration = Duration::from_secs(60);
const LOOK_S: u32 = 4;
/// Doctor looks at it from its third second on.
const LOAD_TIME: &str = "8s";

#[derive(Clone, Copy, Debug)]
struct Scene {
    staged: Staged,
    threads: u32,
    export: &'static str,
    /// What is done to the guest, and how that is undone.
    guest: [&'static str; 2],
    /// What our client does, and what stands behind the target's ports.
    bench: &'static [&'static str],
    query: &'static str,
}

const WELL: Scene = Scene {
    staged: well(""),
    threads: 8,
    export: "/srv/t",
    guest: ["", ""],
    bench: &[],
    query: "",
};

/// The server's healthy runs.
const HEALTHY: &[Scene] = &[
    Scene {
        staged: well("server-mix"),
        bench: &["--mix", "sfs97-v3", "--closed", "2", "--file-set-max", "2M"],
        ..WELL
    },
    Scene {
        staged: well("server-reads"),
        bench: &["--mix", "read", "--closed", "1", "--file-set-max", "8M"],
        ..WELL
    },
];

const FAULTS: &[Scene] = &[
    Scene {
        staged: staged(
            "server-processor",
            "other programs keep the server's processor busy",
            "server",
            &["server-processors"],
        ),
        threads: 64,
        guest: [
            "for n in 1 2 3; do (while :; do :; done) & echo $! >>/tmp/busy; done",
            "kill $(cat /tmp/busy); rm /tmp/busy",
        ],
        bench: &["--mix", "getattr", "--closed", "4", "--file-set-max", "2M"],
        ..WELL
    },
    Scene {
        staged: staged(
            "server-threads",
            "one thread for 16 calls at once, and a disk of 0.3 ms",
            "server",
            &["server-threads"],
        ),
        threads: 1,
        export: "/srv/disk0",
        bench: &["--mix", "write", "--closed", "16", "--file-set-max", "2M"],
        ..WELL
    },
    Scene {
        staged: staged(
            "server-disk",
            "a disk that takes 20 ms for each request",
            "storage",
            &["server-disks"],
        ),
        threads: 16,
        export: "/srv/disk1",
        bench: &["--mix", "write", "--closed", "8", "--file-set-max", "2M"],
        ..WELL
    },
    Scene {
        staged: staged(
            "duplicates",
            "NFS over UDP, and 5 % of the packets to the server come twice",
            "network",
            &["reply-cache-hits"],
        ),
        guest: DOUBLED,
        bench: &["--mix", "setattr", "--closed", "2", "--file-set-max", "4M"],
        query: "&proto=udp",
        ..WELL
    },
];

/// netem on what comes to the guest.
const DOUBLED: [&str; 2] = [
    "modprobe -a sch_ingress cls_matchall act_mirred; modprobe ifb numifbs=1; ip link set ifb0 up; \
     tc qdisc add dev vec0 ingress; \
     tc filter add dev vec0 parent ffff: matchall action mirred egress redirect dev ifb0; \
     tc qdisc add dev ifb0 root netem duplicate 5%",
    "tc qdisc del dev vec0 ingress; tc qdisc del dev ifb0 root",
];

pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    FAULTS.iter().chain(HEALTHY).map(|scene| scene.staged.name)
}

/// Plays those that are wanted.
pub(super) fn play(
    outcome: &mut Outcome,
    stage: &mut Stage<'_>,
    options: &Options,
) -> Result<(), String> {
    let _disks = prepare(stage)?;
    for scene in FAULTS.iter().filter(|scene| options.wants(scene.staged.name)) {
        let staged = scene.staged;
        match played(stage, scene) {
            Ok(report) => {
                let answer = answer::first(&report);
                outcome.fault(Fault { staged, answer, gain: None });
            }
            Err(why) => outcome.failed(staged.name, &why),
        }
    }
    for scene in HEALTHY.iter().filter(|scene| options.wants(scene.staged.name)) {
        match played(stage, scene) {
            Ok(report) => outcome.healthy(scene.staged.name, answer::high(&report)),
            Err(why) => outcome.failed(scene.staged.name, &why),
        }
    }
    Ok(())
}

/// The server, and what it exports: memory, two disks, and a folder that is full.
fn prepare(stage: &mut Stage<'_>) -> Result<Vec<Service>, String> {
    let script = stage.scratch.join("disk.py");
    std::fs::write(&script, DISK).map_err(about(&script))?;
    let mut disks = Vec::new();
    let mut attached = String::new();
    for (number, port, delay_ms, order) in DISKS {
        let mut command = Command::new("python3");
        command.arg(&script).arg("serve").arg(HOST);
        command.args([port.to_string(), DISK_MIB.to_string(), delay_ms.to_owned()]).arg(order);
        disks.push(Service::start_until(&mut command, SOON, "disk ready")?);
        attached += &format!(
            "python3 /host{} attach {HOST} {port} {DISK_MIB} /dev/nbd{number} &\n\
             until [ $(cat /sys/block/nbd{number}/size) != 0 ]; do sleep 0.05; done\n\
             mke2fs -q -t ext4 -E lazy_itable_init=0,nodiscard /dev/nbd{number}\n\
             mkdir -p /srv/disk{number} && mount /dev/nbd{number} /srv/disk{number} || exit\n\
             exportfs -o {EXPORTED} '*:/srv/disk{number}' || exit\n",
            script.display()
        );
    }
    stage.guest(&format!(
        "modprobe nbd nbds_max=2; modprobe sch_netem\n\
         printf '[nfsd]\\nudp=y\\n' >/etc/nfs.conf\n\
         mkdir -p /srv/t /srv/full\n\
         mount -t tmpfs -o size=256M,mode=1777 srv /srv/t\n\
         mount -t tmpfs -o size=64K,mode=1777 full /srv/full\n\
         head -c 100K /dev/zero >/srv/full/file\n\
         head -c 1M /dev/urandom >/srv/t/file\n\
         start_nfsd /srv/t {EXPORTED},fsid=1; pidof rpc.mountd || exit\n\
         exportfs -o {EXPORTED},fsid=2 '*:/srv/full' || exit\n\
         {attached}"
    ))?;
    Ok(disks)
}

const EXPORTED: &str = "rw,no_root_squash,insecure,no_subtree_check";

/// The load, and what doctor says in the guest meanwhile.
fn played(stage: &mut Stage<'_>, scene: &Scene) -> Result<serde_json::Value, String> {
    let Scene { threads, export, guest: [fault, undo], bench, query, .. } = scene;
    stage.guest(&format!("rpc.nfsd {threads}\n{fault}"))?;
    let target = format!("nfs://{GUEST}{export}?nfsport=2049&mountport=20048{query}");
    let mut command = Command::new(stage.nfskit);
    command.args(["bench", "curve", "--points", "1", "--time", LOAD_TIME, "--target", &target]);
    command.args(*bench);
    let load = Service::start(&mut command)?;
    let nfskit = stage.nfskit.display();
    let report = stage
        .guest(&format!("sleep 2; /host{nfskit} doctor --for {LOOK_S}s -q --json -; [ $? -le 1 ]"));
    let ended = load.wait(WITHIN);
    stage.guest(&format!("{undo}\ntrue"))?;
    ended?;
    let report = report?;
    serde_json::from_str(&report).map_err(|cause| format!("{cause}: {report}"))
}
