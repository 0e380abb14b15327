//! What happened, as a number that is the same when the same happened.

use perf::units::Instant;
use world::trace::Digest;

/// Lines that are stored; later ones count in the digest only.
const LINES_MAX: usize = 100_000;

/// See the module's head.
#[derive(Debug)]
pub struct Trace {
    digest: Digest,
    ops: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(is_verbose: bool) -> Self {
        Self { digest: Digest::default(), ops: 0, lines: is_verbose.then(Vec::new) }
    }

    pub(crate) fn add(&mut self, now: Instant, what: impl FnOnce() -> String) {
        let line = format!("{:>14} {}", now.as_nanos() / 1_000, what());
        self.digest.mix(line.as_bytes());
        if let Some(lines) = self.lines.as_mut().filter(|lines| lines.len() < LINES_MAX) {
            lines.push(line);
        }
    }

    pub(crate) fn op(&mut self) {
        self.ops += 1;
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest.number()
    }

    pub(crate) fn ops(&self) -> u64 {
        self.ops
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
