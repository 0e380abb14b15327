//! Test 5: the package is compiled and linked with the system's make and C compiler.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::failed::Failed;
use super::step::Step;

/// How often it is looked whether the caller wants no more.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// What is reported of a program's complaints.
const OUTPUT_BYTES_MAX: u64 = 400;

/// The programs that the test needs, and that are missing.
pub fn missing() -> Vec<&'static str> {
    let is_there = |program: &&str| {
        let tried = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    };
    ["make", "cc"].into_iter().filter(|program| !is_there(program)).collect()
}

/// Test 5.
pub(super) fn build(step: &Step<'_>) -> Result<(), Failed> {
    let tree = step.tree();
    let mut make = Command::new("make");
    // Whatever the caller's make or shell has set must not change what is built.
    make.args(["-s", "CC=cc"]).env_remove("MAKEFLAGS").env_remove("MFLAGS").env("LC_ALL", "C");
    run(step, "make", make.current_dir(&tree)).map(drop)
}

/// What the program prints is what it should.
pub(super) fn check(step: &Step<'_>) -> Result<(), Failed> {
    let program = step.tree().join("program");
    let output = run(step, "the built program", &mut Command::new(&program))?;
    let expected = &step.material.program.output;
    match &output == expected {
        true => Ok(()),
        false => Err(Failed::wrong(&program, format!("prints {output:?}, and not {expected:?}"))),
    }
}

/// Runs a program to its end, or ends it with all that it has started when the caller wants no
/// more. Gives what it printed.
fn run(step: &Step<'_>, program: &'static str, command: &mut Command) -> Result<String, Failed> {
    let failed = |doing| Failed::at(doing, step.dir);
    let output = tempfile::tempfile().map_err(failed("making a temporary file for"))?;
    let handle = || output.try_clone().map_err(failed("making a temporary file for"));
    command.stdin(Stdio::null()).stdout(handle()?).stderr(handle()?).process_group(0);
    let mut child = command.spawn().map_err(failed("starting a program in"))?;
    let ended = wait(step, &mut child);
    if ended.is_err() {
        kill_process_group(Pid::from_child(&child), Signal::KILL).ok();
        // Killed, it ends at once.
        child.wait().ok();
    }
    let status = ended?;
    let text = output_of(output).map_err(failed("reading what a program printed in"))?;
    match status.success() {
        true => Ok(text),
        false => {
            let output = format!("{status}, {:?}", text.trim());
            Err(Failed::Program { program, path: step.dir.to_owned(), output })
        }
    }
}

fn wait(step: &Step<'_>, child: &mut Child) -> Result<ExitStatus, Failed> {
    let failed = |doing| Failed::at(doing, Path::new("a program"));
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty());
    let pidfd = pidfd.map_err(|errno| failed("watching")(errno.into()))?;
    loop {
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&LOOK_EVERY)) {
            Ok(0) => step.may_go_on()?,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(failed("watching")(errno.into())),
            Ok(_) => return child.wait().map_err(failed("waiting for")),
        }
    }
}

fn output_of(mut file: File) -> std::io::Result<String> {
    file.rewind()?;
    let mut text = Vec::new();
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
