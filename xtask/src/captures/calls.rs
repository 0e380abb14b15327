//! Every call by itself: which reply tshark gives it, and how long it took.
//!
//! A call is known by its two ports and its transaction number. What is compared is the time that
//! tshark calls `rpc.time`, to the nanosecond, of the calls of all programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::compare::{WITHIN, tshark};
use crate::host::child::{finish, text};

/// Both ports, the lower first, and the transaction number.
type Key = (u16, u16, u32);
/// Nanoseconds, of each call with this key.
type Calls = BTreeMap<Key, Vec<u64>>;

/// Differences that are shown.
const SHOWN: usize = 5;

/// Compares both; says how many calls were alike.
pub(super) fn compare(nfskit: &Path, capture: &Path) -> Result<String, String> {
    let (mut theirs, unclear) = by_tshark(capture)?;
    let mut ours = by_us(nfskit, capture)?;
    for calls in [&mut theirs, &mut ours] {
        calls.retain(|key, _| !unclear.contains(key));
        calls.values_mut().for_each(|times| times.sort_unstable());
    }
    let keys: BTreeSet<&Key> = theirs.keys().chain(ours.keys()).collect();
    let differing: Vec<String> = keys
        .into_iter()
        .map(|key| (key, theirs.get(key), ours.get(key)))
        .filter(|(_, theirs, ours)| theirs != ours)
        .map(|((low, high, xid), theirs, ours)| {
            format!("ports {low} and {high}, {xid:#x}: tshark {theirs:?}, we {ours:?}")
        })
        .collect();
    let count: usize = ours.values().map(Vec::len).sum();
    if !differing.is_empty() {
        let shown = differing[..differing.len().min(SHOWN)].join("; ");
        return Err(format!("{} calls differ: {shown}", differing.len()));
    }
    let left_out = match unclear.len() {
        0 => String::new(),
        some => format!(" ({some} shared a packet, and were left out)"),
    };
    Ok(format!("{count} by themselves{left_out}"))
}

/// What tshark says, and calls of which it does not say enough: fields of a packet with several
/// replies are lists, and a list in which one has no time cannot be distinguished.
fn by_tshark(capture: &Path) -> Result<(Calls, BTreeSet<Key>), String> {
    let mut command = tshark();
    command.arg("-r").arg(capture);
    command.args(["-Y", "rpc.time", "-T", "fields", "-E", "occurrence=a"]);
    let fields = ["tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"];
    let fields = fields.into_iter().chain(["rpc.xid", "rpc.time", "rpc.reply.dup"]);
    fields.for_each(|field| {
        command.args(["-e", field]);
    });
    Ok(sorted(&finish(&mut command, WITHIN, text)?.value))
}

/// The lines that tshark printed.
fn sorted(lines: &str) -> (Calls, BTreeSet<Key>) {
    let (mut calls, mut unclear) = (Calls::new(), BTreeSet::new());
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [tcp_from, tcp_to, udp_from, udp_to, xids, times, again] = fields[..] else { continue };
        let ports = [format!("{tcp_from}{udp_from}"), format!("{tcp_to}{udp_to}")];
        let Some([low, high]) = ports_in_order(&ports) else { continue };
        let xids: Vec<u32> = xids.split(',').filter_map(xid).collect();
        let times: Vec<u64> = times.split(',').filter_map(nanos).collect();
        match (xids.len() == times.len(), xids.len(), again.is_empty()) {
            (true, _, true) => {
                for (xid, ns) in xids.into_iter().zip(times) {
                    calls.entry((low, high, xid)).or_default().push(ns);
                }
            }
            // A reply that had come before.
            (true, 1, false) => {}
            _ => unclear.extend(xids.into_iter().map(|xid| (low, high, xid))),
        }
    }
    (calls, unclear)
}

/// What we say, by our lines for each transaction.
fn by_us(nfskit: &Path, capture: &Path) -> Result<Calls, String> {
    let mut command = Command::new(nfskit);
    command.arg("trace").arg(capture).args(["--csv", "-"]);
    let lines = finish(&mut command, WITHIN, text)?.value;
    let mut lines = lines.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        let at = head.iter().position(|column| *column == name);
        at.ok_or_else(|| format!("our lines have no {name}"))
    };
    let [client, server] = [column("client_port")?, column("server")?];
    let [number, time] = [column("xid")?, column("latency_us")?];
    let mut calls = Calls::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        let port = |at: usize| field(at).rsplit(':').next().unwrap_or_default().to_owned();
        let ports = ports_in_order(&[port(client), port(server)]);
        let us: Option<f64> = field(time).parse().ok();
        let (Some([low, high]), Some(xid), Some(us)) = (ports, xid(field(number)), us) else {
            return Err(format!("a line of ours: {line}"));
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let ns = (us * 1000.0).round() as u64;
        calls.entry((low, high, xid)).or_default().push(ns);
    }
    Ok(calls)
}

fn ports_in_order(ports: &[String; 2]) -> Option<[u16; 2]> {
    let [one, two]: [u16; 2] = [ports[0].parse().ok()?, ports[1].parse().ok()?];
    Some([one.min(two), one.max(two)])
}

fn xid(word: &str) -> Option<u32> {
    u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Seconds with nine digits behind the point.
fn nanos(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.split_once('.')?;
    let nanos: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_that_share_a_packet_are_distinguished_if_all_have_a_time() {
        let lines = "2049\t700\t\t\t0x10\t0.000106000\t\n\
                     2049\t700\t\t\t0x11,0x12\t1.5,0.000000002\t\n\
                     \t\t2049\t701\t0x10\t0.1\t\n\
                     \t\t2049\t701\t0x10\t0.2\t77\n\
                     2049\t700\t\t\t0x13,0x14\t0.1\t\n";
        let (calls, unclear) = sorted(lines);
        let expected = [
            ((700, 2049, 0x10), vec![106_000]),
            ((700, 2049, 0x11), vec![1_500_000_000]),
            ((700, 2049, 0x12), vec![2]),
            ((701, 2049, 0x10), vec![100_000_000]),
        ];
        assert_eq!(calls, Calls::from(expected));
        assert_eq!(unclear, [(700, 2049, 0x13), (700, 2049, 0x14)].into());
    }
}
