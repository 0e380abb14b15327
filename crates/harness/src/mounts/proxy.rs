//! A proxy on this host that answers changes from its log, in a process of its own (`nfskit serve
//! --write-back`): between the mount of a place and the link to the server.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::exit::Failure;

/// What its banner has before the URL by which it is mounted.
const URL: &str = "url ";
/// Bytes of its output at most; a banner is a fiftieth of that.
const BANNER_BYTES_MAX: u64 = 64 << 10;
const REASON_BYTES_MAX: u64 = 2 << 10;
/// How long what it has answered may take to come to the server at the end.
const GRACE: &str = "60s";

/// Runs until it is dropped, and brings everything to the server before it ends.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    /// Held open: what it still says has nowhere else to go.
    _output: BufReader<ChildStdout>,
    /// Where it is mounted.
    pub url: String,
}

impl Proxy {
    /// Blocks until it serves `origin`, over `link`, or has ended. Its log lies in `dir`.
    ///
    /// # Errors
    /// It has ended, with its last message.
    pub fn start(origin: &str, link: Option<&str>, dir: &Path) -> Result<Self, Failure> {
        let log = dir.join("write-back");
        let reason = dir.join("reason");
        let mut words = "soft".to_owned();
        words += &link.map_or_else(String::new, |link| format!(",link={link}"));
        let mut command = Command::new("/proc/self/exe");
        command.args(["serve", origin, "--listen", "127.0.0.1:0", "--grace", GRACE]);
        // As far as the server lets root be root: whoever mounts it is who runs this.
        command.args(["--export", "/=no_root_squash", "--origin", words.as_str()]);
        command.arg("--write-back").arg(&log).arg("--state").arg(dir.join("state"));
        let reason_file = File::create(&reason).map_err(Failure::resources)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(reason_file);
        let mut child = command.spawn().map_err(Failure::resources)?;
        let Some(output) = child.stdout.take() else { return Err(no_proxy("it has no output")) };
        let mut output = BufReader::new(output);
        match url(&mut output) {
            Some(url) => Ok(Self { child, _output: output, url }),
            None => {
                child.kill().ok();
                child.wait().ok();
                let mut text = String::new();
                let reason_file =
                    File::open(&reason).map(|reason_file| reason_file.take(REASON_BYTES_MAX));
                reason_file.and_then(|mut reason_file| reason_file.read_to_string(&mut text)).ok();
                Err(no_proxy(text.trim()))
            }
        }
    }
}

/// The URL that a banner has; none if it ends before.
fn url(output: &mut impl BufRead) -> Option<String> {
    let lines = output.by_ref().take(BANNER_BYTES_MAX).lines().map_while(Result::ok);
    let mut urls = lines.filter_map(|line| Some(line.trim().strip_prefix(URL)?.trim().to_owned()));
    urls.next()
}

fn no_proxy(reason: &str) -> Failure {
    let what = format!("no proxy with a write-back log: {reason}");
    Failure::environment(what, "the same with `nfskit serve --write-back`, which says more")
}

impl Drop for Proxy {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).ok();
        // It ends within its grace and five seconds.
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_the_one_of_the_banner() {
        let banner =
            "nfskit 0.1.0 serves NFS\n  origin      NFS v3\n  url         nfs://h/?a=1\nx\n";
        assert_eq!(url(&mut banner.as_bytes()).as_deref(), Some("nfs://h/?a=1"));
        assert_eq!(url(&mut "nfskit 0.1.0\n".as_bytes()), None);
    }
}
