//! The arguments of `cargo xtask guest`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// The Linux kernel's client, in a guest, against the release binary.
#[derive(Debug, Parser)]
#[command(name = "guest", bin_name = "cargo xtask guest")]
pub(super) struct Options {
    /// What is played.
    #[arg(value_enum, default_value = "work")]
    pub(super) play: Play,
    /// The scripts that make and run the guest, if they are not beside the checkout.
    #[arg(long, value_name = "DIR")]
    pub(super) kernelvm: Option<PathBuf>,
    /// Before each server stands a proxy, which the guest mounts.
    #[arg(long)]
    pub(super) proxy: bool,
    /// The proxies stand before NFS-Ganesha.
    #[arg(long, requires = "proxy")]
    pub(super) ganesha: bool,
    /// The proxies of root answer changes from a log.
    #[arg(long, requires = "proxy")]
    pub(super) write_back: bool,
    /// A binary that is there already, instead of a release build.
    #[arg(long, value_name = "PROGRAM")]
    pub(super) nfskit: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Play {
    /// System calls, what people do with a tree, and 5 GiB; all is compared.
    Work,
    /// How many calls programs make, on the kernel's client and on our mount.
    Calls,
    /// Our cache beside the kernel's FS-Cache, also after a power cut.
    Fscache,
    /// A tree is unpacked through proxies before a server that is 10 ms away.
    Behind,
    /// What clients of two proxies and of their server see of each other's changes.
    Seen,
    /// What a write log saves a disk, by its counters, and the response times.
    WriteLog,
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
