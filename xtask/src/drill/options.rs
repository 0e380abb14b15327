//! The arguments of `cargo xtask drill`.

use std::path::PathBuf;

use clap::Parser;

use crate::options::{find, parse};

/// Stages faults, and compares what `nfskit doctor` says of them.
#[derive(Clone, Debug, Parser)]
#[command(name = "drill", bin_name = "cargo xtask drill")]
pub(super) struct Options {
    /// These faults and workloads.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Writes what was staged, found, predicted and measured.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Writes the tables into docs/doctor.md; wants all faults.
    #[arg(long, conflicts_with = "only")]
    pub(super) record: bool,
    /// Keeps doctor's report of each client's fault in this folder.
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    /// Names all, and plays none.
    #[arg(long)]
    pub(super) list: bool,
    /// A binary that is there already, instead of a release build.
    #[arg(long, value_name = "PROGRAM")]
    pub(super) nfskit: Option<PathBuf>,
    /// The scripts that make and run the guest, if they are not beside the checkout.
    #[arg(long, value_name = "DIR")]
    pub(super) kernelvm: Option<PathBuf>,
}

impl Options {
    /// Reads them; `names` are all that there are.
    pub(super) fn parse(
        words: &[&str],
        names: impl Iterator<Item = &'static str> + Clone,
    ) -> Result<Self, String> {
        let options: Self = parse(words)?;
        for name in &options.only {
            find(name, names.clone().map(|name| (name, ())))
                .map_err(|why| format!("--only {name}: {why}"))?;
        }
        Ok(options)
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        Options::parse(words, ["latency", "noac", "loss"].into_iter())
    }

    #[test]
    fn names_are_chosen_and_a_wrong_one_is_refused() {
        let some = parsed(&["--only", "latency,noac", "--json", "x"]).unwrap();
        assert!(some.wants("noac") && !some.wants("loss"));
        assert!(parsed(&["--only", "nothing"]).is_err());
        assert!(parsed(&["--only"]).is_err() && parsed(&["latency"]).is_err());
        assert!(parsed(&["--only", "noac", "--record"]).is_err());
    }
}
