//! `nfskit model cycle`: the transaction cycle under the given conditions.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::cycle::cascade::{Cascade, Forward, Hop};
use perf::model::cycle::daemons::{self, Limit};
use perf::model::cycle::datagram::Datagrams;
use perf::model::cycle::loopback::Loopback;
use perf::model::cycle::mbit_per_s;
use perf::model::cycle::raid::{Array, Level};
use perf::model::error::ModelError;
use perf::model::transaction::{Capacity, Cycle, Path, Server, Storage, Transfer};
use world::simulate::values::Span;

use super::whatif::bound;
use super::{Page, span};
use crate::model::args::cycle::{Cycle as Args, RaidLevel};

/// One case: its name, the time of a call, the time between two, and what limits.
struct Row {
    key: &'static str,
    name: String,
    call_us: f64,
    spacing_us: f64,
    by: &'static str,
}

/// Headers of a call or a reply: docs/models.md, section 12.
const HEADERS_BYTES: u64 = 150;

/// Runs the command.
pub(super) fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    let (rows, notes) = rows(args)
        .map_err(|error| Failure::usage(error, "nfskit model cycle --help shows examples"))?;
    let mut page = Page::new("cycle", None);
    page.line(format_args!("calls of {}", scaled(args.size as f64)));
    let mut table =
        Table::new([left(""), right("call"), right("spacing"), right("Mbit/s"), left("bound by")]);
    for Row { key, name, call_us, spacing_us, by } in &rows {
        let rate = mbit_per_s(args.size as f64, *spacing_us);
        let (call, spacing, rate_text) = (span(*call_us), span(*spacing_us), format!("{rate:.2}"));
        table.row([name.to_string(), call, spacing, rate_text, by.to_string()]);
        page.record.metric(&format!("{key}/call_us"), *call_us, "us");
        page.record.metric(&format!("{key}/mbit_per_s"), rate, "Mbit/s");
    }
    page.text.push_str(&table.text());
    notes.iter().for_each(|note| page.line(format_args!("note: {note}")));
    page.show(args.json.as_deref(), verbosity)
}

fn us(span: Span) -> f64 {
    span.picos() as f64 / 1e6
}

fn rows(args: &Args) -> Result<(Vec<Row>, Vec<String>), ModelError> {
    let kib = args.size as f64 / 1024.0;
    let cycle = Cycle {
        prop_us: us(args.round_trip),
        ser_us: kib * us(args.ser),
        op_us: us(args.op),
        block_us: us(args.block),
    };
    if cycle.total_us() <= 0.0 {
        return Err(ModelError::NotPositive { what: "the cycle", got: cycle.total_us() });
    }
    let mut rows = vec![alone("sequential", "one call after the other".to_owned(), &cycle)];
    let side_by_side = format!("{} outstanding, network and disk side by side", args.outstanding);
    rows.push(overlapped("concurrent", side_by_side, args, &cycle));
    loopback(&cycle, &mut rows)?;
    with_daemons(args, &cycle, &mut rows)?;
    raid(args, &cycle, &mut rows)?;
    cascade(args, &cycle, &mut rows)?;
    let mut notes = Vec::new();
    datagrams(args, &cycle, &mut rows, &mut notes)?;
    Ok((rows, notes))
}

fn loopback(cycle: &Cycle, rows: &mut Vec<Row>) -> Result<(), ModelError> {
    if cycle.op_us + cycle.block_us <= 0.0 {
        return Ok(());
    }
    let loopback = Loopback::new(cycle.op_us, cycle.block_us)?;
    let (call_us, side_us) = (loopback.sequential_us(), loopback.concurrent_us());
    let by = if cycle.op_us > cycle.block_us { "processing (T_op)" } else { "storage (T_B)" };
    let row =
        |key, name: &str, spacing_us| Row { key, name: name.to_owned(), call_us, spacing_us, by };
    rows.push(row("loopback", "loopback, one after the other", call_us));
    rows.push(row("loopback_concurrent", "loopback, processing and disk side by side", side_us));
    Ok(())
}

fn with_daemons(args: &Args, cycle: &Cycle, rows: &mut Vec<Row>) -> Result<(), ModelError> {
    let Some(number) = args.daemons else { return Ok(()) };
    let (spacing_us, limit) = daemons::spacing_us(cycle, args.outstanding, number)?;
    let by = match limit {
        Limit::Cycle => "the cycle: too few calls outstanding",
        Limit::Daemons => "the daemons, always busy",
        Limit::Disk => "storage, always busy",
    };
    let name = format!("{number} daemons, {} outstanding", args.outstanding);
    rows.push(Row { key: "daemons", name, call_us: cycle.total_us(), spacing_us, by });
    Ok(())
}

/// Each call waits for the one before.
fn alone(key: &'static str, name: String, cycle: &Cycle) -> Row {
    let us = cycle.total_us();
    let by = bound(perf::model::transaction::Bound::Cycle(cycle.dominating()));
    Row { key, name, call_us: us, spacing_us: us, by }
}

/// As many as are outstanding, on a server that works on while its disk does.
fn overlapped(key: &'static str, name: String, args: &Args, cycle: &Cycle) -> Row {
    let kib = args.size as f64 / 1024.0;
    let path = Path {
        round_trip_us: cycle.prop_us,
        ser_us_per_kib: cycle.ser_us / kib,
        op_us: cycle.op_us,
        overhead_us: 0.0,
        capacity: Capacity { call_us: 0.0, us_per_kib: cycle.ser_us / kib },
        storage: Storage {
            sync_us: 0.0,
            us_per_kib: cycle.block_us / kib,
            left_us_per_kib: cycle.block_us / kib,
            unhidden_us_per_kib: 0.0,
        },
    };
    // The COMMIT's own round trip is spread over so many calls that it is nothing.
    let transfer =
        Transfer { call_bytes: args.size, outstanding: args.outstanding, commit_bytes: 1 << 50 };
    let prediction = path.predict(Server::Concurrent, &transfer);
    let spacing_us = args.size as f64 / f64::from(1 << 20) / prediction.mib_per_s * 1e6;
    Row { key, name, call_us: cycle.total_us(), spacing_us, by: bound(prediction.bound) }
}

fn raid(args: &Args, cycle: &Cycle, rows: &mut Vec<Row>) -> Result<(), ModelError> {
    let Some((level, disks)) = args.raid.zip(args.disks) else { return Ok(()) };
    let (level, number) = match level {
        RaidLevel::Zero => (Level::Raid0, 0),
        RaidLevel::Five => (Level::Raid5, 5),
        RaidLevel::Ten => (Level::Raid10, 10),
    };
    let kib = args.size as f64 / 1024.0;
    let disk = Storage {
        sync_us: 0.0,
        us_per_kib: cycle.block_us / kib,
        left_us_per_kib: 0.0,
        unhidden_us_per_kib: 0.0,
    };
    let synced = args.sync_size.unwrap_or(args.size);
    let array = Array::new(level, disks, args.unit)?.storage(&disk, synced);
    let striped = Cycle { block_us: array.us_per_kib * kib, ..*cycle };
    let name = |what: &str| format!("RAID {number} of {disks} disks, {what}");
    rows.push(alone("raid", name("one call after the other"), &striped));
    let outstanding = format!("{} outstanding", args.outstanding);
    rows.push(overlapped("raid_concurrent", name(&outstanding), args, &striped));
    Ok(())
}

fn cascade(args: &Args, cycle: &Cycle, rows: &mut Vec<Row>) -> Result<(), ModelError> {
    if args.hop.is_empty() {
        return Ok(());
    }
    let hops = hops(args, cycle);
    let servers = hops.len();
    let cascade = Cascade::new(hops, cycle.block_us / (args.size as f64 / 1024.0))?;
    let row = |key, what: &str, forward, by| Row {
        key,
        name: format!("{servers} servers, {what}"),
        call_us: cascade.response_us(forward),
        spacing_us: args.size as f64 / cascade.bytes_per_s(forward) * 1e6,
        by,
    };
    let (through, behind) = ("each answers when the next has", "each answers at once");
    rows.push(row("cascade", through, Forward::Through, "the way through all, or the disk"));
    rows.push(row("cascade_behind", behind, Forward::Behind, "the slowest of them, or the disk"));
    Ok(())
}

/// The first server, and those behind it.
fn hops(args: &Args, cycle: &Cycle) -> Vec<Hop> {
    let first = Hop {
        round_trip_us: cycle.prop_us,
        ser_us_per_kib: us(args.ser),
        op_us: cycle.op_us,
        call_bytes: args.size,
        outstanding: args.outstanding,
    };
    let further = args.hop.iter().map(|hop| Hop {
        round_trip_us: us(hop.round_trip),
        ser_us_per_kib: us(hop.ser),
        op_us: us(hop.op),
        call_bytes: hop.size.unwrap_or(args.size),
        outstanding: hop.outstanding.unwrap_or(args.outstanding),
    });
    std::iter::once(first).chain(further).collect()
}

fn datagrams(
    args: &Args,
    cycle: &Cycle,
    rows: &mut Vec<Row>,
    notes: &mut Vec<String>,
) -> Result<(), ModelError> {
    let Some(mtu) = args.mtu else { return Ok(()) };
    let way = Datagrams::new(mtu, args.loss, us(args.timeout))?;
    let (call, reply) = (args.size + HEADERS_BYTES, HEADERS_BYTES);
    // T_ser was given for the data; on the wire are the headers of all fragments as well.
    let wire = way.wire_bytes(call) as f64 / args.size as f64;
    let cycle = Cycle { ser_us: cycle.ser_us * wire, ..*cycle };
    let response_us = way.response_us(cycle.total_us(), call, reply);
    let stage_us = cycle.ser_us.max(cycle.block_us);
    let per_s = way.calls_per_s(args.outstanding, cycle.total_us(), stage_us, (call, reply))?;
    let by = match response_us > 2.0 * cycle.total_us() {
        true => "waits for retransmissions",
        false => "the cycle, or its slowest stage",
    };
    let row =
        |key, name: String, spacing_us| Row { key, name, call_us: response_us, spacing_us, by };
    let name = |what: &str| format!("datagrams, MTU {mtu}, loss {}, {what}", args.loss);
    rows.push(row("datagrams", name("one by one"), response_us));
    let outstanding = format!("{} outstanding", args.outstanding);
    rows.push(row("datagrams_concurrent", name(&outstanding), 1e6 / per_s));
    notes.push(fragments(&way, call, reply));
    Ok(())
}

fn fragments(way: &Datagrams, call: u64, reply: u64) -> String {
    format!(
        "a call is {} fragments and its reply {}; {:.3} % of tries fail, so {:.4} are needed, and \
         retransmission timers add {} to a call",
        way.fragments(call),
        way.fragments(reply),
        100.0 * way.failure(call, reply),
        way.tries(call, reply),
        span(way.timeouts_us(call, reply))
    )
}
