//! The arguments of `cargo xtask drill`.

use std::path::PathBuf;

const USAGE: &str = "\
usage: cargo xtask drill [--only NAME,...] [--json FILE] [--record] [--list] [--nfskit PROGRAM]
                         [--kernelvm DIR]

  --only NAME,...   these faults and workloads
  --json FILE       what was staged, found, predicted and measured
  --record          write the tables into docs/doctor.md
  --list            name all, and play none
";

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Options {
    /// Names; empty: all.
    pub(super) only: Vec<String>,
    pub(super) json: Option<PathBuf>,
    pub(super) record: bool,
    pub(super) list: bool,
    /// A binary that is there already, instead of a release build.
    pub(super) nfskit: Option<PathBuf>,
    /// The scripts that make and run the guest, if they are not beside the checkout.
    pub(super) kernelvm: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = words;
        while let [word, more @ ..] = rest {
            rest = more;
            match *word {
                "--record" => options.record = true,
                "--list" => options.list = true,
                "--only" | "--json" | "--nfskit" | "--kernelvm" => {
                    let [value, more @ ..] = rest else {
                        return Err(format!("{word} wants a value\n{USAGE}"));
                    };
                    rest = more;
                    match *word {
                        "--only" => options.only = value.split(',').map(str::to_owned).collect(),
                        "--json" => options.json = Some(PathBuf::from(value)),
                        "--nfskit" => options.nfskit = Some(PathBuf::from(value)),
                        _ => options.kernelvm = Some(PathBuf::from(value)),
                    }
                }
                _ => return Err(format!("drill: what is {word:?}?\n{USAGE}")),
            }
        }
        if let Some(name) = options.only.iter().find(|name| !super::names().any(|it| it == *name)) {
            return Err(format!("drill: nothing is called {name:?}; --list names all"));
        }
        if options.record && !options.only.is_empty() {
            return Err("drill: --record wants all of them".to_owned());
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

    #[test]
    fn names_are_chosen_and_a_wrong_one_is_refused() {
        let some = Options::parse(&["--only", "latency,noac", "--json", "x"]).unwrap();
        assert!(some.wants("noac") && !some.wants("loss"));
        assert!(Options::parse(&["--only", "nothing"]).is_err());
        assert!(Options::parse(&["--only"]).is_err() && Options::parse(&["latency"]).is_err());
        assert!(Options::parse(&["--only", "noac", "--record"]).is_err());
    }
}
