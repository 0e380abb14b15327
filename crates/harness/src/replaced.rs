//! What outputs would replace: nothing that the command reads, and no other output.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

const STDOUT: &str = "/dev/stdout";
const STDIN: &str = "/dev/stdin";

/// The name of an output until it is whole.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut partial = OsString::from(path);
    partial.push(".partial");
    partial.into()
}

/// A file, whatever the path that leads to it.
#[derive(Debug, Eq, PartialEq)]
enum Place {
    /// Its device and inode.
    There(u64, u64),
    /// Its name; there is none yet.
    New(PathBuf),
}

impl Place {
    /// None of what cannot be replaced: devices, pipes, directories.
    fn of(path: &Path) -> Option<Self> {
        if let Ok(found) = fs::metadata(path) {
            return found.is_file().then(|| Self::There(found.dev(), found.ino()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or_else(|| Path::new("."))).ok()?;
        Some(Self::New(folder.join(path.file_name()?)))
    }

    /// What an output replaces when it has its name, and before.
    fn replaced_by(path: &Path) -> Vec<Self> {
        if path == Path::new("-") {
            return Self::of(Path::new(STDOUT)).into_iter().collect();
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(place) = Self::of(&path) else { return Vec::new() };
        [Some(place), Self::of(&partial(&path))].into_iter().flatten().collect()
    }

    /// Where an input is; it may be the word for something that is no file.
    fn read_from(path: &Path) -> Option<Self> {
        let path = if path == Path::new("-") { Path::new(STDIN) } else { path };
        Self::of(path).filter(|place| matches!(place, Self::There(..)))
    }
}

/// Refuses outputs of which one is an input, or the same file as another. A name of a file that is
/// only made while an output is written counts as well.
pub(crate) fn check<'a>(
    outputs: impl Iterator<Item = &'a PathBuf>,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let inputs = inputs.into_iter().filter_map(|path| Some((path, Place::read_from(path)?)));
    let inputs: Vec<_> = inputs.collect();
    let mut earlier: Vec<(&Path, Place)> = Vec::new();
    for path in outputs {
        let places = Place::replaced_by(path);
        let is_there = |place: &Place| places.contains(place);
        if let Some((input, _)) = inputs.iter().find(|(_, place)| is_there(place)) {
            return Err(read(path, input));
        }
        if let Some((other, _)) = earlier.iter().find(|(_, place)| is_there(place)) {
            return Err(twice(path, other));
        }
        earlier.extend(places.into_iter().map(|place| (path.as_path(), place)));
    }
    Ok(())
}

fn read(output: &Path, input: &Path) -> Failure {
    let (output, input) = (output.display(), input.display());
    let what = format!("the output {output} would replace the input {input}");
    Failure::usage(what, "another FILE for the output")
}

fn twice(output: &Path, other: &Path) -> Failure {
    let (output, other) = (output.display(), other.display());
    let what = format!("the outputs {other} and {output} would replace each other");
    Failure::usage(what, "another FILE for one of them")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_output_is_no_input_and_no_other_output_whatever_they_are_called() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["in", "out", "half.partial"] {
            fs::write(at(name), "").unwrap();
        }
        symlink(at("in"), at("link")).unwrap();
        fs::hard_link(at("in"), at("hard")).unwrap();
        let refused = |outputs: &[&str], inputs: &[&str]| {
            let [outputs, inputs] = [outputs, inputs]
                .map(|names| names.iter().map(|name| at(name)).collect::<Vec<_>>());
            check(outputs.iter(), &inputs).err().map(|failure| failure.what().to_owned())
        };
        for output in ["in", "link", "hard", "./in", "../NAME/in"] {
            let name = folder.path().file_name().unwrap().to_str().unwrap();
            let output = output.replace("NAME", name);
            let what = refused(&["new", &output], &["out", "in"]).unwrap();
            assert!(what.contains("would replace the input") && what.contains(&output), "{what}");
            assert!(refused(&["in", &output], &[]).unwrap().contains("each other"));
        }
        assert!(refused(&["half"], &["half.partial"]).unwrap().contains("replace the input"));
        for twice in [["new", "./new"], ["new", "new.partial"], ["half", "half.partial"]] {
            assert!(refused(&twice, &["in"]).unwrap().contains("each other"), "{twice:?}");
        }
        // What is not there is no file that could be lost: a mix has a name, too.
        assert_eq!(refused(&["new", "out", "newer"], &["in", "new"]), None);
    }

    #[test]
    fn devices_keep_nothing_and_may_be_named_twice() {
        let null = PathBuf::from("/dev/null");
        check([&null, &null].into_iter(), [&null]).unwrap();
    }
}
