//! The guide's figures beside those measured.

use std::fmt::Write as _;

use harness::records;
use harness::table::{Table, left, right};
use perf::record::Run as Record;

use super::{Found, PAPER_WITH, PAPER_WITHOUT, Side};
use crate::papers::args::Sun;

pub(super) fn text(found: &Found, markdown: bool) -> String {
    let mut disk = Table::new([
        left("1 MiB in FILE_SYNC WRITEs of 8 KiB"),
        right("guide: data + inode + indirect"),
        right("disk writes"),
        right("flushes"),
        right("time, ms"),
    ]);
    for (name, side, paper) in sides(found) {
        let of = |number: Option<u64>| {
            number.map_or_else(|| "-".to_owned(), |number| number.to_string())
        };
        disk.row([
            name.to_owned(),
            format!("{} + {} + {} = {}", paper[0], paper[1], paper[2], paper.iter().sum::<u64>()),
            of(side.disk.map(|disk| disk.writes)),
            of(side.disk.map(|disk| disk.flushes)),
            format!("{:.1}", side.file.as_millis_f64()),
        ]);
    }
    let mut curve = Table::new([
        right("WRITEs/s"),
        right("without: mean, ms"),
        right("p95"),
        right("with a log: mean, ms"),
        right("p95"),
    ]);
    let points = found.without.curve.len().max(found.with.curve.len());
    for at in 0..points {
        let sides = [&found.without, &found.with].map(|side| side.curve.get(at));
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
    let mut text = disk.shown(markdown);
    writeln!(text, "\n{}\n{}", curve.shown(markdown).trim_end(), found.summary()).ok();
    text
}

fn sides(found: &Found) -> [(&'static str, &Side, [u64; 3]); 2] {
    [("without", &found.without, PAPER_WITHOUT), ("with a log", &found.with, PAPER_WITH)]
}

pub(super) fn record(args: &Sun, found: &Found) -> Record {
    let mut record = records::of("papers-sun");
    record.target = records::server(&args.with);
    let given = [("without", args.without.to_string().into()), ("disk", args.disk.clone().into())];
    records::parameters(&mut record, given);
    for (name, side, paper) in sides(found) {
        let key = name.split(' ').next().unwrap_or(name);
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
    record
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
        let found = Found { without: side(400, &[800, 9_000]), with: side(130, &[200, 250, 900]) };
        let text = text(&found, false);
        for part in ["128 + 128 + 116 = 372", "128 + 1 + 1 = 130", "not kept", "0.90", "1/4.00"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(found.is_met());
        let slower = Found { without: side(400, &[800]), with: side(130, &[900]) };
        let more = Found { without: side(130, &[800]), with: side(400, &[200]) };
        assert!(!slower.is_met() && !more.is_met());
    }
}
