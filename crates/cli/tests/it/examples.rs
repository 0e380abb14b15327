//! What help texts show: each file that an example reads is in `examples/`, and each example that
//! needs nothing else works there as it is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::program::{Program, nfskit, run};
use crate::served::Served;

/// Endings of files that examples read or write.
const ENDINGS: [&str; 7] = [".pcap", ".log", ".txt", ".toml", ".json", ".csv", ".html"];

/// Options and signs behind which a file is written.
const WRITES: [&str; 9] =
    ["--json", "--csv", "--html", "--parquet", "--out", "--latencies", "--pcap", "-w", ">"];

/// Words of examples that take more than files: a server, a network, root, time.
const NEEDS: [&str; 9] =
    ["nfs://", "--dir", "--interface", "tcpdump", "--to", "server", "ADDRESS", "/etc/", "--set"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The names of all commands that help lists, with the words that lead to them.
fn commands(words: &[String]) -> Vec<Vec<String>> {
    let help = run(words.iter().map(String::as_str).chain(["--help"])).stdout;
    let mut found = vec![words.to_vec()];
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in listed.take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap();
        if line.starts_with("   ") || name == "help" {
            continue;
        }
        found.extend(commands(&[words, &[name.to_owned()]].concat()));
    }
    found
}

/// The commands that the help texts show, without what stands beside them.
fn examples() -> Vec<String> {
    let mut found = Vec::new();
    for words in commands(&[]) {
        let help = run(words.iter().map(String::as_str).chain(["--help"])).stdout;
        let shown = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        let shown = shown.take_while(|line| !line.trim().is_empty());
        for line in shown.filter(|line| line.contains("nfskit ")) {
            let line = line.trim_start();
            found.push(line.split("  ").next().unwrap().to_owned());
        }
    }
    found
}

/// Where a package puts the server's files.
const INSTALLED: &str = "/etc/nfskit/";

/// Files that an example reads: named, and not written by it.
fn inputs(example: &str) -> Vec<&str> {
    let words: Vec<&str> = example.split([' ', ';', ',']).filter(|word| !word.is_empty()).collect();
    let mut written: Vec<&str> = Vec::new();
    let mut read = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_file = ENDINGS.iter().any(|ending| word.ends_with(ending));
        if at > 0 && WRITES.contains(&words[at - 1]) {
            written.push(word);
        } else if is_file && !written.contains(word) {
            let word = word.strip_prefix(INSTALLED).unwrap_or(word);
            read.extend((!word.starts_with('/')).then_some(word));
        }
    }
    read
}

#[test]
fn every_file_that_an_example_reads_is_there() {
    let examples = examples();
    assert!(examples.len() > 60, "{} examples", examples.len());
    let mut found = 0;
    for example in &examples {
        // `bench compare` reads what a loop beside it has written.
        for file in inputs(example).into_iter().filter(|_| !example.contains("bench compare")) {
            assert!(folder().join(file).is_file(), "examples/{file} is missing: {example}");
            found += 1;
        }
    }
    assert!(found > 15, "{found} files");
}

#[test]
fn every_example_that_reads_files_alone_works() {
    let all = examples();
    let alone = all.iter().filter(|example| {
        !inputs(example).is_empty() && !NEEDS.iter().any(|needed| example.contains(needed))
    });
    let mut tried = 0;
    for example in alone.filter(|example| !example.contains("bench compare")) {
        let work = tempfile::tempdir().unwrap();
        for file in inputs(example) {
            fs::copy(folder().join(file), work.path().join(file)).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_nfskit");
        let command = example.replace("nfskit ", &format!("'{program}' "));
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(work.path());
        let finished = Program::start(&mut shell).finish();
        assert_eq!(finished.code, Some(0), "{example}: {finished:?}");
        tried += 1;
    }
    assert!(tried > 12, "{tried} examples");
}

#[test]
fn the_example_of_exports_is_read_by_a_server() {
    let folder_of_server = tempfile::tempdir().unwrap();
    let data = folder_of_server.path().to_str().unwrap();
    let text = fs::read_to_string(folder().join("exports.toml")).unwrap();
    let file = folder_of_server.path().join("exports.toml");
    fs::write(&file, text.replace("/srv/data", data)).unwrap();
    let mut command = nfskit(["serve", "--exports"]);
    command.arg(&file);
    let served = Served::start(command, "127.0.0.1:0");
    served.program.signal(Signal::TERM);
    let finished = served.program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("read-write, root_squash to 65534:65534"), "{finished:?}");
}
