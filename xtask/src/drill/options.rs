//! The arguments of `cargo xtask drill`.

use std::path::PathBuf;

use clap::Parser;

/// Stages faults, and compares what `nfskit doctor` says of them.
#[derive(Clone, Debug, Parser)]
#[command(name = "drill", bin_name = "cargo xtask drill")]
pub(super) struct Options {
    /// These faults and workloads.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = named)]
    pub(super) only: Vec<&'static str>,
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

fn named(name: &str) -> Result<&'static str, String> {
    crate::options::find(name, super::names().map(|name| (name, name)))
}

impl Options {
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    #[test]
    fn names_are_chosen_and_a_wrong_one_is_refused() {
        let some: Options = parse(&["--only", "latency,noac", "--json", "x"]).unwrap();
        assert!(some.wants("noac") && !some.wants("loss"));
        assert!(parse::<Options>(&["--only", "nothing"]).is_err());
        assert!(parse::<Options>(&["--only"]).is_err() && parse::<Options>(&["latency"]).is_err());
        assert!(parse::<Options>(&["--only", "noac", "--record"]).is_err());
    }
}
