//! Which file systems may be read for how full they are: local ones that are exported, and on no
//! way that leads over a server. Asking another could hang.

/// A file system, and where it is mounted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exported {
    pub device: String,
    pub point: String,
}

/// Kinds whose numbers come from this host.
const LOCAL: [&str; 8] = ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs", "zfs"];

/// Those of `/etc/exports` and its like, by the whole of mountinfo.
pub fn exported(exports: &str, mountinfo: &str) -> Vec<Exported> {
    let mounts: Vec<(&str, &str, &str)> = mountinfo.lines().filter_map(parts).collect();
    let mut found = Vec::new();
    for path in super::exports(exports).iter().map(|export| export.path.as_str()) {
        // Of those that it lies on, one on another counts.
        let above = mounts.iter().filter(|(point, ..)| is_below(path, point));
        let Some((point, kind, device)) = above.max_by_key(|(point, ..)| point.len()) else {
            continue;
        };
        let is_local = |(other, kind, _): &(&str, &str, &str)| {
            !is_below(point, other) || LOCAL.contains(kind) || *other == "/"
        };
        let exported = Exported { device: (*device).to_owned(), point: (*point).to_owned() };
        let may = LOCAL.contains(kind) && !point.contains('\\') && mounts.iter().all(is_local);
        if may && !found.contains(&exported) {
            found.push(exported);
        }
    }
    found
}

/// Point, kind and device of a line.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (head, tail) = line.split_once(" - ")?;
    let mut tail = tail.split_whitespace();
    Some((head.split_whitespace().nth(4)?, tail.next()?, tail.next()?))
}

fn is_below(path: &str, point: &str) -> bool {
    let point = point.trim_end_matches('/');
    path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:2 / /srv rw - xfs /dev/sdb1 rw
3 1 0:9 / /mnt rw - nfs4 other:/ rw
4 3 8:3 / /mnt/local rw - ext4 /dev/sdc1 rw
5 1 0:8 / /home rw - autofs systemd-1 rw
";

    #[test]
    fn only_local_ones_that_no_server_is_above_are_read() {
        let points = |exports: &str| {
            let found = exported(exports, MOUNTS);
            found.into_iter().map(|one| one.point).collect::<Vec<String>>()
        };
        assert_eq!(points("# x\n/srv/a *(rw)\n/srv/b h(ro)\n"), ["/srv"]);
        assert_eq!(points("/data *(rw)\n"), ["/"]);
        assert!(points("/mnt *(rw)\n/mnt/local *(rw)\n/home/me *(rw)\n").is_empty());
    }
}
