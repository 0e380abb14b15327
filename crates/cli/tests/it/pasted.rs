//! The command that makes a report is in the report, and a shell takes it apart as we did.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::program::{Program, nfskit, run};
use crate::served::Served;

/// A directory of whose name a shell makes several words and more.
const FOLDER: &str = "it's $HOME; \"a\" & b";

const TOPOLOGY: &str = r#"
[server]
disk = "ssd-sata"
[[clients]]
count = 1
link = "lan-1g"
[workload]
warm-up = "2ms"
time = "10ms"
files = "256K"
"#;

/// What a shell is to be given, as the page says it.
fn command(page: &Path) -> String {
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.rsplit_once("<pre><code>").unwrap();
    let (command, _) = rest.split_once("</code>").unwrap();
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    entities.iter().fold(command.to_owned(), |text, (entity, char)| text.replace(entity, char))
}

/// The command on the page of a run makes that page again.
#[track_caller]
fn is_made_again<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>, folder: &Path) {
    let page = folder.join("page.html");
    let finished = Program::start(nfskit(words).arg("--html").arg(&page)).finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let words = command(&page);
    std::fs::remove_file(&page).unwrap();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&words).env("NFSKIT_UNCALIBRATED", "1");
    let again = Program::start(&mut shell).finish();
    assert_eq!(again.code, Some(0), "{words}: {again:?}");
    assert_eq!(command(&page), words);
}

/// A capture without a packet.
fn capture(path: &Path) {
    let mut head = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    head.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    std::fs::write(path, head).unwrap();
}

#[test]
fn the_command_of_a_trace_a_simulation_and_a_probe_can_be_pasted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join(FOLDER);
    std::fs::create_dir(&folder).unwrap();

    let pcap = folder.join("a capture.pcap");
    capture(&pcap);
    is_made_again(["trace".as_ref(), pcap.as_os_str()], &folder);

    let topology = folder.join("a topology.toml");
    std::fs::write(&topology, TOPOLOGY).unwrap();
    let simulate = ["model".as_ref(), "simulate".as_ref(), topology.as_os_str()];
    is_made_again(simulate.into_iter().chain(["--seed".as_ref(), "7".as_ref()]), &folder);

    let served = Served::memory(&[]);
    is_made_again(["probe", "--quick", &served.url()], &folder);
    served.stop();
}

#[test]
fn a_trace_takes_names_that_are_no_utf_8() {
    let place = tempfile::tempdir().unwrap();
    let pcap = place.path().join(OsStr::from_bytes(b"caf\xe9.pcap"));
    capture(&pcap);
    let page = place.path().join("page");
    let finished = run(["trace".as_ref(), pcap.as_os_str(), "--html".as_ref(), page.as_os_str()]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert!(command(&page).contains(r"caf\xe9.pcap'"), "{}", command(&page));
}
