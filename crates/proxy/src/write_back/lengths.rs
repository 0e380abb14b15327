//! How long a file may be at the origin. What is longer goes there while its client waits, and is
//! refused: in the log it would be a change that nothing can be done with.

use server::store::Store;
use server::types::{Caller, Handle, Status};

use super::Inner;

/// What every origin takes, also of version 2.
const EVERYBODYS_MAX: u64 = i32::MAX as u64;

/// File systems that are remembered; one more begins anew.
const FILE_SYSTEMS_MAX: usize = 64;

impl<S: Store> Inner<S> {
    /// Whether a file may be so long. The origin is called once for each file system.
    pub(super) async fn takes_length(
        &self,
        caller: &Caller,
        id: &Handle,
        length: u64,
    ) -> Result<bool, Status> {
        if length <= EVERYBODYS_MAX {
            return Ok(true);
        }
        let fsid = self.state.lock().nodes.find(id).map(|node| node.attr.fsid);
        let known = fsid.and_then(|fsid| self.lengths.lock().get(&fsid).copied());
        if let Some(longest) = known {
            return Ok(length <= longest);
        }
        let origin = self.made_origin(id).await?;
        let longest = self.store.properties(caller, &origin).await.result?.file_size_max;
        let mut lengths = self.lengths.lock();
        if lengths.len() >= FILE_SYSTEMS_MAX {
            lengths.clear();
        }
        lengths.extend(fsid.map(|fsid| (fsid, longest)));
        Ok(length <= longest)
    }
}
