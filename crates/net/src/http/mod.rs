//! Pages over HTTP: just enough of HTTP/1.1 for a monitoring system that asks for one now and then,
//! and in [`fetch()`] for asking our own programs.
//!
//! One request for each connection, GET or HEAD, without a body; the answer says that the
//! connection ends, and it does. Heads are read by `httparse` up to [`HEAD_BYTES_MAX`]. There are
//! [`CONNECTIONS_MAX`] connections at once; one more takes the place of the oldest, which is most
//! likely one that asks for nothing or does not go. None lasts longer than [`READ_MAX`] and
//! [`WRITE_MAX`] together.

mod fetch;
mod request;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;

pub use fetch::{FetchError, fetch};
use perf::units::Nanos;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::request::{Answer, Head, Status, read_head};
use crate::clock::Clock;
use crate::transport::tcp::is_shortage;

/// Request line and header lines.
pub const HEAD_BYTES_MAX: usize = 8 << 10;
pub const HEADERS_MAX: usize = 64;
pub const CONNECTIONS_MAX: usize = 64;
/// Until a request is complete.
pub const READ_MAX: Nanos = Nanos::from_secs(5);
/// Until an answer is taken.
pub const WRITE_MAX: Nanos = Nanos::from_secs(10);

/// What is found at a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    pub content_type: &'static str,
    pub body: String,
}

impl Found {
    pub fn text(body: impl Into<String>) -> Self {
        Self { content_type: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Finds the page at a path, which is without its query; none is answered 404.
pub trait Pages: Clone + Send + 'static {
    fn find(&self, path: &str) -> Option<Found>;
}

impl<F> Pages for F
where
    F: Fn(&str) -> Option<Found> + Clone + Send + 'static,
{
    fn find(&self, path: &str) -> Option<Found> {
        self(path)
    }
}

/// A socket that listens for requests.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Needs a tokio runtime around the caller.
    ///
    /// # Errors
    /// The system's: the address is in use, or not ours.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self(TcpListener::from_std(listener)?))
    }

    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers requests until dropped.
    pub async fn serve(self, clock: Clock, pages: impl Pages + Sync) {
        let mut places = Places::default();
        loop {
            let stream = match self.0.accept().await {
                Ok((stream, _)) => stream,
                Err(cause) => {
                    if is_shortage(&cause) {
                        places.make_room();
                        clock.sleep(Nanos::from_millis(10)).await;
                    }
                    continue;
                }
            };
            let mut place = places.take();
            let (own, pages) = (clock.clone(), pages.clone());
            clock.spawn(async move {
                place.or_taken(answer(stream, &own, &pages)).await;
            });
        }
    }
}

/// The connections that there are, oldest first.
#[derive(Debug, Default)]
struct Places(VecDeque<oneshot::Sender<Infallible>>);

/// The place of one connection, until another takes it.
#[derive(Debug)]
struct Place(oneshot::Receiver<Infallible>);

impl Places {
    /// The oldest gives up what a new one needs.
    fn make_room(&mut self) {
        self.0.retain(|place| !place.is_closed());
        self.0.pop_front();
    }

    fn take(&mut self) -> Place {
        self.0.retain(|place| !place.is_closed());
        if self.0.len() >= CONNECTIONS_MAX {
            // Its task sees that nobody keeps its place.
            self.0.pop_front();
        }
        let (keep, place) = oneshot::channel();
        self.0.push_back(keep);
        Place(place)
    }
}

impl Place {
    /// Does `work`, unless the place is taken first.
    async fn or_taken(&mut self, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        poll_fn(|cx| match Pin::new(&mut self.0).poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => work.as_mut().poll(cx),
        })
        .await;
    }
}

/// Answers the one request of a connection.
pub async fn answer<S>(mut stream: S, clock: &Clock, pages: &impl Pages)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let answer = match clock.within(READ_MAX, read_head(&mut stream)).await {
        // Nothing came, or it went away: there is nobody to tell.
        Ok(Err(_)) => return,
        Ok(Ok(Head::Complete(request))) => request.answer(pages),
        Ok(Ok(Head::Refused(status))) => Answer::error(status),
        Err(_) => Answer::error(Status::Timeout),
    };
    let bytes = answer.to_bytes();
    let send = async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        // What the peer still sends is read, so that it gets the answer and no reset.
        drain(&mut stream).await
    };
    clock.within(WRITE_MAX, send).await.ok();
}

async fn drain(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut rest = [0; 1024];
    for _ in 0..64 {
        if stream.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::world::World;

    pub(super) fn pages(path: &str) -> Option<Found> {
        (path == "/metrics").then(|| Found::text("page\n"))
    }

    /// The answer to `request`, whose writer stays.
    fn ask(request: &'static [u8]) -> String {
        let world = World::new();
        let clock = world.clock();
        let answered = world.run(async move {
            let (mut ours, theirs) = tokio::io::duplex(HEAD_BYTES_MAX * 2);
            let own = clock.clone();
            clock.spawn(async move { answer(theirs, &own, &pages).await });
            ours.write_all(request).await.unwrap();
            let mut answer = String::new();
            ours.read_to_string(&mut answer).await.unwrap();
            (answer, clock.now())
        });
        let (answer, at) = answered.unwrap();
        assert!(at <= perf::units::Instant::EPOCH + READ_MAX);
        answer
    }

    #[test]
    fn a_page_is_found_at_its_path() {
        let answer = ask(b"GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\nContent-Length: 5\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\npage\n"), "{answer}");
        let head = ask(b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 5") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn everything_else_is_refused() {
        let many: &[u8] =
            Vec::leak([b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(65)].concat());
        let long: &[u8] = Vec::leak([b"GET /".to_vec(), vec![b'x'; HEAD_BYTES_MAX]].concat());
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x80\0\0\x28 an RPC call", "400"),
            (b"GET /metrics HTTP/9.9\r\n\r\n", "400"),
            (many, "431"),
            (long, "431"),
            (b"GET /metrics HTTP/1.1\r\n", "408"),
            (b"", "408"),
        ] {
            let answer = ask(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
    }

    #[test]
    fn who_keeps_a_place_and_asks_for_nothing_keeps_nobody_out() {
        let world = World::new();
        let clock = world.clock();
        let (late, early) = world
            .run(async move {
                let mut places = Places::default();
                let mut idle = Vec::new();
                for number in 0..=CONNECTIONS_MAX {
                    let (mut ours, theirs) = tokio::io::duplex(HEAD_BYTES_MAX);
                    let (mut place, own) = (places.take(), clock.clone());
                    clock.spawn(async move {
                        place.or_taken(answer(theirs, &own, &pages)).await;
                    });
                    if number == CONNECTIONS_MAX {
                        ours.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
                    }
                    idle.push(ours);
                }
                let (mut late, mut early) = (String::new(), String::new());
                let mut last = idle.pop().unwrap();
                last.read_to_string(&mut late).await.unwrap();
                idle[0].read_to_string(&mut early).await.unwrap();
                assert_eq!(clock.now(), perf::units::Instant::EPOCH);
                drop(last);
                clock.sleep(Nanos::from_millis(1)).await;
                drop(places.take());
                assert_eq!(places.0.len(), CONNECTIONS_MAX, "the one that was answered is gone");
                (late, early)
            })
            .unwrap();
        assert!(late.starts_with("HTTP/1.1 200 OK\r\n"), "{late}");
        assert_eq!(early, "", "the oldest is closed");
    }
}
