//! Readers that pause, beside others who need what is held ahead of them.

use client::files::Options;
use perf::units::Nanos;
use wire::nfs3::Sattr3;

use crate::files::{READ, WRITE, me, mounted, world};

const MIB: u64 = 1 << 20;

#[test]
fn a_reader_that_pauses_leaves_its_read_ahead_to_the_others() {
    world(async |clock, site| {
        let options = Options { read_ahead_bytes_max: 4 * MIB, ..Options::default() };
        let files = mounted(&site, &clock, options).await;
        let (me, root) = (me(), files.root());
        let made = files.create(&me, root, b"f", Sattr3::default(), true).await.unwrap();
        let written = files.open(&me, made.handle, WRITE).await.unwrap();
        for mib in 0..16 {
            written.write(mib * MIB, &vec![7; 1 << 20]).await.unwrap();
        }
        written.flush().await.unwrap();
        written.close().await;
        let idle = files.open(&me, made.handle, READ).await.unwrap();
        for mib in 0..4 {
            idle.read(mib * MIB, 1 << 20).await.unwrap();
        }
        clock.sleep(Nanos::from_secs(2)).await;
        assert!(files.read_ahead_bytes() > 2 * MIB, "the room is taken");
        let busy = files.open(&me, made.handle, READ).await.unwrap();
        let mut waits = 0;
        for mib in 0..12 {
            let begun = clock.now();
            assert_eq!(busy.read(mib * MIB, 1 << 20).await.unwrap().len(), 1 << 20);
            waits += u32::from(clock.now() > begun);
            clock.sleep(Nanos::from_millis(100)).await;
        }
        assert!(waits <= 3, "{waits} of 12 reads waited");
        assert_eq!(idle.read(4 * MIB, 1 << 20).await.unwrap().len(), 1 << 20, "and it goes on");
    });
}
