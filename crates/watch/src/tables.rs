//! Rates as tables.
//!
//! Times are milliseconds of a call on average: `queue` before it was sent, `rtt` from there to its
//! reply, `exec` the whole. `outst.` is calls outstanding on average, by Little's law.

use std::borrow::Cow;

use counters::rates::mounts::{BytesRates, CacheRates, Change, MountRates, OperationRates};
use counters::rates::mounts::{MountsRates, TransportRates, mean_at_a_send};
use counters::rates::server::ServerRates;
use counters::rates::{Since, Span};
use wire::nfs4::Operation;

use crate::cached;
use crate::ours::{OurClient, OurFile, OurMount, OurMountProcedure, OurProcedure, OurServer};
use crate::ours::{OurStage, Percentiles};
use crate::sample::Rates;
use crate::table::Kind::{Ms, Name, Number, Share};
use crate::table::{Kind, Row, Table, plain, show};

const MOUNTS: [(&str, Kind); 9] = [
    ("mount", Name),
    ("calls/s", Number),
    ("B/s", Number),
    ("queue ms", Ms),
    ("rtt ms", Ms),
    ("exec ms", Ms),
    ("outst.", Number),
    ("retrans", Number),
    ("errors", Number),
];

/// What may be left out where there is no room stands last.
const OPERATIONS: [(&str, Kind); 11] = [
    ("operation", Name),
    ("calls/s", Number),
    ("out B/s", Number),
    ("in B/s", Number),
    ("queue ms", Ms),
    ("rtt ms", Ms),
    ("exec ms", Ms),
    ("outst.", Number),
    ("retrans", Number),
    ("errors", Number),
    ("B/call", Number),
];

const PROCEDURES: [(&str, Kind); 4] =
    [("procedure", Name), ("calls/s", Number), ("calls", Number), ("share", Share)];

const OURS: [(&str, Kind); 10] = [
    ("procedure", Name),
    ("calls/s", Number),
    ("recv B/s", Number),
    ("sent B/s", Number),
    ("mean ms", Ms),
    ("p50 ms", Ms),
    ("p95 ms", Ms),
    ("p99 ms", Ms),
    ("in serv.", Number),
    ("errors", Number),
];

const CLIENTS: [(&str, Kind); 6] = [
    ("client", Name),
    ("calls/s", Number),
    ("recv B/s", Number),
    ("sent B/s", Number),
    ("cpus", Number),
    ("errors", Number),
];

const FILES: [(&str, Kind); 6] = [
    ("file", Name),
    ("calls/s", Number),
    ("recv B/s", Number),
    ("sent B/s", Number),
    ("mean ms", Ms),
    ("in serv.", Number),
];

const STAGES: [(&str, Kind); 6] = [
    ("stage of written data", Name),
    ("count", Number),
    ("mean ms", Ms),
    ("p50 ms", Ms),
    ("p95 ms", Ms),
    ("p99 ms", Ms),
];

/// Whether a mount's row has its operations below it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Depth {
    Mounts,
    Operations,
}

/// All that the kernel has counted: a table of the mounts and one of the server, if they are.
pub fn of_kernel(rates: &Rates, depth: Depth) -> Vec<Table> {
    let of_mounts = rates.mounts.iter().filter(|mounts| !mounts.mounts.is_empty());
    let of_mounts = of_mounts.map(|of| mounts(of, rates, depth));
    of_mounts.chain(rates.server.iter().map(server)).collect()
}

/// A span in words: since when, and how long.
pub fn span(span: &Span, beginning: &str) -> String {
    let of = match span.since {
        Since::Beginning => beginning,
        Since::Sample => "in the last",
    };
    match span.seconds {
        Some(seconds) => format!("{of} {seconds:.*} s", if seconds < 100.0 { 2 } else { 0 }),
        None => format!("{of} (for how long is not known)"),
    }
}

fn mounts(of: &MountsRates, rates: &Rates, depth: Depth) -> Table {
    let mut table = Table::new("mounts", &MOUNTS);
    table.rows = of.mounts.iter().map(|of| mount_row(of, depth)).collect();
    let gone = of.vanished.iter().map(|gone| format!("{} was unmounted", plain(&gone.point)));
    table.notes = gone.collect();
    if let Some(client) = &rates.client {
        let retransmitted = count(client.retransmissions);
        table.notes.push(format!(
            "all mounts, {}: {} calls/s, {retransmitted} retransmissions",
            span(&client.span, "since the machine started,"),
            show(client.calls_per_s, Number),
        ));
    }
    table
}

fn mount_row(of: &MountRates, depth: Depth) -> Row {
    let total = &of.total;
    let bytes = total.sent_bytes_per_s.zip(total.received_bytes_per_s).map(|(a, b)| a + b);
    Row {
        name: plain(&of.point),
        cells: vec![
            total.calls_per_s,
            bytes,
            total.queue_ms_mean,
            total.rtt_ms_mean,
            total.execute_ms_mean,
            total.outstanding_mean,
            Some(total.retransmissions as f64),
            total.errors.map(|errors| errors as f64),
        ],
        calls_per_s: total.calls_per_s,
        ms: total.execute_ms_mean,
        parts: parts([total.queue_ms_mean, total.rtt_ms_mean, total.execute_ms_mean]),
        is_sum: false,
        below: (depth == Depth::Operations).then(|| Box::new(mount(of))),
    }
}

/// Where the time of a call goes, as far as a client can tell.
fn parts(ms_mean: [Option<f64>; 3]) -> Vec<(Cow<'static, str>, f64)> {
    let [Some(queue), Some(rtt), Some(execute)] = ms_mean else { return Vec::new() };
    let rest = (execute - queue - rtt).max(0.0);
    let parts = [("queue", queue), ("network and server", rtt), ("rest of the client", rest)];
    parts.map(|(name, ms)| (Cow::Borrowed(name), ms)).into()
}

/// The operations of one mount that were called, the whole first.
pub fn mount(of: &MountRates) -> Table {
    let version = of.version.map(|version| format!(", version {version}")).unwrap_or_default();
    let change = match of.change {
        None => "",
        Some(Change::Appeared) => ", mounted meanwhile",
        Some(Change::Remounted) => ", mounted anew meanwhile",
    };
    let since = span(&of.span, "since it was mounted,");
    let title = format!("{} on {}{version}, {since}{change}", plain(&of.device), plain(&of.point));
    let mut table = Table::new(title, &OPERATIONS);
    let called = of.operations.iter().filter(|one| one.calls > 0 || one.retransmissions > 0);
    table.rows = std::iter::once(&of.total).chain(called).map(operation_row).collect();
    table.notes.extend(transports(&of.transports));
    table.notes.extend(caches(&of.caches));
    table.notes.extend(of.bytes.as_ref().and_then(bytes));
    table
}

fn operation_row(of: &OperationRates) -> Row {
    Row {
        name: plain(if of.name.is_empty() { "all" } else { &of.name }),
        cells: vec![
            of.calls_per_s,
            of.sent_bytes_per_s,
            of.received_bytes_per_s,
            of.queue_ms_mean,
            of.rtt_ms_mean,
            of.execute_ms_mean,
            of.outstanding_mean,
            Some(of.retransmissions as f64),
            of.errors.map(|errors| errors as f64),
            of.bytes_per_call,
        ],
        calls_per_s: of.calls_per_s,
        ms: of.execute_ms_mean,
        parts: parts([of.queue_ms_mean, of.rtt_ms_mean, of.execute_ms_mean]),
        is_sum: of.name.is_empty(),
        below: None,
    }
}

/// All connections of a mount in a line, which it shares with other mounts of the server.
fn transports(all: &[TransportRates]) -> Option<String> {
    let first = all.first()?;
    let sum = |of: fn(&TransportRates) -> Option<u64>| -> Option<u64> {
        all.iter().map(of).try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
    };
    let most = all.iter().filter_map(|one| one.slots_max).max();
    let sends_per_s = all.iter().filter_map(|one| one.sends_per_s).sum::<f64>();
    Some(format!(
        "{} {} connection{}: {} sends/s; at a send {} outstanding, {} waiting for a slot; {} slots \
         at most; {} reconnects; {} replies to no call",
        all.len(),
        first.kind,
        if all.len() == 1 { "" } else { "s" },
        show(Some(sends_per_s), Number),
        show(mean_at_a_send(all, |one| one.outstanding_mean), Number),
        show(mean_at_a_send(all, |one| one.backlog_mean), Number),
        count(most),
        count(sum(|one| one.reconnects)),
        count(sum(|one| one.bad_xids)),
    ))
}

fn count(of: Option<u64>) -> String {
    of.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// What is known of the caches.
fn caches(of: &CacheRates) -> Option<String> {
    let shares = [
        ("bytes read", of.read_share),
        ("permission checks", of.access_share),
        ("checks of names", of.name_share),
    ];
    let known = shares.into_iter().filter_map(|(what, share)| Some((what, share?)));
    let mut parts: Vec<String> =
        known.map(|(what, share)| format!("{:.0} % of {what}", share * 100.0)).collect();
    let answered = (!parts.is_empty()).then(|| format!("answered by caches: {}", parts.join(", ")));
    parts = answered.into_iter().collect();
    parts.extend(of.getattrs_per_open.map(|each| format!("{each:.2} GETATTRs for each open")));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn bytes(of: &BytesRates) -> Option<String> {
    let all = [
        of.application_read_bytes_per_s?,
        of.server_read_bytes_per_s?,
        of.application_write_bytes_per_s?,
        of.server_write_bytes_per_s?,
    ];
    let [read, fetched, written, sent] = all.map(|bytes| show(Some(bytes), Number));
    all.iter().any(|bytes| *bytes > 0.0).then(|| {
        format!("programs read {read} B/s (READ {fetched}), and wrote {written} (WRITE {sent})")
    })
}

/// The kernel's server.
pub fn server(of: &ServerRates) -> Table {
    let since = span(&of.span, "since the machine started,");
    let mut table = Table::new(format!("the kernel's server, {since}"), &PROCEDURES);
    let calls = of.calls.unwrap_or(0) as f64;
    let row = |name: String, calls_per_s: Option<f64>, some: f64, all: f64| Row {
        name,
        cells: vec![calls_per_s, Some(some), (all > 0.0).then(|| some / all)],
        calls_per_s,
        ..Row::default()
    };
    let all = row("all".to_owned(), of.calls_per_s, calls, calls);
    table.rows.push(Row { is_sum: true, ..all });
    let called = of.procedures.iter().filter(|one| one.calls > 0);
    table.rows.extend(called.map(|one| {
        let name = format!("{} v{}", one.name, one.version.number());
        row(name, one.calls_per_s, one.calls as f64, calls)
    }));
    let operations = of.v4_operations.iter().enumerate().filter(|(_, calls)| **calls > 0);
    let all = counters::sum(of.v4_operations.iter().copied());
    table.rows.extend(operations.map(|(number, calls)| {
        row(v4_name(number), of.span.per_s(*calls), *calls as f64, all as f64)
    }));
    table.notes = server_notes(of);
    table
}

fn v4_name(number: usize) -> String {
    let code = u32::try_from(number).unwrap_or(u32::MAX);
    let known = Operation::from_code(code).map(|known| known.name().to_lowercase());
    format!("  {}", known.unwrap_or_else(|| format!("operation {number}")))
}

fn server_notes(of: &ServerRates) -> Vec<String> {
    let mut notes = Vec::new();
    let mut say = |note: Option<String>| notes.extend(note);
    say(of.read_bytes_per_s.zip(of.written_bytes_per_s).map(|(read, written)| {
        let [read, written] = [read, written].map(|bytes| show(Some(bytes), Number));
        format!("read {read} B/s, written {written} B/s")
    }));
    let enqueued = of.pools.iter().filter_map(|pool| pool.enqueued.zip(pool.arrived));
    let sums = enqueued.reduce(|(a, b), (c, d)| (a.saturating_add(c), b.saturating_add(d)));
    say(of.threads.map(|threads| match sums {
        Some((waited, arrived)) => {
            format!("{threads} threads; {waited} of {arrived} messages found none of them idle")
        }
        None => format!("{threads} threads (whether they suffice: /proc/fs/nfsd/pool_stats)"),
    }));
    say(of.reply_cache.map(|cache| {
        format!(
            "reply cache: {} hits (retransmissions), {} misses, {} not cached",
            cache.hits, cache.misses, cache.uncached
        )
    }));
    say(of.refused.filter(|refused| refused.all > 0).map(|refused| {
        format!(
            "{} calls refused: {} malformed, {} not authentic, {} of unknown clients",
            refused.all, refused.bad_format, refused.bad_authentication, refused.bad_client
        )
    }));
    let stale = of.stale_handles.filter(|stale| *stale > 0);
    say(stale.map(|stale| format!("{stale} handles of files that are no more (ESTALE)")));
    notes
}

/// Our server: its procedures, its clients, its files where it counts them apart, and what its
/// cache has served.
pub fn our_server(of: &OurServer, name: &str) -> Vec<Table> {
    let since = span(&of.span, "since it started,");
    let mut procedures = Table::new(format!("{name}: nfskit serve, {since}"), &OURS);
    let all = std::iter::once(&of.total).chain(&of.procedures);
    procedures.rows = all.map(our_row).collect();
    procedures.notes = our_notes(of);
    let mut clients = Table::new(format!("{name}: clients"), &CLIENTS);
    clients.rows = of.clients.iter().map(client_row).collect();
    let mut files = Table::new(format!("{name}: files"), &FILES);
    files.rows = of.files.iter().map(file_row).collect();
    let more = [clients, files].into_iter().chain(cached::table(of.cache.as_ref(), name));
    std::iter::once(procedures).chain(more.filter(|table| !table.rows.is_empty())).collect()
}

fn client_row(of: &OurClient) -> Row {
    Row {
        name: plain(&of.client),
        cells: vec![
            of.calls_per_s,
            of.received_bytes_per_s,
            of.sent_bytes_per_s,
            of.store_mean,
            Some(of.errors),
        ],
        calls_per_s: of.calls_per_s,
        ..Row::default()
    }
}

fn file_row(of: &OurFile) -> Row {
    Row {
        name: plain(&of.file),
        cells: vec![
            of.calls_per_s,
            of.received_bytes_per_s,
            of.sent_bytes_per_s,
            of.ms_mean,
            of.in_service_mean,
        ],
        calls_per_s: of.calls_per_s,
        ms: of.ms_mean,
        ..Row::default()
    }
}

fn our_row(of: &OurProcedure) -> Row {
    let Percentiles { mean, p50, p95, p99 } = of.response_ms;
    Row {
        name: plain(if of.name.is_empty() { "all" } else { &of.name }),
        cells: vec![
            of.calls_per_s,
            of.received_bytes_per_s,
            of.sent_bytes_per_s,
            mean,
            p50,
            p95,
            p99,
            of.in_service_mean,
            Some(of.errors),
        ],
        calls_per_s: of.calls_per_s,
        ms: mean,
        parts: of.phases_ms_mean.iter().map(|(name, ms)| (name.clone().into(), *ms)).collect(),
        is_sum: of.name.is_empty(),
        below: None,
    }
}

fn our_notes(of: &OurServer) -> Vec<String> {
    let number = |value| show(value, Number);
    let mut notes = vec![format!(
        "{} connections, {} calls in progress; {} processors busy, {}B of memory; {} replayed",
        number(of.connections),
        number(of.calls_in_progress),
        number(of.processors_mean),
        number(of.resident_bytes),
        number(Some(of.replayed)),
    )];
    if of.sync_requests_per_s.is_some() {
        let (requested, done) = (number(of.sync_requests_per_s), number(of.syncs_per_s));
        notes.push(format!("{requested} syncs/s requested, {done} done"));
    }
    let phases = &of.total.phases_ms_mean;
    if !phases.is_empty() {
        let each = phases.iter().map(|(name, ms)| format!("{name} {}", show(Some(*ms), Ms)));
        notes.push(format!("ms of a call: {}", each.collect::<Vec<_>>().join(", ")));
    }
    notes
}

/// Our client: its procedures, the stages of written data, and what its cache has served.
pub fn our_mount(of: &OurMount, name: &str) -> Vec<Table> {
    let since = span(&of.span, "since it started,");
    let mut procedures = Table::new(format!("{name}: nfskit mount, {since}"), &OPERATIONS);
    procedures.rows = of.procedures.iter().map(our_mount_row).collect();
    procedures.notes.push(format!(
        "{} B not yet acknowledged, {} B not yet stable; {} WRITEs outstanding of {} that may be; \
         {} connections lost",
        show(of.dirty_bytes, Number),
        show(of.uncommitted_bytes, Number),
        show(of.write_calls_outstanding, Number),
        show(of.write_calls_window, Number),
        show(Some(of.reconnects), Number),
    ));
    let mut stages = Table::new(format!("{name}: written data"), &STAGES);
    stages.rows = of.stages.iter().map(stage_row).collect();
    let cache = cached::table(of.cache.as_ref(), name);
    let tables = [Some(procedures), Some(stages), cache].into_iter().flatten();
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn our_mount_row(of: &OurMountProcedure) -> Row {
    let bytes = of.sent_bytes_per_s.zip(of.received_bytes_per_s).map(|(a, b)| a + b);
    let each = bytes.zip(of.calls_per_s).filter(|(_, calls)| *calls > 0.0);
    Row {
        name: plain(&of.name),
        cells: vec![
            of.calls_per_s,
            of.sent_bytes_per_s,
            of.received_bytes_per_s,
            of.queue_ms_mean,
            of.rtt_ms_mean,
            of.execute_ms_mean,
            of.outstanding_mean,
            Some(of.retransmissions),
            Some(of.errors),
            each.map(|(bytes, calls)| bytes / calls),
        ],
        calls_per_s: of.calls_per_s,
        ms: of.execute_ms_mean,
        parts: parts([of.queue_ms_mean, of.rtt_ms_mean, of.execute_ms_mean]),
        ..Row::default()
    }
}

fn stage_row(of: &OurStage) -> Row {
    let Percentiles { mean, p50, p95, p99 } = of.ms;
    let cells = vec![Some(of.count), mean, p50, p95, p99];
    Row { name: plain(&of.stage), cells, ms: mean, ..Row::default() }
}
