//! Servers that die: for a moment, in the middle of a large copy, and for good.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::mounted::Mounted;
use super::options::Options;
use super::served::{Ours, new_folder};
use crate::host::child::Service;
use crate::host::content;
use crate::host::report::Report;

const PEER: &str = "nfskit";
const POLL: Duration = Duration::from_millis(20);
/// How long the server is away in the middle of the copy.
const AWAY: Duration = Duration::from_secs(2);
/// What Ctrl-C may take to end a program that waits for a server that is gone.
const INTERRUPT_WITHIN: Duration = Duration::from_secs(5);

/// Every step of servers that die.
pub(super) fn check(report: &mut Report, scratch: &Path, nfskit: &Path, options: &Options) {
    let place = Place { scratch, nfskit, options };
    if options.wants("restart") {
        report.check(PEER, "restart", || place.restart());
    }
    if options.wants("gone-hard") {
        report.check(PEER, "gone-hard", || place.gone_hard());
    }
    if options.wants("gone-soft") {
        report.check(PEER, "gone-soft", || place.gone_soft());
    }
}

const UNFLUSHED: &str = "import sys, time
file = open(sys.argv[1], 'wb', buffering=0)
file.write(bytes(1 << 20))
print('ready', flush=True)
time.sleep(600)";

struct Place<'a> {
    scratch: &'a Path,
    nfskit: &'a Path,
    options: &'a Options,
}

impl Place<'_> {
    fn server(&self, name: &str) -> Result<Ours, String> {
        let folder = new_folder(self.scratch, &format!("export-{name}"))?;
        Ours::start(self.nfskit, self.scratch, &folder, &[])
    }

    fn mount(&self, name: &str, server: &Ours, options: &[&str]) -> Result<Mounted, String> {
        let name = format!("mnt-{name}");
        Mounted::start(self.nfskit, self.scratch, &name, &server.url(), options)
    }

    /// Killed and started again twice during a copy, which comes out right.
    fn restart(&self) -> Result<String, String> {
        let mib = if self.options.quick { 128 } else { 1024 };
        let mut server = self.server("restart")?;
        let mounted = self.mount("restart", &server, &["-o", "timeo=10"])?;
        let source = self.scratch.join("large");
        content::write(&source, self.options.seed, mib).map_err(|error| error.to_string())?;
        let began = Instant::now();
        let deadline = began + Duration::from_secs(if self.options.quick { 90 } else { 400 });
        let mut copy = copy(&source, &mounted.dir.join("copy"))?;
        let arrived = server.folder.join("copy");
        for percent in [25, 60] {
            let enough = (mib << 20) * percent / 100;
            let is_there = || std::fs::metadata(&arrived).is_ok_and(|found| found.len() >= enough);
            while !is_there() && copy.is_running()? {
                before(deadline, "the copy does not go on")?;
                thread::sleep(POLL);
            }
            if !copy.is_running()? {
                let how = copy.outcome(deadline)?;
                return Err(format!("the copy ended before the server was killed: {how:?}"));
            }
            let dead = server.kill();
            thread::sleep(AWAY);
            server = dead.revive()?;
        }
        copy.succeeds(deadline)?;
        let seconds = began.elapsed().as_secs_f64();
        content::compare_files(&source, &arrived)?;
        content::compare_files(&source, &mounted.dir.join("copy"))?;
        mounted.stop()?;
        content::compare_files(&source, &arrived)?;
        server.stop()?;
        std::fs::remove_file(&source).ok();
        std::fs::remove_file(&arrived).ok();
        Ok(format!("{mib} MiB right after 2 restarts, {seconds:.1} s"))
    }

    /// A hard mount waits, says so, and lets programs be interrupted; the mount itself ends, too.
    fn gone_hard(&self) -> Result<String, String> {
        let server = self.server("hard")?;
        let mut mounted =
            self.mount("hard", &server, &["-o", "timeo=5,retrans=2", "-o", "grace=2s"])?;
        let writer = self.writer(&mounted)?;
        let dead = server.kill();
        let source = self.scratch.join("small");
        content::write(&source, 1, 4).map_err(|error| error.to_string())?;
        let began = Instant::now();
        // cp dies of an interrupt; a program that catches it waits on, as with the kernel's client.
        // Whoever started us in the background made all of us ignore interrupts.
        let mut cp = Command::new("env");
        cp.args(["--default-signal=INT", "cp"]).arg(&source).arg(mounted.dir.join("copy"));
        let mut copy = Copy::run(&mut cp)?;
        let says = |lines: &[String]| {
            lines.iter().any(|line| line.contains("not responding")).then_some(())
        };
        mounted
            .wait_for(Duration::from_secs(30), says)
            .map_err(|why| format!("it does not say that the server is gone: {why}"))?;
        let reported_s = began.elapsed().as_secs_f64();
        if !copy.is_running()? {
            return Err("the copy ended although the mount is hard".to_owned());
        }
        let interrupted = Instant::now();
        copy.signal(Signal::INT)?;
        let ended = copy.ends(Instant::now() + INTERRUPT_WITHIN)?;
        let took = interrupted.elapsed().as_secs_f64();
        if !ended {
            return Err(format!("Ctrl-C did not end a program within {INTERRUPT_WITHIN:?}"));
        }
        drop(writer);
        let stopping = Instant::now();
        let how = mounted.end(Duration::from_secs(30))?;
        let stopped = stopping.elapsed().as_secs_f64();
        drop(dead);
        match how {
            Ok(()) => Err("1 MiB was lost at the end, and nothing was reported".to_owned()),
            Err(_) => Ok(format!(
                "reported after {reported_s:.1} s, Ctrl-C {took:.1} s, unmounted {stopped:.1} s, \
                 loss reported"
            )),
        }
    }

    /// A program that has written 1 MiB, and neither flushed nor closed.
    fn writer(&self, mounted: &Mounted) -> Result<Service, String> {
        let mut python = Command::new("python3");
        python.args(["-c", UNFLUSHED]).arg(mounted.dir.join("unflushed"));
        let mut writer = Service::start(&mut python)?;
        writer.wait_for(Duration::from_secs(10), |lines| lines.first().map(drop))?;
        Ok(writer)
    }

    /// A soft mount fails after the time it was given.
    fn gone_soft(&self) -> Result<String, String> {
        let server = self.server("soft")?;
        let mounted =
            self.mount("soft", &server, &["-o", "soft,timeo=10,retrans=2", "-o", "grace=2s"])?;
        let dead = server.kill();
        let source = self.scratch.join("small-soft");
        content::write(&source, 1, 4).map_err(|error| error.to_string())?;
        let began = Instant::now();
        let mut copy = copy(&source, &mounted.dir.join("copy"))?;
        // timeo is 1 s and there are 2 more tries; dd makes two calls that have to give up.
        let failed = copy.fails(Instant::now() + Duration::from_secs(60))?;
        let seconds = began.elapsed().as_secs_f64();
        if !failed.contains("Input/output error") {
            return Err(format!("EIO expected, got {failed}"));
        }
        if seconds < 1.9 {
            return Err(format!("EIO came after {seconds:.1} s, before timeo x retrans were over"));
        }
        mounted.end(Duration::from_secs(30))?.ok();
        drop(dead);
        Ok(format!("EIO after {seconds:.1} s, with timeo=10,retrans=2"))
    }
}

/// A program that copies a file.
struct Copy {
    child: Child,
}

/// Copies a file, and waits for its data to be stable.
fn copy(from: &Path, to: &Path) -> Result<Copy, String> {
    let mut dd = Command::new("dd");
    let argument = |name: &str, path: &Path| format!("{name}={}", path.display());
    dd.args([argument("if", from), argument("of", to)]);
    Copy::run(dd.args(["bs=64k", "conv=fsync", "status=none"]))
}

impl Copy {
    fn run(command: &mut Command) -> Result<Self, String> {
        command.env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("no copy: {error}"))?;
        Ok(Self { child })
    }

    fn is_running(&mut self) -> Result<bool, String> {
        let ended = self.child.try_wait().map_err(|error| error.to_string())?;
        Ok(ended.is_none())
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        kill_process(Pid::from_child(&self.child), signal).map_err(|error| error.to_string())
    }

    fn ends(&mut self, deadline: Instant) -> Result<bool, String> {
        while self.is_running()? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(POLL);
        }
        Ok(true)
    }

    fn succeeds(&mut self, deadline: Instant) -> Result<(), String> {
        match self.outcome(deadline)? {
            (true, _) => Ok(()),
            (false, complaint) => Err(format!("the copy failed: {complaint}")),
        }
    }

    /// What it complained about.
    fn fails(&mut self, deadline: Instant) -> Result<String, String> {
        match self.outcome(deadline)? {
            (true, _) => Err("the copy succeeded".to_owned()),
            (false, complaint) => Ok(complaint),
        }
    }

    fn outcome(&mut self, deadline: Instant) -> Result<(bool, String), String> {
        if !self.ends(deadline)? {
            return Err("the copy does not end".to_owned());
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let complaint = self.child.stderr.take().map(crate::host::child::text);
        Ok((status.success(), complaint.unwrap_or_default().trim().to_owned()))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Not waited for: it may be inside a call that ends only with the mount.
        self.child.kill().ok();
    }
}

fn before(deadline: Instant, otherwise: &str) -> Result<(), String> {
    if Instant::now() < deadline { Ok(()) } else { Err(otherwise.to_owned()) }
}
