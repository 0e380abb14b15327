//! What `netstat -i` prints: packets and errors of each interface, as Linux, BSD and Sun have them.
//!
//! Columns are found by their names. An address of its own may be missing in a line (BSD's links
//! without one), so numbers are counted from the end of the line.

use super::device::{Device, Traffic};
use super::nothing;
use crate::fields::{Line, Word};
use crate::problem::Problem;
use crate::rpc::bounded;

/// Whether a text looks like it.
pub fn is_likely(text: &str) -> bool {
    text.lines().any(|line| columns(line).is_some())
}

/// The names of the columns, where a line is such a head.
fn columns(line: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = line.split_whitespace().collect();
    let first = *names.first()?;
    let is_head = (first == "Iface" && names.contains(&"RX-OK"))
        || (first == "Name" && names.contains(&"Ipkts"));
    is_head.then_some(names)
}

/// Reads the text: of an interface with several lines (one for each address) the first.
///
/// # Errors
/// The first interface whose line is broken, or none.
pub fn read(text: &[u8]) -> Result<Vec<Device>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut devices: Vec<Device> = Vec::new();
    let mut names: Option<Vec<&str>> = None;
    for line in Line::all(&text) {
        bounded(&line)?;
        if let Some(found) = columns(line.whole()) {
            names = Some(found);
            continue;
        }
        let (Some(names), false) = (&names, line.trimmed().is_empty()) else { continue };
        let Some(row) = Row::of(line, names) else { continue };
        let device = if names.first() == Some(&"Iface") { row.linux() } else { row.bsd() }?;
        if !devices.iter().any(|other| other.name == device.name) {
            devices.push(device);
        }
    }
    if devices.is_empty() { Err(nothing()) } else { Ok(devices) }
}

/// A line of an interface, below the names of its columns.
struct Row<'a> {
    line: Line<'a>,
    words: Vec<Word<'a>>,
    names: &'a [&'a str],
    name: String,
}

impl<'a> Row<'a> {
    fn of(line: Line<'a>, names: &'a [&'a str]) -> Option<Self> {
        let words: Vec<Word<'_>> = line.words().collect();
        let name = words.first()?.text.trim_end_matches('*').to_owned();
        Some(Self { line, words, names, name })
    }

    /// The number in a column; 0 where there is no such column.
    fn number(&self, wanted: &str) -> Result<u64, Problem> {
        let Some(at) = self.names.iter().position(|name| *name == wanted) else { return Ok(0) };
        // A flag at the end (`BMRU`) may be missing, and an address in the middle.
        let behind = self.names.len() - at;
        match self.words.len().checked_sub(behind).and_then(|at| self.words.get(at)) {
            Some(word) => word.number(),
            None => Err({ self.line }.word().unexpected("a number for each column")),
        }
    }

    fn linux(self) -> Result<Device, Problem> {
        let direction = |begin: &str| -> Result<Traffic, Problem> {
            let number = |what: &str| self.number(&format!("{begin}-{what}"));
            let (packets, errors) = (number("OK")?, number("ERR")?);
            Ok(Traffic {
                bytes: 0,
                packets,
                errors,
                drops: number("DRP")?,
                overruns: number("OVR")?,
            })
        };
        let (received, sent) = (direction("RX")?, direction("TX")?);
        Ok(Device { name: self.name, received, sent, collisions: 0 })
    }

    fn bsd(self) -> Result<Device, Problem> {
        let direction = |begin: &str| -> Result<Traffic, Problem> {
            let number = |what: &str| self.number(&format!("{begin}{what}"));
            let (packets, errors) = (number("pkts")?, number("errs")?);
            Ok(Traffic { bytes: 0, packets, errors, drops: number("drop")?, overruns: 0 })
        };
        let (received, sent) = (direction("I")?, direction("O")?);
        let collisions = if self.names.contains(&"Collis") { "Collis" } else { "Coll" };
        let collisions = self.number(collisions)?;
        Ok(Device { name: self.name, received, sent, collisions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "Kernel Interface table
Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg
eth0      1500   120000     30      5      1    90000      2      0      0 BMRU
lo       65536       10      0      0      0       10      0      0      0 LRU
";
    /// As the guide of 1990 shows it.
    const SUN: &str =
        "Name  Mtu  Net/Dest      Address        Ipkts  Ierrs Opkts  Oerrs Collis Queue
le0   1500 ebb-ether     thud           120000 12    110000 0     5600   0
lo0   1536 loopback      localhost      20     0     20     0     0      0
";

    #[test]
    fn columns_are_found_by_their_names_in_both_kinds() {
        let linux = read(LINUX.as_bytes()).unwrap();
        assert_eq!((linux.len(), linux[0].name.as_str()), (2, "eth0"));
        assert_eq!((linux[0].received.errors, linux[0].received.overruns), (30, 1));
        assert_eq!(linux[0].sent.packets, 90_000);
        let sun = read(SUN.as_bytes()).unwrap();
        assert_eq!((sun[0].received.packets, sun[0].received.errors), (120_000, 12));
        assert_eq!((sun[0].sent.packets, sun[0].collisions), (110_000, 5_600));
        assert!(is_likely(LINUX) && is_likely(SUN) && !is_likely("Name of a pet\n"));
    }

    #[test]
    fn a_line_that_is_broken_is_named_and_an_address_less_is_none() {
        let bsd = "Name Mtu Network Address Ipkts Ierrs Opkts Oerrs Coll\n\
                   em0 1500 <Link#1> 00:11 7 1 8 0 2\nem0 1500 10.0.0.0/8 7 - 8 - -\n";
        let problem = read(bsd.as_bytes()).unwrap_err();
        assert_eq!(problem.line, 3, "{problem}");
        let head: String = bsd.lines().take(2).flat_map(|line| [line, "\n"]).collect();
        assert_eq!(read(head.as_bytes()).unwrap()[0].collisions, 2);
        assert!(read(b"Iface RX-OK\n").is_err() && read(b"").is_err());
    }
}
