//! What lies above a directory that was made here.

use perf::units::Nanos;
use server::store::Store;
use server::types::{SetAttr, Status};

use crate::stage::{play, root};

#[test]
fn what_lies_above_is_found_before_the_origin_has_the_directory_and_afterwards() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, me) = (&life.proxy, root());
        let set = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        let mut dirs = vec![proxy.root()];
        // The first is made by the origin while its caller waits.
        for name in [&b"first"[..], b"second", b"third"] {
            let made = proxy.make_dir(&me, dirs.last().unwrap(), name, set).await;
            dirs.push(made.result.unwrap().handle);
        }
        assert!(proxy.pending() > 0);
        for minutes in 0..3 {
            for pair in dirs.windows(2) {
                let above = proxy.lookup(&me, &pair[1], b"..").await.result.unwrap();
                assert_eq!(above.handle, pair[0], "after {minutes} minutes");
            }
            let nothing = proxy.lookup(&me, &dirs[2], b"nothing").await.result;
            assert_eq!(nothing.unwrap_err(), Status::NoEntry);
            stage.clock.sleep(Nanos::from_secs(60)).await;
            assert_eq!(proxy.pending(), 0);
        }
    });
}
