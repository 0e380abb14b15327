//! The guest, its network and our server: where a fault is staged.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::scene::{HEALTHY, Load, Setup};
use crate::guest::image::Image;
use crate::guest::shell::Shell;
use crate::host::about;
use crate::host::child::{Service, finish, text};
use crate::host::nfskit::{SERVES, START_WITHIN, STOP_WITHIN, TRUSTING};

/// Our own network, by a name that the guest's scripts can be given.
pub(super) const NAMESPACE: &str = "nfskit-drill";
/// This side of the tap, which those scripts make, and the other.
pub(super) const HOST: &str = "10.77.0.1";
pub(super) const GUEST: &str = "10.77.0.2";
const LOAD: &str = include_str!("scripts/load.py");
/// For what takes moments.
pub(super) const SOON: Duration = Duration::from_secs(30);
/// For what is done in one scene.
const WITHIN: Duration = Duration::from_secs(120);
/// How long the load goes on, and how long doctor looks at it, from its second second on.
const LOAD_S: u32 = 7;
const LOOK_S: u32 = 4;
/// Files by which the guest signals that doctor begins and has ended.
const LOOKS: &str = "looks";
const HAS_LOOKED: &str = "has-looked";

pub(super) struct Stage<'a> {
    shell: Shell,
    pub(super) scratch: &'a Path,
    pub(super) nfskit: &'a Path,
    /// Where each answer is stored as it came, in the order of play.
    keep: Option<&'a Path>,
    played: usize,
}

/// What was done in a second, and what doctor found meanwhile.
pub(super) struct Played {
    pub(super) rate: f64,
    pub(super) report: Value,
}

/// Does something on this side, in bash.
pub(super) fn here(script: &str) -> Result<String, String> {
    finish(Command::new("bash").args(["-ec", script]), SOON, text).map(|done| done.value)
}

impl<'a> Stage<'a> {
    /// Boots a guest whose commands are in a folder of this name.
    pub(super) fn boot(
        image: &Image,
        scratch: &'a Path,
        nfskit: &'a Path,
        name: &str,
        keep: Option<&'a Path>,
    ) -> Result<Self, String> {
        let load = scratch.join("load.py");
        std::fs::write(&load, LOAD).map_err(about(&load))?;
        let shell = Shell::boot(image, NAMESPACE, &scratch.join(name))?;
        Ok(Self { shell, scratch, nfskit, keep, played: 0 })
    }

    pub(super) fn end(self) -> Result<(), String> {
        self.shell.end()
    }

    /// Does something in the guest, in bash.
    pub(super) fn guest(&mut self, script: &str) -> Result<String, String> {
        self.shell.run(script, WITHIN)
    }

    /// Our server on this side, on the usual port.
    pub(super) fn serve(&self, words: &[&str]) -> Result<Service, String> {
        let mut command = Command::new(self.nfskit);
        command.arg("serve").args(words).arg("--listen").arg(format!("{HOST}:2049"));
        command.args(TRUSTING);
        Service::start_until(&mut command, START_WITHIN, SERVES)
    }

    /// Serves, mounts, works and looks; then all is as it was.
    pub(super) fn play(&mut self, setup: &Setup) -> Result<Played, String> {
        let server = self.serve(setup.serve)?;
        let played = self.played(setup, &server);
        server.stop(STOP_WITHIN)?;
        let played = played?;
        self.keep(&setup.load, &played.report)?;
        Ok(played)
    }

    fn keep(&mut self, load: &Load, report: &Value) -> Result<(), String> {
        let Some(folder) = self.keep else { return Ok(()) };
        self.played += 1;
        let path = folder.join(format!("{:02}-{}.json", self.played, load.kind));
        std::fs::write(&path, report.to_string()).map_err(about(&path))
    }

    fn played(&mut self, setup: &Setup, server: &Service) -> Result<Played, String> {
        // What there is to work on is made before anything is wrong.
        let prepare = format!(
            "{}\n{} && umount /mnt",
            mount(HEALTHY.mount),
            self.load("prepare", &setup.load)
        );
        self.guest(&prepare)?;
        let [fault, undo] = setup.guest;
        let nfskit = self.nfskit.display();
        let work = format!(
            "{fault}\n{mount}\necho {ahead} >/sys/class/bdi/$(mountpoint -d /mnt)/read_ahead_kb\n\
             echo 3 >/proc/sys/vm/drop_caches\n\
             {run} >/tmp/rate 2>&1 &\n\
             sleep 1.2; {looks}; sleep 0.3\n\
             /host{nfskit} doctor /mnt --for {LOOK_S}s -q --json /tmp/said\n\
             [ $? -le 1 ] || exit 9\n\
             {has_looked}\nwait %1; cat /tmp/rate /tmp/said\n",
            mount = mount(setup.mount),
            ahead = setup.read_ahead_kib,
            run = self.load("run", &setup.load),
            looks = self.mark(LOOKS),
            has_looked = self.mark(HAS_LOOKED),
        );
        let log = match setup.server_stops {
            true => self.while_stopped(server, &work),
            false => self.guest(&work),
        };
        let undone = self.guest(&format!(
            "umount /mnt || umount -f -l /mnt\n{undo}\necho 3 >/proc/sys/vm/drop_caches\n"
        ));
        let log = log?;
        undone?;
        read(&log)
    }

    /// The guest's command for a file on this side that says how far it is.
    fn mark(&self, name: &str) -> String {
        format!("touch /host{}", self.scratch.join(name).display())
    }

    /// Does it in the guest, the server being stopped while doctor looks.
    fn while_stopped(&mut self, server: &Service, work: &str) -> Result<String, String> {
        let marks = [LOOKS, HAS_LOOKED].map(|name| self.scratch.join(name));
        // Those of the scenes before.
        marks.iter().for_each(|mark| drop(std::fs::remove_file(mark)));
        let signals = [Signal::STOP, Signal::CONT];
        let pid = Pid::from_raw(server.pid().cast_signed()).ok_or("the server has no number")?;
        thread::scope(|scope| {
            let stopping = scope.spawn(|| {
                let deadline = Instant::now() + WITHIN;
                for (mark, signal) in marks.iter().zip(signals) {
                    while !mark.exists() && Instant::now() < deadline {
                        thread::sleep(Duration::from_millis(20));
                    }
                    kill_process(pid, signal).map_err(|cause| format!("the server: {cause}"))?;
                    std::fs::remove_file(mark).ok();
                }
                Ok(())
            });
            let log = self.guest(work);
            let stopped = stopping.join().map_err(|_| "stopping the server failed".to_owned())?;
            stopped.and(log)
        })
    }

    /// The command line of the load.
    fn load(&self, what: &str, load: &Load) -> String {
        let (script, Load { kind, threads, size }) = (self.scratch.join("load.py"), load);
        let script = script.display();
        format!("python3 /host{script} {what} {kind} /mnt {LOAD_S} {threads} {size}")
    }
}

fn mount(options: &str) -> String {
    format!(
        "HOST={HOST} PORT=2049 MOUNTPORT=2049 EXPORT=/ VERS=3 MNTOPTS={options}\nmnt /mnt || exit 8"
    )
}

/// The rate that the load has printed, and the JSON behind it.
fn read(log: &str) -> Result<Played, String> {
    let begin = log.find('{').ok_or_else(|| format!("doctor printed nothing: {log}"))?;
    let (before, json) = log.split_at(begin);
    let rate = before.lines().find_map(|line| line.strip_prefix("rate ")?.parse().ok());
    let rate = rate.ok_or_else(|| format!("the load has failed: {before}"))?;
    let report = serde_json::from_str(json).map_err(|cause| format!("{cause}: {json}"))?;
    Ok(Played { rate, report })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_stands_before_the_json() {
        let played = read("rate 12.500\n{\"reports\": []}\n").unwrap();
        assert!((played.rate - 12.5).abs() < 1e-9 && played.report["reports"].is_array());
        assert!(read("Traceback\n").is_err() && read("Traceback\n{}").is_err());
    }
}
