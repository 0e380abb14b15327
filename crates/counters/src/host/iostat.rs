//! What `iostat -x` prints: how busy each disk was. Of several reports the last, since the first
//! is of all the time since the boot.
//!
//! Columns are found by their names, which differ between versions of sysstat.

use super::nothing;
use crate::fields::{Line, Word};
use crate::problem::{Found, Problem, Wrong};
use crate::rpc::bounded;

/// One device over the time of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUse {
    pub name: String,
    /// Share of the time in which something was outstanding.
    pub busy: f64,
    /// Mean time of a request, with its wait.
    pub wait_ms: f64,
    /// Requests a second.
    pub per_s: f64,
}

/// A rate above this is none that a disk has.
const VALUE_MAX: f64 = 1e12;

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.lines().any(is_head)
}

fn is_head(line: &str) -> bool {
    line.trim_start().starts_with("Device") && line.contains("%util")
}

/// Reads the text.
///
/// # Errors
/// The first device whose line is broken, or none.
pub fn read(text: &[u8]) -> Result<Vec<DiskUse>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut disks: Vec<DiskUse> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        if is_head(line.whole()) {
            names = line.whole().split_whitespace().collect();
            disks.clear();
            continue;
        }
        let (Some(name), false) = (line.next(), names.is_empty()) else {
            names.clear();
            continue;
        };
        let values =
            line.words().map(|word| number(&word)).collect::<Result<Vec<f64>, Problem>>()?;
        if values.len() + 1 != names.len() {
            let what = Found::word(name.text).to_string();
            let (expected, found) = (names.len() - 1, values.len());
            return Err(name.wrong(Wrong::TooFew { what, expected, found }));
        }
        disks.push(disk(name.text, &names, &values));
    }
    if disks.is_empty() { Err(nothing()) } else { Ok(disks) }
}

/// Decimal commas are those of other locales.
fn number(word: &Word<'_>) -> Result<f64, Problem> {
    let parsed: Option<f64> = word.text.replace(',', ".").parse().ok();
    let finite = parsed.filter(|value| (0.0..VALUE_MAX).contains(value));
    finite.ok_or_else(|| word.unexpected("a number"))
}

fn disk(name: &str, names: &[&str], values: &[f64]) -> DiskUse {
    let of = |wanted: &str| {
        let at = names.iter().position(|name| *name == wanted)?;
        values.get(at.checked_sub(1)?).copied()
    };
    let (reads, writes) = (of("r/s").unwrap_or(0.0), of("w/s").unwrap_or(0.0));
    let each = of("r_await").zip(of("w_await")).map(|(read, write)| {
        (read * reads + write * writes) / (reads + writes).max(f64::MIN_POSITIVE)
    });
    DiskUse {
        name: name.to_owned(),
        busy: of("%util").unwrap_or(0.0) / 100.0,
        wait_ms: of("await").or(each).unwrap_or(0.0),
        per_s: reads + writes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "Linux 6.1.0 (host) \t01/02/2026 \t_x86_64_\t(2 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    0.00    1.00   40.00    0.00   58.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
sda              1.00     16.00     0.00   0.00    2.00    16.00    9.00    900.00     0.00   0.00    4.00    64.00    0.05   3.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
sda             10.00    160.00     0.00   0.00   20.00    16.00   90.00   9000.00     0.00   0.00   40.00    64.00    3.50  97.00
";
    const OLD: &str = "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await  svctm  %util
sdb               0,00     0,10    2,00    3,00    10,00    20,00     8,00     0,01    1,50   0,40   0,20
";

    #[test]
    fn the_last_report_counts_whatever_the_version() {
        let [sda] = &read(NEW.as_bytes()).unwrap()[..] else { panic!("one disk") };
        assert!((sda.busy - 0.97).abs() < 1e-9 && (sda.wait_ms - 38.0).abs() < 1e-9, "{sda:?}");
        assert!((sda.per_s - 100.0).abs() < 1e-9);
        let [sdb] = &read(OLD.as_bytes()).unwrap()[..] else { panic!("one disk") };
        assert!((sdb.wait_ms - 1.5).abs() < 1e-9 && (sdb.busy - 0.002).abs() < 1e-9, "{sdb:?}");
    }

    #[test]
    fn a_broken_line_is_named() {
        let problem = read(NEW.replace("97.00", "x").as_bytes()).unwrap_err().to_string();
        assert!(problem.starts_with("line 10, column ") && problem.contains("\"x\""), "{problem}");
        assert!(read(b"Device %util\nsda\n").unwrap_err().to_string().contains("has 0 numbers"));
        assert!(read(b"Device: tps\nsda 1\n").is_err());
    }
}
