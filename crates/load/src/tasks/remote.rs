//! A task on a server, through our client: what the kernel does between a program and the client's
//! library is not there, and neither are its system calls.

use std::path::PathBuf;
use std::sync::Arc;

use client::files::open::Open;
use tokio::sync::oneshot;
use wire::nfs3::{FileHandle, Sattr3};

use super::{Answer, Job, Server, answer};
use crate::error::Error;

/// Starts the task beside the caller, on any of the runtime's threads.
pub(super) fn start(job: Job, server: Server, to: oneshot::Sender<Answer>) {
    let clock = job.clock.clone();
    let stop = Arc::clone(&job.stop);
    clock.spawn(async move { answer(to, &stop, task(job, &server).await) });
}

async fn task(mut job: Job, server: &Server) -> Answer {
    let Server { files, who, dir: parent } = server;
    let name = job.name.clone();
    let attributes = Sattr3::of_mode(0o700);
    let dir = files.mkdir(who, *parent, name.as_bytes(), attributes).await?.handle;
    let (prepared, _) = oneshot::channel();
    std::mem::replace(&mut job.prepared, prepared).send(()).ok();
    let (_, never) = oneshot::channel();
    // What is left goes with the directory of the run.
    let Ok(begun) = std::mem::replace(&mut job.started, never).await else { return Ok(None) };
    for pass in 0..job.workload.times {
        if !write(&job, server, dir, &job.workload.name(pass)).await? {
            return Ok(None);
        }
    }
    let span = job.clock.now().since(begun);
    for pass in 0..job.workload.times {
        let name = job.workload.name(pass);
        // The one file of all passes is gone after the first.
        if pass == 0 || job.workload.name(0) != name {
            files.remove(who, dir, name.as_bytes()).await?;
        }
    }
    files.rmdir(who, *parent, name.as_bytes()).await?;
    Ok(Some(span))
}

/// One pass; `false` when it was stopped.
async fn write(job: &Job, server: &Server, dir: FileHandle, name: &str) -> Result<bool, Error> {
    let Server { files, who, .. } = server;
    let attributes = Sattr3 { size: Some(0), ..Sattr3::of_mode(0o666) };
    let made = files.create(who, dir, name.as_bytes(), attributes, false).await?;
    let open = files.open_made(who, made.handle);
    let written = fill(job, server, &open, name).await;
    open.close().await;
    if !written? {
        return Ok(false);
    }
    is_long(job, server, &open, name, job.workload.file_bytes).await?;
    Ok(true)
}

/// Up to where close(2) would be, which over NFS has to flush.
async fn fill(job: &Job, server: &Server, open: &Open, name: &str) -> Result<bool, Error> {
    is_long(job, server, open, name, 0).await?;
    for (offset, len) in job.workload.calls() {
        if job.is_stopped() {
            return Ok(false);
        }
        open.write(offset, &job.source[..len]).await?;
    }
    open.flush_at_close().await?;
    Ok(true)
}

async fn is_long(
    job: &Job,
    server: &Server,
    open: &Open,
    name: &str,
    expected: u64,
) -> Result<(), Error> {
    let found = server.files.getattr(&server.who, open.file()).await?.size;
    match found == expected {
        true => Ok(()),
        false => {
            let path = PathBuf::from(&job.name).join(name);
            Err(Error::Length { path, found, expected })
        }
    }
}
