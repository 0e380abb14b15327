//! Servers and disks whose power is cut, and what has to come of it.

/// A file system of the guest's disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Makes it, in an image.
    pub(super) fn maker(self) -> (&'static str, &'static [&'static str], &'static str) {
        match self {
            Self::Ext4 => ("mke2fs", &["-q", "-F", "-t", "ext4"], "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"], "xfsprogs"),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Server {
    Nfskit(&'static str),
    /// The guest's kernel, with this option of exports(5).
    Kernel(&'static str),
    Ganesha,
    /// Ours before an origin that stays, outside of the guest.
    Proxy(&'static str),
    /// Our mount of such an origin, with a cache.
    Mount(&'static str),
}

impl Server {
    /// What it exports, and the port of its MOUNT service, which is the last to be there.
    pub(super) fn export(self) -> (&'static str, u16) {
        match self {
            Self::Nfskit(_) | Self::Proxy(_) => ("/", 2049),
            // Nobody mounts it from here.
            Self::Mount(_) => ("", 0),
            Self::Kernel(_) => ("/mnt/data", 20_048),
            Self::Ganesha => ("/mnt/data", 2050),
        }
    }
}

/// How the server ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ends {
    /// The guest is killed, and with it what its disk has not flushed.
    Power,
    /// `kill -9`; the guest goes on.
    Process,
}

/// What crash-test has to say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Expected {
    NothingLost,
    /// One of these, or its checks find nothing.
    Lost(&'static [&'static str]),
}

/// See the module's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) file_system: FileSystem,
    /// Of mount(8).
    pub(super) options: &'static str,
    pub(super) server: Server,
    pub(super) ends: Ends,
    /// The disk is late: to its clients, a server that answers before it has synced.
    pub(super) is_late: bool,
    pub(super) expected: Expected,
    /// What the load has, as crash-test takes it.
    pub(super) calls: &'static str,
    /// Calls come again after the boot: the server is one whose replies outlive it.
    pub(super) retransmits: bool,
}

const TRUSTING: &str = "--export /=no_root_squash,insecure";
const LOGGED: &str =
    "--export /=no_root_squash,insecure --write-log /mnt/write-log --write-log-size 16M";
const WRITE_BACK: &str = "--export /=no_root_squash,insecure --write-back /mnt/write-back \
                          --write-back-size 16M --cache /mnt/cache --cache-size 100M \
                          --state /mnt/state";
/// Of a log that is late it is to be seen what is missing in it, and not that no handle is good.
const STATE_BESIDE: &str = "--export /=no_root_squash,insecure --write-back /mnt/write-back \
                            --write-back-size 16M --cache /mnt/cache --cache-size 100M \
                            --state /job/state";
const SILENT: &str = "--export /=no_root_squash,insecure --write-log /mnt/write-log \
                      --write-log-size 16M --log-replies never";
const FORGETFUL: &str = "--export /=no_root_squash,insecure --metadata-sync never";

const fn ours(name: &'static str, file_system: FileSystem, options: &'static str) -> Scene {
    Scene {
        name,
        file_system,
        options: "noatime",
        server: Server::Nfskit(options),
        ends: Ends::Power,
        is_late: false,
        expected: Expected::NothingLost,
        calls: "data,names,attributes",
        retransmits: false,
    }
}

/// A proxy with a cache and a log.
const fn proxy(name: &'static str, file_system: FileSystem, ends: Ends) -> Scene {
    Scene {
        server: Server::Proxy(WRITE_BACK),
        ends,
        calls: "data,names,attributes,reads",
        ..ours(name, file_system, "")
    }
}

const fn mount(name: &'static str, file_system: FileSystem, ends: Ends) -> Scene {
    Scene {
        server: Server::Mount("--cache /mnt/cache --cache-size 100M"),
        ends,
        ..ours(name, file_system, "")
    }
}

const fn logged(name: &'static str, file_system: FileSystem) -> Scene {
    Scene { retransmits: true, ..ours(name, file_system, LOGGED) }
}

pub(super) const SCENES: [Scene; 19] = [
    ours("ext4", FileSystem::Ext4, TRUSTING),
    logged("ext4-log", FileSystem::Ext4),
    ours("xfs", FileSystem::Xfs, TRUSTING),
    logged("xfs-log", FileSystem::Xfs),
    proxy("proxy", FileSystem::Ext4, Ends::Power),
    proxy("proxy-xfs", FileSystem::Xfs, Ends::Power),
    proxy("proxy-killed", FileSystem::Ext4, Ends::Process),
    mount("mount", FileSystem::Ext4, Ends::Power),
    mount("mount-xfs", FileSystem::Xfs, Ends::Power),
    mount("mount-killed", FileSystem::Ext4, Ends::Process),
    Scene { server: Server::Kernel("sync"), ..ours("knfsd", FileSystem::Ext4, "") },
    Scene {
        server: Server::Ganesha,
        // It syncs names with the next data, which would come at once.
        calls: "names",
        expected: Expected::Lost(&["names", "attributes"]),
        ..ours("ganesha", FileSystem::Ext4, "")
    },
    Scene {
        is_late: true,
        expected: Expected::Lost(&["data-sync", "data-commit", "names", "attributes"]),
        ..ours("planted-late", FileSystem::Ext4, TRUSTING)
    },
    Scene {
        is_late: true,
        expected: Expected::Lost(&["data-sync", "data-commit", "names", "attributes"]),
        ..ours("planted-late-log", FileSystem::Ext4, LOGGED)
    },
    Scene {
        server: Server::Proxy(STATE_BESIDE),
        is_late: true,
        expected: Expected::Lost(&["data-sync", "data-commit", "names", "attributes"]),
        ..proxy("planted-proxy", FileSystem::Ext4, Ends::Power)
    },
    Scene {
        expected: Expected::Lost(&["data-sync"]),
        ..mount("planted-mount", FileSystem::Ext4, Ends::Process)
    },
    Scene {
        calls: "names",
        expected: Expected::Lost(&["names", "attributes"]),
        ..ours("planted-names", FileSystem::Ext4, FORGETFUL)
    },
    Scene {
        retransmits: true,
        expected: Expected::Lost(&["replies", "names"]),
        ..ours("planted-replies", FileSystem::Ext4, SILENT)
    },
    Scene {
        server: Server::Kernel("async"),
        expected: Expected::Lost(&["data-sync", "data-commit", "names", "attributes"]),
        ..ours("knfsd-async", FileSystem::Ext4, "")
    },
];

/// Those that every run plays.
pub(super) const OURS: [&str; 4] = ["ext4", "ext4-log", "xfs", "xfs-log"];
