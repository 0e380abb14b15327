//! What the kernel counts of datagrams, by the names of `/proc/net/snmp`, and of one socket.
//!
//! The host's counters have every process's traffic in them (of this network namespace); the drops
//! of a socket are its own. Columns differ between kernels, so they are found by name.

use std::fs;
use std::os::fd::AsFd;

use super::protocol::Report;

/// A reading of the host's counters; what this kernel does not have stays empty.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Host {
    /// Datagrams that could not be delivered, for whatever reason (`Udp InErrors`).
    pub in_errors: Option<u64>,
    /// Of these, for want of room at a socket (`Udp RcvbufErrors`).
    pub receive_buffer_errors: Option<u64>,
    /// Datagrams that could not be sent for want of room (`Udp SndbufErrors`).
    pub send_buffer_errors: Option<u64>,
    /// Datagrams of which not every fragment came in time (`Ip ReasmFails`).
    pub reassembly_failures: Option<u64>,
}

impl Host {
    /// Reads them now.
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/net/snmp").unwrap_or_default())
    }

    /// Counted since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.wrapping_sub(then?));
        Self {
            in_errors: less(self.in_errors, earlier.in_errors),
            receive_buffer_errors: less(self.receive_buffer_errors, earlier.receive_buffer_errors),
            send_buffer_errors: less(self.send_buffer_errors, earlier.send_buffer_errors),
            reassembly_failures: less(self.reassembly_failures, earlier.reassembly_failures),
        }
    }

    fn parse(snmp: &str) -> Self {
        let find = |protocol: &str, name: &str| {
            let mut lines = snmp.lines().filter_map(|line| line.strip_prefix(protocol));
            let (names, values) = (lines.next()?, lines.next()?);
            let at = names.split_whitespace().position(|found| found == name)?;
            values.split_whitespace().nth(at)?.parse().ok()
        };
        Self {
            in_errors: find("Udp:", "InErrors"),
            receive_buffer_errors: find("Udp:", "RcvbufErrors"),
            send_buffer_errors: find("Udp:", "SndbufErrors"),
            reassembly_failures: find("Ip:", "ReasmFails"),
        }
    }

    pub(super) fn put_into(self, report: &mut Report) {
        report.host_in_errors = self.in_errors;
        report.host_receive_buffer_errors = self.receive_buffer_errors;
        report.host_reassembly_failures = self.reassembly_failures;
    }
}

/// Datagrams that the kernel has dropped at this UDP socket so far.
pub fn drops(socket: &impl AsFd) -> Option<u64> {
    let inode = rustix::fs::fstat(socket.as_fd()).ok()?.st_ino;
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"];
    tables.iter().find_map(|path| drops_of(inode, &fs::read_to_string(path).ok()?))
}

/// In a table of sockets, whose tenth column is the inode and whose last the drops.
fn drops_of(inode: u64, table: &str) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let found = fields.get(9)?.parse() == Ok(inode);
        if found { fields.last()?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL ReasmOKs ReasmFails
Ip: 1 64 10 3
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
Udp: 100 2 7 90 5 1 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors
UdpLite: 0 0 99 0 99
";

    #[test]
    fn columns_are_found_by_their_names() {
        let host = Host::parse(SNMP);
        assert_eq!((host.in_errors, host.receive_buffer_errors), (Some(7), Some(5)));
        assert_eq!((host.send_buffer_errors, host.reassembly_failures), (Some(1), Some(3)));
        assert_eq!(Host::parse("Udp: InErrors\nUdp:\n").in_errors, None);
        assert_eq!(Host::parse(""), Host::default());
        let later = Host { in_errors: Some(9), ..host };
        assert_eq!(later.since(host).in_errors, Some(2));
        assert_eq!(later.since(Host::default()).in_errors, None);
    }

    #[test]
    fn the_drops_of_a_socket_are_found_by_its_inode() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode ref pointer drops\n\
            12: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 55 2 0 0\n\
            13: 0100007F:0801 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 77 2 0 41";
        assert_eq!(drops_of(77, table), Some(41));
        assert_eq!(drops_of(55, table), Some(0));
        assert_eq!(drops_of(1, table), None);
        assert_eq!(drops_of(1, "\n\n x y\n"), None);
    }

    #[test]
    fn a_new_socket_has_dropped_nothing() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(matches!(drops(&socket), None | Some(0)));
    }
}
