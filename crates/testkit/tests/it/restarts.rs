//! A mount over real sockets whose server goes away and comes back on the same port.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use client::mount::{self, Options, Persistence};
use client::session::{Credential, Session};
use client::url::Target as Url;
use net::clock::{Clock, Task};
use net::serve::{Host, Limits};
use net::transport::{RECORD_BYTES_MAX, tcp};
use parking_lot::Mutex;
use perf::units::Nanos;
use server::store::mem::MemStore;
use server::{Engine, EngineConfig, Export, Exports, Transport};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, StableHow};
use world::server::{everyone_is_root, service};

const PIECES: u64 = 200;
const PIECE_BYTES: usize = 32 << 10;

/// A server whose files outlive it.
struct Server {
    clock: Clock,
    engine: Arc<Engine<MemStore>>,
    address: SocketAddr,
    tasks: Arc<Mutex<Vec<Task>>>,
}

impl Server {
    fn start(clock: &Clock) -> Self {
        let exports = Exports::one(Export::ruled(everyone_is_root()), testkit::memory_store(clock));
        let engine = Arc::new(Engine::new(exports, EngineConfig::default()));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { clock: clock.clone(), engine, address, tasks: Arc::default() };
        server.listen();
        server
    }

    fn listen(&mut self) {
        let listener = tcp::Listener::bind(self.address, RECORD_BYTES_MAX).unwrap();
        self.address = listener.local_addr().unwrap();
        let (clock, engine, tasks) =
            (self.clock.clone(), Arc::clone(&self.engine), Arc::clone(&self.tasks));
        let task = self.clock.spawn(async move {
            let host = Host::new(&clock, Limits::default());
            while let Ok(connection) = listener.accept().await {
                let (host, engine) = (host.clone(), Arc::clone(&engine));
                let service = service(&engine, Transport::Stream);
                let served = clock.spawn(async move {
                    host.connection(connection, service).await.ok();
                });
                tasks.lock().push(served);
            }
        });
        self.tasks.lock().push(task);
    }

    fn kill(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }
}

fn piece(number: u64) -> Bytes {
    Bytes::from(vec![u8::try_from(number).unwrap(); PIECE_BYTES])
}

async fn mounted(server: &Server, persistence: Persistence) -> Session {
    let port = server.address.port();
    let url: Url = format!("nfs://127.0.0.1:{port}/?mountport={port}").parse().unwrap();
    let machine_name = "test".to_owned();
    let credential = Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() };
    let persistence = Some(persistence);
    let options = Options { persistence, ..Options::persistent(credential) };
    mount::mount(&server.clock, &url, &options).await.unwrap().session
}

async fn file(session: &Session) -> FileHandle {
    let how = CreateHow::Unchecked(Default::default());
    session.create(session.root(), b"file", how).await.unwrap().obj.unwrap()
}

#[test]
fn writes_go_on_through_restarts_of_the_server() {
    for nconnect in [1, 4] {
        net::runtime::block_on(async {
            let clock = Clock::real();
            let mut server = Server::start(&clock);
            let persistence = Persistence { nconnect, ..Persistence::default() };
            let session = mounted(&server, persistence).await;
            let file = file(&session).await;
            for _ in 0..5 {
                let before = session.rpc().counters().transport.receives;
                let writes = (0..PIECES).map(|number| {
                    let offset = number * PIECE_BYTES as u64;
                    session.write(file, offset, piece(number), StableHow::Unstable)
                });
                let restart = async {
                    // Somewhere in the middle.
                    while session.rpc().counters().transport.receives < before + 20 {
                        net::clock::yield_now().await;
                    }
                    server.kill();
                    net::clock::yield_now().await;
                    server.listen();
                };
                let written = async { futures_util::future::join_all(writes).await };
                let both = async { tokio::join!(written, restart) };
                let (written, ()) = clock.within(Nanos::from_secs(60), both).await.unwrap();
                assert!(written.iter().all(Result::is_ok));
            }
            for number in 0..PIECES {
                let offset = number * PIECE_BYTES as u64;
                let bytes = u32::try_from(PIECE_BYTES).unwrap();
                assert_eq!(session.read(file, offset, bytes).await.unwrap().data, piece(number));
            }
            assert!(session.rpc().counters().transport.disconnects >= 5);
        })
        .unwrap();
    }
}

#[test]
fn a_server_that_is_gone_for_good_fails_soft_calls_in_time_and_hard_ones_can_be_given_up() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        for soft in [true, false] {
            let server = Server::start(&clock);
            let (timeo, retrans) = (Some(Nanos::from_millis(100)), Some(3));
            let persistence = Persistence { soft, timeo, retrans, ..Persistence::default() };
            let session = mounted(&server, persistence).await;
            server.kill();
            let begun = clock.now();
            let ended = clock.within(Nanos::from_secs(1), session.null()).await;
            let took = clock.now().since(begun);
            match ended {
                Ok(answer) => {
                    assert!(soft && answer.is_err());
                    let in_time = Nanos::from_millis(300)..Nanos::from_millis(800);
                    assert!(in_time.contains(&took), "{took}");
                }
                Err(_) => assert!(!soft, "{took}"),
            }
        }
    })
    .unwrap();
}
