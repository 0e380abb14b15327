//! A network in virtual time, segment by segment: a client that writes over TCP (NewReno, RFC 6582)
//! to a server that answers at once, and what a capture at either end of it sees.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::frames::{Rpc, ipv4, tcp};

const SEGMENT: usize = 1448;
/// 1 Gbit/s.
const NS_PER_BYTE: u64 = 8;
const TIMEOUT_NS: u64 = 200_000_000;
const SERVICE_NS: u64 = 50_000;
const CALL_BYTES: u32 = 32 << 10;

/// Where packets are captured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum At {
    Client,
    Server,
}

/// What the network does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) round_trip_ns: u64,
    /// One segment of so many is lost on its way to the server; 0 for none.
    pub(crate) lost_of: u64,
    /// One of so many is overtaken by the next.
    pub(crate) late_of: u64,
    pub(crate) calls: u32,
    pub(crate) outstanding: u32,
}

impl Default for Network {
    fn default() -> Self {
        Self { round_trip_ns: 4_000_000, lost_of: 0, late_of: 0, calls: 300, outstanding: 8 }
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Data {
        from: usize,
        to: usize,
    },
    Acknowledged {
        upto: usize,
    },
    Answer {
        xid: u32,
    },
    /// The server had that much when it sent it; the client has that much of the server's then.
    Reply {
        acknowledged: usize,
        replied: usize,
    },
    Timer {
        una: usize,
    },
}

/// When a packet leaves, and when it arrives.
type Span = (u64, Option<u64>);

#[derive(Default)]
struct Run {
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    turn: u64,
    packets: Vec<(u64, Vec<u8>)>,
    /// Everything the client says, where each call ends, and how many were made.
    stream: Vec<u8>,
    ends: Vec<usize>,
    made: u32,
    /// What is acknowledged, and what was sent once.
    una: usize,
    nxt: usize,
    window: f64,
    alike: u32,
    recover: usize,
    free_ns: u64,
    transmitted: u64,
    /// Packets that the client has sent, and the server.
    sent: [u16; 2],
    /// What the server has in order, and what came early.
    have: usize,
    early: BTreeMap<usize, usize>,
    answered: usize,
    replied: usize,
    /// What the client has of what the server sent.
    heard: usize,
}

impl Network {
    /// The packets of a capture.
    pub(crate) fn captured(self, at: At) -> Vec<(u64, Vec<u8>)> {
        let mut run = Run { window: 10.0, ..Run::default() };
        for _ in 0..self.outstanding {
            run.call();
        }
        run.send(self, at, 0);
        while let Some(Reverse((now, _, event))) = run.events.pop() {
            run.happens(self, at, now, event);
        }
        assert_eq!(run.answered, self.calls as usize, "all calls were answered");
        run.packets.sort_by_key(|(at, _)| *at);
        run.packets
    }

    fn one_way_ns(self) -> u64 {
        self.round_trip_ns / 2
    }
}

impl Run {
    fn call(&mut self) {
        self.made += 1;
        let mut call = Rpc::Write { xid: self.made, bytes: CALL_BYTES }.record();
        // Nothing in the data looks like a message.
        let data = call.len() - CALL_BYTES as usize;
        call[data..].fill(0xaa);
        self.stream.extend(call);
        self.ends.push(self.stream.len());
    }

    fn at(&mut self, ns: u64, event: Event) {
        self.turn += 1;
        self.events.push(Reverse((ns, self.turn, event)));
    }

    fn seq(place: usize) -> u32 {
        u32::try_from(place).unwrap() + 1
    }

    /// A packet of the client (0) or the server (1), with its own number; it leaves at `departs`,
    /// and arrives at the other end unless it is lost.
    fn packet(&mut self, at: At, from: usize, (departs, arrives): Span, segment: &[u8]) {
        self.sent[from] += 1;
        let is_own = (at == At::Client) == (from == 0);
        let Some(now) = (if is_own { Some(departs) } else { arrives }) else { return };
        let mut packet = ipv4(6, from == 0, segment);
        packet[4..6].copy_from_slice(&self.sent[from].to_be_bytes());
        // A router stands between.
        packet[8] = if is_own { 64 } else { 63 };
        self.packets.push((now, packet));
    }

    fn of_server(&mut self, at: At, network: Network, now: u64, ack: usize, payload: &[u8]) {
        let segment = tcp(false, Self::seq(self.replied), Self::seq(ack), payload);
        self.packet(at, 1, (now, Some(now + network.one_way_ns())), &segment);
        self.replied += payload.len();
    }

    fn send(&mut self, network: Network, at: At, now: u64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
        let window = self.window as usize * SEGMENT;
        while self.nxt < self.stream.len() && self.nxt - self.una < window {
            let begin = self.nxt;
            self.nxt = (begin + SEGMENT).min(self.stream.len());
            self.transmit(network, at, now, begin);
        }
    }

    fn transmit(&mut self, network: Network, at: At, now: u64, begin: usize) {
        let end = (begin + SEGMENT).min(self.stream.len());
        self.free_ns = self.free_ns.max(now) + (end - begin) as u64 * NS_PER_BYTE;
        self.transmitted += 1;
        let is = |of: u64| of > 0 && self.transmitted % of == of / 2;
        let (is_lost, is_late) = (is(network.lost_of), is(network.late_of));
        let departs = self.free_ns;
        let arrives = departs + network.one_way_ns() + if is_late { 20_000 } else { 0 };
        let ack = Self::seq(self.heard);
        let segment = tcp(true, Self::seq(begin), ack, &self.stream[begin..end]);
        self.packet(at, 0, (departs, (!is_lost).then_some(arrives)), &segment);
        if !is_lost {
            self.at(arrives, Event::Data { from: begin, to: end });
        }
        self.at(departs + TIMEOUT_NS, Event::Timer { una: self.una });
    }

    fn happens(&mut self, network: Network, at: At, now: u64, event: Event) {
        match event {
            Event::Data { from, to } => {
                let until = self.early.entry(from).or_default();
                *until = to.max(*until);
                while let Some(entry) = self.early.first_entry()
                    && *entry.key() <= self.have
                {
                    self.have = self.have.max(entry.remove());
                }
                self.of_server(at, network, now, self.have, &[]);
                self.at(now + network.one_way_ns(), Event::Acknowledged { upto: self.have });
                let whole = self.ends.iter().filter(|end| **end <= self.have).count();
                for xid in self.answered + 1..=whole {
                    self.at(now + SERVICE_NS, Event::Answer { xid: u32::try_from(xid).unwrap() });
                }
                self.answered = whole;
            }
            Event::Answer { xid } => {
                let reply = Rpc::Written { xid, bytes: CALL_BYTES }.record();
                self.of_server(at, network, now, self.have, &reply);
                let reply = Event::Reply { acknowledged: self.have, replied: self.replied };
                self.at(now + network.one_way_ns(), reply);
            }
            Event::Reply { acknowledged, replied } => {
                self.heard = replied;
                let bare = tcp(true, Self::seq(self.nxt), Self::seq(replied), &[]);
                self.packet(at, 0, (now, Some(now + network.one_way_ns())), &bare);
                if self.made < network.calls {
                    self.call();
                }
                self.acknowledged(network, at, now, acknowledged, false);
            }
            Event::Acknowledged { upto } => self.acknowledged(network, at, now, upto, true),
            Event::Timer { una } if una == self.una && una < self.nxt => {
                self.window = 2.0;
                self.transmit(network, at, now, una);
            }
            Event::Timer { .. } => {}
        }
    }

    fn acknowledged(&mut self, network: Network, at: At, now: u64, upto: usize, is_bare: bool) {
        if upto > self.una {
            (self.una, self.alike) = (upto, 0);
            match upto < self.recover {
                true => self.transmit(network, at, now, upto),
                false => self.window += 1.0 / self.window,
            }
        } else if is_bare && self.nxt > self.una {
            self.alike += 1;
            if self.alike == 3 && self.una >= self.recover {
                self.recover = self.nxt;
                self.window = (self.window / 2.0).max(2.0);
                self.transmit(network, at, now, self.una);
            }
        }
        self.send(network, at, now);
    }
}
