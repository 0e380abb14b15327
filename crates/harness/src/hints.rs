//! What to try about errors of the system, by their cause.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;

use crate::exit::Failure;

/// About a file or directory that is to be read.
pub fn reading(cause: &Error) -> &'static str {
    match cause.kind() {
        ErrorKind::NotFound => "the path of a file that exists",
        ErrorKind::PermissionDenied => "a file that this user may read (ls -l shows who may)",
        ErrorKind::IsADirectory => "a file, not a directory",
        ErrorKind::NotADirectory => "a path through directories only",
        ErrorKind::FileTooLarge => "a shorter file",
        ErrorKind::InvalidInput | ErrorKind::InvalidData => "a file with text in it",
        _ => limits(cause)
            .unwrap_or("see whether the file is whole, and the system's log (dmesg) for its disk"),
    }
}

/// About a file or directory that is to be made or written.
pub fn writing(cause: &Error) -> &'static str {
    match cause.kind() {
        ErrorKind::NotFound => "a directory that exists",
        ErrorKind::AlreadyExists => "another name: there is a file or directory of this one",
        ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
            "a directory that this user may write in (for an NFS server root is nobody, unless \
             the export has no_root_squash)"
        }
        ErrorKind::PermissionDenied => "a directory that this user may write in",
        ErrorKind::NotADirectory => "a path through directories only",
        ErrorKind::IsADirectory => "the name of a file in that directory",
        ErrorKind::ReadOnlyFilesystem => "a file system that is mounted for writing",
        ErrorKind::StorageFull => "free space there, write less, or another place",
        ErrorKind::QuotaExceeded => "a larger quota, write less, or another place",
        ErrorKind::BrokenPipe => "start what reads the pipe before this",
        ErrorKind::StaleNetworkFileHandle => "mount it again: its server no longer knows the file",
        _ => limits(cause).unwrap_or("the system's log (dmesg), and the server's if it is a mount"),
    }
}

/// Standard output takes no more.
pub(crate) fn cannot_print(cause: &Error) -> Failure {
    Failure::environment(format!("cannot write to standard output: {cause}"), writing(cause))
}

/// About an address on which nobody can listen; `lists` shows who does.
pub fn listening(cause: &Error, is_udp: bool) -> String {
    let lists = if is_udp { "ss -ulnp" } else { "ss -tlnp" };
    match cause.kind() {
        ErrorKind::AddrInUse => {
            format!("another port, or port 0 for a free one; {lists} shows who has this one")
        }
        ErrorKind::AddrNotAvailable => {
            "an address of this host (ip address lists them), or 127.0.0.1".to_owned()
        }
        ErrorKind::PermissionDenied => "a port from 1024 on, or root".to_owned(),
        _ => limits(cause)
            .map_or_else(|| "127.0.0.1:0, which every host has".to_owned(), str::to_owned),
    }
}

/// About metrics that cannot be served: `listen` is what `--metrics` has.
pub fn metrics(listen: SocketAddr, cause: &Error) -> Failure {
    let what = format!("cannot serve metrics on {listen}: {cause}");
    Failure::environment(what, listening(cause, false))
}

/// Limits of the process, which have no kind of their own.
fn limits(cause: &Error) -> Option<&'static str> {
    use rustix::io::Errno;
    let errno = cause.raw_os_error().map(Errno::from_raw_os_error)?;
    match errno {
        Errno::MFILE | Errno::NFILE => Some("raise the limit of open files (ulimit -n)"),
        Errno::NOMEM => Some("free memory, or raise the limits of it (ulimit -a)"),
        Errno::AFNOSUPPORT => Some("an address of IPv4: this host has no IPv6"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn each_cause_of_a_file_has_its_own_advice() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let create = |path| writing(&File::create(path).unwrap_err());
        assert_eq!(create(dir.path().join("no/file")), "a directory that exists");
        assert_eq!(create(dir.path().to_owned()), "the name of a file in that directory");
        assert_eq!(create(file.join("x")), "a path through directories only");
        let make = |path| writing(&std::fs::create_dir(path).unwrap_err());
        assert!(make(file.clone()).starts_with("another name"));
        let full = std::io::Write::write_all(&mut File::create("/dev/full").unwrap(), b"x");
        assert!(writing(&full.unwrap_err()).starts_with("free space"));
        let open = |path| reading(&File::open(path).unwrap_err());
        assert_eq!(open(dir.path().join("none")), "the path of a file that exists");
        assert_eq!(open(file.join("x")), "a path through directories only");
        let of_kind = |kind: ErrorKind| writing(&Error::from(kind));
        assert!(of_kind(ErrorKind::PermissionDenied).contains("this user may write"));
        assert!(of_kind(ErrorKind::ReadOnlyFilesystem).contains("mounted for writing"));
        assert!(reading(&Error::from(ErrorKind::PermissionDenied)).contains("this user may read"));
        let many = Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(writing(&many).contains("ulimit -n") && reading(&many).contains("ulimit -n"));
    }

    #[test]
    fn each_cause_of_a_listener_has_its_own_advice() {
        let of_kind = |kind: ErrorKind, is_udp| listening(&Error::from(kind), is_udp);
        assert!(of_kind(ErrorKind::AddrInUse, false).contains("ss -tlnp shows who"));
        assert!(of_kind(ErrorKind::AddrInUse, true).contains("ss -ulnp shows who"));
        assert!(of_kind(ErrorKind::AddrNotAvailable, false).contains("an address of this host"));
        assert!(of_kind(ErrorKind::PermissionDenied, false).contains("from 1024 on"));
        let many = Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(listening(&many, false).contains("ulimit -n"));
        // Another port is no help where the address is not this host's.
        let failure = metrics(([192, 0, 2, 1], 9090).into(), &ErrorKind::AddrNotAvailable.into());
        assert!(failure.advice().contains("an address of this host"), "{}", failure.advice());
    }
}
