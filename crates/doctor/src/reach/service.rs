//! Portmapper, NFS and MOUNT: whether the service is there, and whether it replies.

use super::fault::{Cause, Known, cause};
use super::phase::Phase;
use crate::finding::Layer;

pub(super) fn on(known: &Known) -> String {
    known.port.map(|port| format!("on port {port} ")).unwrap_or_default()
}

pub(super) fn refused(phase: Phase, known: &Known) -> Vec<Cause> {
    let port = on(known);
    match phase {
        Phase::Portmapper => vec![cause(
            "no portmapper runs there: servers of version 4 only, and nfskit serve, need none",
            "nothing, if the ports below were found; else systemctl start rpcbind",
        )],
        Phase::MountProgram | Phase::Exports | Phase::Permission => vec![
            cause(
                format!("mountd does not run, or not {port}any more"),
                "systemctl status nfs-mountd (nfs-server) on the server",
            ),
            cause("the server has version 4 only, which needs no MOUNT", "mount -o vers=4.2"),
        ],
        _ => vec![
            cause(
                format!("the host is up, and no NFS server listens {port}there"),
                "systemctl status nfs-server on the server, or nfskit serve",
            ),
            cause("it listens on another port", "rpcinfo -p there; ?nfsport=N"),
            cause("a firewall rejects the port", "nft list ruleset on the server")
                .of(Layer::Network),
        ],
    }
}

pub(super) fn no_reply(phase: Phase, known: &Known) -> Vec<Cause> {
    let hangs = cause(
        "the server hangs: all its threads wait for a disk, or it is stopped",
        "on the server: ps -eo state,comm | grep nfsd (D waits for a disk), and dmesg",
    );
    let mtu = cause(
        "packets of full size are lost on the way, and the ICMP messages that would say so, too",
        format!("ping -M do -s 1472 {} (8972 with jumbo frames); ip link set mtu 1400", known.host),
    )
    .of(Layer::Network);
    let file = cause(
        "the file system behind the export hangs (a dead disk, or another NFS mount)",
        "ls there, on the server",
    )
    .of(Layer::Storage);
    match phase {
        Phase::Read | Phase::Write => vec![mtu, file, hangs],
        Phase::Fsinfo | Phase::Pathconf | Phase::Getattr => vec![file, hangs],
        Phase::MountProgram | Phase::Exports | Phase::Permission => vec![
            cause(
                "mountd waits for a name server: it looks up the names of its clients",
                format!("getent hosts ADDRESS-OF-THIS-HOST on {}; /etc/hosts there", known.host),
            ),
            hangs,
        ],
        _ => {
            vec![hangs, cause("what listens there is no RPC server, and waits", "rpcinfo -p there")]
        }
    }
}

pub(super) fn closed(phase: Phase, known: &Known) -> Vec<Cause> {
    let mut all = Vec::new();
    if !known.is_privileged {
        all.push(
            cause(
                "the server lets only clients with privileged ports in (secure, the default)",
                "as root, or insecure for the export",
            )
            .of(Layer::Client),
        );
    }
    all.push(cause(
        "no export is for this host, and so its connections are closed",
        "exportfs -v on the server; /etc/hosts.allow for mountd",
    ));
    if phase >= Phase::Null {
        all.push(cause("the server died, or was restarted", "its log"));
    }
    all
}

pub(super) fn no_program(phase: Phase, known: &Known) -> Vec<Cause> {
    match phase {
        Phase::MountProgram | Phase::Exports | Phase::Permission => vec![
            cause("the server has version 4 only, which needs no MOUNT", "mount -o vers=4.2"),
            cause("MOUNT is on another port", "rpcinfo -p there; ?mountport=N"),
            cause("mountd does not run", "systemctl status nfs-mountd there"),
        ],
        _ => vec![
            cause(
                format!("the NFS server is not started, or has not registered {}", on(known)),
                "systemctl status nfs-server; rpcinfo -p on that host",
            ),
            cause("NFS is on another port", "?nfsport=N"),
        ],
    }
}

pub(super) fn no_version(low: u32, high: u32) -> Vec<Cause> {
    match low {
        4.. => vec![cause(
            format!("the server has turned version 3 off (it serves {low} to {high})"),
            "mount -o vers=4.2; or vers3=y in [nfsd] of /etc/nfs.conf on the server",
        )],
        _ => vec![cause(
            format!("the server serves versions {low} to {high} only"),
            format!("?version={high} in the URL, vers={high} for mount"),
        )],
    }
}
