//! `nfskit serve` and libnfs's command line tools: list many files, copy a large one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::host::about;
use crate::host::child::{Finished, finish, text};
use crate::host::content;
use crate::host::nfskit::Server;
use crate::host::report::Report;
use crate::host::tools;

const PEER: &str = "libnfs";
/// Many pages of a directory, whatever size of page a client requests.
const FILES: usize = 10_000;
const LARGE_MIB: u64 = 1024;
/// Where the large files are. libnfs mounts the folder of what it copies; for a file at the top it
/// mounts the empty path, and gives up on its own when it then mounts exports below that.
const COPIES: &str = "copies";
const SEED: u64 = 19_890_101;
/// Far above what a slow machine needs, far below what a person waits.
const COPY_WITHIN: Duration = Duration::from_secs(180);
const LIST_WITHIN: Duration = Duration::from_secs(60);

/// Everything that libnfs does with our server.
pub(super) fn check(report: &mut Report, scratch: &Path, nfskit: &Path) {
    let programs = ["nfs-ls", "nfs-cat", "nfs-cp"].map(|tool| tools::find(tool, "libnfs-utils"));
    let [Ok(ls), Ok(cat), Ok(cp)] = programs else {
        let why = programs.into_iter().filter_map(Result::err).next();
        return report.skip(PEER, "list and copy", why.unwrap_or_default());
    };
    let folder = scratch.join("served");
    let made = report.check(PEER, "make files to serve", || {
        make_files(&folder).map_err(|error| error.to_string())?;
        Ok(format!("{FILES} small, one of {LARGE_MIB} MiB"))
    });
    if !made {
        return;
    }
    let server = report.make(PEER, "nfskit serve starts", || {
        let started = Server::start(nfskit, &folder)?;
        let url = started.address.url("");
        Ok((started, url))
    });
    let Some(server) = server else { return };
    let large = folder.join(COPIES).join("large");
    let url = server.address.url(&format!("{COPIES}/large"));
    report
        .check(PEER, format!("nfs-ls finds {FILES} names"), || list(&ls, &server.address.url("")));
    report.check(PEER, "nfs-cat reads the large file", || {
        let mut command = Command::new(&cat);
        let read =
            finish(command.arg(&url), COPY_WITHIN, |stdout| content::compare(&large, stdout))?;
        read.value.as_ref().map_err(Clone::clone)?;
        Ok(rate(&read))
    });
    report.check(PEER, "nfs-cp reads the large file", || {
        let copy = scratch.join("copy");
        let copied = finish(Command::new(&cp).arg(&url).arg(&copy), COPY_WITHIN, text)?;
        content::compare_files(&large, &copy)?;
        remove(&copy)?;
        Ok(rate(&copied))
    });
    report.check(PEER, "nfs-cp writes the large file", || {
        let target = server.address.url(&format!("{COPIES}/written"));
        let copied = finish(Command::new(&cp).arg(&large).arg(target), COPY_WITHIN, text)?;
        let written = folder.join(COPIES).join("written");
        content::compare_files(&large, &written)?;
        remove(&written)?;
        Ok(rate(&copied))
    });
    report.done(PEER, "nfskit serve ends on SIGTERM", || server.stop());
    // The next checks need the room, and nobody the result: the scratch folder goes anyway.
    let _ = std::fs::remove_dir_all(&folder);
}

fn make_files(folder: &Path) -> std::io::Result<()> {
    let many = folder.join("many");
    std::fs::create_dir_all(&many)?;
    for name in names() {
        std::fs::write(many.join(&name), &name)?;
    }
    let copies = folder.join(COPIES);
    std::fs::create_dir_all(&copies)?;
    content::write(&copies.join("large"), SEED, LARGE_MIB)
}

fn names() -> impl Iterator<Item = String> {
    (0..FILES).map(|number| format!("file-{number:05}"))
}

/// Lists the whole export and compares the names with those that we made.
fn list(ls: &PathBuf, url: &str) -> Result<String, String> {
    let listed = finish(Command::new(ls).args(["-R", url]), LIST_WITHIN, text)?;
    compare_names(&listed.value)?;
    Ok(format!("{:.2} s", listed.seconds))
}

/// Each name once: a cookie that goes wrong at a page's end loses or repeats some.
fn compare_names(listing: &str) -> Result<(), String> {
    let lines = listing.lines().filter_map(|line| line.split_whitespace().next_back());
    let listed: Vec<&str> = lines
        .map(|path| path.rsplit('/').next().unwrap_or(path))
        .filter(|name| name.starts_with("file-"))
        .collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    let expected: Vec<String> = names().collect();
    let missing: Vec<&String> =
        expected.iter().filter(|name| !distinct.contains(name.as_str())).collect();
    match missing.first() {
        Some(first) => Err(format!("{} names missing, the first is {first}", missing.len())),
        None if listed.len() != FILES => Err(format!("{} names for {FILES} files", listed.len())),
        None => Ok(()),
    }
}

fn rate<T>(copied: &Finished<T>) -> String {
    let mib_per_s = LARGE_MIB as f64 / copied.seconds;
    format!("{:.1} s, {mib_per_s:.0} MiB/s", copied.seconds)
}

fn remove(file: &Path) -> Result<(), String> {
    std::fs::remove_file(file).map_err(about(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_with_a_name_lost_or_repeated_is_refused() {
        let lines: Vec<String> =
            names().map(|name| format!("-rw-r--r-- 1 0 0 10 {name}")).collect();
        assert_eq!(compare_names(&lines.join("\n")), Ok(()));
        let lost = compare_names(&lines[1..].join("\n")).unwrap_err();
        assert!(lost.contains("1 names missing"), "{lost}");
        let repeated = format!("{}\n{}", lines.join("\n"), lines[7]);
        assert!(compare_names(&repeated).unwrap_err().contains("10001 names"));
    }
}
