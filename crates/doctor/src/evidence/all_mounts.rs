//! All mounts of a host as if they were one, where only what they called together is known: of
//! `/proc/net/rpc/nfs`, or of nfsstat. It has calls, and no times.

use counters::client::Client;
use counters::mountstats::{Mount, Operation, Transport};
use counters::nfsstat::Section;
use counters::procedures::{Procedures, Version};

/// Its name and its device.
pub const ALL_MOUNTS: &str = "all NFS mounts of this host";

/// Version 4's operations as Linux's client counts them, by their numbers there
/// (include/linux/nfs4.h, `NFSPROC4_CLNT_*`), and the name that nfsstat has if it is another.
const V4: [(&str, usize, &str); 20] = [
    ("NULL", 0, ""),
    ("READ", 1, ""),
    ("WRITE", 2, ""),
    ("COMMIT", 3, ""),
    ("OPEN", 4, ""),
    ("CLOSE", 8, ""),
    ("SETATTR", 9, ""),
    ("RENEW", 11, ""),
    ("LOCK", 14, ""),
    ("ACCESS", 17, ""),
    ("GETATTR", 18, ""),
    ("LOOKUP", 19, ""),
    ("REMOVE", 21, ""),
    ("RENAME", 22, ""),
    ("LINK", 23, ""),
    ("SYMLINK", 24, ""),
    ("CREATE", 25, ""),
    ("READLINK", 28, ""),
    ("READDIR", 29, ""),
    ("DELEGRETURN", 31, "delegretn"),
];

/// Where the calls of what has no name here are summed up: behind all numbers that there are.
const OTHERS: usize = 99;

/// The mount; none where nothing was called.
pub(super) fn mount(client: &Client) -> Option<Mount> {
    let rpc = client.rpc.unwrap_or_default();
    let mut operations = operations(client, rpc.calls);
    for one in &mut operations {
        one.transmissions = one.calls;
    }
    // Which calls were retransmitted is not known: that of one operation is that of all.
    if let Some(last) = operations.last_mut() {
        let again = rpc.retransmissions.max(rpc.timeouts.unwrap_or(0));
        last.transmissions = last.transmissions.saturating_add(again);
    }
    let is_any = operations.iter().any(|one| one.calls > 0) || rpc.calls > 0;
    let transport = Transport { bad_xids: rpc.bad_xids, ..Transport::default() };
    is_any.then(|| Mount {
        device: ALL_MOUNTS.to_owned(),
        point: ALL_MOUNTS.to_owned(),
        kind: "nfs".to_owned(),
        operations,
        transports: vec![transport],
        ..Mount::default()
    })
}

/// Of all versions; the last are those that have no name here.
fn operations(client: &Client, all_calls: u64) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    for procedures in [&client.v2, &client.v3].into_iter().flatten() {
        procedures.named().for_each(|(name, calls)| add(&mut operations, name, calls));
    }
    // Of version 4, and calls of other programs (MOUNT), or of versions that were not pasted.
    let mut others = 0_u64;
    for (at, calls) in client.v4.iter().flat_map(|v4| v4.calls.iter().enumerate()) {
        match V4.iter().find(|(_, number, _)| *number == at) {
            Some((name, ..)) => add(&mut operations, name, *calls),
            None => others = others.saturating_add(*calls),
        }
    }
    let named = operations.iter().fold(others, |sum, one| sum.saturating_add(one.calls));
    add(&mut operations, "others", others.saturating_add(all_calls.saturating_sub(named)));
    operations
}

fn add(operations: &mut Vec<Operation>, name: &str, calls: u64) {
    let name = name.to_uppercase();
    match operations.iter_mut().find(|one| one.name == name) {
        Some(known) => known.calls = known.calls.saturating_add(calls),
        None => operations.push(Operation { name, calls, ..Operation::default() }),
    }
}

/// What nfsstat has of version 4, in the order of the kernel's numbers.
pub(super) fn v4_of(section: &Section) -> Procedures {
    let mut calls = vec![0_u64; OTHERS + 1];
    for value in section.values.iter().filter(|value| !value.name.eq_ignore_ascii_case("total")) {
        let at = number_of(&value.name);
        calls[at] = calls[at].saturating_add(value.count);
    }
    Procedures { version: Version::V4, calls }
}

fn number_of(name: &str) -> usize {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    let found = V4.iter().find(|(name, _, other)| is(name) || is(other));
    found.map_or(OTHERS, |(_, at, _)| *at)
}

#[cfg(test)]
mod tests {
    use counters::client;

    use super::*;

    #[test]
    fn what_all_mounts_called_is_the_sum_of_the_versions() {
        let mut v4 = vec!["0"; 30];
        (v4[18], v4[20]) = ("7", "5");
        let text = format!(
            "rpc 1000 60 1000\nproc3 22 0 300 0 0 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             proc4 30 {}\n",
            v4.join(" ")
        );
        let mount = mount(&client::read(text.as_bytes()).unwrap()).unwrap();
        let calls = |name: &str| mount.operation(name).unwrap().calls;
        assert_eq!((calls("GETATTR"), calls("READLINK"), calls("OTHERS")), (307, 100, 593));
        let again: u64 = mount.operations.iter().map(Operation::retransmissions).sum();
        assert_eq!(again, 60);
        assert_eq!(super::mount(&client::read(b"rpc 0 0 0\n").unwrap()), None);
    }
}
