//! Rates of `/proc/self/mountstats`: each mount by itself.
//!
//! Mounts of one server share their connections, and the kernel shows them at each of these mounts.

use std::collections::HashMap;

use serde::Serialize;

use super::{Less, Span, share};
use crate::grown;
use crate::mountstats::{Bytes, Event, Events, Mount, Operation, Transport};

/// All mounts of a sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MountsRates {
    /// In the order of the newer sample.
    pub mounts: Vec<MountRates>,
    /// Those of the older sample that are no more.
    pub vanished: Vec<Vanished>,
}

/// A mount that was unmounted between the samples. What it did last is not known.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Vanished {
    pub device: String,
    pub point: String,
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MountRates {
    /// `server:/path`.
    pub device: String,
    pub point: String,
    pub version: Option<u64>,
    pub span: Span,
    /// Why it counts from its beginning, though there is a sample before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// In the kernel's order, called or not.
    pub operations: Vec<OperationRates>,
    /// All of them together, without a name.
    pub total: OperationRates,
    pub transports: Vec<TransportRates>,
    pub bytes: Option<BytesRates>,
    pub caches: CacheRates,
    /// How often each event was.
    #[serde(skip)]
    pub events: Option<Events>,
}

/// See [`MountRates::change`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The older sample has no such mount.
    Appeared,
    /// It is younger than it would be.
    Remounted,
}

/// One operation, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OperationRates {
    /// As the kernel has it: `GETATTR`.
    pub name: String,
    /// Calls that ended.
    pub calls: u64,
    pub calls_per_s: Option<f64>,
    /// Transmissions beyond the first of each call. Calls are counted when they end, and so a few
    /// may be calls under way.
    pub retransmissions: u64,
    /// Of the calls.
    pub retransmission_share: Option<f64>,
    pub major_timeouts: u64,
    /// Answered with an error; since Linux 5.3.
    pub errors: Option<u64>,
    /// With the headers of RPC.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub sent_bytes_per_s: Option<f64>,
    pub received_bytes_per_s: Option<f64>,
    /// Both ways.
    pub bytes_per_call: Option<f64>,
    /// Of a call: before it was sent; from there to its reply; from its making to its end, which
    /// has the others in it. The sums are in whole milliseconds, so that a mean of few calls is as
    /// exact as 1 ms over their number.
    pub queue_ms_mean: Option<f64>,
    pub rtt_ms_mean: Option<f64>,
    pub execute_ms_mean: Option<f64>,
    /// Calls between sending and reply, on average over the span, by Little's law.
    pub outstanding_mean: Option<f64>,
    /// The same from their making to their end.
    pub in_system_mean: Option<f64>,
}

/// One connection, or one UDP socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TransportRates {
    /// `tcp`, `udp`, `local`, `rdma`, or what comes.
    pub kind: String,
    pub port: Option<u64>,
    pub sends: Option<u64>,
    pub sends_per_s: Option<f64>,
    pub receives: Option<u64>,
    /// Replies that nobody waited for.
    pub bad_xids: Option<u64>,
    /// Connections made after the first.
    pub reconnects: Option<u64>,
    pub idle_s: Option<u64>,
    /// At a send, on average: calls outstanding, calls that waited for a slot, tasks that waited to
    /// send, tasks that waited for a reply.
    pub outstanding_mean: Option<f64>,
    pub backlog_mean: Option<f64>,
    pub sending_mean: Option<f64>,
    pub pending_mean: Option<f64>,
    /// The most slots that were in use since it was mounted.
    pub slots_max: Option<u64>,
}

/// Bytes of applications and of the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BytesRates {
    /// As [`Bytes`] has them.
    #[serde(skip)]
    pub bytes: Bytes,
    /// What applications read and wrote, through the cache or past it, without mappings.
    pub application_read_bytes_per_s: Option<f64>,
    pub application_write_bytes_per_s: Option<f64>,
    /// What READ and WRITE moved.
    pub server_read_bytes_per_s: Option<f64>,
    pub server_write_bytes_per_s: Option<f64>,
}

/// What the client's caches have spared the server, as far as it counts that. How many calls of
/// stat(2) the attribute cache has answered is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CacheRates {
    /// Of the bytes that were read through the page cache, those that no READ had to fetch. None
    /// where nothing was read; 0 where mappings or reading ahead fetched more than was read.
    pub read_share: Option<f64>,
    /// Of the checks of permission, those without an ACCESS.
    pub access_share: Option<f64>,
    /// Of the checks of known names, those without a LOOKUP. None for version 4, which opens by
    /// name.
    pub name_share: Option<f64>,
    /// GETATTRs for each open(2): close-to-open consistency costs one.
    pub getattrs_per_open: Option<f64>,
}

/// What came since `before`, `elapsed_s` ago; all since each mount was made, where there is none.
pub fn rates(now: &[Mount], before: Option<(&[Mount], f64)>) -> MountsRates {
    let Some((before, elapsed_s)) = before else {
        let each = now.iter().map(|mount| since_made(mount, None));
        return MountsRates { mounts: each.collect(), vanished: Vec::new() };
    };
    // Mounts on each other at one place are distinguished by their order.
    let mut older: HashMap<(&str, &str), Vec<&Mount>> = HashMap::new();
    for mount in before.iter().rev() {
        older.entry((&mount.device, &mount.point)).or_default().push(mount);
    }
    let each = now.iter().map(|mount| {
        match older.get_mut(&(&*mount.device, &*mount.point)).and_then(Vec::pop) {
            None => since_made(mount, Some(Change::Appeared)),
            Some(before) if is_another(mount, before, elapsed_s) => {
                since_made(mount, Some(Change::Remounted))
            }
            Some(before) => one(mount, Some(before), Span::sample(elapsed_s), None),
        }
    });
    let mounts = each.collect();
    let is_left = |mount: &&Mount| {
        let left = older.get(&(&*mount.device, &*mount.point));
        left.is_some_and(|left| left.iter().any(|one| std::ptr::eq(*one, *mount)))
    };
    let vanished = before
        .iter()
        .filter(is_left)
        .map(|mount| Vanished { device: mount.device.clone(), point: mount.point.clone() });
    MountsRates { mounts, vanished: vanished.collect() }
}

/// By how many seconds a mount may be younger than it would be: both ages are cut off.
const AGE_SLACK_S: f64 = 2.0;

/// The same name at the same place, made anew in between.
fn is_another(now: &Mount, before: &Mount, elapsed_s: f64) -> bool {
    let younger = |now: u64, before: u64| now as f64 + AGE_SLACK_S < before as f64 + elapsed_s;
    now.version() != before.version()
        || now.age_s.zip(before.age_s).is_some_and(|(now, before)| younger(now, before))
}

fn since_made(mount: &Mount, change: Option<Change>) -> MountRates {
    let age_s = mount.age_s.map(|seconds| seconds as f64);
    one(mount, None, Span::beginning(age_s), change)
}

fn one(now: &Mount, before: Option<&Mount>, span: Span, change: Option<Change>) -> MountRates {
    let mount = Less(now, before);
    let grown = growths(now, before);
    let mut total = Growth::default();
    for operation in &grown {
        total.add(operation);
    }
    let events = now.events.as_ref().map(|events| {
        let before = before.and_then(|before| before.events.as_ref());
        before.map_or_else(|| events.clone(), |before| events.since(before))
    });
    let bytes = mount.part(|mount| mount.bytes.as_ref()).map(bytes_less);
    MountRates {
        device: now.device.clone(),
        point: now.point.clone(),
        version: now.version(),
        span,
        change,
        caches: caches(&grown, events.as_ref(), bytes.as_ref(), now.version()),
        operations: grown.iter().map(|operation| operation.rates(&span)).collect(),
        total: total.rates(&span),
        transports: transports(now, before, &span),
        bytes: bytes.map(|bytes| bytes_rates(bytes, &span)),
        events,
    }
}

/// What one operation has counted in the span. A time is none that the kernel has turned back.
#[derive(Clone, Copy, Debug, Default)]
struct Growth<'a> {
    name: &'a str,
    calls: u64,
    retransmissions: u64,
    major_timeouts: u64,
    errors: Option<u64>,
    sent_bytes: u64,
    received_bytes: u64,
    queue: Time,
    rtt: Time,
    execute: Time,
}

/// A sum over calls of which it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    ms: u64,
    calls: u64,
    /// Some is unknown: the sum over the span is, too.
    is_partial: bool,
}

impl Time {
    fn of(ms: Option<u64>, calls: u64) -> Self {
        match ms {
            Some(ms) => Self { ms, calls, is_partial: false },
            None => Self { ms: 0, calls: 0, is_partial: true },
        }
    }

    fn add(&mut self, other: Self) {
        self.ms = self.ms.saturating_add(other.ms);
        self.calls = self.calls.saturating_add(other.calls);
        self.is_partial |= other.is_partial;
    }

    fn mean(&self) -> Option<f64> {
        share(self.ms, self.calls)
    }

    /// How many calls spend such a time at once, on average.
    fn at_once(&self, span: &Span) -> Option<f64> {
        if self.is_partial {
            return None;
        }
        span.per_s(self.ms).map(|ms_per_s| ms_per_s / 1e3)
    }
}

/// All operations, with those of the same name in the older sample taken off.
fn growths<'a>(now: &'a Mount, before: Option<&'a Mount>) -> Vec<Growth<'a>> {
    let before = before.map_or(&[][..], |before| &before.operations);
    // A kernel prints them in the same order each time: only where it has not, they are looked for.
    let older = |at: usize, one: &Operation| {
        let same_place = before.get(at).filter(|older| older.name == one.name);
        same_place.or_else(|| before.iter().rfind(|older| older.name == one.name))
    };
    let each = now.operations.iter().enumerate();
    each.map(|(at, one)| Growth::of(Less(one, older(at, one)))).collect()
}

impl<'a> Growth<'a> {
    fn of(one: Less<'a, Operation>) -> Self {
        let calls = one.of(|one| one.calls);
        let time = |sum: fn(&Operation) -> u64| Time::of(one.sum(sum), calls);
        Self {
            name: &one.0.name,
            calls,
            retransmissions: one.of(|one| one.transmissions).saturating_sub(calls),
            major_timeouts: one.of(|one| one.major_timeouts),
            errors: one.maybe(|one| one.errors),
            sent_bytes: one.of(|one| one.sent_bytes),
            received_bytes: one.of(|one| one.received_bytes),
            queue: time(|one| one.queue_ms),
            rtt: time(|one| one.rtt_ms),
            execute: time(|one| one.execute_ms),
        }
    }

    fn add(&mut self, other: &Growth<'_>) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(&mut self.calls, other.calls);
        // Of each by itself: what was under way before takes nothing from another.
        sum(&mut self.retransmissions, other.retransmissions);
        sum(&mut self.major_timeouts, other.major_timeouts);
        sum(&mut self.sent_bytes, other.sent_bytes);
        sum(&mut self.received_bytes, other.received_bytes);
        if let Some(errors) = other.errors {
            self.errors = Some(self.errors.unwrap_or(0).saturating_add(errors));
        }
        self.queue.add(other.queue);
        self.rtt.add(other.rtt);
        self.execute.add(other.execute);
    }

    fn rates(&self, span: &Span) -> OperationRates {
        let retransmissions = self.retransmissions;
        OperationRates {
            name: self.name.to_owned(),
            calls: self.calls,
            calls_per_s: span.per_s(self.calls),
            retransmissions,
            retransmission_share: share(retransmissions, self.calls),
            major_timeouts: self.major_timeouts,
            errors: self.errors,
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            sent_bytes_per_s: span.per_s(self.sent_bytes),
            received_bytes_per_s: span.per_s(self.received_bytes),
            bytes_per_call: share(self.sent_bytes.saturating_add(self.received_bytes), self.calls),
            queue_ms_mean: self.queue.mean(),
            rtt_ms_mean: self.rtt.mean(),
            execute_ms_mean: self.execute.mean(),
            outstanding_mean: self.rtt.at_once(span),
            in_system_mean: self.execute.at_once(span),
        }
    }
}

/// Transports in the kernel's order, which new ones join at the end.
fn transports(now: &Mount, before: Option<&Mount>, span: &Span) -> Vec<TransportRates> {
    let each = now.transports.iter().enumerate().map(|(at, transport)| {
        let older = before.and_then(|before| before.transports.get(at));
        let older = older.filter(|older| is_same(transport, older));
        transport_rates(Less(transport, older), span)
    });
    each.collect()
}

fn is_same(now: &Transport, before: &Transport) -> bool {
    let has_grown = |now: Option<u64>, before: Option<u64>| {
        now.zip(before).is_none_or(|(now, before)| grown(now, before).is_some())
    };
    now.kind == before.kind
        && has_grown(now.sends, before.sends)
        && has_grown(now.connects, before.connects)
}

/// A mean at a send, over the sends of all connections.
pub fn mean_at_a_send(
    all: &[TransportRates],
    of: fn(&TransportRates) -> Option<f64>,
) -> Option<f64> {
    let each = all.iter().filter_map(|one| Some((of(one)?, one.sends? as f64)));
    let (sum, sends) =
        each.fold((0.0, 0.0), |(sum, all), (mean, sends)| (sum + mean * sends, all + sends));
    (sends > 0.0).then(|| sum / sends)
}

fn transport_rates(one: Less<'_, Transport>, span: &Span) -> TransportRates {
    let sends = one.maybe(|one| one.sends);
    let mean = |sum: fn(&Transport) -> Option<u64>| share(one.maybe(sum)?, sends?);
    let connects = one.maybe(|one| one.connects);
    let first = u64::from(one.1.is_none());
    TransportRates {
        kind: one.0.kind.clone(),
        port: one.0.port,
        sends,
        sends_per_s: sends.and_then(|sends| span.per_s(sends)),
        receives: one.maybe(|one| one.receives),
        bad_xids: one.maybe(|one| one.bad_xids),
        reconnects: connects.map(|connects| connects.saturating_sub(first)),
        idle_s: one.0.idle_s,
        outstanding_mean: mean(|one| one.outstanding_sum),
        backlog_mean: mean(|one| one.backlog_sum),
        sending_mean: mean(|one| one.sending_sum),
        pending_mean: mean(|one| one.pending_sum),
        slots_max: one.0.slots_max,
    }
}

fn bytes_less(bytes: Less<'_, Bytes>) -> Bytes {
    Bytes {
        normal_read: bytes.of(|bytes| bytes.normal_read),
        normal_write: bytes.of(|bytes| bytes.normal_write),
        direct_read: bytes.of(|bytes| bytes.direct_read),
        direct_write: bytes.of(|bytes| bytes.direct_write),
        server_read: bytes.of(|bytes| bytes.server_read),
        server_write: bytes.of(|bytes| bytes.server_write),
        read_pages: bytes.of(|bytes| bytes.read_pages),
        write_pages: bytes.of(|bytes| bytes.write_pages),
    }
}

fn bytes_rates(bytes: Bytes, span: &Span) -> BytesRates {
    BytesRates {
        bytes,
        application_read_bytes_per_s: span
            .per_s(bytes.normal_read.saturating_add(bytes.direct_read)),
        application_write_bytes_per_s: span
            .per_s(bytes.normal_write.saturating_add(bytes.direct_write)),
        server_read_bytes_per_s: span.per_s(bytes.server_read),
        server_write_bytes_per_s: span.per_s(bytes.server_write),
    }
}

fn caches(
    operations: &[Growth<'_>],
    events: Option<&Events>,
    bytes: Option<&Bytes>,
    version: Option<u64>,
) -> CacheRates {
    let calls = |name: &str| {
        let found = operations.iter().find(|one| one.name.eq_ignore_ascii_case(name));
        found.map(|one| one.calls)
    };
    let event = |event| events.and_then(|events| events.of(event));
    let spared = |requested: Option<u64>, called: Option<u64>| {
        let (requested, called) = requested.zip(called)?;
        share(requested.saturating_sub(called), requested)
    };
    // New names take a LOOKUP each, and are no checks.
    let checks_called =
        calls("LOOKUP").map(|lookups| lookups.saturating_sub(event(Event::Lookup).unwrap_or(0)));
    CacheRates {
        read_share: bytes.and_then(|bytes| {
            let fetched = bytes.server_read.saturating_sub(bytes.direct_read);
            spared(Some(bytes.normal_read), Some(fetched))
        }),
        access_share: spared(event(Event::Access), calls("ACCESS")),
        name_share: spared(event(Event::DentryRevalidate), checks_called)
            .filter(|_| version != Some(4)),
        getattrs_per_open: calls("GETATTR")
            .zip(event(Event::Open))
            .and_then(|(getattrs, opens)| share(getattrs, opens)),
    }
}
