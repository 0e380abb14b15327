//! `nfskit model cycle`: the transaction cycle under the given conditions.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::cycle::cascade::{Cascade, Forward, Hop};
use perf::model::cycle::daemons::{self, Limit};
use perf::model::cycle::datagram::Datagrams;
use perf::model::cycle::loopback::Loopback;
use perf::model::cycle::mbit_per_s;
use perf::model::cycle::raid::{Array, Level};
use perf::model::error::ModelError;
use perf::model::transaction::{Bound, Capacity, Cycle, Path, Server, Storage, Transfer};
use perf::record::Run as Record;

use super::page::{Page, span, us};
use super::whatif::bound;
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

/// What the command shows.
pub(super) fn page(args: &Args) -> Result<Page, Failure> {
    let (rows, note) = rows(args)
        .map_err(|error| Failure::usage(error, "nfskit model cycle --help shows examples"))?;
    let mut page = Page::new("cycle", None);
    page.line(format_args!("calls of {}", scaled(args.size as f64)));
    let columns = [left(""), right("call"), right("spacing"), right("Mbit/s"), left("bound by")];
    page.table(&Table::of(columns, rows.iter().map(|row| row.cells(args))));
    rows.iter().for_each(|row| row.write(args, &mut page.record));
    note.iter().for_each(|note| page.line(format_args!("note: {note}")));
    Ok(page)
}

impl Row {
    fn mbit_per_s(&self, args: &Args) -> f64 {
        mbit_per_s(args.size as f64, self.spacing_us)
    }

    fn cells(&self, args: &Args) -> [String; 5] {
        let rate = format!("{:.2}", self.mbit_per_s(args));
        let [call, spacing] = [self.call_us, self.spacing_us].map(span);
        [self.name.clone(), call, spacing, rate, self.by.to_owned()]
    }

    fn write(&self, args: &Args, record: &mut Record) {
        record.metric(&format!("{}/call_us", self.key), self.call_us, "us");
        record.metric(&format!("{}/mbit_per_s", self.key), self.mbit_per_s(args), "Mbit/s");
    }
}

impl Args {
    fn kib(&self) -> f64 {
        self.size as f64 / 1024.0
    }

    fn outstanding(&self) -> String {
        format!("{} outstanding", self.outstanding)
    }

    fn cycle(&self) -> Result<Cycle, ModelError> {
        let cycle = Cycle {
            prop_us: us(self.round_trip),
            ser_us: self.kib() * us(self.ser),
            op_us: us(self.op),
            block_us: us(self.block),
        };
        match cycle.total_us() {
            got if got <= 0.0 => Err(ModelError::NotPositive { what: "the cycle", got }),
            _ => Ok(cycle),
        }
    }
}

/// All cases, and a note on the last.
fn rows(args: &Args) -> Result<(Vec<Row>, Option<String>), ModelError> {
    let cycle = args.cycle()?;
    let mut rows = vec![alone("sequential", "one call after the other".to_owned(), &cycle)];
    let side_by_side = format!("{}, network and disk side by side", args.outstanding());
    rows.push(overlapped("concurrent", side_by_side, args, &cycle));
    rows.extend(loopback(&cycle)?.into_iter().flatten());
    rows.extend(with_daemons(args, &cycle)?);
    rows.extend(raid(args, &cycle)?.into_iter().flatten());
    rows.extend(cascade(args, &cycle)?.into_iter().flatten());
    let Some((datagrams, note)) = datagrams(args, &cycle)? else { return Ok((rows, None)) };
    rows.extend(datagrams);
    Ok((rows, Some(note)))
}

fn loopback(cycle: &Cycle) -> Result<Option<[Row; 2]>, ModelError> {
    if cycle.op_us + cycle.block_us <= 0.0 {
        return Ok(None);
    }
    let loopback = Loopback::new(cycle.op_us, cycle.block_us)?;
    let (call_us, side_us) = (loopback.sequential_us(), loopback.concurrent_us());
    let by = if cycle.op_us > cycle.block_us { "processing (T_op)" } else { "storage (T_B)" };
    let row =
        |key, name: &str, spacing_us| Row { key, name: name.to_owned(), call_us, spacing_us, by };
    Ok(Some([
        row("loopback", "loopback, one after the other", call_us),
        row("loopback_concurrent", "loopback, processing and disk side by side", side_us),
    ]))
}

fn with_daemons(args: &Args, cycle: &Cycle) -> Result<Option<Row>, ModelError> {
    let Some(number) = args.daemons else { return Ok(None) };
    let (spacing_us, limit) = daemons::spacing_us(cycle, args.outstanding, number)?;
    let by = limited_by(limit);
    let name = format!("{number} daemons, {}", args.outstanding());
    Ok(Some(Row { key: "daemons", name, call_us: cycle.total_us(), spacing_us, by }))
}

fn limited_by(limit: Limit) -> &'static str {
    match limit {
        Limit::Cycle => "the cycle: too few calls outstanding",
        Limit::Daemons => "the daemons, always busy",
        Limit::Disk => "storage, always busy",
    }
}

/// Each call waits for the one before.
fn alone(key: &'static str, name: String, cycle: &Cycle) -> Row {
    let us = cycle.total_us();
    let by = bound(Bound::Cycle(cycle.dominating()));
    Row { key, name, call_us: us, spacing_us: us, by }
}

/// As many as are outstanding, on a server that works on while its disk does.
fn overlapped(key: &'static str, name: String, args: &Args, cycle: &Cycle) -> Row {
    let (ser_us_per_kib, block_us_per_kib) =
        (cycle.ser_us / args.kib(), cycle.block_us / args.kib());
    let path = Path {
        round_trip_us: cycle.prop_us,
        ser_us_per_kib,
        op_us: cycle.op_us,
        overhead_us: 0.0,
        capacity: Capacity { call_us: 0.0, us_per_kib: ser_us_per_kib },
        storage: storage(block_us_per_kib, block_us_per_kib),
    };
    // The COMMIT's own round trip is spread over so many calls that it is nothing.
    let transfer =
        Transfer { call_bytes: args.size, outstanding: args.outstanding, commit_bytes: 1 << 50 };
    let prediction = path.predict(Server::Concurrent, &transfer);
    let spacing_us = args.size as f64 / f64::from(1 << 20) / prediction.mib_per_s * 1e6;
    Row { key, name, call_us: cycle.total_us(), spacing_us, by: bound(prediction.bound) }
}

/// A disk that takes time for bytes alone.
fn storage(us_per_kib: f64, left_us_per_kib: f64) -> Storage {
    Storage { sync_us: 0.0, us_per_kib, left_us_per_kib, unhidden_us_per_kib: 0.0 }
}

fn raid(args: &Args, cycle: &Cycle) -> Result<Option<[Row; 2]>, ModelError> {
    let Some((level, disks)) = args.raid.zip(args.disks) else { return Ok(None) };
    let (level, number) = match level {
        RaidLevel::Zero => (Level::Raid0, 0),
        RaidLevel::Five => (Level::Raid5, 5),
        RaidLevel::Ten => (Level::Raid10, 10),
    };
    let disk = storage(cycle.block_us / args.kib(), 0.0);
    let synced = args.sync_size.unwrap_or(args.size);
    let array = Array::new(level, disks, args.unit)?.storage(&disk, synced);
    let striped = Cycle { block_us: array.us_per_kib * args.kib(), ..*cycle };
    let name = |what: &str| format!("RAID {number} of {disks} disks, {what}");
    Ok(Some([
        alone("raid", name("one call after the other"), &striped),
        overlapped("raid_concurrent", name(&args.outstanding()), args, &striped),
    ]))
}

fn cascade(args: &Args, cycle: &Cycle) -> Result<Option<[Row; 2]>, ModelError> {
    if args.hop.is_empty() {
        return Ok(None);
    }
    let hops = hops(args, cycle);
    let servers = hops.len();
    let cascade = Cascade::new(hops, cycle.block_us / args.kib())?;
    let row = |key, what: &str, forward, by| Row {
        key,
        name: format!("{servers} servers, {what}"),
        call_us: cascade.response_us(forward),
        spacing_us: args.size as f64 / cascade.bytes_per_s(forward) * 1e6,
        by,
    };
    let (through, behind) = ("each answers when the next has", "each answers at once");
    Ok(Some([
        row("cascade", through, Forward::Through, "the round trip through all, or the disk"),
        row("cascade_behind", behind, Forward::Behind, "the slowest of them, or the disk"),
    ]))
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

fn datagrams(args: &Args, cycle: &Cycle) -> Result<Option<([Row; 2], String)>, ModelError> {
    let Some(mtu) = args.mtu else { return Ok(None) };
    let way = Datagrams::new(mtu, args.loss, us(args.timeout))?;
    let (call, reply) = (args.size + HEADERS_BYTES, HEADERS_BYTES);
    if !way.tries(call, reply).is_finite() {
        let fragments = way.fragments(call) + way.fragments(reply);
        return Err(ModelError::NoneWhole { loss: args.loss, fragments });
    }
    // T_ser was given for the data; on the wire are the headers of all fragments as well.
    let wire = way.wire_bytes(call) as f64 / args.size as f64;
    let cycle = Cycle { ser_us: cycle.ser_us * wire, ..*cycle };
    let call_us = way.response_us(cycle.total_us(), call, reply);
    let stage_us = cycle.ser_us.max(cycle.block_us);
    let per_s = way.calls_per_s(args.outstanding, cycle.total_us(), stage_us, (call, reply))?;
    let by = match call_us > 2.0 * cycle.total_us() {
        true => "waits for retransmissions",
        false => "the cycle, or its slowest stage",
    };
    let name = |what: &str| format!("datagrams, MTU {mtu}, loss {}, {what}", args.loss);
    let row = |key, what: &str, spacing_us| Row { key, name: name(what), call_us, spacing_us, by };
    let one_by_one = row("datagrams", "one by one", call_us);
    let together = row("datagrams_concurrent", &args.outstanding(), 1e6 / per_s);
    Ok(Some(([one_by_one, together], fragments(&way, call, reply))))
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
