//! Mounts that cannot be: a clear message, the right exit code, and nothing is left mounted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::mounted::is_mounted;
use super::options::Options;
use super::served::{Ours, new_folder};
use crate::host::child::{finish, text};
use crate::host::report::Report;

const WITHIN: Duration = Duration::from_secs(30);

pub(super) fn check(report: &mut Report, scratch: &Path, nfskit: &Path, options: &Options) {
    if options.wants("refused") {
        report.check("nfskit", "refused", || all(scratch, nfskit));
    }
}

fn all(scratch: &Path, nfskit: &Path) -> Result<String, String> {
    let export = new_folder(scratch, "export-refused")?;
    let server = Ours::start(nfskit, scratch, &export, &["--export", "/data=insecure"])?;
    let url = server.url().replace("127.0.0.1/?", "127.0.0.1/data?");
    let good = new_folder(scratch, "mnt-refused")?;
    let full = new_folder(scratch, "mnt-full")?;
    std::fs::write(full.join("file"), "").map_err(|error| error.to_string())?;
    let (file, absent) = (full.join("file"), scratch.join("mnt-absent"));
    let other = url.replace("/data?", "/other?");
    let nobody = "nfs://127.0.0.1/data?nfsport=1&mountport=1".to_owned();
    let cases: [(&str, &str, &Path, &[&str], i32); 7] = [
        ("a folder that is not empty", &url, &full, &[], 3),
        ("a file", &url, &file, &[], 3),
        ("a folder that is not there", &url, &absent, &[], 3),
        ("an export that is not there", &other, &good, &[], 3),
        ("a port on which nobody listens", &nobody, &good, &[], 3),
        ("an unknown option", &url, &good, &["-o", "colour=red"], 3),
        ("a URL that is none", "http://127.0.0.1/", &good, &[], 3),
    ];
    for (what, url, dir, options, code) in cases {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\" 2>&1 >/dev/null; echo exit $?", "sh"]).arg(nfskit);
        shell.args(["mount", url]).arg(dir).args(options);
        let output = finish(&mut shell, WITHIN, text).map_err(|why| format!("{what}: {why}"))?;
        let output = output.value;
        if !output.trim_end().ends_with(&format!("exit {code}")) {
            return Err(format!("{what}: exit {code} expected: {output}"));
        }
        if output.lines().count() < 2 || output.contains("panicked") {
            return Err(format!("{what}: no clear message: {output}"));
        }
        if is_mounted(dir) {
            return Err(format!("{what}: something is mounted"));
        }
    }
    server.stop()?;
    Ok(format!("{} ways", cases.len()))
}
