//! Counters of the host that mounts and servers live on.
//!
//! - [`named`]: a name and a number on each line (`meminfo`, `vmstat`, `snmp6`).
//! - [`protocols`]: a line of names and one of numbers (`snmp`, `netstat`).
//! - [`clock`]: uptime and start of the machine.
//! - [`device`]: network devices (`/proc/net/dev`).
//! - [`softnet`]: what each processor has done with packets.
//! - [`processor`]: where the processors' time went (`/proc/stat`).
//! - [`disk`]: block devices (`/proc/diskstats`).
//! - [`pressure`]: time lost for want of something (`/proc/pressure/*`).
//! - [`load`], [`sockets`]: `/proc/loadavg`, `/proc/net/sockstat`.
//! - [`interfaces`], [`iostat`], [`space`], [`spray`], [`tasks`]: what `netstat -i`, `iostat -x`,
//!   `df`, `spray` and `ps` print.

pub mod clock;
pub mod device;
pub mod disk;
pub mod interfaces;
pub mod iostat;
pub mod load;
pub mod named;
pub mod pressure;
pub mod processor;
pub mod protocols;
pub mod sockets;
pub mod softnet;
pub mod space;
pub mod spray;
pub mod tasks;

use super::problem::{Problem, Wrong};

/// There is no line of the format in the text.
fn nothing() -> Problem {
    Problem { line: 1, column: 1, wrong: Wrong::Nothing }
}
