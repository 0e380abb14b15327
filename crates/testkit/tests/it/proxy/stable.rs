//! What a reply calls stable is stable at the origin, and what is lost there shows in its
//! verifier: whoever crashes, the origin or the proxy.

use bytes::Bytes;
use client::files::{Files, Options};
use client::session::Session;
use net::call;
use net::clock::Clock;
use net::shape::LinkPair;
use perf::units::Nanos;
use server::CommitMode;
use std::sync::Arc;
use testkit::Site;
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, Sattr3, StableHow};
use world::{ClientSpec, Server, ServerSpec, Stage, World};

use super::{Proxy, remote_over, root};

/// A proxy of a server that can crash, and sessions of the proxy's and the client's.
struct Setup {
    clock: Clock,
    server: Server,
    /// The host of the proxy.
    host: world::Client,
}

impl Setup {
    fn on(stage: &Stage) -> Self {
        let server = stage.server(ServerSpec::default());
        let host = stage.client(ClientSpec::behind("100us/1g".parse().unwrap()));
        Self { clock: stage.clock().clone(), server, host }
    }

    /// To the server itself.
    async fn direct(&self) -> Session {
        let rpc = self.host.persistent(&self.server, call::Options::stream()).await.unwrap();
        Session::open(rpc, self.server.address(), &root(), self.server.root()).await.unwrap()
    }

    /// A life of the proxy.
    async fn proxy(&self, state: &std::path::Path) -> (Proxy, Session) {
        let remote = remote_over(&self.clock, self.direct().await, Some(state)).await;
        let site = Site::new(remote, &self.clock, LinkPair::default(), CommitMode::Concurrent);
        let proxy = Arc::new(site);
        let session = proxy.session(proxy.rpc()).await.unwrap();
        (proxy, session)
    }
}

fn play<F: Future<Output = ()> + Send + 'static>(
    play: impl FnOnce(Setup, std::path::PathBuf) -> F + Send + 'static,
) {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().to_owned();
    let world = World::new(7);
    world.run(|stage| play(Setup::on(&stage), path)).unwrap();
}

async fn made(session: &Session) -> FileHandle {
    let how = CreateHow::Guarded(Sattr3::of_mode(0o600));
    session.create(session.root(), b"file", how).await.unwrap().obj.unwrap()
}

fn data(fill: u8) -> Bytes {
    Bytes::from(vec![fill; 10_000])
}

#[test]
fn the_loss_of_unstable_data_at_the_origin_shows_in_another_verifier() {
    play(async |setup, state| {
        let (_proxy, session) = setup.proxy(&state).await;
        let file = made(&session).await;
        let reply = session.write(file, 0, data(1), StableHow::Unstable).await.unwrap().reply;
        assert_eq!(reply.committed, StableHow::Unstable);
        setup.server.restart(1, Nanos::from_millis(10)).await;
        let committed = session.commit(file, 0, 0).await.unwrap().reply;
        assert_ne!(committed.verf, reply.verf);
        let again = session.write(file, 0, data(1), StableHow::Unstable).await.unwrap().reply;
        assert_eq!(again.verf, committed.verf);
        let committed = session.commit(file, 0, 0).await.unwrap().reply;
        assert_eq!(committed.verf, again.verf);
        setup.server.restart(2, Nanos::from_millis(10)).await;
        assert_eq!(session.read(file, 0, 20_000).await.unwrap().data, data(1));
    });
}

#[test]
fn what_is_answered_as_stable_is_there_after_a_crash_of_the_origin() {
    play(async |setup, state| {
        let (_proxy, session) = setup.proxy(&state).await;
        let file = made(&session).await;
        for (number, stable) in [(1, StableHow::FileSync), (2, StableHow::DataSync)] {
            let reply = session.write(file, 0, data(number), stable).await.unwrap().reply;
            assert!(reply.committed >= stable);
            setup.server.restart(u64::from(number), Nanos::from_millis(10)).await;
            assert_eq!(session.read(file, 0, 20_000).await.unwrap().data, data(number));
        }
    });
}

#[test]
fn a_proxy_that_is_killed_has_lost_nothing_and_the_next_one_has_the_same_verifier() {
    play(async |setup, state| {
        let (proxy, session) = setup.proxy(&state).await;
        let file = made(&session).await;
        let reply = session.write(file, 0, data(1), StableHow::Unstable).await.unwrap().reply;
        drop((proxy, session));
        let (_proxy, session) = setup.proxy(&state).await;
        let committed = session.commit(file, 0, 0).await.unwrap().reply;
        assert_eq!(committed.verf, reply.verf);
        setup.server.restart(1, Nanos::from_millis(10)).await;
        assert_eq!(session.read(file, 0, 20_000).await.unwrap().data, data(1));
    });
}

#[test]
fn a_write_larger_than_the_origin_takes_is_answered_as_stable_as_its_least_part() {
    play(async |setup, state| {
        let small = setup.direct().await.limited(4096, 4096);
        let remote = remote_over(&setup.clock, small, Some(&state)).await;
        let site = Site::new(remote, &setup.clock, LinkPair::default(), CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let file = made(&session).await;
        let before = session.getattr(file).await.unwrap();
        let large = Bytes::from((0..100_000_u32).map(|at| at.to_le_bytes()[0]).collect::<Vec<_>>());
        let reply = session.write(file, 0, large.clone(), StableHow::Unstable).await.unwrap().reply;
        assert_eq!((reply.count, reply.committed), (100_000, StableHow::Unstable));
        let after = reply.file_wcc.after.unwrap();
        assert_eq!(reply.file_wcc.before.unwrap().ctime, before.ctime);
        assert_eq!(after, session.getattr(file).await.unwrap());
        assert_eq!(session.read(file, 0, 1 << 20).await.unwrap().data, large);
        let reply = session.write(file, 0, large.clone(), StableHow::FileSync).await.unwrap().reply;
        assert_eq!(reply.committed, StableHow::FileSync);
        setup.server.restart(1, Nanos::from_millis(10)).await;
        assert_eq!(session.read(file, 0, 1 << 20).await.unwrap().data, large);
    });
}

/// A mount of ours writes through the proxy while the origin loses its memory.
#[test]
fn what_a_client_has_closed_is_at_the_origin_whenever_it_crashes() {
    for seed in 0..40 {
        play(async move |setup, state| {
            let (_proxy, session) = setup.proxy(&state).await;
            let files = Files::new(&setup.clock, session, Options::default());
            let me = root();
            let written = async {
                for number in 0..6_u8 {
                    let name = [b'a' + number];
                    let made = files.create(&me, files.root(), &name, Sattr3::default(), false);
                    let open = files.open_made(&me, made.await.unwrap().handle);
                    for piece in 0..8 {
                        open.write(piece * 10_000, &data(number)).await.unwrap();
                    }
                    open.flush().await.unwrap();
                    open.close().await;
                }
            };
            let crashes = async {
                let mut random = fastrand::Rng::with_seed(seed);
                for number in 0..4 {
                    setup.clock.sleep(Nanos::from_micros(random.u64(500..30_000))).await;
                    setup.server.restart(seed + number, Nanos::from_millis(5)).await;
                }
            };
            futures_util::future::join(written, crashes).await;
            setup.server.restart(seed, Nanos::from_millis(5)).await;
            let direct = setup.direct().await;
            for number in 0..6_u8 {
                let found = direct.lookup(direct.root(), &[b'a' + number]).await.unwrap();
                let read = direct.read(found.object, 0, 1 << 20).await.unwrap();
                assert_eq!(read.data.len(), 80_000, "seed {seed}");
                assert!(read.data.iter().all(|&byte| byte == number), "seed {seed}");
            }
        });
    }
}
