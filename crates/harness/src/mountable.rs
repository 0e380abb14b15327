//! How clients mount what listens here: the commands that banners print, which work as they are.

use std::net::SocketAddr;

use client::url::{Version, encoded};

use crate::shell;

/// An export behind an address of ours.
#[derive(Clone, Copy, Debug)]
pub struct Mountable<'a> {
    pub listen: SocketAddr,
    pub mount_port: u16,
    pub export: &'a str,
    pub version: Version,
}

impl Mountable<'_> {
    /// The host, as it stands before a colon.
    fn host(&self) -> String {
        let address = self.listen.ip();
        if address.is_unspecified() {
            rustix::system::uname().nodename().to_string_lossy().into_owned()
        } else if address.is_ipv6() {
            format!("[{address}]")
        } else {
            address.to_string()
        }
    }

    pub fn url(&self) -> String {
        let version = match self.version {
            Version::Two => "version=2&",
            Version::Three => "",
        };
        let (port, mount_port) = (self.listen.port(), self.mount_port);
        let path = encoded(self.export.as_bytes());
        format!("nfs://{}{path}?{version}nfsport={port}&mountport={mount_port}", self.host())
    }

    /// What is mounted, for mount(8).
    fn place(&self) -> String {
        shell::quoted(format!("{}:{}", self.host(), self.export))
    }

    /// For the kernel's client, over `tcp` or `udp`.
    pub fn linux(&self, protocol: &str) -> String {
        let address = self.listen.ip();
        // mount.nfs(8) takes an address of IPv6 for a mistake unless the netid is one of IPv6, too.
        let six = if address.is_ipv6() && !address.is_unspecified() { "6" } else { "" };
        let (port, mount_port) = (self.listen.port(), self.mount_port);
        format!(
            "mount -t nfs -o vers={},proto={protocol}{six},port={port},mountport={mount_port},\
             mountproto={protocol}{six},nolock {} /mnt",
            self.version.number(),
            self.place()
        )
    }

    /// The same of macOS, whose calls come from a privileged port only by an option.
    pub fn macos(&self, privileged_port: bool) -> String {
        let resvport = if privileged_port { ",resvport" } else { "" };
        format!(
            "mount -t nfs -o vers={},tcp,port={},mountport={},nolocks{resvport} {} /mnt",
            self.version.number(),
            self.listen.port(),
            self.mount_port,
            self.place()
        )
    }

    /// For whoever may not use mount(8): in a directory of his own, as fusermount3 wants it.
    pub fn by_fuse(&self) -> String {
        format!("mkdir -p ~/nfs && nfskit mount {} ~/nfs", shell::quoted(self.url()))
    }
}

#[cfg(test)]
mod tests {
    use client::url::Target;

    use super::*;

    fn of(listen: &str, version: Version) -> Mountable<'_> {
        Mountable { listen: listen.parse().unwrap(), mount_port: 7, export: "/data", version }
    }

    /// An option's value in a line of mount(8).
    fn option<'a>(line: &'a str, key: &str) -> Option<&'a str> {
        let (_, options) = line.split_once(" -o ")?;
        let mut options = options.split(' ').next()?.split(',');
        options.find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }

    #[test]
    fn an_address_of_ipv6_has_netids_of_ipv6() {
        let netids = |listen: &str, protocol: &str| {
            let line = of(listen, Version::Three).linux(protocol);
            let netid = |key| option(&line, key).unwrap().to_owned();
            (netid("proto"), netid("mountproto"))
        };
        let both = |netid: &str| (netid.to_owned(), netid.to_owned());
        assert_eq!(netids("[::1]:5", "tcp"), both("tcp6"));
        assert_eq!(netids("[::1]:5", "udp"), both("udp6"));
        assert_eq!(netids("127.0.0.1:5", "tcp"), both("tcp"));
        // It is for both families, and a name is printed that the resolver knows.
        assert_eq!(netids("[::]:5", "tcp"), both("tcp"));
    }

    #[test]
    fn every_way_speaks_the_version_that_is_served() {
        for version in [Version::Two, Version::Three] {
            for listen in ["[::1]:5", "127.0.0.1:5"] {
                let mountable = of(listen, version);
                let target: Target = mountable.url().parse().unwrap();
                assert_eq!(
                    (target.version, target.nfs_port, target.mount_port),
                    (version, Some(5), Some(7))
                );
                assert_eq!(target.path, b"/data");
                let number = version.number().to_string();
                for line in [mountable.linux("tcp"), mountable.macos(true)] {
                    assert_eq!(option(&line, "vers"), Some(&*number), "{line}");
                }
            }
        }
    }
}
