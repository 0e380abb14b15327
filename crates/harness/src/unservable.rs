//! Why directories cannot be served, and what to try: for `serve`, `log` and embedded servers.

use std::io;
use std::path::PathBuf;

use server::store::dir::OpenError;
use server::store::dir::write_log::{DeviceTrouble, LogTrouble};

use crate::exit::Failure;

/// What is to be exported cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Unservable {
    /// The exports do not go together, or name a host that has no address.
    #[error("{0}")]
    Exports(String),
    #[error("cannot serve {}: {cause}", dir.display())]
    Path { dir: PathBuf, cause: io::Error },
    #[error("cannot serve {}: {cause}", dir.display())]
    Store { dir: PathBuf, cause: OpenError },
}

impl From<String> for Unservable {
    fn from(why: String) -> Self {
        Self::Exports(why)
    }
}

impl From<Unservable> for Failure {
    fn from(error: Unservable) -> Self {
        let advice = match &error {
            Unservable::Exports(_) => {
                "examples/exports.toml for a file of exports; nfskit serve --help has the words of \
                 --export"
            }
            Unservable::Path { .. } => A_DIRECTORY,
            Unservable::Store { cause, .. } => about_store(cause),
        };
        Self::environment(error, advice)
    }
}

const A_DIRECTORY: &str = "a directory that exists and that this user may read and search";

/// What to try about a directory that cannot be opened as a store.
pub fn about_store(cause: &OpenError) -> &'static str {
    match cause {
        OpenError::Log(error) => about_log(error.kind()),
        OpenError::State(_) => {
            "remove that file, whose handles clients then lose, or another --state DIR"
        }
        OpenError::Thread(_) => {
            "fewer exports, each of which has six threads or more, or a higher limit of tasks \
             (ulimit -u, TasksMax=, the container's pids limit)"
        }
        _ => A_DIRECTORY,
    }
}

/// What to try about a write log that is refused.
pub fn about_log(trouble: LogTrouble) -> &'static str {
    match trouble {
        LogTrouble::Damaged | LogTrouble::WrongLength => {
            "a copy of it first; then nfskit log replay --salvage LOG DIR brings what is whole of \
             it to its place"
        }
        LogTrouble::DanglingLink => "the path of the log itself",
        LogTrouble::Device(DeviceTrouble::NotBlank) => "another device, or that one made blank",
        LogTrouble::Device(DeviceTrouble::ReadOnly) => "blockdev --setrw DEVICE, or another device",
        LogTrouble::Device(DeviceTrouble::Short) => "a device of 16 MiB or more, or a file",
        LogTrouble::InMemory => "a place on a disk, such as /var/lib/nfskit, or a block device",
        LogTrouble::InUse => "its server ended first, or another log",
        LogTrouble::NeedsHandles => {
            "as root, or with the capability CAP_DAC_READ_SEARCH, on a file system that has \
             handles, such as ext4, xfs or btrfs"
        }
        LogTrouble::NeedsSyncedMetadata => "without --metadata-sync never",
        LogTrouble::NeedsSyncs => {
            "the overlay mounted without volatile; or without --write-log, where what is lost with \
             the machine can be made again"
        }
        LogTrouble::NoLog => {
            "the log by its name, as its server had it; where a new one is to be made, a name \
             that nothing has, or a blank block device"
        }
        LogTrouble::NoSpace => {
            "a disk with room for all of the log; nfskit serve can make a smaller one \
             (--write-log-size)"
        }
        LogTrouble::NotEachOnce => "--write-log with each of the directory's logs, once",
        LogTrouble::NotFound => "the log by its name, as nfskit serve --write-log had it",
        LogTrouble::NotMade => "a folder that is there, and in which this user may make files",
        LogTrouble::NotPermitted => "as the user who has the log, or as root",
        LogTrouble::NotRemembered => {
            "a file system with user.* attributes, such as ext4, xfs or btrfs"
        }
        LogTrouble::NotRememberedForRoom => {
            "room on the directory's file system for its attributes"
        }
        LogTrouble::NotRememberedReadOnly => {
            "the directory's file system mounted for writing; without --write-log it can be read"
        }
        LogTrouble::OfAnother => {
            "--write-log with the log that this directory had; nfskit log drain LOG DIR brings \
             what a log holds to its place, after which the directory needs none; if it is lost \
             for good, setfattr -x user.nfskit.write_log DIR"
        }
        LogTrouble::OfOtherUuid => {
            "if its file system got a new UUID, nfskit log replay --salvage LOG DIR, after which \
             it needs another log; a copy of the directory needs none: setfattr -x \
             user.nfskit.write_log DIR"
        }
        LogTrouble::OfProxy => {
            "nfskit log status FILE says what it has on its way; nfskit log drain FILE URL brings \
             that to the origin"
        }
        LogTrouble::Other => "nfskit log inspect FILE tells what a write log holds",
        LogTrouble::OthersMayWrite => {
            "a log that was made by this user, in a folder of its own; one that others may write \
             to is not believed"
        }
        LogTrouble::Size => "--write-log-size of 16M to 1G",
        LogTrouble::Taken => "another path for the log, or that file moved away",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use server::store::dir::write_log::{self, WriteLog};
    use server::store::dir::{DirOptions, DirStore, MetadataSync};

    use super::*;

    fn inspected(log: &Path) -> &'static str {
        about_log(write_log::inspect(&[log.to_owned()]).unwrap_err().kind())
    }

    fn opened(dir: &Path, log: &Path, bytes: u64, metadata_sync: MetadataSync) -> &'static str {
        let write_log = Some(WriteLog::new(vec![log.to_owned()], bytes));
        let options = DirOptions { write_log, metadata_sync, ..DirOptions::default() };
        about_store(&DirStore::open(dir, &options).map(drop).unwrap_err())
    }

    #[test]
    fn who_may_have_no_more_threads_is_not_sent_for_another_directory() {
        let again = io::Error::from(io::ErrorKind::WouldBlock);
        assert!(about_store(&OpenError::Thread(again)).contains("ulimit -u"));
    }

    #[test]
    fn each_trouble_of_a_log_has_advice_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, log) = (folder.path().join("export"), folder.path().join("damaged"));
        std::fs::create_dir(&dir).unwrap();
        assert!(inspected(&log).contains("by its name"));
        assert!(inspected(&dir).contains("where a new one"));
        std::fs::write(&log, [0; 8192]).unwrap();
        let may = |mode| std::fs::set_permissions(&log, PermissionsExt::from_mode(mode)).unwrap();
        may(0o666);
        assert!(inspected(&log).contains("made by this user"));
        may(0o600);
        let foreign = ["where a new one", "a place on a disk"];
        assert!(foreign.iter().any(|advice| inspected(&log).contains(advice)), "a tmpfs or none");
        std::fs::remove_file(&log).unwrap();
        std::os::unix::fs::symlink("nowhere", &log).unwrap();
        let strict = MetadataSync::default();
        let advice = |log: &Path, bytes| opened(&dir, log, bytes, strict);
        let [new, nowhere] = ["new", "no/log"].map(|name| folder.path().join(name));
        // An ordinary user may lack the kernel's handles, without which there is no log.
        let none = about_log(LogTrouble::NeedsHandles);
        for (advice, part) in [
            (advice(&log, 16 << 20), "the log itself"),
            (advice(&new, 1 << 20), "16M to 1G"),
            (advice(&nowhere, 16 << 20), "a folder that is there"),
            (opened(&dir, &new, 16 << 20, MetadataSync::Never), "--metadata-sync never"),
        ] {
            assert!(advice.contains(part) || advice == none, "{part}: {advice}");
        }
        assert!(about_store(&OpenError::Identity).contains("a directory that exists"));
    }
}
