//! The connection to the origin breaks, or the origin is away: what is in doubt is done once, and
//! clients wait, or get JUKEBOX.

use std::sync::Arc;

use client::session::Session;
use net::call::{self, Recovery};
use net::clock::Clock;
use perf::units::Nanos;
use testkit::outage::Outage;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{NfsStat3, NfsTime, Sattr3};

use super::{Origin, Proxy, proxy_on, reading, remote, remote_over, world};

async fn through(clock: &Clock, origin: &Origin, outage: &Outage) -> (Proxy, Session) {
    let proxy = proxy_on(clock, remote(clock, origin, outage, None).await);
    let session = proxy.session(proxy.rpc()).await.unwrap();
    (proxy, session)
}

/// The reply to each is lost once, after the origin has done it.
#[test]
fn what_was_done_and_not_answered_is_done_once() {
    world(async |clock, origin| {
        let outage = Outage::default();
        let (_proxy, session) = through(&clock, &origin, &outage).await;
        let root = session.root();
        let lose = || outage.cut_after_replies(0);
        lose();
        let how = CreateHow::Guarded(Sattr3::of_mode(0o600));
        let file = session.create(root, b"file", how).await.unwrap().obj.unwrap();
        lose();
        session.mkdir(root, b"dir", Sattr3::of_mode(0o700)).await.unwrap();
        lose();
        session.symlink(root, b"link", Sattr3::default(), b"to").await.unwrap();
        lose();
        session.link(file, root, b"other").await.unwrap();
        lose();
        session.rename((root, b"file"), (root, b"new")).await.unwrap();
        lose();
        session.remove(root, b"other").await.unwrap();
        lose();
        session.rmdir(root, b"dir").await.unwrap();
        lose();
        let ctime = session.getattr(file).await.unwrap().ctime;
        lose();
        session.setattr(file, Sattr3::of_mode(0o400), Some(ctime)).await.unwrap();
        let gone = session.setattr(file, Sattr3::of_mode(0o400), Some(NfsTime::default())).await;
        assert_eq!(gone.unwrap_err().status(), Some(NfsStat3::NotSync));
        assert_eq!(outage.made(), 10, "a connection more for each");
    });
}

#[test]
fn behind_a_hard_mount_a_client_waits_for_the_origin() {
    world(async |clock, origin| {
        let outage = Outage::default();
        let (_proxy, session) = through(&clock, &origin, &outage).await;
        outage.begin();
        let (back, own) = (outage.clone(), clock.clone());
        clock.spawn(async move {
            own.sleep(Nanos::from_secs(45)).await;
            back.end();
        });
        let made = session.mkdir(session.root(), b"dir", Sattr3::of_mode(0o700)).await;
        assert!(clock.now().as_nanos() >= Nanos::from_secs(45).as_nanos());
        let dir = made.unwrap().obj.unwrap();
        session.getattr(dir).await.unwrap();
    });
}

#[test]
fn behind_a_soft_mount_a_client_gets_jukebox_or_the_outcome_is_unknown() {
    world(async |clock, origin| {
        let outage = Outage::default();
        let options = call::Options {
            recovery: Recovery::Soft,
            timeo: Nanos::from_secs(1),
            retrans: 2,
            ..call::Options::stream()
        };
        let rpc = origin.persistent(&outage, options).await.unwrap();
        let over = origin.session(rpc).await.unwrap();
        let proxy = proxy_on(&clock, remote_over(&clock, over, None).await);
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let root = session.root();
        outage.begin();
        let begun = clock.now();
        let looked = session.getattr(root).await.unwrap_err();
        assert_eq!(looked.status(), Some(NfsStat3::Jukebox));
        assert!(clock.now().since(begun) < Nanos::from_secs(15));
        let removed = session.remove(root, b"file").await.unwrap_err();
        assert_eq!(removed.status(), Some(NfsStat3::Io), "it may have been removed");
        assert_eq!(reading(&proxy, "nfskit_proxy_away_total"), 2.0);
        outage.end();
        // As a client does that gets JUKEBOX.
        while let Err(error) = session.getattr(root).await {
            assert_eq!(error.status(), Some(NfsStat3::Jukebox));
            assert!(clock.now().since(begun) < Nanos::from_secs(120));
            clock.sleep(Nanos::from_secs(5)).await;
        }
    });
}

#[test]
fn many_clients_at_once_are_each_answered_while_connections_break() {
    world(async |clock, origin| {
        let outage = Outage::default();
        let (proxy, _) = through(&clock, &origin, &outage).await;
        let sessions = futures_util::future::join_all((0..20).map(|_| {
            let proxy = Arc::clone(&proxy);
            async move { proxy.session(proxy.rpc()).await.unwrap() }
        }));
        let calls = sessions.await.into_iter().enumerate().map(|(number, session)| async move {
            let name = format!("file-{number}");
            let how = CreateHow::Guarded(Sattr3::of_mode(0o600));
            let root = session.root();
            let file = session.create(root, name.as_bytes(), how).await.unwrap().obj.unwrap();
            for _ in 0..10 {
                session.getattr(file).await.unwrap();
            }
            session.remove(root, name.as_bytes()).await.unwrap();
            session.getattr(file).await.unwrap_err().status()
        });
        // Connections break under them.
        let (breaks, own) = (outage.clone(), clock.clone());
        let cuts = async move {
            for calls in 0..10 {
                breaks.cut_after_replies(calls);
                own.sleep(Nanos::from_millis(1)).await;
            }
        };
        let (ended, ()) =
            futures_util::future::join(futures_util::future::join_all(calls), cuts).await;
        assert!(ended.into_iter().all(|status| status == Some(NfsStat3::Stale)));
    });
}
