//! `nfskit model cycle`: the transaction cycle under the given conditions.

use std::fmt::Write;

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

use super::span;
use super::whatif::bound;
use crate::model::args::cycle::{Cycle as Args, RaidLevel};

/// One surrounding: its name, the time of a call, the time between two, and what limits.
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
    let mut record = super::record("cycle", None);
    let mut text = String::new();
    writeln!(text, "calls of {}", scaled(args.size as f64)).ok();
    let mut table =
        Table::new([left(""), right("call"), right("spacing"), right("Mbit/s"), left("bound by")]);
    for Row { key, name, call_us, spacing_us, by } in &rows {
        let rate = mbit_per_s(args.size as f64, *spacing_us);
        let (call, spacing, rate_said) = (span(*call_us), span(*spacing_us), format!("{rate:.2}"));
        table.row([name.to_string(), call, spacing, rate_said, by.to_string()]);
        record.metric(&format!("{key}/call_us"), *call_us, "us");
        record.metric(&format!("{key}/mbit_per_s"), rate, "Mbit/s");
    }
    text.push_str(&table.text());
    for note in notes {
        writeln!(text, "note: {note}").ok();
    }
    super::show(&text, &record, args.json.as_deref(), verbosity)
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
    if cycle.op_us + cycle.block_us > 0.0 {
        let loopback = Loopback::new(cycle.op_us, cycle.block_us)?;
        let (one, side) = (loopback.sequential_us(), loopback.concurrent_us());
        let row = |key, name: &str, spacing_us| Row {
            key,
            name: name.to_owned(),
            call_us: one,
            spacing_us,
            by: if cycle.op_us > cycle.block_us { "processing (T_op)" } else { "storage (T_B)" },
        };
        rows.push(row("loopback", "loopback, one after the other", one));
        rows.push(row("loopback_concurrent", "loopback, processing and disk side by side", side));
    }
    if let Some(number) = args.daemons {
        let (spacing_us, limit) = daemons::spacing_us(&cycle, args.outstanding, number)?;
        let by = match limit {
            Limit::Cycle => "the cycle: too few calls outstanding",
            Limit::Daemons => "the daemons, always busy",
            Limit::Disk => "storage, always busy",
        };
        let name = format!("{number} daemons, {} outstanding", args.outstanding);
        rows.push(Row { key: "daemons", name, call_us: cycle.total_us(), spacing_us, by });
    }
    let mut notes = Vec::new();
    raid(args, &cycle, &mut rows)?;
    cascade(args, &cycle, &mut rows)?;
    datagrams(args, &cycle, &mut rows, &mut notes)?;
    Ok((rows, notes))
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
    let (level, said) = match level {
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
    let name = |what: &str| format!("RAID {said} of {disks} disks, {what}");
    rows.push(alone("raid", name("one call after the other"), &striped));
    let outstanding = format!("{} outstanding", args.outstanding);
    rows.push(overlapped("raid_concurrent", name(&outstanding), args, &striped));
    Ok(())
}

fn cascade(args: &Args, cycle: &Cycle, rows: &mut Vec<Row>) -> Result<(), ModelError> {
    if args.hop.is_empty() {
        return Ok(());
    }
    let kib = args.size as f64 / 1024.0;
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
    let hops: Vec<Hop> = std::iter::once(first).chain(further).collect();
    let servers = hops.len();
    let cascade = Cascade::new(hops, cycle.block_us / kib)?;
    for (key, what, forward) in [
        ("cascade", "each answers when the next has", Forward::Through),
        ("cascade_behind", "each answers at once", Forward::Behind),
    ] {
        rows.push(Row {
            key,
            name: format!("{servers} servers, {what}"),
            call_us: cascade.response_us(forward),
            spacing_us: args.size as f64 / cascade.bytes_per_s(forward) * 1e6,
            by: match forward {
                Forward::Through => "the way through all, or the disk",
                Forward::Behind => "the slowest of them, or the disk",
            },
        });
    }
    Ok(())
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
    // T_ser was told for the data; on the wire are the headers of all fragments as well.
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
    notes.push(format!(
        "a call is {} fragments and its reply {}; {:.3} % of tries fail, so {:.4} are needed, and \
         retransmission timers add {} to a call",
        way.fragments(call),
        way.fragments(reply),
        100.0 * way.failure(call, reply),
        way.tries(call, reply),
        span(way.timeouts_us(call, reply))
    ));
    Ok(())
}
