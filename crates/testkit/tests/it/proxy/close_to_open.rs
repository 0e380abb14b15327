//! Close-to-open between two proxies and a direct client: what one has closed, another sees that
//! opens afterwards.

use testkit::seeds::seeds;

use crate::close_to_open::{Way, seeds_by};

#[test]
fn whoever_opens_sees_what_was_closed_before_by_whichever_way() {
    seeds_by(seeds(500), Way::Proxies);
}

#[test]
fn whoever_opens_sees_what_was_closed_before_where_proxies_keep_blocks() {
    seeds_by(seeds(500), Way::Caches);
}
