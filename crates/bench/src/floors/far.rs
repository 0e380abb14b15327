//! `nfskit bench stream --server`: the far end of `stream`, `rtt` and `spray`.

use std::net::SocketAddr;

use harness::exit::Failure;
use harness::hints;
use harness::output;
use harness::verbosity::Verbosity;
use net::floor::far::Far;

use crate::workload::Conditions;

/// Serves until it is stopped.
pub(super) async fn run(
    listen: SocketAddr,
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<(), Failure> {
    let cannot = |cause: std::io::Error| {
        Failure::environment(
            format!("cannot listen on {listen}: {cause}"),
            hints::listening(&cause, false),
        )
    };
    let far = Far::bind(listen).map_err(cannot)?;
    let address = far.local_addr().map_err(cannot)?;
    if verbosity > Verbosity::Quiet {
        output::print(&banner(address))?;
    }
    let serve = move || far.serve(&clock, load::floor::process_cpu);
    let thread = std::thread::Builder::new().name("nfskit-accept".to_owned());
    thread.spawn(serve).map_err(cannot)?;
    // It is bound to nothing that would have to be brought to an end.
    interrupts.next().await;
    Ok(())
}

fn banner(address: SocketAddr) -> String {
    format!(
        "far end     {address}, TCP and UDP, until interrupted
use         nfskit bench stream --to {address}
            nfskit bench rtt --to {address}
            nfskit bench spray --to {address}
"
    )
}
