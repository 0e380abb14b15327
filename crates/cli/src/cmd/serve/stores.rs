//! What a server's files may be in, by the names that users give. A store that is new has its
//! variant and its name here, and a line in [`super::run`], which opens it.

use harness::exit::Failure;
use harness::origin;
use perf::model::disk::Profile;

/// How the name of an emulated disk begins.
pub(super) const EMULATED: &str = "sim:";

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Directories of this host: whatever has none of the names below.
    Directories,
    /// `nfs://HOST/EXPORT` or `HOST:/EXPORT`: the files of another server.
    Origin,
    /// `mem:`
    Memory,
    /// `sim:PROFILE`: memory behind a disk that takes its time.
    Emulated(Profile),
}

impl Kind {
    /// The kind that a name means; none is for the directories of `--export` and `--exports`.
    ///
    /// # Errors
    /// No emulated disk is called that.
    pub(super) fn named(name: Option<&str>) -> Result<Self, Failure> {
        let Some(name) = name else { return Ok(Self::Directories) };
        if name == "mem:" {
            return Ok(Self::Memory);
        }
        if origin::is_origin(name) {
            return Ok(Self::Origin);
        }
        let Some(profile) = name.strip_prefix(EMULATED) else { return Ok(Self::Directories) };
        profile.parse().map(Self::Emulated).map_err(|cause| {
            let what = format!("{name}: {cause}");
            Failure::usage(what, "sim:hdd, or sim:rate=100MB/s,sync=5ms")
        })
    }

    /// What is in the place of a disk, if it is memory.
    pub(super) fn memory(self) -> Option<&'static str> {
        match self {
            Self::Directories | Self::Origin => None,
            Self::Memory => Some("memory"),
            Self::Emulated(_) => Some("an emulated disk in memory"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_prefix_is_a_directory() {
        let memory = |name| Kind::named(name).map(Kind::memory).map_err(drop);
        assert_eq!(memory(None), Ok(None));
        assert_eq!(memory(Some("mem")), Ok(None));
        assert_eq!(memory(Some("./sim:hdd")), Ok(None));
        assert_eq!(memory(Some("mem:")), Ok(Some("memory")));
        assert_eq!(memory(Some("sim:hdd,sync=0")), Ok(Some("an emulated disk in memory")));
        assert_eq!(memory(Some("sim:tape")), Err(()));
    }
}
