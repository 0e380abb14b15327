//! Progress bars and files.

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::Failure;
use crate::hints;
use crate::replaced;
use crate::sink::{Sink, no_file, refuse_links_of_others};
pub use crate::stderr::{complain, say};
use crate::verbosity::Verbosity;

/// A bar for each step in turn, on a terminal; nothing in a pipe.
#[derive(Debug)]
pub struct Bars {
    shown: bool,
    current: Option<(String, ProgressBar)>,
}

impl Bars {
    pub fn new(verbosity: Verbosity) -> Self {
        let shown = verbosity > Verbosity::Quiet && std::io::stderr().is_terminal();
        Self { shown, current: None }
    }

    /// The step called `name` is done to `share`, from 0 to 1. Another name begins another bar.
    pub fn show(&mut self, name: &str, share: f64) {
        if !self.shown {
            return;
        }
        if self.current.as_ref().is_none_or(|(current, _)| current != name) {
            self.finish();
            let bar = ProgressBar::new(1000);
            let style =
                ProgressStyle::with_template("{msg:44} [{bar:32}] {percent:>3} % {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            self.current = Some((name.to_owned(), bar));
        }
        if let Some((_, bar)) = &self.current {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 1000"
            )]
            bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        }
    }

    /// As [`Self::show`], with what it is doing now, in a bar that goes on.
    pub fn show_as(&mut self, name: &str, doing: &str, share: f64) {
        self.show(name, share);
        if let Some((_, bar)) = &self.current {
            bar.set_message(doing.to_owned());
        }
    }

    pub fn finish(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish();
        }
    }

    pub fn clear(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish_and_clear();
        }
    }
}

/// Prints to standard output. A reader that has gone away wants no more, which is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|cause| hints::cannot_print(&cause)),
    }
}

/// Writes to a file, or to standard output when the path is `-`.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path == Path::new(STDOUT) {
        return print(text);
    }
    Sink::whole(path, text.as_bytes()).map_err(|cause| cannot_write(path, &cause))
}

/// The same, where that was requested.
pub fn write_to(path: &Option<PathBuf>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    path.as_deref().map_or(Ok(()), |path| write(path, &text()))
}

/// Standard output, as the name of a file.
const STDOUT: &str = "-";

/// Whether a command prints its text: not with `-q`, and not where standard output takes one of its
/// files.
pub fn prints_text<'a>(
    verbosity: Verbosity,
    files: impl IntoIterator<Item = &'a Option<PathBuf>>,
) -> bool {
    let is_taken = files.into_iter().flatten().any(|path| path == Path::new(STDOUT));
    verbosity > Verbosity::Quiet && !is_taken
}

/// Prints a command's text, where it [prints one](prints_text).
pub fn print_text<'a, T: AsRef<str>>(
    verbosity: Verbosity,
    files: impl IntoIterator<Item = &'a Option<PathBuf>>,
    text: impl FnOnce() -> T,
) -> Result<(), Failure> {
    match prints_text(verbosity, files) {
        true => print(text().as_ref()),
        false => Ok(()),
    }
}

/// Whether what will be measured can be written there, checked before anything is measured: at most
/// one to standard output, and none to a file of the `inputs`, or of another one. Nothing is left
/// of a file that was not there; a pipe has to have a reader, and a device is left alone.
pub fn check<'a>(
    files: impl IntoIterator<Item = &'a Option<PathBuf>> + Clone,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let to_stdout = files.clone().into_iter().flatten().filter(|path| *path == Path::new(STDOUT));
    if to_stdout.count() > 1 {
        return Err(Failure::usage(
            "more than one output is to go to standard output",
            "- for one of them, and a FILE for the others",
        ));
    }
    replaced::check(files.clone().into_iter().flatten(), inputs)?;
    for path in files.into_iter().flatten().filter(|path| *path != Path::new(STDOUT)) {
        refuse_links_of_others(path).map_err(|cause| cannot_write(path, &cause))?;
        let found = fs::metadata(path);
        if found.as_ref().is_ok_and(|found| found.file_type().is_fifo()) {
            // Until the process ends: who reads it and sees its last writer go would end, too.
            let _ = no_file(path).map_err(|cause| cannot_write(path, &cause))?.into_raw_fd();
        }
        if found.as_ref().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            continue;
        }
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|cause| cannot_write(path, &cause))?;
        if found.is_err() {
            fs::remove_file(path).ok();
        }
    }
    Ok(())
}

pub fn cannot_write(path: &Path, cause: &std::io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {cause}", path.display()), hints::writing(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_refused_until_somebody_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for refused in [check(&[Some(pipe.clone())], []), write(&pipe, "text")] {
            let failure = refused.unwrap_err();
            assert!(failure.what().contains("nobody reads this pipe"), "{failure:?}");
            assert!(failure.advice().contains("reads the pipe"), "{failure:?}");
        }
        let flags = rustix::fs::OFlags::NONBLOCK;
        let reader = rustix::fs::open(&pipe, flags, rustix::fs::Mode::empty()).unwrap();
        check(&[Some(pipe.clone())], []).unwrap();
        write(&pipe, "text").unwrap();
        let mut text = [0; 8];
        assert_eq!(rustix::io::read(&reader, &mut text), Ok(4));
        // No end yet: what is measured may have more to write.
        assert_eq!(rustix::io::read(&reader, &mut text), Err(rustix::io::Errno::AGAIN));
    }

    #[test]
    fn a_file_that_can_be_written_is_not_touched_and_another_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (there, new) = (folder.path().join("there"), folder.path().join("new"));
        fs::write(&there, "kept").unwrap();
        check(&[None, Some(there.clone()), Some(new.clone()), Some("-".into())], []).unwrap();
        assert_eq!(fs::read_to_string(there).unwrap(), "kept");
        assert!(!new.exists());
        let stdout = Some(PathBuf::from("-"));
        assert!(check(&[stdout.clone(), None, stdout.clone()], []).is_err());
        assert!(prints_text(Verbosity::Normal, [&None, &Some("file".into())]));
        assert!(!prints_text(Verbosity::Normal, [&None, &stdout]));
        assert!(!prints_text(Verbosity::Quiet, [&None]));
        for bad in [folder.path().to_owned(), folder.path().join("no/where")] {
            let failure = check(&[Some(bad.clone())], []).unwrap_err();
            assert!(failure.what().contains(&*bad.to_string_lossy()), "{failure:?}");
        }
    }
}
