//! Two servers in this process on one disk: without a write log and with one.

use std::fs;
use std::path::{Path, PathBuf};

use client::mount;
use client::url::Target;
use net::shape::Shape;
use perf::units::Nanos;
use server::store::dir::DirOptions;
use server::store::dir::write_log::{Latencies, WriteLog};

use crate::exit::Failure;
use crate::hints;
use crate::local;
use crate::served::{self, CommitMode, Embedded, LOG_BYTES};

/// What the two are called, side by side.
pub const NAMES: [&str; 2] = ["without a write log", "with a write log"];

/// Calls in service at once.
const THREADS: u32 = 256;

/// See the module's head. Their directories and the log are gone with this value.
#[derive(Debug)]
pub struct Pair {
    servers: Option<[Embedded; 2]>,
    dir: PathBuf,
    log: PathBuf,
}

impl Pair {
    /// In a directory of their own in `dir`, with a new log of 64 MiB.
    ///
    /// # Errors
    /// The log is there already, cannot be made, or the directory cannot be served.
    pub fn start(dir: &Path, log: &Path, tag: &str) -> Result<Self, Failure> {
        if fs::symlink_metadata(log).is_ok() {
            let what = format!("the write log {} is there already", log.display());
            return Err(Failure::environment(what, "a new name: it is removed after the run"));
        }
        let own = local::scratch(dir, tag)?;
        let mut pair = Self { servers: None, dir: own, log: log.to_owned() };
        let make = |name: &str| {
            let path = pair.dir.join(name);
            fs::create_dir(&path).map(|()| path).map_err(|cause| {
                let what = format!("cannot make a directory in {}: {cause}", pair.dir.display());
                Failure::environment(what, hints::writing(&cause))
            })
        };
        let (without, with) = (make("without")?, make("with")?);
        let write_log = WriteLog::new(vec![log.to_owned()], LOG_SIZE.min(*LOG_BYTES.end()));
        let options = served::dir_options(CommitMode::Concurrent);
        let logged = DirOptions { write_log: Some(write_log), ..options.clone() };
        let start = |path: &Path, options: &DirOptions| {
            Embedded::start_as(path, options, CommitMode::Concurrent, THREADS)
        };
        pair.servers = Some([start(&without, &options)?, start(&with, &logged)?]);
        Ok(pair)
    }

    /// How a client of this process reaches them, behind this link: first the one without a log.
    pub fn reach(&self, reply_limit: Nanos, links: &Shape) -> Vec<(Target, mount::Options)> {
        let servers = self.servers.iter().flatten();
        servers.map(|server| server.reach(reply_limit, links.clone())).collect()
    }

    /// What log and directory took at the start.
    pub fn latencies(&self) -> Option<Latencies> {
        self.servers.as_ref()?[1].log.as_deref().copied()
    }
}

/// As `serve` makes it.
const LOG_SIZE: u64 = 64 << 20;

impl Drop for Pair {
    fn drop(&mut self) {
        // First the servers: what they have in work is written before its place goes.
        self.servers = None;
        let left = [fs::remove_dir_all(&self.dir), fs::remove_file(&self.log)];
        for (left, path) in left.iter().zip([&self.dir, &self.log]) {
            if let Err(cause) = left
                && cause.kind() != std::io::ErrorKind::NotFound
            {
                crate::output::say(format_args!("{} is left: {cause}", path.display()));
            }
        }
    }
}
