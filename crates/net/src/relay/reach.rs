//! Whether a server is there, before a relay to it is announced, and is not the relay itself.

use std::net::SocketAddr;

use perf::units::Nanos;
use thiserror::Error;

use crate::clock::Clock;
use crate::error::ConnectError;
use crate::transport::tcp::{self, Listener};
use crate::transport::{RECORD_BYTES_MAX, Transport};

/// How long a connection to ourselves may take to be found among those that we accept.
const NOTICE: Nanos = Nanos::from_millis(100);

/// Why nothing can be relayed there.
#[derive(Clone, Debug, Error)]
pub enum Unfit {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{address} is this relay itself: it listens on {listen}")]
    Itself { address: SocketAddr, listen: SocketAddr },
}

/// Connects to each of `addresses` in turn, and gives the first that takes it. Under whatever name
/// or address a relay is configured to call itself, the call arrives at one of its `listeners`.
///
/// # Errors
/// The last address that failed, or the one that is ourselves.
pub async fn reach(
    clock: &Clock,
    addresses: &[SocketAddr],
    limit: Nanos,
    listeners: &[&Listener],
) -> Result<SocketAddr, Unfit> {
    let nowhere =
        || ConnectError::Resolve { host: String::new(), cause: "it has no address".to_owned() };
    let mut failed = None;
    for &address in addresses {
        let pool = crate::transport::buffer::Pool::new(RECORD_BYTES_MAX);
        let connected = tcp::connect(clock, address, limit, &pool, RECORD_BYTES_MAX).await;
        let tcp = match connected {
            Ok(tcp) => tcp,
            Err(cause) => {
                failed = Some(cause);
                continue;
            }
        };
        for listener in listeners {
            let Ok(listen) = listener.local_addr() else { continue };
            if listen.port() != address.port() {
                continue;
            }
            let accept = std::pin::pin!(listener.accept());
            let caller = match clock.within(NOTICE, accept).await {
                Ok(Ok(accepted)) => Some(accepted.peer()),
                _ => None,
            };
            // Who else has come in this moment finds a closed connection, and comes again.
            let same = |caller: SocketAddr, own: SocketAddr| {
                caller.port() == own.port() && caller.ip().to_canonical() == own.ip().to_canonical()
            };
            if caller.zip(tcp.local()).is_some_and(|(caller, own)| same(caller, own)) {
                return Err(Unfit::Itself { address, listen });
            }
        }
        return Ok(address);
    }
    Err(failed.unwrap_or_else(nowhere).into())
}
