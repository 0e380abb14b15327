//! What fuzz targets run, as ordinary functions, so that tests can run the same.
//!
//! Each takes arbitrary bytes, and panics only when what it says does not hold: a problem has a
//! place in the text, and what was read differs by nothing from itself.

use super::host::{
    device, disk, interfaces, iostat, load, named, pressure, processor, protocols, sockets,
    softnet, space, spray, tasks,
};
use super::mountstats::printed;
use super::rates::{self, Span};
use super::{
    Partial, Problem, client, exposition, mounted, mountstats, nfsiostat, nfsstat, partial, pools,
    server, socket,
};

/// `/proc/net/rpc/nfsd`, or anything else.
pub fn server(text: &[u8]) {
    match server::read(text) {
        Err(problem) => is_in(&problem, text),
        Ok(server) => {
            for procedures in [server.v2, server.v3, server.v4].into_iter().flatten() {
                assert_eq!(procedures.since(&procedures).total(), 0);
            }
            assert!(server.threads.is_none_or(|th| th.busy_s.iter().all(|busy| busy.is_finite())));
        }
    }
}

/// `/proc/fs/nfsd/pool_stats`, or anything else.
pub fn pools(text: &[u8]) {
    match pools::read(text) {
        Err(problem) => is_in(&problem, text),
        Ok(pools) => assert!(pools.len() <= pools::POOLS_MAX),
    }
}

/// `/proc/net/rpc/nfs`, or anything else.
pub fn client(text: &[u8]) {
    match client::read(text) {
        Err(problem) => is_in(&problem, text),
        Ok(client) => {
            for procedures in [client.v2, client.v3, client.v4].into_iter().flatten() {
                assert_eq!(procedures.since(&procedures).total(), 0);
            }
        }
    }
}

/// `/proc/self/mountstats`, or anything else.
pub fn mountstats(text: &[u8]) {
    match mountstats::read(text) {
        Err(problem) => is_in(&problem, text),
        Ok(mounts) => {
            for mount in &mounts {
                assert!(mountstats::at(&mounts, &mount.point).is_some());
                assert!(mount.operations.len() <= mountstats::EACH_MAX);
                assert!(mount.operations_since(mount).iter().all(|one| one.calls == 0));
                assert!(mount.transports.iter().all(|one| one.backlog_mean() != Some(-1.0)));
            }
            have_rates(&mounts);
        }
    }
}

/// Whatever was counted, rates are numbers, and nothing has come since the sample itself.
fn have_rates(mounts: &[mountstats::Mount]) {
    let since_made = rates::mounts::rates(mounts, None);
    for mount in &since_made.mounts {
        for one in &mount.operations {
            let means = [one.queue_ms_mean, one.rtt_ms_mean, one.execute_ms_mean];
            let others = [one.calls_per_s, one.outstanding_mean, one.bytes_per_call];
            let known = means.into_iter().chain(others).flatten();
            assert!(known.into_iter().all(|value| value.is_finite() && value >= 0.0), "{one:?}");
        }
    }
    let same = rates::mounts::rates(mounts, Some((mounts, 1.0)));
    assert!(same.vanished.is_empty());
    for mount in &same.mounts {
        let is_still = mount.total.calls == 0 && mount.total.rtt_ms_mean.is_none();
        assert!(mount.change.is_some() || is_still && mount.span == Span::sample(1.0));
    }
}

/// A page of metrics, or anything else.
pub fn exposition(text: &[u8]) {
    match exposition::read(text) {
        Err(problem) => is_in(&problem, text),
        Ok(series) => {
            assert!(series.iter().all(|one| !one.name.is_empty()));
            assert!(series.iter().all(|one| one.labels.len() <= exposition::LABELS_MAX));
        }
    }
}

/// What nfsstat prints, or anything else: sections come in the order of their lines.
pub fn nfsstat(text: &[u8]) {
    match nfsstat::read(text) {
        Err(problem) => is_in(&problem, text),
        Ok(sections) => {
            assert!(sections.is_sorted_by_key(|section| section.line));
            for section in &sections {
                for value in &section.values {
                    assert!(section.value(&value.name).is_some());
                }
                section.procedures();
            }
        }
    }
}

/// What other programs print, or anything else.
pub fn pasted(text: &[u8]) {
    for device in each(text, interfaces::read).unwrap_or_default() {
        assert_eq!(device.since(&device).sent.packets, 0);
    }
    for disk in each(text, iostat::read).unwrap_or_default() {
        assert!(disk.busy >= 0.0 && disk.wait_ms >= 0.0 && disk.per_s >= 0.0, "{disk:?}");
    }
    for run in each(text, spray::read).unwrap_or_default() {
        assert!(run.share() >= 0.0);
    }
    each(text, tasks::read);
    for space in each(text, space::read).unwrap_or_default() {
        assert!(!space.device.is_empty() && !space.point.is_empty());
    }
    for read in [nfsiostat::read, printed::read, mounted::read] {
        if let Some(mounts) = each(text, read) {
            have_rates(&mounts);
        }
    }
    let text = String::from_utf8_lossy(text);
    // What is likely one line of means has them.
    assert!(!load::is_likely(&text) || load::read(text.as_bytes()).is_ok());
    let likely = [
        interfaces::is_likely,
        iostat::is_likely,
        spray::is_likely,
        space::is_likely,
        tasks::is_likely,
    ];
    assert!(!text.is_empty() || !likely.iter().any(|is_likely| is_likely("")));
}

/// Any of the host's files, what ss prints, or anything else.
pub fn host(text: &[u8]) {
    each(text, named::read);
    each(text, sockets::read);
    if let Some(load) = each(text, load::read) {
        assert!(load.one.is_finite() && load.five.is_finite() && load.fifteen.is_finite());
    }
    each(text, protocols::read);
    if let Some(devices) = each(text, device::read) {
        assert!(devices.iter().all(|one| one.since(one).sent.bytes == 0));
    }
    if let Some(all) = each(text, softnet::read) {
        assert_eq!(softnet::Softnet::sum(&all).since(&softnet::Softnet::sum(&all)).dropped, 0);
    }
    if let Some(all) = each(text, processor::read) {
        assert!(all.share(all.idle).is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
    if let Some(disks) = each(text, disk::read) {
        assert!(disks.iter().all(|one| one.wait_ms().is_none_or(|wait| wait >= 0.0)));
    }
    if let Some(pressure) = each(text, pressure::read) {
        assert!(pressure.some_10s.is_finite() && pressure.full_10s.is_finite());
    }
    if let Some(connection) = socket::Connection::of_diag(text) {
        assert!(socket::read(connection.text().as_bytes()).is_ok());
    }
    for connection in each(text, socket::read).unwrap_or_default() {
        assert!(connection.rtt_ms.is_none_or(|rtt| rtt >= 0.0));
        assert!(connection.peer.contains(connection.peer_address()));
        connection.peer_port();
    }
}

/// What a reader reads of a whole text, and of a damaged one.
fn each<T>(text: &[u8], read: fn(&[u8]) -> Result<T, Problem>) -> Option<T> {
    if let Err(problem) = read(text) {
        is_in(&problem, text);
    }
    let Partial { value, problems } = partial(text, read);
    problems.iter().for_each(|problem| is_in(problem, text));
    value
}

fn is_in(problem: &Problem, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().count().max(1);
    assert!((1..=lines).contains(&problem.line), "{problem}");
    let columns = text.lines().nth(problem.line - 1).map_or(0, |line| line.chars().count());
    assert!((1..=columns + 1).contains(&problem.column), "{problem}");
    assert!(!problem.to_string().is_empty());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: [&str; 67] = [
        "Iface MTU RX-OK RX-ERR TX-OK Flg",
        "Name Mtu Network Address Ipkts Ierrs Collis",
        "Device r/s w/s r_await w_await %util",
        "sending 9 packets of lnth",
        "3 packets (1%) dropped by",
        "Filesystem Use% Mounted on",
        "50% /srv",
        "s:/e mounted on /m:",
        "read: ops/s",
        "(0.5%)",
        "1.5",
        "cpu",
        "cpu0",
        "Tcp: A B",
        "Tcp:",
        "some avg10=1.5",
        "full total=",
        "eth0:",
        "8 0 sda",
        "# pool packets-arrived",
        "ESTAB 0 0 a:1 b:2",
        "rtt:1/2",
        "0000ff00 00000000 00000001",
        "device",
        "s:/e",
        "mounted on",
        "/mnt\\040a",
        "with fstype",
        "nfs",
        "nfs4",
        "statvers=1.1",
        "\topts:\t",
        "rw,vers=3",
        "age:",
        "events:",
        "bytes:",
        "xprt:",
        "tcp",
        "udp",
        "per-op statistics",
        "RPC iostats version:",
        "p/v:",
        "100003/3",
        "GETATTR:",
        "READ:",
        "0",
        "1 2 3 4 5 6 7 8",
        "18446744073709551615",
        "-1",
        "7%",
        "proc3",
        "proc2 18",
        "rc",
        "nfskit_calls_total{",
        "le=\"0.5\"",
        "}",
        "# pool packets-arrived",
        "th",
        "rpc",
        "net",
        "Client nfs v3:",
        "Server nfs:",
        "nfs v3 client",
        "getattr",
        "calls",
        "Version 2: (0 calls)",
        "\u{fc}",
    ];

    fn all(text: &[u8]) {
        server(text);
        client(text);
        mountstats(text);
        pools(text);
        exposition(text);
        nfsstat(text);
        host(text);
        pasted(text);
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_reader(
            text in proptest::collection::vec((0..WORDS.len(), 0_u8..4), 0..200),
            cut in 0_usize..2_000,
        ) {
            let mut bytes = Vec::new();
            for (word, gap) in text {
                bytes.extend_from_slice(WORDS[word].as_bytes());
                bytes.push(if gap == 0 { b'\n' } else { b' ' });
            }
            bytes.truncate(cut);
            all(&bytes);
        }

        #[test]
        fn no_bytes_break_a_reader(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            all(&bytes);
        }
    }

    #[test]
    fn seeds_are_replayed() {
        type Target = (&'static str, fn(&[u8]));
        let targets: [Target; 8] = [
            ("host_counters", host),
            ("nfsd_counters", server),
            ("nfs_counters", client),
            ("mountstats", mountstats),
            ("pool_stats", pools),
            ("exposition", exposition),
            ("nfsstat", nfsstat),
            ("pasted_outputs", pasted),
        ];
        for (target, run) in targets {
            let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
            let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
            assert!(!seeds.is_empty(), "{target}");
            for seed in seeds {
                run(&std::fs::read(seed.unwrap().path()).unwrap());
            }
        }
    }
}
