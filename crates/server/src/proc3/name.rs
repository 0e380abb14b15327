//! Which names are taken.
//!
//! | name | LOOKUP | making, LINK | REMOVE | RMDIR | RENAME |
//! |---|---|---|---|---|---|
//! | empty, with `/` or NUL | ACCES | ACCES | ACCES | ACCES | ACCES |
//! | over 255 bytes | NAMETOOLONG | NAMETOOLONG | NAMETOOLONG | NAMETOOLONG | NAMETOOLONG |
//! | `.` | the directory | EXIST | ACCES | INVAL | INVAL |
//! | `..` | its parent | EXIST | ACCES | EXIST | INVAL |
//!
//! ACCES is what the RFC has for names a server cannot handle (RFC 1813, general comments on
//! filenames), and what the Linux server says to an empty one. The dots follow the RFC's sections
//! 3.3.9 (MKDIR), 3.3.13 (RMDIR) and 3.3.14 (RENAME), and the Linux server where the RFC is
//! silent.

use crate::types::Status;

/// Most bytes in a name, as in every file system of Unix.
pub(crate) const NAME_LEN_MAX: usize = 255;

/// A name to look up: the dots are names too.
pub(crate) fn to_look_up(name: &[u8]) -> Result<&[u8], Status> {
    if name.is_empty() || name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Status::Access);
    }
    match name.len() > NAME_LEN_MAX {
        true => Err(Status::NameTooLong),
        false => Ok(name),
    }
}

/// A name for something new.
pub(crate) fn to_make(name: &[u8]) -> Result<&[u8], Status> {
    no_dots(name, Status::Exists, Status::Exists)
}

pub(crate) fn to_remove(name: &[u8]) -> Result<&[u8], Status> {
    no_dots(name, Status::Access, Status::Access)
}

pub(crate) fn to_remove_dir(name: &[u8]) -> Result<&[u8], Status> {
    no_dots(name, Status::Invalid, Status::Exists)
}

pub(crate) fn to_rename(name: &[u8]) -> Result<&[u8], Status> {
    no_dots(name, Status::Invalid, Status::Invalid)
}

fn no_dots(name: &[u8], dot: Status, dot_dot: Status) -> Result<&[u8], Status> {
    match name {
        b"." => Err(dot),
        b".." => Err(dot_dot),
        name => to_look_up(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_table() {
        for check in [to_look_up, to_make, to_remove, to_remove_dir, to_rename] {
            assert_eq!(check(b""), Err(Status::Access));
            assert_eq!(check(b"a/b"), Err(Status::Access));
            assert_eq!(check(b"a\0"), Err(Status::Access));
            assert_eq!(check(&[b'a'; 256]), Err(Status::NameTooLong));
            for name in [&b"..."[..], &[b'a'; 255], b"\xff\x80"] {
                assert_eq!(check(name), Ok(name));
            }
        }
        assert_eq!(to_look_up(b".."), Ok(&b".."[..]));
        assert_eq!(to_make(b"."), Err(Status::Exists));
        assert_eq!(to_remove(b".."), Err(Status::Access));
        assert_eq!(to_remove_dir(b"."), Err(Status::Invalid));
        assert_eq!(to_remove_dir(b".."), Err(Status::Exists));
        assert_eq!(to_rename(b"."), Err(Status::Invalid));
    }
}
