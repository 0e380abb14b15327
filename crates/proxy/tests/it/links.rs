//! How many names a file has, and directories a directory, when a proxy was killed whose log had
//! no note of what the origin had done already.

use perf::units::Nanos;
use server::store::Store;
use server::types::{CreateHow, Handle, SetAttr};

use crate::stage::{Life, play, root};

const MODE: SetAttr = SetAttr {
    mode: Some(0o755),
    uid: None,
    gid: None,
    size: None,
    accessed: server::types::SetTime::Keep,
    modified: server::types::SetTime::Keep,
};

/// A file with these names.
async fn named(life: &Life, names: [&str; 3]) -> Handle {
    let (proxy, top) = (&life.proxy, life.proxy.root());
    let how = CreateHow::Guarded(MODE);
    let file = proxy.create(&root(), &top, names[0].as_bytes(), how).await.result.unwrap().handle;
    for name in &names[1..] {
        proxy.link(&root(), &file, &top, name.as_bytes()).await.result.unwrap();
    }
    file
}

async fn directory(life: &Life, dir: &Handle, name: &str) -> Handle {
    life.proxy.make_dir(&root(), dir, name.as_bytes(), MODE).await.result.unwrap().handle
}

async fn links(life: &Life, file: &Handle) -> u32 {
    life.proxy.attr(&root(), file).await.unwrap().links
}

#[test]
fn links_are_counted_once_whether_the_origin_had_done_a_change_before_a_kill_or_not() {
    for millis in (0..80).step_by(8) {
        play(2, None, async move |stage| {
            let life = stage.begin().await;
            let top = life.proxy.root();
            let removed = named(&life, ["a", "b", "c"]).await;
            let replaced = named(&life, ["d", "e", "f"]).await;
            let [fuller, emptier] =
                [directory(&life, &top, "fuller").await, directory(&life, &top, "emptier").await];
            directory(&life, &emptier, "gone").await;
            assert_eq!(life.proxy.drained(None).await, 0);
            named(&life, ["new", "g", "h"]).await;

            life.proxy.remove(&root(), &top, b"c").await.result.unwrap();
            life.proxy.rename(&root(), &top, b"new", &top, b"f").await.result.unwrap();
            directory(&life, &fuller, "more").await;
            life.proxy.remove_dir(&root(), &emptier, b"gone").await.result.unwrap();
            stage.clock.sleep(Nanos::from_millis(millis)).await;
            life.kill();
            let life = stage.begin().await;
            for _ in 0..2 {
                let mut all = Vec::new();
                for file in [&removed, &replaced, &fuller, &emptier] {
                    all.push(links(&life, file).await);
                }
                assert_eq!(all, [2, 2, 3, 2], "killed after {millis} ms");
                assert_eq!(life.proxy.drained(None).await, 0);
            }
            assert_eq!(*stage.events.lock(), []);
        });
    }
}
