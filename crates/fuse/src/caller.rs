//! Who asks: the kernel names user, group and thread of each request; the other groups are the
//! thread's, in /proc.

use std::collections::HashMap;
use std::fs;

use client::session::Credential;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use crate::abi::request::Header;

/// How long groups that were read are used: a program that changes its groups changes its user
/// too, and is then another caller.
const GROUPS_GOOD_FOR: Nanos = Nanos::from_secs(1);

/// Callers whose groups are remembered; then all are forgotten.
const CALLERS_MAX: usize = 1024;

/// Makes credentials of callers.
#[derive(Debug)]
pub(crate) struct Callers {
    clock: Clock,
    /// Of the mount: the machine's name; and the user, where all act as one.
    own: Credential,
    all_are_one: bool,
    /// Guards what was read lately.
    known: Mutex<HashMap<Process, (Instant, Credential)>>,
}

/// Process, user and group.
type Process = (u32, u32, u32);

impl Callers {
    /// `all_are_one`: everybody acts as `own`.
    pub(crate) fn new(clock: &Clock, own: Credential, all_are_one: bool) -> Self {
        Self { clock: clock.clone(), own, all_are_one, known: Mutex::default() }
    }

    /// Whether there are several, whose rights the kernel checks by the files' modes.
    pub(crate) fn are_several(&self) -> bool {
        !self.all_are_one
    }

    pub(crate) fn credential(&self, header: &Header) -> Credential {
        if self.all_are_one {
            return self.own.clone();
        }
        let Header { uid, gid, pid, .. } = *header;
        let now = self.clock.now();
        let mut known = self.known.lock();
        if let Some((read, credential)) = known.get(&(pid, uid, gid))
            && now.since(*read) < GROUPS_GOOD_FOR
        {
            return credential.clone();
        }
        // Root's groups add nothing: it may do everything, or the server makes it nobody.
        let gids = if uid == 0 { None } else { groups(pid) }.unwrap_or_default();
        let credential = Credential { uid, gid, gids, ..self.own.clone() };
        if known.len() >= CALLERS_MAX {
            known.clear();
        }
        known.insert((pid, uid, gid), (now, credential.clone()));
        credential
    }
}

/// The supplementary groups of a thread; none if it is not ours to see.
fn groups(pid: u32) -> Option<Vec<u32>> {
    let status = status(pid)?;
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:"))?;
    Some(line.split_whitespace().filter_map(|gid| gid.parse().ok()).collect())
}

/// Whether a thread is about to die and waits only for us.
pub(crate) fn is_dying(pid: u32) -> bool {
    /// SIGKILL's place in a set of signals; also of whoever dies of another one.
    const KILL: u64 = 1 << 8;
    is_pending(pid, KILL)
}

/// Whether a thread has got, and not yet seen, a signal by which people end programs.
pub(crate) fn is_signalled_to_end(pid: u32) -> bool {
    /// SIGHUP, SIGINT, SIGQUIT and SIGTERM.
    const END: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 14;
    is_pending(pid, END)
}

/// Whether a thread, or its process, has got one of these signals and not yet seen it.
fn is_pending(pid: u32, signals: u64) -> bool {
    let Some(status) = status(pid) else {
        return false;
    };
    let pending = |name: &str| {
        let set = status.lines().find_map(|line| line.strip_prefix(name));
        set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
    };
    (pending("SigPnd:") | pending("ShdPnd:")) & signals != 0
}

fn status(pid: u32) -> Option<String> {
    if pid == 0 {
        return None;
    }
    fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(pid: u32, uid: u32) -> Header {
        Header { opcode: 1, unique: 1, node: 1, uid, gid: 7, pid }
    }

    fn own() -> Credential {
        Credential { machine_name: "here".to_owned(), uid: 1, gid: 2, gids: Vec::new() }
    }

    #[test]
    fn a_caller_has_the_groups_of_its_thread() {
        let callers = Callers::new(&Clock::real(), own(), false);
        let ours: Vec<u32> =
            rustix::process::getgroups().unwrap().iter().map(|gid| gid.as_raw()).collect();
        let credential = callers.credential(&header(std::process::id(), 5));
        assert_eq!((credential.uid, credential.gid), (5, 7));
        assert_eq!(credential.gids, ours);
        assert_eq!(callers.credential(&header(0, 5)).gids, [] as [u32; 0]);
    }

    #[test]
    fn who_is_named_in_the_url_stands_for_all() {
        let callers = Callers::new(&Clock::real(), own(), true);
        assert_eq!(callers.credential(&header(std::process::id(), 5)), own());
    }

    #[test]
    fn who_lives_is_not_dying() {
        assert!(!is_dying(std::process::id()));
        assert!(!is_dying(0));
    }
}
