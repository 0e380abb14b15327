//! The arguments of `cargo xtask guest`.

use std::path::PathBuf;

use clap::Parser;

/// The Linux kernel's client, in a guest, against the release binary.
#[derive(Debug, Parser)]
#[command(name = "guest", bin_name = "cargo xtask guest")]
pub(super) struct Options {
    /// The scripts that make and run the guest, if they are not beside the checkout.
    #[arg(long, value_name = "DIR")]
    pub(super) kernelvm: Option<PathBuf>,
    /// Before each server stands a proxy, which the guest mounts.
    #[arg(long)]
    pub(super) proxy: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    #[test]
    fn options_name_the_scripts_and_want_proxies() {
        assert_eq!(parse::<Options>(&[]).unwrap().kernelvm, None);
        let named: Options = parse(&["--kernelvm", "/x"]).unwrap();
        assert_eq!(named.kernelvm, Some(PathBuf::from("/x")));
        assert!(parse::<Options>(&["--kernelvm"]).is_err());
        assert!(!named.proxy && parse::<Options>(&["--proxy"]).unwrap().proxy);
    }
}
