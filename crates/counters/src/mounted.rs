//! Lists of mounts with their options and no counters: what `mount` and `nfsstat -m` print, and
//! `/proc/mounts`.

use super::fields::Line;
use super::mountstats::{MOUNTS_MAX, Mount, split, unescape};
use super::problem::{Problem, Wrong};
use super::rpc::bounded;

/// Whether a text looks like one: a line in it is of an NFS mount.
pub fn is_likely(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| whole(line).is_some() || flags(line).is_some_and(|flags| !flags.is_empty()))
}

/// `server:/export on /mnt type nfs4 (rw,vers=4.2)`, or `server:/export /mnt nfs4 rw,vers=4.2 0 0`.
fn whole(line: &str) -> Option<Mount> {
    let (device, rest) = line.trim().split_once(' ')?;
    let (point, kind, options) = match rest.strip_prefix("on ") {
        Some(rest) => {
            let (point, rest) = rest.split_once(" type ")?;
            let (kind, rest) = rest.split_once(' ')?;
            (point, kind, rest.trim().strip_prefix('(')?.split_once(')')?.0)
        }
        None => {
            let mut words = rest.split_whitespace();
            (words.next()?, words.next()?, words.next()?)
        }
    };
    let is_nfs = matches!(kind, "nfs" | "nfs4") && device.contains(":/");
    is_nfs.then(|| of(device, point, kind, options))
}

/// ` Flags: rw,vers=3`, below `/mnt from server:/export`.
fn flags(line: &str) -> Option<&str> {
    line.trim().strip_prefix("Flags:").map(str::trim)
}

fn of(device: &str, point: &str, kind: &str, options: &str) -> Mount {
    Mount {
        device: unescape(device),
        point: unescape(point),
        kind: kind.to_owned(),
        options: split(options),
        ..Mount::default()
    }
}

/// Reads the text; other file systems in it are left out.
///
/// # Errors
/// There are more than [`MOUNTS_MAX`], or none: [`Wrong::Nothing`].
pub fn read(text: &[u8]) -> Result<Vec<Mount>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut mounts: Vec<Mount> = Vec::new();
    let mut above = "";
    for line in Line::all(&text) {
        bounded(&line)?;
        let found = flags(line.whole()).map_or_else(
            || whole(line.whole()),
            |flags| above.trim().split_once(" from ").map(|(at, of_)| of(of_, at, "nfs", flags)),
        );
        above = line.whole();
        if mounts.len() == MOUNTS_MAX && found.is_some() {
            return Err({ line }.word().wrong(Wrong::TooMany { what: "mounts", max: MOUNTS_MAX }));
        }
        mounts.extend(found);
    }
    match mounts.is_empty() {
        true => Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing }),
        false => Ok(mounts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
/dev/sda1 on / type ext4 (rw,relatime)
s:/export on /mnt/my files type nfs4 (rw,vers=4.2,rsize=1048576,noac)
s:/export /mnt/b\\040c nfs rw,vers=3,soft,timeo=10 0 0
/home from other:/home
 Flags:\trw,vers=3,sync,nconnect=4
";

    #[test]
    fn three_forms_are_read_and_other_file_systems_left_out() {
        assert!(is_likely(TEXT));
        let mounts = read(TEXT.as_bytes()).unwrap();
        let [first, second, third] = &mounts[..] else { panic!("{mounts:?}") };
        assert_eq!((first.point.as_str(), first.option("noac")), ("/mnt/my files", Some("")));
        assert_eq!((second.point.as_str(), second.option("timeo")), ("/mnt/b c", Some("10")));
        assert_eq!((third.device.as_str(), third.point.as_str()), ("other:/home", "/home"));
        assert_eq!((third.option("nconnect"), third.version()), (Some("4"), Some(3)));
    }

    #[test]
    fn a_text_without_one_is_none() {
        for text in ["", "Flags:", "x from y\n", "/dev/sda1 on / type ext4 (rw)\n", "nfs\n"] {
            assert!(read(text.as_bytes()).is_err() && !is_likely(text), "{text}");
        }
        for end in 0..TEXT.len() {
            read(&TEXT.as_bytes()[..end]).ok();
        }
    }
}
