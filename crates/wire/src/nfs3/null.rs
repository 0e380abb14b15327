//! NULL: does nothing, to see whether the server answers (RFC 1813 section 3.3.0).

use crate::xdr::Void;

pub type Args = Void;

/// NULL cannot fail.
pub type Reply = Void;
