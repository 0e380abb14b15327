//! Which state directory names the files in a proxy's log: `LOG.state`.
//!
//! ```text
//!   PATH                 as versions before had it
//!   PATH NUL ID          ID: 32 hex digits, made from the key in the directory
//! ```
//!
//! Another directory may lie at the path by now: a file system that is not mounted yet, or a new
//! one.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use perf::words::counted;
use proxy::Handles;
use server::small_file;
use wire::show::Hex;

use crate::exit::Failure;
use crate::state::State;
use crate::write_back::{beside, read_beside};

const PATH_BYTES_MAX: u64 = 4096;
const ID_DIGITS: u64 = 32;

const AS_IT_WAS: &str = "the log where its proxy had it, or LOG.state moved along with it";
const MOUNT_IT: &str = "mount or restore it";

/// A state directory, as a log names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Named {
    path: PathBuf,
    /// Made from its key. None: it has no key, or a version before has named it.
    id: Option<String>,
}

impl Named {
    /// What is there now.
    pub(crate) fn at(path: PathBuf) -> Result<Self, Failure> {
        let unread = |why| Failure::environment(why, "as the user whose proxy it is");
        let id = Handles::key_id(&path).map_err(unread)?;
        let id = id.map(|id| Hex(&id).to_string());
        Ok(Self { path, id })
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let (path, id) = match bytes.iter().position(|byte| *byte == 0) {
            None => (bytes, None),
            Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
        };
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        Self { path, id: id.map(|id| String::from_utf8_lossy(id).into_owned()) }
    }

    fn bytes(&self) -> Vec<u8> {
        let id = self.id.iter().flat_map(|id| [&b"\0"[..], id.as_bytes()].concat());
        self.path.as_os_str().as_bytes().iter().copied().chain(id).collect()
    }

    /// A directory that was moved is the same one.
    fn is(&self, now: &Self) -> bool {
        match &self.id {
            Some(_) => self.id == now.id,
            None => self.path == now.path,
        }
    }
}

/// What names the files in a log. None: that is gone, or the log has had no proxy yet.
fn named(log: &Path) -> Result<Option<Named>, Failure> {
    let bytes = read_beside(&beside(log, ".state"), PATH_BYTES_MAX + 1 + ID_DIGITS)?;
    Ok(bytes.map(|bytes| Named::of_bytes(&bytes)))
}

/// As long as the log holds anything, it is to be the same one each time.
pub(crate) fn check(log: &Path, state: &Named, changes: usize) -> Result<(), Failure> {
    if changes == 0 {
        return Ok(());
    }
    let changes = counted(changes, "change");
    let holds = |by: String| format!("the log {} holds {changes} of files {by}", log.display());
    let now = state.path.display();
    let (by, advice) = match named(log)? {
        Some(before) if before.is(state) => return Ok(()),
        Some(before) if before.path == state.path => {
            (format!("that are named by another state than what is in {now} now"), MOUNT_IT)
        }
        Some(before) => {
            let by = format!("that are named by the state in {}, not {now}", before.path.display());
            (by, "the same --state and port as before")
        }
        None => {
            let file = beside(log, ".state");
            let by =
                format!("and which state names them stands in {}, which is gone", file.display());
            (by, AS_IT_WAS)
        }
    };
    Err(Failure::environment(holds(by), advice))
}

pub(crate) fn remember(log: &Path, state: &Named) -> std::io::Result<()> {
    small_file::replace(&beside(log, ".state"), &state.bytes())
}

/// The state that names the files in a log, of a server that has ended. None is made.
pub(crate) fn opened(log: &Path) -> Result<State, Failure> {
    let Some(before) = named(log)? else {
        let what = format!("{} is not there", beside(log, ".state").display());
        return Err(Failure::environment(what, AS_IT_WAS));
    };
    let path = before.path.clone();
    let shown = path.display().to_string();
    let now = Named::at(path)?;
    if now.id.is_none() || !before.is(&now) {
        let log = log.display();
        let what = format!("the state that names the files in the log {log} is not in {shown} now");
        return Err(Failure::environment(what, MOUNT_IT));
    }
    let (base, port) = (now.path.parent(), now.path.file_name().and_then(|name| name.to_str()));
    let place = base.zip(port.and_then(|port| port.parse().ok()));
    let no_place = || Failure::environment(format!("{shown} is no state of a server"), AS_IT_WAS);
    let (base, port) = place.ok_or_else(no_place)?;
    let taken = |what: String| Failure::environment(what, "end the server that has it");
    State::open(base, port).map_err(|cause| taken(format!("{shown}: {cause}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A log's path, and a state with a key.
    fn with_state(dir: &Path) -> (PathBuf, Named) {
        let state = dir.join("1");
        Handles::open("h:1/x", Some(&state)).expect("there is room");
        (dir.join("log"), Named::at(state).expect("it is there"))
    }

    #[test]
    fn a_log_that_holds_changes_is_for_the_state_that_it_has_had_alone() {
        let dir = tempfile::tempdir().expect("there is room");
        let (log, state) = with_state(dir.path());
        assert!(check(&log, &state, 0).is_ok(), "a new one");
        assert!(check(&log, &state, 1).is_err(), "it was moved without what says which");
        remember(&log, &state).expect("there is room");
        assert!(check(&log, &state, 1).is_ok());
        let moved = Named { path: dir.path().to_owned(), ..state };
        assert!(check(&log, &moved, 1).is_ok(), "it has the same key");
        let other = Named::at(dir.path().to_owned()).expect("it is there");
        assert!(check(&log, &other, 1).is_err());
        assert!(check(&log, &other, 0).is_ok());
    }

    #[test]
    fn what_lies_at_the_path_of_a_state_is_not_taken_for_it() {
        let dir = tempfile::tempdir().expect("there is room");
        let (log, state) = with_state(dir.path());
        remember(&log, &state).expect("there is room");
        fs::rename(&state.path, dir.path().join("unmounted")).expect("it is there");
        let failed = |failure: Failure| (failure.what().to_owned(), failure.advice().to_owned());
        let (what, _) = failed(opened(&log).expect_err("it is not there"));
        assert!(what.contains("is not in"), "{what}");
        assert!(!state.path.exists(), "none is made");
        let (_, new) = with_state(dir.path());
        let (what, advice) = failed(check(&log, &new, 9).expect_err("it is another one"));
        let says = format!(
            "holds 9 changes of files that are named by another state than what is in {} now",
            new.path.display()
        );
        assert!(what.ends_with(&says), "{what}");
        assert_eq!(advice, MOUNT_IT);
        opened(&log).expect_err("it is another one");
        assert!(!new.path.join("lock").exists(), "nothing is made there");
        // A log that holds nothing takes the new one.
        assert!(check(&log, &new, 0).is_ok());
        fs::remove_dir_all(&new.path).expect("it is there");
        fs::rename(dir.path().join("unmounted"), &state.path).expect("it is there");
        assert!(opened(&log).is_ok());
    }

    #[test]
    fn a_log_of_a_version_before_is_known_by_the_path_of_its_state() {
        let dir = tempfile::tempdir().expect("there is room");
        let (log, state) = with_state(dir.path());
        let before = Named { id: None, ..state.clone() };
        fs::write(beside(&log, ".state"), state.path.as_os_str().as_bytes())
            .expect("there is room");
        assert_eq!(named(&log).expect("it is there"), Some(before));
        assert!(check(&log, &state, 1).is_ok());
        let elsewhere = Named { path: dir.path().to_owned(), ..state.clone() };
        assert!(check(&log, &elsewhere, 1).is_err());
        drop(opened(&log).expect("it has a key"));
        remember(&log, &state).expect("there is room");
        assert_eq!(named(&log).expect("it is there"), Some(state));
    }
}
