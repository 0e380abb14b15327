//! What fuzz targets run, as ordinary functions, so that tests can run the same.
//!
//! Each takes arbitrary bytes, and panics only when what it says does not hold: a problem has a
//! place in the text, and what was read differs by nothing from itself.

use super::rates::{self, Span};
use super::{Problem, client, mountstats, nfsstat, pools, server};

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

    const WORDS: [&str; 41] = [
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
        nfsstat(text);
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
        let targets: [Target; 5] = [
            ("nfsd_counters", server),
            ("nfs_counters", client),
            ("mountstats", mountstats),
            ("pool_stats", pools),
            ("nfsstat", nfsstat),
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
