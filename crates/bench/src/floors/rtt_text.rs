//! What `bench rtt` tells: as text and as a record.

use std::fmt::Write;
use std::net::SocketAddr;

use harness::compared::{Better, Compared, letter};
use harness::records::{self, bytes, cell, known, sample, spread};
use harness::table::{Table, left, right};
use load::floor::mib_per_s;
use load::floor::rtt::{Measured, Plan, Series, Transfers};
use load::latencies::histogram;
use perf::record::{Run as Record, Target};
use perf::stats::Sample;
use perf::units::Nanos;

use super::rtt::{Timed, name};
use super::{LOOPBACK, warn_of_loopback};
use crate::floors::args::Rtt;

pub(super) struct Report<'a> {
    args: &'a Rtt,
    plan: &'a Plan,
    peers: &'a [String],
    addresses: Vec<SocketAddr>,
    measured: &'a Measured,
}

/// One row in numbers, in microseconds.
struct Row {
    times: Sample,
    /// Of the medians of the blocks.
    medians: Option<Sample>,
}

impl Row {
    fn of(series: &Series) -> Option<Self> {
        let times = sample(series.times.iter().map(|time| time.as_micros_f64()))?;
        Some(Self { times, medians: sample(series.block_medians_us.iter().copied()) })
    }
}

fn cpu_us(series: &Series) -> f64 {
    series.cpu.as_micros_f64() / (series.times.len() as f64 + series.lost as f64).max(1.0)
}

/// Processor time of the thread that measured over the time it did.
fn own_share(measured: &Measured) -> f64 {
    let sum = |span: fn(&Series) -> Nanos| {
        measured.series.iter().map(|series| span(series).as_secs_f64()).sum::<f64>()
    };
    sum(|series| series.cpu) / sum(|series| series.span)
}

/// Of two rows; blocks of one took turns with those of the other.
fn compared(first: &Series, other: &Series) -> Option<Compared> {
    let blocks = |series: &Series| sample(series.block_medians_us.iter().copied());
    Compared::of(&blocks(first)?, &blocks(other)?, Better::Smaller)
}

fn rates(transfers: &Transfers) -> Option<Sample> {
    sample(transfers.spans.iter().map(|span| mib_per_s(transfers.bytes, *span)))
}

impl<'a> Report<'a> {
    pub(super) fn of(args: &'a Rtt, Timed { plan, peers, measured }: &'a Timed) -> Self {
        let addresses = plan.services.iter().map(|(_, service)| service.address).collect();
        Self { args, plan, peers, addresses, measured }
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        self.write(&mut out).ok();
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let from = if self.args.rate.is_some() { "since each was due" } else { "since each began" };
        writeln!(
            out,
            "rtt         {}; {} messages a row, in us, {from}; (..) the medians of blocks",
            self.peers.join(", "),
            self.args.trials
        )?;
        out.push_str(&self.table());
        for series in self.short_rows() {
            let name = name(self.plan, &series.exchange);
            let (size, done) = (bytes(series.message_bytes as u64), series.times.len());
            let (all, span) = (self.args.trials, series.span);
            writeln!(out, "{name} {size}: {done} of {all} messages in {span}")?;
        }
        if self.measured.series.iter().any(|series| series.refused.is_some()) {
            writeln!(out, "* NULL with bytes behind it: refused, which counts as a reply")?;
        }
        for transfers in &self.measured.transfers {
            self.write_transfers(out, transfers)?;
        }
        self.write_compared(out)?;
        if self.is_loopback() {
            writeln!(out, "{LOOPBACK}")?;
        }
        write!(out, "generator   {:.0} % of one processor", own_share(self.measured) * 100.0)?;
        if self.args.rate.is_some() {
            let late: u64 = self.measured.series.iter().map(|series| series.late).sum();
            write!(out, "; {late} messages began over 100 us late")?;
        }
        writeln!(out, "; nothing is stored or cached")
    }

    fn table(&self) -> String {
        let names = ["message", "min", "p50", "avg", "p90", "p99", "p99.9", "max", "lost", "CPU"];
        let marks = [left("")];
        let mut table = Table::new([left("")].into_iter().chain(names.map(right)).chain(marks));
        for series in &self.measured.series {
            let Some(Row { times, medians }) = Row::of(series) else { continue };
            let spread = medians.map(|m| format!(" ({:.1}..{:.1})", m.min(), m.max()));
            let us = |value: f64| format!("{value:.1}");
            let quantile = |share| known(times.quantile_if_known(share).map(us));
            table.row([
                name(self.plan, &series.exchange),
                bytes(series.message_bytes as u64),
                us(times.min()),
                format!("{:.1}{}", times.median(), spread.unwrap_or_default()),
                us(times.mean()),
                quantile(0.9),
                quantile(0.99),
                quantile(0.999),
                us(times.max()),
                series.lost.to_string(),
                us(cpu_us(series)),
                series.refused.as_ref().map_or("", |_| "*").to_owned(),
            ]);
        }
        table.text()
    }

    fn write_transfers(&self, out: &mut String, transfers: &Transfers) -> std::fmt::Result {
        let rates = rates(transfers);
        let megabits = rates.as_ref().map(|rates| rates.median() * 8.388_608);
        let spans = sample(transfers.spans.iter().map(|span| span.as_millis_f64()));
        write!(
            out,
            "transfer    {} {:>7} by {}: {} ms, {} MiB/s, {} Mbit/s",
            transfers.protocol.name(),
            bytes(transfers.bytes),
            bytes(self.plan.packet_bytes as u64),
            cell(spans.as_ref(), 2),
            cell(rates.as_ref(), 1),
            megabits.map_or_else(|| "-".to_owned(), |megabits| format!("{megabits:.0}")),
        )?;
        let incomplete = &transfers.incomplete;
        if !incomplete.is_empty() {
            let all = incomplete.len() + transfers.spans.len();
            let came = incomplete.iter().map(|report| report.bytes as f64).sum::<f64>();
            let lost = 1.0 - came / (incomplete.len() as f64 * transfers.bytes as f64);
            write!(
                out,
                "; {} of {all} were not complete, {:.2} % of their bytes lost (--transfer-rate)",
                incomplete.len(),
                lost * 100.0
            )?;
        }
        writeln!(out)
    }

    /// Which server answers faster, of several.
    fn write_compared(&self, out: &mut String) -> std::fmt::Result {
        if self.args.target.len() < 2 {
            return Ok(());
        }
        writeln!(out, "compared    by the medians of blocks; in brackets the interval of 95 %")?;
        for (number, target) in self.args.target.iter().enumerate() {
            writeln!(out, "  {}         {target}", letter(number))?;
        }
        let name = |row: &Series| name(self.plan, &row.exchange);
        let is_nfs = |row: &&Series| name(row).starts_with("nfs ");
        let nulls: Vec<&Series> = self.measured.series.iter().filter(is_nfs).collect();
        let is_first = |row: &&&Series| name(row).ends_with(" A");
        for first in nulls.iter().filter(is_first) {
            let others = nulls.iter().filter(|row| row.message_bytes == first.message_bytes);
            for other in others.filter(|row| !is_first(row)) {
                let Some(compared) = compared(first, other) else { continue };
                let sentence = compared.sentence("A", name(other).rsplit(' ').next().unwrap_or(""));
                writeln!(out, "  {:>8}  {sentence}", bytes(first.message_bytes as u64))?;
            }
        }
        Ok(())
    }

    /// Rows that ended before their number of messages.
    fn short_rows(&self) -> impl Iterator<Item = &Series> {
        let all = u64::from(self.args.trials);
        self.measured.series.iter().filter(move |row| row.times.len() as u64 + row.lost < all)
    }

    fn is_loopback(&self) -> bool {
        self.addresses.iter().all(|address| address.ip().is_loopback())
    }

    pub(super) fn record(&self) -> Record {
        let mut record = records::of("rtt");
        let kind = if self.args.to.is_some() { "far-end" } else { "server" };
        record.target = Target { kind: kind.to_owned(), ..Target::default() };
        record.target.other.insert("peers".to_owned(), self.peers.into());
        record.target.other.insert("cached".to_owned(), "nothing is stored or cached".into());
        let parameters = [
            ("trials", Some(u64::from(self.args.trials))),
            ("per_s", self.args.rate.map(u64::from)),
            ("reply_limit_ns", Some(self.args.reply_limit.as_nanos())),
            ("packet_bytes", Some(self.plan.packet_bytes as u64)),
            ("transfer_repeats", Some(u64::from(self.plan.transfer_repeats))),
            ("transfer_bytes_per_s", self.plan.transfer_bytes_per_s),
        ];
        records::parameters(&mut record, parameters);
        for series in &self.measured.series {
            self.record_series(&mut record, series);
        }
        for transfers in &self.measured.transfers {
            record_transfers(&mut record, transfers);
        }
        record.metric("generator_cpu_share", own_share(self.measured), "");
        warn_of_loopback(&mut record, self.is_loopback());
        record
    }

    fn record_series(&self, record: &mut Record, series: &Series) {
        let Some(Row { times, medians }) = Row::of(series) else { return };
        let name = name(self.plan, &series.exchange).replace(' ', "_");
        let name = format!("{name}_{}", series.message_bytes);
        if let Some(medians) = medians {
            spread(record, &format!("{name}_median_us"), &medians, "us");
        }
        record.metric(&format!("{name}_messages"), times.n() as f64, "messages");
        record.metric(&format!("{name}_min_us"), times.min(), "us");
        record.metric(&format!("{name}_mean_us"), times.mean(), "us");
        let typical =
            if record.value(&format!("{name}_median_us")).is_some() { "median" } else { "mean" };
        record.result(&format!("{name}_{typical}_us"), Better::Smaller);
        record.metric(&format!("{name}_max_us"), times.max(), "us");
        record.metric(&format!("{name}_lost"), series.lost as f64, "messages");
        record.metric(&format!("{name}_cpu_us"), cpu_us(series), "us");
        if self.args.rate.is_some() {
            record.metric(&format!("{name}_late"), series.late as f64, "messages");
        }
        record.histogram(&name, &histogram(&series.times));
        if let Some(refusal) = series.refused {
            let text = format!("{name}: the server refused what it answered: {refusal}");
            record.warn("null-refused", &text, "--size 40, which is NULL as it should be");
        }
    }
}

fn record_transfers(record: &mut Record, transfers: &Transfers) {
    let name = format!("transfer_{}_{}", transfers.protocol.name(), transfers.bytes);
    if let Some(spans) = sample(transfers.spans.iter().map(|span| span.as_millis_f64())) {
        spread(record, &format!("{name}_ms"), &spans, "ms");
    }
    if let Some(rates) = rates(transfers) {
        let name = format!("{name}_mib_per_s");
        spread(record, &name, &rates, "MiB/s");
        record.result(&name, Better::Larger);
    }
    record.metric(&format!("{name}_incomplete"), transfers.incomplete.len() as f64, "transfers");
    let drops: Option<u64> = transfers.incomplete.iter().map(|report| report.socket_drops).sum();
    if let Some(drops) = drops {
        record.metric(&format!("{name}_far_socket_drops"), drops as f64, "datagrams");
    }
}
