//! Several users of a proxy.

use bytes::Bytes;
use server::store::Store;
use server::types::{Caller, SetAttr, Stability};

use crate::conflicts::{find, make, read};
use crate::stage::{play, root};

#[test]
fn the_set_uid_bit_is_gone_when_somebody_else_has_written() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let file = make(proxy, &top, "file").await;
        let set = SetAttr { mode: Some(0o4777), ..SetAttr::default() };
        proxy.set_attr(&root(), &file, set, None).await.result.unwrap();
        assert_eq!(proxy.attr(&root(), &file).await.unwrap().mode, 0o4777);
        let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
        let data = Bytes::from_static(b"other");
        let written = proxy.write(&user, &file, 0, data, Stability::Unstable).await;
        assert_eq!(written.result.unwrap().count, 5);
        assert_eq!(proxy.attr(&root(), &file).await.unwrap().mode, 0o777);
        proxy.drained(None).await;
        let files = &*stage.origin.files;
        assert_eq!(read(files, &files.root(), "file").await, "other");
        let there = find(files, &files.root(), "file").await;
        assert_eq!(files.attr(&root(), &there).await.unwrap().mode, 0o777);
    });
}
