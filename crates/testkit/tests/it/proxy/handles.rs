//! Handles: as long as the origin's are, over restarts, and not to be made up.

use bytes::Bytes;
use client::session::Session;
use client::url::Version;
use std::sync::Arc;
use testkit::Site;
use testkit::outage::Outage;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow};

use super::{proxied, proxy_on, reading, remote, session, world};

async fn made(session: &Session, name: &[u8]) -> FileHandle {
    let how = CreateHow::Guarded(Sattr3::of_mode(0o600));
    let file = session.create(session.root(), name, how).await.unwrap().obj.unwrap();
    let data = Bytes::copy_from_slice(name);
    session.write(file, 0, data, StableHow::FileSync).await.unwrap();
    file
}

async fn check(session: &Session, file: FileHandle, name: &[u8]) {
    assert_eq!(session.read(file, 0, 100).await.unwrap().data, name);
}

/// Each proxy adds 14 bytes: behind three of them handles do not fit any more.
#[test]
fn proxies_of_proxies_have_handles_for_clients_of_both_versions() {
    world(async |clock, origin| {
        let first = proxied(&clock, &origin).await;
        let second = proxied(&clock, &first).await;
        let third = proxied(&clock, &second).await;
        let session3 = third.session(third.rpc()).await.unwrap();
        let file = made(&session3, b"file").await;
        assert!(file.as_bytes().len() <= 22, "a number: {}", file.as_bytes().len());
        assert!(reading(&third, "nfskit_proxy_handles") >= 2.0);
        assert_eq!(reading(&second, "nfskit_proxy_handles"), 0.0);
        check(&session3, file, b"file").await;
        for site in [&first, &second, &third] {
            let old = session(site, site.rpc(), Version::Two).await;
            let found = old.lookup(old.root(), b"file").await.unwrap().object;
            check(&old, found, b"file").await;
            let new = made(&old, format!("{:p}", Arc::as_ptr(site)).as_bytes()).await;
            assert_eq!(old.getattr(new).await.unwrap().size, new_len(site));
        }
    });
}

fn new_len<S>(site: &Arc<Site<S>>) -> u64 {
    format!("{:p}", Arc::as_ptr(site)).len() as u64
}

#[test]
fn handles_are_good_after_a_restart_of_the_proxy_whether_they_fit_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let (state, empty) = (dir.path().to_owned(), other.path().to_owned());
    world(async move |clock, origin| {
        let long = proxied(&clock, &proxied(&clock, &origin).await).await;
        let outage = Outage::default();
        let life = proxy_on(&clock, remote(&clock, &origin, &outage, Some(&state)).await);
        let short_session = life.session(life.rpc()).await.unwrap();
        let short = made(&short_session, b"short").await;
        let root = short_session.root();
        drop((life, short_session));
        let next = proxy_on(&clock, remote(&clock, &origin, &outage, Some(&state)).await);
        let session = next.session(next.rpc()).await.unwrap();
        assert_eq!(session.root(), root);
        check(&session, short, b"short").await;
        drop((next, session));
        // The same behind handles that need the table.
        let life = proxy_on(&clock, remote(&clock, &long, &outage, Some(&state)).await);
        let session = life.session(life.rpc()).await.unwrap();
        let file = made(&session, b"long").await;
        drop((life, session));
        let next = proxy_on(&clock, remote(&clock, &long, &outage, Some(&state)).await);
        let session = next.session(next.rpc()).await.unwrap();
        check(&session, file, b"long").await;
        drop((next, session));
        // And where the state is lost, they are stale.
        let lost = proxy_on(&clock, remote(&clock, &long, &outage, Some(&empty)).await);
        let session = lost.session(lost.rpc()).await.unwrap();
        for file in [short, file] {
            let refused = session.getattr(file).await.unwrap_err();
            assert_eq!(refused.status(), Some(NfsStat3::Stale));
        }
    });
}

#[test]
fn a_handle_of_the_origin_that_the_proxy_never_gave_is_refused() {
    world(async |clock, origin| {
        let direct = origin.session(origin.rpc()).await.unwrap();
        let file = made(&direct, b"file").await;
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let ours = session.lookup(session.root(), b"file").await.unwrap().object;
        // The origin's own, as it is and in the place of the one in ours.
        let mut forged = ours.as_bytes().to_vec();
        let at = forged.len() - file.as_bytes().len();
        assert_eq!(&forged[at..], file.as_bytes(), "it is in there");
        forged[at..].copy_from_slice(direct.root().as_bytes());
        for wrong in [file, FileHandle::new(&forged).unwrap()] {
            let refused = session.getattr(wrong).await.unwrap_err();
            assert!(
                matches!(refused.status(), Some(NfsStat3::Stale | NfsStat3::BadHandle)),
                "{refused}"
            );
        }
    });
}

#[test]
fn a_file_that_the_origin_has_no_more_is_stale() {
    world(async |clock, origin| {
        let proxy = proxied(&clock, &origin).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let file = made(&session, b"file").await;
        session.remove(session.root(), b"file").await.unwrap();
        let gone = session.getattr(file).await.unwrap_err();
        assert_eq!(gone.status(), Some(NfsStat3::Stale));
    });
}
