//! The arguments of `cargo xtask mounts`.

use std::path::PathBuf;

use super::served::Kind;

const USAGE: &str = "usage: cargo xtask mounts [--quick] [--only STEP,...] [--server NAME,...] \
                     [--seed N] [--nfskit PROGRAM]";

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Options {
    /// Everything, but less of it: for every change.
    pub(super) quick: bool,
    /// Names of steps; empty: all.
    pub(super) only: Vec<String>,
    pub(super) servers: Vec<Kind>,
    /// Decides what is done at random.
    pub(super) seed: u64,
    /// A binary that is there already, instead of a release build.
    pub(super) nfskit: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            quick: false,
            only: Vec::new(),
            servers: Kind::ALL.to_vec(),
            seed: 1_989,
            nfskit: None,
        };
        let mut rest = words;
        loop {
            rest = match rest {
                [] => return Ok(options),
                ["--quick", rest @ ..] => {
                    options.quick = true;
                    rest
                }
                ["--only", names, rest @ ..] => {
                    options.only = names.split(',').map(str::to_owned).collect();
                    rest
                }
                ["--server", names, rest @ ..] => {
                    options.servers =
                        names.split(',').map(Kind::parse).collect::<Result<_, _>>()?;
                    rest
                }
                ["--seed", seed, rest @ ..] => {
                    options.seed =
                        seed.parse().map_err(|_| format!("{seed:?} is not a seed\n{USAGE}"))?;
                    rest
                }
                ["--nfskit", program, rest @ ..] => {
                    options.nfskit = Some(PathBuf::from(program));
                    rest
                }
                _ => return Err(USAGE.to_owned()),
            };
        }
    }

    pub(super) fn wants(&self, step: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_named() {
        let all = Options::parse(&[]).unwrap();
        assert!(all.wants("fsx") && !all.quick && all.servers == Kind::ALL);
        let words = ["--quick", "--only", "fsx,git", "--server", "local", "--seed", "7"];
        let some = Options::parse(&words).unwrap();
        assert!(some.quick && some.wants("git") && !some.wants("tar"));
        assert_eq!((some.seed, some.servers), (7, vec![Kind::Local]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in [&["--server", "other"][..], &["--seed", "x"], &["--only"], &["quick"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
