//! All that a server exports: which export a handle or a path means.

use std::net::IpAddr;
use std::sync::Arc;

use wire::nfs3::FileHandle;

use crate::export::{Export, Rule};
use crate::handle;
use crate::peer::Peer;
use crate::store::Store;
use crate::types::{Handle, Status};

/// An export and the store behind it.
#[derive(Debug)]
pub struct Exported<S> {
    pub export: Export,
    pub store: Arc<S>,
}

impl<S> Clone for Exported<S> {
    fn clone(&self) -> Self {
        Self { export: self.export.clone(), store: Arc::clone(&self.store) }
    }
}

/// One export or more, with different ids and names.
#[derive(Debug)]
pub struct Exports<S>(Vec<Exported<S>>);

/// Why exports cannot be served together.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ExportsError {
    #[error("there is nothing to export")]
    None,
    #[error("two exports are called {0}")]
    Name(String),
    #[error("the exports {0} and {1} have the same id")]
    Id(String, String),
}

impl<S> Exports<S> {
    /// # Errors
    /// There is none, or two have a name or an id in common.
    pub fn new(exports: Vec<Exported<S>>) -> Result<Self, ExportsError> {
        if exports.is_empty() {
            return Err(ExportsError::None);
        }
        for (at, Exported { export: one, .. }) in exports.iter().enumerate() {
            for Exported { export: other, .. } in &exports[..at] {
                if components(other.name.as_bytes()).eq(components(one.name.as_bytes())) {
                    return Err(ExportsError::Name(one.name.clone()));
                }
                if other.id == one.id {
                    return Err(ExportsError::Id(other.name.clone(), one.name.clone()));
                }
            }
        }
        Ok(Self(exports))
    }

    /// A single one.
    pub fn one(export: Export, store: S) -> Self {
        Self(vec![Exported { export, store: Arc::new(store) }])
    }

    pub fn first(&self) -> &Exported<S> {
        self.0.first().expect("there is one at least, as `new` has seen")
    }

    pub fn iter(&self) -> impl Iterator<Item = &Exported<S>> {
        self.0.iter()
    }

    pub(crate) fn of_id(&self, id: u32) -> Option<&Exported<S>> {
        self.0.iter().find(|exported| exported.export.id == id)
    }

    /// Whether any export names this client.
    pub(crate) fn name(&self, client: IpAddr) -> bool {
        self.0.iter().any(|exported| exported.export.rule_for(client).is_some())
    }

    /// What a client may do in the export with this id.
    ///
    /// # Errors
    /// `Stale` when there is none, and those of [`Place::of`].
    pub(crate) fn place(&self, id: u32, peer: &Peer) -> Result<Place<'_, S>, Status> {
        Place::of(self.of_id(id).ok_or(Status::Stale)?, peer)
    }

    /// The export whose name is the longest beginning of `path`, and what follows it there.
    pub(crate) fn of_path<'p>(&self, path: &'p [u8]) -> Option<(&Exported<S>, &'p [u8])> {
        let depth = |exported: &Exported<S>| components(exported.export.name.as_bytes()).count();
        let named = self.0.iter().filter_map(|exported| {
            below(&exported.export.name, path).map(|below| (exported, below))
        });
        named.max_by_key(|(exported, _)| depth(exported))
    }
}

impl<S: Store> Exported<S> {
    /// The root as MNT gives it.
    pub fn root(&self) -> FileHandle {
        handle::wrap(self.export.id, &self.store.root())
    }
}

/// What a call may do where its first handle, or path, is.
#[derive(Debug)]
pub(crate) struct Place<'e, S> {
    pub(crate) exported: &'e Exported<S>,
    pub(crate) rule: &'e Rule,
}

impl<'e, S> Place<'e, S> {
    /// # Errors
    /// `Access` when no rule names the client; `NotOwner`, as the Linux server has it, when the
    /// rule wants a privileged caller and this is none.
    pub(crate) fn of(exported: &'e Exported<S>, peer: &Peer) -> Result<Self, Status> {
        let rule = exported.export.rule_for(peer.address.ip()).ok_or(Status::Access)?;
        match rule.takes(peer) {
            true => Ok(Self { exported, rule }),
            false => Err(Status::NotOwner),
        }
    }
}

/// The path's components, as far as they lead anywhere.
pub(crate) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// What `path` has below the export's name; none when it lies elsewhere.
fn below<'p>(name: &str, path: &'p [u8]) -> Option<&'p [u8]> {
    components(name.as_bytes()).try_fold(path, |rest, expected| {
        let start = rest.iter().position(|&byte| byte != b'/')?;
        let rest = &rest[start..];
        let end = rest.iter().position(|&byte| byte == b'/');
        let (first, rest) = rest.split_at(end.unwrap_or(rest.len()));
        (first == expected).then_some(rest)
    })
}

/// The store's handle of a second file handle in a call whose first is in `export`.
///
/// # Errors
/// `CrossDevice` when it is of another export that there is; else those of a single handle.
pub(crate) fn second_handle<S>(
    exports: &Exports<S>,
    export: u32,
    file_handle: &FileHandle,
) -> Result<Handle, Status> {
    in_export(exports, export, handle::unwrap(file_handle)?)
}

/// The handle, if it is in `export`; [`second_handle`] for handles of either version.
///
/// # Errors
/// `CrossDevice` when it is of another export that there is, `Stale` when of one that is not.
pub(crate) fn in_export<S>(
    exports: &Exports<S>,
    export: u32,
    (id, handle): (u32, Handle),
) -> Result<Handle, Status> {
    match id == export {
        true => Ok(handle),
        false if exports.of_id(id).is_some() => Err(Status::CrossDevice),
        false => Err(Status::Stale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports(names: &[&str]) -> Result<Exports<()>, ExportsError> {
        let exported = |(id, &name): (usize, &&str)| Exported {
            export: Export {
                name: name.to_owned(),
                id: u32::try_from(id).unwrap(),
                ..Export::default()
            },
            store: Arc::new(()),
        };
        Exports::new(names.iter().enumerate().map(exported).collect())
    }

    #[test]
    fn paths_are_compared_by_component() {
        let below = |name, path: &'static str| below(name, path.as_bytes());
        assert_eq!(below("/", "/a/b"), Some(&b"/a/b"[..]));
        assert_eq!(below("/", ""), Some(&b""[..]));
        assert_eq!(below("/export", "/export"), Some(&b""[..]));
        assert_eq!(below("/export/", "//export//a"), Some(&b"//a"[..]));
        assert_eq!(below("/srv/nfs", "/srv/nfs/a/"), Some(&b"/a/"[..]));
        assert_eq!(below("/export", "/exports"), None);
        assert_eq!(below("/export", "/"), None);
        assert_eq!(below("/srv/nfs", "/srv"), None);
    }

    #[test]
    fn the_longest_name_wins() {
        let exports = exports(&["/srv", "/srv/data", "/"]).unwrap();
        let of = |path: &str| {
            let (exported, below) = exports.of_path(path.as_bytes()).unwrap();
            (exported.export.name.clone(), String::from_utf8(below.to_vec()).unwrap())
        };
        assert_eq!(of("/srv/data/x"), ("/srv/data".to_owned(), "/x".to_owned()));
        assert_eq!(of("/srv/databases"), ("/srv".to_owned(), "/databases".to_owned()));
        assert_eq!(of("/home"), ("/".to_owned(), "/home".to_owned()));
    }

    #[test]
    fn exports_that_cannot_be_distinguished_are_refused() {
        let refused = exports(&["/srv", "/srv/"]).unwrap_err();
        assert_eq!(refused, ExportsError::Name("/srv/".to_owned()));
        let export = |name: &str| Exported {
            export: Export { name: name.to_owned(), ..Export::default() },
            store: Arc::new(()),
        };
        let refused = Exports::new(vec![export("/a"), export("/b")]).unwrap_err();
        assert_eq!(refused, ExportsError::Id("/a".to_owned(), "/b".to_owned()));
    }

    #[test]
    fn components_are_what_leads_somewhere() {
        let found: Vec<_> = components(b"/./a//b/.").collect();
        assert_eq!(found, [b"a", b"b"]);
    }
}
