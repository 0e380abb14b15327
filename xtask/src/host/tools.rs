//! Foreign programs, and the Debian packages that have them.

use std::path::{Path, PathBuf};

/// Where a program is, or what to install.
pub(crate) fn find(program: &str, package: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers live in sbin, which is not on everyone's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| missing(program, package))
}

/// Whether Ganesha's back end `library` is installed.
pub(crate) fn find_ganesha_backend(library: &str, package: &str) -> Result<(), String> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut candidates = folders
        .map(|folder| folder.path())
        .chain([PathBuf::from("/usr/lib"), PathBuf::from("/usr/lib64")])
        .map(|folder| folder.join("ganesha").join(library));
    match candidates.any(|path| Path::is_file(&path)) {
        true => Ok(()),
        false => Err(missing(library, package)),
    }
}

fn missing(what: &str, package: &str) -> String {
    format!("{what} is missing: apt-get install {package}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        assert!(find("sh", "dash").is_ok_and(|path| path.ends_with("sh")));
        let missing = find("no-such-program", "libnfs-utils").unwrap_err();
        assert!(missing.contains("apt-get install libnfs-utils"), "{missing}");
    }
}
