//! Changes in a few words, for events.

use bytes::Bytes;
pub(super) use perf::printable::printable;
use server::types::{SetAttr, SetTime, Time};

use super::record::{Change, Made};

/// A change in a few words.
pub(super) fn describe(change: &Change) -> String {
    let text = |name: &Bytes| printable(name);
    match change {
        Change::Write { offset, data, .. } => {
            format!("WRITE of {} bytes at {offset}", data.len())
        }
        Change::Set { set, .. } => format!("SETATTR{}", set_by(set)),
        Change::Make { name, what: Made::File(_), .. } => format!("CREATE of {}", text(name)),
        Change::Make { name, what: Made::Directory, .. } => format!("MKDIR of {}", text(name)),
        Change::Make { name, what: Made::Symlink(target), .. } => {
            format!("SYMLINK of {} to {}", text(name), text(target))
        }
        Change::Remove { name, is_dir: true, .. } => format!("RMDIR of {}", text(name)),
        Change::Remove { name, .. } => format!("REMOVE of {}", text(name)),
        Change::Rename { from, to, .. } => {
            format!("RENAME of {} to {}", text(&from.1), text(&to.1))
        }
    }
}

/// What a SETATTR sets.
fn set_by(set: &SetAttr) -> String {
    let SetAttr { mode, uid, gid, size, accessed, modified } = *set;
    let one = |name: &str, value: Option<String>| value.map(|value| format!(" {name} {value}"));
    let time = |time| match time {
        SetTime::To(Time { secs, .. }) => Some(secs.to_string()),
        SetTime::Keep | SetTime::ToServer => None,
    };
    let all = [
        one("mode", mode.map(|mode| format!("{mode:o}"))),
        one("uid", uid.map(|uid| uid.to_string())),
        one("gid", gid.map(|gid| gid.to_string())),
        one("size", size.map(|size| size.to_string())),
        one("atime", time(accessed)),
        one("mtime", time(modified)),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_text_of_one_line_and_of_no_colour() {
        assert_eq!(printable("plain, ümläut".as_bytes()), "plain, ümläut");
        assert_eq!(printable(b"a\nCONFLICT: \x1b[31mb\\"), "a\\nCONFLICT: \\u{1b}[31mb\\\\");
        assert_eq!(printable("\u{9b}2J\r\x7f".as_bytes()), "\\u{9b}2J\\r\\u{7f}");
    }
}
