//! Flows: a client and a server that speak over one pair of ports, however often they connect.
//!
//! At most [`FLOWS_MAX`] are distinguished; what comes on top is one flow more, of all others.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::ids::{FileId, FlowId};
use super::late::due_ns;
use super::operation::Operation;
use super::outstanding::{Generation, Load, Outstanding};
use super::pace::{Pace, Reply};
use super::pair::{Hosts, Pair};
use super::rtt::Rtt;
use super::service::{Service, Waits};
use super::spread::Spread;
use super::stream::StreamCounts;
use super::transaction::Transaction;
use super::work::Work;
use crate::capture::End;

/// Flows that are distinguished.
pub const FLOWS_MAX: usize = 4096;
/// Transaction numbers that a flow remembers after their reply.
const REMEMBERED: usize = 128;

/// Who speaks with whom.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ends {
    pub client: End,
    pub server: End,
    pub is_tcp: bool,
}

#[derive(Debug, Default)]
pub struct Flows {
    by_ends: HashMap<Ends, FlowId, RandomState>,
    flows: Vec<Flow>,
    by_hosts: HashMap<Hosts, usize, RandomState>,
    /// What hosts have in common in all of their flows, one after the other or at once; with the
    /// server's place.
    pairs: Vec<(Pair, usize)>,
    by_server: HashMap<End, usize, RandomState>,
    services: Vec<Service>,
    /// Calls outstanding that the filter selects.
    pub(super) selected: u32,
}

/// One client and one server.
#[derive(Debug)]
pub struct Flow {
    /// None for all that found no place of their own.
    pub ends: Option<Ends>,
    pub tallies: Tallies,
    pub pace: Pace,
    /// Its place among the pairs.
    hosts: usize,
    pub streams: StreamCounts,
    /// From the first to the last byte of each message of the client, and of the server.
    pub(super) stretch_ns: [u64; 2],
    pub first_ns: u64,
    pub last_ns: u64,
    /// Calls that were retransmitted.
    pub retransmissions: u64,
    /// Replies to calls that were answered already.
    pub duplicate_replies: u64,
    /// Replies to calls that were not seen.
    pub unsolicited_replies: u64,
    /// Calls that a relay passed on, and that count where its client made them.
    pub passed_on: u64,
    /// Where their client made them.
    pub passed_from: Option<FlowId>,
    pub unanswered: u64,
    /// Connections that went over to TLS (RFC 9289).
    pub tls: u64,
    outstanding: Outstanding,
    answered: Box<[Remembered; REMEMBERED]>,
}

type Remembered = Option<(u32, bool)>;

/// Counts for each operation that occurred.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    indices: Vec<u16>,
    tallies: Vec<Tally>,
}

/// What is counted of an operation.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub errors: u64,
    /// Read or written.
    pub bytes: u64,
    pub retransmissions: u64,
    /// Replies whose times are not known.
    pub untimed: u64,
    /// Of the others.
    pub latency: Spread,
}

impl Flows {
    pub(super) fn of(&mut self, ends: Ends) -> FlowId {
        if let Some(&id) = self.by_ends.get(&ends) {
            return id;
        }
        let index = self.flows.len();
        let ends = (index < FLOWS_MAX).then_some(ends);
        if ends.is_none() && index > FLOWS_MAX {
            return FlowId(u32::try_from(FLOWS_MAX).unwrap_or(0));
        }
        let id = FlowId(u32::try_from(index).unwrap_or(0));
        if let Some(ends) = ends {
            self.by_ends.insert(ends, id);
        }
        let hosts = self.hosts(ends);
        self.flows.push(Flow {
            ends,
            tallies: Tallies::default(),
            pace: Pace::default(),
            hosts,
            streams: StreamCounts::default(),
            stretch_ns: [0; 2],
            first_ns: 0,
            last_ns: 0,
            retransmissions: 0,
            duplicate_replies: 0,
            unsolicited_replies: 0,
            passed_on: 0,
            passed_from: None,
            unanswered: 0,
            tls: 0,
            outstanding: Outstanding::default(),
            answered: Box::new([None; REMEMBERED]),
        });
        id
    }

    fn hosts(&mut self, ends: Option<Ends>) -> usize {
        let hosts = ends.map(|ends| Hosts::new(ends.client, ends.server));
        let next = self.pairs.len();
        let place = match hosts {
            Some(hosts) => *self.by_hosts.entry(hosts).or_insert(next),
            None => next,
        };
        if place == next {
            let service = self.service(hosts.map(|hosts| hosts.server));
            self.pairs.push((Pair { hosts, ..Pair::default() }, service));
        }
        place
    }

    /// The place of a server. There are no more than pairs.
    fn service(&mut self, server: Option<End>) -> usize {
        let next = self.services.len();
        let place = match server {
            Some(server) => *self.by_server.entry(server).or_insert(next),
            None => next,
        };
        if place == next {
            self.services.push(Service::new(server));
        }
        place
    }

    /// The round trip between a flow's hosts, by all of their flows.
    pub fn round_trip(&self, id: FlowId) -> Option<&Rtt> {
        self.pair(id).map(|pair| &pair.rtt)
    }

    pub(super) fn round_trip_mut(&mut self, id: FlowId) -> Option<&mut Rtt> {
        self.pair_mut(id).map(|pair| &mut pair.rtt)
    }

    /// A flow's hosts, with all of their flows.
    pub fn pair(&self, id: FlowId) -> Option<&Pair> {
        self.pairs.get(self.get(id)?.hosts).map(|(pair, _)| pair)
    }

    pub(super) fn pair_mut(&mut self, id: FlowId) -> Option<&mut Pair> {
        let hosts = self.get(id)?.hosts;
        self.pairs.get_mut(hosts).map(|(pair, _)| pair)
    }

    /// All pairs of hosts, each with its server.
    pub fn pairs(&self) -> impl Iterator<Item = (&Pair, &Service)> {
        self.pairs.iter().filter_map(|(pair, place)| Some((pair, self.services.get(*place)?)))
    }

    pub(super) fn pairs_mut(&mut self) -> impl Iterator<Item = &mut Pair> {
        self.pairs.iter_mut().map(|(pair, _)| pair)
    }

    /// Servers that were called.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(|service| service.pace.waited.all() > 0)
    }

    /// The round trips of all hosts, with a name for people.
    pub fn round_trips(&self) -> impl Iterator<Item = (String, &Rtt)> {
        self.pairs.iter().map(|(pair, _)| {
            let name = match pair.hosts {
                Some(hosts) => format!("{} -> {}", hosts.client(), hosts.server),
                None => "other connections".to_owned(),
            };
            (name, &pair.rtt)
        })
    }

    /// Changes a flow, its pair and its server.
    fn change<T>(
        &mut self,
        id: FlowId,
        change: impl FnOnce(&mut Flow, &mut Pair, &mut Service) -> T,
    ) -> Option<T> {
        let flow = self.flows.get_mut(id.0 as usize)?;
        let (pair, service) = self.pairs.get_mut(flow.hosts)?;
        Some(change(flow, pair, self.services.get_mut(*service)?))
    }

    /// A call for a file was made, with its last byte and its first at these moments; how many are
    /// outstanding on its connection, how it counts among them, and when it is late.
    pub(super) fn called(
        &mut self,
        id: FlowId,
        (now, first): (u64, u64),
        (work, file): (Work, FileId),
        load: Load,
    ) -> Option<(u32, Generation, u64)> {
        self.selected += load.selected;
        self.change(id, |flow, pair, service| {
            let due_ns = due_ns(now, pair.worked(work).latency.mean());
            pair.postponed.called(file, now);
            let until_ns = pair.postponed.until_ns();
            paced(flow, pair, service, now, |pace| {
                pace.called((now, first), work, load, due_ns);
                pace.postponed(until_ns);
            });
            (flow.pace.outstanding(), flow.outstanding.called(load), due_ns)
        })
    }

    /// A reply came to a call that counted so, if it still counts.
    pub(super) fn replied(&mut self, id: FlowId, reply: Reply, of: Option<Generation>) {
        let Reply { now, load, due_ns, .. } = reply;
        let over = self.change(id, |flow, pair, service| {
            let counts = of.is_some_and(|of| flow.outstanding.over(of, load));
            if !counts {
                paced(flow, pair, service, now, |pace| pace.recalled(now, load, due_ns));
            }
            flow.pace.replied(reply);
            let before = Waits::of(&pair.pace);
            pair.pace.replied(reply);
            service.replied(reply, (before, Waits::of(&pair.pace)));
            if reply.is_later {
                pair.postponed.put_off(reply.file, now);
            }
            let until_ns = pair.postponed.until_ns();
            paced(flow, pair, service, now, |pace| pace.postponed(until_ns));
            let mut over = of.map(|of| flow.outstanding.answered(of)).unwrap_or_default();
            gone(flow, pair, service, now, over);
            over.add(if counts { load } else { Load::default() });
            over
        });
        self.over(over);
    }

    fn over(&mut self, load: Option<Load>) {
        let selected = load.unwrap_or_default().selected;
        self.selected = self.selected.saturating_sub(selected);
    }

    /// A call that counted so will not be answered any more.
    pub(super) fn expired(&mut self, id: FlowId, now: u64, load: Load, of: Generation) {
        let over = self.change(id, |flow, pair, service| {
            let counts = flow.outstanding.over(of, load);
            let over = if counts { load } else { Load::default() };
            gone(flow, pair, service, now, over);
            over
        });
        self.over(over);
    }

    /// A call that counted so was retransmitted: it is outstanding, and was since it was made. How
    /// it counts now.
    pub(super) fn repeated(
        &mut self,
        id: FlowId,
        (now, due_ns): (u64, u64),
        load: Load,
        of: Option<Generation>,
    ) -> Option<Generation> {
        let (counted, of) = self.change(id, |flow, pair, service| {
            let counted = of.is_some_and(|of| flow.outstanding.over(of, load));
            if !counted {
                paced(flow, pair, service, now, |pace| pace.recalled(now, load, due_ns));
            }
            (counted, flow.outstanding.called(load))
        })?;
        self.selected += if counted { 0 } else { load.selected };
        Some(of)
    }

    /// Whether a call that counted so counts as outstanding.
    pub(super) fn counts(&self, id: FlowId, of: Option<Generation>) -> bool {
        let flow = self.get(id);
        of.is_some_and(|of| flow.is_some_and(|flow| flow.outstanding.counts(of)))
    }

    /// Whether two flows are of the same client with the same server.
    pub(super) fn are_of_one_pair(&self, one: FlowId, other: FlowId) -> bool {
        let hosts = |id| self.get(id).map(|flow| flow.hosts);
        hosts(one) == hosts(other)
    }

    /// The connection of a flow is over, or begins.
    pub(super) fn ended(&mut self, id: FlowId, now: u64) {
        let over = self.change(id, |flow, pair, service| {
            let over = flow.outstanding.ended();
            gone(flow, pair, service, now, over);
            over
        });
        self.over(over);
    }

    /// The capture lost messages of a flow, of its server or of its client.
    pub(super) fn missed(&mut self, id: FlowId, now: u64, is_of_server: bool) {
        self.happened(id, Pace::missed);
        if !is_of_server {
            return;
        }
        let over = self.change(id, |flow, pair, service| {
            let over = flow.outstanding.doubted();
            gone(flow, pair, service, now, over);
            over
        });
        self.over(over);
    }

    /// Tells the paces of a flow, its hosts and its server of something that happened.
    pub(super) fn happened(&mut self, id: FlowId, tell: impl Fn(&mut Pace)) {
        self.change(id, |flow, pair, service| {
            [&mut flow.pace, &mut pair.pace, &mut service.pace].into_iter().for_each(&tell);
        });
    }

    /// The capture ends, with this packet.
    pub(super) fn end(&mut self, now: u64, frame: u64) {
        let flows = self.flows.iter_mut().map(|flow| &mut flow.pace);
        let pairs = self.pairs.iter_mut().map(|(pair, _)| &mut pair.pace);
        let services = self.services.iter_mut().map(|service| &mut service.pace);
        flows.chain(pairs).chain(services).for_each(|pace| pace.ended(now, frame));
    }

    /// Counts how long both messages of a transaction took to pass; the sums of its flow.
    pub(super) fn stretched(&mut self, id: FlowId, transaction: &Transaction) -> [u64; 2] {
        let Some(flow) = self.get_mut(id) else { return [0; 2] };
        let both = flow.stretch_ns.iter_mut().zip(transaction.stretches());
        both.for_each(|(sum, ns)| *sum += ns);
        flow.stretch_ns
    }

    pub fn get(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.flows.get_mut(id.0 as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        let ids = (0_u32..).map(FlowId);
        ids.zip(&self.flows)
    }

    /// Those of which a filter let a call through.
    pub fn admitted(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        self.iter().filter(|(_, flow)| flow.first_ns > 0)
    }

    /// A name for people: `10.0.0.1:900 -> 10.0.0.2:2049`.
    pub fn name(&self, id: FlowId) -> String {
        match self.get(id).and_then(|flow| flow.ends) {
            Some(Ends { client, server, is_tcp }) => {
                let udp = if is_tcp { "" } else { " (UDP)" };
                format!("{client} -> {server}{udp}")
            }
            None => "other connections".to_owned(),
        }
    }
}

/// Changes the paces of a flow, its pair and its server.
fn paced(
    flow: &mut Flow,
    pair: &mut Pair,
    service: &mut Service,
    now: u64,
    change: impl Fn(&mut Pace),
) {
    change(&mut flow.pace);
    let before = Waits::of(&pair.pace);
    change(&mut pair.pace);
    service.changed(now, (before, Waits::of(&pair.pace)), change);
}

/// Calls count no longer.
fn gone(flow: &mut Flow, pair: &mut Pair, service: &mut Service, now: u64, load: Load) {
    if load.calls > 0 {
        paced(flow, pair, service, now, |pace| pace.expired(now, load));
    }
}

impl Flow {
    /// Remembers that a call was answered.
    pub(super) fn remember(&mut self, xid: u32, from_server: bool) {
        self.answered[place(xid)] = Some((xid, from_server));
    }

    /// Its client has all replies, and connects again.
    pub(super) fn forget_answered(&mut self) {
        self.answered.fill(None);
    }

    /// Whether a call was answered a short while ago.
    pub(super) fn was_answered(&self, xid: u32, from_server: bool) -> bool {
        self.answered[place(xid)] == Some((xid, from_server))
    }
}

/// Numbers count upwards, in either order of bytes.
fn place(xid: u32) -> usize {
    ((xid ^ xid.swap_bytes()) as usize) % REMEMBERED
}

impl Tallies {
    /// The tally of an operation.
    pub(super) fn of(&mut self, operation: Operation) -> &mut Tally {
        let index = u16::try_from(operation.index()).unwrap_or(u16::MAX);
        let at = match self.indices.iter().position(|known| *known == index) {
            Some(at) => at,
            None => {
                self.indices.push(index);
                self.tallies.push(Tally::default());
                self.tallies.len() - 1
            }
        };
        &mut self.tallies[at]
    }

    pub fn merge(&mut self, other: &Self) {
        for (operation, tally) in other.iter() {
            self.of(operation).merge(tally);
        }
    }

    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &Tally)> {
        let operations = self.indices.iter().filter_map(|index| Operation::at((*index).into()));
        operations.zip(&self.tallies)
    }

    /// All operations together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.tallies.iter().for_each(|tally| total.merge(tally));
        total
    }
}

impl Tally {
    pub(super) fn count(&mut self, transaction: &Transaction) {
        self.errors += u64::from(transaction.is_error());
        self.bytes += u64::from(transaction.bytes);
        self.retransmissions += u64::from(transaction.retransmissions);
        match transaction.latency() {
            Some(latency) => self.latency.record(latency.as_nanos()),
            None => self.untimed += 1,
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.retransmissions += other.retransmissions;
        self.untimed += other.untimed;
        self.latency.merge(&other.latency);
    }

    /// Calls that got their reply.
    pub const fn calls(&self) -> u64 {
        self.latency.count() + self.untimed
    }
}
