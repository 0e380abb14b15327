//! The programs that are compared, and how they are started.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::host::child::{NO_END, Service, finish, text};
use crate::host::nfskit::Server;
use crate::host::{about, tools};
use crate::interop;

const GETATTR: &str = include_str!("scripts/getattr.c");
/// GETATTRs outstanding.
const GETATTRS: u32 = 64;
/// READs outstanding.
const READS: u32 = 16;
/// For fio to write its file.
const WRITTEN_WITHIN: Duration = Duration::from_secs(20);
/// What fio reads.
const FILE: [&str; 2] = ["--size=16m", "--filename=fio-file"];

/// What a program does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Work {
    Getattr,
    Read,
}

impl Work {
    pub(super) const ALL: [Self; 2] = [Self::Getattr, Self::Read];

    pub(super) fn procedure(self) -> &'static str {
        match self {
            Self::Getattr => "GETATTR",
            Self::Read => "READ",
        }
    }
}

/// What is started.
#[derive(Clone, Debug)]
enum How {
    Ours { nfskit: PathBuf, mix: PathBuf },
    Libnfs { program: PathBuf },
    Fio { engine: String, scratch: PathBuf },
}

/// See the module's head.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) work: Work,
    how: How,
}

/// All of them; what is missing is built or named.
pub(super) fn provide(root: &Path, scratch: &Path, nfskit: &Path) -> Result<Vec<Program>, String> {
    let ours = |name, work: Work| {
        let mix = scratch.join(format!("{}.mix", work.procedure()));
        let line = format!("{} 100\n", work.procedure().to_lowercase());
        std::fs::write(&mix, line).map_err(about(&mix))?;
        Ok::<_, String>(Program { name, work, how: How::Ours { nfskit: nfskit.to_owned(), mix } })
    };
    let libnfs = How::Libnfs { program: compile(scratch)? };
    let fio = How::Fio { engine: interop::fio_engine(root)?, scratch: scratch.to_owned() };
    Ok(vec![
        ours("nfskit, GETATTR", Work::Getattr)?,
        Program { name: "libnfs, GETATTR", work: Work::Getattr, how: libnfs },
        ours("nfskit, READ", Work::Read)?,
        Program { name: "fio nfs engine, READ", work: Work::Read, how: fio },
    ])
}

fn compile(scratch: &Path) -> Result<PathBuf, String> {
    let cc = tools::find("cc", "gcc libnfs-dev")?;
    let (source, program) = (scratch.join("getattr.c"), scratch.join("getattr"));
    std::fs::write(&source, GETATTR).map_err(|error| error.to_string())?;
    let built = Command::new(cc)
        .args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-lnfs")
        .output()
        .map_err(|error| error.to_string())?;
    match built.status.success() {
        true => Ok(program),
        false => Err(format!(
            "libnfs's loop does not build (apt-get install libnfs-dev): {}",
            String::from_utf8_lossy(&built.stderr).lines().next().unwrap_or_default()
        )),
    }
}

impl Program {
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.how, How::Ours { .. })
    }

    /// Makes what it works on: fio's engine does not make the files that it reads.
    pub(super) fn prepare(&self, server: &Server) -> Result<(), String> {
        let How::Fio { engine, scratch } = &self.how else { return Ok(()) };
        let mut command = Command::new("fio");
        command.args([
            "--name=write",
            "--rw=write",
            "--bs=256k",
            "--iodepth=1",
            FILE[0],
            FILE[1],
            "--output=fio.out",
        ]);
        command.arg(format!("--ioengine={engine}"));
        command.arg(format!("--nfs_url={}", server.address.url(""))).current_dir(scratch);
        match finish(&mut command, WRITTEN_WITHIN, text) {
            // Having written all, the engine may never end.
            Err(why) if !why.contains(NO_END) => Err(why),
            _ => Ok(()),
        }
    }

    /// Starts it for about so many seconds.
    pub(super) fn start(&self, server: &Server, seconds: u32) -> Result<Service, String> {
        let mut command = match &self.how {
            How::Ours { nfskit, mix } => {
                let outstanding = if self.work == Work::Getattr { GETATTRS } else { READS };
                let mut command = Command::new(nfskit);
                command.args(["bench", "curve", "--target", &server.address.url("")]);
                command.arg("--mix").arg(mix).args(["--closed", &outstanding.to_string()]);
                command.args(["--points", "1", "--warm-up", "100ms", "--file-set-max", "16M"]);
                command.args(["--time", &format!("{seconds}s"), "--accessed", "100"]);
                command
            }
            How::Libnfs { program } => {
                let mut command = Command::new(program);
                let port = server.address.nfs_port.to_string();
                command.args(["127.0.0.1", &port, "/", &GETATTRS.to_string()]);
                command.arg(seconds.to_string());
                command
            }
            How::Fio { engine, scratch } => {
                let mut command = Command::new("fio");
                command.args(["--name=read", "--rw=randread", "--bs=8k"]);
                command.args([FILE[0], FILE[1], "--time_based"]);
                command.arg(format!("--iodepth={READS}")).arg(format!("--runtime={seconds}"));
                command.arg(format!("--ioengine={engine}"));
                command.arg(format!("--nfs_url={}", server.address.url("")));
                command.arg("--output=fio.out").current_dir(scratch);
                command
            }
        };
        Service::start(&mut command)
    }
}
