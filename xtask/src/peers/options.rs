//! The arguments of `cargo xtask peers`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

/// Runs of every row for every server, unless asked otherwise.
const REPEATS: usize = 5;
const REPEATS_QUICK: usize = 3;

/// What to measure, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) repeats: usize,
    /// Only rows whose name contains one of these; all when there are none.
    pub(crate) only: Vec<String>,
    pub(crate) quick: bool,
    pub(crate) json: Option<PathBuf>,
    /// More arguments for `nfskit serve`.
    pub(crate) serve: Vec<String>,
    /// Without the rows for two cores.
    pub(crate) pinned_only: bool,
    /// Says where our server's time goes, instead of how much it is.
    pub(crate) perf: bool,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            repeats: 0,
            only: Vec::new(),
            quick: false,
            json: None,
            serve: Vec::new(),
            pinned_only: false,
            perf: false,
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word {
                "--repeats" => {
                    let text = value()?;
                    options.repeats = text
                        .parse()
                        .ok()
                        .filter(|&repeats| repeats > 0)
                        .ok_or_else(|| format!("--repeats {text}: not a number from 1"))?;
                }
                "--only" => options.only.push(value()?.to_lowercase()),
                "--quick" => options.quick = true,
                "--pinned-only" => options.pinned_only = true,
                "--perf" => options.perf = true,
                "--json" => options.json = Some(PathBuf::from(value()?)),
                "--serve" => {
                    options.serve.extend(value()?.split_whitespace().map(str::to_owned));
                }
                other => return Err(format!("peers: unknown option {other}\n{USAGE}")),
            }
        }
        if options.repeats == 0 {
            options.repeats = if options.quick { REPEATS_QUICK } else { REPEATS };
        }
        Ok(options)
    }

    pub(crate) fn wants(&self, row: &str) -> bool {
        let row = row.to_lowercase();
        self.only.is_empty() || self.only.iter().any(|part| row.contains(part))
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
            "repeats": self.repeats,
            "quick": self.quick,
            "only": self.only,
            "perf": self.perf,
            "serve": self.serve,
            "seconds_per_run": self.run_for().as_secs_f64(),
            "seconds_of_warm_up": self.warm_up_for().as_secs_f64(),
            "write_bytes": self.write_bytes(),
        })
    }
}

pub(crate) const USAGE: &str = "\
usage: cargo xtask peers [OPTION]...

  --repeats N        runs of every row for every server (5; 3 with --quick)
  --only SUBSTRING   only rows whose name contains it; may be given again
  --quick            shorter runs
  --pinned-only      without the rows for two cores
  --perf             where the time of our server goes in each row (needs linux-perf)
  --serve OPTIONS    more arguments for `nfskit serve`
  --json FILE        one object for each run, and what was measured on
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_rows_chosen() {
        let options =
            Options::parse(&["--quick", "--only", "READ 64", "--only", "null", "--repeats", "7"])
                .unwrap();
        assert_eq!(options.repeats, 7);
        assert!(options.wants("READ 64 KiB x16") && options.wants("NULL x1"));
        assert!(!options.wants("GETATTR x64"));
        assert_eq!(Options::parse(&[]).unwrap().repeats, REPEATS);
        assert_eq!(Options::parse(&["--quick"]).unwrap().repeats, REPEATS_QUICK);
        assert!(Options::parse(&[]).unwrap().wants("anything"));
    }

    #[test]
    fn what_is_unknown_or_wrong_is_refused() {
        assert!(Options::parse(&["--fast"]).unwrap_err().contains("usage"));
        assert!(Options::parse(&["--repeats"]).unwrap_err().contains("needs a value"));
        assert!(Options::parse(&["--repeats", "0"]).is_err());
    }
}
