//! The end of a mount, in good order and not.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::mount::MountFlags;
use rustix::process::Signal;

use super::{Mounted, can_mount, is_mounted, unmount};
use crate::program::Program;
use crate::served::Served;

#[test]
fn either_signal_unmounts_and_everything_is_on_the_server() {
    if !can_mount() {
        return;
    }
    for signal in [Signal::TERM, Signal::INT] {
        let served = Served::folder(&[]);
        let mounted = Mounted::new(&served, &[]);
        fs::write(mounted.path("file"), vec![5; 3 << 20]).unwrap();
        mounted.program().signal(signal);
        let at = mounted.at.path().to_owned();
        let finished = mounted.finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        assert!(!is_mounted(&at));
        assert_eq!(fs::read(served.path().join("file")).unwrap(), vec![5; 3 << 20]);
        served.stop();
    }
}

#[test]
fn who_unmounts_it_ends_it() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &[]);
    fs::write(mounted.path("file"), b"data").unwrap();
    unmount(mounted.at.path());
    let finished = mounted.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("unmounted by somebody else"), "{finished:?}");
    served.stop();
}

#[test]
fn what_is_still_open_is_written_back_and_reported() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let mounted = Mounted::new(&served, &[]);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(&[9; 300_000]).unwrap();
    mounted.program().signal(Signal::TERM);
    let at = mounted.at.path().to_owned();
    let finished = mounted.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("was in use (1 open file)"), "{finished:?}");
    assert!(!is_mounted(&at));
    assert_eq!(fs::read(served.path().join("file")).unwrap(), vec![9; 300_000]);
    // Whoever uses it still gets errors, and does not hang.
    file.write_all(b"x").and_then(|()| file.sync_all()).unwrap_err();
    served.stop();
}

#[test]
fn what_is_written_while_it_ends_is_written_back_too() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let mounted = Mounted::new(&served, &[]);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(b"before").unwrap();
    mounted.program().signal(Signal::TERM);
    mounted.program().wait_for(|text| text.contains("writing back and unmounting").then_some(()));
    file.write_all(b", meanwhile").unwrap();
    let finished = mounted.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(fs::read(served.path().join("file")).unwrap(), b"before, meanwhile");
    served.stop();
}

#[test]
fn who_writes_to_the_last_moment_is_reported() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let mounted = Mounted::new(&served, &["--grace", "3s"]);
    let mut file = File::create(mounted.path("file")).unwrap();
    let writer = std::thread::spawn(move || while file.write_all(&[7; 1000]).is_ok() {});
    mounted.program().signal(Signal::TERM);
    let finished = mounted.finish();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    // What is written faster than it goes out is not over within the grace period.
    let sentences = ["what they wrote then may be lost", "the rest is lost"];
    assert!(sentences.iter().any(|one| finished.stderr.contains(one)), "{finished:?}");
    assert!(!finished.stdout.contains("everything is written"), "{finished:?}");
    writer.join().unwrap();
    served.stop();
}

#[test]
fn what_somebody_has_mounted_above_it_stays() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let mut mounted = Mounted::new(&served, &[]);
    let at = mounted.at.path().to_owned();
    fs::write(at.join("file"), b"below").unwrap();
    rustix::mount::mount("above", &at, "tmpfs", MountFlags::empty(), None).unwrap();
    fs::write(at.join("other"), b"above").unwrap();
    mounted.program().signal(Signal::TERM);
    let finished = mounted.program.take().unwrap().finish();
    assert_eq!(fs::read(at.join("other")).unwrap(), b"above");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("above (type tmpfs) is mounted above it"), "{finished:?}");
    assert_eq!(fs::read(served.path().join("file")).unwrap(), b"below");
    // The one below has no process any more: it goes when the test's own is dropped.
    unmount(&at);
    assert!(is_mounted(&at));
    drop(mounted);
    assert!(!is_mounted(&at));
    served.stop();
}

/// mmap(2) is unsafe in Rust; Python's is not.
#[test]
fn a_loss_of_which_no_program_has_got_the_error_is_reported_as_such() {
    const SCRIPT: &str = "
import ctypes, os, sys
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 16 << 20)
# Python's own mmap keeps a descriptor, whose close gets the error.
mapped = mmap(None, 16 << 20, 3, 1, fd, 0)
os.close(fd)
for at in range(0, 16 << 20, 4096):
    ctypes.memset(mapped + at, 1, 1)
";
    if !can_mount() {
        return;
    }
    let served = Served::memory(&["--mem-size", "8M"]);
    let mounted = Mounted::new(&served, &[]);
    let run = Command::new("python3").args(["-c", SCRIPT]).arg(mounted.path("mapped")).output();
    let Ok(run) = run else {
        assert!(std::env::var_os("CI").is_none(), "python3 is needed");
        eprintln!("SKIPPED: a test of mappings needs python3");
        return;
    };
    assert!(run.status.success(), "{run:?}");
    mounted.program().signal(Signal::TERM);
    let finished = mounted.finish();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let sentence = "1 file could not be written whole, and no program has got this error: WRITE";
    assert!(finished.stderr.contains(sentence), "{finished:?}");
    assert!(!finished.stderr.contains("saw it"), "{finished:?}");
    served.stop();
}

#[test]
fn who_leaves_it_while_it_ends_is_waited_for() {
    if !can_mount() {
        return;
    }
    let served = Served::folder(&[]);
    let mounted = Mounted::new(&served, &[]);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(b"data").unwrap();
    mounted.program().signal(Signal::TERM);
    mounted.program().wait_for(|text| text.contains("writing back and unmounting").then_some(()));
    drop(file);
    let at = mounted.at.path().to_owned();
    let finished = mounted.finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert!(!is_mounted(&at));
    assert_eq!(fs::read(served.path().join("file")).unwrap(), b"data");
    served.stop();
}

#[test]
fn a_server_that_is_gone_holds_up_the_end_only_for_so_long_and_the_loss_is_reported() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &["--grace", "500ms"]);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(&[9; 300_000]).unwrap();
    served.program.signal(Signal::STOP);
    mounted.program().signal(Signal::TERM);
    let at = mounted.at.path().to_owned();
    let finished = mounted.finish();
    served.program.signal(Signal::CONT);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("the rest is lost"), "{finished:?}");
    assert!(!is_mounted(&at));
    drop(file);
    served.stop();
}

#[test]
fn who_interrupts_twice_does_not_wait() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &["--grace", "3600s"]);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(&[9; 300_000]).unwrap();
    served.program.signal(Signal::STOP);
    mounted.program().signal(Signal::INT);
    mounted.program().wait_for(|text| text.contains("writing back").then_some(()));
    mounted.program().signal(Signal::INT);
    let at = mounted.at.path().to_owned();
    let finished = mounted.finish();
    served.program.signal(Signal::CONT);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("interrupted again"), "{finished:?}");
    assert!(!is_mounted(&at));
    drop(file);
    served.stop();
}

#[test]
fn a_program_that_waits_for_a_server_can_be_interrupted() {
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &["--actimeo", "0"]);
    fs::write(mounted.path("file"), b"data").unwrap();
    served.program.signal(Signal::STOP);
    // Who starts us in the background makes all of us ignore interrupts.
    let mut cat = Command::new("env");
    cat.args(["--default-signal=INT", "cat"]).arg(mounted.path("file"));
    let cat = Program::start(&mut cat);
    waits(&cat);
    cat.signal(Signal::INT);
    let finished = cat.finish();
    assert_eq!(finished.code, None, "a signal has ended it: {finished:?}");
    served.program.signal(Signal::CONT);
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"data");
    mounted.stop();
    served.stop();
}

/// A signal that does not kill interrupts nothing.
#[test]
fn a_system_call_goes_on_when_a_timer_goes_off() {
    const SCRIPT: &str = "
import os, signal, sys
rung = []
def ring(*_):
    rung.append(1)
    if len(rung) == 3:
        print('rung', flush=True)
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
os.stat(sys.argv[1])
signal.setitimer(signal.ITIMER_REAL, 0)  # its end would be that of an interpreter that is leaving
print('done', len(rung) > 0, flush=True)
";
    if !can_mount() {
        return;
    }
    let served = Served::memory(&[]);
    let mounted = Mounted::new(&served, &["--actimeo", "0"]);
    fs::write(mounted.path("file"), b"data").unwrap();
    served.program.signal(Signal::STOP);
    let mut command = Command::new("python3");
    command.args(["-c", SCRIPT]).arg(mounted.path("file")).stdin(Stdio::null());
    let program = Program::start(&mut command);
    waits(&program);
    has_pending(&program, Signal::ALARM);
    served.program.signal(Signal::CONT);
    let finished = program.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "done True\n"), "{finished:?}");
    mounted.stop();
    served.stop();
}

/// Until it has got a signal that it has not handled yet.
fn has_pending(program: &Program, signal: Signal) {
    let bit = 1_u64 << (signal.as_raw() - 1);
    let status = format!("/proc/{}/status", program.pid());
    loop {
        let text = fs::read_to_string(&status).unwrap();
        let pending = text.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        if u64::from_str_radix(pending.trim(), 16).unwrap() & bit != 0 {
            return;
        }
        std::thread::yield_now();
    }
}

/// Until it waits for an answer of the file system.
fn waits(program: &Program) {
    let wchan = format!("/proc/{}/wchan", program.pid());
    let mut where_ = String::new();
    while where_ != "request_wait_answer" {
        where_.clear();
        File::open(&wchan).unwrap().read_to_string(&mut where_).unwrap();
        std::thread::yield_now();
    }
}
