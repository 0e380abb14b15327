//! The arguments of `nfskit stat` and `nfskit top`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use perf::units::Nanos;

/// What mounts and servers do, from the counters of this host: nfsstat and nfsiostat in one.
///
/// The first sample counts since each mount was made, or the machine started; with an INTERVAL
/// others follow, each of what came since the one before. Mounts are not touched: one whose server
/// does not answer delays nothing.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit stat                                     since the mounts were made
  nfskit stat 1                                   every second, until Ctrl-C
  nfskit stat 5 3 --mount /home --json -          three samples, a line of JSON each
  nfskit stat --metrics 127.0.0.1:9049 1          our own server or mount, with percentiles
  nfskit stat --from /tmp/before --from /tmp/after

queue, rtt and exec are milliseconds of a call on average: before it was sent, from there to its
reply, and the whole. outst. is calls outstanding on average, by Little's law.")]
pub(crate) struct Stat {
    /// Time from one sample to the next: seconds, or with a unit, from 100ms.
    #[arg(value_name = "INTERVAL", value_parser = interval)]
    pub(crate) interval: Option<Nanos>,
    /// Samples until it ends, the first included [default: no end].
    #[arg(value_name = "COUNT", value_parser = harness::values::count(1..=1_000_000_000))]
    pub(crate) count: Option<u32>,
    /// Saved counters instead of this host's: a copy of /proc, or one file of it. Given twice, what
    /// came between. With an interval it is read each time; /proc/PID has the mounts of a
    /// container.
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "metrics")]
    pub(crate) from: Vec<PathBuf>,
    /// Only these mounts, by their mount points.
    #[arg(long, value_name = "DIR", conflicts_with = "metrics")]
    pub(crate) mount: Vec<PathBuf>,
    /// Our own server or mount instead, by the address of its --metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = harness::values::listen)]
    pub(crate) metrics: Vec<SocketAddr>,
    /// Writes a record of each sample, a line each, to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What mounts and servers do, live: sorted, filtered and explored with keys, with a history.
///
/// Shows the mounts of this host and its kernel's server; with --metrics the operations, clients
/// and (of `nfskit serve --metrics-files`) files of our own servers and mounts.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit top                                      this host's mounts, every second
  nfskit top 5 --metrics 127.0.0.1:9049           our own server, every 5 s

Keys: q quits, h helps, Enter looks inside of a mount, Esc goes back, / filters, s sorts, p
pauses.")]
pub(crate) struct Top {
    /// Time from one sample to the next: seconds, or with a unit, from 100ms.
    #[arg(value_name = "INTERVAL", default_value = "1", value_parser = interval)]
    pub(crate) interval: Nanos,
    /// Counters of another place instead: a copy of /proc, or /proc/PID for the mounts of a
    /// container.
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "metrics")]
    pub(crate) from: Option<PathBuf>,
    /// Our own server or mount instead, by the address of its --metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = harness::values::listen)]
    pub(crate) metrics: Vec<SocketAddr>,
}

/// Samples that are nearer cost more than they tell.
const INTERVAL_MIN: Nanos = Nanos::from_millis(100);

fn interval(text: &str) -> Result<Nanos, String> {
    match harness::values::time(text)? {
        span if span < INTERVAL_MIN => Err(format!("{text:?} is shorter than {INTERVAL_MIN}")),
        span => Ok(span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_time_that_is_not_too_short() {
        assert_eq!(interval("1"), Ok(Nanos::from_secs(1)));
        assert_eq!(interval("100ms"), Ok(INTERVAL_MIN));
        assert!(interval("99ms").unwrap_err().contains("shorter than 100"));
        assert!(interval("0").unwrap_err().contains("above 0"));
    }
}
