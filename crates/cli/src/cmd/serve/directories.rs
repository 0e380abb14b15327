//! The directories of a server, opened at its start and at each reload on a thread beside the one
//! that serves: a file system that does not answer keeps nobody from ending it.

use std::path::Path;
use std::sync::Arc;

use harness::apart::apart;
use harness::exit::Failure;
use harness::exports::Spec;
use harness::exports::resolve::Stores;
use harness::served;
use harness::state::State;
use harness::unservable::Unservable;
use net::clock::Clock;
use parking_lot::Mutex;
use server::Exports;
use server::store::dir::{DirOptions, DirStore};
use server::types::Caller;

use super::all_open_files_max;
use super::exported::{specs, specs_again};
use super::logged::log_in_export;
use super::persistent::state_in_export;
use crate::args::Serve;

/// See the module's head; clones share everything.
pub(super) struct Directories(Arc<Shared>);

struct Shared {
    args: Serve,
    clock: Clock,
    state: Option<State>,
    options: DirOptions,
    /// Guards the stores that are open, while others are opened.
    stores: Mutex<Stores<DirStore>>,
}

/// The directories that are to be served.
pub(super) async fn named(args: &Serve) -> Result<Vec<Spec>, Failure> {
    let args = args.clone();
    apart(move || specs(&args)).await?
}

impl Directories {
    pub(super) fn new(
        args: &Serve,
        clock: &Clock,
        state: Option<State>,
        options: DirOptions,
    ) -> Self {
        let (args, clock) = (args.clone(), clock.clone());
        Self(Arc::new(Shared { args, clock, state, options, stores: Mutex::default() }))
    }

    pub(super) async fn open(&self, specs: Vec<Spec>) -> Result<Exports<DirStore>, Failure> {
        let shared = Arc::clone(&self.0);
        Ok(apart(move || shared.open(&specs)).await??)
    }

    /// Opens what is to be served by now.
    ///
    /// # Errors
    /// What is served stays as it was.
    pub(super) async fn open_again(&self) -> Result<Exports<DirStore>, String> {
        let shared = Arc::clone(&self.0);
        let opened = apart(move || shared.open_again()).await;
        opened.map_err(|failure| failure.what().to_owned())?
    }
}

impl Shared {
    fn open(&self, specs: &[Spec]) -> Result<Exports<DirStore>, Unservable> {
        let options = shared_among(specs.len(), &self.options);
        let open = |path: &Path| served::open(path, &options);
        let (is_at, leads_into) = (DirStore::is_at, DirStore::leads_into);
        let mut stores = self.stores.lock();
        let opened = stores.exports(&self.clock, specs, open, is_at, leads_into, &acts_as);
        net::runtime::block_on(opened).map_err(|cause| cause.to_string())?
    }

    fn open_again(&self) -> Result<Exports<DirStore>, String> {
        let specs = specs_again(&self.args)?;
        self.keep_apart(&specs)?;
        self.open(&specs).map_err(|error| error.to_string())
    }

    /// What the server keeps for itself is never exported, whatever the exports have become.
    fn keep_apart(&self, specs: &[Spec]) -> Result<(), String> {
        let reached = |spec: &Spec| {
            let state = self.state.as_ref().and_then(|state| state_in_export(state, spec));
            state.or_else(|| log_in_export(&self.args, &spec.path))
        };
        specs.iter().find_map(reached).map_or(Ok(()), Err)
    }
}

/// What one of several stores may have, so that descriptors are left for connections, and threads
/// are not without number.
fn shared_among(stores: usize, options: &DirOptions) -> DirOptions {
    let stores = stores.max(1);
    DirOptions {
        open_files_max: Some((all_open_files_max() / stores).max(64)),
        sync_threads: (options.sync_threads / stores).max(2),
        read_threads: (options.read_threads / stores).max(1),
        list_threads: (options.list_threads / stores).max(1),
        ..options.clone()
    }
}

/// As whom all callers act, if they cannot act as themselves.
pub(super) fn acts_as(store: &DirStore) -> Option<Caller> {
    (!store.acts_as_callers()).then(served::this_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_divided_among_many_stores() {
        let all = DirOptions { list_threads: 63, ..DirOptions::default() };
        let threads = |stores| {
            let options = shared_among(stores, &all);
            (options.sync_threads, options.read_threads, options.list_threads)
        };
        assert_eq!(threads(1), (all.sync_threads, all.read_threads, 63));
        assert_eq!(threads(600), (2, 1, 1));
    }
}
