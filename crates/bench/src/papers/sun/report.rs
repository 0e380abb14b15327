//! The guide's figures beside those measured.

use std::fmt::Write as _;

use harness::records::{self, known};
use harness::table::{Table, left, right};
use perf::record::Run as Record;
use perf::units::Nanos;
use serde_json::json;

use super::disk::Requests;
use super::found::{Found, PAPER_WITH, PAPER_WITHOUT, Pair, Side};
use crate::papers::args::Sun;

pub(super) fn text(found: &Found, markdown: bool) -> String {
    let mut disk = Table::new([
        left("1 MiB in FILE_SYNC WRITEs of 8 KiB"),
        left(""),
        right("guide: data + inode + indirect"),
        right("disk: writes with data"),
        right("flushes"),
        right("MiB"),
        right("the log's, if another: writes with data"),
        right("flushes"),
        right("time, ms"),
    ]);
    for (place, pair) in found.pairs() {
        for (name, side, paper) in sides(pair) {
            let sum = paper.iter().sum::<u64>();
            let mut row = vec![
                name.to_owned(),
                place.to_owned(),
                format!("{} + {} + {} = {sum}", paper[0], paper[1], paper[2]),
            ];
            let [files, log] = [side.disks.files, side.disks.log].map(cells);
            row.extend(files);
            row.extend(log.into_iter().take(2));
            row.push(format!("{:.1}", side.file.as_millis_f64()));
            disk.row(row);
        }
    }
    let mut text = disk.shown(markdown);
    if let Some(note) = &found.note {
        writeln!(text, "\n{note}").ok();
    }
    for (place, pair) in found.pairs() {
        writeln!(text, "\n{}", curve(place, pair).shown(markdown).trim_end()).ok();
    }
    writeln!(text, "\n{}", found.summary()).ok();
    text
}

/// Writes, flushes and MiB of a disk.
fn cells(disk: Option<Requests>) -> [String; 3] {
    let of = |disk: Requests| {
        let mib = disk.bytes as f64 / f64::from(1 << 20);
        [disk.with_data(), disk.flushes.to_string(), format!("{mib:.1}")]
    };
    disk.map_or_else(|| ["-"; 3].map(str::to_owned), of)
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
                Some(point) if point.is_reached => {
                    let ms = |time: Nanos| format!("{:.2}", time.as_millis_f64());
                    [ms(point.mean), known(point.p95.map(ms))]
                }
                Some(_) => ["not reached".to_owned(), String::new()],
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
        ("log_disk", args.log_disk.clone().into()),
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
    for (disk, requests) in [("disk", side.disks.files), ("log_disk", side.disks.log)] {
        let Some(requests) = requests else { continue };
        let mut metric = |what: &str, number: u64, unit: &str| {
            record.metric(&format!("{key}/{disk}_{what}"), number as f64, unit);
        };
        metric("writes", requests.writes, "");
        metric("empty_writes_max", requests.empty_max, "");
        metric("flushes", requests.flushes, "");
        metric("bytes_written", requests.bytes, "B");
    }
    record.metric(&format!("{key}/file_ms"), side.file.as_millis_f64(), "ms");
    for point in side.curve.iter().filter(|point| point.is_reached) {
        let name = |what: &str| format!("{key}/{:.0}/{what}", point.rate);
        record.metric(&name("mean_ms"), point.mean.as_millis_f64(), "ms");
        record.metric_if_known(&name("p95_ms"), point.p95.map(Nanos::as_millis_f64), "ms");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::sun::disk;
    use crate::papers::sun::found::Point;

    fn side(writes: u64, means_us: &[u64]) -> Side {
        let point = |(at, mean): (usize, &u64)| Point {
            rate: [50.0, 100.0, 200.0][at],
            mean: Nanos::from_micros(*mean),
            p95: Some(Nanos::from_micros(2 * mean)),
            is_reached: *mean < 9_000,
        };
        let files = Requests { writes, flushes: 3, bytes: 3 << 19, empty_max: 2 };
        Side {
            disks: disk::Pair { files: Some(files), log: None },
            file: Nanos::from_millis(writes),
            curve: means_us.iter().enumerate().map(point).collect(),
        }
    }

    #[test]
    fn the_guides_figures_stand_beside_those_measured() {
        let pair = Pair { without: side(400, &[800, 9_000]), with: side(130, &[200, 250, 900]) };
        let note = Some("a note".to_owned());
        let found = Found { emulated: pair.clone(), real: Some(pair), note };
        let text = text(&found, false);
        let parts = ["128 + 128 + 116 = 372", "128 + 1 + 1 = 130", "128-130", "1.5", "a note"];
        let curve = ["not reached", "0.90", "1/4.00", "0.33 of the writes (the guide: 0.35)"];
        for part in parts.iter().chain(&curve) {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(text.contains("this disk: WRITEs/s") && !text.contains("missed"), "{text}");
    }

    #[test]
    fn what_a_log_does_not_do_is_missed_by_name() {
        let missed = |without: Side, with: Side| Pair { without, with }.missed().join(", ");
        let of = |without: &[u64], with: &[u64]| missed(side(400, without), side(130, with));
        assert_eq!(of(&[800, 800, 800], &[900, 700, 700]), "", "one rate of three");
        assert_eq!(of(&[800, 800], &[900, 790, 9_000]), "");
        assert!(of(&[800], &[900]).contains("slower"));
        assert_eq!(of(&[9_000], &[200]), "", "no rate is reached by both");
        assert!(of(&[800, 800], &[700, 9_000]).contains("a rate as high"));
        assert!(of(&[9_000], &[9_000]).contains("a rate as high"));
        let same = || side(130, &[800]);
        assert_eq!(missed(same(), same()), "fewer writes of the disk");
        let mut flushed = same();
        flushed.disks.files = Some(Requests { writes: 100, flushes: 4, bytes: 0, empty_max: 4 });
        assert_eq!(missed(same(), flushed), "no more flushes of the disk");
    }
}
