//! The same seed gives the same messages at the same moments; another one does not.

use bytes::Bytes;
use client::session::Session;
use net::call::Options;
use net::clock::Clock;
use perf::units::Nanos;
use tokio::sync::mpsc;
use wire::nfs3::{Sattr3, StableHow, create::CreateHow};
use world::{ClientSpec, Costs, Digest, ServerSpec, Stage, World};

async fn work(session: Session, clock: Clock, mut random: fastrand::Rng) {
    let root = session.root();
    let mut files = Vec::new();
    for _ in 0..40 {
        let name = format!("f{}", random.u8(..20));
        let made = match random.u8(..6) {
            0 | 1 => {
                let how = CreateHow::Unchecked(Sattr3::default());
                session.create(root, name.as_bytes(), how).await.map(|made| files.extend(made.obj))
            }
            2 => session.remove(root, name.as_bytes()).await.map(drop),
            _ => match files.get(random.usize(..files.len().max(1))) {
                Some(&file) => {
                    let stable = [StableHow::Unstable, StableHow::FileSync][random.usize(..2)];
                    let data = Bytes::from(vec![random.u8(..); random.usize(1..20_000)]);
                    session.write(file, random.u64(..100_000), data, stable).await.map(drop)
                }
                None => session.getattr(root).await.map(drop),
            },
        };
        // Files are removed under the feet of others.
        made.ok();
        clock.sleep(Nanos::from_micros(random.u64(..300))).await;
    }
}

async fn play(stage: Stage) {
    let costs = Costs { per_byte_ps: 300, ..Costs::per_call(Nanos::from_micros(20)) };
    let server = stage.server(ServerSpec { cores: 2, costs, ..ServerSpec::default() });
    let links = ["lan-1g,o=5us", "lossy", "50us/100m"];
    let (done, mut all) = mpsc::channel::<()>(1);
    for (number, link) in (0..12_u64).zip(links.iter().cycle()) {
        let client = stage.client(ClientSpec::behind(link.parse().unwrap()));
        let (server, clock, done) = (server.clone(), stage.clock().clone(), done.clone());
        let random = fastrand::Rng::with_seed(stage.seed_of(number));
        stage.clock().spawn(async move {
            let options = Options { insist: true, ..Options::stream() };
            let rpc = match number % 3 {
                0 => client.rpc(&server).unwrap(),
                1 => client.datagrams(&server, &Options::datagrams()).unwrap(),
                _ => client.persistent(&server, options).await.unwrap(),
            };
            let session = client.session(rpc, &server).await.unwrap();
            work(session, clock, random).await;
            drop(done);
        });
    }
    drop(done);
    all.recv().await;
}

fn digest(seed: u64) -> Digest {
    let world = World::new(seed);
    world.run(play).unwrap();
    world.digest()
}

#[test]
fn the_same_seed_gives_the_same_digest() {
    let first = digest(1);
    assert!(first.messages > 500, "{first:?}");
    for _ in 0..5 {
        assert_eq!(digest(1), first);
    }
    assert_ne!(digest(2), first);
}
