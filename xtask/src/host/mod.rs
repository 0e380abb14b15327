//! Programs on this machine that a command of xtask needs: servers, ours and others', the
//! packages they come from, and the namespaces and folders that they run in.

pub(crate) mod build;
pub(crate) mod child;
pub(crate) mod content;
pub(crate) mod family;
pub(crate) mod ganesha;
pub(crate) mod isolate;
pub(crate) mod metrics;
pub(crate) mod nfskit;
pub(crate) mod process;
pub(crate) mod report;
pub(crate) mod scratch;
pub(crate) mod tools;

use std::fmt::Display;
use std::path::Path;

/// For `map_err`: an error in words, behind the path that it is about.
pub(crate) fn about<E: Display>(path: &Path) -> impl Fn(E) -> String + Copy {
    move |error| format!("{}: {error}", path.display())
}
