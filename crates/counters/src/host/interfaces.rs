//! What `netstat -i` prints: packets and errors of each interface, as Linux, BSD and Sun have them.
//!
//! Columns are found by their names. An address of its own may be missing in a line (BSD's links
//! without one), so numbers are counted from the end of the line.

use super::device::{Device, Traffic};
use super::nothing;
use crate::fields::Line;
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
    for mut line in Line::all(&text) {
        bounded(&line)?;
        if let Some(found) = columns(line.whole()) {
            names = Some(found);
            continue;
        }
        let (Some(names), false) = (&names, line.trimmed().is_empty()) else { continue };
        let mut words = Vec::new();
        while let Some(word) = line.next() {
            words.push(word);
        }
        let of = |wanted: &str| -> Result<u64, Problem> {
            let Some(at) = names.iter().position(|name| *name == wanted) else { return Ok(0) };
            // A flag at the end (`BMRU`) may be missing, and an address in the middle.
            let behind = names.len() - at;
            let word = words.len().checked_sub(behind).and_then(|at| words.get(at));
            match word {
                Some(word) => word.number(),
                None => Err(line.clone().word().unexpected("a number for each column")),
            }
        };
        let Some(name) = words.first().map(|word| word.text.trim_end_matches('*')) else {
            continue;
        };
        let linux = names.first() == Some(&"Iface");
        let device = if linux {
            let direction = |begin: &str| -> Result<Traffic, Problem> {
                Ok(Traffic {
                    bytes: 0,
                    packets: of(&format!("{begin}-OK"))?,
                    errors: of(&format!("{begin}-ERR"))?,
                    drops: of(&format!("{begin}-DRP"))?,
                    overruns: of(&format!("{begin}-OVR"))?,
                })
            };
            let (received, sent) = (direction("RX")?, direction("TX")?);
            Device { name: name.to_owned(), received, sent, collisions: 0 }
        } else {
            let direction =
                |packets: &str, errors: &str, drops: &str| -> Result<Traffic, Problem> {
                    let (packets, errors) = (of(packets)?, of(errors)?);
                    Ok(Traffic { bytes: 0, packets, errors, drops: of(drops)?, overruns: 0 })
                };
            let collisions = if names.contains(&"Collis") { of("Collis")? } else { of("Coll")? };
            Device {
                name: name.to_owned(),
                received: direction("Ipkts", "Ierrs", "Idrop")?,
                sent: direction("Opkts", "Oerrs", "Odrop")?,
                collisions,
            }
        };
        if !devices.iter().any(|other| other.name == device.name) {
            devices.push(device);
        }
    }
    if devices.is_empty() { Err(nothing()) } else { Ok(devices) }
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
