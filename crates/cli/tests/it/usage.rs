//! What cannot be meant: exit code 2, and the right form.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::shell::quoted;

use crate::program::{Program, names, run};

/// Asserts that `arguments` are refused, with all of `parts` in the message and the way to help.
#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    let finished = run(arguments);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert_eq!(finished.stdout, "");
    for part in parts.iter().chain(&["--help"]) {
        assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
    }
}

#[test]
fn a_malformed_url_is_refused_with_the_form_of_a_good_one() {
    const FORM: &str = "nfs://HOST[:PORT]/EXPORT[/PATH]";
    let cases = [
        ("server://export", "must be nfs"),
        ("a b:/export", "not a URL"),
        ("http://server/export", "must be nfs"),
        ("server:export", "begins with a slash, as in server:/export"),
        ("nfs:///export", "no host name"),
        ("export", "not a URL"),
        ("nfs://server/x?version=4", "version=3"),
        ("nfs://server/x?proto=rdma", "proto=tcp"),
        ("nfs://server/x?nfsport=99999", "between 1 and 65535"),
        ("nfs://server/x?colour=red", "unknown argument \"colour\""),
    ];
    for (url, why) in cases {
        refused(&["study", "--target", url], &["--target", why, FORM]);
        refused(&["bench", "seqwrite", "--wire", "--target", url], &["--target", why, FORM]);
    }
}

#[test]
fn a_malformed_size_or_time_is_refused_with_the_form_of_a_good_one() {
    let bench = ["bench", "seqwrite", "--wire", "--target", "nfs://server/x"];
    for option in ["--size", "--call", "--commit-every"] {
        for wrong in ["", "0", "8X", "-1", "1.5", "1.5.5M"] {
            let with = |wrong| format!("{option}={wrong}");
            refused(&[&bench[..], &[&with(wrong)]].concat(), &[option, "K, M, G"]);
        }
        let large = format!("{option}=99999999999T");
        refused(&[&bench[..], &[&large]].concat(), &[option, "99999999999T", "largest size"]);
    }
    refused(&["serve", "mem:", "--mem-size", "lots"], &["--mem-size", "powers of 1024"]);
    for wrong in ["--reply-limit=5x", "--reply-limit=0s", "--reply-limit=soon"] {
        refused(&[&bench[..], &[wrong]].concat(), &["--reply-limit", "us, ms, s"]);
        refused(&["study", wrong], &["--reply-limit", "us, ms, s"]);
    }
}

#[test]
fn a_number_out_of_its_range_is_refused_with_the_range() {
    let bench = ["bench", "seqwrite", "--wire", "--target", "nfs://server/x"];
    refused(&[&bench[..], &["--outstanding", "0"]].concat(), &["--outstanding", "from 1 to 4096"]);
    refused(&[&bench[..], &["--repeats", "many"]].concat(), &["--repeats", "many"]);
    refused(&["serve", "mem:", "--threads", "0"], &["--threads", "from 1 to 65536"]);
}

/// It would look as if it had an effect.
#[test]
fn an_option_that_would_do_nothing_is_refused() {
    let cases = [
        "serve /srv --read-ahead 5M",
        "serve /srv --mem-size 1M",
        "serve nfs://server/x --mem-size 1M",
        "bench rtt --target server:/x --transfer 1M",
        "bench rtt --target server:/x --packet 1K",
        "bench rtt --target server:/x --repeats 3",
        "bench stream --server --json record.json",
        "bench stream --server --rate 5",
        "bench spray --target server:/x --rpcbind",
        "bench curve --target server:/x --store /srv",
        "model whatif ../../examples/probe.json L+1ms --cpus 2",
        "model whatif ../../examples/probe.json L+1ms --rate 5",
        "model whatif ../../examples/probe.json L+1ms --callers 4",
        "model whatif ../../examples/probe.json L+1ms --messages 4",
        "model whatif ../../examples/sweep.txt L+1ms --latency 1ms",
        "model whatif ../../examples/trace.txt L+1ms --disks 3",
        "model whatif ../../examples/f840.txt L+1ms --outstanding 3",
        "model fit ../../examples/sweep.txt --disks 4",
        "model fit ../../examples/sweep.txt --of x",
        "model sensitivity ../../examples/probe.json --cpus 4",
        "model simulate ../../examples/office.toml --of x",
        "model cycle --unit 8K",
        "model cycle --sync-size 8K",
        "model predict --cpu 1ms --delay 1ms --cache 4M",
        "model predict --cpu 1ms --delay 1ms --disks 4",
        "doctor server --set client-queue.queue_ms=5",
        "doctor server --for 5s",
        "doctor --limit 1s",
        "serve mem: --metadata-sync never",
        "serve sim:hdd --metadata-sync never",
        "serve nfs://server/x --metadata-sync never",
        "bench suite13 --compare a=/tmp -o ro",
        "trace nfs.pcap --from 10s --until 1s",
    ];
    for line in cases {
        let finished = run(line.split(' '));
        assert_eq!(finished.code, Some(2), "{line}: {finished:?}");
        let words: Vec<&str> = line.split(' ').filter(|word| word.starts_with("--")).collect();
        let is_named = words.iter().any(|word| finished.stderr.contains(word));
        assert!(is_named, "{line}: {finished:?}");
    }
}

#[test]
fn a_verbose_command_says_what_it_took() {
    let line = "model predict --cpu 1ms --delay 1ms";
    for (option, has_words) in [("-v", true), ("-vv", true), ("-q", false), ("--quiet", false)] {
        let finished = run(line.split(' ').chain([option]));
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let says = finished.stderr.contains("took ") && finished.stderr.contains("processor time");
        assert_eq!(says, has_words, "{option}: {finished:?}");
    }
}

#[test]
fn a_change_beyond_its_range_is_refused_by_its_name_and_number() {
    for (change, number) in [("outstanding=99999999999", "99999999999"), ("threads=0", "0")] {
        let finished = run(["model", "whatif", "../../examples/probe.json", change]);
        let name = change.split('=').next().unwrap();
        let range = format!("{name} is {number}: at least 1 and at most 1000000");
        finished.complains(2, &[&range]);
    }
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    let compared = run(["bench", "compare", "--first", empty, "--second", empty]);
    compared.complains(3, &[": it is empty"]);
    let loss = "model cycle --round-trip 1ms --ser 1us --mtu 1500 --loss 1";
    run(loss.split(' ')).complains(2, &["loss is 1: nothing arrives then"]);
    let loss = loss.replace("--loss 1", "--loss 0.999999999");
    run(loss.split(' ')).complains(2, &["fragments, all never arrive"]);
}

#[test]
fn an_unknown_link_is_refused_with_the_known_ones() {
    for command in [&["study"][..], &["serve", "mem:"]] {
        let arguments = [command, &["--link", "lan-2g"]].concat();
        refused(&arguments, &["\"lan-2g\"", "lan-1g", "wan-80ms"]);
    }
}

#[test]
fn an_impossible_link_is_refused_with_what_is_possible() {
    let bench = ["bench", "seqwrite", "--wire", "--target", "nfs://server/x"];
    for (link, parts) in [
        ("lan-1g,L=11s", &["L: 11.0 s", "at most 10.0 s"][..]),
        ("lan-1g,L=-1ms", &["L=-1ms", "negative"]),
        ("loss=101%", &["loss: 101 %", "0 to 100 %"]),
        ("1ms/0g", &["1ms/0g", "above 0"]),
        ("mtu=60", &["mtu: 60", "68"]),
        ("queue=1K", &["queue: 1024 bytes", "65536"]),
        ("o=1s", &["o.send: 1.00 s", "at most 100 ms"]),
        ("lan-1g,colour=red", &["unknown key \"colour\"", "jitter"]),
        ("/nowhere/far.toml", &["/nowhere/far.toml", "cannot be read"]),
    ] {
        for command in [&["study"][..], &["serve", "mem:"], &bench] {
            refused(&[command, &["--link", link]].concat(), parts);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("far.toml");
    fs::write(&file, "L = \"1ms\"\n\n[back]\nloss = \"200%\"\n").unwrap();
    let file = file.to_str().unwrap();
    refused(&["study", "--link", file], &["far.toml, line 4", "back.loss: 200 %"]);
}

#[test]
fn an_unknown_argument_or_command_is_refused_with_the_usage() {
    refused(&["study", "--fast"], &["--fast", "Usage: nfskit study"]);
    refused(&["serve"], &["DIR|mem:|sim:DISK|nfs://HOST/EXPORT", "Usage: nfskit serve"]);
    refused(&["serve"], &["--export <PATH[=OPTIONS]>", "--exports <FILE>"]);
    refused(&["bench", "curve"], &["--target <URL>", "--write-log <FILE>"]);
    refused(&["bench", "randread"], &["randread"]);
    refused(&["frobnicate"], &["frobnicate", "Usage: nfskit"]);
    refused(&["log", "drain"], &["<FILE|DEVICE>... <DIR|URL>"]);
    for (verb, what) in [("drain", "directory or origin"), ("replay", "directory that it is of")] {
        let alone = run(["log", verb, "data.wal"]);
        alone.complains(2, &[&format!("data.wal, and no {what}"), "data.wal DIR"]);
    }
    let help = run(["log", "replay", "--help"]).stdout;
    assert!(!help.contains("URL") && !help.contains("origin"), "of no proxy: {help}");
    refused(&["study", "--store", "/x", "--target", "nfs://h/x"], &["cannot be used with"]);
}

#[test]
fn an_address_that_is_none_is_refused_with_the_form_of_a_good_one() {
    for wrong in ["localhost", "127.0.0.1", "1.2.3.4:99999", ":2049"] {
        refused(&["serve", "mem:", "--listen", wrong], &["ADDRESS:PORT", "127.0.0.1:2049"]);
    }
    refused(&["serve", "mem:", "--export", "data"], &["begins with a slash"]);
}

#[test]
fn help_and_version_are_no_mistakes() {
    for arguments in [&["--help"][..], &["study", "--help"], &["bench", "seqwrite", "--help"]] {
        let finished = run(arguments);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
        assert!(finished.stdout.contains("Usage: nfskit"), "{finished:?}");
    }
    let study = run(["study", "--help"]).stdout;
    assert!(study.contains("Examples:") && study.contains("[default: 30s]"), "{study}");
    assert!(run(["--version"]).stdout.starts_with("nfskit "));
}

/// Copies of examples that nothing is to be lost of.
fn inputs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["nfs.pcap", "office.toml", "probe.json", "cthon.log", "sweep.txt"] {
        fs::copy(examples.join(name), folder.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink("nfs.pcap", folder.path().join("link")).unwrap();
    folder
}

/// What a shell makes of the words in that folder.
fn in_folder(folder: &Path, line: &str) -> crate::program::Finished {
    let mut command = Command::new("sh");
    command.current_dir(folder);
    let program = quoted(env!("CARGO_BIN_EXE_nfskit"));
    Program::start(command.args(["-c", &format!("exec {program} {line}")])).finish()
}

#[test]
fn an_output_that_is_an_input_is_refused_and_nothing_is_lost() {
    let folder = inputs();
    let content = || {
        names(folder.path())
            .into_iter()
            .map(|name| {
                let bytes = fs::read(folder.path().join(&name)).unwrap();
                (name, bytes)
            })
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = content();
    for line in [
        "trace nfs.pcap --json nfs.pcap",
        "trace nfs.pcap --html ./link",
        "trace link --csv nfs.pcap",
        "trace - --parquet nfs.pcap <nfs.pcap",
        "model simulate office.toml --json office.toml",
        "model whatif probe.json L+1ms --json probe.json",
        "model fit sweep.txt --json sweep.txt",
        "bench compare --first probe.json --second office.toml --json office.toml",
        "bench basic --read cthon.log --csv cthon.log",
        "bench curve --target nfs://127.0.0.1/ --mix nfs.pcap --html nfs.pcap",
        "bench nhfsstone --target nfs://127.0.0.1/ -m nfs.pcap --json nfs.pcap",
        "doctor --from nfs.pcap --json nfs.pcap",
        "stat --from nfs.pcap --json nfs.pcap",
    ] {
        refused_in(folder.path(), line, "would replace the input");
        assert!(content() == before, "{line}");
    }
}

/// A usage error in which this stands, and nothing else is done.
fn refused_in(folder: &Path, line: &str, why: &str) {
    let finished = in_folder(folder, line);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{line}: {finished:?}");
    assert!(finished.stderr.contains(why), "{line}: {finished:?}");
}

#[test]
fn two_outputs_of_one_file_are_refused() {
    let folder = inputs();
    for line in [
        "trace nfs.pcap --json out --csv ./out",
        "trace nfs.pcap --json out --csv out.partial",
        "model simulate office.toml --json out --html out",
        "bench curve --target nfs://127.0.0.1/ --json out --html out",
        "link --to 127.0.0.1 none --json out --pcap out",
        "doctor --from nfs.pcap --json out --html out",
    ] {
        refused_in(folder.path(), line, "would replace each other");
        assert!(!folder.path().join("out").exists(), "{line}");
    }
    let finished = in_folder(folder.path(), "trace nfs.pcap --json /dev/null --csv /dev/null -q");
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn a_file_with_the_name_of_what_is_not_whole_is_replaced_with_a_word() {
    let folder = inputs();
    fs::write(folder.path().join("out.partial"), "of the user").unwrap();
    let finished = in_folder(folder.path(), "trace nfs.pcap --json out -q");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("out.partial was there, and is replaced"), "{finished:?}");
    let again = in_folder(folder.path(), "trace nfs.pcap --json out -q");
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
}

#[test]
fn what_cannot_be_written_leaves_no_part_of_it_and_loses_nothing_else() {
    let folder = inputs();
    // A file of 4 KiB at most: the page is longer, the text is not.
    let line = "trace nfs.pcap --html page";
    let program = quoted(env!("CARGO_BIN_EXE_nfskit"));
    let limited = format!("ulimit -f 8; trap '' XFSZ; exec {program} {line}");
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).args(["-c", &limited]);
    let finished = Program::start(&mut command).finish();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("cannot write page"), "{finished:?}");
    assert!(!names(folder.path()).iter().any(|name| name.starts_with("page")), "{folder:?}");
}
