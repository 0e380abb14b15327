//! Asking for a page of our own programs.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;

use perf::units::Nanos;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::clock::Clock;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::world::World;
    use crate::http::answer;
    use crate::http::tests::pages;

    /// Arbitrary bytes as an answer: nothing may panic, and no page is longer than requested.
    fn fuzz_page(bytes: &[u8]) {
        if let Ok(page) = page(bytes, 64) {
            assert!(page.len() <= 64);
        }
    }

    #[test]
    fn a_page_that_is_requested_is_what_the_answer_has() {
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
    fn any_bytes_are_an_answer_or_not() {
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
