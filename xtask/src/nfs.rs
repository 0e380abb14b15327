//! Replies of NFS version 3, whatever their procedure.

use wire::nfs3::{Failure, NfsStat3};

/// A reply of any procedure: its results, or its status.
pub(crate) trait Results<T> {
    fn results(self) -> Result<T, NfsStat3>;
}

impl<T, D> Results<T> for Result<T, Failure<D>> {
    fn results(self) -> Result<T, NfsStat3> {
        self.map_err(|failure| failure.status)
    }
}
