//! Pages over HTTP: just enough of HTTP/1.1 for a monitoring system that asks for one now and then,
//! and in [`fetch`] for asking our own programs.
//!
//! One request for each connection, GET or HEAD, without a body; the answer says that the
//! connection ends, and it does. Heads are read by `httparse` up to [`HEAD_BYTES_MAX`]. There are
//! [`CONNECTIONS_MAX`] connections at once; one more takes the place of the oldest, which is most
//! likely one that asks for nothing or does not go. None lasts longer than [`READ_MAX`] and
//! [`WRITE_MAX`] together.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;

use perf::units::Nanos;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

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

#[derive(Clone, Debug, Eq, PartialEq)]
enum Head {
    Complete(Request),
    Refused(Status),
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Request {
    is_head: bool,
    /// Without its query.
    path: String,
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Head> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if stream.take((HEAD_BYTES_MAX + 1 - bytes.len()) as u64).read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match parse(&bytes) {
            Some(head) => return Ok(head),
            None if bytes.len() > HEAD_BYTES_MAX => return Ok(Head::Refused(Status::TooLarge)),
            None => {}
        }
    }
}

/// What a request asks for; none as long as its head is not complete.
fn parse(bytes: &[u8]) -> Option<Head> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let status = match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => None,
        Err(httparse::Error::TooManyHeaders) => Some(Status::TooLarge),
        Err(_) => Some(Status::BadRequest),
    };
    let refused = |status| Some(Head::Refused(status));
    match (status, request.method, request.path) {
        (Some(status), ..) => refused(status),
        (None, Some(method @ ("GET" | "HEAD")), Some(target)) => {
            let path = target.split(['?', '#']).next().unwrap_or(target).to_owned();
            Some(Head::Complete(Request { is_head: method == "HEAD", path }))
        }
        (None, ..) => refused(Status::NotAllowed),
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    Ok,
    BadRequest,
    NotFound,
    NotAllowed,
    Timeout,
    TooLarge,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::Timeout => "408 Request Timeout",
            Self::TooLarge => "431 Request Header Fields Too Large",
        }
    }
}

struct Answer {
    status: Status,
    found: Found,
    is_head: bool,
}

impl Request {
    fn answer(&self, pages: &impl Pages) -> Answer {
        match pages.find(&self.path) {
            Some(found) => Answer { status: Status::Ok, found, is_head: self.is_head },
            None => Answer { is_head: self.is_head, ..Answer::error(Status::NotFound) },
        }
    }
}

impl Answer {
    fn error(status: Status) -> Self {
        Self { status, found: Found::text(format!("{}\n", status.line())), is_head: false }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Found { content_type, body } = &self.found;
        let allow = if self.status == Status::NotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
        let mut text = format!(
            "HTTP/1.1 {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            self.status.line(),
            body.len(),
        );
        if !self.is_head {
            text.push_str(body);
        }
        text.into_bytes()
    }
}

/// Why there is no page.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("no answer within {0}")]
    TimedOut(Nanos),
    #[error("an answer that is no page over HTTP")]
    Malformed,
    #[error("the answer {0}")]
    Status(u16),
    #[error("a page of more than {0} bytes")]
    TooLong(usize),
}

/// Asks for the page at `path`, which is to be there within `limit`.
///
/// # Errors
/// See [`FetchError`]; any status but 200 is one.
pub async fn fetch(
    clock: &Clock,
    address: SocketAddr,
    path: &str,
    limit: Nanos,
    body_bytes_max: usize,
) -> Result<Vec<u8>, FetchError> {
    let ask = async {
        let stream = TcpStream::connect(address).await?;
        fetch_over(stream, address, path, body_bytes_max).await
    };
    clock.within(limit, pin!(ask)).await.unwrap_or(Err(FetchError::TimedOut(limit)))
}

async fn fetch_over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    address: SocketAddr,
    path: &str,
    body_bytes_max: usize,
) -> Result<Vec<u8>, FetchError> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let most = (HEAD_BYTES_MAX + body_bytes_max + 1) as u64;
    let mut bytes = Vec::with_capacity(64 << 10);
    stream.take(most).read_to_end(&mut bytes).await?;
    page(&bytes, body_bytes_max)
}

/// The body of a whole answer. One that comes in chunks is not read: ours do not.
fn page(bytes: &[u8], body_bytes_max: usize) -> Result<Vec<u8>, FetchError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = response.parse(bytes) else {
        return Err(FetchError::Malformed);
    };
    if response.code != Some(200) {
        return Err(FetchError::Status(response.code.unwrap_or(0)));
    }
    let header = |name: &str| {
        let mut all = response.headers.iter();
        all.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    if header("Transfer-Encoding").is_some() {
        return Err(FetchError::Malformed);
    }
    let body = &bytes[head..];
    if body.len() > body_bytes_max {
        return Err(FetchError::TooLong(body_bytes_max));
    }
    let announced = header("Content-Length").map(|length| {
        std::str::from_utf8(length).ok().and_then(|length| length.trim().parse::<usize>().ok())
    });
    match announced {
        None => Ok(body.to_vec()),
        Some(Some(length)) if length <= body.len() => Ok(body[..length].to_vec()),
        Some(_) => Err(FetchError::Malformed),
    }
}

/// Arbitrary bytes as an answer: nothing may panic, and no page is longer than asked for.
pub fn fuzz_page(bytes: &[u8]) {
    if let Ok(page) = page(bytes, 64) {
        assert!(page.len() <= 64);
    }
}

/// Arbitrary bytes as a request: nothing may panic, and what is complete stays so whatever follows.
pub fn fuzz_head(bytes: &[u8]) {
    if let Some(head @ Head::Complete(_)) = parse(bytes) {
        let more = [bytes, b"GET / HTTP/1.1\r\n"].concat();
        assert_eq!(parse(&more), Some(head), "a complete head ends where it ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::world::World;

    fn pages(path: &str) -> Option<Found> {
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
    fn a_page_that_is_asked_for_is_what_the_answer_has() {
        let world = World::new();
        let clock = world.clock();
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let answered = world.run(async move {
            let mut found = Vec::new();
            for (path, most) in [("/metrics", 100), ("/metrics", 4), ("/other", 100)] {
                let (ours, theirs) = tokio::io::duplex(HEAD_BYTES_MAX * 2);
                let own = clock.clone();
                clock.spawn(async move { answer(theirs, &own, &pages).await });
                found.push(fetch_over(ours, address, path, most).await);
            }
            found
        });
        let [page, long, absent] = <[_; 3]>::try_from(answered.unwrap()).unwrap();
        assert_eq!(page.unwrap(), b"page\n");
        assert!(matches!(long, Err(FetchError::TooLong(4))));
        assert!(matches!(absent, Err(FetchError::Status(404))));
    }

    #[test]
    fn an_answer_that_is_none_is_malformed() {
        let of = |text: &str| page(text.as_bytes(), 100);
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\nab").unwrap(), b"ab");
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab").unwrap(), b"a");
        for wrong in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nab",
            "SSH-2.0-OpenSSH\r\n",
        ] {
            assert!(matches!(of(wrong), Err(FetchError::Malformed)), "{wrong}");
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

    #[test]
    fn any_bytes_are_a_request_or_not() {
        let request = b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";
        for at in 0..request.len() {
            fuzz_head(&request[..at]);
            for byte in 0..=255 {
                let mut bytes = request.to_vec();
                bytes[at] = byte;
                fuzz_head(&bytes);
            }
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        for at in 0..answer.len() {
            fuzz_page(&answer[..at]);
            for byte in 0..=255 {
                let mut bytes = answer.to_vec();
                bytes[at] = byte;
                fuzz_page(&bytes);
            }
        }
    }
}
