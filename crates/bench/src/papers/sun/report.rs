//! The guide's figures beside those measured.

use std::fmt::Write as _;

use harness::records;
use harness::table::{Table, left, right};
use perf::record::Run as Record;
use serde_json::json;

use super::{Found, PAPER_WITH, PAPER_WITHOUT, Pair, Side};
use crate::papers::args::Sun;

pub(super) fn text(found: &Found, markdown: bool) -> String {
    let mut disk = Table::new([
        left("1 MiB in FILE_SYNC WRITEs of 8 KiB"),
        left(""),
        right("guide: data + inode + indirect"),
        right("disk writes"),
        right("flushes"),
        right("time, ms"),
    ]);
    for (place, pair) in found.pairs() {
        for (name, side, paper) in sides(pair) {
            let of = |number: Option<u64>| {
                number.map_or_else(|| "-".to_owned(), |number| number.to_string())
            };
            let sum = paper.iter().sum::<u64>();
            disk.row([
                name.to_owned(),
                place.to_owned(),
                format!("{} + {} + {} = {sum}", paper[0], paper[1], paper[2]),
                of(side.disk.map(|disk| disk.writes)),
                of(side.disk.map(|disk| disk.flushes)),
                format!("{:.1}", side.file.as_millis_f64()),
            ]);
        }
    }
    let mut text = disk.shown(markdown);
    for (place, pair) in found.pairs() {
        writeln!(text, "\n{}", curve(place, pair).shown(markdown).trim_end()).ok();
    }
    writeln!(text, "\n{}", found.summary()).ok();
    text
}

/// Response times over the rates.
fn curve(place: &str, pair: &Pair) -> Table {
    let mut curve = Table::new([
        right(format!("{place}: WRITEs/s")),
        right("without: mean, ms"),
        right("p95"),
        right("with a log: mean, ms"),
        right("p95"),
    ]);
    let points = pair.without.curve.len().max(pair.with.curve.len());
    for at in 0..points {
        let sides = [&pair.without, &pair.with].map(|side| side.curve.get(at));
        let rate = sides.iter().flatten().map(|point| point.rate).next().unwrap_or(0.0);
        let mut row = vec![format!("{rate:.0}")];
        for point in sides {
            row.extend(match point {
                Some(point) if point.is_kept => {
                    [point.mean, point.p95].map(|time| format!("{:.2}", time.as_millis_f64()))
                }
                Some(_) => ["not kept".to_owned(), String::new()],
                None => [String::new(), String::new()],
            });
        }
        curve.row(row);
    }
    curve
}

fn sides(pair: &Pair) -> [(&'static str, &Side, [u64; 3]); 2] {
    [("without", &pair.without, PAPER_WITHOUT), ("with a log", &pair.with, PAPER_WITH)]
}

pub(super) fn record(args: &Sun, found: &Found) -> Record {
    let mut record = records::of("papers-sun");
    if let Some(with) = &args.with {
        record.target = records::server(with);
    }
    let without = args.without.as_ref().map(ToString::to_string);
    let given = [
        ("without", json!(without)),
        ("disk", args.disk.clone().into()),
        ("sim", args.sim.to_string().into()),
        ("sim_log", args.sim_log.to_string().into()),
    ];
    records::parameters(&mut record, given);
    for (place, pair) in found.pairs() {
        // The figures of servers have the names that they had when there were no others.
        let before = if place == "emulated" { "emulated/" } else { "" };
        for (name, side, paper) in sides(pair) {
            let key = format!("{before}{}", name.split(' ').next().unwrap_or(name));
            metrics(&mut record, &key, side, &paper);
        }
    }
    record
}

fn metrics(record: &mut Record, key: &str, side: &Side, paper: &[u64]) {
    record.metric(&format!("{key}/paper_disk_writes"), paper.iter().sum::<u64>() as f64, "");
    if let Some(disk) = side.disk {
        record.metric(&format!("{key}/disk_writes"), disk.writes as f64, "");
        record.metric(&format!("{key}/disk_flushes"), disk.flushes as f64, "");
    }
    record.metric(&format!("{key}/file_ms"), side.file.as_millis_f64(), "ms");
    for point in side.curve.iter().filter(|point| point.is_kept) {
        let name = |what: &str| format!("{key}/{:.0}/{what}", point.rate);
        record.metric(&name("mean_ms"), point.mean.as_millis_f64(), "ms");
        record.metric(&name("p95_ms"), point.p95.as_millis_f64(), "ms");
    }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;

    use super::super::{Point, Requests};
    use super::*;

    fn side(writes: u64, means_us: &[u64]) -> Side {
        let point = |(at, mean): (usize, &u64)| Point {
            rate: [50.0, 100.0, 200.0][at],
            mean: Nanos::from_micros(*mean),
            p95: Nanos::from_micros(2 * mean),
            is_kept: *mean < 9_000,
        };
        Side {
            disk: Some(Requests { writes, flushes: 3 }),
            file: Nanos::from_millis(writes),
            curve: means_us.iter().enumerate().map(point).collect(),
        }
    }

    #[test]
    fn the_guides_figures_stand_beside_those_measured() {
        let pair = Pair { without: side(400, &[800, 9_000]), with: side(130, &[200, 250, 900]) };
        let found = Found { emulated: pair.clone(), real: Some(pair.clone()) };
        let text = text(&found, false);
        for part in ["128 + 128 + 116 = 372", "128 + 1 + 1 = 130", "not kept", "0.90", "1/4.00"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(text.contains("this disk: WRITEs/s") && pair.is_met(), "{text}");
        let slower = Pair { without: side(400, &[800]), with: side(130, &[900]) };
        let more = Pair { without: side(130, &[800]), with: side(400, &[200]) };
        assert!(!slower.is_met() && !more.is_met());
    }
}
