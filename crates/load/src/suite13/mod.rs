//! The thirteen tests of a paper on caching files on the client's disk (Badros, *An Enhanced
//! Disk-Caching NFS*, 1997, "Benchmarks and Results"): each alone, then four copies at once, with
//! elapsed time and the calls of each.
//!
//! What it stresses: what a client remembers. Names and attributes (1 to 3, 5, 7), data that are
//! read again (4, 9), data that are not (8, 10, 11), and writes that a client may collect or not
//! (2, 6, 12, 13). The number of calls of each procedure is what a caching client has to beat.
//!
//! | | test | in the paper | here |
//! |---|---|---|---|
//! | 1 | make directories | an empty hierarchy of 21 | the same |
//! | 2 | copy files | 71 files into it | 34 C files, 35 headers, a Makefile, a README |
//! | 3 | stat | twice through the hierarchy, every file | readdir and lstat |
//! | 4 | read | twice, every file searched for a string | readdir, open, read, close |
//! | 5 | build | a package of moderate size | the 71 files: make, 34 times cc, one link |
//! | 6 | untar | 4.3 MB, about 400 files and directories | 40 directories, 360 files |
//! | 7 | list | directories of 500 files, four times | 10 directories of 50, readdir alone |
//! | 8 | read | a file of 6.1 MB | in calls of 8 KiB |
//! | 9 | read again | the same file | the same |
//! | 10 | copy | another file of 6.1 MB | in calls of 8 KiB |
//! | 11 | read at random | 1,000 x 1 to 2,663 bytes of a file of 4.3 MB | the same |
//! | 12 | small writes | the integers 1 to 2,000, as text, each appended | the same |
//! | 13 | small reads and writes | 1,000 of them, all read again after each | the same |
//!
//! Everything is made by the suite, from a seed; MB are 2^20 bytes.
//!
//! Where it differs, or the paper does not say:
//!
//! - What is copied, unpacked and built lies on the file system under test. The paper does not
//!   say where its sources were.
//! - Archives are unpacked as tar does it (directories made, files written, times and modes set),
//!   but in this process: the same on every system.
//! - The paper read 8 MB of unrelated files between tests, which in a memory of 20 MB pushed out
//!   what was cached. Memories have grown: see [`cold`] for what can be done now.
//! - Results are checked: what was read and written, byte by byte, and what the built program
//!   prints. It is done after the time and the calls were taken, but for test 13, where each byte
//!   is compared when it is read.
//! - A change is flushed to stable storage in a time of its own, after the test's: NFS does so at
//!   each close, a local file system does not, and what survives the same can be compared.

mod andrew;
mod archive;
mod build;
pub mod cold;
mod failed;
mod generated;
mod large;
mod material;
mod prepare;
mod program;
mod run;
mod sizes;
mod small;
mod step;

pub use build::missing as build_missing;
pub use failed::Failed;
pub use material::Material;
pub use prepare::{prepare, room_bytes};
pub use run::{CopyRun, Run, catch_up, check, run};
pub use sizes::Sizes;

perf::named! {
    /// A test, in the order of the paper.
    #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
    pub enum Test {
        MakeDirs => "make directories",
        CopyFiles => "copy files",
        Stat => "stat",
        ReadAll => "read and search",
        Build => "build",
        Untar => "untar",
        List => "list",
        ReadBig => "read a big file",
        ReadAgain => "read it again",
        CopyBig => "copy a big file",
        ReadRandom => "read at random",
        SmallWrites => "small writes",
        SmallReadsAndWrites => "small reads and writes",
    }
}

impl Test {
    /// From 1 to 13.
    pub const fn number(self) -> u32 {
        self as u32 + 1
    }

    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|test| test.number() == number)
    }

    /// Whether it leaves something that is to be made durable.
    pub const fn writes(self) -> bool {
        !matches!(
            self,
            Self::Stat
                | Self::ReadAll
                | Self::List
                | Self::ReadBig
                | Self::ReadAgain
                | Self::ReadRandom
        )
    }

    /// Whether it is about what the test before has left in caches.
    pub const fn is_warm(self) -> bool {
        matches!(self, Self::ReadAgain)
    }

    /// What has to be done before it.
    const fn needs(self) -> &'static [Self] {
        match self {
            Self::CopyFiles => &[Self::MakeDirs],
            Self::Stat | Self::ReadAll | Self::Build => &[Self::MakeDirs, Self::CopyFiles],
            Self::ReadAgain => &[Self::ReadBig],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests;
