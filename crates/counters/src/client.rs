//! `/proc/net/rpc/nfs`: what all mounts of a host have called since its module was loaded.

use super::fields::Line;
use super::problem::{Problem, Wrong};
use super::procedures::{Procedures, Version};
use super::rpc::{self, NUMBERS_MAX, Net, bounded, first, set};

/// See the module's head. What an old or a new kernel does not have is none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Client {
    pub net: Option<Net>,
    pub rpc: Option<Rpc>,
    pub v2: Option<Procedures>,
    pub v3: Option<Procedures>,
    /// Procedures as this kernel's client names them, with NULL the first.
    pub v4: Option<Procedures>,
}

/// `rpc`: calls, and what had to be done twice.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rpc {
    pub calls: u64,
    pub retransmissions: u64,
    pub authentication_refreshes: u64,
    /// What nfsstat printed of SunOS and its successors: calls that failed, replies that nobody
    /// waited for, and tries that ended without a reply. Linux counts none of them for all mounts.
    pub bad_calls: Option<u64>,
    pub bad_xids: Option<u64>,
    pub timeouts: Option<u64>,
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is broken, or none that is known.
pub fn read(text: &[u8]) -> Result<Client, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Client::default();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let number = line.number;
        let tag = line.word();
        match tag.text {
            "net" => set(&mut all.net, "net", number, Net::read(&mut line)?)?,
            "rpc" => {
                let numbers = line.numbers("rpc", 3, NUMBERS_MAX)?;
                let [calls, retransmissions, authentication_refreshes] = first(&numbers);
                let rpc =
                    Rpc { calls, retransmissions, authentication_refreshes, ..Rpc::default() };
                set(&mut all.rpc, "rpc", number, rpc)?;
            }
            "proc2" => {
                set(&mut all.v2, "proc2", number, rpc::procedures(&mut line, Version::V2)?)?;
            }
            "proc3" => {
                set(&mut all.v3, "proc3", number, rpc::procedures(&mut line, Version::V3)?)?;
            }
            "proc4" => {
                set(&mut all.v4, "proc4", number, rpc::procedures(&mut line, Version::V4)?)?;
            }
            _ => {}
        }
    }
    if all == Client::default() {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_counters_are_read() {
        let text = b"net 18628 0 18628 6\nrpc 4329785 4 4338291\n\
            proc2 18 2 69 0 0 4410 0 0 0 0 0 0 0 0 0 0 0 99 2\n\
            proc3 22 1 4084749 29200 94754 32580 186 47747 7981 8639 0 6356 0 6962 0 7958 0 0 241 \
            4 4 2 39\nproc4 3 1 0 5\n";
        let client = read(text).unwrap();
        assert_eq!(client.rpc.unwrap().retransmissions, 4);
        assert_eq!(client.net.unwrap().tcp_connections, 6);
        assert_eq!(client.v2.unwrap().total(), 4_582);
        let v3 = client.v3.unwrap();
        assert_eq!(v3.named().find(|(name, _)| *name == "readdirplus"), Some(("readdirplus", 241)));
        assert_eq!(client.v4.unwrap().calls, [1, 0, 5]);
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            problem("net 1 2 3 4\nrpc 1 x 3"),
            "line 2, column 7: \"x\" where a number is \
                                                      expected"
        );
        assert!(problem("proc3 22 1 2").contains("proc has 2 numbers; at least 22"));
        assert!(problem("rpc 1 2 3\nrpc 1 2 3").contains("line 2, column 1: rpc comes a second"));
        assert!(problem("hello").contains("no NFS counters"));
    }
}
