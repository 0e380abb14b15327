//! What a process has started: fio's nfs engine forks, with every option, and what it forked
//! goes on when fio is killed, with a core of its own.

use std::fs;
use std::io;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// The processes that `pid` has started, and that these have, as far as their parents live.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let own = entry.file_name().to_str()?.parse().ok()?;
            Some((own, parent(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
        })
        .collect();
    let (mut found, mut looked) = (vec![pid], 0);
    while let Some(&at) = found.get(looked) {
        found.extend(all.iter().filter(|(_, parent)| *parent == at).map(|(own, _)| own));
        looked += 1;
    }
    found.split_off(1)
}

/// Ends a child and what it has started, at once.
pub(crate) fn kill(child: &mut Child) -> io::Result<()> {
    let others = descendants(child.id());
    let killed = child.kill();
    let others = others.into_iter().filter_map(|pid| Pid::from_raw(pid.try_into().ok()?));
    others.for_each(|pid| {
        // One that has ended by itself is no error.
        kill_process(pid, Signal::KILL).ok();
    });
    killed
}

/// The parent's number in a stat line. The name, in parentheses, may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_parent_is_read_whatever_the_name() {
        assert_eq!(parent("42 (a (b) c) S 17 42 42 0 -1"), Some(17));
        assert_eq!(parent("42 (a) S"), None);
    }

    #[test]
    fn what_a_child_has_started_is_found_and_ended() {
        // It says when it has started the other.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & echo; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        shell.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        let found = descendants(shell.id());
        assert_eq!(found.len(), 1);
        assert!(descendants(std::process::id()).contains(&found[0]));
        kill(&mut shell).unwrap();
        assert!(!shell.wait().unwrap().success());
        // Nobody holds its output any more.
        shell.stdout.as_mut().unwrap().read_to_end(&mut Vec::new()).unwrap();
    }
}
