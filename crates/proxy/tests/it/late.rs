//! The origin executes a call late: its proxy has been killed, and the next one has begun.

use std::sync::Arc;

use perf::units::Nanos;
use server::store::Store;

use crate::conflicts::{find, make, read, write};
use crate::stage::play;

#[test]
fn a_write_that_the_origin_executes_late_is_done_before_what_the_next_proxy_sends() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let top = life.proxy.root();
        make(&life.proxy, &top, "first").await;
        let file = make(&life.proxy, &top, "file").await;
        life.proxy.drained(None).await;
        write(&life.proxy, &file, 0, "older").await;
        life.kill();
        // The call was sent, and the origin has not begun with it.
        let (clock, files) = (stage.clock.clone(), Arc::clone(&stage.origin.files));
        stage.clock.spawn(async move {
            clock.sleep(Nanos::from_secs(1)).await;
            let there = find(&*files, &files.root(), "file").await;
            write(&*files, &there, 0, "older").await;
        });
        let life = stage.begin().await;
        write(&life.proxy, &file, 0, "newer").await;
        life.proxy.drained(None).await;
        stage.clock.sleep(Nanos::from_secs(5)).await;
        let files = &*stage.origin.files;
        assert_eq!(read(files, &files.root(), "file").await, "newer");
        assert_eq!(*stage.events.lock(), []);
    });
}
