//! The arguments of `cargo xtask guest`.

use std::path::PathBuf;

const USAGE: &str = "usage: cargo xtask guest [--kernelvm DIR]";

#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Options {
    /// The scripts that make and run the guest, if they are not beside the checkout.
    pub(super) kernelvm: Option<PathBuf>,
}

impl Options {
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        match words {
            [] => Ok(Self::default()),
            ["--kernelvm", folder] => Ok(Self { kernelvm: Some(PathBuf::from(folder)) }),
            _ => Err(USAGE.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_option_names_the_scripts() {
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        let named = Options::parse(&["--kernelvm", "/x"]).unwrap();
        assert_eq!(named.kernelvm, Some(PathBuf::from("/x")));
        assert!(Options::parse(&["--kernelvm"]).is_err());
    }
}
