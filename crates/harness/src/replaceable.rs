//! Whether others can put another file in the place of one that is named by its path.

use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Symbolic links that a path may lead through, as in the kernel (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// Write by the group and by others.
const WRITTEN_BY_OTHERS: u32 = 0o022;
/// Who may write to such a directory renames and removes only what he owns.
const STICKY: u32 = 0o1000;

/// A directory or link on a path that another user can change.
#[derive(Debug)]
pub(crate) struct Replaceable {
    path: PathBuf,
    pub(crate) owner: u32,
    mode: u32,
}

impl fmt::Display for Replaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.owner {
            0 => write!(f, "others may write to {path} (mode {:04o})", self.mode),
            owner => write!(f, "{path} belongs to uid {owner}"),
        }
    }
}

/// The first on the way to `dir`, from its end, that another than root and `own` can change.
///
/// # Errors
/// As the system says.
pub(crate) fn replaceable(dir: &Path, own: u32) -> io::Result<Option<Replaceable>> {
    on_way(&std::path::absolute(dir)?, own, &mut { LINKS_MAX })
}

fn on_way(dir: &Path, own: u32, links: &mut u32) -> io::Result<Option<Replaceable>> {
    for path in dir.ancestors() {
        let found = fs::symlink_metadata(path)?;
        if let Some(changed) = changed(path, &found, own) {
            return Ok(Some(changed));
        }
        if found.is_symlink() {
            *links = links.checked_sub(1).ok_or_else(|| io::Error::other("too many links"))?;
            let target = path.parent().unwrap_or(path).join(fs::read_link(path)?);
            if let Some(changed) = on_way(&target, own, links)? {
                return Ok(Some(changed));
            }
        }
    }
    Ok(None)
}

/// The same of this one alone.
pub(crate) fn changed(path: &Path, found: &Metadata, own: u32) -> Option<Replaceable> {
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    let is_owned = [0, own].contains(&owner);
    // The mode of a link has no meaning.
    let is_closed = mode & WRITTEN_BY_OTHERS == 0 || mode & STICKY != 0 || found.is_symlink();
    // What is wrong with a directory of ours is its mode, as with one of root's.
    let owner = if is_owned { 0 } else { owner };
    (!is_owned || !is_closed).then(|| Replaceable { path: path.to_owned(), owner, mode })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    fn found(dir: &Path) -> Option<String> {
        let own = rustix::process::geteuid().as_raw();
        replaceable(dir, own).unwrap().map(|changed| changed.to_string())
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_named_and_a_sticky_one_is_not() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("shared/mine");
        fs::create_dir_all(&dir).unwrap();
        let shared = base.path().join("shared");
        for (mode, is_changed) in [(0o755, false), (0o777, true), (0o775, true), (0o1777, false)] {
            fs::set_permissions(&shared, Permissions::from_mode(mode)).unwrap();
            let named = found(&dir);
            assert_eq!(named.is_some(), is_changed, "{mode:o} {named:?}");
            let names = format!("others may write to {} (mode {mode:04o})", shared.display());
            assert!(named.is_none_or(|named| named == names));
        }
    }

    #[test]
    fn links_are_followed_and_who_owns_one_can_change_it() {
        let base = tempfile::tempdir().unwrap();
        let (shared, dir) = (base.path().join("shared"), base.path().join("dir"));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&shared).unwrap();
        symlink("../dir", shared.join("inner")).unwrap();
        symlink(shared.join("inner"), base.path().join("outer")).unwrap();
        assert_eq!(found(&base.path().join("outer")), None);
        fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        assert!(found(&base.path().join("outer")).unwrap().contains("shared"));
        if !rustix::process::geteuid().is_root() {
            return println!("NOT TESTED: only root gives files to others");
        }
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        lchown(shared.join("inner"), Some(27001), None).unwrap();
        assert!(found(&base.path().join("outer")).unwrap().contains("belongs to uid 27001"));
        chown(&dir, Some(27001), None).unwrap();
        assert!(found(&dir).unwrap().contains("belongs to uid 27001"));
    }
}
