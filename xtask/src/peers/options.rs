//! The arguments of `cargo xtask peers`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};
use serde_json::{Value, json};

/// Runs of every row for every server, unless given.
const REPEATS: u16 = 5;
const REPEATS_QUICK: u16 = 3;

/// nfskit serve measured side by side with NFS-Ganesha and unfs3.
#[derive(Clone, Debug, Parser)]
#[command(name = "peers", bin_name = "cargo xtask peers")]
pub(crate) struct Options {
    /// Runs of every row for every server [default: 5, with --quick 3].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    repeats: Option<u16>,
    /// Only rows whose name contains it; may be given again.
    #[arg(long, value_name = "SUBSTRING")]
    pub(crate) only: Vec<String>,
    /// Shorter runs.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Writes one object for each run, and what was measured on.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// More arguments for `nfskit serve`.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    serve: Vec<String>,
    /// Without the rows for two cores.
    #[arg(long)]
    pub(crate) pinned_only: bool,
    /// Where the time of our server goes in each row, instead of how much it is (needs linux-perf).
    #[arg(long)]
    pub(crate) perf: bool,
}

impl Options {
    pub(crate) fn repeats(&self) -> usize {
        self.repeats.unwrap_or(if self.quick { REPEATS_QUICK } else { REPEATS }).into()
    }

    pub(crate) fn serve(&self) -> Vec<String> {
        let words = self.serve.iter().flat_map(|words| words.split_whitespace());
        words.map(str::to_owned).collect()
    }

    pub(crate) fn wants(&self, row: &str) -> bool {
        let row = row.to_lowercase();
        self.only.is_empty() || self.only.iter().any(|part| row.contains(&part.to_lowercase()))
    }

    /// How long a row that has no end of its own is measured.
    pub(crate) fn run_for(&self) -> Duration {
        Duration::from_millis(if self.quick { 400 } else { 1000 })
    }

    pub(crate) fn warm_up_for(&self) -> Duration {
        Duration::from_millis(if self.quick { 100 } else { 250 })
    }

    /// Bytes of the file that is written from its start to its end.
    pub(crate) fn write_bytes(&self) -> u64 {
        (if self.quick { 128 } else { 256 }) << 20
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "repeats": self.repeats(),
            "quick": self.quick,
            "only": self.only,
            "perf": self.perf,
            "serve": self.serve(),
            "seconds_per_run": self.run_for().as_secs_f64(),
            "seconds_of_warm_up": self.warm_up_for().as_secs_f64(),
            "write_bytes": self.write_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    fn options(words: &[&str]) -> Options {
        parse(words).unwrap()
    }

    #[test]
    fn options_are_read_and_rows_chosen() {
        let words = ["--quick", "--only", "READ 64", "--only", "null", "--repeats", "7"];
        let some = options(&words);
        assert_eq!(some.repeats(), 7);
        assert!(some.wants("READ 64 KiB x16") && some.wants("NULL x1"));
        assert!(!some.wants("GETATTR x64"));
        assert_eq!(options(&[]).repeats(), usize::from(REPEATS));
        assert_eq!(options(&["--quick"]).repeats(), usize::from(REPEATS_QUICK));
        assert!(options(&[]).wants("anything"));
        assert_eq!(options(&["--serve", "--threads 2  -v"]).serve(), ["--threads", "2", "-v"]);
    }

    #[test]
    fn what_is_unknown_or_wrong_is_refused() {
        for wrong in [&["--fast"][..], &["--repeats"], &["--repeats", "0"]] {
            assert!(parse::<Options>(wrong).is_err(), "{wrong:?}");
        }
    }
}
