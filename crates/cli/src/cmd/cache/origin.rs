//! Which of the exports in a cache a path is of. A file's number alone does not tell: it is one of
//! its file system's, and every file system begins to count anew.

use std::path::Path;

use cache::survey::Found;
use client::url::Target;
use fuse::mounts::{self, Entry};
use fuse::question::{has_cache, is_cache};
use harness::exit::Failure;
use harness::values;

/// Those of `all` that a path may be of: of one name there can be several, which had other roots.
///
/// # Errors
/// It is on no NFS mount, or on one of an export that the cache has nothing of.
pub(super) fn of_path<'f>(all: &'f [Found], path: &Path) -> Result<Vec<&'f Found>, Failure> {
    let refused = |what: String| {
        let what = format!("{}: {what}", path.display());
        Failure::environment(what, "a file of a mount with this cache")
    };
    let mount = mounts::of(path).map_err(|cause| refused(cause.to_string()))?;
    let source = mount.as_ref().and_then(nfs_source);
    let source = source.ok_or_else(|| refused("it is on no NFS mount".to_owned()))?;
    let named: Vec<_> = all.iter().filter(|found| is_of(found, source.as_ref())).collect();
    match all {
        _ if !named.is_empty() => Ok(named),
        // What a proxy has is named after its origin.
        [only] if source.as_ref().is_none_or(is_here) => Ok(vec![only]),
        [] => Ok(Vec::new()),
        _ => Err(refused("the cache has nothing of the export that is mounted there".to_owned())),
    }
}

/// Whether reads through this path use what is found; none where the mount cannot tell.
pub(super) fn is_used(found: &Found, path: &Path) -> Option<bool> {
    is_cache(path, &found.id()?.to_string())
}

/// Why reads through this path are not served from a cache that has its export, or may not be.
pub(super) fn doubt(all: &[Found], path: &Path) -> Option<String> {
    let mount = mounts::of(path).ok()??;
    let source = nfs_source(&mount)?;
    let own_cache = if mount.kind == "fuse.nfskit" { has_cache(path) } else { Some(false) };
    let mut named = all.iter().filter(|found| is_of(found, source.as_ref())).peekable();
    if named.peek().is_some() {
        let mut is_another = || named.all(|found| is_used(found, path) == Some(false));
        let why = match own_cache {
            Some(false) => "it has no cache",
            _ if is_another() => "it has another cache",
            _ => return None,
        };
        return Some(format!("not used by reads through this mount: {why}"));
    }
    let server = server(&source?);
    let behind = if own_cache == Some(true) { ", behind the mount's own cache" } else { "" };
    Some(format!(
        "used by reads through this mount only if {server} is the proxy that has this cache{behind}"
    ))
}

fn server(source: &Target) -> String {
    let port = source.nfs_port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", source.host)
}

/// The source of a mount, if that is NFS; `None` inside where it is not understood.
fn nfs_source(mount: &Entry) -> Option<Option<Target>> {
    let is_nfs = matches!(&*mount.kind, "fuse.nfskit" | "nfs" | "nfs4");
    is_nfs.then(|| values::target(&mount.source).ok())
}

/// Options may have given a port that the source does not have.
fn is_of(found: &Found, source: Option<&Target>) -> bool {
    let own = found.identity.as_ref().ok().and_then(|own| values::target(&own.origin.name).ok());
    own.zip(source).is_some_and(|(own, source)| {
        let is_same_port = source.nfs_port.is_none() || source.nfs_port == own.nfs_port;
        own.host == source.host && own.path == source.path && is_same_port
    })
}

/// Whether the server is on this host, as far as its name tells.
fn is_here(source: &Target) -> bool {
    let ip = source.host.parse::<std::net::IpAddr>();
    source.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_nfs_where_its_type_says_so() {
        let source = |kind: &str, source: &str| {
            let (kind, source) = (kind.to_owned(), source.to_owned());
            let mount = Entry {
                id: "36".to_owned(),
                device: "0:52".to_owned(),
                at: "/mnt".into(),
                kind,
                source,
            };
            let source = nfs_source(&mount)?.unwrap();
            Some((source.host.clone(), source.path_text(), source.nfs_port))
        };
        assert_eq!(source("ext4", "/dev/sda1"), None);
        let ours = source("fuse.nfskit", "nfs://h:3049/a");
        assert_eq!(ours, Some(("h".to_owned(), "/a".to_owned(), Some(3049))));
        assert_eq!(source("nfs4", "h:/a b"), Some(("h".to_owned(), "/a b".to_owned(), None)));
    }
}
