//! Calls of others before the run: nhfsstone does not measure a server that others use.
//!
//! The counters are those of this host's kernel: its server, if that is what is measured or shares
//! the disk with it, and its client, whose mounts share the network. Our own calls are in neither's
//! client part, since they do not go through it.

use std::path::Path;

use counters::{client, server};
use harness::exit::Failure;
use load::nhfsstone::outcome::{BACKGROUND_MAX, BACKGROUND_TIME};
use net::clock::Clock;

const SERVER: &str = "/proc/net/rpc/nfsd";
const CLIENT: &str = "/proc/net/rpc/nfs";

/// Calls in the time before the run; `None` where nobody counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Background {
    pub(super) server: Option<u64>,
    pub(super) client: Option<u64>,
}

impl Background {
    /// Watches for two seconds, if there is something to be seen.
    pub(super) async fn watch(clock: &Clock) -> Self {
        let before = Self::now();
        if before == Self::default() {
            return before;
        }
        clock.sleep(BACKGROUND_TIME).await;
        Self::now().since(before)
    }

    /// What the kernel has counted so far.
    fn now() -> Self {
        let read = |path: &str| std::fs::read(Path::new(path)).ok();
        let of_server = |text: Vec<u8>| Some(server::read(&text).ok()?.rpc?.calls);
        let of_client = |text: Vec<u8>| Some(client::read(&text).ok()?.rpc?.calls);
        Self { server: read(SERVER).and_then(of_server), client: read(CLIENT).and_then(of_client) }
    }

    fn since(self, before: Self) -> Self {
        let grown =
            |now: Option<u64>, before: Option<u64>| Some(counters::difference(now?, before?));
        Self {
            server: grown(self.server, before.server),
            client: grown(self.client, before.client),
        }
    }

    /// # Errors
    /// There are too many, and that matters.
    pub(super) fn is_quiet(self, may_be_busy: bool) -> Result<(), Failure> {
        let most = [(self.server, "NFS server"), (self.client, "NFS mounts")]
            .into_iter()
            .filter_map(|(calls, whose)| Some((calls?, whose)))
            .max();
        match most {
            Some((calls, whose)) if calls > BACKGROUND_MAX && !may_be_busy => {
                let seconds = BACKGROUND_TIME.as_secs_f64();
                Err(Failure::environment(
                    format!(
                        "this host's {whose} had {calls} calls of others in {seconds} s; over \
                         {BACKGROUND_MAX} the results would be theirs as well"
                    ),
                    "a quieter time, or --busy",
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_others_are_too_many_over_twenty() {
        let of = |server, client| Background { server, client };
        let grown = of(Some(121), Some(7)).since(of(Some(100), None));
        assert_eq!(grown, of(Some(21), None));
        let busy = grown.is_quiet(false).unwrap_err();
        assert!(busy.what().contains("NFS server had 21 calls"), "{}", busy.what());
        assert!(grown.is_quiet(true).is_ok());
        assert!(of(Some(20), Some(20)).is_quiet(false).is_ok());
        assert!(of(None, Some(30)).is_quiet(false).is_err());
        assert!(Background::default().is_quiet(false).is_ok());
    }
}
