//! What fuzz targets run, as ordinary functions, so that tests can run the same.
//!
//! Each takes arbitrary bytes, and panics only when what it says does not hold: a problem has a
//! place in the text, and what was read differs by nothing from itself.

use super::{Problem, client, mountstats, nfsstat, server};

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

    const WORDS: [&str; 40] = [
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
        let targets: [Target; 4] = [
            ("nfsd_counters", server),
            ("nfs_counters", client),
            ("mountstats", mountstats),
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
