//! NULL, ROOT and WRITECACHE (RFC 1094 sections 2.2.1, 2.2.4, 2.2.8): nothing happens.

use wire::nfs2::null::Args;

/// The reply is void.
pub(super) fn run((): Args) {}
