//! The guest as a machine that is switched on and off, and the commands by which crash-test does
//! both.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::disk::{Counts, Disk, Served};
use super::scenes::{Ends, Scene, Server};
use crate::host::child::{finish, text};
use crate::host::{about, last_lines, tools};

pub(super) const HOST: &str = "10.77.0.1";
pub(super) const GUEST: &str = "10.77.0.2";
const ADDRESS: [u8; 4] = [10, 77, 0, 2];
const TAP: &str = "tap0";
const DISK_BYTES: u64 = 320 << 20;
const MEMORY: &str = "mem=320M";
const SOON: Duration = Duration::from_secs(60);
/// A boot with a look at the file system, on a machine that does other things, too.
const UP_WITHIN: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(50);

/// What the guest executes: its first process is a shell.
const FIRST: &str = "\"mount -t hostfs -o @JOB@ none /job && exec bash /job/guest.sh\"";

/// See the module's head.
#[derive(Debug)]
pub(super) struct Machine {
    folder: PathBuf,
    kernel: PathBuf,
    root_disk: PathBuf,
    served: Served,
    ends: Ends,
    running: Option<Child>,
    rng: fastrand::Rng,
    pub(super) sectors_lost: u64,
    pub(super) cuts: u32,
}

/// The network that it shares with us; ours alone, and gone with our namespace.
pub(super) fn make_network() -> Result<(), String> {
    for words in [
        &["tuntap", "add", TAP, "mode", "tap"][..],
        &["addr", "add", &format!("{HOST}/24"), "dev", TAP],
        &["link", "set", TAP, "up"],
    ] {
        finish(Command::new("ip").args(words), SOON, text)?;
    }
    Ok(())
}

impl Machine {
    /// Makes its disk and what it begins with; it is off.
    pub(super) fn new(
        scene: &Scene,
        folder: PathBuf,
        guest: &Path,
        nfskit: &Path,
        seed: u64,
    ) -> Result<Self, String> {
        let failed = about(&folder);
        fs::create_dir_all(folder.join("job")).map_err(failed)?;
        let image = folder.join("disk");
        File::create(&image).and_then(|file| file.set_len(DISK_BYTES)).map_err(failed)?;
        let (program, options, package) = scene.file_system.maker();
        let mut making = Command::new(tools::find(program, package)?);
        finish(making.args(options).arg(&image), SOON, text)?;
        let disk = Disk::open(&image, scene.is_late).map_err(failed)?;
        let bytes = disk.bytes();
        let served = Served::listen(disk).map_err(failed)?;
        let port = served.port().map_err(failed)?;
        let (server, server_options) = match scene.server {
            Server::Nfskit(options) => ("nfskit", options),
            Server::Kernel(option) => ("knfsd", option),
            Server::Ganesha => ("ganesha", ""),
            Server::Proxy(options) => ("proxy", options),
            Server::Mount(options) => ("mount", options),
        };
        let ends = match scene.ends {
            Ends::Power => "power",
            Ends::Process => "process",
        };
        let settings = format!(
            "HOST={HOST}\nGUEST={GUEST}\nDISK_PORT={port}\nDISK_BYTES={bytes}\n\
             FILE_SYSTEM={}\nMOUNT_OPTIONS='{}'\nSERVER={server}\n\
             SERVER_OPTIONS='{server_options}'\nORIGIN='nfs://{HOST}{}'\nENDS={ends}\n\
             NFSKIT='{}'\n",
            scene.file_system.name(),
            scene.options,
            super::origin::PLACE,
            nfskit.display()
        );
        let files = [
            ("env", settings.as_str()),
            ("guest.sh", include_str!("scripts/guest.sh")),
            ("nbd.py", include_str!("scripts/nbd.py")),
            ("mount.py", include_str!("scripts/mount.py")),
            ("ganesha.conf", include_str!("scripts/ganesha.conf")),
        ];
        for (name, content) in files {
            fs::write(folder.join("job").join(name), content).map_err(failed)?;
        }
        let (kernel, root_disk) = (guest.join("linux.uml"), guest.join("rootfs.img"));
        let rng = fastrand::Rng::with_seed(seed);
        let (running, sectors_lost, cuts) = (None, 0, 0);
        let ends = scene.ends;
        Ok(Self { folder, kernel, root_disk, served, ends, running, rng, sectors_lost, cuts })
    }

    /// Switches it on.
    pub(super) fn boot(&mut self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the guest does not start: {error}");
        let console = File::create(self.console()).map_err(failed)?;
        let errors = console.try_clone().map_err(failed)?;
        self.served.await_guest().map_err(failed)?;
        let job = self.folder.join("job");
        // User-mode Linux is several processes: they end with the first of their namespace.
        let child = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(&self.kernel)
            .args([MEMORY, "root=/dev/ubda", "ro", "quiet", "selinux=0", "init=/bin/sh"])
            .arg(format!("ubd0r={}", self.root_disk.display()))
            .args(["con=null", "con0=null,fd:1", "uml_dir=/run"])
            .arg(format!("vec0:transport=tap,ifname={TAP},depth=128,gro=1"))
            .args(["--", "-c"])
            .arg(FIRST.replace("@JOB@", &job.display().to_string()))
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        self.running = Some(child);
        Ok(())
    }

    /// Where its console is written to, anew with each boot.
    fn console(&self) -> PathBuf {
        self.folder.join("console")
    }

    /// Waits until its server is there, on this port.
    pub(super) fn await_server(&mut self, port: u16) -> Result<(), String> {
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            if TcpStream::connect_timeout(&SocketAddr::from((ADDRESS, port)), POLL).is_ok() {
                return Ok(());
            }
            if self.has_died() {
                return Err(self.with_console("the guest has died"));
            }
            thread::sleep(POLL);
        }
        Err(self.with_console("the guest's server does not answer"))
    }

    /// What its disk was requested, in all lives.
    pub(super) fn counts(&self) -> Counts {
        self.served.disk.lock().map_or_else(|_| Counts::default(), |disk| disk.counts)
    }

    pub(super) fn has_died(&mut self) -> bool {
        self.running.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    pub(super) fn with_console(&self, what: &str) -> String {
        let console = fs::read(self.console()).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let last = last_lines(&console, 20).join("\n  ");
        format!("{what}; its console:\n  {last}")
    }

    /// The power is gone: of the guest's memory nothing is left, and of the disk's cache some.
    pub(super) fn cut(&mut self) -> Result<(), String> {
        let died_before = self.has_died();
        if let Some(mut child) = self.running.take() {
            let ended = child.kill().and_then(|()| child.wait());
            ended.map_err(|error| format!("the guest cannot be killed: {error}"))?;
        }
        let failed = |error: std::io::Error| format!("the disk: {error}");
        self.served.end_guest().map_err(failed)?;
        let mut disk = self.served.disk.lock().map_err(|_| "the disk has panicked".to_owned())?;
        let lost = disk.cut(&mut self.rng).map_err(failed)?;
        drop(disk);
        self.sectors_lost += lost as u64;
        self.cuts += 1;
        match died_before {
            true => Err(self.with_console("the guest had died before the cut")),
            false => Ok(()),
        }
    }

    /// The server ends as the scene has it.
    pub(super) fn end_server(&mut self) -> Result<(), String> {
        match self.ends {
            Ends::Power => self.cut(),
            Ends::Process => {
                self.signal("kill", "killed")?;
                self.cuts += 1;
                Ok(())
            }
        }
    }

    pub(super) fn begin_server(&mut self) -> Result<(), String> {
        match self.ends {
            Ends::Power => self.boot(),
            Ends::Process => self.signal("start", "started"),
        }
    }

    /// Has the guest do something with its server; it sees our files.
    fn signal(&mut self, word: &str, done: &str) -> Result<(), String> {
        let file = |name: &str| self.folder.join("job").join(name);
        let failed = |error: std::io::Error| format!("{word}: {error}");
        fs::write(file(word), "").map_err(failed)?;
        let (done, until) = (file(done), Instant::now() + SOON);
        while !done.exists() {
            if Instant::now() >= until || self.has_died() {
                return Err(self.with_console(&format!("the guest does not {word} its server")));
            }
            thread::sleep(POLL);
        }
        fs::remove_file(done).map_err(failed)
    }

    /// Carries out commands until the last: a line of one pipe is a command, and one of the other
    /// says how it went.
    pub(super) fn carry_out(&mut self, switch: &Switch) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the pipes: {error}");
        loop {
            let mut word = String::new();
            let request = File::open(&switch.ask).map_err(failed)?;
            BufReader::new(request).read_line(&mut word).map_err(failed)?;
            let done = match word.trim() {
                "cut" => self.end_server(),
                "boot" => self.begin_server(),
                _ => return Ok(()),
            };
            if let Err(why) = &done {
                println!("powercut: {why}");
            }
            let answer = if done.is_ok() { "ok\n" } else { "failed\n" };
            fs::write(&switch.answer, answer).map_err(failed)?;
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended already, and there is nobody to tell.
        if let Some(mut child) = self.running.take() {
            child.kill().and_then(|()| child.wait()).ok();
        }
    }
}

/// Two named pipes, by which a shell's commands switch the machine.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    ask: PathBuf,
    answer: PathBuf,
}

impl Switch {
    pub(super) fn make(folder: &Path) -> Result<Self, String> {
        let switch = Self { ask: folder.join("ask"), answer: folder.join("answer") };
        finish(Command::new("mkfifo").args([&switch.ask, &switch.answer]), SOON, text)?;
        Ok(switch)
    }

    /// A command for sh.
    pub(super) fn command(&self, word: &str) -> String {
        let (ask, answer) = (self.ask.display(), self.answer.display());
        format!("echo {word} >{ask}; read answer <{answer}; test \"$answer\" = ok")
    }

    /// Has [`Machine::carry_out`] return.
    pub(super) fn end(&self) {
        // The machine may have ended with an error.
        fs::write(&self.ask, "end\n").ok();
    }
}
