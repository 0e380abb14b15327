//! Bodies of fuzz targets, which ordinary tests run too.

use bytes::Bytes;

use crate::write_back::record::{Entry, Outcome};

/// Any bytes as a change on its way to the origin, and as what came of one: an answer or an error,
/// and what is taken for whole is the same when it is written again.
pub fn write_back(input: &[u8]) {
    if let Ok(entry) = Entry::decode(&Bytes::copy_from_slice(input)) {
        assert_eq!(Entry::decode(&entry.encode()).as_ref(), Ok(&entry));
    }
    if let Ok(outcome) = Outcome::decode(input) {
        assert_eq!(outcome.encode(), input);
    }
}
