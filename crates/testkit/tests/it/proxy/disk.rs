//! A cache under the proxy: what is cached is served to whom it may, and while the origin is away.

use bytes::Bytes;
use cache::medium::Memory;
use client::session::Session;
use net::clock::Clock;
use perf::units::Nanos;
use server::{Rule, Squash};
use testkit::outage::Outage;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow, access};

use super::{Origin, Proxy, away, cached, cached_of_version_2, reading, user, world, world_behind};

const BYTES: usize = 1 << 20;

/// A file that has been as it is for a while, and a session with the proxy.
async fn begin(
    clock: &Clock,
    origin: &Origin,
    memory: &Memory,
    outage: &Outage,
) -> (Proxy, Session) {
    let direct = origin.session(origin.rpc()).await.unwrap();
    let how = CreateHow::Unchecked(Sattr3::of_mode(0o644));
    let file = direct.create(direct.root(), b"file", how).await.unwrap().obj.unwrap();
    fill(&direct, file, 1).await;
    clock.sleep(Nanos::from_secs(10)).await;
    let proxy = cached(clock, origin, memory, outage).await;
    let session = proxy.session(proxy.rpc()).await.unwrap();
    (proxy, session)
}

async fn fill(session: &Session, file: FileHandle, with: u8) {
    let data = Bytes::from(vec![with; BYTES]);
    session.write(file, 0, data, StableHow::FileSync).await.unwrap();
}

/// Opens it as a client does, and reads all of it.
async fn read(session: &Session) -> Result<Vec<u8>, NfsStat3> {
    let status = |error: client::error::Error| error.status().unwrap();
    let file = session.lookup(session.root(), b"file").await.map_err(status)?.object;
    session.getattr(file).await.map_err(status)?;
    session.access(file, access::ALL).await.map_err(status)?;
    let mut got = Vec::new();
    while got.len() < BYTES {
        let part = session.read(file, got.len() as u64, 1 << 16).await.map_err(status)?;
        got.extend_from_slice(&part.data);
    }
    Ok(got)
}

fn reads(proxy: &Proxy) -> f64 {
    let readings = server::store::Store::readings(&*proxy.store());
    let is_read = |labels: &[(&str, String)]| labels.iter().any(|(_, value)| value == "READ");
    let reads = readings
        .iter()
        .filter(|one| one.name == "nfskit_origin_calls_total" && is_read(&one.labels));
    reads.map(|one| one.value).sum()
}

#[test]
fn what_was_read_once_costs_no_read_also_after_a_restart_and_a_change_is_seen() {
    world(async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        let direct = origin.session(origin.rpc()).await.unwrap();
        // The first time the state has just been learnt; the second it is settled.
        for _ in 0..2 {
            assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 1));
            clock.sleep(Nanos::from_secs(10)).await;
        }
        let before = reads(&proxy);
        assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 1));
        assert_eq!(reads(&proxy), before);
        drop((proxy, session));
        let proxy = cached(&clock, &origin, &memory, &outage).await;
        let session = proxy.session(proxy.rpc()).await.unwrap();
        assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 1));
        assert_eq!(reads(&proxy), 0.0, "it is there after a restart");
        let file = direct.lookup(direct.root(), b"file").await.unwrap().object;
        for with in 2..6 {
            fill(&direct, file, with).await;
            assert!(read(&session).await.unwrap().iter().all(|&byte| byte == with));
        }
        // Nor does a client that never asks see what is old for long.
        let ours = session.lookup(session.root(), b"file").await.unwrap().object;
        fill(&direct, file, 9).await;
        clock.sleep(Nanos::from_secs(4)).await;
        let part = session.read(ours, 0, 1 << 16).await.unwrap();
        assert!(part.data.iter().all(|&byte| byte == 9));
    });
}

#[test]
fn who_may_not_read_a_file_does_not_read_what_is_cached_of_it() {
    world(async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        let file = session.lookup(session.root(), b"file").await.unwrap().object;
        session.setattr(file, Sattr3::of_mode(0o600), None).await.unwrap();
        origin.believe_callers();
        proxy.believe_callers();
        clock.sleep(Nanos::from_secs(10)).await;
        for _ in 0..3 {
            read(&session).await.unwrap();
            clock.sleep(Nanos::from_secs(1)).await;
        }
        let other = session.acting_as(&user(1000));
        let refused = other.read(file, 0, 1 << 16).await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::Acces));
        assert!(read(&other).await.is_err());
    });
}

#[test]
fn while_the_origin_is_away_what_is_cached_is_read_and_changes_wait() {
    world(async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        for _ in 0..2 {
            read(&session).await.unwrap();
            clock.sleep(Nanos::from_secs(10)).await;
        }
        read(&session).await.unwrap();
        outage.begin();
        let begun = clock.now();
        assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 1));
        assert!(clock.now().since(begun) < Nanos::from_secs(15));
        assert!(reading(&proxy, "nfskit_proxy_offline_total") > 0.0);
        let file = session.lookup(session.root(), b"file").await.unwrap().object;
        let (back, own) = (outage.clone(), clock.clone());
        clock.spawn(async move {
            own.sleep(Nanos::from_secs(30)).await;
            back.end();
        });
        fill(&session, file, 7).await;
        assert!(clock.now().since(begun) >= Nanos::from_secs(30));
        assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 7));
    });
}

/// It has no ACCESS, so that only what it does for a caller shows that he may.
#[test]
fn whom_an_origin_of_version_2_takes_for_nobody_does_not_read_what_is_cached_for_others() {
    world(async |clock, origin| {
        let direct = origin.session(origin.rpc()).await.unwrap();
        let how = CreateHow::Unchecked(Sattr3::of_mode(0o600));
        let file = direct.create(direct.root(), b"file", how).await.unwrap().obj.unwrap();
        fill(&direct, file, 1).await;
        let owner = Sattr3 { uid: Some(1000), ..Sattr3::default() };
        direct.setattr(file, owner, None).await.unwrap();
        origin.rule(Rule { squash: Squash::Root, ..Rule::default() });
        let proxy = cached_of_version_2(&clock, &origin).await;
        proxy.believe_callers();
        let session = proxy.session(proxy.rpc()).await.unwrap();
        let owner = session.acting_as(&user(1000));
        for _ in 0..3 {
            clock.sleep(Nanos::from_secs(10)).await;
            read(&owner).await.unwrap();
        }
        assert!(reading(&proxy, "nfskit_cache_hits_total") > 0.0, "he reads from it");
        assert_eq!(read(&session).await, Err(NfsStat3::Acces));
    });
}

/// Each call takes longer than one waits for while the origin is away.
#[test]
fn behind_a_long_path_what_others_have_changed_is_seen_once_the_origin_is_back() {
    world_behind(away(Nanos::from_millis(100)), async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        let direct = origin.session(origin.rpc()).await.unwrap();
        let theirs = direct.lookup(direct.root(), b"file").await.unwrap().object;
        read(&session).await.unwrap();
        outage.begin();
        assert!(session.lookup(session.root(), b"file").await.is_ok());
        assert!(reading(&proxy, "nfskit_proxy_offline_total") > 0.0);
        outage.end();
        fill(&direct, theirs, 7).await;
        clock.sleep(Nanos::from_secs(30)).await;
        assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 7));
    });
}

#[test]
fn who_was_shut_out_before_the_origin_was_away_does_not_read_what_is_cached() {
    world(async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        origin.believe_callers();
        proxy.believe_callers();
        let other = session.acting_as(&user(1000));
        read(&other).await.unwrap();
        let file = session.lookup(session.root(), b"file").await.unwrap().object;
        session.setattr(file, Sattr3::of_mode(0o600), None).await.unwrap();
        // Its owner reads it, so that it is cached as it is now.
        for _ in 0..3 {
            clock.sleep(Nanos::from_secs(10)).await;
            read(&session).await.unwrap();
        }
        outage.begin();
        assert!(read(&session).await.unwrap().iter().all(|&byte| byte == 1));
        let (back, own) = (outage.clone(), clock.clone());
        clock.spawn(async move {
            own.sleep(Nanos::from_secs(30)).await;
            back.end();
        });
        let refused = other.read(file, 0, 1 << 16).await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::Acces), "the origin says it");
    });
}

#[test]
fn while_the_origin_is_away_cached_names_are_for_who_may_pass_through_their_directory() {
    world(async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        let made = session.mkdir(session.root(), b"private", Sattr3::of_mode(0o700)).await;
        let dir = made.unwrap().obj.unwrap();
        let how = CreateHow::Unchecked(Sattr3::of_mode(0o644));
        session.create(dir, b"inner", how).await.unwrap();
        origin.believe_callers();
        proxy.believe_callers();
        let other = session.acting_as(&user(1000));
        for (who, dir, name) in [
            (&session, session.root(), &b"private"[..]),
            (&session, dir, b"inner"),
            (&other, session.root(), b"private"),
        ] {
            who.lookup(dir, name).await.unwrap();
        }
        outage.begin();
        session.lookup(dir, b"inner").await.unwrap();
        other.lookup(session.root(), b"private").await.unwrap();
        let (back, own) = (outage.clone(), clock.clone());
        clock.spawn(async move {
            own.sleep(Nanos::from_secs(30)).await;
            back.end();
        });
        let refused = other.lookup(dir, b"inner").await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::Acces), "the origin says it");
    });
}

/// Our mount lists a small directory in the place of LOOKUPs.
#[test]
fn while_the_origin_is_away_names_that_were_listed_are_known_to_who_has_listed_them() {
    world(async |clock, origin| {
        let (memory, outage) = (Memory::default(), Outage::default());
        let (proxy, session) = begin(&clock, &origin, &memory, &outage).await;
        origin.believe_callers();
        proxy.believe_callers();
        let other = session.acting_as(&user(1000));
        let (root, bytes) = (session.root(), 1 << 13);
        let page = session.readdirplus(root, 0, [0; 8], bytes, bytes).await.unwrap();
        let listed = page.entries.iter().find(|entry| entry.name == b"file").unwrap().handle;
        outage.begin();
        assert_eq!(Some(session.lookup(root, b"file").await.unwrap().object), listed);
        let again = session.readdirplus(root, 0, [0; 8], bytes, bytes).await.unwrap();
        assert_eq!(again, page, "and listed again");
        let (back, own) = (outage.clone(), clock.clone());
        clock.spawn(async move {
            own.sleep(Nanos::from_secs(30)).await;
            back.end();
        });
        let begun = clock.now();
        other.lookup(root, b"file").await.unwrap();
        assert!(clock.now().since(begun) >= Nanos::from_secs(25), "it waits for the origin");
    });
}
