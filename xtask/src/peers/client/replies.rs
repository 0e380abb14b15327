//! Replies out of a stream: a large buffer, record marks, and what stands before the results.

use std::io::Read;
use std::net::TcpStream;
use std::ops::Range;

use wire::nfs3::NfsStat3;
use wire::record::{FRAGMENT_HEADER_LEN, Fragment};
use wire::xdr::{Decode, from_bytes};

use crate::nfs::Results;
use crate::rpc;

/// Room for the largest reply (READ of 1 MiB) and what comes with it.
const BUFFER_BYTES: usize = 3 << 20;
/// Bytes read at once while no longer reply has begun.
const CHUNK_BYTES: usize = 128 << 10;
/// A reply as it always is: REPLY, MSG_ACCEPTED, no verifier, SUCCESS.
const USUAL: [u8; 20] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What was received and not yet taken.
#[derive(Debug)]
pub(crate) struct Replies {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Replies {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Where the next whole reply stands; none when more has to be received.
    pub(crate) fn take(&mut self) -> Result<Option<Range<usize>>, String> {
        let Some(len) = self.record_len()? else { return Ok(None) };
        let body = self.start + FRAGMENT_HEADER_LEN;
        if self.end < body + len {
            return Ok(None);
        }
        self.start = body + len;
        Ok(Some(body..body + len))
    }

    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Waits for more. Of a long reply exactly the rest is requested, so that the next one
    /// begins at the front of the buffer and nothing is moved.
    pub(crate) fn fill(&mut self, mut stream: &TcpStream) -> Result<(), String> {
        let have = self.end - self.start;
        let whole = self.record_len()?.map_or(FRAGMENT_HEADER_LEN, |len| FRAGMENT_HEADER_LEN + len);
        let wanted = (whole - have).max(CHUNK_BYTES);
        if have == 0 {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < wanted {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, have);
        }
        let room = &mut self.buffer[self.end..self.end + wanted];
        match stream.read(room) {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(count) => {
                self.end += count;
                Ok(())
            }
            Err(error) => Err(format!("no reply: {error}")),
        }
    }

    /// Length of the reply that begins at `start`, when its record mark is here.
    fn record_len(&self) -> Result<Option<usize>, String> {
        let Some(header) = self.buffer[self.start..self.end].first_chunk() else {
            return Ok(None);
        };
        let Fragment { last, len } = Fragment::from_header(*header);
        let len = len as usize;
        match last {
            true if len + 2 * CHUNK_BYTES <= BUFFER_BYTES => Ok(Some(len)),
            true => Err(format!("a reply of {len} bytes")),
            false => Err("a reply in several fragments, which is not read here".to_owned()),
        }
    }
}

/// The transaction id of a reply, or of nothing when it is too short.
pub(crate) fn xid(reply: &[u8]) -> u32 {
    reply.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The results of a call that was accepted and carried out.
pub(crate) fn results(reply: &[u8]) -> Result<&[u8], String> {
    if reply.get(4..24) == Some(&USUAL) {
        return Ok(&reply[24..]);
    }
    rpc::results(reply)
}

/// What the results of `procedure` hold; fails when it did.
pub(crate) fn succeeded<'a, R, T>(procedure: &str, results: &'a [u8]) -> Result<T, String>
where
    R: Decode<'a> + Results<T>,
{
    let reply: R = from_bytes(results).map_err(|error| format!("{procedure}: {error}"))?;
    reply.results().map_err(|status| format!("{procedure}: {status}"))
}

/// Fails unless the results begin with NFS3_OK.
pub(crate) fn expect_ok(results: &[u8]) -> Result<(), String> {
    match results.first_chunk().map(|word| u32::from_be_bytes(*word)) {
        Some(0) => Ok(()),
        Some(code) => match NfsStat3::from_code(code) {
            Some(status) => Err(status.to_string()),
            None => Err(format!("status {code}")),
        },
        None => Err("a reply without results".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;
    use wire::rpc::{AcceptStatus, AuthStat, ReplyHeader};
    use wire::xdr::Encode;

    /// Two replies and the beginning of a third, in pieces, come out as two.
    #[test]
    fn replies_are_cut_by_their_record_marks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        let record = |len: u32| {
            let mut bytes = Fragment { last: true, len }.to_header().to_vec();
            bytes.resize(4 + len as usize, 9);
            bytes
        };
        let stream = [record(8), record(300_000), record(4)[..6].to_vec()].concat();
        let writer = std::thread::spawn(move || there.write_all(&stream).map(|()| there));
        let mut replies = Replies::new();
        let mut lens = Vec::new();
        while lens.len() < 2 {
            replies.fill(&here).unwrap();
            while let Some(range) = replies.take().unwrap() {
                assert!(replies.at(range.clone()).iter().all(|&byte| byte == 9));
                lens.push(range.len());
            }
        }
        assert_eq!(lens, [8, 300_000]);
        drop(writer.join().unwrap().unwrap());
        let end = loop {
            if let Err(end) = replies.fill(&here) {
                break end;
            }
        };
        assert!(end.contains("closed"), "{end}");
        assert_eq!(replies.take(), Ok(None));
    }

    #[test]
    fn only_accepted_calls_have_results() {
        let mut reply = ReplyHeader::success(7).to_bytes();
        reply.extend([0, 0, 0, 70]);
        assert_eq!(xid(&reply), 7);
        assert_eq!(results(&reply), Ok(&[0, 0, 0, 70][..]));
        assert_eq!(expect_ok(&[0, 0, 0, 70]).unwrap_err(), "NFS3ERR_STALE");
        assert_eq!(expect_ok(&[0; 4]), Ok(()));
        for refused in [
            ReplyHeader::accepted(7, AcceptStatus::GarbageArgs),
            ReplyHeader::auth_error(7, AuthStat::TooWeak),
        ] {
            assert!(results(&refused.to_bytes()).is_err());
        }
    }
}
