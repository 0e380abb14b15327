//! What can stand in the way of a mount, in sentences.

use std::io;

use fuse::session::{Error, MountError};

use crate::exit::Failure;

/// Why a directory cannot be mounted on.
pub fn directory(error: Error) -> Failure {
    let advice = match &error {
        Error::NotThere(dir) => format!("mkdir {}", dir.display()),
        Error::NotADirectory(_) => "an empty directory".to_owned(),
        Error::NotEmpty(_) => {
            "an empty directory; or -o nonempty, which hides what is in this one".to_owned()
        }
        Error::Already(entry) => {
            format!("umount {}, if it is not wanted any more", entry.at.display())
        }
        Error::Claimed(dir) => format!("again, unless `findmnt {}` shows it then", dir.display()),
        Error::Dead(entry) => format!("umount -l {}, then mount again", entry.at.display()),
        Error::NotOurs(dir) => format!(
            "without remount; `findmnt -t fuse.nfskit` lists what is mounted, {} is not among it",
            dir.display()
        ),
        Error::Unreadable(..) => "another directory, or ask its owner".to_owned(),
        Error::Mount(_) => String::new(),
    };
    match error {
        Error::Mount(error) => not_mounted(&error),
        error => Failure::environment(error, advice),
    }
}

/// Why it could not be mounted.
pub fn not_mounted(error: &MountError) -> Failure {
    let advice = match &error {
        MountError::NoDevice(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
            "run as root, or install fuse3, whose fusermount3 mounts for everybody"
        }
        MountError::NoDevice(_) => {
            "modprobe fuse; in a container, give it the device (--device /dev/fuse --cap-add \
             SYS_ADMIN)"
        }
        MountError::NoPermission => {
            "run as root, or install fuse3, whose fusermount3 mounts for everybody"
        }
        MountError::Helper(message) if message.contains("user_allow_other") => {
            "without allow_other, or user_allow_other in /etc/fuse.conf"
        }
        MountError::Helper(message) if message.contains("/dev/fuse") => {
            "let everybody open the device (chmod 666 /dev/fuse), or run as root"
        }
        MountError::Helper(message) if message.contains("could not determine username") => {
            "give this user an entry in /etc/passwd, which fusermount3 looks up, or run as root"
        }
        MountError::Helper(_) => "a directory of your own, or run as root",
        MountError::Kernel(cause) if cause.kind() == io::ErrorKind::PermissionDenied => "as root",
        MountError::Kernel(cause) if cause.kind() == io::ErrorKind::ResourceBusy => {
            "close what is open for writing there (fuser -vm DIR names it)"
        }
        MountError::Kernel(_) => "the kernel's log (dmesg)",
        MountError::Handshake(_) => "a newer kernel: Linux 4.20 or later",
        MountError::System(_) => "raise the limits of open files and processes (ulimit -n -u)",
    };
    Failure::environment(error, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_name_is_not_sent_to_a_directory_of_his_own() {
        let advice = |message: &str| {
            not_mounted(&MountError::Helper(message.to_owned())).advice().to_owned()
        };
        let nameless = advice("could not determine username");
        assert!(nameless.contains("/etc/passwd") && !nameless.contains("directory"), "{nameless}");
        assert!(advice("user has no write access to mountpoint /x").contains("of your own"));
    }
}
