//! The phases of a mount one by one, and the likely causes where one fails, the likeliest first.
//!
//! Pure: who walks the phases (the crate `checks`) says which one failed, how, and what it knows
//! of the host by then.
//!
//! - `phase`, `fault`: where it failed, and how.
//! - `way`: causes on the way to the host; `service`: of what serves there; `permission`: of what
//!   it allows; those of its files are here.
//! - `answering`: whether the network is slow or the server.

mod answering;
mod fault;
mod permission;
mod phase;
mod service;
#[cfg(test)]
mod tests;
mod way;

use self::fault::cause;
use self::permission::{absent, denied};
use self::service::{closed, no_program, no_reply, no_version, on, refused};
use self::way::{silent, unreachable, unresolved};
use crate::finding::Layer;

pub use self::answering::{Answering, answering};
pub use self::fault::{Cause, Fault, Known};
pub use self::phase::Phase;

/// The likely causes of a phase's failure, the likeliest first. There is at least one.
pub fn causes(phase: Phase, fault: Fault, known: &Known) -> Vec<Cause> {
    match fault {
        Fault::Unresolved => unresolved(known),
        Fault::Unreachable => unreachable(known),
        Fault::Refused => refused(phase, known),
        Fault::Silent => silent(phase, known),
        Fault::NoReply => no_reply(phase, known),
        Fault::Closed => closed(phase, known),
        Fault::NotRpc => vec![cause(
            format!("what listens {}is another service", on(known)),
            "the port of NFS or MOUNT: rpcinfo -p on that host, or ?nfsport=N&mountport=N",
        )],
        Fault::NotRegistered | Fault::NoProgram => no_program(phase, known),
        Fault::NoVersion { low, high } => no_version(low, high),
        Fault::Authentication => vec![
            cause(
                "the export wants another flavor (sec=krb5), and nfskit speaks AUTH_SYS",
                "exportfs -v on the server: sec= of the export",
            ),
            cause("the server does not trust this caller", "?uid=N&gid=N, or the server's log")
                .of(Layer::Client),
        ],
        Fault::Denied => denied(phase, known),
        Fault::Absent => absent(phase, known),
        Fault::ReadOnly => vec![cause(
            "the export, or the file system below it, is read-only",
            "exportfs -v on the server (rw or ro), and findmnt for the file system's options",
        )],
        Fault::Full => vec![
            cause("the file system is full", "df and df -i on the server").of(Layer::Storage),
            cause("the caller's quota is used up", "quota, or repquota on the server")
                .of(Layer::Storage),
        ],
        Fault::Stale => vec![cause(
            "the directory was removed, or the server lost its handles (another fsid, a restart)",
            "exportfs -v for fsid=; mount it again",
        )],
        Fault::Server => vec![
            cause("the server's disk or file system fails", "dmesg on the server")
                .of(Layer::Storage),
            cause("the server is short of something", "the server's log"),
        ],
        Fault::Later => vec![
            cause(
                "the file is not at hand: on tape, or another client's delegation is recalled",
                "again in a while",
            )
            .of(Layer::Storage),
        ],
        Fault::Other => vec![cause(
            "none that is usual",
            "the server's log; a capture of it (tcpdump, then nfskit trace)",
        )],
    }
}
