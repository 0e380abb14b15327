//! Servers that answer what they should not: whoever calls them gets an error that says what, and
//! soon, never an endless loop.

use std::sync::Arc;

use bytes::Bytes;
use client::error::Error;
use client::files::open::Mode;
use client::files::{Files, Options};
use client::session::{Complaints, Credential, Session};
use client::write_behind::{self, PolicyName, WriteBehind};
use load::scratch::Scratch;
use load::study::Subject;
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::lies::Lie;
use testkit::{REPLY_LIMIT, Site};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, NfsStat3, Sattr3, StableHow};

/// How long a server may put calls off in these tests.
const PUT_OFF_MAX: Nanos = Nanos::from_secs(20);

const ALL: Mode = Mode { read: true, write: true };

fn me() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}

fn options() -> Options {
    Options { put_off_max: Some(PUT_OFF_MAX), ..Options::default() }
}

/// A server that lies 100 us away, which has a file; the session is that of a client that has come
/// before the lies began.
fn world<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Clock, Site<MemStore>, FileHandle) -> F + Send + 'static,
) {
    let world = World::new();
    let clock = world.clock();
    let link = Link { latency: Nanos::from_micros(100), ..Link::default() };
    let site = Site::in_memory(&clock, LinkPair::symmetric(link), CommitMode::Concurrent);
    let run = async move {
        let session = site.connect().await.unwrap();
        let how = CreateHow::Unchecked(Sattr3::of_mode(0o600));
        let file = session.create(session.root(), b"file", how).await.unwrap().obj.unwrap();
        let data = Bytes::from(vec![7; 1 << 16]);
        session.write(file, 0, data, StableHow::FileSync).await.unwrap();
        test(clock, site, file).await;
    };
    world.run(run).unwrap();
}

async fn lied_to(site: &Site<MemStore>, lie: Lie) -> Session {
    site.connect().await.unwrap().over(site.rpc_lying(lie))
}

/// The words of an error about what makes no sense.
#[track_caller]
fn nonsense<T>(result: Result<T, Error>) -> String {
    match result {
        Err(error @ Error::Nonsense { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it succeeds"),
    }
}

#[test]
fn a_listing_that_gets_nowhere_ends() {
    for (lie, words) in [
        (Lie::CookiesRepeat, "round in a circle"),
        (Lie::OneCookie, "cookies of a page repeat"),
        (Lie::EmptyPages, "not the last"),
        (Lie::SameNames, "same names"),
    ] {
        world(async move |clock, site, _| {
            let session = lied_to(&site, lie).await;
            let begun = clock.now();
            let files = Files::new(&clock, session.clone(), options());
            let listing = files.listing(&me(), files.root());
            let mut cookie = 0;
            let error = loop {
                match listing.page(cookie).await {
                    Ok(page) => cookie = page.entries.last().unwrap().cookie,
                    Err(error) => break nonsense::<()>(Err(error)),
                }
            };
            assert!(error.contains(words), "{lie:?}: {error}");
            assert!(error.contains("127.1.0.1:2049") && error.contains("READDIR"), "{error}");
            // Whoever empties a directory lists it from its beginning again and again.
            let honest = site.connect().await.unwrap();
            let scratch = Scratch::create(&honest, "scratch").await.unwrap();
            nonsense(scratch.remove(&session).await);
            assert!(clock.now().since(begun) < REPLY_LIMIT, "{lie:?}");
        });
    }
}

#[test]
fn a_listing_whose_cookies_are_given_up_has_every_name_once() {
    world(async move |clock, site, _| {
        let session = lied_to(&site, Lie::CookiesMove).await;
        let files = Files::new(&clock, session, options());
        let listing = files.listing(&me(), files.root());
        let (mut cookie, mut names) = (0, Vec::new());
        loop {
            let page = listing.page(cookie).await.unwrap();
            names.extend(page.entries.iter().map(|entry| entry.name.clone()));
            cookie = page.entries.last().map_or(cookie, |last| last.cookie);
            if page.eof {
                break;
            }
        }
        let order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 11, 10];
        assert_eq!(names, order.map(|number| format!("name-{number}").into_bytes()));
    });
}

#[test]
fn a_server_that_offers_no_transfers_is_no_server() {
    world(async |_, site, _| {
        for (lie, word) in [(Lie::NoRtmax, "rtmax"), (Lie::NoWtmax, "wtmax")] {
            let error = nonsense(site.session(site.rpc_lying(lie)).await);
            assert!(error.contains("FSINFO") && error.contains(word), "{error}");
        }
        site.session(site.rpc_lying(Lie::NoDtpref)).await.unwrap();
    });
}

#[test]
fn whoever_measures_gives_up_a_server_whose_verifiers_never_match() {
    for lie in [Lie::NeverStable, Lie::NewVerifiers] {
        world(async move |clock, site, file| {
            let session = lied_to(&site, lie).await;
            let plan = client::transfer::plan::Options {
                call_bytes: 1 << 16,
                file_bytes: 1 << 20,
                total_bytes: 8 << 20,
                stable: StableHow::Unstable,
                commit_bytes: 1 << 20,
            };
            let target = client::transfer::Target { clock: &clock, session: &session, file };
            let data = Bytes::from(vec![1; 1 << 16]);
            let begun = clock.now();
            let written = target.write(&data, plan, 8, client::transfer::Limit::default(), |_| {});
            let error = nonsense(written.await);
            assert!(error.contains("COMMIT") && error.contains("verifier"), "{error}");
            assert!(clock.now().since(begun) < REPLY_LIMIT);
            // What is stable needs no verifier.
            let stable = client::transfer::plan::Options { stable: StableHow::FileSync, ..plan };
            let limit = client::transfer::Limit::default();
            let written = target.write(&data, stable, 8, limit, |_| {}).await;
            match lie {
                Lie::NeverStable => assert!(nonsense(written).contains("less stable")),
                _ => assert_eq!(written.unwrap().bytes, 8 << 20),
            }
        });
    }
}

#[test]
fn what_is_written_behind_is_requested_to_be_stable_and_lost_loudly_if_it_is_not() {
    for policy in PolicyName::ALL {
        for lie in [Lie::NeverStable, Lie::NewVerifiers] {
            world(async move |clock, site, file| {
                let session = lied_to(&site, lie).await;
                let options = write_behind::Options { policy, ..write_behind::Options::default() };
                let behind = WriteBehind::new(&clock, options, Arc::new(()));
                behind.take(&session, file, 0, &[7; 100_000]).await.unwrap();
                let committed = clock.within(REPLY_LIMIT, behind.commit(file)).await.unwrap();
                match lie {
                    Lie::NeverStable => assert!(nonsense(committed).contains("less stable")),
                    _ => committed.unwrap(),
                }
            });
        }
    }
}

#[test]
fn a_read_or_write_of_an_impossible_count_is_an_error() {
    world(async |clock, site, file| {
        for (lie, words) in [(Lie::ReadsNothing, "does not end there"), (Lie::ReadsMore, "READ")] {
            let session = lied_to(&site, lie).await;
            let files = Files::new(&clock, session.clone(), options());
            let open = files.open(&me(), file, ALL).await.unwrap();
            let error = nonsense(open.read(0, 4096).await);
            assert!(error.contains(words), "{lie:?}: {error}");
            open.close().await;
            let target = client::transfer::Target { clock: &clock, session: &session, file };
            nonsense(target.read(1 << 16, 4096, 4, |_, _, _| {}).await);
        }
        for lie in [Lie::WritesNothing, Lie::WritesMore] {
            let session = lied_to(&site, lie).await;
            let files = Files::new(&clock, session, options());
            let open = files.open(&me(), file, ALL).await.unwrap();
            open.write(0, b"data").await.unwrap();
            assert!(nonsense(open.flush().await).contains("impossible count"));
            open.close().await;
        }
        // Nothing at the end is nothing to complain about.
        let session = lied_to(&site, Lie::ReadsNothing).await;
        assert!(session.read(file, 1 << 16, 100).await.unwrap().eof);
    });
}

#[test]
fn a_server_that_always_asks_for_patience_gets_some_and_is_complained_about() {
    world(async |clock, site, file| {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let hearer = Arc::clone(&heard);
        let complaints = Complaints::new(move |error| hearer.lock().push(error.to_string()));
        let session = lied_to(&site, Lie::AlwaysLater).await.complaining(complaints);
        let files = Files::new(&clock, session, options());
        let open = files.open(&me(), file, ALL).await.unwrap();
        let put_off = |result: Result<(), Error>| {
            assert_eq!(result.unwrap_err().status(), Some(NfsStat3::Jukebox));
        };
        let begun = clock.now();
        put_off(open.read(0, 4096).await.map(drop));
        let waited = clock.now().since(begun);
        // What is read ahead fails first, and then what was requested.
        assert!(waited >= PUT_OFF_MAX && waited < PUT_OFF_MAX * 3, "{waited}");
        open.write(0, b"data").await.unwrap();
        put_off(open.flush().await);
        assert!(clock.now().since(begun) < PUT_OFF_MAX * 5);
        open.close().await;
        for procedure in ["READ", "WRITE"] {
            let says = |text: &String| text.contains(procedure) && text.contains("JUKEBOX");
            assert!(heard.lock().iter().any(says), "{procedure}");
        }
    });
}

/// Whatever it is, nothing of it is waited for without end.
#[test]
fn every_lie_ends_one_way_or_another() {
    for lie in Lie::ALL {
        world(async move |clock, site, file| {
            let session = lied_to(&site, lie).await;
            let files = Files::new(&clock, session.clone(), options());
            let all = async {
                let open = files.open(&me(), file, ALL).await.ok();
                if let Some(open) = open {
                    open.read(0, 100_000).await.ok();
                    open.write(0, &[1; 200_000]).await.ok();
                    open.flush().await.ok();
                    open.read(0, 100_000).await.ok();
                    open.close().await;
                }
                files.getattr(&me(), file).await.ok();
                files.statfs(&me()).await.ok();
                session.pathconf(file).await.ok();
                files.shut_down().await;
            };
            let limit = PUT_OFF_MAX * 10;
            assert!(clock.within(limit, all).await.is_ok(), "{lie:?}");
        });
    }
}
