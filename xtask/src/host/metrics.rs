//! A server's metrics, as its page has them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The page at this address, with what comes before it.
pub(crate) fn page(address: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("metrics of {address}: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(failed)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .map_err(failed)?;
    let mut page = String::new();
    stream.read_to_string(&mut page).map_err(failed)?;
    Ok(page)
}
