//! The arguments of `cargo xtask mounts`.

use std::path::PathBuf;

use clap::Parser;

use super::served::Kind;

/// Programs and exercises on `nfskit mount`; servers good, lossy and dead.
#[derive(Clone, Debug, Parser)]
#[command(name = "mounts", bin_name = "cargo xtask mounts")]
pub(super) struct Options {
    /// Everything, but less of it: for every change.
    #[arg(long)]
    pub(super) quick: bool,
    /// These steps.
    #[arg(long, value_name = "STEP,...", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// These servers.
    #[arg(
        long = "server",
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = Kind::parse,
        default_values_t = Kind::ALL
    )]
    pub(super) servers: Vec<Kind>,
    /// Decides what is done at random.
    #[arg(long, value_name = "N", default_value_t = 1_989)]
    pub(super) seed: u64,
    /// A binary that is there already, instead of a release build.
    #[arg(long, value_name = "PROGRAM")]
    pub(super) nfskit: Option<PathBuf>,
}

impl Options {
    pub(super) fn wants(&self, step: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    #[test]
    fn what_is_wanted_is_named() {
        let all: Options = parse(&[]).unwrap();
        assert!(all.wants("fsx") && !all.quick && all.servers == Kind::ALL);
        let words = ["--quick", "--only", "fsx,git", "--server", "local", "--seed", "7"];
        let some: Options = parse(&words).unwrap();
        assert!(some.quick && some.wants("git") && !some.wants("tar"));
        assert_eq!((some.seed, some.servers), (7, vec![Kind::Local]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in [&["--server", "other"][..], &["--seed", "x"], &["--only"], &["quick"]] {
            assert!(parse::<Options>(wrong).is_err(), "{wrong:?}");
        }
    }
}
