//! The guest's kernel and root disk: built once, and again when what they are made of changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::host::{about, last_lines};

/// Where the scripts are, seen from the root of the checkout.
const BESIDE: &str = "../shared/kernelvm";
/// What the workload needs beyond the packages that the scripts install.
const PACKAGES: &str = "gcc,git,cachefilesd,sqlite3";
/// What the guest's kernel lacks on new processors.
const XSTATE: &str = include_str!("scripts/xstate.c");
/// Puts it before the kernel, in the folder that is the argument.
const WITH_XSTATE: &str = r#"set -e
cd "$1"
cc -O2 -shared -fPIC -o xstate.so xstate.c -ldl
mv linux.uml linux.uml.bare
printf '#!/bin/sh\nLD_PRELOAD="%s/xstate.so" exec "%s/linux.uml.bare" "$@"\n' \
    "$PWD" "$PWD" >linux.uml
chmod 755 linux.uml"#;

#[derive(Debug)]
pub(crate) struct Image {
    /// A copy of the scripts; what they build goes to `build` in it.
    scripts: PathBuf,
}

impl Image {
    /// The image whose scripts are in this folder, as [`Self::scripts`] has it.
    pub(crate) fn built(scripts: &Path) -> Self {
        Self { scripts: scripts.to_owned() }
    }

    /// Finds the image that was built before, or builds it.
    pub(crate) fn provide(root: &Path, kernelvm: Option<&Path>) -> Result<Self, String> {
        let source = kernelvm.map_or_else(|| root.join(BESIDE), Path::to_path_buf);
        let recipe = recipe(&source)
            .map_err(|error| format!("guest: {}: {error}; see --kernelvm", source.display()))?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let scripts = target.unwrap_or_else(|| root.join("target")).join("guest");
        let image = Self { scripts };
        let stamp = image.scripts.join("recipe");
        if fs::read_to_string(&stamp).is_ok_and(|built| built == recipe) {
            return Ok(image);
        }
        image.build(&source).map_err(|error| format!("guest: {error}"))?;
        fs::write(&stamp, recipe).map_err(about(&stamp))?;
        Ok(image)
    }

    fn build(&self, source: &Path) -> Result<(), String> {
        println!("guest: building kernel and root disk, about a minute");
        let error = about(&self.scripts);
        if self.scripts.exists() {
            fs::remove_dir_all(&self.scripts).map_err(error)?;
        }
        fs::create_dir_all(&self.scripts).map_err(error)?;
        let copied = Command::new("cp").arg("-a").arg(source.join(".")).arg(&self.scripts).status();
        if !copied.map_err(error)?.success() {
            return Err(format!("{} cannot be copied", source.display()));
        }
        let log = self.scripts.join("build.log");
        let output = fs::File::create(&log).map_err(error)?;
        let errors = output.try_clone().map_err(error)?;
        let built = Command::new(self.scripts.join("build-guest.sh"))
            .arg(self.folder())
            .env("EXTRA_PKGS", PACKAGES)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .status()
            .map_err(error)?;
        if built.success() {
            return self.add_xstate();
        }
        let log = fs::read_to_string(&log).unwrap_or_default();
        let last = last_lines(&log, 10).join("\n  ");
        Err(format!("the image does not build: {built}\n  {last}"))
    }

    fn add_xstate(&self) -> Result<(), String> {
        let folder = self.folder();
        let error = about(&folder);
        fs::write(folder.join("xstate.c"), XSTATE).map_err(error)?;
        let shell = Command::new("sh").args(["-c", WITH_XSTATE, "sh"]).arg(&folder).status();
        match shell.map_err(error)?.success() {
            true => Ok(()),
            false => Err(format!("{}: xstate.c does not compile", folder.display())),
        }
    }

    /// The kernel and the root disk.
    pub(crate) fn folder(&self) -> PathBuf {
        self.scripts.join("build")
    }

    pub(crate) fn scripts(&self) -> &Path {
        &self.scripts
    }

    /// A guest in this network namespace, to be given a script.
    pub(crate) fn guest(&self, namespace: &str) -> Command {
        let mut command = Command::new(self.scripts.join("run-guest.sh"));
        command.env("BUILD", self.folder()).env("NETNS", namespace);
        command
    }
}

/// Everything that decides what is built, as one text.
fn recipe(source: &Path) -> std::io::Result<String> {
    let mut recipe = format!("packages {PACKAGES}\n{XSTATE}{WITH_XSTATE}\n");
    let files = ["build-guest.sh", "run-guest.sh", "guest/guest-init", "guest/lib.sh"];
    for file in files {
        recipe += &fs::read_to_string(source.join(file))?;
    }
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_changes_with_each_script() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("guest")).unwrap();
        assert!(recipe(folder.path()).is_err());
        for file in ["build-guest.sh", "run-guest.sh", "guest/guest-init", "guest/lib.sh"] {
            fs::write(folder.path().join(file), file).unwrap();
        }
        let before = recipe(folder.path()).unwrap();
        fs::write(folder.path().join("guest/lib.sh"), "other").unwrap();
        assert_ne!(recipe(folder.path()).unwrap(), before);
    }
}
