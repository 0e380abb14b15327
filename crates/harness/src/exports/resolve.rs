//! From what users say to what the server exports: host names become addresses, directories
//! stores, and tables of one name one export.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use net::clock::Clock;
use net::transport::tcp;
use perf::units::Nanos;
use server::types::Caller;
use server::{Clients, Export, Exported, Exports, Network, Rule, Squash};

use super::{Client, RuleSpec, Spec};
use crate::unservable::Unservable;

/// How long a host name may take.
const RESOLVE_LIMIT: Nanos = Nanos::from_secs(5);

/// The stores that are open, by directory: a reload goes on with those that stay.
#[derive(Debug)]
pub struct Stores<S>(HashMap<PathBuf, Arc<S>>);

impl<S> Default for Stores<S> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// As whom callers act where their own ids cannot be had.
pub type Squasher<'s, S> = &'s (dyn Fn(&S) -> Option<Caller> + Sync);

impl<S> Stores<S> {
    /// What the specifications say, with stores opened by `open` where there is none yet; stores
    /// that are named no more, or whose path leads elsewhere by now, are let go. `leads_into` says
    /// whether clients of the one store reach the other, `acts_as` for a store as whom all callers
    /// act, if not as themselves.
    ///
    /// # Errors
    /// A name that the resolver does not know, a directory that cannot be opened, two exports
    /// that cannot be distinguished, or one inside another with other rules. The stores stay as
    /// they were.
    pub async fn exports(
        &mut self,
        clock: &Clock,
        specs: &[Spec],
        open: impl Fn(&Path) -> Result<S, Unservable>,
        is_at: impl Fn(&S, &Path) -> bool,
        leads_into: impl Fn(&S, &S) -> bool,
        acts_as: Squasher<'_, S>,
    ) -> Result<Exports<S>, Unservable> {
        let mut exported: Vec<Exported<S>> = Vec::new();
        let mut paths: HashMap<String, PathBuf> = HashMap::new();
        let mut stores = HashMap::new();
        // Before anything is opened: a directory that has been is its write log's from then on.
        let mut named = Vec::new();
        for spec in specs {
            named.push(clients(clock, &spec.rule.clients).await?);
        }
        for (spec, clients) in specs.iter().zip(named) {
            let path = std::fs::canonicalize(&spec.path)
                .map_err(|cause| Unservable::Path { dir: spec.path.clone(), cause })?;
            match paths.get(&spec.name) {
                Some(other) if *other != path => {
                    let (name, other, path) = (&spec.name, other.display(), path.display());
                    return Err(format!("{name} is the name of {other} and of {path}").into());
                }
                _ => drop(paths.insert(spec.name.clone(), path.clone())),
            }
            let open_already = stores.get(&path).or_else(|| self.0.get(&path));
            let store = match open_already.filter(|store| is_at(store, &path)) {
                Some(store) => Arc::clone(store),
                None => Arc::new(open(&spec.path)?),
            };
            let rule = rule_for(clients, &spec.rule, acts_as(&store));
            stores.insert(path, Arc::clone(&store));
            match exported.iter_mut().find(|known| known.export.name == spec.name) {
                Some(known) => known.export.rules.push(rule),
                None => {
                    let id = spec.id.unwrap_or_else(|| Export::id_of(&spec.name));
                    let export = Export { name: spec.name.clone(), id, rules: vec![rule] };
                    exported.push(Exported { export, store });
                }
            }
        }
        if let Some((inner, outer)) = contradiction(&exported, leads_into) {
            return Err(Unservable::Exports(format!(
                "the export {inner} lies in the export {outer}, whose rules differ: clients would \
                 reach it by either. Give both the same rules, or make its directory a mount \
                 point (mount --bind DIR DIR), which no other export leads into"
            )));
        }
        let exports = Exports::new(exported).map_err(|error| error.to_string())?;
        self.0 = stores;
        Ok(exports)
    }
}

/// The names of an export and of another around it, if what clients may do in the inner one depends
/// on the way by which they come. A handle does not show it: a file knows no directory.
fn contradiction<S>(
    exported: &[Exported<S>],
    leads_into: impl Fn(&S, &S) -> bool,
) -> Option<(&str, &str)> {
    let pairs = exported.iter().flat_map(|outer| exported.iter().map(move |inner| (inner, outer)));
    let differ = pairs.filter(|(inner, outer)| inner.export.rules != outer.export.rules);
    let mut nested = differ.filter(|(inner, outer)| leads_into(&outer.store, &inner.store));
    nested.next().map(|(inner, outer)| (&*inner.export.name, &*outer.export.name))
}

/// A rule, with all callers squashed to `everyone` where they cannot act as themselves.
pub async fn rule(
    clock: &Clock,
    spec: &RuleSpec,
    everyone: Option<Caller>,
) -> Result<Rule, String> {
    Ok(rule_for(clients(clock, &spec.clients).await?, spec, everyone))
}

fn rule_for(clients: Clients, spec: &RuleSpec, everyone: Option<Caller>) -> Rule {
    let anonymous = Caller { uid: spec.anonymous_uid, gid: spec.anonymous_gid, gids: Vec::new() };
    let (squash, anonymous) = match everyone {
        Some(everyone) => (Squash::All, everyone),
        None => (spec.squash, anonymous),
    };
    Rule {
        clients,
        read_only: spec.read_only,
        squash,
        anonymous: Arc::new(anonymous),
        anonymous_allowed: true,
        privileged_port: spec.secure,
    }
}

async fn clients(clock: &Clock, clients: &[Client]) -> Result<Clients, String> {
    if clients.is_empty() {
        return Ok(Clients::Everyone);
    }
    let mut networks = Vec::new();
    for client in clients {
        match client {
            Client::Network(network) => networks.push(*network),
            Client::Host(host) => {
                let addresses = tcp::resolve(clock, host, 0, RESOLVE_LIMIT).await;
                let addresses = addresses.map_err(|error| format!("of a client: {error}"))?;
                networks.extend(addresses.into_iter().map(|address| Network::host(address.ip())));
            }
        }
    }
    // The resolver may name the addresses of a host in any order.
    networks.sort_unstable();
    networks.dedup();
    Ok(Clients::Of(networks))
}
