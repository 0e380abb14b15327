//! Records as calls and replies, and both together as transactions.

use wire::nfs4::compound::{self, Piece};
use wire::partial::{Arguments, Results};

use super::calls::{Calls, Counts, Key, Open};
use super::facts;
use super::files::Files;
use super::filter::Filter;
use super::flows::{Ends, Flows};
use super::ids::FileId;
use super::ids::FlowId;
use super::message::{self, CallHead, Guard, RpcVerdict};
use super::operation::{Kind, Operation, Program, V4_EMPTY, V4_NULL};
use super::pace::{Pace, Reply};
use super::postponed::is_later;
use super::rtt::{Rtt, RttOf};
use super::series::Series;
use super::stream::Record;
use super::totals::Totals;
use super::transaction::Transaction;
use super::twins::{Twin, Twins};
use crate::capture::End;

/// What is called with each transaction.
pub(super) type Each<'e> = dyn FnMut(&Transaction, &Files, &Flows) + 'e;

/// What the messages of all connections come together in.
#[derive(Debug, Default)]
pub(super) struct Rpc {
    pub(super) calls: Calls,
    pub(super) files: Files,
    pub(super) flows: Flows,
    pub(super) totals: Totals,
    pub(super) series: Series,
    pub(super) filter: Filter,
    pub(super) twins: Twins,
    /// Transactions are not counted by file.
    pub(super) without_files: bool,
    /// When the first packet came.
    pub(super) begin_ns: u64,
    /// The packet that is read, as Wireshark counts.
    pub(super) frame: u64,
}

/// What of a connection a message needs to know.
#[derive(Debug)]
pub(super) struct Line {
    /// Both ends, in the order of their addresses.
    pub(super) ends: [End; 2],
    pub(super) is_tcp: bool,
    /// The flow in which the first, or the second, is the client.
    pub(super) flows: [Option<FlowId>; 2],
    /// Calls whose replies have names in them, by who made them.
    pub(super) listings: [u32; 2],
    /// How soon either end acknowledged, before who is the client was known.
    pub(super) handshake: [Option<u64>; 2],
}

impl Line {
    pub(super) const fn new(ends: [End; 2], is_tcp: bool) -> Self {
        Self { ends, is_tcp, flows: [None; 2], listings: [0; 2], handshake: [None; 2] }
    }

    /// The flow, if a call was seen.
    pub(super) fn flow(&self) -> Option<FlowId> {
        self.flows[0].or(self.flows[1])
    }

    /// What acknowledgements of this end measure.
    pub(super) const fn clock(&self, from: usize) -> RttOf {
        if self.flows[from].is_some() { RttOf::Client } else { RttOf::Server }
    }

    /// Records what was measured before the flow began.
    pub(super) fn shake(&mut self, rtt: &mut Rtt, now: u64) {
        for from in [0, 1] {
            if let Some(ns) = self.handshake[from].take() {
                rtt.record(self.clock(from), now, ns);
            }
        }
    }
}

impl Rpc {
    /// A record that end `from` of a line sent; false when it is no message.
    pub(super) fn record(
        &mut self,
        line: &mut Line,
        from: usize,
        record: &Record<'_>,
        each: &mut Each<'_>,
    ) -> bool {
        if !message::is_message(record.head) {
            return false;
        }
        if record.follows_gap
            && let Some(flow) = line.flow()
        {
            self.flows.missed(flow, record.last_ns, line.flows[from].is_none());
        }
        match message::word(record.head, 4) {
            Some(0) => self.call(line, from, record),
            Some(1) => self.reply(line, from, record, each),
            _ => return false,
        }
        true
    }

    /// The flow in which end `client` calls.
    fn flow(&mut self, line: &mut Line, client: usize) -> FlowId {
        let flows = &mut self.flows;
        *line.flows[client].get_or_insert_with(|| {
            flows.of(Ends {
                client: line.ends[client],
                server: line.ends[1 - client],
                is_tcp: line.is_tcp,
            })
        })
    }

    fn call(&mut self, line: &mut Line, from: usize, record: &Record<'_>) {
        let Some(head) = message::call(record.head) else { return };
        let program = Program::of(head.program, head.version);
        // A server calls back over the connection that its client made.
        let from_server = program == Program::Nfs4Callback && line.flows[1 - from].is_some();
        let id = match from_server {
            true => self.flow(line, 1 - from),
            false => self.flow(line, from),
        };
        let key = Key { flow: id, from_server, xid: head.xid };
        let now = record.last_ns;
        if self.is_again(key, program, &head, now) {
            return;
        }
        let (operation, arguments) = self.arguments(record, &head, program);
        line.listings[from] += u32::from(operation.kind() == Kind::Listing);
        let Some((counts, outer)) = self.counts(key, operation, record) else { return };
        let file = match self.without_files {
            true => FileId::OTHER,
            false => self.files.of(arguments.handle),
        };
        self.totals.left_out += u64::from(matches!(counts, Counts::Pace | Counts::Nothing));
        if counts == Counts::Whole {
            self.totals.guarded(head.guard);
            // Otherwise when it is known which file it is about.
            if self.filter.file.is_none() {
                self.totals.called(operation, record.first_ns);
            }
        }
        let mut open = Open {
            operation,
            first_ns: record.first_ns,
            last_ns: now,
            file,
            offset: arguments.offset,
            count: arguments.count,
            stable: arguments.stable,
            is_sized: arguments.is_whole,
            len: record.len,
            retransmissions: 0,
            outstanding: 0,
            due_ns: u64::MAX,
            guard: head.guard,
            version: head.version,
            frame: self.frame,
            ends_known: record.ends_known,
            repeated_ns: now,
            until_ns: (!line.is_tcp).then(|| Open::patience(now)),
            generation: None,
            counts,
            outer,
            inner: None,
            name: Vec::new(),
        };
        let name = if self.without_files { &[] } else { arguments.name };
        if self.calls.is_full() {
            let oldest = self.calls.make_room(now);
            self.all_lost(&oldest, now);
        }
        if self.calls.is_full() {
            self.totals.unfollowed += u64::from(counts == Counts::Whole);
            return;
        }
        if counts.is_paced() {
            self.paced_call(key, &mut open);
        }
        self.calls.insert(key, open, name);
    }

    /// A call of which times count.
    fn paced_call(&mut self, key: Key, open: &mut Open) {
        if let Some(flow) = self.flows.get_mut(key.flow) {
            if flow.first_ns == 0 {
                flow.first_ns = open.first_ns;
            }
            flow.last_ns = open.last_ns;
        }
        if !key.from_server {
            let at = (open.last_ns, open.first_ns);
            let called = self.flows.called(key.flow, at, (open.work(), open.file), open.load());
            let Some((outstanding, generation, due_ns)) = called else { return };
            (open.outstanding, open.generation, open.due_ns) =
                (outstanding, Some(generation), due_ns);
        }
    }

    /// What a call counts for; and which one it is that a relay has passed on with it. None for one
    /// that counts since it was sent over another connection.
    fn counts(
        &mut self,
        key: Key,
        operation: Operation,
        record: &Record<'_>,
    ) -> Option<(Counts, Option<Key>)> {
        let is_empty = self.filter.is_empty();
        let ends = || self.flows.get(key.flow).and_then(|flow| flow.ends);
        if !is_empty && !self.filter.takes_hosts(ends()) {
            return Some((Counts::Nothing, None));
        }
        // Of what a relay passes on the time is that of the call that its client made.
        let twin = self.twin(key, record);
        if let Some((twin, Twin::Retransmitted)) = twin {
            self.retransmitted(twin, key, record.last_ns);
            return None;
        }
        if let Some((twin, Twin::PassedOn)) = twin {
            let passed = Some((Counts::PassedOn, Some(twin)));
            let outer = self.calls.find(twin)?;
            outer.inner = Some((record.last_ns, 0));
            if !outer.counts.is_paced() {
                return passed;
            }
            if let Some(flow) = self.flows.get_mut(key.flow) {
                flow.passed_on += 1;
                flow.passed_from = Some(twin.flow);
            }
            self.totals.passed_on += 1;
            return passed;
        }
        if !is_empty && !self.takes_time(record.first_ns) {
            return Some((Counts::Nothing, None));
        }
        match self.filter.takes_operation(operation) {
            true => Some((Counts::Whole, None)),
            false => Some((Counts::Pace, None)),
        }
    }

    /// The same call over another connection that waits for its reply. Between the same hosts it is
    /// another program's, unless its connection has ended.
    fn twin(&mut self, key: Key, record: &Record<'_>) -> Option<(Key, Twin)> {
        let (calls, flows) = (&mut self.calls, &self.flows);
        self.twins.of(key, record.head, record.len, |twin| {
            let open = calls.find(twin).filter(|open| open.counts != Counts::PassedOn)?;
            if !flows.are_of_one_pair(twin.flow, key.flow) {
                return Some(Twin::PassedOn);
            }
            (!flows.counts(twin.flow, open.generation)).then_some(Twin::Retransmitted)
        })
    }

    /// A call was retransmitted as `key`: it waits there from now on.
    fn retransmitted(&mut self, twin: Key, key: Key, now: u64) {
        let Some(mut open) = self.calls.remove(twin).cloned() else { return };
        let name = std::mem::take(&mut open.name);
        if let Some(flow) = self.flows.get_mut(key.flow) {
            flow.first_ns = if flow.first_ns == 0 { now } else { flow.first_ns };
            flow.last_ns = now;
        }
        self.calls.insert(key, open, &name);
        self.repeated(key, now);
    }

    /// Whether the filter lets through what happens at a moment.
    pub(super) fn takes_time(&self, at_ns: u64) -> bool {
        self.filter.takes_time(at_ns.saturating_sub(self.begin_ns))
    }

    /// Whether a call was seen before; counts it if so.
    fn is_again(&mut self, key: Key, program: Program, head: &CallHead, now: u64) -> bool {
        let is_wanted = self.takes_time(now);
        let Some(flow) = self.flows.get_mut(key.flow) else { return true };
        let answered = flow.was_answered(key.xid, key.from_server);
        if let Some(open) = self.calls.find(key) {
            let code = u8::try_from(head.procedure).unwrap_or(u8::MAX);
            let is_same = open.operation.program == program
                && (is_compound(program) || open.operation.code == code);
            if is_same {
                self.repeated(key, now);
                return true;
            }
            // The number was used again: whoever had it got no reply.
            let open = open.clone();
            self.calls.remove(key);
            self.lost(key, &open, now);
            return false;
        }
        if answered && is_wanted {
            flow.retransmissions += 1;
            self.flows.happened(key.flow, Pace::sent_again);
        }
        answered
    }

    /// A call that waits was retransmitted.
    fn repeated(&mut self, key: Key, now: u64) {
        let Some(open) = self.calls.find(key) else { return };
        open.repeated(now);
        if open.counts == Counts::Whole {
            self.totals.sent_again(open.operation);
            if let Some(flow) = self.flows.get_mut(key.flow) {
                flow.retransmissions += 1;
            }
        }
        if open.counts.is_paced() {
            if !key.from_server {
                let at = (now, open.due_ns);
                open.generation = self.flows.repeated(key.flow, at, open.load(), open.generation);
            }
            self.flows.happened(key.flow, Pace::sent_again);
        }
    }

    /// A call gets no reply any more.
    fn lost(&mut self, key: Key, open: &Open, now: u64) {
        if open.counts == Counts::Whole {
            self.unanswered(key, open);
        }
        self.hung(key, open, now);
        if let Some(generation) = open.generation {
            self.flows.expired(key.flow, now, open.load(), generation);
        }
    }

    /// The connection of a flow is over, or begins.
    pub(super) fn ended(&mut self, id: FlowId, now: u64) {
        if self.flows.get(id).is_some_and(|flow| flow.pace.has_late(now)) {
            let of_flow = self.calls.waiting().filter(|(key, _)| key.flow == id);
            let of_flow: Vec<(Key, Open)> =
                of_flow.map(|(key, open)| (key, open.clone())).collect();
            of_flow.iter().for_each(|(key, open)| self.hung(*key, open, now));
        }
        self.flows.ended(id, now);
    }

    /// Counts a call that is not answered as one that hung, if others were when it was late.
    fn hung(&mut self, key: Key, open: &Open, now: u64) {
        let is_counted = self.flows.counts(key.flow, open.generation);
        if let Some(pair) = self.flows.pair_mut(key.flow)
            && is_counted
            && open.due_ns < pair.pace.last_reply_ns()
        {
            pair.hung.count(now.saturating_sub(open.last_ns), open.frame, false);
        }
    }

    fn unanswered(&mut self, key: Key, open: &Open) {
        if self.filter.file.is_some() {
            if !self.filter.takes_file(&self.files, open.file) {
                self.totals.left_out += 1;
                return;
            }
            self.totals.called(open.operation, open.first_ns);
        }
        self.totals.unanswered += 1;
        if let Some(flow) = self.flows.get_mut(key.flow) {
            flow.unanswered += 1;
        }
        if open.until_ns.is_some()
            && let Some(pair) = self.flows.pair_mut(key.flow)
        {
            pair.datagrams.unanswered(open.operation, open.count);
        }
    }

    /// What a call requests.
    fn arguments<'a>(
        &mut self,
        record: &Record<'a>,
        head: &CallHead,
        program: Program,
    ) -> (Operation, Arguments<'a>) {
        let args = head.args.and_then(|args| record.head.get(args..));
        if program == Program::Nfs4 {
            if head.procedure == 0 {
                return (Operation { program, code: V4_NULL }, Arguments::default());
            }
            let Some(at) = head.args else {
                self.totals.v4_cut += u64::from(head.guard != Guard::Privacy);
                return (Operation { program, code: V4_EMPTY }, Arguments::default());
            };
            let counts = &mut self.totals.v4_operations;
            let args = Piece {
                head: args.unwrap_or_default(),
                tail: record.tail,
                len: (record.len as usize).saturating_sub(at),
            };
            let compound = compound::call(args, |operation| {
                if let Some(count) = counts.get_mut(operation as usize) {
                    *count += 1;
                }
            });
            self.totals.v4_cut += u64::from(compound.is_cut);
            return (Operation::new(program, compound.main), compound.arguments);
        }
        if program == Program::Nfs4Callback && head.procedure == 1 {
            let main = args.and_then(compound::callback);
            return (Operation::callback(main), Arguments::default());
        }
        let operation = Operation::new(program, head.procedure);
        (operation, args.map(|args| facts::arguments(operation, args)).unwrap_or_default())
    }

    fn reply(&mut self, line: &mut Line, from: usize, record: &Record<'_>, each: &mut Each<'_>) {
        let Some(head) = message::reply(record.head) else { return };
        // Nearly always the reply of a server; otherwise of a client that was called back.
        let of_server = line.flows[1 - from].map(|flow| (flow, false));
        let of_client = line.flows[from].map(|flow| (flow, true));
        let now = record.last_ns;
        for (flow, from_server) in of_server.into_iter().chain(of_client) {
            let key = Key { flow, from_server, xid: head.xid };
            if self.answered(line, key, 1 - from, record, &head, each) {
                return;
            }
        }
        let Some((id, _)) = of_server else { return };
        let is_wanted = self.takes_time(now);
        let Some(flow) = self.flows.get_mut(id).filter(|flow| {
            // Hosts that a filter leaves out count for nothing.
            is_wanted && self.filter.takes_hosts(flow.ends)
        }) else {
            return;
        };
        flow.last_ns = now;
        let is_second = flow.was_answered(head.xid, false);
        match is_second {
            true => flow.duplicate_replies += 1,
            false => flow.unsolicited_replies += 1,
        }
        if !line.is_tcp
            && let Some(pair) = self.flows.pair_mut(id)
        {
            pair.udp.twice += u64::from(is_second);
            pair.datagrams.callless += u64::from(!is_second);
        }
    }

    /// The call of a reply, if it waits, becomes a transaction.
    fn answered(
        &mut self,
        line: &mut Line,
        key: Key,
        caller: usize,
        record: &Record<'_>,
        head: &message::ReplyHead,
        each: &mut Each<'_>,
    ) -> bool {
        let Some(open) = self.calls.remove(key) else { return false };
        let (counts, inner) = (open.counts, open.inner.filter(|(_, replied)| *replied > 0));
        let (load, generation, outstanding) = (open.load(), open.generation, self.flows.selected);
        let due_ns = open.due_ns;
        if let Some(outer) = open.outer {
            self.passed_back(outer, key, record.last_ns);
            return true;
        }
        let files = (!self.without_files).then_some(&mut self.files);
        let answered = results(files, open, record, head);
        let transaction = transaction((key, open), (record, self.frame), head, &answered);
        let is_listing = transaction.operation.kind() == Kind::Listing;
        let listings = &mut line.listings[caller];
        *listings = listings.saturating_sub(u32::from(is_listing));
        if let Some(flow) = self.flows.get_mut(key.flow) {
            flow.last_ns = record.last_ns;
            flow.tls += u64::from(head.starts_tls);
            flow.remember(key.xid, key.from_server);
        }
        if counts.is_paced() && !key.from_server {
            let Transaction { reply_ns: now, reply_frame: frame, call_frame, .. } = transaction;
            let (work, file, bytes) = (transaction.work(), transaction.file, transaction.bytes);
            let is_later = is_later(transaction.status);
            let reply = Reply { now, frame, call_frame, work, bytes, load, due_ns, file, is_later };
            self.flows.replied(key.flow, reply, generation);
            self.pace(&transaction, line.is_tcp, inner);
        }
        if counts == Counts::Whole {
            self.count(&transaction, outstanding, each);
        }
        true
    }

    /// The reply to a call that a relay has passed on belongs to the call that it came from.
    fn passed_back(&mut self, outer: Key, key: Key, replied_ns: u64) {
        if let Some(outer) = self.calls.find(outer)
            && let Some((_, replied)) = &mut outer.inner
        {
            *replied = replied_ns;
        }
        if let Some(flow) = self.flows.get_mut(key.flow) {
            flow.remember(key.xid, key.from_server);
        }
    }

    /// What counts for hosts, whatever operations are requested.
    fn pace(&mut self, transaction: &Transaction, is_tcp: bool, inner: Option<(u64, u64)>) {
        let Transaction { flow, reply_ns, bytes, file, .. } = *transaction;
        let synced = match self.without_files {
            true => None,
            false => self.files.synced(file, transaction.work(), bytes),
        };
        let stretches = self.flows.stretched(flow, transaction);
        let Some(pair) = self.flows.pair_mut(flow) else { return };
        pair.count(transaction, is_tcp, synced, stretches);
        if let (Some((passed_ns, returned_ns)), Some(latency)) = (inner, transaction.latency()) {
            let behind = returned_ns.saturating_sub(passed_ns);
            pair.relay.record(transaction.work(), latency.as_nanos(), behind);
        }
        if transaction.is_light()
            && let Some(latency) = transaction.latency()
        {
            pair.rtt.record(RttOf::Replies, reply_ns, latency.as_nanos());
        }
    }

    /// A reply that came with so many calls outstanding.
    fn count(&mut self, transaction: &Transaction, outstanding: u32, each: &mut Each<'_>) {
        if self.filter.file.is_some() {
            if !self.filter.takes_file(&self.files, transaction.file) {
                self.totals.left_out += 1;
                return;
            }
            self.totals.called(transaction.operation, transaction.call_first_ns);
        }
        if let Some(flow) = self.flows.get_mut(transaction.flow) {
            flow.tallies.of(transaction.operation).count(transaction);
        }
        self.totals.answered(transaction);
        self.series.record(transaction, outstanding);
        if let Some(usage) = self.files.usage(transaction.file) {
            usage.count(transaction);
        }
        each(transaction, &self.files, &self.flows);
    }

    /// Gives up calls that waited too long.
    pub(super) fn expire(&mut self, now: u64) {
        for (key, until, load, generation) in self.calls.given_up(now) {
            self.flows.expired(key.flow, until, load, generation);
        }
        // Over TCP a client waits for as long as its connection lasts.
        let flows = &self.flows;
        let expired = self.calls.expire(now, |key, open| {
            open.until_ns.is_none() && flows.counts(key.flow, open.generation)
        });
        self.all_lost(&expired, now);
    }

    fn all_lost(&mut self, calls: &[(Key, Open)], now: u64) {
        calls.iter().for_each(|(key, open)| self.lost(*key, open, now));
    }

    /// Nothing more comes: what waits is unanswered.
    pub(super) fn end(&mut self, last_ns: u64) {
        self.expire(last_ns);
        let until_ns = self.filter.until_ns.map_or(last_ns, |ns| self.begin_ns.saturating_add(ns));
        self.flows.end(last_ns.min(until_ns), self.frame);
        let waiting = self.calls.waiting();
        let waiting: Vec<(Key, Open)> = waiting.map(|(key, open)| (key, open.clone())).collect();
        for (key, open) in &waiting {
            self.hung(*key, open, last_ns.min(until_ns));
            if open.counts == Counts::Whole {
                self.unanswered(*key, open);
            }
        }
    }
}

/// A call, and its reply in a packet.
fn transaction(
    (key, open): (Key, &Open),
    (record, reply_frame): (&Record<'_>, u64),
    head: &message::ReplyHead,
    answered: &Results<'_>,
) -> Transaction {
    Transaction {
        flow: key.flow,
        xid: key.xid,
        operation: open.operation,
        version: open.version,
        call_first_ns: open.first_ns,
        call_ns: open.last_ns,
        reply_first_ns: record.first_ns,
        reply_ns: record.last_ns,
        repeated_ns: open.repeated_ns,
        is_timed: open.ends_known && record.ends_known,
        call_frame: open.frame,
        reply_frame,
        verdict: head.verdict,
        status: answered.status,
        file: open.file,
        offset: open.offset,
        count: open.count,
        bytes: moved_bytes(open, head, answered),
        stable: open.stable,
        is_sized: open.is_sized,
        call_len: open.len,
        reply_len: record.len,
        retransmissions: open.retransmissions,
        outstanding: open.outstanding,
    }
}

/// Data that a call has moved.
fn moved_bytes(open: &Open, head: &message::ReplyHead, answered: &Results<'_>) -> u32 {
    let is_good = head.verdict == RpcVerdict::Success && answered.status.unwrap_or(0) == 0;
    match open.operation.kind() {
        // No server moves more than was requested.
        Kind::Read | Kind::Write if is_good && open.is_sized => {
            answered.count.unwrap_or(open.count).min(open.count)
        }
        Kind::Read | Kind::Write if is_good => answered.count.unwrap_or(0),
        _ => 0,
    }
}

/// What a reply says; names and handles that become known by it are `files`' to learn.
fn results<'r>(
    files: Option<&mut Files>,
    open: &Open,
    record: &Record<'r>,
    head: &message::ReplyHead,
) -> Results<'r> {
    let operation = open.operation;
    let results = head.results.and_then(|at| open.guard.results(at));
    let results = results.and_then(|at| record.head.get(at..));
    let answered = match (operation.program, results) {
        (_, None) => Results::default(),
        _ if head.verdict != RpcVerdict::Success => Results::default(),
        (Program::Nfs4, Some(results)) if operation.code != V4_NULL => {
            compound::reply(results, operation.nfs4())
        }
        (_, Some(results)) => facts::answered(operation, results),
    };
    if let Some(files) = files {
        files.learn(open.file, &open.name, answered.handle);
        facts::listed(operation, results.unwrap_or_default(), |name, handle| {
            files.learn(open.file, name, handle);
        });
    }
    answered
}

/// Programs whose one procedure carries a list of operations.
const fn is_compound(program: Program) -> bool {
    matches!(program, Program::Nfs4 | Program::Nfs4Callback)
}
