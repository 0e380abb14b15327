//! `--interface`: packets as they pass, until somebody has seen enough.

use std::future::pending;
use std::pin::pin;

use harness::exit::Failure;
use harness::output;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use net::capture::{CaptureError, Live, Passed};
use net::clock::Clock;
use trace::capture::{Link, Packet, Place};

use crate::args::Trace;

/// Packets between two looks whether it is over.
const BATCH: usize = 4096;

/// What passed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    pub(super) bytes: u64,
    /// Packets that the kernel had no room for.
    pub(super) dropped: u64,
}

/// Gives every packet to `each`.
pub(super) fn listen(
    args: &Trace,
    verbosity: Verbosity,
    mut each: impl FnMut(&Packet<'_>),
) -> Result<Heard, Failure> {
    let names = args.interface.join(", ");
    let broken = |cause: std::io::Error| failure(CaptureError::Io { names: names.clone(), cause });
    let heard = net::runtime::block_on(async {
        let mut interrupts = Interrupts::catch()?;
        let clock = Clock::real();
        let mut live = Live::open(&args.interface, !args.no_promiscuous).map_err(failure)?;
        if verbosity > Verbosity::Quiet {
            output::say(format_args!(
                "listening on {names}; Ctrl-C ends it and prints the summary"
            ));
        }
        let (mut bytes, mut number) = (0, 0);
        let mut take = |passed: &Passed<'_>| {
            bytes += passed.data.len() as u64;
            number += 1;
            each(&Packet {
                frame: number,
                at_ns: passed.at_ns,
                place: Place { file: 0, interface: passed.interface },
                link: Link::Network(passed.protocol),
                wire_len: passed.wire_len,
                data: passed.data,
            });
        };
        let mut over = pin!(async {
            match args.time {
                Some(time) => clock.sleep(time).await,
                None => pending().await,
            }
        });
        loop {
            tokio::select! {
                biased;
                () = interrupts.next() => break,
                () = &mut over => break,
                ready = live.readable() => ready.map_err(&broken)?,
            }
            for _ in 0..BATCH {
                let Some(passed) = live.take().map_err(&broken)? else { break };
                take(&passed);
            }
        }
        // What passed before the end and waits; not what goes on passing.
        let end_ns = u64::try_from(clock.since_1970().as_nanos()).unwrap_or(u64::MAX);
        while let Some(passed) = live.take().map_err(&broken)?
            && passed.at_ns <= end_ns
        {
            take(&passed);
        }
        let dropped = live.dropped().map_err(&broken)?;
        Ok(Heard { bytes, dropped })
    });
    heard.map_err(broken)?
}

fn failure(error: CaptureError) -> Failure {
    let advice = match &error {
        CaptureError::Unknown { .. } | CaptureError::TooMany { .. } => {
            "the interface that leads to the server or the clients: ip route get ADDRESS"
        }
        CaptureError::Down { .. } => "another interface, or set it up: ip link set NAME up",
        CaptureError::Denied { .. } => {
            "as root; or give the program the capability: setcap cap_net_raw+ep PATH/nfskit; or \
             pipe tcpdump -w - into nfskit trace -"
        }
        CaptureError::Io { .. } => "tcpdump -i NAME -w - | nfskit trace -, if that may capture",
    };
    let denied = matches!(error, CaptureError::Denied { .. });
    let failure = Failure::environment(error, advice);
    match denied {
        true => failure.and("a packet socket needs root, or CAP_NET_RAW"),
        false => failure,
    }
}
