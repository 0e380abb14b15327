//! Where our server's CPU time goes in a row: perf attached to it for the timed part alone.
//!
//! Numbers of a run that is profiled are not for comparing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::host::child::{Service, finish, text};
use crate::host::nfskit::{START_WITHIN, STOP_WITHIN};
use crate::host::tools;

/// Not a divisor of the timer's frequency, so that the two do not go in step.
const SAMPLES_PER_S: &str = "1999";
const REPORT_WITHIN: Duration = Duration::from_secs(60);
const SYMBOLS_MAX: usize = 15;

/// A perf at work.
#[derive(Debug)]
pub(crate) struct Profile {
    perf: PathBuf,
    service: Service,
    data: PathBuf,
}

impl Profile {
    /// Attaches to a process; returns when perf has begun.
    pub(crate) fn start(pid: u32, folder: &Path) -> Result<Self, String> {
        let perf = tools::find("perf", "linux-perf")?;
        let data = folder.join("perf.data");
        // What an earlier row left; there is none at first.
        let _ = std::fs::remove_file(&data);
        let mut command = Command::new(&perf);
        command.args(["record", "-q", "-F", SAMPLES_PER_S, "-p", &pid.to_string(), "-o"]);
        let mut service = Service::start(command.arg(&data))?;
        service.wait_for(START_WITHIN, |_| data.is_file().then_some(()))?;
        Ok(Self { perf, service, data })
    }

    /// Ends it; the symbols with the largest shares, one a line.
    pub(crate) fn stop(self) -> Result<Vec<String>, String> {
        // It ends by the signal that we send, which is no failure.
        let _ = self.service.stop(STOP_WITHIN);
        let mut command = Command::new(self.perf);
        command.args(["report", "--stdio", "-g", "none", "--sort", "comm,dso,sym", "-i"]);
        let report = finish(command.arg(&self.data), REPORT_WITHIN, text)?.value;
        Ok(symbols(&report))
    }
}

/// The lines of a report that have a share.
fn symbols(report: &str) -> Vec<String> {
    let lines = report.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines
        .filter(|line| line.split_whitespace().next().is_some_and(|share| share.ends_with('%')))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .take(SYMBOLS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_the_lines_with_a_share() {
        let report = "# Overhead  Command\n#\n\n    49.48%  nfskit   [kernel]  [k] clear_page\n\n";
        assert_eq!(symbols(report), ["49.48% nfskit [kernel] [k] clear_page"]);
    }
}
