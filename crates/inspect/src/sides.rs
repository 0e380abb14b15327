//! Clients and servers, each with all of its connections together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use trace::{Analyzer, Flow, Tallies};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Clients,
    Servers,
}

impl Side {
    fn of(self, flow: &Flow) -> String {
        match (flow.ends, self) {
            (Some(ends), Self::Clients) => ends.client.ip().to_string(),
            (Some(ends), Self::Servers) => ends.server.to_string(),
            (None, _) => "others".to_owned(),
        }
    }
}

/// One client, or one server.
#[derive(Debug, Default)]
pub(super) struct One {
    /// The client's address; the server's with its port.
    pub(super) name: String,
    pub(super) connections: u64,
    pub(super) tallies: Tallies,
}

/// Those of a side, with the most calls first.
pub(super) fn sides(analyzer: &Analyzer, side: Side) -> Vec<One> {
    let mut sides: BTreeMap<String, One> = BTreeMap::new();
    for (_, flow) in analyzer.flows().admitted() {
        let one = sides.entry(side.of(flow)).or_default();
        one.tallies.merge(&flow.tallies);
        one.connections += 1;
    }
    let mut all: Vec<One> = sides.into_iter().map(|(name, one)| One { name, ..one }).collect();
    all.sort_by_cached_key(|one| Reverse(one.tallies.total().calls()));
    all
}
