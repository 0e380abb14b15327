//! What the engine serves: programs and their versions.

/// The versions of NFS that are offered, each with its MOUNT.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Versions {
    /// NFS version 2, with MOUNT version 1 and NLM versions 1 and 3.
    pub nfs2: bool,
    /// NFS version 3, with MOUNT version 3 and NLM version 4.
    pub nfs3: bool,
}

impl Default for Versions {
    /// All.
    fn default() -> Self {
        Self { nfs2: true, nfs3: true }
    }
}

impl Versions {
    /// Program and version of everything that is served, the versions of a program ascending.
    pub(crate) fn programs(self) -> impl Iterator<Item = (u32, u32)> {
        use wire::{mount, nfs2, nfs3, nlm, portmap, rpcbind};
        let all = [
            (true, portmap::PROGRAM, portmap::VERSION),
            (true, rpcbind::PROGRAM, rpcbind::VERSION_3),
            (true, rpcbind::PROGRAM, rpcbind::VERSION_4),
            (self.nfs2, nfs2::PROGRAM, nfs2::VERSION),
            (self.nfs3, nfs3::PROGRAM, nfs3::VERSION),
            (self.nfs2, mount::PROGRAM, mount::VERSION_1),
            (self.nfs3, mount::PROGRAM, mount::VERSION),
            (self.nfs2, nlm::PROGRAM, nlm::VERSION_1),
            (self.nfs2, nlm::PROGRAM, nlm::VERSION_3),
            (self.nfs3, nlm::PROGRAM, nlm::VERSION_4),
        ];
        all.into_iter()
            .filter(|(offered, ..)| *offered)
            .map(|(_, program, version)| (program, version))
    }

    /// The lowest and the highest version of a program; none when it is not served at all.
    pub(crate) fn range_of(self, program: u32) -> Option<(u32, u32)> {
        let versions = || self.programs().filter(|&(found, _)| found == program).map(|(_, v)| v);
        Some((versions().min()?, versions().max()?))
    }

    pub(crate) fn serves(self, program: u32, version: u32) -> bool {
        self.programs().any(|served| served == (program, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_has_its_range() {
        let ranges = |nfs2, nfs3| {
            let versions = Versions { nfs2, nfs3 };
            [100_000, 100_003, 100_005, 100_021].map(|program| versions.range_of(program))
        };
        let portmap = Some((2, 4));
        assert_eq!(ranges(true, true), [portmap, Some((2, 3)), Some((1, 3)), Some((1, 4))]);
        assert_eq!(ranges(false, true), [portmap, Some((3, 3)), Some((3, 3)), Some((4, 4))]);
        assert_eq!(ranges(true, false), [portmap, Some((2, 2)), Some((1, 1)), Some((1, 3))]);
        assert_eq!(ranges(false, false), [portmap, None, None, None]);
        assert!(Versions::default().serves(100_005, 1) && !Versions::default().serves(100_005, 2));
    }
}
