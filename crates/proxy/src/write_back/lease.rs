//! The lease of an export: a file in its root that says whose writes are on their way there. One
//! proxy with a log at a time takes it, writes to it every few seconds, and removes it when nothing
//! is on its way any more.
//!
//! Only the clock of whoever looks counts: a lease that does not change while it is looked
//! at for [`WATCHED_FOR`] has no living holder. It is taken over only by the proxy with the same
//! log; of another one, it says that something may be on its way that only that log has. One that
//! says nothing all that time was being made by a proxy that was killed, and has no owner.
//!
//! Who exports a part of what another exports looks for the other's lease, too (`upper`).

use net::clock::Clock;
use perf::units::Nanos;
use server::store::{Changed, Store};
use server::types::{CreateHow, Handle, SetAttr, SetTime, Stability, Status, Time};
use wire::show::Hex;

use bytes::Bytes;

use super::events::Event;
use super::options::Owner;
use super::{Inner, upper};

/// The file's name.
pub(super) const NAME: &[u8] = b".nfskit-write-back";

/// How often it is renewed, and how long one is looked at that may be dead.
pub(super) const RENEWED_EVERY: Nanos = Nanos::from_secs(4);
pub(super) const WATCHED_FOR: Nanos = Nanos::from_secs(13);

const HEAD: &str = "nfskit write-back lease 1";

/// What a lease says is padded to this.
const BYTES: usize = 512;

/// It is its owner's alone.
const MODE: SetAttr = SetAttr {
    mode: Some(0o600),
    uid: None,
    gid: None,
    size: None,
    accessed: SetTime::Keep,
    modified: SetTime::Keep,
};

/// Why there is no lease.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LeaseError {
    #[error("another proxy has it: process {process} on {host}, which is alive")]
    Alive { host: String, process: u32 },
    #[error(
        "a proxy had it that is gone: process {process} on {host} with the log {log}. What it had \
         answered may be in that log and nowhere else"
    )]
    Dead { host: String, process: u32, log: String },
    #[error(".nfskit-write-back in the root of the export is not a lease")]
    Foreign,
    #[error("the file .nfskit-write-back cannot be made in the root of the export: {0:?}")]
    Refused(Status),
    #[error("the file .nfskit-write-back in the root of the export cannot be written: {0:?}")]
    Unwritten(Status),
    #[error("in a directory above: {0}")]
    Upper(Box<Self>),
}

impl LeaseError {
    /// Whether the origin may have a lease of this log all the same.
    pub(super) fn may_be_there(&self) -> bool {
        matches!(self, Self::Unwritten(_))
    }
}

/// What has a lease's name.
pub(super) struct Found {
    file: Handle,
    changed: Time,
    pub(super) says: Says,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Says {
    Lease(Lease),
    Nothing,
    Else,
}

/// What a lease says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Lease {
    log: String,
    host: String,
    process: u32,
    boot: String,
    renewed: u64,
}

impl Lease {
    fn of(owner: &Owner, renewed: u64) -> Self {
        // A name with a line's end in it would be two lines.
        let host: String = owner.host.chars().filter(|c| !c.is_control()).take(200).collect();
        let (log, boot) = (Hex(&owner.log).to_string(), Hex(&owner.boot).to_string());
        Self { log, host, process: owner.process, boot, renewed }
    }

    fn text(&self) -> Bytes {
        let Self { log, host, process, boot, renewed } = self;
        let mut text = format!(
            "{HEAD}\nlog {log}\nhost {host}\nprocess {process}\nboot {boot}\nrenewed {renewed}\n"
        )
        .into_bytes();
        text.resize(BYTES, b'\n');
        Bytes::from(text)
    }

    /// Another has it, and has renewed it while it was looked at, or not.
    pub(super) fn of_another(self, is_renewed: bool) -> LeaseError {
        let Self { host, process, log, .. } = self;
        match is_renewed {
            true => LeaseError::Alive { host, process },
            false => LeaseError::Dead { host, process, log },
        }
    }

    /// Who has it.
    pub(super) fn holder(&self) -> String {
        format!("process {} on {}", self.process, self.host)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let (log, host) = (value("log")?.to_owned(), value("host")?.to_owned());
        let process = value("process")?.parse().ok()?;
        let boot = value("boot")?.to_owned();
        let renewed = value("renewed")?.parse().ok()?;
        Some(Self { log, host, process, boot, renewed })
    }
}

impl Says {
    fn parse(text: &[u8]) -> Self {
        match Lease::parse(text) {
            Some(lease) => Self::Lease(lease),
            None if text.is_empty() => Self::Nothing,
            None => Self::Else,
        }
    }
}

/// What there is in a directory; nothing if there is none.
pub(super) async fn read<S: Store>(
    store: &S,
    owner: &Owner,
    dir: &Handle,
) -> Result<Option<Found>, LeaseError> {
    let found = match store.lookup(&owner.caller, dir, NAME).await.result {
        Ok(found) => found,
        Err(Status::NoEntry) => return Ok(None),
        Err(status) => return Err(LeaseError::Refused(status)),
    };
    let (file, changed) = (found.handle, found.attr.changed);
    let length = u32::try_from(BYTES).expect("it is small");
    match store.read(&owner.caller, &file, 0, length).await.result {
        Ok(read) => Ok(Some(Found { file, changed, says: Says::parse(&read.data) })),
        Err(Status::Stale) => Ok(None),
        Err(status) => Err(LeaseError::Refused(status)),
    }
}

/// When it was written, by the origin's clock.
async fn write<S: Store>(
    store: &S,
    owner: &Owner,
    file: &Handle,
    renewed: u64,
) -> Result<Time, Status> {
    let text = Lease::of(owner, renewed).text();
    let written = store.write(&owner.caller, file, 0, text, Stability::FileSync).await;
    written.result?;
    match written.wcc.after {
        Some(after) => Ok(after.changed),
        None => Ok(store.attr(&owner.caller, file).await?.changed),
    }
}

/// Makes the file, where there is none. One that cannot be written is removed, if that can be.
async fn make<S: Store>(store: &S, owner: &Owner, renewed: u64) -> Result<Time, LeaseError> {
    let how = CreateHow::Guarded(MODE);
    let Changed { result, .. } = store.create(&owner.caller, &store.root(), NAME, how).await;
    let made = result.map_err(LeaseError::Refused)?;
    fill(store, owner, &made.handle, renewed).await
}

async fn fill<S: Store>(
    store: &S,
    owner: &Owner,
    file: &Handle,
    renewed: u64,
) -> Result<Time, LeaseError> {
    let status = match write(store, owner, file, renewed).await {
        Ok(written) => return Ok(written),
        Err(status) => status,
    };
    match store.remove(&owner.caller, &store.root(), NAME).await.result {
        Ok(()) => Err(LeaseError::Refused(status)),
        Err(_) => Err(LeaseError::Unwritten(status)),
    }
}

/// Takes the lease; when it was written just now, by the origin's clock.
///
/// # Errors
/// [`LeaseError`]: it is another's, or the origin refuses it.
pub(super) async fn take<S: Store>(
    store: &S,
    clock: &Clock,
    owner: &Owner,
) -> Result<Time, LeaseError> {
    upper::check(store, clock, owner).await?;
    match make(store, owner, 0).await {
        Err(LeaseError::Refused(Status::Exists)) => there(store, clock, owner).await,
        made => made,
    }
}

/// A lease that is there: this owner's, or why it cannot be.
async fn there<S: Store>(store: &S, clock: &Clock, owner: &Owner) -> Result<Time, LeaseError> {
    let Some(Found { file, says: first, .. }) = read(store, owner, &store.root()).await? else {
        return Err(LeaseError::Refused(Status::Exists));
    };
    let own = Lease::of(owner, 0);
    let is_ours = |lease: &Lease| lease.log == own.log;
    let renewed = async || write(store, owner, &file, 0).await.map_err(LeaseError::Unwritten);
    // The log's own lock says that nobody on this host has it.
    if matches!(&first, Says::Lease(lease) if is_ours(lease) && lease.boot == own.boot) {
        return renewed().await;
    }
    clock.sleep(WATCHED_FOR).await;
    let last = read(store, owner, &store.root()).await?;
    match (first, last) {
        (Says::Nothing, Some(Found { file, changed, says: Says::Nothing })) => {
            // Of several who see that, one has it.
            let taken = store.set_attr(&owner.caller, &file, MODE, Some(changed)).await.result;
            taken.map_err(LeaseError::Refused)?;
            fill(store, owner, &file, 0).await
        }
        (first, Some(Found { says: Says::Lease(last), .. })) => {
            match first != Says::Lease(last.clone()) {
                false if is_ours(&last) => renewed().await,
                is_renewed => Err(last.of_another(is_renewed)),
            }
        }
        (Says::Lease(first), _) => Err(first.of_another(false)),
        _ => Err(LeaseError::Foreign),
    }
}

/// When the lease, which is this owner's still, was written just now; or whose else it is.
async fn renew<S: Store>(store: &S, owner: &Owner, renewed: u64) -> Result<Time, Option<String>> {
    match read(store, owner, &store.root()).await {
        Ok(Some(Found { file, says: Says::Lease(lease), .. })) => {
            let own = Lease::of(owner, 0);
            if (&lease.log, lease.process, &lease.boot) != (&own.log, own.process, &own.boot) {
                return Err(Some(lease.holder()));
            }
            write(store, owner, &file, renewed).await.map_err(|_| None)
        }
        Ok(Some(_)) => Err(Some("somebody".to_owned())),
        // Somebody has removed it.
        Ok(None) => make(store, owner, renewed).await.map_err(|_| None),
        Err(_) => Err(None),
    }
}

impl<S: Store> Inner<S> {
    /// Renews the lease as long as this lives.
    pub(super) async fn keep_lease(self: std::sync::Arc<Self>, owner: Owner) {
        let mut renewed = 1;
        loop {
            self.clock.sleep(RENEWED_EVERY).await;
            let now = self.now();
            let outcome = match renew(&self.store, &owner, renewed).await {
                Ok(written) => {
                    self.state.lock().signs.set_clock(now, written);
                    upper::renewed(&self.store, &owner).await
                }
                Err(lost) => Err(lost),
            };
            renewed += 1;
            let was = {
                let mut state = self.state.lock();
                if state.is_over {
                    return;
                }
                let is_fenced = match &outcome {
                    Ok(()) => false,
                    Err(Some(_)) => true,
                    // Whose it is now is not known.
                    Err(None) => state.is_fenced,
                };
                std::mem::replace(&mut state.is_fenced, is_fenced)
            };
            match outcome {
                Err(Some(by)) if !was => drop((self.options.hear)(&Event::Fenced { by })),
                Ok(()) if was => self.to_send.notify_one(),
                _ => {}
            }
        }
    }

    /// Nothing is on its way any more, and nothing will be: nobody holds the lease. Whether that is
    /// so.
    pub(super) async fn end_lease(&self) -> bool {
        let Some(owner) = &self.options.owner else { return true };
        {
            let mut state = self.state.lock();
            if !state.ops.is_empty() || state.is_fenced {
                return false;
            }
            state.is_over = true;
        }
        match read(&self.store, owner, &self.root).await {
            Ok(Some(Found { says: Says::Lease(lease), .. }))
                if lease.log == Hex(&owner.log).to_string() =>
            {
                self.store.remove(&owner.caller, &self.root, NAME).await.result.is_ok()
            }
            Ok(None) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use server::types::Caller;

    use super::*;

    fn owner() -> Owner {
        Owner {
            log: [0xab; 16],
            host: "a host\nprocess 7".to_owned(),
            process: 12,
            boot: [1; 16],
            caller: Caller { uid: 0, gid: 0, gids: Vec::new() },
        }
    }

    #[test]
    fn a_lease_says_whose_it_is_and_nothing_else_does() {
        let lease = Lease::of(&owner(), 5);
        let text = lease.text();
        assert_eq!(text.len(), BYTES);
        assert_eq!(Lease::parse(&text), Some(lease.clone()));
        assert_eq!((lease.host.as_str(), lease.process), ("a hostprocess 7", 12));
        for wrong in [&b""[..], b"hello\n", &text[..40], b"nfskit write-back lease 2\nlog a\n"] {
            assert_eq!(Lease::parse(wrong), None);
        }
        for at in 0..text.len() {
            let _ = Lease::parse(&text[..at]);
        }
    }
}
