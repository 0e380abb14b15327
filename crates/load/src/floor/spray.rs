//! Calls sent at a rate, whether they are answered or not: how many a host takes before it loses
//! some.
//!
//! Stresses the receiving host's interrupts and buffers. Defined by SunOS's `spray`, which Sun's
//! tuning guide of 1990 uses to find the largest packets and the highest rate that a server
//! receives (`spray thud -l 2048 -c 100 -d 2`: 6 % lost; over 10 % is too much).
//!
//! It differs in this: beside the spray program (100012), which few hosts still run and our far
//! end does, it calls NULL of any NFS server, where a call is lost when it is not answered in
//! time, so that losses of replies are counted, too; there it tells response times, from when a
//! call was due. It is repeated, and says what the kernel counted meanwhile.

use std::sync::atomic::AtomicBool;

use net::clock::Clock;
use net::floor::rpc::Service;
use net::floor::spray::{self, Spray, Sprayed};

use super::{Outcome, Progress};
use crate::error::Error;

/// Calls of the run that does not count.
const WARM_UP_CALLS: u32 = 16;

/// Sprays `repeats` times. `is_null`: with NULL calls of whatever program it is.
pub fn run(
    clock: &Clock,
    service: Service,
    is_null: bool,
    what: &Spray,
    repeats: u32,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Outcome<Vec<Sprayed>> {
    let once = |what: &Spray| -> Result<Sprayed, Error> {
        Ok(match is_null {
            true => spray::null(clock, service, what, stop)?,
            false => spray::classic(clock, service, what, stop)?,
        })
    };
    let mut measured = Vec::new();
    let warm_up = Spray { calls: WARM_UP_CALLS.min(what.calls), ..*what };
    let mut failed = once(&warm_up).err();
    while failed.is_none() && measured.len() < repeats as usize {
        match once(what) {
            Ok(run) => measured.push(run),
            Err(error) => failed = Some(error),
        }
        progress(measured.len() as f64 / f64::from(repeats));
    }
    Outcome { measured, failed }
}
