//! Who calls: ids are passed on, and the origin decides.

use bytes::Bytes;
use client::session::{Credential, Session};
use server::types::Caller;
use server::{Rule, Squash};
use std::sync::Arc;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{NfsStat3, Sattr3, StableHow, access};

use super::{proxied, reading, root, user, world};

async fn write(session: &Session, name: &[u8], mode: u32, bytes: usize) -> wire::nfs3::FileHandle {
    let how = CreateHow::Unchecked(Sattr3::of_mode(mode));
    let file = session.create(session.root(), name, how).await.unwrap().obj.unwrap();
    let data = Bytes::from(vec![7; bytes]);
    session.write(file, 0, data, StableHow::FileSync).await.unwrap();
    file
}

#[test]
fn each_caller_acts_with_its_own_ids_and_the_origin_refuses() {
    world(async |clock, origin| {
        origin.believe_callers();
        let proxy = proxied(&clock, &origin).await;
        proxy.believe_callers();
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let group = Credential { gids: vec![5, 1000], ..user(2000) };
        let (owner, member, other) = (user(1000), group, user(3000));
        let file = write(&session.acting_as(&owner), b"mine", 0o640, 10).await;
        let made = session.getattr(file).await.unwrap();
        assert_eq!((made.uid, made.gid), (1000, 1000));
        let rights = async |who: &Credential| {
            session.acting_as(who).access(file, access::ALL).await.unwrap().access
        };
        assert_eq!(rights(&owner).await & (access::READ | access::MODIFY), 5);
        assert_eq!(rights(&member).await & (access::READ | access::MODIFY), 1, "by a group");
        assert_eq!(rights(&other).await & (access::READ | access::MODIFY), 0);
        let read = async |who: &Credential| session.acting_as(who).read(file, 0, 10).await;
        assert_eq!(read(&owner).await.unwrap().data.len(), 10);
        assert_eq!(read(&member).await.unwrap().data.len(), 10);
        assert_eq!(read(&other).await.unwrap_err().status(), Some(NfsStat3::Acces));
    });
}

#[test]
fn what_was_read_ahead_for_one_caller_is_not_for_another() {
    world(async |clock, origin| {
        origin.believe_callers();
        let proxy = proxied(&clock, &origin).await;
        proxy.believe_callers();
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let owner = session.acting_as(&user(1000));
        let file = write(&owner, b"mine", 0o600, 1 << 20).await;
        for part in 0..8 {
            owner.read(file, part << 14, 1 << 14).await.unwrap();
        }
        assert!(reading(&proxy, "nfskit_readahead_hits_total") > 0.0);
        let other = session.acting_as(&user(3000));
        for part in 0..32 {
            let refused = other.read(file, part << 14, 1 << 14).await.unwrap_err();
            assert_eq!(refused.status(), Some(NfsStat3::Acces));
        }
    });
}

#[test]
fn root_is_squashed_at_the_proxy_before_the_origin_sees_it() {
    world(async |clock, origin| {
        origin.believe_callers();
        let proxy = proxied(&clock, &origin).await;
        let nobody = Caller { uid: 65_534, gid: 65_534, gids: Vec::new() };
        let squash = Rule { squash: Squash::Root, anonymous: Arc::new(nobody), ..Rule::default() };
        proxy.rule(squash);
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let file = write(&session.acting_as(&root()), b"file", 0o600, 1).await;
        let made = session.getattr(file).await.unwrap();
        assert_eq!((made.uid, made.gid), (65_534, 65_534));
    });
}

#[test]
fn a_proxy_that_is_read_only_passes_no_change_on() {
    world(async |clock, origin| {
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let file = write(&session, b"file", 0o600, 5).await;
        proxy.become_read_only();
        let data = Bytes::from_static(b"other");
        let refused = session.write(file, 0, data, StableHow::FileSync).await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::RoFs));
        let removed = session.remove(session.root(), b"file").await.unwrap_err();
        assert_eq!(removed.status(), Some(NfsStat3::RoFs));
        assert_eq!(session.read(file, 0, 5).await.unwrap().data, [7; 5][..]);
    });
}
