//! `/proc/net/dev`: packets of each network device, and what went wrong with them.

use super::nothing;
use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::{NUMBERS_MAX, bounded, first};

/// One device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Device {
    pub name: String,
    pub received: Traffic,
    pub sent: Traffic,
    pub collisions: u64,
}

/// One direction of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    pub bytes: u64,
    pub packets: u64,
    pub errors: u64,
    pub drops: u64,
    /// Of a queue between device and driver that was full.
    pub overruns: u64,
}

impl Traffic {
    fn since(self, before: Self) -> Self {
        Self {
            bytes: difference(self.bytes, before.bytes),
            packets: difference(self.packets, before.packets),
            errors: difference(self.errors, before.errors),
            drops: difference(self.drops, before.drops),
            overruns: difference(self.overruns, before.overruns),
        }
    }
}

impl Device {
    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            name: self.name.clone(),
            received: self.received.since(before.received),
            sent: self.sent.since(before.sent),
            collisions: difference(self.collisions, before.collisions),
        }
    }
}

/// Reads the file's content.
///
/// # Errors
/// The first device whose line is broken, or none.
pub fn read(text: &[u8]) -> Result<Vec<Device>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut devices = Vec::new();
    for line in Line::all(&text) {
        bounded(&line)?;
        // A name may stand at its colon, and the first number behind that without a blank.
        let Some((name, _)) = line.trimmed().split_once(':') else { continue };
        let mut numbers = line;
        numbers.skip_past(':');
        let numbers = numbers.numbers("a device", 16, NUMBERS_MAX)?;
        let [rb, rp, re, rd, ro, _, _, _, sb, sp, se, sd, so, collisions] = first(&numbers);
        devices.push(Device {
            name: name.to_owned(),
            received: Traffic { bytes: rb, packets: rp, errors: re, drops: rd, overruns: ro },
            sent: Traffic { bytes: sb, packets: sp, errors: se, drops: sd, overruns: so },
            collisions,
        });
    }
    if devices.is_empty() { Err(nothing()) } else { Ok(devices) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 10 0 0 0 0 0 0 100 10 0 0 0 0 0 0
  eth0:3000 30 3 2 1 0 0 0 4000 40 4 0 0 9 0 0
";

    #[test]
    fn devices_are_read_with_and_without_a_blank_behind_the_colon() {
        let devices = read(TEXT.as_bytes()).unwrap();
        assert_eq!((devices.len(), devices[1].name.as_str()), (2, "eth0"));
        assert_eq!((devices[1].received.errors, devices[1].collisions), (3, 9));
        let since = devices[1].since(&devices[0]);
        assert_eq!((since.received.bytes, since.sent.packets), (2_900, 30));
        assert!(read(b"eth0: 1 2").unwrap_err().to_string().contains("a device has 2 numbers"));
        assert!(read(b"hello").is_err());
    }
}
