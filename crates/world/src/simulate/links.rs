//! How busy the clients' links were between two moments.

use net::clock::Clock;
use net::shape::profile::Profile;
use net::shape::{Counts, Side};
use perf::model::loggp::Link;
use perf::units::Nanos;
use tokio::sync::oneshot;

use crate::client::Client;

/// Of the clients behind links of one name, those that are busiest in either direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    pub name: String,
    /// To the server, and back; of 1.
    pub there: f64,
    pub back: f64,
}

/// Reads what links have carried at two moments.
#[derive(Debug)]
pub(super) struct Links {
    outcome: oneshot::Receiver<Vec<LinkOutcome>>,
}

impl Links {
    /// From `after` from now on, for `span`.
    pub(super) fn start(clock: &Clock, clients: &[Client], after: Nanos, span: Nanos) -> Self {
        let (done, outcome) = oneshot::channel();
        let (own, clients) = (clock.clone(), clients.to_vec());
        clock.spawn(async move {
            own.sleep(after).await;
            let begin: Vec<[Counts; 2]> = clients.iter().map(carried).collect();
            own.sleep(span).await;
            let all = clients.iter().zip(&begin).map(|(client, begin)| load(client, begin, span));
            done.send(busiest(all)).ok();
        });
        Self { outcome }
    }

    pub(super) async fn read(self) -> Option<Vec<LinkOutcome>> {
        self.outcome.await.ok()
    }
}

fn carried(client: &Client) -> [Counts; 2] {
    [Side::There, Side::Back].map(|side| client.shape().counts(side))
}

fn load(client: &Client, begin: &[Counts; 2], span: Nanos) -> LinkOutcome {
    let Profile { name, there, back, .. } = client.shape().profile();
    let [own_there, own_back] = carried(client);
    let share = |link: &Link, now: Counts, before: &Counts| {
        let (bytes, messages) = (now.bytes - before.bytes, now.messages - before.messages);
        let us = bytes as f64 * link.gap_per_byte_ps as f64 / 1e6
            + messages as f64 * link.gap.as_micros_f64();
        // What begins in the time counts as a whole, also the message that ends after it.
        (us / span.as_micros_f64()).min(1.0)
    };
    LinkOutcome {
        name,
        there: share(&there.link, own_there, &begin[0]),
        back: share(&back.link, own_back, &begin[1]),
    }
}

/// One of each name, in the order in which they come.
pub(super) fn busiest(all: impl IntoIterator<Item = LinkOutcome>) -> Vec<LinkOutcome> {
    let mut kinds: Vec<LinkOutcome> = Vec::new();
    for link in all {
        match kinds.iter_mut().find(|kind| kind.name == link.name) {
            Some(kind) => {
                kind.there = kind.there.max(link.there);
                kind.back = kind.back.max(link.back);
            }
            None => kinds.push(link),
        }
    }
    kinds
}
