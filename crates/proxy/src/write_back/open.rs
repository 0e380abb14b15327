//! A proxy with a log begins: the lease, and what the log held.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::StreamExt;
use futures_util::stream;
use log::{Journal, Limits};
use net::clock::Clock;
use parking_lot::Mutex;
use server::store::Store;
use server::types::{Attr, Before, Caller, FileKind, Handle, Status, Time};
use tokio::sync::Notify;

use super::aliases::{self, Aliases, is_ours};
use super::away::ANYBODY;
use super::done::Done;
use super::killed::Signs;
use super::lease::{self, LeaseError};
use super::medium::Log;
use super::naming::made_attr;
use super::nodes::Node;
use super::record::{Change, DATA_BYTES_MAX};
use super::recover::{Held, HeldEntry};
use super::state::State;
use super::state::room::CUTS_MAX;
use super::touches::{has_base_of, involved};
use super::{Inner, Mistake, Options, WriteBack, time_of};

/// Bytes of the log for each change that may be on its way: the record that it has come takes a
/// block of the quarter that is reserved for those, at worst.
const BYTES_EACH: u64 = 16 << 10;

/// Calls outstanding at a time.
pub(super) const CALLS_AT_A_TIME: usize = 64;

/// Why a proxy with a log cannot begin.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error("write-back: the lease of the origin's export: {0}")]
    Lease(#[from] LeaseError),
    #[error("write-back: the origin does not tell of a file that the log has changes of: {0:?}")]
    Origin(Status),
}

impl<S: Store> WriteBack<S> {
    /// Takes the origin's export, shows what the log held, and goes on bringing it there.
    ///
    /// # Errors
    /// [`OpenError`]: the export is another's, or the origin does not answer.
    pub async fn open(
        clock: &Clock,
        store: S,
        aliases: Arc<Aliases>,
        log: Log,
        options: Options,
    ) -> Result<Self, OpenError> {
        // Worlds have one clock.
        let mut there = time_of(clock);
        if let Some(owner) = &options.owner {
            match lease::take(&store, clock, owner).await {
                Ok(written) => there = written,
                Err(error) => {
                    if !error.may_be_there() {
                        log.discard();
                    }
                    return Err(error.into());
                }
            }
        }
        let signs = Signs::new((clock.now(), there), options.late_max);
        let Log { set, boot, held, device, .. } = log;
        let records_max = set.all_bytes() / BYTES_EACH;
        let records_max = usize::try_from(records_max).unwrap_or(usize::MAX);
        let limits = Limits {
            files_max: records_max + CUTS_MAX,
            records_max: records_max + CUTS_MAX,
            data_bytes_max: DATA_BYTES_MAX + HEAD_BYTES_MAX,
            ..Limits::default()
        };
        let journal = Journal::new(&set, boot, Some(&held.found), limits);
        let mut state = State::new(journal, set.id, records_max, clock.since_1970());
        (state.lives, state.signs) = (held.lives.clone(), signs);
        state.order.ignores = options.mistake == Some(Mistake::AnyOrder);
        let (root, verifier) = (store.root(), aliases::verifier(&set.id));
        let mark = aliases::mark(&set.id);
        let root_fileid = store.attr(&ANYBODY, &root).await.map_err(OpenError::Origin)?.fileid;
        let inner = Arc::new(Inner {
            store,
            root,
            root_fileid,
            clock: clock.clone(),
            verifier,
            mark,
            aliases,
            state: Mutex::new(state),
            device,
            callers: Mutex::new(HashMap::new()),
            dirs_keep_set_gid: AtomicBool::new(false),
            lengths: Mutex::default(),
            changed: Notify::new(),
            to_write: Notify::new(),
            to_send: Notify::new(),
            to_forget: Notify::new(),
            hurried: Notify::new(),
            left: Notify::new(),
            options,
        });
        inner.carry_on(held).await?;
        clock.spawn(Arc::clone(&inner).write_frames());
        clock.spawn(Arc::clone(&inner).send());
        clock.spawn(Arc::clone(&inner).forget());
        clock.spawn(Arc::clone(&inner).await_return());
        if let Some(owner) = inner.options.owner.clone() {
            clock.spawn(Arc::clone(&inner).keep_lease(owner));
        }
        Ok(Self { inner })
    }
}

/// What a record has beside its data, at most.
const HEAD_BYTES_MAX: usize = 8 << 10;

impl<S: Store> Inner<S> {
    /// What the log held is on its way again.
    async fn carry_on(&self, held: Held) -> Result<(), OpenError> {
        if held.changes() > 0 {
            // Calls of the proxy that had this log may be with the origin. What is found there is
            // not certain before they are executed, and what is sent would be done before them.
            self.clock.sleep(self.options.late_max).await;
        }
        let done = self.done_of(&held.entries).await;
        let known = self.known_of(&held.entries, &done).await?;
        let (now, time) = (self.now(), self.time());
        let mut state = self.state.lock();
        for (id, (origin, attr)) in known {
            let fileid = self.aliases.fileid_of(&id, attr.fileid);
            let shown = Attr { fileid, ..attr };
            // What it is now may be the doing of a change that is in doubt. Calls that were passed
            // through have changed it between what changes have left and what the next has found.
            let of_file = |held: &&HeldEntry| has_base_of(&held.entry.change) == Some(id);
            let found = held.entries.values().filter(of_file).filter_map(|held| held.entry.base);
            let known = found.chain(held.left.get(&id).copied());
            let base = known.max_by_key(|base| base.changed);
            let base = base.unwrap_or_else(|| Before::from(&attr));
            let mut node = Node::met(shown, origin, base, now);
            node.is_unsure = done.is_unsure(&id);
            state.nodes.insert(id, node);
        }
        for (number, found) in held.entries {
            let entry = &found.entry;
            if let Change::Make { dir, name, what, set } = &entry.change {
                let (id, fileid) = state.identity(number);
                let above = state.nodes.find(dir);
                let modes = above.map(|above| Arc::clone(&above.modes)).unwrap_or_default();
                let parent = above.map_or_else(unknown, |node| node.attr);
                let attr = made_attr(&entry.caller, &parent, what, set, fileid, entry.at);
                let mut node = Node::made(attr, (*dir, name.clone()), what, now);
                node.origin = self.aliases.find(&id).map(|alias| alias.origin);
                node.base = held.left.get(&id).copied();
                node.is_unsure = node.origin.is_some();
                node.modes = modes;
                if let Some(names) = &mut node.names {
                    // Calls that were passed through may have made others there.
                    names.is_complete = node.origin.is_none();
                }
                state.nodes.insert(id, node);
            }
            state.carry_on(number, found, done.has(number), (now, time));
        }
        state.signs.begin(now);
        Ok(())
    }

    /// The origin's files that changes are of, as they are now.
    async fn known_of(
        &self,
        entries: &BTreeMap<u64, HeldEntry>,
        done: &Done,
    ) -> Result<Vec<(Handle, (Handle, Attr))>, OpenError> {
        let (mut seen, mut calls) = (HashSet::new(), Vec::new());
        for (number, HeldEntry { entry, .. }) in entries {
            if matches!(entry.change, Change::Make { .. }) {
                // It need not be there.
                seen.insert(self.state.lock().identity(*number).0);
            }
            for id in involved(&entry.change) {
                if !seen.insert(id) {
                    continue;
                }
                let alias = || self.aliases.find(&id).map(|alias| alias.origin);
                let origin = if is_ours(&id) { alias() } else { Some(id) };
                calls.extend(origin.map(|origin| (id, origin, entry.caller.clone())));
            }
        }
        let answers = stream::iter(calls).map(|(id, origin, caller)| async move {
            let attr = match done.found(&id) {
                Some(attr) => Ok(attr),
                None => self.store.attr(&caller, &origin).await,
            };
            match attr {
                Ok(attr) => Ok((id, (origin, attr))),
                // Somebody has removed it; what was written is not lost with it.
                Err(Status::Stale | Status::BadHandle) => {
                    let links = u32::from(!done.has_lost(&id));
                    Ok((id, (origin, Attr { links, ..gone(&caller) })))
                }
                Err(status) => Err(OpenError::Origin(status)),
            }
        });
        let answers: Vec<_> = answers.buffer_unordered(CALLS_AT_A_TIME).collect().await;
        answers.into_iter().collect()
    }
}

/// What a log is for, in as many bytes as its first block has for that: which origin it is.
pub fn owner_name(origin: &str) -> Vec<u8> {
    const TEXT_BYTES_MAX: usize = 100;
    let hash = siphasher::sip128::SipHasher24::new_with_key(&[0; 16]).hash(origin.as_bytes());
    let text = &origin.as_bytes()[..origin.len().min(TEXT_BYTES_MAX)];
    [&hash.as_bytes()[..], text].concat()
}

/// The origin that a log is for, as far as it has room for that.
pub fn owner_text(owner: &[u8]) -> String {
    String::from_utf8_lossy(owner.get(16..).unwrap_or_default()).into_owned()
}

/// A directory of which nothing is known.
fn unknown() -> Attr {
    let nobody = Caller { uid: 0, gid: 0, gids: Vec::new() };
    Attr { kind: FileKind::Directory, links: 2, ..gone(&nobody) }
}

/// A file that somebody has removed at the origin while the proxy was away.
fn gone(caller: &Caller) -> Attr {
    let time = Time::default();
    Attr {
        kind: FileKind::Regular,
        mode: 0o600,
        links: 1,
        uid: caller.uid,
        gid: caller.gid,
        size: 0,
        used: 0,
        device: (0, 0),
        fsid: 0,
        fileid: 0,
        accessed: time,
        modified: time,
        changed: time,
        made: None,
    }
}
