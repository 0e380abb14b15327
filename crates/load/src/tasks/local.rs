//! A task in a directory of any file system: system calls, on a thread of its own.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use tokio::sync::oneshot;

use super::{Answer, Job, answer};
use crate::error::Error;

/// Starts the thread, which holds `end` as long as it runs.
pub(super) fn start(
    job: Job,
    dir: PathBuf,
    to: oneshot::Sender<Answer>,
    end: mpsc::Sender<()>,
) -> Result<(), Error> {
    let at = dir.join(&job.name);
    let path = at.clone();
    let stop = std::sync::Arc::clone(&job.stop);
    let work = move || {
        answer(to, &stop, task(job, &at));
        drop(end);
    };
    let thread = std::thread::Builder::new().name("nfskit-task".to_owned()).spawn(work);
    thread.map(drop).map_err(failed("starting a thread", &path))
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |cause| Error::Local { doing, path, cause }
}

fn task(mut job: Job, dir: &Path) -> Answer {
    fs::create_dir(dir).map_err(failed("making a directory", dir))?;
    let (prepared, _) = oneshot::channel();
    std::mem::replace(&mut job.prepared, prepared).send(()).ok();
    let (_, never) = oneshot::channel();
    let Ok(begun) = std::mem::replace(&mut job.started, never).blocking_recv() else {
        fs::remove_dir(dir).ok();
        return Ok(None);
    };
    for pass in 0..job.workload.times {
        if !write(&job, &dir.join(job.workload.name(pass)))? {
            // What was made goes with the directory of the run as well.
            fs::remove_dir_all(dir).ok();
            return Ok(None);
        }
    }
    let span = job.clock.now().since(begun);
    fs::remove_dir_all(dir).map_err(failed("removing a directory", dir))?;
    Ok(Some(span))
}

/// One pass; `false` when it was stopped.
fn write(job: &Job, path: &Path) -> Result<bool, Error> {
    let made = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    let mut file = made.map_err(failed("making a file", path))?;
    is_long(path, &file.metadata(), 0)?;
    for (_, len) in job.workload.calls() {
        if job.is_stopped() {
            return Ok(false);
        }
        file.write_all(&job.source[..len]).map_err(failed("writing a file", path))?;
    }
    if job.workload.sync {
        file.sync_all().map_err(failed("flushing a file", path))?;
    }
    // What close(2) says is not to be had without unsafe code: the length tells.
    drop(file);
    is_long(path, &fs::metadata(path), job.workload.file_bytes)?;
    Ok(true)
}

fn is_long(path: &Path, found: &std::io::Result<fs::Metadata>, expected: u64) -> Result<(), Error> {
    match found {
        Ok(found) if found.len() == expected => Ok(()),
        Ok(found) => Err(Error::Length { path: path.to_owned(), found: found.len(), expected }),
        Err(cause) => Err(failed("looking at a file", path)(cause.kind().into())),
    }
}
