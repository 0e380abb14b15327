//! The tree under check: the path and text of every file that git would keep.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// All files, in order of their paths.
#[derive(Debug)]
pub(crate) struct Tree {
    files: Vec<File>,
    /// Every folder that holds a file, for links to folders; the root is the empty path.
    folders: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) struct File {
    /// From the root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) bytes: usize,
    /// Empty when the file is not UTF-8: such files have a size and nothing else to check.
    pub(crate) text: String,
}

impl Tree {
    /// Reads what git tracks or would track: ignored files are not checked.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("tidy asks git for the files, and git failed: {error}"))?;
        if !listing.status.success() {
            let complaint = String::from_utf8_lossy(&listing.stderr);
            return Err(format!("git does not list the files: {complaint}"));
        }
        let paths: BTreeSet<String> =
            String::from_utf8_lossy(&listing.stdout).split('\0').map(str::to_owned).collect();
        let files = paths.into_iter().filter_map(|path| {
            // A file that is deleted but still in the index, or a submodule, does not read.
            let content = std::fs::read(root.join(&path)).ok()?;
            Some(File {
                path,
                bytes: content.len(),
                text: String::from_utf8(content).unwrap_or_default(),
            })
        });
        Ok(Self::new(files.collect()))
    }

    pub(super) fn new(files: Vec<File>) -> Self {
        let folders = files
            .iter()
            .flat_map(|file| Path::new(&file.path).ancestors().skip(1))
            .map(|folder| folder.to_string_lossy().into_owned())
            .collect();
        Self { files, folders }
    }

    pub(super) fn files(&self) -> &[File] {
        &self.files
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        self.folders.contains(path)
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.with_suffix(".rs")
    }

    pub(super) fn markdown(&self) -> impl Iterator<Item = &File> {
        self.with_suffix(".md")
    }

    fn with_suffix(&self, suffix: &'static str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.path.ends_with(suffix))
    }
}

#[cfg(test)]
impl Tree {
    /// A tree for tests, from paths and texts.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File {
            path: path.to_owned(),
            bytes: text.len(),
            text: text.to_owned(),
        };
        Self::new(files.iter().map(file).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_knows_the_folders_of_its_files() {
        let tree = Tree::of(&[("docs/adr/0001-clock.md", ""), ("README.md", "")]);
        assert!(["", "docs", "docs/adr"].iter().all(|folder| tree.is_folder(folder)));
        assert!(!tree.is_folder("adr"));
        assert_eq!(tree.markdown().count(), 2);
    }
}
