//! Where a mount says what it has to say: the terminal, or the system's log once it runs in the
//! background.

use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use harness::verbosity::Verbosity;
use parking_lot::Mutex;
use perf::printable::in_lines;

/// Where the system's log listens (syslog(3)).
const SYSLOG: &str = "/dev/log";

/// How much something matters: numbers of syslog(3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Weight {
    Warning = 4,
    Info = 6,
}

/// See the module's head; clones write to the same place.
#[derive(Clone, Debug)]
pub(super) struct Notices {
    verbosity: Verbosity,
    /// Guards which of the two it is.
    log: Arc<Mutex<Option<UnixDatagram>>>,
    is_detached: Arc<Mutex<bool>>,
}

impl Notices {
    pub(super) fn new(verbosity: Verbosity) -> Self {
        Self { verbosity, log: Arc::default(), is_detached: Arc::default() }
    }

    /// From now on nobody reads the terminal's.
    pub(super) fn detach(&self) {
        *self.is_detached.lock() = true;
        *self.log.lock() = syslog().ok();
    }

    /// Something that is as it should be.
    pub(super) fn say(&self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.print(Weight::Info, text);
        }
    }

    /// Something that is not.
    pub(super) fn warn(&self, text: &str) {
        self.print(Weight::Warning, text);
    }

    fn log(&self, weight: Weight, text: &str) {
        // 3 << 3: a daemon's.
        let line = format!("<{}>nfskit[{}]: {text}", 3 << 3 | weight as i32, std::process::id());
        if let Some(log) = self.log.lock().as_ref() {
            log.send(line.as_bytes()).ok();
        }
    }

    fn print(&self, weight: Weight, text: &str) {
        let text = &in_lines(text);
        if *self.is_detached.lock() {
            return self.log(weight, text);
        }
        // Nobody reads any more: the mount goes on.
        match weight {
            Weight::Info => {
                let mut out = std::io::stdout().lock();
                writeln!(out, "{text}").and_then(|()| out.flush()).ok();
            }
            Weight::Warning => {
                writeln!(std::io::stderr().lock(), "nfskit: {text}").ok();
            }
        }
    }
}

fn syslog() -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    // A log that does not read must not hold up a mount.
    socket.set_nonblocking(true)?;
    socket.connect(SYSLOG)?;
    Ok(socket)
}
