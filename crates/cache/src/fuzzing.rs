//! Bodies of fuzz targets, which ordinary tests run too.

use crate::catalog::Catalog;
use crate::header::{BLOCKS, HEADER_BYTES, Header};
use crate::medium::folder::parse;
use crate::missed;
use crate::pins;
use crate::place::Identity;

/// Any bytes as a catalog: an answer or an error, and what is taken for whole is the same when it
/// is written again.
pub fn catalog(input: &[u8]) {
    if let Ok(catalog) = Catalog::decode(input) {
        assert_eq!(catalog.encode().as_deref(), Some(input));
        assert_eq!(Catalog::len_of(input), Ok(input.len()));
    }
}

/// Any bytes as a header, an identity, a file's name, what was missed and what is pinned: an answer
/// or an error, and what is taken for whole is the same when it is written again.
pub fn cache(input: &[u8]) {
    if let Ok(header) = Header::decode(input) {
        assert_eq!(header.encode()[..], input[..HEADER_BYTES]);
        assert!(header.blocks().all(|index| index < BLOCKS && header.len(index) > 0));
        assert!(header.data_bytes() <= header.disk_bytes());
    }
    if let Some(Ok(identity)) = std::str::from_utf8(input).ok().map(Identity::parse) {
        assert!(!identity.origin.folder().contains('/'));
    }
    let _ = parse(input);
    if let Ok(text) = std::str::from_utf8(input) {
        assert!(missed::parse(text).len() <= missed::FILES_MAX);
        pins::parse(text);
    }
}
