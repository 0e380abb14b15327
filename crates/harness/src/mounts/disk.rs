//! `--cache` of mounts and proxies: opening what a local disk keeps of an export, and notices
//! of it.

use std::path::Path;

use cache::place::OpenError;
use cache::{Cache, Event, Limits, Origin};
use client::files::Files;
use client::session::Session;
use client::url::Target;

use crate::exit::Failure;

/// Opens the cache of an export below `dir`. None on a full disk: the caller goes on without
/// one. `warn` hears of that, and of what happens to the cache later.
pub fn open(
    dir: &Path,
    target: &Target,
    session: &Session,
    limits: Limits,
    warn: impl Fn(&str) + Clone + Send + Sync + 'static,
) -> Result<Option<Cache>, Failure> {
    let heard = warn.clone();
    let hear = Box::new(move |event: &Event| heard(&text_of(event)));
    let read_bytes = session.sizes().read_bytes_max;
    match Cache::open(dir, &origin(target, session), read_bytes, limits, hear) {
        Ok(disk) => Ok(Some(disk)),
        Err(error @ OpenError::Full { .. }) => {
            warn(&format!("cache: {error}: going on without it"));
            Ok(None)
        }
        Err(error) => Err(unusable(error)),
    }
}

/// A mount is over: what is still to be stored is, and what was counted.
pub fn end(files: &Files) {
    if let Some(disk) = files.disk() {
        disk.settle();
    }
}

/// Server and export, as they are distinguished: by the host's name, the port if one was given, the
/// path, and the root's handle.
fn origin(target: &Target, session: &Session) -> Origin {
    let port = target.nfs_port.map(|port| format!(":{port}")).unwrap_or_default();
    let name = format!("nfs://{}{port}{}", target.host, target.path_text());
    Origin { name, root: session.root().as_bytes().to_vec() }
}

fn text_of(event: &Event) -> String {
    match event {
        Event::Damaged { name, what } => format!(
            "cache: what is stored as {}-{:x} is damaged ({what}): it is read from the server, \
             and others like it without another word; `nfskit cache verify` looks at all",
            name.file, name.segment
        ),
        Event::Pins => "cache: the list of pinned files is damaged: those that can be read of it \
                        stay; `nfskit cache unpin` without a path removes it, then pin them anew"
            .to_owned(),
        Event::Identity => {
            "cache: its identity was damaged, and is written anew: look at its disk".to_owned()
        }
        Event::Full => {
            "cache: its disk has no room: what is there is used, and nothing is added for now"
                .to_owned()
        }
        Event::Failed { error } => {
            format!("cache: its disk fails ({error}): reads go to the server instead")
        }
        Event::Off { error } => {
            format!("cache: its disk keeps failing ({error}): nothing is added any more")
        }
    }
}

/// Why a directory cannot be used, and what to do.
pub fn unusable(error: OpenError) -> Failure {
    let advice = match &error {
        OpenError::System { .. } => "a directory of yours on a local disk".to_owned(),
        OpenError::Full { .. } => "remove something there, or another disk".to_owned(),
        OpenError::ReadOnly { .. } => "a directory on a disk that can be written to".to_owned(),
        OpenError::NotOurs { .. } => "a directory of your own".to_owned(),
        OpenError::Open { path, .. } => format!("chmod go-w {}", path.display()),
        OpenError::Link { .. } => "the directory that it leads to".to_owned(),
        OpenError::NoCache { .. } | OpenError::Empty { .. } => {
            "the directory of a cache; for a new one, one that is empty or not there yet".to_owned()
        }
        OpenError::Version { path, .. } => {
            format!("another directory; or rm -r {}: it holds copies only", path.display())
        }
        OpenError::OtherOrigin { path, .. } => {
            format!("rm -r {}: it was copied there, and holds copies only", path.display())
        }
        OpenError::Identity { path, .. } => format!(
            "use it, which writes that anew; or rm -r {}: it holds copies only",
            path.display()
        ),
        OpenError::Busy { .. } => {
            "another directory for --cache, or end the other mount or proxy of this export"
                .to_owned()
        }
        OpenError::Threads(_) => "raise the limit of processes (ulimit -u)".to_owned(),
    };
    Failure::environment(format!("cache: {error}"), advice)
}
