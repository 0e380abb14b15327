//! A contest in real time: folders instead of hosts, which should be mounts of one server by this
//! machine's kernel.
//!
//! Plan and truth are those of worlds. What happens at the same time is up to the machine, so that
//! a seed that fails may pass when it is played again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::runtime;

use super::folder::Folder;
use super::host::Host;
use super::program::{Program, refused};
use super::scene::Scene;
use super::truth::Truth;
use crate::plan::{PROGRAMS_MAX, Plan};
use crate::sim::Report;
use crate::sim::failure::Failure;
use crate::sim::history::{self, History};
use crate::sim::trace::Trace;

/// Places begin with pages: what two kernels write to one page at the same time is one's or the
/// other's, as docs/client.md says.
const STRIDE: u32 = 8 << 10;

/// Longer than anybody plays.
const A_LONG_TIME: Nanos = Nanos::from_secs(1 << 30);

/// Where to play.
#[derive(Clone, Debug)]
pub struct Folders {
    /// One for each client: the same directory, mounted several times. Clients of a plan for whom
    /// there is none are left out.
    pub mounts: Vec<Mount>,
    /// That directory as the server has it, which is looked at in the end.
    pub server: Option<PathBuf>,
    /// A program that is [`super::serve_locks`] when it is called with [`super::RECORD_LOCKS`] and
    /// a file. Without one no locks of fcntl(2) are taken.
    pub locker: Option<PathBuf>,
    /// There may be no room for what is written. Programs sync then before they close.
    pub may_be_full: bool,
}

/// A client's folder.
#[derive(Clone, Debug)]
pub struct Mount {
    pub path: PathBuf,
    /// Whether names may be remembered that others have changed.
    pub remembers: bool,
}

impl Folders {
    /// Plays a plan in a new directory of that name.
    pub fn play(&self, name: &str, plan: &Plan, is_verbose: bool) -> Report {
        let trace = Arc::new(Mutex::new(Trace::new(is_verbose)));
        let history = Arc::new(History::default());
        if self.may_be_full {
            history.begins(history::Trouble::Full, Instant::EPOCH, A_LONG_TIME);
        }
        let scene = Scene {
            clock: Clock::real(),
            trace: Arc::clone(&trace),
            history,
            stride: STRIDE,
            truth: Mutex::new(Truth::new(STRIDE)),
        };
        let failure = self.play_in(&scene, name, plan).err();
        let mut trace = trace.lock();
        Report {
            failure,
            digest: trace.digest(),
            span: scene.clock.now().since(Instant::EPOCH),
            ops: trace.ops(),
            faults: Default::default(),
            lines: trace.take_lines(),
        }
    }

    fn play_in(&self, scene: &Scene, name: &str, plan: &Plan) -> Result<(), Failure> {
        let Some(first) = self.mounts.first() else { return Ok(()) };
        std::fs::create_dir(first.path.join(name))
            .map_err(|error| Failure::new("entry", error.to_string()))?;
        let host = |path: &Path, remembers| {
            let (locker, syncs) = (self.locker.clone(), self.may_be_full);
            let folder = Folder { path: path.join(name), remembers, locker, syncs };
            Host::folder(&scene.clock, folder)
        };
        let hosts = self.mounts.iter().map(|mount| host(&mount.path, mount.remembers));
        let hosts: Vec<Host> = hosts.collect();
        block_on(scene.prepare(&hosts[0]))?.map_err(refused("entry"))?;
        let begun = scene.clock.now();
        std::thread::scope(|threads| {
            let mut playing = Vec::new();
            for (client, host) in hosts.iter().enumerate() {
                for number in 0..PROGRAMS_MAX {
                    let program = move || {
                        block_on(Program::new(scene, host, client, number).run(plan, begun))
                    };
                    playing.push(threads.spawn(program));
                }
            }
            let ended = playing.into_iter().map(|program| match program.join() {
                Ok(ran) => ran.and_then(|ran| ran),
                Err(_) => Err(Failure::new("panic", "of a program")),
            });
            // All are waited for.
            ended.fold(Ok(()), Result::and)
        })?;
        match &self.server {
            Some(server) => block_on(scene.walk(&host(server, false), "the end"))?,
            None => Ok(()),
        }
    }
}

/// Runs on this thread, which system calls may hold up.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Failure::new("entry", error.to_string()))?;
    Ok(runtime.block_on(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for a test, on a file system that does not use inode numbers again.
    fn in_memory(name: &str) -> Option<PathBuf> {
        let path = Path::new("/dev/shm").join(format!("nfskit-{name}-{}", std::process::id()));
        let made = std::fs::create_dir(&path);
        if let Err(why) = &made {
            println!("SKIPPED: {}: {why}", path.display());
            assert!(std::env::var_os("CI").is_none(), "{}: {why}", path.display());
        }
        made.ok().map(|()| path)
    }

    fn local(path: PathBuf) -> Mount {
        Mount { path, remembers: false }
    }

    #[test]
    fn one_folder_keeps_all_promises() {
        let Some(path) = in_memory("contest") else { return };
        let mounts = vec![local(path.clone()); 3];
        let folders =
            Folders { mounts, server: Some(path.clone()), locker: None, may_be_full: false };
        for seed in 0..3 {
            let report = folders.play(&seed.to_string(), &Plan::live(seed), false);
            assert_eq!(report.failure, None, "seed {seed}");
        }
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn folders_that_do_not_see_each_other_are_caught() {
        let Some(path) = in_memory("contests-apart") else { return };
        let apart = [path.join("a"), path.join("b")];
        std::fs::create_dir(&apart[0]).unwrap();
        std::fs::create_dir_all(apart[1].join("1")).unwrap();
        let folders = Folders {
            mounts: apart.map(local).to_vec(),
            server: None,
            locker: None,
            may_be_full: false,
        };
        let report = folders.play("1", &Plan::live(1), false);
        assert!(report.failure.is_some());
        std::fs::remove_dir_all(path).unwrap();
    }
}
