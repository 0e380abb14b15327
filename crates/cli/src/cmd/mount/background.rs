//! A mount that stays when the command returns: the command runs itself again, waits until that
//! has mounted or given up, and ends as it has ended.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use harness::exit::Failure;
use harness::signals::Interrupts;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;

/// What the process that stays prints when it has mounted.
const MOUNTED: &str = "mounted\n";

/// Starts the process that stays, with these arguments, and waits until it is mounted.
pub(super) fn start(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("nfskit").args(arguments);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let (answer, answered) = oneshot::channel();
    let stdout = child.stdout.take();
    let listen = move || {
        let mut output = String::new();
        let heard = stdout.map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut output));
        // Nobody waits for it any more when there is no event queue.
        answer.send(heard.map(|_| output)).ok();
    };
    std::thread::Builder::new().name("nfskit-mounts".to_owned()).spawn(listen).map_err(failed)?;
    let pid = Pid::from_child(&child);
    let output = net::runtime::block_on(outcome_of(pid, answered)).map_err(failed)??;
    if output.map_err(failed)? == MOUNTED {
        // It goes on by itself.
        return Ok(());
    }
    let status = child.wait().map_err(failed)?;
    // The reason is on our standard error.
    Err(Failure::printed(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(3)))
}

fn failed(cause: std::io::Error) -> Failure {
    Failure::resources(format!("the process that is to stay cannot be started: {cause}"))
}

/// What the process that stays has printed by the time it mounts, or gives up. An interrupt is
/// passed on: it tells, and we end as it does.
async fn outcome_of(
    pid: Pid,
    mut answered: oneshot::Receiver<std::io::Result<String>>,
) -> Result<std::io::Result<String>, Failure> {
    let mut interrupts = Interrupts::catch()?;
    let output = tokio::select! {
        biased;
        output = &mut answered => output,
        () = interrupts.next() => {
            // Not there any more: then it has ended, and printed why.
            kill_process(pid, Signal::TERM).ok();
            answered.await
        }
    };
    Ok(output.unwrap_or_else(|_| Ok(String::new())))
}

/// The process that stays tells that it has mounted, and lets go of what it was started from.
pub(super) fn detach() -> Result<(), Failure> {
    let failed = |errno: Errno| {
        let what = format!("/dev/null cannot be used: {}", std::io::Error::from(errno));
        Failure::environment(what, "raise the limit of open files (ulimit -n)")
    };
    // Already a leader of its session when a service manager has started it.
    rustix::process::setsid().ok();
    rustix::process::chdir("/").map_err(failed)?;
    harness::output::print(MOUNTED)?;
    let_go().map_err(failed)
}

fn let_go() -> Result<(), Errno> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)
}
