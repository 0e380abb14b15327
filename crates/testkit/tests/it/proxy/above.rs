//! `..` does not lead out of what a proxy exports, also where the origin has more.

use wire::nfs3::{NfsStat3, Sattr3};

use super::{proxy_on, remote_over, world};

#[test]
fn a_part_of_an_export_is_left_neither_by_its_root_nor_by_a_directory_that_was_moved_out() {
    world(async |clock, origin| {
        let direct = origin.session(origin.rpc()).await.unwrap();
        let mkdir = async |dir, name: &[u8]| {
            direct.mkdir(dir, name, Sattr3::of_mode(0o755)).await.unwrap().obj.unwrap()
        };
        let secret = mkdir(direct.root(), b"secret").await;
        let part = mkdir(direct.root(), b"part").await;
        let deep = mkdir(mkdir(part, b"one").await, b"two").await;
        mkdir(deep, b"three").await;
        let part_of = direct.with_root(part);
        let proxy = proxy_on(&clock, remote_over(&clock, part_of, None).await);
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let root = session.root();
        let up = session.lookup(root, b"..").await.unwrap();
        assert_eq!(up.object, root, "the root is above itself");
        let find = async |dir, name: &[u8]| session.lookup(dir, name).await.unwrap().object;
        let one = find(root, b"one").await;
        let two = find(one, b"two").await;
        let three = find(two, b"three").await;
        assert_eq!(find(three, b"..").await, two);
        assert_eq!(find(two, b"..").await, one);
        assert_eq!(find(one, b"..").await, root);
        direct.rename((deep, b"three"), (secret, b"three")).await.unwrap();
        let refused = session.lookup(three, b"..").await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::Acces));
        // Nor by a listing.
        for dir in [root, one, three] {
            let page = session.readdirplus(dir, 0, [0; 8], 4096, 4096).await.unwrap();
            let above = page.entries.iter().find(|entry| entry.name == b"..");
            assert!(above.is_none_or(|above| above.handle.is_none()));
        }
        let own = session.getattr(root).await.unwrap().fileid;
        let page = session.readdir(root, 0, [0; 8], 4096).await.unwrap();
        let above = page.entries.iter().find(|entry| entry.name == b"..").unwrap();
        assert_eq!(above.fileid, own);
    });
}
