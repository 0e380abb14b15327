//! `nfskit doctor`: evidence in, findings and an exit code out.

use std::fs;

use crate::program::run;

/// A mount of which each operation is a line.
fn mountstats(options: &str, operations: &[&str]) -> String {
    let mut text = format!(
        "device server:/export mounted on /mnt/data with fstype nfs statvers=1.1\n\
         \topts:\t{options}\n\tage:\t1234\n\
         \tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n\
         \txprt:\ttcp 800 1 1 0 3 400 400 0 450 17 16 30 40\n\tper-op statistics\n"
    );
    for operation in operations {
        text.push_str(&format!("\t        {operation}\n"));
    }
    text
}

const WELL: &str = "READ: 1000 1000 0 120000 32000000 20 900 950 0";
const LOOKING: &str = "GETATTR: 90000 90000 0 9000 9000 90 90000 92000 0";

#[test]
fn a_finding_of_high_severity_ends_with_1_and_a_healthy_mount_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mountstats");
    fs::write(&file, mountstats("rw,vers=3,proto=tcp,noac", &[LOOKING, WELL])).unwrap();
    let path = file.to_str().unwrap();
    let ill = run(["doctor", "--from", path]);
    assert_eq!(ill.code, Some(1), "{ill:?}");
    assert!(ill.stdout.starts_with("/mnt/data: server:/export, NFS v3\n"), "{ill:?}");
    assert!(ill.stdout.contains("noac sends a call for every look"), "{ill:?}");
    let json = run(["doctor", "--from", path, "--json", "-"]).stdout;
    assert!(json.contains("\"rule\": \"attribute-caching-off\""), "{json}");
    fs::write(&file, mountstats("rw,vers=3,proto=tcp", &[WELL])).unwrap();
    let well = run(["doctor", "--from", path]);
    assert_eq!((well.code, well.stderr.as_str()), (Some(0), ""), "{well:?}");
    assert!(well.stdout.contains("nothing stands out"), "{well:?}");
    assert!(run(["doctor", "--from", path, "/mnt/data/below"]).code == Some(0));
    let other = run(["doctor", "other", "--from", path]);
    other.complains(3, &["other is not an NFS mount in ", "one of /mnt/data"]);
    assert!(run(["doctor", "--from", path, "server"]).code == Some(0));
    run(["doctor", "--from", path, "/other"])
        .complains(3, &["/other is not an NFS mount", "/mnt/data"]);
    run(["doctor", "--from", path, "--set", "x.y=1"]).complains(2, &["x.y is not the threshold"]);
    run(["doctor", "--from", path, "--set", "x.y"]).complains(2, &["no name and number"]);
}

#[test]
fn a_server_is_not_offered_as_a_mount() {
    let folder = tempfile::tempdir().unwrap();
    let calls = " 10".repeat(22);
    let nfsd =
        format!("rc 0 0 220\nio 0 0\nth 8 0\nnet 220 0 220 1\nrpc 220 0 0 0 0\nproc3 22{calls}\n");
    fs::create_dir_all(folder.path().join("proc/net/rpc")).unwrap();
    fs::write(folder.path().join("proc/net/rpc/nfsd"), nfsd).unwrap();
    let path = folder.path().to_str().unwrap();
    let all = run(["doctor", "--from", path]);
    assert!(all.stdout.contains("server"), "{all:?}");
    run(["doctor", "--from", path, "/other"])
        .complains(3, &["/other is not an NFS mount", "nfskit doctor without a subject"]);
}

#[test]
fn what_is_no_evidence_is_reported_in_a_line_and_ends_with_3_where_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    run(["doctor", "--from", path]).complains(3, &["nothing usable"]);
    fs::write(folder.path().join("junk"), b"\0\x01\xff\xfe").unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let junk = run(["doctor", "--from", path]);
    assert_eq!((junk.code, junk.stdout.as_str()), (Some(3), ""), "{junk:?}");
    assert!(junk.stderr.contains("junk: ") && junk.stderr.contains("empty: is empty"), "{junk:?}");
    let whole = mountstats("rw,vers=3,proto=tcp", &[WELL, LOOKING]);
    fs::write(folder.path().join("mountstats"), &whole[..whole.len() - 20]).unwrap();
    let cut = run(["doctor", "--from", path]);
    assert_eq!(cut.code, Some(0), "{cut:?}");
    assert!(cut.stdout.contains("/mnt/data") && cut.stderr.contains("the text ends"), "{cut:?}");
}

#[test]
fn what_is_collected_is_listed_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.tar.gz");
    let path = file.to_str().unwrap();
    let made = run(["doctor", "--for", "50ms", "--collect", path, "--mask-addresses"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.stdout.contains("1/proc/uptime") && made.stdout.contains("masked"), "{made:?}");
    let again = run(["doctor", "--from", path]);
    assert!(matches!(again.code, Some(0 | 1)), "{again:?}");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let half = run(["doctor", "--from", path]);
    assert!(half.stderr.contains("ends too early"), "{half:?}");
    run(["doctor", "--collect", "/no/where.tar.gz"]).complains(3, &["/no/where.tar.gz"]);
    assert_eq!(run(["doctor", "--mask-addresses"]).code, Some(2));
}

#[test]
fn a_capture_is_judged_as_trace_does_and_a_report_is_written() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/nfs.pcap");
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let page_path = page.to_str().unwrap();
    let judged = run(["doctor", "--from", capture, "--html", page_path]);
    assert!(matches!(judged.code, Some(0 | 1)), "{judged:?}");
    let traced = run(["trace", capture]).stdout;
    let verdict = traced.lines().find_map(|line| line.strip_prefix("verdict")).unwrap();
    let words: Vec<&str> = verdict.split_whitespace().take(5).collect();
    let printed: Vec<&str> = judged.stdout.split_whitespace().collect();
    assert!(printed.windows(5).any(|window| window == words), "{words:?} in {judged:?}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("Findings") && html.contains("nfs.pcap"), "{html}");
}
