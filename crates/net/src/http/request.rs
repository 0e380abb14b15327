//! What is requested, and the answer to it, in bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Found, HEAD_BYTES_MAX, HEADERS_MAX, Pages};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Head {
    Complete(Request),
    Refused(Status),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Request {
    is_head: bool,
    /// Without its query.
    path: String,
}

pub(super) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Head> {
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
pub(super) enum Status {
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

pub(super) struct Answer {
    status: Status,
    found: Found,
    is_head: bool,
}

impl Request {
    pub(super) fn answer(&self, pages: &impl Pages) -> Answer {
        match pages.find(&self.path) {
            Some(found) => Answer { status: Status::Ok, found, is_head: self.is_head },
            None => Answer { is_head: self.is_head, ..Answer::error(Status::NotFound) },
        }
    }
}

impl Answer {
    pub(super) fn error(status: Status) -> Self {
        Self { status, found: Found::text(format!("{}\n", status.line())), is_head: false }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Arbitrary bytes as a request: nothing may panic, and what is complete stays so whatever
    /// follows.
    fn fuzz_head(bytes: &[u8]) {
        if let Some(head @ Head::Complete(_)) = parse(bytes) {
            let more = [bytes, b"GET / HTTP/1.1\r\n"].concat();
            assert_eq!(parse(&more), Some(head), "a complete head ends where it ends");
        }
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
    }
}
