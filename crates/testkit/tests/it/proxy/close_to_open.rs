//! Close-to-open between two proxies and a direct client: what one has closed, another sees that
//! opens afterwards.

use cache::Mistake;
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

#[test]
fn whoever_opens_sees_what_was_closed_before_though_proxies_are_killed_that_keep_blocks() {
    let hits = seeds_by(seeds(100), Way::Killed(None));
    assert!(hits > 0, "nothing was read of what they had cached");
}

#[test]
fn blocks_that_are_not_checked_after_a_loss_of_power_are_found() {
    let way = Way::Killed(Some(Mistake::UncheckedBlocks));
    assert!(
        std::panic::catch_unwind(|| seeds_by(150..1_000, way)).is_err(),
        "the test sees nothing"
    );
}
